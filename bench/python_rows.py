#!/usr/bin/env python3
"""Measures the Python package umem beside what a program would use instead.

Usage: python_rows.py [--once] [--json FILE] [PART]

PART: calls, files or gpu; without it all. Runs with the Python of an environment in which umem and NumPy are installed. Rows of libraries that are not installed,
and of GPUs where there is none, are left out, and named. In each row both sides run in turns in one process; the median
of the rounds counts. Exit status 0: everything was measured, whether targets were met or not.
"""
import argparse
import gc
import importlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import umem

LONGEST = 8  # seconds

ROW = "{:<58} {:<36} {:>8} {:>16} {:>12}  {:<4} {:>10} {:>10}"


class Rows:
    def __init__(self, once, longest=LONGEST):
        """longest: seconds, after which a row takes no more rounds."""
        self.once, self.longest = once, longest
        self.results = []
        print(ROW.format("operation", "against", "median", "10 to 90 %", "target", "met", "umem", "other"))

    def add(self, operation, against, target, ours, theirs, calls=1, rounds=31):
        """target: at most so many times as long; None: any. ours, theirs: functions, of which each round calls so many. A row that takes
        long ends after self.longest seconds and one round."""
        rounds, calls = (1, 1) if self.once else (rounds, calls)
        seconds, begin = ([], []), time.monotonic()
        for number in range(rounds + 1):
            if number > 1 and time.monotonic() - begin > self.longest:
                break
            for side, function in enumerate((ours, theirs)):
                taken = duration(function, calls)
                if number or self.once:
                    seconds[side].append(taken)
        self.store(operation, against, target, *seconds)

    def add_figure(self, operation, seconds, ours, calls=20000, rounds=31):
        """seconds: at most so long a call."""
        rounds, calls = (1, 1) if self.once else (rounds, calls)
        taken = [duration(ours, calls) for _ in range(rounds + 1)][-rounds:]
        self.store(operation, time_text(seconds), 1, taken, [seconds] * len(taken))

    def add_more(self, operation, against, seconds, ours, theirs, calls=20000, rounds=31):
        """seconds: at most so long a call beyond that of theirs."""
        rounds, calls = (1, 1) if self.once else (rounds, calls)
        pairs = [(duration(ours, calls), duration(theirs, calls)) for _ in range(rounds + 1)][-rounds:]
        self.store(operation, f"{against}, and {time_text(seconds)}", 1, [ours for ours, _ in pairs],
                   [theirs + seconds for _, theirs in pairs])

    def store(self, operation, against, target, ours, theirs):
        ratios = sorted(a / b for a, b in zip(ours, theirs))
        median, low, high = (quantile(ratios, part) for part in (0.5, 0.1, 0.9))
        self.results.append({"operation": operation, "against": against, "target": target, "umem": ours,
                             "other": theirs})
        goal, met = ("none", "") if target is None else (f"<= {target:g}x time", "yes" if median <= target else "NO")
        print(ROW.format(operation, against, f"{median:.2f}x", f"{low:.2f}x {high:.2f}x", goal, met,
                         time_text(quantile(sorted(ours), 0.5)), time_text(quantile(sorted(theirs), 0.5))), flush=True)


def duration(function, calls):
    gc.disable()
    begin = time.perf_counter()
    for _ in range(calls):
        function()
    end = time.perf_counter()
    gc.enable()
    return (end - begin) / calls


def quantile(values, part):
    return values[min(len(values) - 1, int(part * len(values)))]


def time_text(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def module(name):
    """A module, or None, after a line that says so."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, RuntimeError) as error:  # also one that lacks its own libraries
        print(f"left out: rows of {name}: {error}")
        return None


# ---- on the host ----


def import_seconds(statement):
    program = f"import time\nbegin = time.perf_counter()\n{statement}\nprint(time.perf_counter() - begin)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure_imports(rows):
    sides = ([], [])
    for _ in range(1 if rows.once else 15):
        for side, name in enumerate(("umem", "numpy")):
            sides[side].append(import_seconds(f"import {name}"))
    rows.store("import umem", "import numpy", 1, *sides)
    rows.store("import umem", "30 ms", 1, sides[0], [0.03] * len(sides[0]))


def setter(array, key, value):
    """The statement array[key] = value, as programs write it."""
    def assign():
        array[key] = value
    return assign


def measure_arrays(rows, numpy):
    place = umem.Host()
    rows.add("empty((8,)) on a place", "numpy.empty((8,))", 3, lambda: umem.empty(8, place=place),
             lambda: numpy.empty(8), calls=20000)
    small, plain = umem.zeros((16, 16)), numpy.zeros((16, 16))
    for what, ours, theirs in (
            ("zeros((4, 4))", lambda: umem.zeros((4, 4)), lambda: numpy.zeros((4, 4))),
            ("array[1:3, ::2]", lambda: small[1:3, ::2], lambda: plain[1:3, ::2]),
            ("array[1, 2] = 3.0", setter(small, (1, 2), 3.0), setter(plain, (1, 2), 3.0))):
        rows.add(what, "the same of NumPy", 3, ours, theirs, calls=20000)
    n = 1 << 22
    ours, theirs = umem.zeros(n, "float64", place), numpy.zeros(n)
    source, plain = umem.full(n, 1.0, "float64", place), numpy.ones(n)
    rows.add("umem.copy, 32 MiB of RAM", "numpy.copyto", 1.05, lambda: umem.copy(ours, source),
             lambda: numpy.copyto(theirs, plain))


def measure_small_calls(rows, numpy):
    """Calls whose time is that of the call, beside NumPy's or a figure."""
    array, other, plain, row = umem.zeros((5, 3)), umem.zeros(3), numpy.zeros((5, 3)), [1.0, 2.0, 3.0]
    three, source = numpy.zeros(3), umem.zeros(3)

    def host():
        with array.host():
            pass

    rows.add_figure("with array.host(), in RAM", 600e-9, host)
    rows.add_figure("umem.copy of three elements", 400e-9, lambda: umem.copy(other, source))
    rows.add("asarray of a list of three numbers", "numpy.asarray", 2, lambda: umem.asarray(row), lambda: numpy.asarray(row), calls=20000)
    for what, value in (("a list", row), ("an array of NumPy", three)):
        rows.add(f"array[3] = {what}", "the same of NumPy", 3, setter(array, 3, value), setter(plain, 3, value), calls=20000)


def measure_files(rows, numpy):
    large, plain = umem.full(1 << 25, 1.0), numpy.ones(1 << 25)
    small, little = umem.zeros(16), numpy.zeros(16)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours.npy"), Path(folder, "theirs.npy")
        rows.add("save, 256 MiB", "numpy.save", 1.2, lambda: umem.save(ours, large), lambda: numpy.save(theirs, plain), rounds=5)
        rows.add("save, 128 bytes", "numpy.save", 3, lambda: umem.save(ours, small), lambda: numpy.save(theirs, little), calls=100)
    for protocol in 4, 5:
        rows.add(f"pickle.dumps, 256 MiB, protocol {protocol}", "of an array of NumPy", 1.1,
                 lambda: pickle.dumps(large, protocol), lambda: pickle.dumps(plain, protocol), rounds=5)


def three_arguments(function, make, *address):
    """A call with three arrays, or their addresses."""
    arrays = a, b, c = [make() for _ in range(3)]
    if address:
        a, b, c = map(address[0], arrays)
    call = lambda: function(a, b, c)  # noqa: E731
    call.arrays = arrays  # they live as long as the call
    return call


def measure_tables(rows, numpy):
    """Calls of functions of C++ with three arrays, which they take by DLPack's exchange table: beyond the time of a call with
    three addresses, at most 100 ns."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "tests"))
    builder = module("exchange_extension")
    with tempfile.TemporaryDirectory() as folder:
        extension = builder and builder.build(folder)
    if not extension:
        print("left out: rows of an extension: no C++ compiler, or no Python.h")
        return

    def ours():
        return umem.zeros((64, 64), "float32")

    pointers = three_arguments(extension.by_pointer, ours, lambda array: array.address)
    torch, tvm = module("torch"), module("tvm_ffi")
    others = {"PyTorch": lambda: torch.zeros((64, 64))} if torch and hasattr(torch.Tensor, "__dlpack_c_exchange_api__") else {}
    for what, seconds in ("by_description", 100e-9), ("by_tensor", 200e-9):
        function, name = getattr(extension, what), f"three arrays of umem, {what.replace('_', ' ')}"
        rows.add_more(name, "three addresses", seconds, three_arguments(function, ours), pointers)
        for library, make in others.items():
            rows.add(name, f"the same of {library}", 1, three_arguments(function, ours), three_arguments(function, make), calls=20000)
    if tvm:
        nothing = tvm.get_global_func("testing.nop")
        rows.add("tvm-ffi: a call with three arrays of umem", "with three of NumPy", 1, three_arguments(nothing, ours),
                 three_arguments(nothing, lambda: numpy.zeros((64, 64), "float32")), calls=20000)
        rows.add("tvm-ffi: a call with three arrays of umem", "with three of tvm-ffi", 4, three_arguments(nothing, ours),
                 three_arguments(nothing, lambda: tvm.from_dlpack(ours())), calls=20000)
        for library, make in others.items():
            rows.add("tvm-ffi: a call with three arrays of umem", f"with three of {library}", 1.5, three_arguments(nothing, ours),
                     three_arguments(nothing, make), calls=20000)


def measure_random_rows(rows, numpy, size):
    """Rows of a file by a list of numbers. Before a cold row is read, the page cache forgets the file."""
    def forget(path):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    with tempfile.TemporaryDirectory() as folder:
        for nbytes in 256, 4096:
            path, shape = Path(folder, f"{nbytes}.bin"), (size // nbytes, nbytes // 8)
            with umem.File(path, "w+") as place:
                array = umem.full(shape, 1.0, "float64", place)
                place.flush()
                index = numpy.random.default_rng(1).integers(0, shape[0], 1024)
                mapped = numpy.memmap(path, "float64", "r", shape=shape)
                rows.add(f"1,024 random rows of {nbytes} bytes, cached file", "numpy.memmap[index]", 1.2,
                         lambda: array[index], lambda: mapped[index], calls=20)
                del mapped  # pages that are mapped stay cached
                taken = ([], [])
                for _ in range(1 if rows.once else 15):
                    for side in taken:
                        forget(path)
                        source = array if side is taken[0] else numpy.memmap(path, "float64", "r", shape=shape)
                        side.append(duration(lambda: source[index], 1))
                        source = None
                rows.store(f"1,024 random rows of {nbytes} bytes, cold file", "numpy.memmap[index]", 0.7, *taken)


def measure_exchange(rows, numpy):
    array, plain = umem.zeros((64, 64), "float64"), numpy.zeros((64, 64))

    def there_and_back():
        numpy.from_dlpack(array)
        umem.from_dlpack(plain)

    rows.add("DLPack: to NumPy and from NumPy", "NumPy to NumPy, twice", 1.1, there_and_back,
             lambda: (numpy.from_dlpack(plain), numpy.from_dlpack(plain)), calls=5000)
    measure_tables(rows, numpy)
    jax = module("jax.dlpack")
    if jax:
        rows.add("DLPack: to JAX and back", "NumPy to JAX and back", 1.5,
                 lambda: umem.from_dlpack(jax.from_dlpack(array)), lambda: numpy.from_dlpack(jax.from_dlpack(plain)),
                 calls=200)
    torch = module("torch")
    if not torch:
        return
    tensor = torch.zeros((64, 64), dtype=torch.float64)

    def with_torch():
        torch.from_dlpack(array)
        umem.from_dlpack(tensor)

    rows.add("DLPack: to PyTorch and from PyTorch", "NumPy to PyTorch and back", 1.5, with_torch,
             lambda: (torch.from_dlpack(plain), numpy.from_dlpack(tensor)), calls=5000)


def measure_reductions(rows, numpy, size):
    """Of a file in the page cache. The target of the sum is 0.95 of the rate at which umem reads the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.bin"
        file = umem.zeros(size // 8, "float64", umem.File(path, "w+"))
        ram, mapped = umem.zeros(size // 64, "float64"), numpy.memmap(path, "float64", "r", shape=file.shape)

        def read():
            for first in range(0, file.size, ram.size):
                umem.copy(ram, file[first:first + ram.size])

        what = f"{size >> 20} MiB of a cached file"
        rows.add(f"sum of {what}", "to read it", 1 / 0.95, file.sum, read, rounds=7)
        rows.add(f"sum of {what}", "numpy.memmap.sum", 1, file.sum, mapped.sum, rounds=7)
        rows.add(f"std of {what}", "numpy.memmap.std", 1, file.std, mapped.std, rounds=3)


def measure_long_copy(rows, folder, size, place, name):
    """What it costs that Ctrl-C can end a copy, and how long that takes."""
    source = umem.full(size, 1, "uint8", umem.File(str(Path(folder, "data")), "w+"))
    target = umem.empty(size, "uint8", place)
    umem.copy(target, source)
    inside = []
    ours = [duration(lambda: inside.append(umem.copy(target, source)["seconds"]), 1)
            for _ in range(1 if rows.once else 15)]
    what = f"umem.copy, a cached file of {size >> 20} MiB to {name}"
    rows.store(what, "its seconds in C", 1 / 0.98, ours, inside)
    rows.add(what, "umem.start and wait, which report nothing", 1 / 0.98, lambda: umem.copy(target, source),
             lambda: umem.start(target, source).wait(), calls=1)
    seconds = [interrupt(target, source, ours[0] * (i % 5 + 1) / 7) for i in range(1 if rows.once else 15)]
    rows.store(f"Ctrl-C until KeyboardInterrupt, copies to {name}", "50 ms", 1, seconds, [0.05] * len(seconds))
    return what, source, target


def interrupt(target, source, delay):
    """Seconds from Ctrl-C, while arrays are copied, to the exception."""
    sent = []

    def send():
        time.sleep(delay)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=send)
    try:
        thread.start()
        while True:
            umem.copy(target, source)
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)


# ---- on a GPU ----


def measure_gpu_arrays(rows):
    rmm = module("rmm")
    torch = module("torch")
    with umem.open("pool+cuda:0") as place:
        ours = lambda: umem.empty(256, "uint8", place)
        ours()
        if rmm:
            rmm.reinitialize(pool_allocator=True, initial_pool_size=256 << 20)  # not half of the GPU
            rows.add("empty of 256 bytes, pool on a GPU", "rmm.DeviceBuffer, pool", 1,
                     ours, lambda: rmm.DeviceBuffer(size=256), calls=5000)
            rmm.reinitialize()
        if torch and torch.cuda.is_available():
            rows.add("empty of 256 bytes, pool on a GPU", "torch.empty", 1, ours,
                     lambda: torch.empty(256, dtype=torch.uint8, device="cuda"), calls=5000)


def measure_gpu_file(rows, size):
    with tempfile.TemporaryDirectory() as folder, umem.Cuda(0) as gpu:
        what, source, target = measure_long_copy(rows, folder, size, gpu, "a GPU")
        kvikio, defaults, cupy = module("kvikio"), module("kvikio.defaults"), module("cupy")
        if kvikio and cupy:
            measure_kvikio(rows, kvikio, defaults, what, Path(folder, "data"), cupy.from_dlpack(target),
                           lambda: umem.copy(target, source))


def measure_kvikio(rows, kvikio, defaults, what, path, target, ours):
    """kvikIO through the page cache, with the number of threads that is its best."""
    with kvikio.CuFile(str(path), "r") as file:
        for threads in (4, 8, 12, 16):
            defaults.set({"compat_mode": kvikio.CompatMode.ON, "num_threads": threads})
            rows.add(what, f"kvikio.CuFile.read, {threads} threads", 1 / 1.05, ours, lambda: file.read(target),
                     rounds=11)


def measure_cupy(rows, cupy):
    """Blocks of mixed sizes, of which 64 are live: CuPy's pool against umem's below CuPy."""
    sizes = [1 << (9 + (i * 7) % 14) for i in range(256)]

    def work():
        live = [None] * 64
        for i, size in enumerate(sizes):
            live[i % 64] = cupy.cuda.alloc(size)

    own = cupy.get_default_memory_pool()
    times = ([], [])
    with umem.open("pool+cuda:0") as place:
        for number in range(2 if rows.once else 32):
            with umem.use_in_cupy(place):
                ours = duration(work, 1 if rows.once else 20)
            cupy.cuda.set_allocator(own.malloc)
            theirs = duration(work, 1 if rows.once else 20)
            if number:
                times[0].append(ours / len(sizes))
                times[1].append(theirs / len(sizes))
    rows.store("CuPy over pool+cuda:0, 512 B to 4 MiB, 64 live", "CuPy's own pool", 1 / 0.95, *times)


TORCH = """
import sys, time, torch, umem
if sys.argv[1] == "umem":
    place = umem.open("pool+cuda:0")
    use = umem.use_in_torch(place, permanent=True)
torch.manual_seed(1)
layers = [torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.randn(256, 512, device="cuda"), torch.randint(0, 10, (256,), device="cuda")
def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
for _ in range(20): step()
torch.cuda.synchronize()
begin = time.perf_counter()
for _ in range(int(sys.argv[2])): step()
torch.cuda.synchronize()
print((time.perf_counter() - begin) / int(sys.argv[2]), flush=True)
import os; os._exit(0)
"""


def measure_torch(rows):
    """PyTorch's allocator cannot change once it is used: each side is a process, in turns."""
    times = ([], [])
    for _ in range(1 if rows.once else 3):
        for side, name in enumerate(("umem", "own")):
            done = subprocess.run([sys.executable, "-c", TORCH, name, "5" if rows.once else "300"], text=True,
                                  capture_output=True)
            if done.returncode:
                print(f"left out: the training step of PyTorch: {done.stderr.strip().splitlines()[-1:]}")
                return
            times[side].append(float(done.stdout.split()[-1]))
    rows.store("a training step of PyTorch over pool+cuda:0", "its caching allocator", 1.1, *times)


def has_gpu():
    try:
        umem.Cuda(0).close()
    except umem.Error as error:
        print(f"left out: rows of GPUs: {error}")
        return False
    return True


def measure_calls(rows):
    numpy = importlib.import_module("numpy")
    measure_imports(rows)
    measure_arrays(rows, numpy)
    measure_small_calls(rows, numpy)
    measure_exchange(rows, numpy)


def measure_all_files(rows):
    numpy = importlib.import_module("numpy")
    measure_files(rows, numpy)
    measure_random_rows(rows, numpy, (16 if rows.once else 256) << 20)
    measure_reductions(rows, numpy, (16 if rows.once else 1024) << 20)
    with tempfile.TemporaryDirectory() as folder:
        measure_long_copy(rows, folder, (64 if rows.once else 1024) << 20, umem.Host(), "RAM")


def measure_gpu(rows):
    if not has_gpu():
        return
    measure_gpu_arrays(rows)
    measure_gpu_file(rows, (64 if rows.once else 1024) << 20)
    cupy = module("cupy")
    if cupy:
        measure_cupy(rows, cupy)
    if module("torch"):
        measure_torch(rows)


PARTS = {"calls": measure_calls, "files": measure_all_files, "gpu": measure_gpu}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="one short round: the figures mean nothing")
    parser.add_argument("--json", help="the file for all samples")
    parser.add_argument("part", nargs="?", choices=PARTS, help="what to measure; default: all")
    arguments = parser.parse_args()
    rows = Rows(arguments.once)
    for part in [arguments.part] if arguments.part else PARTS:
        PARTS[part](rows)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows.results))


if __name__ == "__main__":
    main()
