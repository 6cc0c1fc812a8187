"""umem.External and umem.place_of: allocators of Python and of stand-ins for other libraries as places. The script
gpu/external.py runs the real libraries on a GPU."""
import ctypes
import gc
import os
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import stand_ins
import umem


class Arena:
    """Memory of ctypes, and what it was asked for."""

    def __init__(self):
        self.live, self.asked, self.raises, self.answer = {}, [], None, ...

    def allocate(self, nbytes, alignment, stream):
        self.asked.append((nbytes, alignment, stream))
        if self.raises:
            raise self.raises
        if self.answer is not ...:
            return self.answer
        block = ctypes.create_string_buffer(nbytes + alignment)
        address = -(-ctypes.addressof(block) // alignment) * alignment
        self.live[address] = block, nbytes
        return address

    def deallocate(self, address, nbytes, alignment, stream):
        if self.raises:
            raise self.raises
        assert self.live.pop(address)[1] == nbytes


@pytest.fixture
def arena():
    return Arena()


@pytest.fixture
def drawer(arena):
    made = umem.External(umem.Host(), arena.allocate, arena.deallocate)
    yield made
    arena.raises, arena.answer = None, ...
    made.close()
    gc.collect()
    assert not arena.live


def test_arrays_are_in_the_memory_of_the_functions(arena, drawer):
    array = umem.arange(1000, dtype="int32", place=drawer)
    assert drawer.kind == "external" and len(arena.live) == 1
    assert arena.asked == [(4000, arena.asked[0][1], None)]
    np.testing.assert_array_equal(array.numpy(), np.arange(1000))
    assert umem.find(array.address).nbytes == 4000
    del array
    gc.collect()
    assert not arena.live


def test_layers_go_over_it(arena, drawer):
    stats = umem.Stats(umem.Limit(drawer, 10_000))
    array = umem.ones(1000, "u1", stats)
    assert stats.figures["current_bytes"] == 1000
    with pytest.raises(umem.MemoryError, match="the limit allows"):
        umem.ones(10_000, "u1", stats)
    assert len(arena.live) == 1
    pool = umem.Pool(drawer, initial="64K")
    arrays = [umem.zeros(100, "f4", pool) for _ in range(10)]
    assert len(arena.live) == 2
    del array, arrays
    pool.close()
    stats.close()


def test_the_last_array_keeps_the_functions(arena):
    functions = Arena()
    gone = weakref.ref(functions)
    array = umem.ones(100, "f8", umem.External(umem.Host(), functions.allocate, functions.deallocate))
    view = array.numpy()
    del functions, array
    gc.collect()
    assert gone() is not None and len(gone().live) == 1 and view.sum() == 100
    del view
    gc.collect()
    assert gone() is None


def test_exceptions_arrive(arena, drawer, monkeypatch):
    arena.raises = LookupError("no such drawer")
    with pytest.raises(LookupError, match="no such drawer"):
        umem.ones(100, "f8", drawer)
    arena.raises = None
    array = umem.ones(100, "f8", drawer)
    arena.raises = LookupError("the drawer is stuck")
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: seen.append(str(event.exc_value)))
    array.release()
    assert "deallocate has raised LookupError: the drawer is stuck" in seen[0]
    arena.live.clear()


@pytest.mark.parametrize("answer, error, words", [
    (None, umem.MemoryError, "the allocator has no block of 800 bytes"),
    (4099, umem.RuntimeError, "is not a multiple of"),
    ("here", TypeError, "cannot be interpreted as an integer"),
    (-8, OverflowError, "convert negative"),
])
def test_wrong_answers_are_refused(arena, drawer, answer, error, words):
    arena.answer = answer
    arena.live[4099] = None, 800  # which goes back
    with pytest.raises(error, match=words):
        umem.ones(100, "f8", drawer)
    arena.live.pop(4099, None)


def test_arguments_are_checked():
    with pytest.raises(umem.TypeError, match="not callable"):
        umem.External(umem.Host(), 1, print)
    with pytest.raises(umem.ValueError, match="24 is not a power of two"):
        umem.External(umem.Host(), print, print, alignment=24)
    with pytest.raises(umem.NotSupportedError, match="offsets"):
        umem.External(umem.File(), print, print)
    with pytest.raises(umem.TypeError, match="make a umem.External"):
        umem.place_of(object())


def test_an_allocator_that_does_not_align(arena):
    drawer = umem.External(umem.Host(), arena.allocate, arena.deallocate, alignment=16, aligns=False)
    umem.ones(100, "f8", umem.Pool(drawer))
    assert {alignment for _, alignment, _ in arena.asked} == {16}


def test_threads_allocate_and_free(arena, drawer):
    def work():
        for n in range(1, 200):
            made.append(umem.empty(n, "u1", drawer))

    made = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(arena.live) == len(made) == 796
    del made


def test_a_child_of_fork_uses_ram(arena, drawer):
    array = umem.ones(100, "f8", drawer)
    child = os.fork()
    if child == 0:
        os._exit(0 if umem.ones(10, "f8", drawer).sum() == 10 and array.sum() == 100 else 1)
    assert os.waitpid(child, 0)[1] == 0


# ---- other libraries ----

class Stream:
    def __init__(self, stream):
        self.number = stream if isinstance(stream, int) else stream.__cuda_stream__()[1]
        self.waits = 0

    @classmethod
    def from_handle(cls, number):
        return cls(number)

    def sync(self):
        self.waits += 1

    synchronize = sync

    def __enter__(self):
        CURRENT.append(self.number)

    def __exit__(self, *_):
        CURRENT.pop()


CURRENT = []


def rmm(monkeypatch, arena):
    stand_ins.module(monkeypatch, "rmm")
    for name in "rmm._cuda", "rmm.pylibrmm":
        stand_ins.module(monkeypatch, name)
    stand_ins.module(monkeypatch, "rmm._cuda.gpu", getDevice=lambda: 0)
    stand_ins.module(monkeypatch, "rmm.pylibrmm.stream", Stream=Stream)

    class ManagedMemoryResource:
        def allocate(self, nbytes, stream):
            return arena.allocate(nbytes, 256, stream.number)

        def deallocate(self, address, nbytes, stream):
            arena.deallocate(address, nbytes, 256, stream.number)

    class Adaptor:
        def __init__(self, upstream_mr):
            self.upstream_mr = upstream_mr
            self.allocate, self.deallocate = upstream_mr.allocate, upstream_mr.deallocate

    ManagedMemoryResource.__module__ = Adaptor.__module__ = "rmm.pylibrmm.memory_resource._memory_resource"
    return Adaptor(ManagedMemoryResource())


def cuda_core(monkeypatch, arena):
    stand_ins.module(monkeypatch, "cuda")
    stand_ins.module(monkeypatch, "cuda.core", Stream=Stream)

    class Buffer:
        def __init__(self, address, nbytes):
            self.handle, self.nbytes = address, nbytes

        def close(self, stream):
            arena.deallocate(self.handle, self.nbytes, 256, stream.number)

    class Resource:
        device_id, is_host_accessible, is_device_accessible = 0, False, True

        def allocate(self, size, *, stream):
            return Buffer(arena.allocate(size, 256, stream.number), size)

    Resource.__module__ = "cuda.core._memory._device_memory_resource"
    return Resource()


def cupy(monkeypatch, arena):
    cuda = types.SimpleNamespace(Stream=types.SimpleNamespace(null=Stream(0)), ExternalStream=Stream,
                                 Device=lambda: types.SimpleNamespace(id=0))
    stand_ins.module(monkeypatch, "cupy", cuda=cuda)

    class Pointer:
        def __init__(self, address, nbytes):
            self.ptr, self.nbytes = address, nbytes

        def __del__(self):
            arena.deallocate(self.ptr, self.nbytes, 256, None)

    class MemoryPool:
        def malloc(self, nbytes):
            return Pointer(arena.allocate(nbytes, 256, CURRENT[-1]), nbytes)

    MemoryPool.__module__ = "cupy.cuda.memory"
    return MemoryPool().malloc


def torch(monkeypatch, arena):
    sizes = {}

    def alloc(nbytes, device, stream):
        address = arena.allocate(nbytes, 256, stream)
        sizes[address] = nbytes
        return address

    stand_ins.module(monkeypatch, "torch")
    return stand_ins.module(
        monkeypatch, "torch.cuda", current_device=lambda: 0, caching_allocator_alloc=alloc,
        caching_allocator_delete=lambda address: arena.deallocate(address, sizes.pop(address), 256, None))


@pytest.mark.parametrize("library", [rmm, cuda_core, cupy, torch])
def test_allocators_of_libraries_are_places(library, arena, monkeypatch):
    resource = library(monkeypatch, arena)
    drawer = umem.place_of(resource, umem.Host())
    stats = umem.Stats(drawer)
    array = umem.arange(1000, dtype="f8", place=stats)
    assert arena.asked == [(8000, 256, 0 if library in (cupy, torch) else 1)]
    assert array.sum() == 499500 and stats.figures["current_bytes"] == 8000
    del array
    umem.ones(10, "f8", umem.Pool(umem.Limit(drawer, "1M")))
    gc.collect()
    assert not arena.live


def test_memory_that_is_not_known_has_to_be_named(monkeypatch, arena):
    resource = rmm(monkeypatch, arena)
    type(resource.upstream_mr).__name__ = "CallbackMemoryResource"
    with pytest.raises(umem.ValueError, match=r"place_of\(resource, umem.Cuda\(0\)\)"):
        umem.place_of(resource)
