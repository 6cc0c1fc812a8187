"""NumPy allocates from places: umem.use_in_numpy."""
import asyncio
import contextvars
import ctypes
import gc
import sys
import threading
import time

import pytest

import umem
from conftest import HAS_GPU

np = pytest.importorskip("numpy")
multiarray = sys.modules.get("numpy._core.multiarray") or sys.modules["numpy.core.multiarray"]
name_of = multiarray.get_handler_name
BOTH = umem.places.CPU_READABLE | umem.places.CPU_WRITABLE


@pytest.fixture
def stats():
    place = umem.Stats(umem.Host())
    yield place
    gc.collect()
    assert place.figures["current_count"] == 0


def test_numpy_allocates_from_every_place_that_the_cpu_can_use(place):
    if place.capabilities & BOTH != BOTH:
        with pytest.raises(umem.NotSupportedError, match="NumPy needs memory that the CPU reads and writes"):
            umem.use_in_numpy(place)
        return
    with umem.use_in_numpy(place) as use:
        array = np.arange(6.0).reshape(2, 3)
        zeros = np.zeros(7, "i4")
        total = array @ array.T
    assert use.blocks >= 3
    assert name_of(zeros) == f"umem: {place.stack}"[:126]
    assert total.tolist() == [[5, 14], [14, 50]] and not zeros.any()
    del array, zeros, total
    assert use.blocks == 0 and use.failure is None


def test_arrays_larger_than_what_is_left_are_a_memory_error(place):
    if place.capabilities & BOTH != BOTH or place.info.available > 1 << 46:
        pytest.skip("not of this place")
    with umem.use_in_numpy(place) as use:
        for make in (np.zeros, np.empty):
            with pytest.raises(MemoryError):
                make(1 << 46, "u1")
        assert np.ones(5).sum() == 5
    assert use.blocks == 0


def test_a_host_has_what_is_available_without_swapping():
    with open("/proc/meminfo") as file:
        kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in file}
    assert 0 < umem.Host().info.available < kilobytes["MemAvailable"] * 1024 * 1.1


def test_arrays_made_before_and_after_are_as_always():
    before = np.ones(3)
    with umem.use_in_numpy(umem.Host()):
        during = np.ones(3)
    after = np.ones(3)
    assert [name_of(a) for a in (before, during, after)] == ["default_allocator", "umem: host", "default_allocator"]


def test_a_use_without_a_with_block_lasts_until_close():
    use = umem.use_in_numpy(umem.Host())
    assert name_of(np.ones(3)) == "umem: host" and not use.closed
    use.close()
    assert name_of(np.ones(3)) == "default_allocator" and use.closed
    use.close()  # does nothing


def test_arrays_that_live_on_keep_the_place_alive_and_are_freed_on_it(stats):
    place = umem.Limit(stats, "1M")
    with umem.use_in_numpy(place):
        array = np.full(1000, 7.0)
    place.close()
    del place
    gc.collect()
    assert (array == 7).all() and stats.figures["current_bytes"] == 8000
    array.resize(2000, refcheck=False)
    assert (array[:1000] == 7).all() and not array[1000:].any() and stats.figures["current_bytes"] == 16000
    view = array[::2]
    del array
    assert stats.figures["current_count"] == 1
    del view
    assert stats.figures["current_count"] == 0


def test_resize_keeps_elements_and_iterators_grow(stats):
    with umem.use_in_numpy(stats):
        grown = np.fromiter((i * i for i in range(10000)), "i8")  # grows by realloc
        assert grown[-1] == 9999 ** 2
        grown.resize(5, refcheck=False)
        assert grown.tolist() == [0, 1, 4, 9, 16]


def test_sizes_that_numpy_gives_to_free_do_not_matter(stats):
    with umem.use_in_numpy(umem.Track(stats)) as use:
        for shape in ([2, 0, 2], [0], [], [3, 1]):
            np.empty(shape)
    assert use.blocks == 0 and use.failure is None


def test_zeros_are_zero_on_memory_that_was_used(stats):
    with umem.use_in_numpy(umem.Pool(stats)):
        for _ in range(10):
            array = np.empty(5000, "u1")
            array[:] = 255
            del array
            assert not np.zeros(5000, "u1").any()


def test_out_of_memory_is_a_memory_error_and_the_use_knows_the_cause(stats):
    with umem.use_in_numpy(umem.Limit(stats, 1000)) as use:
        with pytest.raises(MemoryError):
            np.ones(1000)
        assert "that the limit allows" in use.failure
        small = np.ones(10)
        with pytest.raises(MemoryError):
            small.resize(1000, refcheck=False)
        assert small.tolist() == [1] * 10
        assert umem.zeros(3).tolist() == [0, 0, 0]  # the failure is none of a later call


def test_exceptions_of_callbacks_go_to_the_unraisable_hook(monkeypatch):
    def give_up(nbytes, alignment, attempt):
        raise KeyError("no")

    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: seen.append(args.exc_type))
    place = umem.Retry(umem.Limit(umem.Host(), 100), give_up)
    with umem.use_in_numpy(place), pytest.raises(MemoryError):
        np.ones(100)
    assert seen == [KeyError]


def test_a_callback_may_free_arrays_of_numpy():
    kept = []

    def free_all(nbytes, alignment, attempt):
        kept.clear()
        return attempt == 1

    limited = umem.Limit(umem.Host(), "1M")
    with umem.use_in_numpy(umem.Retry(limited, free_all)):
        kept.append(np.empty(600_000, "u1"))
        later = np.empty(600_000, "u1")
    assert not kept and limited.used == later.nbytes


def test_uses_nest_and_end_in_reverse_order():
    outer = umem.use_in_numpy(umem.Host())
    inner = umem.use_in_numpy(umem.Stats(umem.Host()))
    assert name_of(np.ones(1)) == "umem: stats+host"
    with pytest.raises(umem.ValueError, match="reverse order"):
        outer.close()
    assert not outer.closed
    inner.close()
    assert name_of(np.ones(1)) == "umem: host"
    outer.close()
    assert name_of(np.ones(1)) == "default_allocator"


def test_other_threads_allocate_as_before_and_cannot_end_the_use():
    seen = []

    def work(use):
        seen.append(name_of(np.ones(3)))
        try:
            use.close()
        except umem.ValueError as error:
            seen.append("thread" in str(error))

    with umem.use_in_numpy(umem.Host()) as use:
        thread = threading.Thread(target=work, args=(use,), **({"context": contextvars.Context()}
                                                                if sys.version_info >= (3, 14) else {}))
        thread.start()
        thread.join()
        assert name_of(np.ones(3)) == "umem: host"
    assert seen == ["default_allocator", True]


def test_a_copied_context_has_the_use_and_tasks_have_their_own():
    async def task(place):
        with umem.use_in_numpy(place):
            await asyncio.sleep(0)
            return name_of(np.ones(1))

    async def both():
        return await asyncio.gather(task(umem.Host()), task(umem.Stats(umem.Host())))

    assert asyncio.run(both()) == ["umem: host", "umem: stats+host"]
    with umem.use_in_numpy(umem.Host()):
        copied = contextvars.copy_context()
    assert copied.run(lambda: name_of(np.ones(1))) == "umem: host"
    assert name_of(np.ones(1)) == "default_allocator"


def test_threads_free_and_allocate_at_the_same_time(stats):
    errors = []
    place = umem.Pool(stats)

    def work(array):
        try:
            with umem.use_in_numpy(place):
                for i in range(2000):
                    array = np.full(i % 300 + 1, i) + array[0] * 0
                    assert (array == i).all()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    with umem.use_in_numpy(place):
        first = np.zeros(10, int)
    threads = [threading.Thread(target=work, args=(first,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    place.close()


def test_threads_resize_while_others_allocate(stats):
    """The address of a block that moves may be that of another thread's block at once."""
    errors = []
    place = umem.Pool(stats)

    def work(number):
        try:
            with umem.use_in_numpy(place):
                for i in range(1500):
                    array = np.full(50, number)
                    for size in (400, 30, 900):
                        array.resize(size, refcheck=False)
                        assert (array[:30] == number).all()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    place.close()


def test_arrays_of_numpy_are_in_the_file(tmp_path):
    place = umem.MMap(tmp_path / "a.bin", "w+")
    with umem.use_in_numpy(place):
        array = np.arange(1000.0)
    place.flush()
    assert (tmp_path / "a.bin").read_bytes()[:8000] == np.arange(1000.0).tobytes()
    del array
    place.close()


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU, or the double of the driver")
def test_arrays_of_numpy_are_pinned():
    place = umem.CudaHost()
    with umem.use_in_numpy(place):
        array = np.arange(100, dtype="f4")
    on_gpu = umem.asarray(array, place=umem.Cuda())
    assert on_gpu.numpy(copy=True).tolist() == array.tolist()


def test_tracks_and_logs_see_arrays_of_numpy(tmp_path):
    track = umem.Track(umem.Log(umem.Host(), tmp_path / "a.log"))
    with umem.use_in_numpy(track):
        array = np.empty(123, "u1")
    block, = track.blocks
    assert block["nbytes"] == 123 and block["address"] == array.ctypes.data
    del array
    assert not track.blocks


def test_memory_stays_flat_over_many_arrays(stats):
    with umem.use_in_numpy(stats):
        for _ in range(100000):
            np.empty(100)
    assert stats.figures["total_count"] == 100000


def test_arrays_may_outlive_the_interpreter(run_python):
    assert run_python(
        "import umem, numpy as np, sys\n"
        "place = umem.Pool(umem.MMap('a.bin', 'w+'))\n"
        "use = umem.use_in_numpy(place)\n"
        "kept = np.ones(1000)\n"
        "class Late:\n"
        "    def __del__(self): self.array += 1\n"
        "late = Late(); late.array = np.ones(10); sys.late = late\n"
        "print('end')\n") == "end\n"


def lets_others_run(work, seconds=10):
    """Whether work, done again and again for at most so many seconds, releases the GIL."""
    interval, gate, ran = sys.getswitchinterval(), threading.Lock(), []
    gate.acquire()
    thread = threading.Thread(target=lambda: (gate.acquire(), ran.append(True)))
    thread.start()
    sys.setswitchinterval(1000)  # no thread gets the GIL unless another one releases it
    try:
        gate.release()
        end = time.perf_counter() + 0.05
        while time.perf_counter() < end:
            pass  # until the thread waits for the GIL
        waited = not ran
        end = time.perf_counter() + seconds
        while not ran and time.perf_counter() < end:
            work()
        return waited and bool(ran)
    finally:
        sys.setswitchinterval(interval)
        thread.join()


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="this Python has no GIL")
def test_allocations_from_ram_keep_the_gil_and_others_release_it():
    def work():
        for _ in range(100):
            np.empty(100)
            np.zeros(100).resize(200, refcheck=False)

    for place, releases in ((umem.Host(), False), (umem.Pool(umem.Host()), False),
                            (umem.Pool(umem.Pool(umem.Host())), False), (umem.Stats(umem.Host()), True),
                            (umem.Pool(umem.Stats(umem.Host())), True)):
        with umem.use_in_numpy(place):
            assert lets_others_run(work, 10 if releases else 0.5) == releases, place.stack


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="this Python has no GIL")
def test_a_pool_writes_many_zeros_without_the_gil():
    with umem.use_in_numpy(umem.Pool(umem.Host())):
        np.ones(1 << 20, "u1")
        assert lets_others_run(lambda: np.zeros(1 << 20, "u1"))


def test_no_table_of_sizes_is_kept_where_the_place_finds_its_blocks():
    class Figures(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in
                    "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

    figures = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if not figures:
        pytest.skip("this C library does not count what malloc has given")
    figures.restype = Figures

    def taken(count):
        """Bytes of malloc for each array."""
        before = figures().uordblks
        arrays = [np.empty(16, "u1") for _ in range(count)]
        assert len(arrays) == count
        return (figures().uordblks - before) / count

    own = taken(20000)
    for place, keeps in (umem.Pool(umem.Host()), False), (umem.Stats(umem.Pool(umem.Host())), True):
        with umem.use_in_numpy(place):
            taken(20000)  # what grows once has grown
            saved = own - taken(20000)  # a block of 16 bytes takes 32 of malloc, which the pool does not
        assert (saved < 24) == keeps, (place.stack, saved)


def test_a_machine_without_numpy_gets_a_clear_message(run_python):
    assert "NumPy is not installed: pip install numpy" in run_python(
        "import sys; sys.modules['numpy'] = None\n"
        "import umem\n"
        "try: umem.use_in_numpy(umem.Host())\n"
        "except umem.NotImplementedError as error: print(error)\n")
