"""Leaks, other processes, the end of the interpreter."""
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
    "atexit": "import atexit; atexit.register(lambda: print(umem.zeros(3).tolist()))",
}


@pytest.mark.parametrize("name", END)
def test_the_interpreter_ends_while_arrays_live(run_python, name):
    out = run_python(f"import umem\n{END[name]}\nprint('done')\n")
    assert out.startswith("done\n") and "rror" not in out and "leak" not in out
