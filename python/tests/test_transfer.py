"""Copies with progress, the ledger, transfers."""
import asyncio
import gc
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

import pytest

import umem

numpy = pytest.importorskip("numpy")


# ---- copies ----

def test_progress_is_called_from_none_to_all(place):
    src, dst = umem.arange(1000, dtype="int32"), umem.empty(1000, "int32", place)
    calls = []
    found = umem.copy(dst, src, progress=lambda done, total: calls.append((done, total)), step=1000)
    assert calls[0] == (0, 4000) and calls[-1] == (4000, 4000) and calls == sorted(calls) and len(calls) >= 4
    assert dst.tolist() == src.tolist()
    assert found["bytes"] == 4000 and found["seconds"] > 0 and "->" in found["route"]
    assert sum(leg["bytes"] for leg in found["legs"]) >= 4000
    assert {"src", "dst", "way", "workers", "calls", "seconds"} < set(found["legs"][0])


def test_a_short_copy_in_ram_says_the_same_as_a_watched_one():
    src, dst = umem.arange(5), umem.zeros(5, "int64")
    short, watched = umem.copy(dst, src), umem.copy(dst, src, progress=lambda done, total: True)
    assert dst.tolist() == src.tolist() and short["seconds"] > 0
    for one in short, watched:
        assert dict(one) == {**one} == dict(one.items()) and list(one) == list(one.keys()) and len(one) == 4
        assert "legs" in one and "x" not in one and one.get("x", 3) == 3 and repr(one) == repr(dict(one))
        assert isinstance(one, Mapping)
        match one:
            case {"bytes": 40}:
                pass
            case _:
                pytest.fail("a route matches no pattern of a mapping")
        assert one == dict(one) and one != {} and one["bytes"] == 40 and one["route"] == "host -> host"
        with pytest.raises(KeyError):
            one["x"]
    without = [{**leg, "seconds": 0} for leg in short["legs"]]
    assert without == [{**leg, "seconds": 0, "calls": 1} for leg in watched["legs"]]
    with umem.ledger.on():
        umem.ledger.clear()
        umem.copy(dst, src)
        assert umem.ledger.read()["host", "host", "host -> host"]["bytes"] == 40
    assert umem.copy(umem.zeros(0), umem.zeros(0))["legs"] == []


def test_a_copy_of_arrays_with_gaps(place):
    src, dst = umem.arange(24).reshape(4, 6), umem.zeros((4, 3), "int64", place)
    calls = []
    umem.copy(dst, src[:, ::2], progress=lambda *args: calls.append(args))
    assert dst.tolist() == src[:, ::2].tolist() and calls == [(0, 96), (96, 96)]


def test_many_pieces_are_copied_in_one_call(place):
    src, dst = umem.arange(60).reshape(10, 6), umem.zeros((10, 6), "int64", place)
    wide = umem.zeros((10, 12), "int64", place)
    rows = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    found = umem.copy_many([(dst[i], src[row]) for i, row in enumerate(rows)] + [(wide[:, 1::2], src)])
    assert dst.tolist() == [src[row].tolist() for row in rows]
    assert wide[:, 1::2].tolist() == src.tolist() and not any(sum(wide[:, ::2].tolist(), []))
    assert found["bytes"] == 960 and "->" in found["route"]
    back = umem.zeros((10, 6), "int64")
    umem.copy_many((back[row], dst[i]) for i, row in enumerate(rows))
    assert back.tolist() == src.tolist()


def test_a_list_that_makes_no_sense_changes_nothing(place):
    src, dst = umem.arange(10), umem.zeros(10, "int64", place)
    with pytest.raises(umem.ValueError, match="item 1: its target has bytes of the target of item 0"):
        umem.copy_many([(dst[:4], src[:4]), (dst[3:7], src[:4])])
    with pytest.raises(umem.ValueError, match=r"umem.copy_many: .*the destination has shape \(3,\), expected \(4,\)"):
        umem.copy_many([(dst[:4], src[:4]), (dst[4:7], src[:4])])
    with pytest.raises(umem.TypeError):
        umem.copy_many([(dst[:4], src[:4].astype("int8"))])
    with pytest.raises(TypeError):
        umem.copy_many([([1, 2, 3, 4], src[:4])])
    assert not any(dst.tolist())
    assert umem.copy_many([])["bytes"] == 0


def test_a_list_says_how_far_it_is(place):
    src, dst = umem.arange(1000), umem.zeros(1000, "int64", place)
    pairs = [(dst[i:i + 100], src[i:i + 100]) for i in range(0, 1000, 100)]
    seen = []
    umem.copy_many(pairs, progress=lambda done, total: seen.append((done, total)), step=800)
    assert seen == [(done, 8000) for done in range(0, 8001, 800)] and dst.tolist() == src.tolist()
    dst[:] = 0
    with pytest.raises(umem.CancelledError):
        umem.copy_many(pairs, progress=lambda done, total: done < 2400, step=800)
    assert dst.tolist() == [*range(300)] + [0] * 700

    def fail(done, total):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        umem.copy_many(pairs, progress=fail)


def test_a_bar_is_moved():
    class Bar:
        total, done, calls = None, 0, 0

        def update(self, n):
            self.done += n
            self.calls += 1

    bar = Bar()
    umem.copy(umem.empty(1000), umem.zeros(1000), progress=bar, step="1K")
    assert (bar.total, bar.done) == (8000, 8000) and bar.calls >= 8


def test_tqdm_shows_a_copy():
    tqdm = pytest.importorskip("tqdm").tqdm
    text = io.StringIO()
    with tqdm(unit="B", file=text, mininterval=0) as bar:
        umem.copy(umem.empty(1000), umem.zeros(1000), progress=bar, step=1000)
    assert "8000/8000" in text.getvalue() and (bar.n, bar.total) == (8000, 8000)


def test_false_cancels():
    dst = umem.zeros(1000, "uint8")
    with pytest.raises(umem.CancelledError) as caught:
        umem.copy(dst, umem.full(1000, 1, "uint8"), progress=lambda done, total: done < 300, step=100)
    assert caught.value.status == "CancelledError"
    assert dst.tolist() == [1] * 300 + [0] * 700


def test_an_exception_of_progress_arrives():
    dst = umem.zeros(1000, "uint8")

    def fail(done, total):
        if done >= 200:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        umem.copy(dst, umem.full(1000, 1, "uint8"), progress=fail, step=100)
    assert sum(dst.tolist()) == 200
    umem.copy(dst, umem.full(1000, 1, "uint8"))
    assert sum(dst.tolist()) == 1000


@pytest.fixture
def ctrl_c():
    """Python's own handler: processes in the background, as of a script, begin with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_soon(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_ctrl_c_cancels_a_long_list(ctrl_c):
    src, dst = umem.full(1 << 20, 1, "uint8"), umem.zeros(1 << 20, "uint8")
    seen = []

    def progress(done, total):
        seen.append(done)
        if done == 4096:
            os.kill(os.getpid(), signal.SIGINT)

    pairs = [(dst[i:i + 4096], src[i:i + 4096]) for i in range(0, 1 << 20, 4096)]
    with pytest.raises(KeyboardInterrupt):
        umem.copy_many(pairs, progress=progress, step=4096)
    assert seen[-1] <= 8192 and sum(dst.tolist()) <= 12288


def test_ctrl_c_cancels_a_long_copy(ctrl_c):
    dst = umem.zeros(1 << 20, "uint8")
    seen = []
    with pytest.raises(KeyboardInterrupt):
        timer = interrupt_soon(0.05)
        umem.copy(dst, umem.full(1 << 20, 1, "uint8"), step=4096,
                  progress=lambda done, total: seen.append(done) or time.sleep(0.005))
    timer.join()
    assert 0 < seen[-1] < 1 << 20
    # The interrupt may come before the call that tells of the last step has noted it.
    assert sum(memoryview(dst)) - seen[-1] in (0, 4096)


def test_ctrl_c_cancels_assignments(ctrl_c):
    """A handler that is due raises before the next 64 MiB."""
    src, dst = umem.empty(160 << 20, "uint8"), umem.empty(160 << 20, "uint8")
    src.fill(1)
    with pytest.raises(KeyboardInterrupt):
        timer = interrupt_soon(0.01)
        for _ in range(1000):
            dst[...] = src
    timer.join()
    del timer
    dst[...] = src
    assert dst[-1].item() == 1


@pytest.mark.parametrize("use, error", [
    (lambda a: umem.copy(a, umem.zeros(3, "int8")), umem.TypeError), (lambda a: umem.copy(a, [1]), umem.ValueError),
    (lambda a: umem.copy(a, umem.zeros(4)), umem.ValueError), (lambda a: umem.copy(a, a.copy(), step="x"), ValueError),
])
def test_wrong_copies(use, error):
    with pytest.raises(error):
        use(umem.zeros(3))


# ---- the ledger ----

def test_the_ledger_is_a_dict():
    umem.ledger.clear()
    src, dst = umem.zeros(1000), umem.zeros(1000, place=umem.File())
    with umem.ledger.on():
        assert umem.ledger.is_on()
        dst[...] = src
        dst[...] = src
    dst[...] = src
    assert not umem.ledger.is_on()
    (key, record), = umem.ledger.read().items()
    assert key[:2] == ("host", "file") and "->" in key[2]
    assert (record["calls"], record["failed"], record["bytes"]) == (2, 0, 16000) and record["seconds"] > 0
    umem.ledger.clear()
    assert umem.ledger.read() == {}


# ---- copies that go on ----

def pair_on(place, count=16000):
    return umem.arange(count, dtype="int32"), umem.zeros(count, "int32", place)


def test_a_started_copy_ends(place):
    src, dst = pair_on(place)
    transfer = umem.start(dst, src)
    assert transfer.wait() and transfer.done and transfer.progress == (64000, 64000)
    assert dst.tolist() == src.tolist()
    assert transfer.wait(0)
    for copied in (umem.start(dst[:0], src[:0]), umem.start(dst[::2], src[1::2])):
        with copied:
            pass
        assert copied.done
    assert dst[::2].tolist() == src[1::2].tolist()


def test_a_started_list_ends(place):
    src, dst = umem.arange(60).reshape(10, 6), umem.zeros((10, 6), "int64", place)
    rows = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    transfer = umem.start_many((dst[i], src[row]) for i, row in enumerate(rows))
    assert transfer.wait() and transfer.done and transfer.progress == (480, 480)
    assert dst.tolist() == [src[row].tolist() for row in rows]
    with umem.start_many([]) as none:
        assert none.progress == (0, 0)
    with umem.start_many([(numpy.empty((10, 6), "int64"), src), (dst[:, ::2], src[:, 1::2])]):
        pass
    assert dst[:, ::2].tolist() == src[:, 1::2].tolist()
    with pytest.raises(umem.ValueError, match="item 1: its target has bytes of the target of item 0"):
        umem.start_many([(dst[0], src[0]), (dst[0], src[1])])
    with pytest.raises(umem.ValueError, match="umem.start_many: .*shape"):
        umem.start_many([(dst[0], src)])


def test_arrays_live_as_long_as_their_list():
    with umem.File() as place:
        transfers = [umem.start_many([(umem.zeros(50000, "int32", place), umem.full(50000, i, "int32")) for i in range(5)])
                     for _ in range(4)]
        assert all(transfer.wait() for transfer in transfers)

    async def load(dst):
        await umem.start_many([(there, umem.full(300000, 7.0)) for there in dst])

    dst = [umem.zeros(300000) for _ in range(3)]
    asyncio.run(load(dst))
    assert all((there.numpy() == 7).all() for there in dst)


def test_arrays_live_as_long_as_their_transfer():
    with umem.File() as place:
        transfers = [umem.start(umem.zeros(50000, "int32", place), umem.full(50000, i, "int32")) for i in range(20)]
        assert all(transfer.wait() for transfer in transfers)
    transfer = umem.start(umem.empty(100000), umem.zeros(100000))
    assert "800000 bytes" in repr(transfer)


def test_a_start_is_checked_at_once():
    with pytest.raises(umem.ValueError, match="umem.start"):
        umem.start(umem.zeros(3), umem.zeros(4))
    with pytest.raises(umem.TypeError, match="umem.start"):
        umem.start(umem.zeros(3), umem.zeros(3, "int32"))


def test_times_are_numbers():
    with umem.start(umem.empty(200000), umem.zeros(200000)) as copy:
        for time in "1", [], object():
            with pytest.raises(TypeError, match="real number"):
                copy.wait(time)
        assert copy.wait(numpy.float32(60)) and copy.wait(60) and copy.wait(-1) and copy.wait(float("inf"))


@pytest.mark.parametrize("function", [umem.copy_many, umem.start_many])
def test_a_pair_is_two_arrays(function):
    a, b = umem.zeros(3), umem.zeros(3)
    for pair in (a,), (a, b, b):
        with pytest.raises(ValueError, match="unpack"):
            function([pair])


def failing_transfer(tmp_path):
    place = umem.File(tmp_path / "short.bin", "w+")
    src = umem.zeros(200000, "uint8", place)
    os.truncate(tmp_path / "short.bin", 1000)
    return umem.start(umem.empty(200000, "uint8"), src)


def test_a_failure_is_raised_by_wait(tmp_path):
    transfer = failing_transfer(tmp_path)
    for _ in range(2):
        with pytest.raises(umem.OSError, match="umem_start: .*short.bin"):
            transfer.wait()
    with pytest.raises(umem.OSError), failing_transfer(tmp_path):
        pass


def test_a_failure_that_no_one_waits_for_is_unraisable(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: seen.append(args.exc_type))
    transfer = failing_transfer(tmp_path)
    while not transfer.done:
        time.sleep(0.001)
    del transfer
    gc.collect()
    assert seen == [umem.OSError]


def test_a_cancelled_transfer_says_what_is_done():
    src, dst = umem.full(1 << 26, 3, "uint8"), umem.zeros(1 << 26, "uint8")
    transfer = umem.start(dst, src)
    transfer.cancel()
    try:
        transfer.wait()
    except umem.CancelledError:
        assert transfer.progress[0] < 1 << 26
    done = transfer.progress[0]
    assert dst.numpy()[:done].all()


def test_transfers_are_awaited():
    async def copies():
        src = umem.arange(300000)
        with umem.File() as place:
            dst = [umem.zeros(300000, "int64", place) for _ in range(8)]
            transfers = [umem.start(there, src) for there in dst]
            await asyncio.gather(*(asyncio.ensure_future(t) for t in transfers), *(asyncio.ensure_future(t) for t in transfers))
            assert all(there.tolist() == src.tolist() for there in dst[::7])
            async with umem.start(dst[0], umem.zeros(300000, "int64")) as transfer:
                assert transfer.progress[1] == 2400000
            assert transfer.done and not dst[0].numpy(copy=True).any()

    asyncio.run(copies())


def test_an_awaited_failure_is_raised(tmp_path):
    async def fail():
        await failing_transfer(tmp_path)

    with pytest.raises(umem.OSError):
        asyncio.run(fail())


def test_a_task_that_is_cancelled_cancels_its_copy():
    async def run():
        src, dst = umem.full(1 << 26, 3, "uint8"), umem.zeros(1 << 26, "uint8")
        transfer = umem.start(dst, src)
        task = asyncio.ensure_future(transfer)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises((asyncio.CancelledError, umem.CancelledError)):
            await task
            raise umem.CancelledError("it was quicker")
        assert transfer.done
        with pytest.raises(KeyError):
            async with umem.start(dst, src) as transfer:
                raise KeyError
        assert transfer.done

    asyncio.run(run())


def test_a_wait_is_interrupted_by_ctrl_c():
    script = """
import os, signal, threading, umem
signal.signal(signal.SIGALRM, signal.default_int_handler)
src, dst = umem.zeros(1 << 28, "uint8"), umem.zeros(1 << 28, "uint8")
transfers = [umem.start(dst, src) for _ in range(40)]
signal.setitimer(signal.ITIMER_REAL, 0.01)
try:
    for transfer in transfers:
        transfer.wait()
except KeyboardInterrupt:
    print("interrupted")
for transfer in transfers:
    transfer.cancel()
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert found.stdout == "interrupted\n" and not found.stderr, found.stderr


def test_copy_says_what_it_expects():
    array, other = umem.zeros(3), umem.ones(3)
    wrong = ((), {}), ((array,), {}), ((array, other, None), {}), ((array, other), {"src": other})
    for arguments, named in (*wrong, ((array, other), {"steps": 1})):
        with pytest.raises(umem.TypeError, match=r"expects \(dst, src, \*, progress=None, step=0\)"):
            umem.copy(*arguments, **named)
    assert umem.copy(dst=array, src=other)["bytes"] == 24 and array.tolist() == [1, 1, 1]
    with pytest.raises(umem.ValueError):
        umem.copy(array, umem.zeros(2))
    with pytest.raises(umem.TypeError):
        umem.copy(array, umem.zeros(3, "int32"))
    other.read_only = True
    with pytest.raises(umem.NotSupportedError, match="read-only"):
        umem.copy(other, array)


def test_lists_in_flight_are_complete_when_they_have_ended(tmp_path):
    """A run that one server began goes on where it was: its bytes were counted twice, and the last item was left out."""
    numpy = pytest.importorskip("numpy")
    rows, row = 32, 1 << 20
    for k in range(rows):
        numpy.full(row, k + 1, "f4").tofile(tmp_path / str(k))
    for _ in range(3):
        there = umem.zeros((rows, row), "f4")
        pairs = [(there[k], umem.at(umem.File(tmp_path / str(k), "r"), 0, row, "f4")) for k in range(rows)]
        going = [umem.start_many(pairs[k:k + 8]) for k in range(0, rows, 8)]
        for transfer in going:
            transfer.wait()
        assert (there.numpy() == numpy.arange(1, rows + 1, dtype="f4")[:, None]).all()
