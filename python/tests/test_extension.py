"""Functions of C++ that take and return arrays and places: umem/with/nanobind.hpp and umem/with/pybind11.hpp."""
import array
import gc
import importlib
import os
import shutil
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

import umem

numpy = pytest.importorskip("numpy")
FOLDER = Path(__file__).with_name("extension")
LIBRARIES = {"in_nanobind": "nanobind", "in_pybind11": "pybind11"}


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of the modules. UMEM_TEST_EXTENSIONS names one; else it is built with the headers of the package."""
    if given := os.environ.get("UMEM_TEST_EXTENSIONS"):
        return Path(given)
    for module in LIBRARIES.values():
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("extensions")
    run(*configure(FOLDER, folder))
    run(cmake(), "--build", folder)
    return folder


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cmake():
    return shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def configure(project, folder):
    """The command with which CMake makes the folder a build of the project for the package of this Python."""
    if not cmake() or not shutil.which("c++"):
        pytest.skip("needs cmake and a compiler of C++")
    root = run(sys.executable, "-m", "umem", "--cmake-dir").strip()
    return [cmake(), "-S", project, "-B", folder, f"-Dumem_ROOT={root}", f"-DPython_EXECUTABLE={sys.executable}",
            "-DCMAKE_BUILD_TYPE=Debug"]


@pytest.fixture(params=LIBRARIES)
def m(request, built):
    if str(built) not in sys.path:
        sys.path.insert(0, str(built))
    return importlib.import_module(request.param)


def raises(*words):
    """The TypeError of a call that no function takes: its message has these words."""
    return pytest.raises(TypeError, match="(?s)" + ".*".join(words))


def has_offsets(place):
    """Whether addresses are offsets in a file."""
    return place.kind == "file" or place.upstream is not None and has_offsets(place.upstream)


# ---- views ----


def test_a_view_is_the_memory_of_the_array(m):
    x = umem.asarray([1.0, 2.0, 3.0])
    assert m.sum(x) == 6
    m.scale(x, 2)
    assert x.tolist() == [2, 4, 6] and m.sum(x=x) == 12


def test_a_view_has_the_strides_of_the_array(m):
    x = umem.arange(10, dtype="float64")
    assert m.sum(x[::3]) == 18 and m.sum(x[::-2]) == 25 and m.sum(x[4:4]) == 0
    m.scale(x[1::2], 10)
    assert x.tolist() == [0, 10, 2, 30, 4, 50, 6, 70, 8, 90]


def test_a_view_is_of_any_place_that_the_cpu_can_use(m, place):
    x = umem.full(3, 1.5, place=place)
    if not x._is_host or has_offsets(place):
        with raises("CPU has no pointers", r"array.to\(umem.host\(\)\)"):
            m.sum(x)
    else:
        assert m.sum(x) == 4.5
        m.scale(x, 2)
        assert x.tolist() == [3, 3, 3]


@pytest.mark.parametrize("make", [
    lambda: numpy.array([1.0, 2.0]),
    lambda: numpy.array([[1.0, 2.0], [3, 4]]).T[0, :] - [0, 1],
    lambda: array.array("d", [1, 2]),
    lambda: memoryview(array.array("d", [1, 2])),
    lambda: memoryview(array.array("d", [1, 2]).tobytes()).cast("d"),
])
def test_a_view_is_of_objects_of_other_libraries(m, make):
    assert m.sum(make()) == 3


def test_a_view_is_of_a_tensor_of_dlpack(m):
    class Tensor:
        def __init__(self, of):
            self.of = of

        def __dlpack__(self, **options):
            return self.of.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.of.__dlpack_device__()

    x = numpy.array([1.0, 2.0])
    m.scale(Tensor(x), 3)
    assert x.tolist() == [3, 6]


def test_elements_of_numpy_are_written(m):
    x = numpy.arange(4.0)
    m.scale(x[::2], 10)
    assert x.tolist() == [0, 1, 20, 3]


def test_no_user_is_left_after_the_call(m):
    x, raw = umem.zeros(3), numpy.zeros(3)
    buffer = bytearray(24)
    before = sys.getrefcount(raw)
    for _ in range(3):
        m.sum(x), m.sum(raw), m.sum(memoryview(buffer).cast("d"))
        with pytest.raises(TypeError):
            m.increment(raw)
    assert sys.getrefcount(raw) == before
    buffer.append(0)  # which a buffer in use forbids
    x.release()


def test_layouts(m):
    x = umem.asarray(numpy.arange(6.0).reshape(2, 3))
    assert [f(x) for f in (m.corner, m.corner_c, m.corner_rows, m.corner_3)] == [3, 3, 3, 3]
    assert m.corner_f(x.T.copy().T) == m.corner(x) and m.corner_f(x.T) == 2
    with raises("order='C'", r"array.copy\(\)"):
        m.corner_c(x.T)
    with raises("Fortran's order", r"array.T.copy\(\).T"):
        m.corner_f(x)
    with raises("strides='fixed'"):
        m.corner_rows(x[:, ::2])
    assert m.corner_rows(x[:, 1:]) == 4
    with raises("order='C'"):
        m.corner_3(x[:, 1:])


@pytest.mark.parametrize("wrong, words", [
    (lambda: umem.zeros(3, "float32"), ["view of float64 with 1 dimension", "Array of float32, shape .3,.", r"astype\('float64'\)"]),
    (lambda: numpy.zeros(3, "int64"), ["ndarray of int64", r"astype\('float64'\)"]),
    (lambda: umem.zeros((3, 1)), ["1 dimension", r"shape \(3, 1\)", "reshape"]),
])
def test_a_view_of_other_elements(m, wrong, words):
    with raises("x of sum", *words):
        m.sum(wrong())
    with raises("x of scale", *words[1:]):
        m.scale(wrong(), 2)


@pytest.mark.parametrize("wrong", [3, "text", None, [1.0, 2.0], numpy.zeros])
def test_what_is_no_array(m, wrong):
    with raises("incompatible function arguments", "x: ", "float64"):
        m.sum(wrong)


def test_a_view_to_write_needs_memory_to_write(m):
    fixed = numpy.zeros(2)
    fixed.flags.writeable = False
    x = umem.zeros(2)
    x.read_only = True
    for read_only in (fixed, x, memoryview(bytes(16)).cast("d")):
        assert m.sum(read_only) == 0
        with raises("view to write", "read-only", r"array.copy\(\)"):
            m.scale(read_only, 2)


def test_elements_of_other_byte_orders_and_structs(m):
    for wrong in (numpy.zeros(2, ">f8"), numpy.zeros(2, [("x", "f8")])):
        with pytest.raises((TypeError, BufferError)):
            m.sum(wrong)


def test_elements_that_are_not_aligned(m):
    raw = numpy.frombuffer(bytes(17), "u1")[1:].view("f8")
    with raises("aligned", r"array.copy\(\)"):
        m.sum(raw)


def test_functions_of_one_name(m):
    one, two = umem.zeros(2, "int64"), umem.zeros(2, "int32")
    for a in (2, 2.0):
        assert m.axpy(a, one, one) == 8 and m.axpy(a, two, two) == 4
        assert m.axpy(a, numpy.zeros(1, "int64"), one) == 8
    with raises("incompatible function arguments", "int32"):
        m.axpy(2, one, two)
    with raises("x of axpy", "float32", r"pass array.astype\('int64'\)"):
        m.axpy(2, umem.zeros(2, "float32"), one)


def test_views_in_containers(m):
    one = numpy.array([1.0, 2.0])
    assert m.sum_all([umem.asarray([1.0]), one, array.array("d", [4])]) == 8
    assert m.sum_all([]) == 0 and m.sum_or() == -1 and m.sum_or(None) == -1 and m.sum_or(one) == 3
    with pytest.raises(TypeError):
        m.sum_all([one, umem.zeros((1, 1))])
    buffer = bytearray(16)
    assert m.sum_all([memoryview(buffer).cast("d")]) == 0
    buffer.append(1)


def test_an_array_that_was_released_or_locked(m):
    x = umem.zeros(2)
    with x.lock() as locked:
        with pytest.raises(umem.RuntimeError, match="locked"):
            m.sum(x)
        assert m.sum(locked) == 0
    x.release()
    with pytest.raises(umem.ValueError, match="released"):
        m.sum(x)


def test_releases_wait_for_the_call(m):
    """With the GIL given up, another thread releases the memory meanwhile."""
    def race(x):
        try:
            m.scale_unlocked(x, 1.0)
        except ValueError as error:
            assert "released" in str(error)

    for _ in range(50):
        x = umem.full(20000, 1.0)
        threads = [threading.Thread(target=race, args=(x,)), threading.Thread(target=x.release)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


# ---- arrays ----


def test_an_array_of_any_place(m, place):
    x = umem.zeros(100, "int32", place)
    m.increment(x)
    assert umem.all_equal(x, umem.full(100, 1, "int32"))


def test_an_array_shares_the_memory_after_the_call(m):
    x = umem.asarray([1.0, 2.0])
    keeper = m.Keeper(x)
    x[0] = 5
    assert keeper.get(0) == 5
    with pytest.raises(umem.NotSupportedError, match="another library may use"):
        x.release()
    place = weakref.ref(x)
    del x
    assert place() is None and keeper.get(1) == 2
    keeper.drop_in_thread()


def test_the_memory_can_be_released_when_cxx_has_dropped_it(m):
    x = umem.asarray([1.0, 2.0])
    keeper = m.Keeper(x)
    keeper.drop_in_thread()
    x.release()


def test_cxx_keeps_the_place_of_an_array(m, tmp_path):
    with umem.File(tmp_path / "a", "w+") as place:
        keeper = m.Keeper(umem.full(3, 7.0, place=place))
    del place
    assert keeper.get(2) == 7
    keeper.drop_in_thread()


def test_an_array_of_numpy_is_shared(m):
    raw = numpy.arange(3.0)
    keeper = m.Keeper(raw)
    raw[1] = 8
    assert keeper.get(1) == 8
    before = weakref.ref(raw)
    del raw
    assert before() is not None and keeper.get(2) == 2
    keeper.drop_in_thread()
    gc.collect()
    assert before() is None


def test_a_const_array_is_of_read_only_memory(m):
    x = umem.asarray([4.0, 5.0])
    x.read_only = True
    assert m.first(x) == 4 and m.first(memoryview(bytes(16)).cast("d")) == 0
    with raises("may write", r"array.copy\(\)"):
        m.same(x)


def test_an_array_has_no_gaps(m):
    with raises("gaps", r"array.copy\(\)"):
        m.same(umem.zeros(6)[::2])


def test_the_memory_goes_there_and_back(m):
    x = umem.asarray([1.0, 2.0])
    y = m.same(x)
    assert y.address == x.address and y.place is x.place and y is not x
    y[1] = 9
    assert x.tolist() == [1, 9]
    del x
    gc.collect()
    assert y.tolist() == [1, 9]


def test_an_array_comes_with_its_place(m, place):
    x = m.ones(2, 3, place)
    assert x.shape == (2, 3) and x.dtype == umem.dtype("float64") and umem.all_equal(x, umem.ones((2, 3)))
    if place.kind != "host":
        assert x.place is place
    numbers = m.count(5, place)
    assert numbers.tolist() == [0, 1, 2, 3, 4]  # written on the host side


def test_a_place_of_cxx_is_one_object(m):
    one, two = m.two()
    assert one.place is two.place and one.place.kind == "stats"
    place, address = one.place, one.address
    del one, two
    gc.collect()
    assert place.closed is False and umem.zeros(3, place=place).tolist() == [0, 0, 0] and address


def test_an_array_outlives_its_place_of_cxx(m):
    one, two = m.two()
    del two
    gc.collect()
    assert one.tolist() == [[1, 1]]


def test_a_place_by_its_name(m, tmp_path):
    x = m.ones(1, 2, f"file:{tmp_path / 'a'}?mode=w+")
    assert x.place.kind == "file" and x.tolist() == [[1, 1]]
    assert m.name("host:") == "Host"
    assert m.ones(1, 1, "stats+host:").place.kind == "stats"


def test_a_read_only_array(m):
    x = m.constants()
    assert x.read_only and x.tolist() == [2.5] * 3
    with pytest.raises(umem.NotSupportedError):
        x[0] = 1
    with pytest.raises(umem.Error):
        x.read_only = False


def test_an_empty_array(m):
    with pytest.raises(umem.ValueError, match="empty umem::Array"):
        m.nothing()
    assert m.ones(0, 3, "host:").shape == (0, 3) and m.sum(umem.zeros(0)) == 0


def test_the_default_place_is_that_of_python(m, tmp_path):
    assert m.on_default().place.kind == "host"
    place = umem.Stats(umem.Host())
    umem.set_default(place)
    try:
        x = m.on_default()
    finally:
        umem.set_default(None)
    assert x.place is place and x.shape == (2, 3, 4)
    del place
    gc.collect()
    assert x.sum() == 0


def test_fortran_order(m):
    x = m.in_fortran_order()
    assert x.shape == (2, 3) and x.strides == (4, 8)


# ---- objects that own arrays ----


def test_a_reference_is_shared_and_keeps_the_object(m):
    keeper = m.Keeper(umem.asarray([1.0, 2.0]))
    inside, copy = keeper.array(), keeper.copy()
    inside[0] = 6
    copy[1] = 7
    assert inside.tolist() == [6, 2] and copy.tolist() == [1, 7]
    del keeper
    gc.collect()
    assert inside.tolist() == [6, 2]


def test_a_view_as_a_result(m):
    keeper = m.Keeper(umem.asarray([1.0, 2.0]))
    view, copy = keeper.view(), keeper.copy_of_view()
    view[0] = 3
    copy[1] = 4
    assert keeper.get(0) == 3 and keeper.get(1) == 2 and copy.tolist() == [1, 4]
    del keeper
    gc.collect()
    assert view.tolist() == [3, 2]


# ---- places ----


def test_a_place_goes_there_and_back(m, place):
    back = m.place(place)
    assert back is (umem.host() if place.kind == "host" else place)
    assert m.name(place)


def test_a_place_of_one_kind(m, tmp_path):
    place = umem.Stats(umem.File(tmp_path / "a", "w+"))
    assert m.file(place).kind == "file"
    with raises("file"):
        m.file(umem.Host())
    for wrong in (3, None, umem.zeros(1)):
        with raises("incompatible function arguments", "umem.Place"):
            m.place(wrong)
    with pytest.raises(umem.Error):
        m.place("no-such-kind")
    with pytest.raises(umem.ValueError, match="empty umem::Context"):
        m.empty_place()


def test_a_closed_place(m):
    place = umem.Stats(umem.Host())
    place.close()
    with pytest.raises(umem.ValueError, match="closed"):
        m.place(place)


def test_a_failure_is_that_of_the_context(m):
    place = umem.Limit(umem.Host(), "1M")
    with pytest.raises(umem.MemoryError, match="limit"):
        m.fail(place)
    assert umem.zeros(3, place=place).tolist() == [0, 0, 0]


# ---- blocks, and any elements ----


def test_blocks_come_with_their_owner(m, place):
    x = m.bytes(5)
    assert x.dtype == umem.dtype("uint8") and x.tolist() == [0] * 5
    y = m.three(place)
    assert y.tolist() == [1, 2, 3] and (y.place is place or place.kind == "host")


def test_elements_of_any_type(m):
    assert m.describe(umem.zeros((2, 3), "int16")) == "int16 of rank 2"
    assert m.describe(numpy.zeros(1, "complex64")) == "complex64 of rank 1"


# ---- the module itself ----


def test_signatures_say_what_is_expected(m):
    text = m.scale.__doc__
    assert "x: typing.Annotated[umem.Array, dict(dtype='float64', ndim=1, writable=True)]" in text
    assert "order='C'" in m.corner_c.__doc__ and "writable" not in m.sum.__doc__


def test_an_extension_exports_no_function_of_umem(built):
    for module in LIBRARIES:
        file = next(Path(built).glob(f"{module}*.so"))
        done = subprocess.run(["nm", "--dynamic", "--defined-only", file], capture_output=True, text=True, check=True)
        assert not [line for line in done.stdout.splitlines() if " umem_" in line or " umemArray" in line]


@pytest.mark.parametrize("module", LIBRARIES)
def test_an_extension_that_comes_first_brings_the_package(built, run_python, module):
    assert "host" in run_python(f"import sys; sys.path.insert(0, {str(built)!r}); import {module} as m; "
                                "print(m.ones(1, 2, 'host:').place)")


@pytest.mark.parametrize("module", LIBRARIES)
def test_without_the_package_a_call_says_so(built, run_python, module):
    out = run_python(f"""
import sys; sys.path.insert(0, {str(built)!r}); sys.modules["umem"] = None
import {module} as m
try:
    m.sum([1.0])
except ImportError as error:
    print("the error:", error)
""")
    assert "the error:" in out and "umem" in out


@pytest.mark.parametrize("module", LIBRARIES)
@pytest.mark.parametrize("load", ["import umem, M as m", "import M as m, umem", "import M as m", """
import threading, umem
def load():
    global m
    import M as m
threading.Thread(target=load).start()
while "m" not in globals(): pass"""])
def test_a_first_call_does_not_wait_for_the_gil(built, run_python, module, load):
    """The caller has it, and waits for the thread that makes the call."""
    load = load.replace("M", module)
    out = run_python(f"import sys; sys.path.insert(0, {str(built)!r})\n{load}\nprint(m.name_in_joined_thread())")
    assert out == "Stats\n"


@pytest.mark.parametrize("module", LIBRARIES)
@pytest.mark.parametrize("call, status, words", [
    ("name_in_free_thread", 0, "Stats"),
    ("name_in_joined_thread", -6, "import umem before the call"),  # the thread would wait for ever
])
def test_a_first_call_where_only_another_thread_can_import(built, run_python, module, call, status, words):
    """The main thread waits while another one loads the module and calls."""
    out = run_python(f"""
import sys, threading; sys.path.insert(0, {str(built)!r})
def work():
    import {module} as m
    print(m.{call}())
thread = threading.Thread(target=work)
thread.start()
thread.join()
""", status=status)
    assert words in out


EXAMPLE = FOLDER.parents[2] / "examples/extension"


def test_the_example_prints_what_the_page_shows(built):
    pytest.importorskip("nanobind")
    done = subprocess.run([sys.executable, EXAMPLE / "use.py"], capture_output=True, text=True, cwd=built / "example")
    assert done.returncode == 0 and done.stdout == (EXAMPLE / "use.out").read_text(), done.stderr


def test_the_example_is_a_project_by_itself(tmp_path):
    pytest.importorskip("nanobind")
    run(*configure(EXAMPLE, tmp_path))
