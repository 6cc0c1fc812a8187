"""Arrays in shared memory, in other processes."""
import copy
import multiprocessing
import os
import pickle
import signal

import pytest

import umem

METHODS = ["spawn", "fork", "forkserver"]


@pytest.fixture(params=METHODS)
def context(request):
    return multiprocessing.get_context(request.param)


def add(queue, done):
    """What the other process does: it changes the arrays that come, until None does."""
    for array in iter(queue.get, None):
        array[...] = [2.0 * x for x in array.tolist()]
        done.put((array.shape, array.place.kind, os.getpid()))


def run(context, arrays):
    queue, done = context.Queue(), context.Queue()
    child = context.Process(target=add, args=(queue, done))
    child.start()
    for array in arrays:
        queue.put(array)
    queue.put(None)
    answers = [done.get(timeout=60) for _ in arrays]
    child.join(60)
    assert child.exitcode == 0
    return answers


def name(what):
    return f"umem-test-python-{os.getpid()}-{what}"


def test_a_queue_passes_memory_and_not_bytes(context):
    with umem.Shm(size="1M") as place:
        one, other = umem.arange(5.0, place=place), umem.full((4, 3), 1.5, place=place)
        answers = run(context, [one, other[1:3, 1], other[::-2, 0]])
        assert [shape for shape, _, _ in answers] == [(5,), (2,), (2,)]
        assert {kind for _, kind, _ in answers} == {"host"} and answers[0][2] != os.getpid()
        assert one.tolist() == [0, 2, 4, 6, 8]
        assert other[:, 1].tolist() == [1.5, 3, 3, 1.5] and other[:, 0].tolist() == [1.5, 3, 1.5, 3]


def test_names_and_stacks_are_passed_too(context):
    with umem.Shm(name("queue"), "4M") as place, umem.Pool(umem.Shm(size="8M")) as pool:
        arrays = [umem.full(3, 1.0, place=where) for where in (place, pool)]
        run(context, arrays)
        assert [array.tolist() for array in arrays] == [[2.0] * 3] * 2
    umem.Shm.remove(name("queue"))


def write(array, other, number):
    array[number] = other[number] = number


def test_arguments_of_processes_are_passed(context):
    with umem.Shm(size="1M") as place:
        array, other = umem.zeros(4, place=place), umem.zeros(4, "int32", place)
        children = [context.Process(target=write, args=(array, other, k)) for k in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
            assert child.exitcode == 0
        assert array.tolist() == other.tolist() == [0, 1, 2, 3]


def test_the_same_process_gets_the_same_memory():
    place = umem.Shm(name("same"), "1M")
    array = umem.zeros(3, place=place)
    again = pickle.loads(pickle.dumps(array))
    assert again.address == array.address and again.place is umem.host()
    umem.Shm.remove(name("same"))
    place.close()
    again[1] = 5  # the memory lives as long as the array
    assert again.tolist() == [0, 5, 0]


def test_copies_are_new_arrays():
    with umem.Shm(size="1M") as place:
        array = umem.zeros(3, place=place)
        for other in copy.copy(array), copy.deepcopy(array):
            other.fill(1)
            assert other.place is place
        assert array.tolist() == [0, 0, 0]


def test_what_has_no_bytes_is_not_passed():
    with umem.Shm(size="1M") as place:
        with pytest.raises(umem.TypeError, match="pickle"):
            pickle.dumps(umem.zeros((0, 3), place=place))


def test_handles_are_checked():
    from umem import _core, handles

    with umem.Shm(name("check"), "1M") as place:
        umem.Shm.remove(name("check"))
        made, arguments = handles.pickled(umem.zeros(3, place=place))
        with pytest.raises(umem.ValueError, match="a handle has 512 bytes, and not 511"):
            made(arguments[0][:-1], *arguments[1:])
        with pytest.raises(umem.ValueError, match="its version"):
            _core._attach(bytes(512), -1)
    with pytest.raises(umem.OSError, match="No such file"):
        made(*arguments)
    with pytest.raises(umem.OSError, match="cannot remove"):
        umem.Shm.remove(name("check"))


def die(array, ready):
    ready.set()
    array[0] = 1
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_takes_nothing_along(context):
    with umem.Shm(size="1M") as place:
        array, ready = umem.zeros(3, place=place), context.Event()
        child = context.Process(target=die, args=(array, ready))
        child.start()
        child.join(60)
        assert child.exitcode == -signal.SIGKILL and ready.is_set()
        assert array.tolist() == [1, 0, 0]
        umem.zeros(1000, place=place)
