"""The programs of the page "Buckets and web servers", as they stand, on moto's S3."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "doc/examples/buckets"
LIBRARY = os.environ.get("UMEM_TEST_LIBRARY", "")  # libumem.a


def check(command, moto):
    moto.put("/bucket/rows.bin", b"old")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (FOLDER / "bucket.out").read_text()
    assert len(moto.get("/bucket/rows.bin")) == 48


def test_python(s3, moto):
    check([sys.executable, FOLDER / "bucket.py"], moto)


@pytest.mark.skipif(not LIBRARY, reason="UMEM_TEST_LIBRARY does not name libumem.a")
@pytest.mark.parametrize("compiler, source", [(("gcc", "-std=c11"), "bucket.c"), (("g++", "-std=c++17"), "bucket.cpp")],
                         ids=["c", "cpp"])
def test_compiled(s3, moto, tmp_path, compiler, source):
    program = tmp_path / "bucket"
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'c/include'}", f"-I{ROOT / 'cxx/include'}",
                    FOLDER / source, LIBRARY, "-lpthread", "-ldl", "-lm", "-o", program], check=True)
    check([program], moto)
