"""Programs that users copy."""
import os
import shutil
import subprocess
import sys
import sysconfig
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
    folder = root / "doc/examples/python/sweep"
    shutil.copy(folder / "laplace_sweep.cpp", tmp_path)
    # Says what that of an installed umem would say of the tree and this library.
    config = tmp_path / "pkg-config"
    config.write_text(f"""#!/bin/sh
case "$*" in
  "--cflags --libs umem") echo -I{root}/c/include -I{root}/cxx/include {umem_library} -lpthread -ldl ;;
  "--variable=libdir umem") dirname {umem_library} ;;
  *) exit 1 ;;
esac
""")
    config.chmod(0o755)
    subprocess.run(["sh", "-e", folder / "laplace_sweep.sh"], cwd=tmp_path, check=True,
                   env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    done = subprocess.run([sys.executable, folder / "laplace_sweep.py", "./laplace_sweep.so"], cwd=tmp_path,
                          capture_output=True, text=True)
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


def test_a_module_in_c_takes_arrays_by_the_exchange_table(tmp_path):
    python = Path(sysconfig.get_paths()["include"])
    if not shutil.which("cc") or not (python / "Python.h").exists():
        pytest.skip("needs a C compiler and Python.h")
    folder = EXAMPLES.parent / "doc/examples/python/exchange_table"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{python}",
                    f"-I{EXAMPLES.parent}/c/include", folder / "scale.c", "-o", tmp_path / "scale.so"], check=True)
    done = subprocess.run([sys.executable, folder / "call_scale.py"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])})
    assert done.stdout == (folder / "call_scale.out").read_text(), done.stderr
