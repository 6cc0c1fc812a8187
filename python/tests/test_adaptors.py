"""Limit, Stats, Track, Debug, Log, Fault, Guarded, and the figures of pools."""
import ctypes
import os
import subprocess
import sys

import pytest

import umem


def test_limit():
    limit = umem.Limit(umem.Host(), "1K")
    array = umem.zeros(64, place=limit)
    used = limit.used
    assert 512 <= used <= 1024
    with pytest.raises(umem.MemoryError):
        umem.zeros(100, place=limit)
    del array
    assert limit.used == 0


def test_stats_and_scopes():
    stats = umem.Stats(umem.Host())
    kept = umem.zeros(10, place=stats)
    with stats.scope() as outer:
        with stats.scope() as inner:
            umem.zeros(100, place=stats)
        more = umem.zeros(10, place=stats)
    assert inner["total_count"] == 1 and inner["current_bytes"] == 0 and inner["peak_bytes"] >= 800
    assert outer["total_count"] == 2 and outer["current_count"] == 1
    figures = stats.figures
    assert figures["total_count"] == 3 and figures["current_count"] == 2
    stats.reset()
    assert stats.figures["total_count"] == 0 and stats.figures["peak_count"] == 2
    with pytest.raises(KeyError), stats.scope() as failed:
        raise KeyError
    assert failed["total_count"] == 0 and kept.shape == more.shape


def test_track_knows_every_block():
    track = umem.Track(umem.Host(), frames=4)
    arrays = [umem.zeros(10 * i, "uint8", track) for i in range(1, 4)]
    blocks = track.blocks
    assert len(blocks) == 3 and sorted(b["number"] for b in blocks) == [1, 2, 3]
    assert all(0 < len(b["trace"]) <= 4 for b in blocks)
    found = track.find(arrays[1].address + 5)
    assert found["address"] <= arrays[1].address < found["address"] + found["nbytes"]
    assert track.find(8) is None
    del arrays
    assert track.blocks == []
    track.close()


def test_track_refuses_what_it_does_not_know():
    with pytest.raises(umem.TypeError):
        umem._core._track_blocks(umem.Host())


def test_debug_finds_wrong_writes():
    debug = umem.Debug(umem.Host(), guard=64)
    array = umem.zeros(16, "uint8", debug)
    debug.check()
    ctypes.memset(array.address + 16, 7, 1)
    with pytest.raises(umem.IndexError, match="16 bytes|offset|behind"):
        debug.check()
    debug.check()  # reported already
    assert debug.figures["findings"] == 1 and debug.figures["live_blocks"] == 1


def test_log_writes_a_file(tmp_path):
    with umem.Log(umem.Host(), tmp_path / "a.log", max="64K") as log:
        assert log.number == 1 and umem.Log(umem.Host(), tmp_path / "a.log").number == 2
        umem.zeros(10, place=log)
    assert 0 < os.path.getsize(tmp_path / "a.log") <= 65536
    with umem.Log(umem.Host(), tmp_path / "b.log", each_process=True):
        assert (tmp_path / f"b.log.{os.getpid()}").exists() and not (tmp_path / "b.log").exists()


def test_fault_fails_when_it_shall():
    fault = umem.Fault(umem.Host(), nth=2, times=2)
    umem.empty(1, place=fault)
    for _ in range(2):
        with pytest.raises(umem.MemoryError):
            umem.empty(1, place=fault)
    umem.empty(1, place=fault)
    assert fault.failures == 2
    fault.fail_next()
    with pytest.raises(umem.MemoryError):
        umem.empty(1, place=fault)
    assert fault.failures == 1 and fault.count("alloc", "calloc", "aligned") == 1 and fault.count() >= 1
    with pytest.raises(umem.ValueError, match="no call 'x'"):
        fault.count("x")


@pytest.mark.parametrize("status, error", [("IOError", umem.OSError), ("ValueError", umem.ValueError),
                                           ("NotSupportedError", umem.NotSupportedError),
                                           ("CancelledError", umem.CancelledError)])
def test_faults_of_each_status(status, error):
    with pytest.raises(error):
        umem.empty(1, place=umem.Fault(umem.Host(), status=status, share=1))


TRAPS = """
import sys
import umem
place = umem.Guarded(umem.Host())
array = umem.zeros(10, "uint8", place)
x = array.__array__()
x[0] = 5
place.protect(array, sys.argv[1])
umem.Guarded.report()
print(2 * array.tolist()[0], flush=True)  # umem's own copies work
y = int(x[0])
print("read", flush=True)
x[0] = 1
print("written", flush=True)
"""


@pytest.mark.parametrize("access, printed", [("closed", "10"), ("read", "10 read"), ("write", "10 read written")])
def test_closed_memory_traps(access, printed):
    pytest.importorskip("numpy")
    run = subprocess.run([sys.executable, "-c", TRAPS, access], capture_output=True, text=True)
    assert run.stdout.split() == printed.split(), run.stderr
    assert (run.returncode == 0) == (access == "write")
    assert ("umem: SIGSEGV at byte 0 of the block of 10 bytes" in run.stderr) == (access != "write")


def test_access_of_an_array():
    place = umem.Guarded(umem.Host())
    array = umem.full(100, 7, place=place)
    assert place.access(array) == "write"
    place.protect(array, "closed")
    assert place.access(array) == "closed" and array.tolist()[99] == 7
    assert array.to(umem.host()).tolist() == [7] * 100
    place.protect(array, "read")
    assert place.access(array) == "read"
    with pytest.raises(umem.ValueError, match="no access 'open'"):
        place.protect(array, "open")
    with pytest.raises(umem.ValueError, match="has .* bytes"):
        place.protect(array[:10], "closed")
    with pytest.raises(umem.ValueError, match="no live block"):
        place.access(array[1:])
    over_file = umem.Guarded(umem.File())
    there = umem.zeros(3, place=over_file)
    over_file.protect(there, "closed")
    assert over_file.access(there) == "write"


def test_figures_of_pools():
    pool = umem.Pool(umem.Host(), initial="2M", max="4M")
    array = umem.zeros(1000, place=pool)
    figures = pool.figures
    assert figures["reserved"] >= 2 << 20 and figures["blocks"] == 1 and figures["used"] >= 8000
    assert 0 <= figures["fragmentation"] <= 1 and figures["factor"] >= 1
    assert sum(region["nbytes"] for region in pool.regions) == figures["reserved"]
    assert all(region["used"] + region["largest_free"] <= region["nbytes"] for region in pool.regions)
    with pytest.raises(umem.MemoryError):
        umem.empty(8 << 20, place=pool)
    fixed = umem.Fixed(umem.Host(), 4096)
    block = umem.empty(10, place=fixed)
    assert fixed.figures["block_size"] == 4096 and fixed.figures["blocks"] == 1
    assert array.shape != block.shape


def test_a_failing_free_is_reported(monkeypatch):
    import sys

    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: seen.append(event.exc_value))
    fault = umem.Fault(umem.Host(), calls="free", status="IOError", nth=1)
    array = umem.empty(3, place=fault)
    del array
    assert [type(error) for error in seen] == [umem.OSError]


def test_sizes_in_percent_are_of_what_is_free_below():
    outer = umem.Limit(umem.Limit(umem.Host(), "1M"), "50%")
    umem.empty(500_000, "u1", outer)
    with pytest.raises(umem.MemoryError, match="of the 524288 that the limit allows"):
        umem.empty(600_000, "u1", outer)
    pool = umem.Pool(umem.Limit(umem.Host(), "64M"), initial="50%", memory="chunks")
    assert pool.figures["reserved"] == 32 << 20
    for wrong in "0%", "101%", "5.5%", "%":
        with pytest.raises(umem.ValueError, match="expected 1% to 100%"):
            umem.Limit(umem.Host(), wrong)
    with pytest.raises(umem.ValueError, match="what is free in the place below, and shm has none"):
        umem.Shm(size="50%")
