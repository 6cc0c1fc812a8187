"""Whose address is it."""
import ctypes
import os

import numpy as np
import pytest

import umem


def test_the_block_of_an_array_is_found():
    with umem.Track(umem.Host()) as place:
        array = umem.zeros((10, 10), "float64", place)
        assert place.label == ""
        place.label = "ocean"
        assert place.label == "ocean"
        assert repr(place) == "<umem.Track: track+host labelled 'ocean'>"
        place.set_block_label(array.address, "salinity")
        found = umem.find(array[3:, 4])
        assert (found.kind, found.label, found.block_label) == ("Track", "ocean", "salinity")
        assert (found.address, found.nbytes) == (array.address, 800)
        assert "ocean" in repr(found)
        assert umem.find(array.address + 799).nbytes == 800
        assert umem.find(array.address + 7, place).address == array.address
        assert 'Track "ocean" 800 bytes' in umem.describe_places()
        del array
    assert umem.find(found.address) is None


def test_an_array_in_a_file_is_found_in_its_place(tmp_path):
    with umem.File(tmp_path / "a.bin", "w+") as place:
        array = umem.zeros(100, "int32", place)
        assert umem.find(array).nbytes == 400
        assert umem.find(array.address + 399, place).kind == "File"
        assert umem.find(array.address + 400, place) is None
        place.label = "\u03c1"
        assert umem.find(array).label == "\u03c1"
        with pytest.raises(umem.ValueError):
            place.label = "x" * 64
        assert place.label == "\u03c1"


def test_what_umem_has_no_record_of_is_not_found():
    numbers = np.zeros(10)
    assert umem.find(numbers.ctypes.data) is None
    assert umem.find(0) is None
    with pytest.raises(umem.NotSupportedError):
        umem.Host()._set_block_label(numbers.ctypes.data, "x")


def test_only_memory_that_others_have_from_cuda_is_foreign():
    with umem.Track(umem.Host()) as place:
        array = umem.zeros(10, "float64", place)
        assert umem.find_foreign(array.address) is None
        assert umem.find_foreign(np.zeros(10).ctypes.data) is None
        assert umem.find_foreign(0) is None
        del array


@pytest.mark.skipif(not os.environ.get("UMEM_TEST_DRIVER_DOUBLE"), reason="needs the double of the driver")
def test_memory_that_others_have_from_cuda_is_described():
    driver = ctypes.CDLL(os.environ["UMEM_TEST_DRIVER_DOUBLE"])
    context, memory = ctypes.c_void_p(), ctypes.c_void_p()
    with umem.Cuda() as place:
        own = umem.empty(100, "uint8", place)
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert driver.cuCtxPushCurrent_v2(context) == 0
        assert driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1000)) == 0
        found = umem.find_foreign(memory.value + 7)
        assert (found.kind, found.address, found.nbytes, found.device) == ("gpu", memory.value, 1000, 0)
        assert repr(found).startswith("Foreign(address=")
        assert umem.find(memory.value) is None
        assert umem.find_foreign(own.address) is None
        assert driver.cuMemFree_v2(memory) == 0
        assert driver.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0
        assert driver.cuDevicePrimaryCtxRelease_v2(0) == 0
        del own


def test_the_message_lists_the_places_on_request():
    with umem.Pool(umem.Host()) as place:
        place.label = "temps"
        array = umem.zeros(1000, "float64", place)
        umem.list_when_out_of_memory(100)
        try:
            with pytest.raises(umem.MemoryError, match='live contexts: .*Pool "temps"'):
                umem.empty(1 << 58, "float64", place)
        finally:
            umem.list_when_out_of_memory(0)
        with pytest.raises(umem.MemoryError) as error:
            umem.empty(1 << 58, "float64", place)
        assert "live contexts" not in str(error.value)
        del array
