"""Leaks, other processes, the end of the interpreter."""
import copy
import gc
import os

import pytest
from conftest import resident

import umem

numpy = pytest.importorskip("numpy")
ROUNDS = 100_000


# ---- leaks ----

POOL = umem.Pool(umem.Host())
SHARED = umem.zeros((4, 4))
FOREIGN = numpy.zeros((4, 4))


@pytest.mark.parametrize("step", [
    lambda: umem.from_dlpack(numpy.from_dlpack(SHARED)), lambda: numpy.from_dlpack(umem.from_dlpack(FOREIGN)),
    lambda: umem.empty(8, "float32", POOL)[1:3], lambda: memoryview(SHARED), lambda: SHARED.T.reshape(4, 4, 1)[0],
    lambda: SHARED.__dlpack__(max_version=(1, 0)),
], ids=["numpy-and-back", "umem-and-back", "empty", "memoryview", "views", "capsule"])
def test_round_trips_leak_nothing(step):
    for _ in range(ROUNDS // 20):
        step()
    gc.collect()
    before = resident()
    for _ in range(ROUNDS):
        step()
    gc.collect()
    assert resident() - before < 1 << 20


@pytest.mark.parametrize("step", [
    lambda: SHARED.__setitem__(0, [1, 2, 3, 4]), lambda: SHARED.tolist(), lambda: umem.Pool(umem.Host()).close(),
    lambda: umem.open("pool+host:"), lambda: umem.asarray(FOREIGN), lambda: SHARED.host().__enter__(),
    lambda: pytest.raises(IndexError, SHARED.__getitem__, 9), lambda: list(umem.blocks(SHARED, POOL, rows=1)),
    lambda: umem.empty((3, 3), ghosts=1),
], ids=["assign", "list", "place", "open", "asarray", "host", "failure", "blocks", "ghosts"])
def test_other_steps_leak_nothing(step):
    for _ in range(200):
        step()
    gc.collect()
    before = resident()
    for _ in range(2000):
        step()
    gc.collect()
    assert resident() - before < 1 << 20


# ---- processes ----

def test_a_child_of_fork_uses_arrays(tmp_path):
    array = umem.arange(1000)
    file = umem.zeros(1000, "int64", umem.File(tmp_path / "a.bin", "w+"))
    pid = os.fork()
    if pid == 0:
        try:
            file[...] = array
            mine = umem.arange(1000, place=umem.Pool(umem.Host()))
            os._exit(0 if mine.tolist() == array.tolist() else 1)
        finally:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    assert file.tolist() == array.tolist()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_arrays_are_sent_to_other_processes(run_python, method):
    out = run_python(
        "import multiprocessing, umem\n"
        "def double(array):\n"
        "    array[...] = [2 * x for x in array.tolist()]\n"
        "    return array\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context('{method}').Pool(1) as pool:\n"
        "        print(pool.map(double, [umem.arange(3), umem.full(2, 5)])[0].tolist())\n")
    assert out == "[0, 2, 4]\n"


# ---- the end ----

THREADS = """
import threading, time
a, b = umem.zeros(1000), umem.zeros(1000)
def sleep(*_):
    time.sleep(0.0003)
    return False
class Slow:
    def __index__(self):
        return sleep() + 3
    def __float__(self):
        return sleep() + 3.0
    def __dlpack__(self, **options):
        sleep()
        return a.__dlpack__(**options)
    def __dlpack_device__(self):
        return 1, 0
def work():
    while True:
        try:
            {}
        except umem.Error:
            pass
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
"""

END = {
    "arrays": "keep = [umem.zeros(3), umem.zeros(3, place=umem.Pool(umem.File()))]",
    "exports": "import numpy; keep = [numpy.asarray(umem.zeros(3)), umem.from_dlpack(numpy.zeros(3))]",
    "capsules": "keep = umem.zeros(3).__dlpack__()",
    "callbacks": "keep = umem.zeros(3, place=umem.Retry(umem.Host(), lambda *_: False))",
    "hooks": "umem.set_failure_hook(print)",
    "blocks": "keep = umem.blocks(umem.zeros((100, 100)), umem.Host(), rows=3); first = next(keep)",
    "cycles": "keep = []; keep.append((keep, umem.zeros(3)))",
    "hosts": "keep = umem.zeros(3, place=umem.File()).host(); x = keep.__enter__()",
    "threads": ("import threading, time; "
                "threading.Thread(target=lambda: [(umem.zeros(9, place=umem.Pool(umem.Host())), time.sleep(0.001)) "
                "for _ in range(10**6)], daemon=True).start(); time.sleep(0.05)"),
    # The functions sleep, so that the threads wait for the GIL when the interpreter has begun to end.
    "progress": THREADS.format("umem.copy(a, b, progress=sleep, step=100)"),
    "retries": THREADS.format("place = umem.Retry(umem.Limit(umem.Host(), 8), sleep); umem.zeros(9, place=place)"),
    "failures": THREADS.format("umem.set_failure_hook(sleep); umem.zeros(9, place=umem.Limit(umem.Host(), 8))"),
    "indices": THREADS.format("[a[[[k, 2, 3]]] for k in range(1000)]"),
    "numbers": THREADS.format("a[3] = Slow(); a[Slow()]; a[:2] = (1, Slow())"),
    "tensors": THREADS.format("umem.from_dlpack(Slow())"),
    "atexit": "import atexit; atexit.register(lambda: print(umem.zeros(3).tolist()))",
}


@pytest.mark.parametrize("name", END)
def test_the_interpreter_ends_while_arrays_live(run_python, name):
    out = run_python(f"import umem\n{END[name]}\nprint('done')\n")
    assert out.startswith("done\n") and "rror" not in out and "leak" not in out


# ---- what stays in a file ----

NAMED = {
    "file": lambda path: umem.File(path, "w+"),
    "append": lambda path: umem.File(path, "a+"),
    "mmap": lambda path: umem.MMap(path, "w+"),
    "limit": lambda path: umem.Limit(umem.File(path, "w+"), "1M"),
    "track": lambda path: umem.Track(umem.MMap(path, "w+")),
    "debug": lambda path: umem.Debug(umem.File(path, "w+")),
    "open": lambda path: umem.open(f"stats+file:{path}?mode=w+"),
    "no": lambda path: umem.open(f"file:{path}?mode=w+&reuse=no"),
}


@pytest.mark.parametrize("kind", NAMED)
def test_what_was_written_to_a_named_file_stays(kind, tmp_path):
    path = tmp_path / "a.bin"
    rows = numpy.arange(5 * 1000.0).reshape(5, 1000)
    with NAMED[kind](path) as place:
        for k in range(5):
            array = umem.asarray(rows[k], place=place)
            array[:10].astype("int8")
            array.copy()
        del array
        assert numpy.ndarray(5, "V8000", path.read_bytes()[:40000]).tobytes() == rows.tobytes() or kind == "debug"
        if isinstance(place, umem.Track):
            assert place.blocks == []  # nothing leaks
    content = path.read_bytes()
    assert all(rows[k].tobytes() in content for k in range(5))
    assert len(content) == 40000 or kind == "debug"


def test_release_and_reuse_give_bytes_free(tmp_path):
    with umem.File(tmp_path / "a.bin", "w+") as place:
        array = umem.zeros(1000, place=place)
        address, view = array.address, array[1:]
        array.release()
        assert view.released and umem.zeros(1000, place=place).address == address
        assert umem.zeros(1000, place=place).address != address
    for place in (umem.File(tmp_path / "b.bin", "w+", reuse=True), umem.MMap(tmp_path / "c.bin", "w+", reuse=True),
                  umem.open(f"file:{tmp_path / 'd.bin'}?mode=w+&reuse=yes"), umem.File(), umem.Shm(size="1M")):
        assert len({umem.zeros(1000, place=place).address for _ in range(5)}) == 1
        place.close()


@pytest.mark.parametrize("make", [lambda a: a.copy(), lambda a: copy.copy(a), lambda a: copy.deepcopy(a),
                                  lambda a: a.astype("int8"), lambda a: umem.asarray(a, "float32"),
                                  lambda a: umem.asarray(a, copy=True), lambda a: a[::2].copy()])
def test_results_without_a_place_never_land_in_a_file(make, tmp_path):
    path = tmp_path / "a.npy"
    numpy.save(path, numpy.arange(100.0))
    length = path.stat().st_size
    for mode in "r", "r+":
        array = umem.load(path, mode=mode)
        assert make(array).place is umem.host()
        array[:50].astype("float32")
        if mode == "r+":
            array[1:] = array[:-1]  # they overlap
            array[:-1] = array[1:]
        assert path.stat().st_size == length
        array.place.close()
    with umem.Limit(umem.Shm(size="1M"), "1M") as place:
        assert make(umem.zeros(100, place=place)).place is umem.host()
    with umem.Pool(umem.Host()) as place:
        assert make(umem.zeros(100, place=place)).place is place
