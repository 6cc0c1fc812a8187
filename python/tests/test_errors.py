"""Exceptions: their classes, attributes and messages."""
import builtins
import errno
import os
import pickle
from pathlib import Path

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


@pytest.mark.parametrize("use", [
    lambda path: umem.File(path, "r"), lambda path: umem.File(path, "w+"), umem.MMap, umem.load,
    lambda path: umem.save(path, umem.zeros(3)), lambda path: umem.create_npy(path, (3,)), umem.open_npy,
    lambda path: umem.memmap(path, "f8", "r", shape=(3,)), lambda path: umem.zeros(3, place=f"file:{path}?mode=r+")])
def test_a_directory_is_no_file(tmp_path, use):
    path = tmp_path / "a.npy"
    path.mkdir()
    with pytest.raises(IsADirectoryError, match="directory") as caught:
        use(path)
    assert isinstance(caught.value, umem.IsADirectoryError) and isinstance(caught.value, umem.OSError)
    assert (caught.value.errno, caught.value.filename) in ((errno.EISDIR, str(path)), (errno.EISDIR, None))
    assert [one.name for one in tmp_path.iterdir()] == ["a.npy"] and not list(path.iterdir())


def test_functions_of_files_raise_errors_of_umem(tmp_path):
    for path, kind in ((tmp_path / "nowhere" / "a.npy", umem.FileNotFoundError), (Path("/proc/a.npy"), umem.OSError)):
        with pytest.raises(kind) as caught:
            umem.create_npy(path, (3,))
        assert caught.value.errno and caught.value.filename == str(path)


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


def raised(function, *arguments, **named):
    with pytest.raises(umem.Error) as caught:
        function(*arguments, **named)
    return caught.value


def test_errors_of_files_are_those_of_open(tmp_path):
    there = tmp_path / "there"
    there.write_bytes(b"x")
    for function, arguments in ((umem.File, (tmp_path / "no", "r")), (umem.load, (tmp_path / "no",)),
                                (umem.save, (tmp_path / "no" / "x.npy", umem.zeros(3))), (umem.open, (f"file:{tmp_path}/no?mode=r",)),
                                (umem.MMap, (tmp_path / "no", "r")), (umem.Shm.remove, (f"umem-none-{os.getpid()}",))):
        error = raised(function, *arguments)
        assert type(error) is umem.FileNotFoundError and isinstance(error, FileNotFoundError), (function, error)
        assert error.errno == errno.ENOENT and error.status == "IOError"
        assert type(pickle.loads(pickle.dumps(error))) is umem.FileNotFoundError
    name = f"umem-errors-{os.getpid()}"
    with umem.Shm(name, "1M"):
        error = raised(umem.Shm, name, "1M", how="create")
        assert isinstance(error, umem.FileExistsError) and isinstance(error, FileExistsError) and error.errno == errno.EEXIST
    umem.Shm.remove(name)


@pytest.mark.skipif(os.geteuid() == 0, reason="the user may open everything")
def test_a_file_that_may_not_be_opened(tmp_path):
    (tmp_path / "x").write_bytes(b"x")
    (tmp_path / "x").chmod(0)
    error = raised(umem.File, tmp_path / "x", "r")
    assert isinstance(error, PermissionError) and isinstance(error, umem.PermissionError) and error.errno == errno.EACCES


def test_the_number_of_the_system_chooses_the_class():
    for number, name in ((errno.EACCES, "PermissionError"), (errno.EPERM, "PermissionError"), (errno.ENOTDIR, "OSError")):
        with pytest.raises(getattr(umem, name)) as caught:
            _core._raise(3, f'cannot open "x": {os.strerror(number)}')
        assert (type(caught.value).__name__, caught.value.errno, caught.value.filename) == (name, number, "x")


def test_a_full_disk_is_an_os_error_and_memory_is_memory(tmp_path, run_python):
    with umem.File(tmp_path / "x", "w+") as file:
        error = raised(umem.empty, 1 << 50, "uint8", file)
        assert isinstance(error, OSError) and not isinstance(error, MemoryError), error
        assert error.errno in (errno.ENOSPC, errno.EFBIG) and error.filename == str(tmp_path / "x")
    assert isinstance(raised(umem.empty, 1 << 50, "uint8"), MemoryError)
    assert isinstance(raised(umem.empty, 9, "uint8", umem.Limit(umem.Host(), 8)), MemoryError)
    out = run_python("import errno, resource, signal, umem\n"
                     "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
                     "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
                     "try:\n"
                     f"    umem.save({str(tmp_path / 'y.npy')!r}, umem.zeros(1000))\n"
                     "except OSError as error:\n"
                     "    print(type(error).__name__, error.errno == errno.EFBIG)\n")
    assert out == "OSError True\n" and not (tmp_path / "y.npy").exists()


def test_a_name_that_is_shown_in_part_is_no_filename(tmp_path):
    error = raised(umem.File, tmp_path / "/".join(["n" * 200] * 4), "r")
    assert error.errno == errno.ENOENT and error.filename is None


def test_wrong_modes_are_refused_where_they_are_given():
    array = umem.zeros(3)
    for function in (array.host, lambda mode: array.device(umem.Host(), mode)):
        with pytest.raises(umem.ValueError, match="known are 'r', 'w', 'rw'"):
            function("x")
    array.read_only = True
    with pytest.raises(umem.NotSupportedError, match="read-only"):
        array.host()
    with array.host("r") as found:
        assert found.tolist() == [0, 0, 0]


def test_star_imports_leave_pythons_names_alone():
    scope = {}
    exec("from umem import *", scope)
    import builtins
    assert not {name for name in scope if hasattr(builtins, name)} - {"__builtins__", "__doc__", "__name__"}
    assert umem.open and umem.OSError and scope["zeros"] is umem.zeros
