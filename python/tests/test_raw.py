"""Raw bytes of files as arrays: the cases that C, C++ and the program umem answer, too."""
import os
import sys
from pathlib import Path

import pytest

import umem

numpy = pytest.importorskip("numpy")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test/raw"))
from cases import CASES  # noqa: E402

sys.path.pop(0)
ERRORS = {umem.IndexError: "IndexError", umem.ValueError: "ValueError", umem.OSError: "IOError"}


def answer(function):
    """The bytes of an array in this machine's order, or the name of the status."""
    try:
        array = function()
    except tuple(ERRORS) as error:
        return ERRORS[type(error)]
    found = array.numpy()
    return found.astype(found.dtype.newbyteorder("=")).tobytes().hex()


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_strided_elements(case, mapped, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(case.content())
    with (umem.MMap if mapped else umem.File)(path, "r") as place:
        begin = umem.empty(case.size, "uint8", place).address if mapped else 0

        def read():
            array = umem.at(place, (begin + case.offset) % 2**64, case.shape, case.type, case.strides)
            if case.left is not None:
                os.truncate(path, case.left)
            return array.copy("host:")

        assert answer(read) == case.answer(mapped)


@pytest.mark.parametrize("case", [case for case in CASES if case.strides is None and case.left is None], ids=lambda case: case.name)
def test_memmap(case, tmp_path):
    """Which refuses what is not there before it maps the file."""
    path = tmp_path / "x"
    path.write_bytes(case.content())
    found = answer(lambda: umem.memmap(path, case.type, "r", case.offset, case.shape))
    assert found == ("ValueError" if case.answers or case.offset > case.size else case.elements().hex())
