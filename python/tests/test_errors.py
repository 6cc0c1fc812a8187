"""Exceptions: their classes, attributes and messages."""
import builtins
import errno
import pickle

import pytest

import umem
from umem import _core

DOUBLES = ["MemoryError", "RuntimeError", "OSError", "ValueError", "TypeError", "IndexError", "NotImplementedError"]
STATUSES = ["MemoryError", "RuntimeError", "IOError", "ValueError", "TypeError", "IndexError", "NotImplementedError",
            "NotSupportedError", "AssertError", "CancelledError"]


@pytest.mark.parametrize("name", DOUBLES)
def test_each_is_umem_error_and_the_exception_of_python(name):
    cls = getattr(umem, name)
    assert issubclass(cls, umem.Error) and issubclass(cls, getattr(builtins, name))


@pytest.mark.parametrize("number, status", list(enumerate(STATUSES, 1)))
def test_each_status_has_its_exception(number, status):
    with pytest.raises(umem.Error, match="the message") as caught:
        _core._raise(number, "the message")
    assert caught.value.status == status
    assert str(caught.value) == "the message"


def test_no_support_is_a_buffer_error_and_a_runtime_error():
    assert issubclass(umem.NotSupportedError, (BufferError, RuntimeError))
    assert issubclass(umem.NotSupportedError, BufferError)


def test_an_os_error_has_errno_and_filename(tmp_path):
    path = tmp_path / "nowhere" / "a.bin"
    with pytest.raises(OSError) as caught:
        umem.File(path, "r")
    error = caught.value
    assert isinstance(error, umem.OSError) and error.status == "IOError"
    assert (error.errno, error.filename) == (errno.ENOENT, str(path))
    assert "cannot open" in str(error)


def test_an_os_error_without_a_number_keeps_its_message(tmp_path):
    with pytest.raises(umem.OSError, match="directory") as caught:
        umem.File(tmp_path, "r")
    assert caught.value.filename == str(tmp_path)


def test_messages_are_those_of_the_library():
    limit = umem.Limit(umem.Host(), 100)
    with pytest.raises(MemoryError, match="of the 100 that the limit allows"):
        umem.empty(1000, place=limit)


def test_a_failure_is_raised_once():
    limit = umem.Limit(umem.Host(), 100)
    with pytest.raises(umem.MemoryError):
        umem.empty(1000, place=limit)
    assert umem.empty(4, place=limit).shape == (4,)
    limit.synchronize()


def test_names_in_other_encodings_survive(tmp_path):
    path = tmp_path / "\udcff\u00e4" / "x"
    with pytest.raises(umem.OSError) as caught:
        umem.File(path, "r")
    assert caught.value.filename == str(path)


def test_exceptions_can_be_pickled():
    with pytest.raises(umem.ValueError) as caught:
        umem.zeros(-1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is umem.ValueError and str(again) == str(caught.value)


@pytest.mark.parametrize("make", [umem.Cuda, umem.CudaHost, umem.CudaManaged, umem.CudaAsync])
def test_gpus_that_are_not_there_say_why(make):
    try:
        make().close()
    except umem.NotSupportedError as error:
        assert len(str(error)) > 20
    else:
        pytest.skip("there is a GPU")
