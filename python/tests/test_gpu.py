"""What holds for GPUs alone, on a GPU or on the driver's double."""
import gc
import multiprocessing
import pickle

import pytest
from conftest import DOUBLE, GPU_PLACES, HAS_GPU

import umem

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.skipif(not HAS_GPU, reason="there is no GPU, and no double of the driver")


@pytest.fixture(params=GPU_PLACES)
def gpu(request, tmp_path):
    made = GPU_PLACES[request.param](tmp_path)
    layers = [made]
    while layers[-1]._upstream is not None:
        layers.append(layers[-1]._upstream)
    yield made
    for layer in layers:
        layer.close()


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    umem.exchange._on_gpus.clear()
    gc.collect()
    complaint = DOUBLE.fake_driver_complaint() if DOUBLE else None
    assert complaint is None, complaint


def test_memory_goes_to_others_as_what_it_is(gpu):
    array = umem.arange(12, dtype="float32", place=gpu).reshape(3, 4)
    kind = gpu.stack.split("+")[-1]
    code = {"cuda-host": 3, "cuda-managed": 13}.get(kind, 2)
    assert array.__dlpack_device__() == (code, 0)
    interface = array[:, ::2].__cuda_array_interface__
    stream = gpu.info.stream
    assert interface == {"shape": (3, 2), "typestr": "<f4", "data": (array.address, False), "strides": (16, 8),
                         "version": 3, "stream": None if stream is None else stream or 1}
    back = umem.from_dlpack(array)
    assert back.address == array.address and back.tolist() == array.tolist()
    back[0] = 7
    assert array[0].tolist() == [7] * 4
    array.read_only = True
    assert array.__cuda_array_interface__["data"][1] and umem.from_dlpack(array).read_only
    assert umem.zeros((0, 3), place=gpu).__cuda_array_interface__["data"] == (0, False)


def test_the_array_interface_comes_back(gpu):
    class Other:
        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    array = umem.arange(6, place=gpu)
    is_pinned = gpu.kind == "cuda-host"  # of which the interface says nothing
    found = umem.asarray(Other(array), place=gpu if is_pinned else None)
    assert found.address == array.address and found.tolist() == list(range(6))
    if is_pinned:
        return
    there = umem.asarray(Other(array), place=umem.host())
    assert there.place is umem.host() and there.tolist() == list(range(6))


def test_the_cpu_reads_no_memory_of_gpus(gpu):
    array = umem.arange(4, place=gpu)
    if gpu.capabilities & 1:
        assert array.numpy().tolist() == [0, 1, 2, 3]
        return
    for use in (array.numpy, lambda: memoryview(array), lambda: numpy.from_dlpack(array)):
        with pytest.raises((BufferError, RuntimeError)):
            use()
    with pytest.raises(TypeError, match=r"copy it with a.numpy\(copy=True\) or a.host\(\)"):
        numpy.asarray(array)
    assert not hasattr(array, "__array_interface__")
    assert array.numpy(copy=True).tolist() == [0, 1, 2, 3]
    assert numpy.from_dlpack(array, device="cpu", copy=True).tolist() == [0, 1, 2, 3]
    with array.host() as found:
        found += 1
    assert array.tolist() == [1, 2, 3, 4]


def test_copies_for_a_device_are_brought_back():
    array = umem.arange(6, dtype="float64")
    with array.device() as there:
        assert there.place.kind == "cuda" and there.__dlpack_device__()[0] == 2
        there.fill(3)
        with pytest.raises(umem.RuntimeError, match="locked"):
            array.tolist()
    assert array.tolist() == [3] * 6
    with umem.CudaAsync() as place, array[::2].device(place, "w") as there:
        assert there.place is place
        there.fill(5)
    assert array.tolist() == [5, 3, 5, 3, 5, 3]
    with array.device(mode="r") as there:
        assert there.tolist() == array.tolist()


def test_places_of_streams():
    with umem.CudaAsync() as one:
        number = one.info.stream
        assert one.__cuda_stream__() == (0, number) and number
        for stream in (number, one):
            with umem.CudaAsync(0, stream=stream, max="64M") as other:
                assert other.info.stream == number
                array = umem.arange(5, place=other)
                assert umem.from_dlpack(array, one).place is one and array.tolist() == [0, 1, 2, 3, 4]
    with umem.Cuda() as plain:
        assert plain.__cuda_stream__() == (0, 0)


@pytest.mark.parametrize("stream", [None, 1, 2, -1])
def test_exports_for_a_stream(gpu, stream):
    array = umem.arange(5, place=gpu)
    if array.__dlpack_device__()[0] == 3:
        return
    capsule = array.__dlpack__(stream=stream, max_version=(1, 0))
    assert '"dltensor_versioned"' in repr(capsule)
    with pytest.raises(ValueError):
        array.__dlpack__(stream=0)


def test_managed_memory_has_two_sides():
    with umem.CudaManaged() as place:
        array = umem.zeros(4, place=place)
        for device in ((13, 0), (2, 0), (1, 0)):
            assert array.__dlpack__(dl_device=device, max_version=(1, 0), copy=False)
        assert numpy.from_dlpack(array).ctypes.data == array.address


def test_managed_memory_is_reduced_when_the_gpu_is_done():
    """By NumPy, whose way waits: C++ would read it at once."""
    with umem.CudaManaged() as place:
        array = umem.zeros(1000, place=place)
        assert umem._core._reduce(array, "sum", True, 4096) is None
        assert array.sum() == 0 and array.std() == 0


def test_files_go_to_gpus(gpu, tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(10000.0))
    array = umem.load(tmp_path / "x.npy", gpu)
    umem.save(tmp_path / "y.npy", array[::-1])
    assert (numpy.load(tmp_path / "y.npy") == numpy.arange(10000.0)[::-1]).all()


def test_two_gpus_exchange():
    try:
        other = umem.Cuda(1)
    except umem.Error:
        pytest.skip("there is one GPU")
    with umem.Cuda(0) as one, other:
        array = umem.arange(1000, place=one)
        assert array.to(other).to(one).tolist() == array.tolist()
        assert umem.zeros(3, place=other).__dlpack_device__() == (2, 1)
        with pytest.raises(BufferError):
            umem.from_dlpack(array, other)


def test_memory_of_gpus_is_not_pickled(gpu):
    import pickle

    with pytest.raises(umem.TypeError, match="pickle"):
        pickle.dumps(umem.zeros(3, place=gpu))


def double_there(array, done):
    """What another process does with an array of this one."""
    kind = array.place.kind
    array[...] = [2.0 * x for x in array.tolist()]
    array.place.synchronize()
    done.send((kind, array.shape))


@pytest.mark.parametrize("part", [slice(None), slice(None, None, 2)])
def test_arrays_of_a_stream_that_shares_pass_to_other_processes(part):
    spawn = multiprocessing.get_context("spawn")
    with umem.CudaAsync(share=True) as place:
        array = umem.arange(6.0, place=place)
        mine, theirs = spawn.Pipe()
        child = spawn.Process(target=double_there, args=(array[part], theirs))
        child.start()
        place.synchronize()  # a double goes on only when somebody waits
        child.join(60)
        assert child.exitcode == 0
        assert mine.recv() == ("cuda", array[part].shape)
        expected = [0.0, 1, 2, 3, 4, 5]
        expected[part] = [2 * x for x in expected[part]]
        assert array.tolist() == expected
