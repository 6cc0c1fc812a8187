"""Programs that users copy."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import umem

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(*arguments):
    return subprocess.run([sys.executable, EXAMPLES / "stage.py", *arguments], capture_output=True, text=True, timeout=60)


def test_the_stage():
    done = run(EXAMPLES / "data" / "cell.npy")
    assert done.returncode == 0 and done.stdout.startswith("Python: host -> file -> mmap -> pool")
    assert done.stdout.endswith(": every byte is right\n")


def test_the_stage_needs_an_array(tmp_path):
    assert run().returncode == 1 and run(tmp_path / "no.npy").returncode == 1


def test_the_first_example(tmp_path):
    folder = EXAMPLES.parent / "doc/examples/python"
    done = subprocess.run([sys.executable, folder / "first.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == (folder / "first.out").read_text(), done.stderr
    assert (tmp_path / "squares.bin").stat().st_size == 8000


def test_laplace_by_the_sweep_of_the_cxx_headers(tmp_path):
    """UMEM_TEST_LIBRARY: libumem.a of the build, as the headers are those of the tree."""
    umem_library = os.environ.get("UMEM_TEST_LIBRARY")
    if not umem_library or not shutil.which("g++"):
        pytest.skip("needs g++ and UMEM_TEST_LIBRARY, the library in C")
    root = EXAMPLES.parent
    folder, library = root / "doc/examples/python/sweep", tmp_path / "laplace_sweep.so"
    subprocess.run(["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library,
                    f"-I{root}/c/include", f"-I{root}/cxx/include", folder / "laplace_sweep.cpp", umem_library,
                    "-lpthread", "-ldl"], check=True)
    done = subprocess.run([sys.executable, folder / "laplace_sweep.py", library], capture_output=True, text=True)
    assert done.stdout == (folder / "laplace_sweep.out").read_text(), done.stderr


def test_laplace_takes_2097_steps():
    """Point-Jacobi on a host view, as the examples in C++ do it."""
    numpy = pytest.importorskip("numpy")
    nx = 51
    u = umem.zeros((nx, nx))
    with u.host() as view:
        view[nx - 1, :] = numpy.sin(numpy.linspace(0, numpy.pi, nx))
        steps, new = 0, view.copy()
        while True:
            steps += 1
            new[1:-1, 1:-1] = (view[2:, 1:-1] + view[:-2, 1:-1] + view[1:-1, 2:] + view[1:-1, :-2]) / 4
            change = numpy.abs(new - view).max()
            view[...] = new
            if change < 1e-5:
                break
    assert steps == 2097
