"""Threads that share places, arrays and callbacks, with the GIL and without it."""
import sys
import sysconfig
import threading

import pytest

import umem

# Without the GIL threads meet more rarely at the same line: they get more chances.
HAS_GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")
ROUNDS = 1 if HAS_GIL else 5


def run_all(functions):
    errors = []

    def guarded(function):
        try:
            together.wait(60)
            function()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    together = threading.Barrier(len(functions))
    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors and not any(thread.is_alive() for thread in threads), errors


def test_threads_share_a_place(place):
    def use(number):
        for _ in range(30):
            array = umem.full((20, 5), number, "int32", place)
            assert array.copy().tolist() == [[number] * 5] * 20
            assert array[3:5].T.tolist() == [[number] * 2] * 5

    run_all([lambda number=number: use(number) for number in range(4)])


def test_an_array_is_released_under_another_thread():
    """The copy ends with the old elements or with ValueError, never with other memory."""
    for _ in range(30):
        src, dst = umem.full(1 << 19, 1.0), umem.empty(1 << 19)

        def copy():
            try:
                for _ in range(3):
                    dst[...] = src
            except umem.ValueError:
                pass

        run_all([copy, copy, src.release])
        assert src.released


def test_a_place_is_closed_under_another_thread():
    for _ in range(30):
        pool = umem.Pool(umem.Host())

        def use():
            try:
                for _ in range(100):
                    umem.full(1000, 2, place=pool).copy().tolist()
            except umem.ValueError:
                pass

        run_all([use, use, pool.close])
        assert pool.closed


def test_exceptions_stay_in_their_threads():
    limit = umem.Limit(umem.Host(), 1000)

    def fail():
        for _ in range(200):
            with pytest.raises(umem.MemoryError, match="limit"):
                umem.empty(1000, place=limit)

    def succeed():
        for _ in range(200):
            umem.zeros(10)

    run_all([fail, fail, succeed, succeed])


def test_the_gil_stays_off():
    if HAS_GIL:
        pytest.skip("this Python has a GIL")
    assert not sys._is_gil_enabled()


def test_numbers_are_made_while_the_place_closes():
    for _ in range(20):
        pool = umem.Pool(umem.Host())

        def make():
            try:
                for _ in range(20):
                    umem.arange(200000, place=pool)
            except umem.ValueError:
                pass

        run_all([make, make, pool.close])


def test_threads_exchange_arrays_of_a_place_that_closes():
    """Whoever has the memory keeps it; all others get ValueError."""
    numpy = pytest.importorskip("numpy")
    for _ in range(10 * ROUNDS):
        place = umem.Pool(umem.Host())

        def exchange():
            found = []
            try:
                for number in range(50):
                    array = umem.full((40, 3), number, "float64", place)
                    found.append((number, numpy.from_dlpack(array[1:].astype("float32"))))
                    found.append((number, numpy.asarray(memoryview(array.T))))
                    found.append((number, umem.from_dlpack(found[-1][1]).numpy()))
                    assert array.place is place and array.dtype == "float64" and array.strides == (24, 8)
            except umem.ValueError:
                pass
            for number, values in found:
                assert (values == number).all()

        run_all([exchange, exchange, exchange, place.close])
        assert place.closed


def test_threads_use_one_array_that_is_released():
    for _ in range(40 * ROUNDS):
        array = umem.full((30, 4), 2, "int32")

        def use():
            try:
                for _ in range(30):
                    assert array.shape == (30, 4) and array.nbytes == 480 and len(array) == 30
                    assert array[3, 1].item() == 2
                    array.fill(2)
                    assert memoryview(array.reshape(120))[7] == 2
                    array.__dlpack__(max_version=(1, 0))
            except umem.ValueError:
                assert array.released

        def release():
            while not array.released:
                try:
                    array.release()
                except umem.NotSupportedError:  # a buffer or a tensor
                    pass

        run_all([use, use, use, release])


def test_one_thread_has_the_lock():
    array = umem.zeros(1, "int64")
    taken = [0] * 4

    def add(number):
        for _ in range(300 * ROUNDS):
            try:
                with array.lock() as inner:
                    inner[0] = inner[0].item() + 1
                    taken[number] += 1
            except umem.RuntimeError:
                pass

    run_all([lambda number=number: add(number) for number in range(4)])
    assert array[0].item() == sum(taken) >= 1


def test_one_thread_takes_a_capsule():
    class Producer:
        def __dlpack__(self, **options):
            return capsule

    for _ in range(100 * ROUNDS):
        capsule, taken = umem.full(5, 3).__dlpack__(max_version=(1, 0)), []

        def take():
            try:
                taken.append(umem.from_dlpack(Producer()))
            except umem.TypeError:
                pass

        run_all([take] * 4)
        assert len(taken) == 1 and taken[0].tolist() == [3] * 5


def test_the_failure_hook_changes_while_calls_fail():
    limit, seen = umem.Limit(umem.Host(), 100), []

    def fail():
        for _ in range(300 * ROUNDS):
            with pytest.raises(umem.MemoryError):
                umem.empty(1000, place=limit)

    def change():
        for _ in range(300 * ROUNDS):
            umem.set_failure_hook(lambda status, message, kind: seen.append(status))
            umem.set_failure_hook(None)

    run_all([fail, fail, change])
    umem.set_failure_hook(None)
    assert set(seen) <= {"MemoryError"}


def test_a_callback_runs_while_its_place_goes():
    """An array keeps the context; the place, which has the callback, may go first."""
    for _ in range(50 * ROUNDS):
        calls = []
        place = umem.Retry(umem.Limit(umem.Host(), 4000), lambda *_: bool(calls.append(1)))
        pool = umem.Pool(place)

        def allocate():
            for _ in range(5):
                with pytest.raises((umem.MemoryError, umem.ValueError)):
                    umem.empty(100000, place=pool)

        run_all([allocate, allocate, place.close])


def test_threads_share_blocks():
    source = umem.arange(20000).reshape(2000, 10)
    for closes in (False, True):
        blocks, seen = umem.blocks(source, umem.Host(), rows=10), []

        def work():
            while True:
                try:
                    seen.append(next(blocks).number)
                except StopIteration:
                    return
                except (umem.RuntimeError, umem.ValueError):  # another thread waits for a block, or has ended this one
                    pass

        run_all([work, work, work] + [blocks.close] * closes)
        assert len(seen) == len(set(seen)), "a block came twice"
        blocks.close()


def test_all_threads_get_the_same_host(run_python):
    program = ("import threading, umem\n"
               "together, found = threading.Barrier(8), []\n"
               "def ask():\n"
               "    together.wait()\n"
               "    found.append(umem.host())\n"
               "threads = [threading.Thread(target=ask) for _ in range(8)]\n"
               "for thread in threads: thread.start()\n"
               "for thread in threads: thread.join()\n"
               "print(len(set(map(id, found))), len(found))\n")
    assert run_python(program).split() == ["1", "8"]


SHORT_OF_ADDRESSES = """
import os, resource, sys, umem
step, tries = 16 << 10, 24
stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
stack = 8 << 20 if stack == resource.RLIM_INFINITY else stack
umem.set_threads(3)
source, target = umem.full(4 << 20, 1.5), umem.zeros(4 << 20)
for i in range(2 * tries):
    child = os.fork()
    if not child:
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + (1 + i // tries) * (stack + 4096) + i % tries * step
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        umem.set_threads(3)
        target[...] = source
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        sys.exit(f"{i}: {status:#x}")
"""


def test_a_thread_of_umem_without_memory_is_done_without(run_python):
    run_python(SHORT_OF_ADDRESSES)
