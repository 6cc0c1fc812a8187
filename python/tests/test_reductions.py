"""Reductions on every place, beside NumPy."""
import importlib.util
import math
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import umem
from umem import reductions

numpy = pytest.importorskip("numpy")
some = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
few = settings(some, max_examples=12)

NAMES = ["sum", "mean", "min", "max", "argmin", "argmax", "any", "all", "count_nonzero", "std", "var"]
TYPES = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex128", ">f4", "m8[s]"]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """All arrays of these tests have several pieces."""
    monkeypatch.setattr(reductions, "_PIECE", 64)
    monkeypatch.setattr(reductions, "_CACHED_PIECE", 64)


@st.composite
def cases(draw):
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=0, max_size=4)))
    dtype = draw(st.sampled_from(TYPES))
    count = int(numpy.prod(shape))
    values = numpy.array(draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count)))
    values = values.astype("int64" if dtype[0] == "m" else "float64").astype(dtype).reshape(shape)
    if values.dtype.kind in "fc" and count and draw(st.booleans()):
        values.flat[draw(st.integers(0, count - 1))] = numpy.nan
    name = draw(st.sampled_from([name for name in NAMES if name not in ("std", "var", "any", "all") or dtype[0] != "m"]))
    axes = st.sampled_from(range(-len(shape), len(shape))) if shape else st.none()
    axis = draw(st.one_of(st.none(), axes))
    if axis is not None and not name.startswith("arg") and draw(st.booleans()):
        axis = tuple({one % len(shape) for one in (axis, draw(axes))})
    flip = draw(st.booleans())
    return values.T if flip else values, name, axis, draw(st.booleans()), flip


def expected_of(values, name, axis, keepdims):
    function = getattr(numpy, name)
    with numpy.errstate(all="ignore"):
        return function(values, axis=axis, keepdims=keepdims)


def is_of_gpu(place):
    return place.capabilities & umem.places.DEVICE_ACCESSIBLE and not place.capabilities & umem.places.CPU_READABLE


def skip_if_nothing_reduces(place):
    """Where the CPU does not read the memory of a GPU, and no library does."""
    if is_of_gpu(place) and not any(importlib.util.find_spec(name) for name in ("cupy", "torch")):
        pytest.skip("neither CuPy nor PyTorch is installed")


def check(case, place):
    values, name, axis, keepdims, flip = case
    array = umem.asarray(values.T if flip else values, place=place, copy=True)
    array = array.T if flip else array
    if is_of_gpu(place) and (values.dtype.kind == "m" or not values.dtype.isnative):
        with pytest.raises(TypeError, match="computes on the CPU"):
            getattr(array, name)(axis=axis, keepdims=keepdims)
        return
    with numpy.errstate(all="ignore"):
        found = getattr(array, name)(axis=axis, keepdims=keepdims)
    expected = expected_of(values, name, axis, keepdims)
    assert numpy.shape(found) == numpy.shape(expected)
    assert numpy.asarray(found).dtype == numpy.asarray(expected).dtype
    if numpy.asarray(expected).dtype.kind in "fc":
        wide = 2e-3 if values.dtype.itemsize == 2 else 1e-5 if values.dtype.itemsize == 4 else 1e-12
        assert numpy.allclose(found, expected, rtol=wide, atol=wide, equal_nan=True), (found, expected)
    else:
        assert numpy.array_equal(found, expected), (found, expected)


@some
@given(cases())
def test_a_file_is_reduced_as_by_numpy(case):
    check(case, umem.File())


@st.composite
def plain_cases(draw):
    """Numbers of all sizes, with those at the ends of their range, and a type for the result."""
    dtype = numpy.dtype(draw(st.sampled_from("? i1 i2 i4 i8 u1 u2 u4 u8 f4 f8".split())))
    count = draw(st.integers(9, 300))
    rng = numpy.random.default_rng(draw(st.integers(0, 1 << 30)))
    if dtype.kind == "f":
        values = rng.standard_normal(count).astype(dtype)
        values[rng.integers(0, count, 2)] = draw(st.sampled_from([0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1e30]))
        values[rng.integers(0, count)] = draw(st.sampled_from([1.0, numpy.inf, numpy.nan]))
    else:
        values = numpy.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
        if dtype.kind != "b" and draw(st.booleans()):
            values[rng.integers(0, count, 3)] = draw(st.sampled_from([numpy.iinfo(dtype).min, numpy.iinfo(dtype).max, 0]))
        if dtype.kind == "b":
            values = rng.integers(0, draw(st.integers(1, 2)), count).astype(bool)
            if draw(st.booleans()):  # other bytes than 0 and 1 are true, too
                values = rng.choice(numpy.array([0, 0, 1, 2, 255], "u1"), count).view(bool)
    if draw(st.booleans()):
        values[:] = values[0]
    name = draw(st.sampled_from(NAMES))
    wants = name in ("sum", "mean", "std", "var") and draw(st.booleans())
    types = ["f8", "f4", "i8", "i4", "u8"] if name == "sum" else ["f8", "f4"]
    return values, name, {"dtype": draw(st.sampled_from(types))} if wants else {}


@settings(some, max_examples=600)
@given(plain_cases(), st.booleans())
def test_plain_numbers_of_a_file_are_reduced_as_by_numpy(case, in_ram):
    values, name, options = case
    array = umem.asarray(values, place=umem.host() if in_ram else umem.File(), copy=True)
    with numpy.errstate(all="ignore"):
        try:
            expected = getattr(values, name)(**options)
        except AttributeError:
            expected = numpy.intp(numpy.count_nonzero(values))
        found = getattr(array, name)(**options)
    assert type(found) is type(expected), (found, expected)
    if expected.dtype.kind != "f":
        assert found == expected
        return
    finite = values[numpy.isfinite(values)].astype("f8")
    size = abs(finite).sum() if name == "sum" else abs(finite).max(initial=0)
    size = size ** 2 if name == "var" else size
    wide = {2: 1e-2, 4: 1e-5, 8: 1e-12}[expected.dtype.itemsize]
    overflows = expected.dtype == "f4" and name in ("std", "var") and numpy.isinf(expected)  # of float32: not here
    assert overflows or numpy.allclose(found, expected, rtol=wide, atol=wide * size, equal_nan=True), (found, expected)


def test_the_sum_of_a_file_is_as_exact_as_that_of_numpy():
    """Numbers of 32 bits are added in 64; those of 64 bits in pairs, and the results of pieces, too."""
    for dtype, steps in ("f4", 1), ("f8", 8):
        values = numpy.full(100_001, 0.1, dtype)
        file = umem.asarray(values, place=umem.File(), copy=True)
        exact = math.fsum(values.tolist())
        assert abs(float(file.sum()) - exact) <= steps * numpy.spacing(numpy.dtype(dtype).type(exact))


@pytest.mark.parametrize("name, values, category", [
    ("sum", [1.7e308] * 30, "overflow"), ("mean", [numpy.inf, -numpy.inf] * 30, "invalid"), ("std", [numpy.inf, 1.0] * 30, "invalid")])
def test_a_file_warns_as_numpy(name, values, category):
    file = umem.asarray(numpy.array(values), place=umem.File(), copy=True)
    with pytest.warns(RuntimeWarning, match=category):
        getattr(file, name)()
    with numpy.errstate(all="raise"), pytest.raises(FloatingPointError, match=category):
        getattr(file, name)()
    with numpy.errstate(all="ignore"):
        getattr(file, name)()


@pytest.mark.filterwarnings("error")
def test_nan_does_not_warn():
    file = umem.asarray(numpy.array([1.0, numpy.nan, 3.0] * 30), place=umem.File(), copy=True)
    for name in NAMES:
        getattr(file, name)()


def test_every_place_is_reduced_as_by_numpy(place):
    skip_if_nothing_reduces(place)
    few(given(cases())(lambda case: check(case, place)))()


def test_the_functions_of_numpy_reduce_in_pieces(monkeypatch):
    array = umem.asarray(numpy.arange(60.0).reshape(5, 12), place=umem.File(), copy=True)
    monkeypatch.setattr(umem.exchange, "array_protocol", lambda *arguments: pytest.fail("a copy of all"))
    for name in NAMES:
        if name != "count_nonzero":
            assert numpy.allclose(getattr(numpy, name)(array, axis=1), getattr(numpy, name)(
                numpy.arange(60.0).reshape(5, 12), axis=1))


def test_a_result_goes_where_out_says(place):
    skip_if_nothing_reduces(place)
    array = umem.asarray(numpy.arange(60.0).reshape(5, 12), place=place, copy=True)
    out, theirs = umem.zeros(12, "float32", place), numpy.zeros(5)
    assert array.sum(axis=0, out=out) is out and out.tolist() == numpy.arange(60).reshape(5, 12).sum(axis=0).tolist()
    assert array.mean(axis=1, out=theirs) is theirs and theirs[0] == 5.5
    with pytest.raises(umem.ValueError, match="out has shape"):
        array.sum(axis=1, out=out)


def test_the_type_of_a_sum_can_be_named():
    for place in (umem.host(), umem.File()):
        array = umem.full(1000, 100, "int8", place)
        assert array.sum().dtype == "int64" and array.sum() == 100000
        assert array.sum(dtype="int8") == numpy.full(1000, 100, "int8").sum(dtype="int8")
        assert array.mean(dtype="float32").dtype == "float32"


def test_what_cannot_be_reduced():
    file = umem.asarray(numpy.arange(60.0), place=umem.File(), copy=True)
    with pytest.raises(numpy.exceptions.AxisError):
        file.sum(axis=1)
    with pytest.raises(ValueError, match="twice"):
        file.reshape(6, 10).sum(axis=(0, 0))
    with pytest.raises(ValueError):
        umem.zeros(0, place=umem.File()).min()
    assert umem.zeros(0, place=umem.File()).sum() == 0
    with pytest.raises(umem.TypeError, match="no argument 'where'"):
        file.sum(where=True)
    assert umem.arange(4).sum(where=[True, False, True, False], initial=5) == 7
    with pytest.raises(TypeError):
        umem.zeros(3, "U3", umem.File()).mean()


def test_no_copy_of_all_is_made(monkeypatch):
    monkeypatch.setattr(reductions, "_PIECE", 1 << 17)  # each of two threads has some
    monkeypatch.setattr(reductions, "_MOST_THREADS", 2)
    for place in (umem.host(), umem.File()):
        array = umem.full(1 << 21, 2.0, "float64", place)
        for name in NAMES:
            tracemalloc.start()
            getattr(array, name)()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 1 << 20, (name, peak)  # NumPy's arrays: the one here has 16 MiB


def test_a_file_larger_than_the_budget_is_summed_within_it(run_python):
    """A sparse file of 512 MiB: the pieces take at most 64 MiB."""
    out = run_python("""
import resource, umem
file = umem.zeros(1 << 26, "float64", umem.File())
file[:8].sum()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert file.sum() == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
""")
    assert int(out) < 80 << 10  # KiB


def test_the_first_of_equal_elements_is_found():
    values = numpy.zeros((40, 9))
    values[7, 3] = values[7, 5] = values[30, 0] = 1
    file = umem.asarray(values, place=umem.File(), copy=True)
    assert file.argmax() == 7 * 9 + 3 and file.T.argmax() == values.T.argmax() and file.argmin() == 0
    values[20, 1] = values[30, 2] = numpy.nan
    file[...] = values
    assert file.argmax() == file.argmin() == 181


# ---- threads ----

@pytest.fixture
def set_threads():
    yield umem.set_threads
    umem.set_threads()


def test_the_number_of_threads_changes_no_bit(set_threads, place):
    skip_if_nothing_reduces(place)
    values = numpy.random.default_rng(1).standard_normal((70, 11)).astype("float32")
    array = umem.asarray(values, place=place, copy=True)
    cases = [(name, axis) for name in NAMES for axis in (0, 1, None)]
    found = []
    for threads in (1, 2, 5):
        set_threads(threads)
        found.append([numpy.asarray(getattr(array, name)(axis=axis)).tobytes() for name, axis in cases])
    assert found[0] == found[1] == found[2]


def test_several_threads_reduce(set_threads):
    """Each waits for the others: with fewer the barrier breaks."""
    array = umem.asarray(numpy.arange(60.0), place=umem.File(), copy=True)
    for threads in (1, 3):
        set_threads(threads)
        barrier, seen = threading.Barrier(threads), set()

        def meet(key, part):
            seen.add(threading.get_ident())
            if key[0].start < 8 * threads:
                barrier.wait(30)
            return part.sum()

        assert sum(found for _, found in reductions.each(array, meet)) == 1770
        assert len(seen) == threads and threading.get_ident() in seen


def test_python_ends_with_results_that_nobody_takes(tmp_path):
    program = """if True:
        import umem, umem.reductions as reductions
        umem.set_threads(3)
        reductions._PIECE = 1 << 12
        a = umem.zeros(1 << 17, "u1", umem.File("x.bin", "w+"))
        pieces = reductions.each(a, lambda key, part: part.sum())
        print(next(pieces)[1])"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "0\n"), ended.stderr


def test_few_results_wait_for_the_caller(set_threads):
    """And the threads go on when it takes them; one that takes no more of them ends all."""
    set_threads(3)
    array = umem.asarray(numpy.arange(8000.0), place=umem.File(), copy=True)
    begun, changed = [], threading.Condition()

    def count(key, part):
        with changed:
            begun.append(key)
            changed.notify()
        return part.sum()

    results = reductions.each(array, count)
    for number in range(5):
        next(results)
        with changed:
            assert changed.wait_for(lambda: len(begun) >= number + 12, 30)
        time.sleep(0.01)
        assert len(begun) <= number + 13
    results.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "umem-reduce"]
    assert len(begun) < 20


@pytest.mark.parametrize("stop, error", [(lambda: 1 // 0, ZeroDivisionError),
                                         (lambda: signal.raise_signal(signal.SIGINT), KeyboardInterrupt)])
def test_a_failure_and_an_interrupt_end_the_reduction(set_threads, stop, error):
    set_threads(3)
    array = umem.asarray(numpy.arange(800.0), place=umem.File(), copy=True)
    begun = []

    def fail(key, part):
        begun.append(key)
        if key[0].start == 16:
            stop()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have ignored
    try:
        with pytest.raises(error):
            list(reductions.each(array, fail))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(begun) < 20  # of 100 pieces


@pytest.mark.parametrize("threads", [1, 3])
def test_a_signal_ends_a_reduction_without_the_gil(set_threads, monkeypatch, threads):
    monkeypatch.setattr(reductions, "_CACHED_PIECE", 1 << 10)
    set_threads(threads)
    file = umem.zeros(1 << 30, "uint8", umem.File())  # sparse

    def stop(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            file.sum()
        assert time.monotonic() - begin < 0.4
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_any_and_all_end_when_the_answer_is_there(set_threads):
    set_threads(2)
    file = umem.zeros(1 << 20, "uint8", umem.File())
    file[3] = 1
    umem.ledger.clear()
    with umem.ledger.on():
        assert file.any() and not file.all()
    assert sum(record["calls"] for record in umem.ledger.read().values()) < 100  # of 2 * 16384
    umem.ledger.clear()


def test_a_thread_fails_as_the_caller_would(set_threads):
    set_threads(3)
    array = umem.asarray(numpy.arange(800.0), place=umem.File(), copy=True)
    array[65] = array[70] = 1e308
    with numpy.errstate(over="raise"), pytest.raises(FloatingPointError):  # of the caller
        array.sum()
    array.place.close()
    with pytest.raises(umem.Error):
        array.sum()


def test_a_thread_calls_the_error_function_of_the_caller(set_threads):
    set_threads(3)
    array = umem.asarray(numpy.arange(800.0), place=umem.File(), copy=True)
    array[65] = array[70] = 1.7e308
    called = []
    before = numpy.seterrcall(lambda kind, flag: called.append(kind))
    try:
        with numpy.errstate(over="call"):
            array.sum()
    finally:
        numpy.seterrcall(before)
    assert called == ["overflow"]


def test_the_caller_reduces_if_no_thread_can_start(set_threads, monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    set_threads(3)
    assert umem.asarray(numpy.arange(60.0), place=umem.File(), copy=True).sum() == 1770


# ---- GPUs ----

class _OnGpu:
    """As an array in the memory of a GPU."""

    def __init__(self, array):
        self._array, self._is_host = array, False
        self.place = type("Place", (), {"capabilities": umem.places.DEVICE_ACCESSIBLE})()

    def __getattr__(self, name):
        return getattr(self._array, name)


def test_on_a_gpu_cupy_reduces(monkeypatch):
    import types

    cupy = types.ModuleType("cupy")
    cupy.asarray, cupy.asnumpy = (lambda array: array._array.numpy()), numpy.asarray
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    values = numpy.arange(24.0).reshape(4, 6) % 7
    array = _OnGpu(umem.asarray(values))
    for name in NAMES:
        for axis in (None, 1):
            assert numpy.array_equal(reductions._reduce(array, name, axis, None, False), getattr(numpy, name)(values, axis=axis))
    assert reductions._reduce(array, "std", None, None, False, ddof=1) == values.std(ddof=1)


def test_no_argument_is_forgotten():
    values = numpy.arange(60.0).reshape(5, 12)
    where = values > 7
    for name in ("sum", "mean", "std", "var"):
        expected = getattr(values, name)(where=where)
        assert getattr(umem.asarray(values), name)(where=where) == expected
        for array in (_OnGpu(umem.asarray(values)), umem.asarray(values[:1, :2], place=umem.File(), copy=True)):
            with pytest.raises(umem.TypeError, match="no argument 'where'"):
                reductions._reduce(array, name, None, None, False, more={"where": where})


def test_without_cupy_and_pytorch_a_gpu_is_a_type_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(umem.TypeError, match=r"needs CuPy or PyTorch, .*numpy\(copy=True\)\.mean\(\)"):
        reductions._reduce(_OnGpu(umem.zeros(3)), "mean", None, None, False)


def test_a_sum_of_negative_zeros_is_that_of_numpy():
    zeros = numpy.full(300, -0.0)
    array = umem.asarray(zeros, place=umem.File(), copy=True)
    assert numpy.signbit(array.sum()) == numpy.signbit(zeros.sum())


def test_elements_that_a_device_may_write_are_left_to_numpy():
    """A view of bytes at an odd address, and what NumPy's way waits for."""
    raw = numpy.zeros(8 * 1000 + 1, "u1")
    array = umem.asarray(raw[1:].view("f8"))
    assert array.std() == 0 and umem._core._reduce(array, "std", True, 4096) is None


@pytest.mark.parametrize("name", ["sum", "min", "max", "any", "all", "argmin", "argmax", "count_nonzero"])
@pytest.mark.parametrize("axis", [0, -1, numpy.int8(0), 1, (0,)])
def test_one_element_has_the_axes_that_numpy_gives_it(name, axis):
    here = numpy.array(3.5)
    function = numpy.count_nonzero if name == "count_nonzero" else getattr(numpy, name)
    for array in umem.asarray(here), umem.asarray(here, place=umem.File(), copy=True):
        try:
            wanted = function(here, axis=axis)
        except (numpy.exceptions.AxisError, TypeError):  # argmin takes no tuple
            with pytest.raises((numpy.exceptions.AxisError, TypeError)):
                getattr(array, name)(axis=axis)
        else:
            assert getattr(array, name)(axis=axis) == wanted
