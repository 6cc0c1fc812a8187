"""CuPy, PyTorch, Numba and cuda.core allocate from places: with stand-ins for these libraries, and with the real Numba
where it is installed. gpu/test_others.py runs the real ones on a GPU."""
import contextlib
import gc
import sys
import threading
import weakref

import pytest

import stand_ins
import umem
from conftest import DOUBLE, HAS_GPU

needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="needs a GPU, or the double of the driver")
pytestmark = needs_gpu

USES = {"cupy": umem.use_in_cupy, "torch": umem.use_in_torch, "numba": umem.use_in_numba,
        "cuda.core": umem.cuda_core_resource}


@pytest.fixture
def stats():
    place = umem.Stats(umem.Pool(umem.Cuda()))
    yield place
    gc.collect()
    assert place.figures["current_count"] == 0
    place.close()


@pytest.fixture(params=["new", "old"])
def cupy(request, monkeypatch):
    return stand_ins.cupy(monkeypatch, request.param == "old")


@pytest.fixture
def torch(monkeypatch):
    yield stand_ins.torch(monkeypatch)
    gc.collect()
    from umem.others import in_torch
    in_torch._collect()
    assert not in_torch._ended


@pytest.mark.parametrize("library", USES)
def test_a_machine_without_the_library_gets_a_clear_message(library, monkeypatch):
    for name in (library, library.split(".")[0], "numba.cuda"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(umem.NotImplementedError, match="is not installed: pip install"):
        USES[library](umem.Cuda())


@pytest.mark.parametrize("library", USES)
def test_memory_that_no_gpu_can_use_is_refused(library, monkeypatch):
    stand_ins.cupy(monkeypatch)
    stand_ins.torch(monkeypatch)
    if library != "numba":
        stand_ins.cuda_core(monkeypatch)
    else:
        pytest.importorskip("numba")
    with pytest.raises(umem.NotSupportedError, match="needs memory that a GPU can use"):
        USES[library](umem.Host())
    with pytest.raises(umem.TypeError, match="a umem.Place is expected, not str"):
        USES[library]("cuda")


# ---- CuPy ----

def test_cupy_allocates_from_the_place(cupy, stats):
    with umem.use_in_cupy(stats) as use:
        arrays = [cupy.empty(1000) for _ in range(3)]
        nothing = cupy.empty(0)
        assert stats.figures["current_bytes"] == 3000 and use.blocks == 3 and not nothing.ptr
    assert cupy.cuda.get_allocator() is None
    assert use.blocks == 3
    del arrays
    assert use.blocks == 0


def test_cupy_calls_no_python_unless_it_is_old(monkeypatch):
    cupy = stand_ins.cupy(monkeypatch)
    with umem.use_in_cupy(umem.Cuda()):
        assert type(cupy.current["allocator"].__self__).__name__ == "CFunctionAllocator"


def test_cupy_gets_a_memory_error_with_the_cause(cupy, stats):
    with umem.use_in_cupy(umem.Limit(stats, 1000)) as use:
        with pytest.raises(MemoryError, match="that the limit allows"):
            cupy.empty(2000)
        assert "that the limit allows" in use.failure
        assert cupy.empty(500).ptr


def test_cupy_gets_the_exception_of_a_callback(monkeypatch, stats):
    def give_up(nbytes, alignment, attempt):
        raise KeyError("no")

    cupy = stand_ins.cupy(monkeypatch)
    retry = umem.Retry(umem.Limit(stats, 10), give_up)
    with umem.use_in_cupy(retry), pytest.raises(KeyError):
        cupy.empty(2000)


def test_memory_of_another_gpu_is_refused(cupy):
    with umem.use_in_cupy(umem.Cuda(0)) as use:
        cupy.current["device"] = 1
        with pytest.raises((MemoryError, ValueError), match="the place is on GPU 0, but memory of GPU 1 is wanted"):
            cupy.empty(10)
        assert use.blocks == 0


def test_arrays_of_cupy_keep_the_memory_alive(cupy, stats):
    place = umem.Limit(stats, "1M")
    seen = weakref.ref(place)
    with umem.use_in_cupy(place):
        array = cupy.empty(1000)
    place.close()
    del place
    cupy.current["allocator"] = None
    gc.collect()
    assert stats.figures["current_bytes"] == 1000 and seen() is None
    del array
    assert stats.figures["current_bytes"] == 0


def test_uses_of_cupy_end_in_reverse_order(cupy):
    outer, inner = umem.use_in_cupy(umem.Cuda()), umem.use_in_cupy(umem.CudaAsync())
    with pytest.raises(umem.ValueError, match="reverse order"):
        outer.close()
    inner.close()
    outer.close()
    assert cupy.cuda.get_allocator() is None


def test_threads_of_cupy_allocate_at_the_same_time(cupy, stats):
    def work():
        for i in range(500):
            kept = [cupy.empty(i + 1) for _ in range(3)]
            assert len({array.ptr for array in kept}) == 3

    with umem.use_in_cupy(stats):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert stats.figures["total_count"] == 6000


# ---- PyTorch ----

def test_torch_takes_blocks_from_the_place(torch, stats):
    with umem.use_in_torch(stats) as use:
        tensor = torch.empty(1 << 20)
        assert stats.figures["current_bytes"] == 1 << 20 and use.blocks == 1
    assert torch.state.pool is None and use.blocks == 1
    del tensor
    assert use.blocks == 0


def test_a_use_that_nobody_keeps_goes_on(torch, stats):
    use = weakref.ref(umem.use_in_torch(stats))
    gc.collect()
    assert torch.empty(100) and stats.figures["current_count"] == 1
    from umem.others import in_torch
    assert use() is None
    number, (_, stack, _) = next(iter(in_torch._uses.items()))
    stack.close()
    del stack, in_torch._uses[number][1:]
    in_torch._ended.add(number)


def test_torch_is_out_of_memory_by_null(torch, stats):
    with umem.use_in_torch(umem.Limit(stats, 1000)) as use:
        with pytest.raises(MemoryError, match="CUDA out of memory"):
            torch.empty(2000)
        assert "that the limit allows" in use.failure


def test_tensors_keep_their_functions_after_the_use(torch, stats):
    from umem.others import in_torch
    with umem.use_in_torch(stats):
        tensor = torch.empty(100)
    others = []
    for _ in range(20):  # more than there are pairs of functions
        with umem.use_in_torch(stats):
            others.append(torch.empty(10))
            others.clear()
    assert len(in_torch._ended) == 1
    del tensor
    with umem.use_in_torch(stats):
        assert not in_torch._ended


def test_the_seventeenth_place_is_refused(torch, stats):
    tensors = []
    for _ in range(16):
        with umem.use_in_torch(stats):
            tensors.append(torch.empty(10))
    with pytest.raises(umem.NotSupportedError, match="16 places"):
        umem.use_in_torch(stats)
    tensors.clear()
    with umem.use_in_torch(stats) as use:
        assert torch.empty(10).ptr and use.blocks == 1


def test_work_on_other_streams_is_waited_for(torch, stats):
    stream = umem.CudaAsync()
    torch.state.stream = stream.info.stream
    for place in (stats, umem.Stats(umem.CudaManaged()), umem.Stats(umem.CudaAsync())):
        with umem.use_in_torch(place) as use:
            for _ in range(3):
                torch.empty(100)
                torch.state.pool.cached.clear()
        assert use.failure is None and use.blocks == 0 and place.figures["total_count"] == 3


def test_a_permanent_use_stays(torch, stats):
    with umem.use_in_torch(stats, permanent=True) as use:
        first = torch.empty(100)
    second = torch.empty(200)
    assert stats.figures["current_bytes"] == 300 and use.blocks == 2 and not use.closed
    with pytest.raises(umem.NotSupportedError, match="cannot change its allocator back"):
        use.close()
    with pytest.raises(RuntimeError, match="already initialized"):
        umem.use_in_torch(stats, permanent=True)
    del first, second
    assert stats.figures["current_bytes"] == 0
    allocator = use._allocator
    from umem import _core
    assert all(_core._give_torch_slot(number) for number in range(16)) and allocator.blocks == 0


@contextlib.contextmanager
def permanently(torch, place):
    use = umem.use_in_torch(place, permanent=True)
    yield use
    assert use.failure is None and use.blocks == 0
    from umem import _core
    assert all(_core._give_torch_slot(number) for number in range(16))
    torch.state.always = None


def calls(function):
    return DOUBLE.fake_driver_calls(function) if DOUBLE else 0


def test_blocks_of_a_pool_follow_the_streams_of_a_permanent_use(torch):
    streams = [umem.CudaAsync() for _ in range(2)]
    with permanently(torch, umem.Pool(umem.Cuda())):
        for number in (0, 1, 2, *(stream.info.stream for stream in streams)):
            torch.state.stream = number
            first = torch.empty(1 << 20).ptr
            waits = calls(b"stream_synchronize")
            for _ in range(3):
                assert torch.empty(1 << 20).ptr == first
            assert calls(b"stream_synchronize") == waits


def test_a_free_comes_after_the_streams_that_a_tensor_was_recorded_for(torch):
    place, others = umem.Pool(umem.Cuda()), [umem.CudaAsync() for _ in range(3)]
    with permanently(torch, place):
        tensor = torch.empty(1 << 20)
        for _ in range(2):
            for other in others:
                tensor.record_stream(other.info.stream)
                torch.state.always.record_stream(None, other.info.stream)  # a tensor without elements
        waits, synchronized = calls(b"stream_wait"), calls(b"stream_synchronize")
        del tensor
        assert not DOUBLE or calls(b"stream_wait") == waits + 3
        torch.empty(1 << 20)
        assert not DOUBLE or calls(b"stream_wait") == waits + 3
        assert calls(b"stream_synchronize") == synchronized


def test_a_place_that_is_no_pool_waits_for_recorded_streams(torch, stats):
    other = umem.CudaAsync()
    with permanently(torch, stats):
        waits = []
        for recorded in (False, True):
            tensor = torch.empty(1000)
            if recorded:
                tensor.record_stream(other.info.stream)
            before = calls(b"stream_synchronize")
            del tensor
            waits.append(calls(b"stream_synchronize") - before)
        assert not DOUBLE or waits[1] == 2 * waits[0] > 0


def test_a_pool_of_memory_that_no_stream_orders_serves_a_permanent_use(torch):
    for below in (umem.CudaHost(), umem.CudaManaged(), umem.CudaAsync()):
        with permanently(torch, umem.Pool(below)):
            for _ in range(3):
                torch.empty(1000)


def test_out_of_memory_of_a_permanent_use_is_a_bad_alloc(tmp_path, run_python):
    """ctypes cannot catch it: the program ends by it, and says what it was."""
    import shutil
    import subprocess
    compiler = shutil.which("g++") or pytest.skip("there is no g++")
    (tmp_path / "catch.cpp").write_text(
        "#include <cstdio>\n#include <cstddef>\n#include <new>\n"
        "extern \"C\" int call(void *(*allocate)(std::ptrdiff_t, int, void *)) {\n"
        "  try { allocate(2000, 0, nullptr); }\n"
        "  catch (std::bad_alloc const &error) { std::puts(error.what()); std::fflush(stdout); return 1; }\n"
        "  return 0;\n}\n")
    subprocess.run([compiler, "-shared", "-fPIC", tmp_path / "catch.cpp", "-o", tmp_path / "catch.so"], check=True)
    out = run_python(
        "import ctypes, os, sys\n"
        "double = os.environ.get('UMEM_TEST_DRIVER_DOUBLE')\n"
        "if double: ctypes.CDLL(double)\n"
        "import umem\n"
        "from umem import _core\n"
        "handle = _core._Allocator(umem.Limit(umem.Cuda(), 1000), False)\n"
        "number = handle.torch_slot(True)\n"
        "allocate = getattr(ctypes.CDLL(_core.__file__), f'umem_torch_alloc_{number}')\n"
        "print('caught', ctypes.CDLL('./catch.so').call(allocate))\n")
    assert "that the limit allows" in out and "caught 1" in out


# ---- cuda.core ----

def test_cuda_core_allocates_in_the_order_of_streams(monkeypatch, stats):
    stand_ins.cuda_core(monkeypatch)
    resource = umem.cuda_core_resource(stats)
    queue = umem.CudaAsync()
    for stream in (stand_ins.Stream(0), stand_ins.Stream(queue.info.stream)):
        buffer = resource.allocate(1000, stream=stream)
        assert stats.figures["current_bytes"] == 1000 and resource.blocks == 1
        buffer.close()
        assert stats.figures["current_bytes"] == 0 and resource.failure is None
    assert (resource.is_device_accessible, resource.is_host_accessible, resource.is_managed) == (True, False, False)
    assert resource.device_id == 0 and resource.place is stats
    assert umem.cuda_core_resource(umem.Pool(umem.CudaManaged())).is_managed
    assert type(resource) is type(umem.cuda_core_resource(stats))


def test_cuda_core_gets_the_failures_of_umem(monkeypatch, stats):
    stand_ins.cuda_core(monkeypatch)
    resource = umem.cuda_core_resource(umem.Limit(stats, 1000))
    with pytest.raises(umem.MemoryError, match="that the limit allows"):
        resource.allocate(2000, stream=stand_ins.Stream(0))
    monkeypatch.setattr(stand_ins.Buffer, "from_handle", classmethod(lambda *_, **__: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        resource.allocate(100, stream=stand_ins.Stream(0))
    assert resource.blocks == 0


def test_the_real_cuda_core_takes_the_resource(stats):
    core = pytest.importorskip("cuda.core")
    resource = umem.cuda_core_resource(stats)
    assert isinstance(resource, core.MemoryResource) and resource.device_id == 0


# ---- Numba ----

class _Context:
    """Of Numba, for a GPU that is not there."""

    class device:
        id = 0


def test_numba_allocates_from_the_place(stats):
    cuda = pytest.importorskip("numba.cuda")
    driver = sys.modules["numba.cuda.cudadrv.driver"]
    driver._ensure_memory_manager()
    before = driver._memory_manager
    with umem.use_in_numba(stats) as use:
        context = _Context()
        manager = driver._memory_manager(context=context)
        pointer = manager.memalloc(1000)
        assert isinstance(pointer, cuda.MemoryPointer)
        address = pointer.device_pointer  # without numba-cuda a c_void_p
        assert int(getattr(address, "value", address))
        assert stats.figures["current_bytes"] == 1000 and use.blocks == 1
        free, total = manager.get_memory_info()
        assert 0 < free <= total and manager.interface_version == 1
        with pytest.raises(umem.MemoryError):
            driver._memory_manager(context=context).memalloc(1 << 60)
    assert driver._memory_manager is before
    del pointer
    gc.collect()
    assert use.blocks == 0


def test_numba_changes_contexts_that_it_has(stats, monkeypatch):
    pytest.importorskip("numba.cuda")
    driver = sys.modules["numba.cuda.cudadrv.driver"]
    context = _Context()
    context.memory_manager = old = object()

    class Device:
        primary_context = context

    monkeypatch.setitem(driver.driver.devices, 4096, Device())  # no other has this number
    with umem.use_in_numba(stats):
        assert context.memory_manager.memalloc(10) and stats.figures["total_count"] == 1
    assert context.memory_manager is old
    del context, Device
    gc.collect()


def test_contexts_that_numba_makes_meanwhile_get_its_own_manager_after_it(stats, monkeypatch):
    cuda = pytest.importorskip("numba.cuda")
    driver = sys.modules["numba.cuda.cudadrv.driver"]

    class Own:
        is_initialized = False

        def __init__(self, context):
            self.context = context

        def initialize(self):
            self.is_initialized = True

    class Device:
        primary_context = _Context()

    monkeypatch.setattr(driver, "_memory_manager", Own)
    monkeypatch.setattr(cuda, "gpus", {0: contextlib.nullcontext()})
    context = Device.primary_context
    with umem.use_in_numba(stats):
        context.memory_manager = driver._memory_manager(context=context)
        monkeypatch.setitem(driver.driver.devices, 4096, Device())
        assert context.memory_manager.memalloc(10)
    assert type(context.memory_manager) is Own and context.memory_manager.is_initialized


def test_uses_of_numba_end_in_reverse_order():
    pytest.importorskip("numba.cuda")
    outer, inner = umem.use_in_numba(umem.Cuda()), umem.use_in_numba(umem.Cuda())
    with pytest.raises(umem.ValueError, match="reverse order"):
        outer.close()
    inner.close()
    outer.close()
