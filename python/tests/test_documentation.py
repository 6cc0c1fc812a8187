"""The programs that the documentation shows run as they stand, and print what it shows; its reference is up to date."""
import importlib.util
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import umem
from conftest import HAS_GPU

DOC = Path(__file__).parents[2] / "doc"
EXAMPLES = DOC / "examples/python"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the documentation is not beside the tests")
# Programs that need a GPU, and the library that they import; None: the double of the driver does, too.
ON_GPUS = {"coming_from_gpu": None, "use_in_cupy": "cupy", "use_in_torch": "torch", "use_in_numba": "numba",
           "cuda_core": "cuda.core"}
NEEDED = {"arrow_columns": "pyarrow", "dask_shared": "dask", "dataloader": "torch", "random_batches": "torch",
          "scientific_libraries": "dask.array h5py jax pyarrow xarray zarr", "zarr_region": "zarr"}
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
# Tabs of the how-tos, which get the file data.txt, and the pages of the cookbook.
TASKS = sorted([*(DOC / "examples/howto").glob("*.py"), *(EXAMPLES / "cookbook").glob("*.py")])
UNDER_MPI = {"ranks_memory"}  # mpi/test/python/run starts it

START = """if True:
    import ctypes, os, runpy, sys
    double = os.environ.get("UMEM_TEST_DRIVER_DOUBLE")
    if double: ctypes.CDLL(double)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def need(name):
    if name not in ON_GPUS:
        for library in NEEDED.get(name, "numpy").split():
            pytest.importorskip(library)
        return
    library = ON_GPUS[name]
    if not HAS_GPU:
        pytest.skip("needs a GPU, or the double of the driver")
    if library:
        if not os.environ.get("UMEM_TEST_GPU"):
            pytest.skip("needs a GPU: set UMEM_TEST_GPU")
        pytest.importorskip(library)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_the_page_shows(name, tmp_path):
    need(name)
    done = subprocess.run([sys.executable, "-c", START, EXAMPLES / f"{name}.py"], capture_output=True, text=True,
                          timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (EXAMPLES / f"{name}.out").read_text()


@pytest.mark.parametrize("program", [path for path in TASKS if path.stem not in UNDER_MPI], ids=lambda path: path.stem)
def test_a_task_prints_what_the_page_shows(program, tmp_path):
    """Where its messages differ from those of the program in C or C++, they are in a file of its own."""
    need(program.stem)
    own = program.with_suffix(".py.out")
    expected = own if own.exists() else program.with_suffix(".out")
    done = subprocess.run([sys.executable, program, DOC / "examples/howto/data.txt"], capture_output=True, text=True,
                          timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected.read_text()


class OneFile(BaseHTTPRequestHandler):
    """Answers each request with the range of the server's bytes that it asks for."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        whole, range_ = self.server.bytes, re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first, last = (int(range_[1]), min(int(range_[2] or len(whole)), len(whole) - 1)) if range_ else (0, len(whole) - 1)
        self.send_response(206 if range_ else 200)
        self.send_header("ETag", '"one"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(last + 1 - first))
        if range_:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(whole[first:last + 1])

    def log_message(self, *_):
        self.server.requests += 1


@pytest.mark.parametrize("name", ["http://127.0.0.1:{}/samples.bin", "s3://bucket/samples.bin#endpoint=http://127.0.0.1:{}"],
                         ids=["a web server", "a bucket"])
def test_the_training_reads_its_samples_from(name, tmp_path):
    pytest.importorskip("numpy")
    program = DOC / "examples/howto/train_from_bucket.py"
    subprocess.run([sys.executable, program], check=True, timeout=60, cwd=tmp_path, capture_output=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), OneFile)
    server.bytes, server.requests = (tmp_path / "samples.bin").read_bytes(), 0
    os.unlink(tmp_path / "samples.bin")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        try:
            umem.Url(f"http://127.0.0.1:{server.server_port}/samples.bin").close()
        except umem.NotSupportedError as error:
            pytest.skip(str(error))
        environment = {"SAMPLES": name.format(server.server_port), "no_proxy": "127.0.0.1", "AWS_ACCESS_KEY_ID": "key",
                       "AWS_SECRET_ACCESS_KEY": "secret"}
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, cwd=tmp_path,
                              env={**os.environ, **environment})
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert done.stdout == program.with_suffix(".py.out").read_text(), done.stderr
    assert server.requests > 3


def test_each_task_is_on_a_page():
    pages = "".join(page.read_text() for page in [*(DOC / "howto").glob("*.rst"), DOC / "python/cookbook.rst"])
    assert [task.name for task in TASKS if f"/{task.parent.name}/{task.name}" not in pages] == []


def test_the_tables_show_lines_of_programs():
    page = (DOC / "python/coming-from.rst").read_text()
    lines = "\n".join((EXAMPLES / f"coming_from_{name}.py").read_text() for name in ("numpy", "gpu")).splitlines()
    rows = re.findall(r"^   \* - (.+)\n     - (.+)$", page, re.M)
    rows = [row for row in rows if row[0].startswith("``")]
    assert len(rows) > 30
    for _, here in rows:
        for code in re.findall(r"``(.+?)``", here):
            assert any(line.strip() == code for line in lines), f"no program runs: {code}"


def test_the_reference_is_that_of_the_docstrings():
    spec = importlib.util.spec_from_file_location("reference", DOC / "python/reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    written = {str(page.relative_to(DOC / "python")): page.read_text()
               for page in [DOC / "python/reference.rst", *(DOC / "python/reference").glob("*.rst")]}
    assert reference.pages() == written, "the docstrings have changed: run doc/python/reference.py"
