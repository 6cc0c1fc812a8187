"""The real RMM, cuda.core, CuPy and PyTorch as places of umem, under Stats, Limit and Log; RMM's log and umem's agree on a
trace.

    python test/gpu/external.py FOLDER

FOLDER gets the logs. Prints "ok - ..." or "not ok - ..." for each check, "skipped - ..." for CuPy and PyTorch where they are
not installed, and figures.
"""
import csv
import gc
import importlib
import random
import sys
import time
from pathlib import Path

import rmm
import umem
from cuda.core import Device

folder = Path(sys.argv[1])
failed = 0


def check(name, good, detail=""):
    global failed
    failed += not good
    print(f"{'ok' if good else 'not ok'} - {name}{f': {detail}' if detail and not good else ''}", flush=True)


def use(name, place):
    """Arrays on the place, under a limit and statistics, and out of a pool of umem."""
    stats = umem.Stats(place)
    limit = umem.Limit(stats, "16M")
    array = umem.arange(100_000, dtype="f8", place=limit)
    check(f"{name}: bytes", array.numpy(copy=True).sum() == 4999950000)
    check(f"{name}: figures", stats.figures["current_bytes"] == 800_000, stats.figures)
    try:
        umem.empty(1 << 25, "u1", limit)
        check(f"{name}: the limit", False)
    except umem.MemoryError as error:
        check(f"{name}: the limit", "the limit allows" in str(error), error)
    pool = umem.Pool(limit, initial="1M")
    arrays = [umem.zeros(1000, "f4", pool) for _ in range(100)]
    check(f"{name}: a pool", arrays[50].numpy(copy=True).sum() == 0)
    del arrays, array
    pool.close()
    gc.collect()
    check(f"{name}: nothing is left", stats.figures["current_count"] == 0, stats.figures)
    try:
        umem.empty(1 << 50, "u1", place)
        check(f"{name}: out of memory", False, "a petabyte was allocated")
    except Exception as error:  # of the library, as it is
        check(f"{name}: out of memory", "emory" in f"{type(error).__name__} {error}", repr(error))


# ---- RMM ----

Device(0).set_current()
# [place_of]
cuda = rmm.mr.CudaMemoryResource()
pool = rmm.mr.PoolMemoryResource(cuda, initial_pool_size=1 << 26)
queue = umem.CudaAsync(0)
place = umem.place_of(pool, queue)  # RMM's pool, in the order of the queue
# [/place_of]
use("RMM's pool on a CudaAsync", place)
for name in "CudaMemoryResource", "CudaAsyncMemoryResource", "ManagedMemoryResource", "PinnedHostMemoryResource":
    use(f"RMM's {name}", umem.place_of(getattr(rmm.mr, name)()))
    if name != "PinnedHostMemoryResource":
        use(f"RMM's {name} on a CudaAsync", umem.place_of(getattr(rmm.mr, name)(), queue))

# ---- cuda.core ----

use("cuda.core's default resource", umem.place_of(Device(0).memory_resource))
use("cuda.core's default resource on a CudaAsync", umem.place_of(Device(0).memory_resource, queue))


# ---- CuPy and PyTorch ----

def module(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"skipped - {name}: {error}")
        return None


def use_of(name, resource, used):
    """As use, in the default order and in that of a queue. used: bytes in use, as the library counts them."""
    before = used()
    for text, upstream in ("", None), (" on a CudaAsync", queue):
        place = umem.place_of(resource, upstream)
        array = umem.zeros(100_000, "f8", place)
        check(f"{name}{text}: the memory is the library's", used() - before >= 800_000, (before, used()))
        del array
        use(name + text, place)
        check(f"{name}{text}: the library has all of it back", used() == before, (before, used()))


cupy = module("cupy")
if cupy:
    their_pool = cupy.cuda.MemoryPool()
    use_of("CuPy's pool", their_pool, their_pool.used_bytes)
    use_of("CuPy's malloc of a pool", their_pool.malloc, their_pool.used_bytes)
    async_pool = cupy.cuda.MemoryAsyncPool()

    def used_now():
        cupy.cuda.Device().synchronize()  # frees are in the order of streams
        return async_pool.used_bytes()

    use_of("CuPy's asynchronous pool", async_pool, used_now)
    array = umem.arange(1000, dtype="f8", place=umem.place_of(their_pool))
    check("CuPy's kernels work on its memory under umem", float((cupy.from_dlpack(array) * 2).sum()) == 999_000)

torch = module("torch")
if torch and torch.cuda.is_available():
    use_of("PyTorch's allocator", torch.cuda, torch.cuda.memory_allocated)
    use_of("a MemPool of PyTorch", torch.cuda.MemPool(), torch.cuda.memory_allocated)
    array = umem.arange(1000, dtype="f8", place=umem.place_of(torch.cuda))
    check("PyTorch's kernels work on its memory under umem", float((torch.from_dlpack(array) * 2).sum()) == 999_000)
    stream = torch.cuda.Stream()
    mine = umem.place_of(torch.cuda, umem.CudaAsync(0, stream=stream.cuda_stream))
    with torch.cuda.stream(stream):
        arrays = [umem.full(1 << 20, float(n), "f4", mine) for n in range(8)]
        sums = [float(torch.from_dlpack(array).sum()) for array in arrays]
    check("and on a stream of PyTorch", sums == [float(n << 20) for n in range(8)], sums)
    del array, arrays


# ---- the logs agree ----

def rows(path):
    """(action, address, size, whether on the legacy stream) of RMM's columns."""
    with open(path, newline="") as file:
        return [(row["Action"], int(row["Pointer"], 16), int(row["Size"]), int(str(row["Stream"]), 0))
                for row in csv.DictReader(line for line in file if not line.startswith("#"))]


def trace(name, upstream, calls):
    logger = rmm.mr.LoggingResourceAdaptor(pool, log_file_name=str(folder / f"{name}.csv"))
    log = umem.Log(umem.place_of(logger, upstream), folder / f"{name}.umem", max="64M")
    random.seed(42)
    live = []
    began = time.perf_counter()
    for _ in range(calls):
        if live and random.random() < 0.5:
            live.pop(random.randrange(len(live))).release()
        else:
            live.append(umem.empty(random.randrange(1, 100_000), "u1", log))
    seconds = time.perf_counter() - began
    for array in live:
        array.release()
    log.close()
    logger.flush()
    umem.trace.to_csv(folder / f"{name}.umem", folder / f"{name}-umem.csv")
    theirs, ours = rows(logger.get_file_name()), rows(folder / f"{name}-umem.csv")
    check(f"{name}: both have all calls", len(theirs) == len(ours) >= calls, (len(theirs), len(ours)))
    differ = [(a, b) for a, b in zip(theirs, ours) if a[:3] != b[:3]]
    check(f"{name}: the logs agree in action, address and size", not differ, differ[:2])
    streams = {row[3] for row in theirs}
    check(f"{name}: one stream", len(streams) == 1, streams)
    print(f"{name}: {len(theirs)} calls, {seconds / calls * 1e6:.2f} us each, in RMM's log on stream {streams}")


trace("cuda", None, 10_000)
trace("cuda-async", queue, 10_000)

# The same calls without umem.
stream = rmm.pylibrmm.stream.DEFAULT_STREAM
began = time.perf_counter()
for _ in range(10_000):
    pool.deallocate(pool.allocate(1000, stream), 1000, stream)
alone = time.perf_counter() - began
place = umem.place_of(pool)
began = time.perf_counter()
for _ in range(10_000):
    umem.empty(1000, "u1", place).release()
print(f"a block of RMM's pool: {alone / 1e4 * 1e6:.2f} us from Python, "
      f"{(time.perf_counter() - began) / 1e4 * 1e6:.2f} us as an array of umem")
sys.exit(failed != 0)
