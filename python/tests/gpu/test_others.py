"""The real CuPy, PyTorch, Numba and cuda.core allocate from places of a GPU:

    python -m pytest python/tests/gpu

Each test is skipped, with a reason, without a GPU or without its library. PyTorch as a permanent user runs in a process
of its own.
"""
import gc
import os
import subprocess
import sys
import threading

import pytest

import umem

reason = "there is a double in place of the driver" if os.environ.get("UMEM_TEST_DRIVER_DOUBLE") else ""
try:
    umem.Cuda().close()
except umem.NotSupportedError as error:
    reason = str(error)
pytestmark = pytest.mark.skipif(bool(reason), reason=reason or "there is a GPU")

PLACES = {
    "cuda": lambda: umem.Cuda(),
    "pool": lambda: umem.Pool(umem.Cuda()),
    "async": lambda: umem.CudaAsync(),
    "managed": lambda: umem.Pool(umem.CudaManaged()),
    "pinned": lambda: umem.CudaHost(),
}


@pytest.fixture(params=PLACES)
def stats(request):
    place = umem.Stats(PLACES[request.param]())
    yield place
    gc.collect()
    assert place.figures["current_count"] == 0


# ---- NumPy ----

def test_numpy_is_on_pinned_memory():
    np = pytest.importorskip("numpy")
    place = umem.Stats(umem.CudaHost())
    with umem.use_in_numpy(place):
        array = np.arange(1_000_000.0)
    on_gpu = umem.asarray(array, place=umem.Cuda())
    assert (on_gpu.numpy(copy=True) == array).all()
    del array
    assert place.figures["current_count"] == 0


# ---- CuPy ----

@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


def test_cupy_computes_on_memory_of_the_place(cupy, stats):
    stream = stats.info.stream
    with umem.use_in_cupy(stats) as use, (cupy.cuda.ExternalStream(stream) if stream else cupy.cuda.Stream.null):
        x = cupy.arange(1_000_000, dtype="f8")
        total = float((x * 2).sum())
        assert total == 999_999_000_000.0 and use.blocks >= 1
        cupy.cuda.get_current_stream().synchronize()
        del x
    assert use.failure is None and use.blocks == 0 and stats.figures["total_count"] >= 3


def test_cupy_gets_a_memory_error_with_the_cause(cupy):
    with umem.use_in_cupy(umem.Limit(umem.Cuda(), "1M")) as use:
        with pytest.raises(MemoryError, match="that the limit allows"):
            cupy.empty(1 << 21, "u1")
        assert (cupy.zeros(1000) == 0).all()
        assert "that the limit allows" in use.failure


def test_arrays_of_cupy_live_on(cupy):
    place = umem.Stats(umem.Pool(umem.Cuda()))
    with umem.use_in_cupy(place):
        x = cupy.full(1000, 7.0)
    assert cupy.full(10, 1.0).sum() == 10  # CuPy's own pool again
    assert x.sum() == 7000 and place.figures["current_count"] >= 1
    del x
    gc.collect()
    assert place.figures["current_count"] == 0


def test_threads_of_cupy(cupy):
    errors = []

    def work(number):
        try:
            for i in range(200):
                assert int(cupy.full(1000 + i, number).sum()) == (1000 + i) * number
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    with umem.use_in_cupy(umem.Pool(umem.Cuda())):
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors


# ---- PyTorch ----

@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    if not hasattr(torch.cuda, "MemPool"):
        pytest.skip("this PyTorch has no MemPool")
    return torch


def test_torch_computes_on_memory_of_the_place(torch, stats):
    with umem.use_in_torch(stats) as use:
        x = torch.arange(1_000_000, dtype=torch.float64, device="cuda")
        assert float((x * 2).sum()) == 999_999_000_000.0
        assert use.blocks >= 1 and use.failure is None
    y = torch.ones(1000, device="cuda")
    assert float(x[:1000].sum()) == 499500 and float(y.sum()) == 1000
    del x
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    gc.collect()
    assert use.blocks == 0


def test_torch_is_out_of_memory(torch):
    with umem.use_in_torch(umem.Limit(umem.Cuda(), "64M")) as use:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
        assert "that the limit allows" in use.failure
        assert torch.zeros(10, device="cuda").sum() == 0


def test_torch_works_on_streams_of_its_own(torch):
    place = umem.Stats(umem.Pool(umem.Cuda()))
    with umem.use_in_torch(place) as use:
        for stream in (torch.cuda.Stream(), torch.cuda.Stream()):
            with torch.cuda.stream(stream):
                x = torch.full((1 << 22,), 3.0, device="cuda")
                assert float(x.sum()) == 3.0 * (1 << 22)
                del x
    gc.collect()
    torch.cuda.empty_cache()
    assert use.failure is None and use.blocks == 0


def test_torch_takes_a_place_for_good(torch):
    program = """if True:
        import torch, umem
        place = umem.Stats(umem.Limit(umem.Pool(umem.Cuda()), "1G"))
        use = umem.use_in_torch(place, permanent=True)
        model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
        step = torch.optim.SGD(model.parameters(), 0.01)
        x, y = torch.randn(512, 256, device="cuda"), torch.randn(512, 1, device="cuda")
        first = None
        for _ in range(20):
            loss = ((model(x) - y) ** 2).mean()
            step.zero_grad(); loss.backward(); step.step()
            first = first or float(loss)
        assert float(loss) < first and place.figures["total_count"] > 100, place.figures
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(100):
                z = torch.full((100000,), 2.0, device="cuda")
                assert float(z.sum()) == 200000
        try:
            torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
        except Exception as error:
            assert "that the limit allows" in str(error) or isinstance(error, MemoryError), error
        else:
            raise SystemExit("no failure")
        assert "that the limit allows" in use.failure
        print("done", place.figures["peak_bytes"])
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "done" in done.stdout, done.stdout + done.stderr


def test_blocks_of_a_pool_follow_the_streams_of_torch(torch):
    program = """if True:
        import torch, umem
        use = umem.use_in_torch(umem.Pool(umem.Cuda()), permanent=True)
        side, ones = torch.cuda.Stream(), 1 << 20
        def reused(record):
            x = torch.ones(ones, device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(400_000_000)
                y = x + 0
            if record:
                x.record_stream(side)
            adr = x.data_ptr()
            del x
            z = torch.full((ones,), 7.0, device="cuda")
            waited, same = side.query(), z.data_ptr() == adr
            torch.cuda.synchronize()
            return waited, same, float(y.sum())
        reused(False), reused(True)  # the first calls load kernels, which may wait
        assert reused(True) == (False, True, ones), reused(True)
        assert reused(False) == (False, True, 7 * ones), reused(False)
        with torch.cuda.stream(side):
            torch.cuda._sleep(400_000_000)
            x = torch.ones(ones, device="cuda")
            for _ in range(100):
                x = x + 1  # its blocks take turns
            assert not side.query(), "the call has waited"
        torch.cuda.synchronize()
        assert float(x.sum()) == 101 * ones and use.failure is None
        print("done")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "done" in done.stdout, done.stdout + done.stderr


# ---- Numba ----

@pytest.fixture(scope="module")
def doubling():
    """A kernel of Numba; it is skipped where this Numba does not compile any with this NumPy."""
    np = pytest.importorskip("numpy")
    cuda = pytest.importorskip("numba.cuda")

    @cuda.jit
    def double(values):
        i = cuda.grid(1)
        if i < values.size:
            values[i] *= 2

    try:
        double[8, 128](cuda.to_device(np.zeros(1000)))
    except AttributeError as error:
        pytest.skip(f"Numba compiles no kernel: {error}")
    return double


def test_numba_computes_on_memory_of_the_place(stats, doubling):
    import numpy as np
    from numba import cuda

    if stats.info.stream:
        pytest.skip("Numba works on the legacy default stream")
    with umem.use_in_numba(stats) as use:
        x = cuda.to_device(np.arange(1000.0))
        doubling[8, 128](x)
        cuda.synchronize()
        assert x.copy_to_host().tolist() == (np.arange(1000.0) * 2).tolist() and use.blocks >= 1
    y = cuda.to_device(np.ones(10))  # Numba's own manager again
    assert y.copy_to_host().sum() == 10 and x.copy_to_host()[1] == 2
    count = use.blocks
    del x
    gc.collect()
    cuda.synchronize()
    assert use.blocks < count


def test_numba_allocates_from_the_place(stats):
    np = pytest.importorskip("numpy")
    cuda = pytest.importorskip("numba.cuda")
    with umem.use_in_numba(stats) as use:
        x = cuda.to_device(np.arange(1000.0))
        assert x.copy_to_host().tolist() == list(range(1000)) and use.blocks >= 1
        del x
        gc.collect()
        cuda.synchronize()


# ---- cuda.core ----

def test_cuda_core_allocates_from_the_place(stats):
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    resource = umem.cuda_core_resource(stats)
    buffers = [resource.allocate(1 << 20, stream=stream) for _ in range(2)]
    assert stats.figures["current_bytes"] == 1 << 21 and resource.blocks == 2
    if stats.capabilities & umem.places.CPU_READABLE == 0:
        buffers[0].copy_to(buffers[1], stream=stream)
    stream.sync()
    for buffer in buffers:
        buffer.close(stream)
    assert resource.blocks == 0 and resource.failure is None
    with pytest.raises(umem.MemoryError):
        umem.cuda_core_resource(umem.Limit(umem.Cuda(), 100)).allocate(1000, stream=stream)
