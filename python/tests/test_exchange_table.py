"""DLPack's exchange table: as extensions use that of umem.Array, and as umem uses tables of others, hostile ones too."""
import gc
import sys
import threading
import weakref

import pytest
from conftest import DOUBLE, HAS_GPU, TYPES
from exchange_extension import build

import umem

numpy = pytest.importorskip("numpy")
CPU, CUDA, MANAGED = 1, 2, 13
PADDED, READ_ONLY = 4, 1


@pytest.fixture(scope="session")
def extension(tmp_path_factory):
    module = build(tmp_path_factory.mktemp("exchange"))
    return module or pytest.skip("no C++ compiler, or no Python.h")


class Versioned:
    """What numpy.from_dlpack takes: an object with a capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return CPU, 0


# ---- the table of umem.Array ----

@pytest.mark.parametrize("dtype", TYPES)
def test_a_table_describes_arrays_of_every_type(extension, dtype):
    array = umem.zeros((5, 8), dtype)[1:, ::-2]
    plain = numpy.zeros(1, dtype)
    kind = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}[plain.dtype.kind]
    expected = array.address, (CPU, 0), (kind, 8 * plain.itemsize, 1), (4, 4), (8, -2)
    assert extension.describe(array) == expected
    found, flags, minor, capsule = extension.export_tensor(array)
    assert (found, flags) == (expected, 0) and minor >= 3
    there = numpy.from_dlpack(Versioned(capsule))
    del array, capsule
    gc.collect()
    assert there.shape == (4, 4) and not there.any()


def test_a_table_describes_arrays_of_every_form(extension):
    for shape in ((), (0,), (3, 0), (1, 1), (2,) * 20):
        array = umem.zeros(shape, "int16")
        assert extension.describe(array)[3] == extension.export_tensor(array)[0][3] == shape
        assert len(extension.describe(array)[4]) == len(shape)


def test_the_table_is_that_of_the_class():
    class Mine(umem.Array):
        __slots__ = ()

    assert Mine.__dlpack_c_exchange_api__ is umem.Array.__dlpack_c_exchange_api__
    assert "dlpack_exchange_api" in repr(umem.Array.__dlpack_c_exchange_api__)


def test_described_memory_lives_as_long_as_its_array(extension, tmp_path):
    array = umem.arange(3.0, dtype="float64")
    assert extension.describe(array)[0] == array.address
    with pytest.raises(umem.NotSupportedError):
        array.release()  # who has the address may still use it
    place = umem.Pool(umem.Host())
    other = umem.zeros(4, place=place)
    address = extension.describe(other)[0]
    place.close()
    assert address and other.released
    with pytest.raises(umem.ValueError):
        extension.describe(other)


def test_each_description_is_of_the_array_as_it_is_now(extension, tmp_path):
    for array in umem.zeros((2, 3)), umem.zeros((2, 3), place=umem.MMap(tmp_path / "a", "w+")):
        check_descriptions(extension, array)
    array.resize(4)
    assert extension.describe(array)[3] == (4, 3)


def check_descriptions(extension, array):
    first = extension.describe(array)
    assert extension.describe(array) == first
    with array.lock() as locked:
        with pytest.raises(umem.RuntimeError, match="locked"):
            extension.describe(array)
        assert extension.describe(locked) == first
    view = array[:]
    assert extension.describe(view) == first
    view.read_only = True
    with pytest.raises(BufferError, match="read-only"):
        extension.describe(view)


def test_exported_memory_lives_as_long_as_its_tensor(extension):
    array = umem.arange(3.0)
    capsule = extension.export_tensor(array)[3]
    with pytest.raises(umem.NotSupportedError):
        array.release()
    del capsule
    array.release()
    place = umem.Pool(umem.Host())
    gone = weakref.ref(place)
    capsule = extension.export_tensor(umem.zeros(4, place=place))[3]
    del place
    gc.collect()
    assert gone() is None and numpy.from_dlpack(Versioned(capsule)).tolist() == [0] * 4


def test_read_only_arrays_are_exported_with_a_flag_and_not_described(extension):
    array = umem.zeros(3)
    array.read_only = True
    assert extension.export_tensor(array)[1] == READ_ONLY
    with pytest.raises(BufferError, match="read-only"):
        extension.describe(array)


@pytest.mark.parametrize("call", ["describe", "export_tensor"])
def test_what_cannot_be_exported_raises(extension, tmp_path, call):
    function = getattr(extension, call)
    with pytest.raises(BufferError, match="no pointers"):
        function(umem.zeros(3, place=umem.File(tmp_path / "a.bin", "w+")))
    with pytest.raises(BufferError, match="datetime64"):
        function(umem.zeros(3, "M8[s]"))
    array = umem.zeros(3)
    with array.lock(), pytest.raises(umem.RuntimeError, match="locked"):
        function(array)
    array.release()
    with pytest.raises(umem.ValueError, match="released"):
        function(array)
    pair = umem.zeros((2, 3), "int16").view("uint8")
    odd = umem.at(umem.host(), pair.address, (2,), "int16", strides=(3,))
    with pytest.raises(BufferError, match="multiple"):
        function(odd)


def test_an_object_of_another_class_is_refused(extension):
    for other in (3, numpy.zeros(3), umem.host(), None):
        with pytest.raises(TypeError, match="umem.Array"):
            extension.describe_as(umem.Array, other)


def test_tensors_of_others_become_arrays(extension):
    plain = numpy.arange(6.0).reshape(2, 3)
    array = extension.import_tensor(umem.Array, plain.__dlpack__(max_version=(1, 0)))
    assert type(array) is umem.Array and array.tolist() == plain.tolist() and array.place is umem.host()
    array[0, 0] = 9
    assert plain[0, 0] == 9


def test_a_tensor_that_is_refused_remains_the_callers(extension):
    capsule = extension.export_tensor(umem.arange(3))[3]
    used = extension.import_tensor(umem.Array, capsule)
    assert used.tolist() == [0, 1, 2] and "used" in repr(capsule)
    before = extension.count_ended()
    for kind, error in (("wrong tensor", umem.ValueError), ("next tensor", umem.NotSupportedError)):
        capsule = extension.new_tensor(kind)
        with pytest.raises(error):
            extension.import_tensor(umem.Array, capsule)
        assert "used" not in repr(capsule) and extension.count_ended() == before
        del capsule
        before += 1
    assert extension.count_ended() == before


def test_new_tensors_are_where_the_thread_works(extension):
    array = extension.allocate(umem.Array, CPU, 0, 2, 32, 5)
    assert array.shape == (5, 2) and array.dtype == "float32" and array.place is umem.host()
    array.fill(3)
    stats = umem.Stats(umem.Host())
    with umem.using(stats):
        there = extension.allocate(umem.Array, CPU, 0, 0, 8, 3)
        assert stats.figures["current_count"] == 1
    del there
    assert stats.figures["current_count"] == 0
    with umem.using(umem.File()):  # which has no pointers
        assert extension.allocate(umem.Array, CPU, 0, 0, 8, 3).shape == (3, 2)


def test_an_allocation_that_fails_says_why(extension):
    with pytest.raises(SystemError, match="^ValueError: .*extent"):
        extension.allocate(umem.Array, CPU, 0, 2, 32, -1)
    with pytest.raises(SystemError, match="^TypeError: "):
        extension.allocate(umem.Array, CPU, 0, 2, 31, 1)
    with pytest.raises(SystemError, match="^(MemoryError|ValueError): "):
        extension.allocate(umem.Array, CPU, 0, 2, 32, 1 << 60)
    with pytest.raises(SystemError, match="^NotSupportedError: .*device 7"):
        extension.allocate(umem.Array, 7, 0, 2, 32, 1)
    with umem.using(umem.Limit(umem.Host(), 1000)), pytest.raises(SystemError, match="^MemoryError: .*1000"):
        extension.allocate(umem.Array, CPU, 0, 2, 32, 1000)


def test_the_cpu_has_no_stream(extension):
    assert extension.work_stream(umem.Array, CPU, 0) == 0


def test_threads_use_one_array(extension):
    array, failures = umem.zeros((3, 4), "float32"), []

    def work():
        try:
            for _ in range(2000):
                assert extension.describe(array)[4] == (4, 1)
                assert extension.export_tensor(array)[0][0] == array.address
                assert umem.from_dlpack(array).shape == (3, 4)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_nothing_is_left_behind(extension):
    array = umem.zeros((3, 4))
    extension.describe(array)
    before = sys.getrefcount(array), sys.getrefcount(umem.host())
    for _ in range(1000):
        extension.describe(array)
        extension.by_tensor(array, array)
        extension.allocate(umem.Array, CPU, 0, 2, 64, 2)
        umem.from_dlpack(array)
    gc.collect()
    assert (sys.getrefcount(array), sys.getrefcount(umem.host())) == before


# ---- tables of others ----

def instance(extension, kind, **members):
    return type("Producer", (), {"__dlpack_c_exchange_api__": extension.producer(kind), **members})()


@pytest.mark.parametrize("kind", ["works", "chain"])
def test_umem_takes_arrays_by_a_table(extension, kind):
    before = extension.count_ended()
    for take in (umem.from_dlpack, lambda o: umem.from_dlpack(o, umem.host()), lambda o: umem.from_dlpack(o, copy=True)):
        array = take(instance(extension, kind))
        assert array.tolist() == [1, 2, 3] and array.dtype == "float64"
        del array
    gc.collect()
    assert extension.count_ended() == before + 3


@pytest.mark.parametrize(("kind", "error", "text", "made"), [
    ("raises", LookupError, "raised inside", 0), ("fails silently", umem.RuntimeError, "returned -1", 0),
    ("gives nothing", umem.RuntimeError, "no tensor", 0), ("throws", umem.RuntimeError, "thrown inside", 0),
    ("throws a number", umem.RuntimeError, "thrown", 0), ("works with error", LookupError, "raised inside", 1),
    ("wrong tensor", umem.ValueError, "rank", 1), ("next tensor", umem.NotSupportedError, "version 2.3", 1)])
def test_failures_of_a_table_arrive(extension, kind, error, text, made):
    before = extension.count_ended()
    for _ in range(3):
        with pytest.raises(error, match=text):
            umem.from_dlpack(instance(extension, kind))
    assert extension.count_ended() == before + 3 * made


@pytest.mark.parametrize("kind", ["null function", "next version", "endless", "other name"])
def test_a_table_that_umem_does_not_know_leaves_the_capsule(extension, kind):
    plain = numpy.arange(3)
    methods = {"__dlpack__": lambda self, **options: plain.__dlpack__(**options),
               "__dlpack_device__": lambda self: (CPU, 0)}
    assert umem.from_dlpack(instance(extension, kind, **methods)).tolist() == [0, 1, 2]
    with pytest.raises(umem.TypeError, match="no __dlpack__"):
        umem.from_dlpack(instance(extension, kind))


def test_an_attribute_that_is_no_table_leaves_the_capsule():
    class Wrong(Versioned):
        __dlpack_c_exchange_api__ = 12345

    assert umem.from_dlpack(Wrong(numpy.arange(3).__dlpack__(max_version=(1, 0)))).tolist() == [0, 1, 2]

    class Meta(type):
        @property
        def __dlpack_c_exchange_api__(cls):
            raise LookupError("of the class")

    with pytest.raises(LookupError, match="of the class"):
        umem.from_dlpack(Meta("Raising", (), {})())


def test_a_class_may_get_its_table_later(extension):
    class Late:
        pass

    with pytest.raises(umem.TypeError):
        umem.from_dlpack(Late())
    Late.__dlpack_c_exchange_api__ = extension.producer("works")
    assert umem.from_dlpack(Late()).tolist() == [1, 2, 3]


def test_more_classes_than_umem_remembers(extension):
    for _ in range(20):
        assert umem.from_dlpack(instance(extension, "works")).tolist() == [1, 2, 3]


# ---- small elements ----

@pytest.mark.parametrize(("name", "code", "bits"), [
    ("float8_e4m3fn", 10, 8), ("float8_e5m2", 12, 8), ("float8_e8m0fnu", 14, 8), ("float6_e2m3fn", 15, 6),
    ("float6_e3m2fn", 16, 6), ("float4_e2m1fn", 17, 4), ("bfloat16", 4, 16), ("bool", 6, 8)])
def test_small_elements_pass_through(extension, name, code, bits):
    array = umem.zeros((2, 3), name)
    assert array.itemsize == (bits + 7) // 8
    description, flags, _, capsule = extension.export_tensor(array)
    assert description[2] == (code, bits, 1) and flags == (PADDED if bits < 8 else 0)
    back = umem.from_dlpack(Versioned(capsule))
    assert back.dtype == name and back.shape == (2, 3) and back.address == array.address
    if bits < 8:
        with pytest.raises(BufferError, match=f"{bits} bits"):
            extension.describe(array)
        with pytest.raises(BufferError, match=f"{bits} bits"):
            array.__dlpack__()
    ml_dtypes = pytest.importorskip("ml_dtypes") if name != "bool" else None
    if ml_dtypes:
        plain = numpy.arange(6).astype(getattr(ml_dtypes, name)).reshape(2, 3)
        array[...] = plain
        assert array.numpy().tobytes() == plain.tobytes() and umem.asarray(plain).dtype == name


def test_elements_that_share_bytes(extension):
    packed = umem.zeros(3, "float4_e2m1fnx2")  # PyTorch calls it float4_e2m1fn_x2
    description, flags, _, capsule = extension.export_tensor(packed)
    assert packed.itemsize == 1 and description[2] == (17, 4, 2) and flags == 0
    assert extension.describe(packed) == description
    assert umem.from_dlpack(Versioned(capsule)).dtype == packed.dtype
    assert umem.dtype("float4_e2m1fn_x2") == packed.dtype


# ---- libraries ----

def test_tvm_ffi_takes_arrays_by_the_table():
    tvm_ffi = pytest.importorskip("tvm_ffi")
    array = umem.arange(6.0).reshape(2, 3)
    seen = []
    function = tvm_ffi.convert(lambda x: seen.append((x.shape, x.data_ptr() if hasattr(x, "data_ptr") else None)) or x)
    found = function(array)
    assert type(found) is umem.Array and found.address == array.address and tuple(seen[0][0]) == (2, 3)
    there = tvm_ffi.from_dlpack(array)
    assert tuple(there.shape) == (2, 3)
    back = umem.from_dlpack(there)
    assert back.address == array.address
    del array, found
    gc.collect()
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]


# ---- GPUs ----

gpu = pytest.mark.skipif(not HAS_GPU, reason="no GPU, nor the double of its driver")


@gpu
def test_the_work_stream_is_that_of_the_default_place(extension):
    assert extension.work_stream(umem.Array, CUDA, 0) == 0
    place = umem.CudaAsync()
    with umem.using(place):
        assert extension.work_stream(umem.Array, CUDA, 0) == place.info.stream > 1
        assert extension.work_stream(umem.Array, MANAGED, 0) == place.info.stream
        assert not extension.work_stream(umem.Array, CUDA, 1) and not extension.work_stream(umem.Array, CPU, 0)
    assert not extension.work_stream(umem.Array, CUDA, 0)
    with umem.using(umem.Cuda()):
        assert not extension.work_stream(umem.Array, CUDA, 0)


@gpu
@pytest.mark.parametrize("make", [umem.Cuda, umem.CudaAsync, lambda: umem.Pool(umem.Cuda())])
def test_arrays_of_gpus_pass_through(extension, make):
    place = make()
    array = umem.zeros((3, 4), "float32", place)
    for work in (umem.host(), place):
        with umem.using(work):
            expected = array.address, (CUDA, 0), (2, 32, 1), (3, 4), (4, 1)
            assert extension.describe(array) == extension.export_tensor(array)[0] == expected
            back = umem.from_dlpack(array)
            assert back.address == array.address and back.numpy(copy=True).tolist() == [[0] * 4] * 3
            there = umem.from_dlpack(array, place)
            assert there.place is place
    place.synchronize()


@gpu
@pytest.mark.skipif(not DOUBLE, reason="the double counts the calls of the driver")
def test_streams_wait_for_one_another():
    one, other = umem.CudaAsync(), umem.CudaAsync()
    array = umem.zeros(8, place=one)
    one.synchronize()

    def waits(work):
        before = DOUBLE.fake_driver_calls(b"stream_wait")
        with umem.using(work):
            umem.from_dlpack(array, one)
        return DOUBLE.fake_driver_calls(b"stream_wait") - before

    assert waits(one) == 0  # all work is on one stream
    assert waits(other) == 2  # that of the thread for the array's, and then the array's for that of the thread
    assert waits(umem.host()) == 2  # as before, with the legacy stream


@gpu
def test_new_tensors_of_gpus(extension):
    array = extension.allocate(umem.Array, CUDA, 0, 2, 32, 5)
    assert array.place.kind == "cuda" and array.shape == (5, 2)
    place = umem.Pool(umem.Cuda())
    with umem.using(place):
        there = extension.allocate(umem.Array, CUDA, 0, 2, 32, 5)
        assert umem.find(there.address) is not None
    with pytest.raises(SystemError, match="Error: "):
        extension.allocate(umem.Array, CUDA, 77, 2, 32, 5)


@gpu
def test_a_producer_on_a_gpu_without_a_stream(extension):
    before = extension.count_ended()
    with pytest.raises(LookupError, match="no stream"):
        umem.from_dlpack(instance(extension, "gpu"))
    gc.collect()
    assert extension.count_ended() == before + 1
