"""Arrays in shared memory, in other processes."""
import copy
import gc
import multiprocessing
import os
import pickle
import signal
import time

import pytest

import umem

METHODS = ["spawn", "fork", "forkserver"]


@pytest.fixture(params=METHODS)
def context(request):
    return multiprocessing.get_context(request.param)


def add(queue, done):
    """What the other process does: it changes the arrays that come, until None does."""
    while (array := queue.get()) is not None:
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
    return f"umem-test-{os.getpid()}-{what}"


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


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="names are elsewhere")
def test_a_name_that_others_may_write_needs_trust():
    place = umem.Shm(name("trust"), "1M")
    array = umem.zeros(3, place=place)
    handle = pickle.dumps(array)
    try:
        os.chmod("/dev/shm/" + name("trust"), 0o666)
        with pytest.raises(umem.OSError, match="other users may write it"):
            umem.Shm(name("trust")).info  # noqa: B018
        umem.Shm(name("trust"), trust="all").close()
        assert pickle.loads(handle).address == array.address  # this process has it already
        with pytest.raises(ValueError, match="trust"):
            umem.Shm(name("trust"), trust="everybody").info  # noqa: B018
    finally:
        umem.Shm.remove(name("trust"))


def test_copies_are_new_arrays_in_ram():
    with umem.Shm(size="1M") as place:
        array = umem.zeros(3, place=place)
        for other in copy.copy(array), copy.deepcopy(array), array.astype("int8"), umem.asarray(array, copy=True):
            other.fill(1)
            assert other.place is umem.host()
        assert array.copy(place).place is place
        assert array.tolist() == [0, 0, 0]


SHARED = {
    "shm": lambda folder: umem.Shm(size="4M"),
    "limit": lambda folder: umem.Limit(umem.Shm(size="4M"), "4M"),
    "track": lambda folder: umem.Track(umem.Shm(size="4M")),
    "pool": lambda folder: umem.Pool(umem.Shm(size="4M")),
    "debug": lambda folder: umem.Debug(umem.Shm(size="4M")),
    "file": lambda folder: umem.File(folder / "a.bin", "w+"),
    "append": lambda folder: umem.File(folder / "a.bin", "a+"),
    "scratch": lambda folder: umem.File(),
    "mmap": lambda folder: umem.MMap(folder / "b.bin", "w+"),
    "track-mmap": lambda folder: umem.Track(umem.MMap(folder / "b.bin", "w+")),
}


def drop_all(kept):
    """What the child does: it drops what it has of its parent, releases some with a word, and makes arrays of its own."""
    place = kept[0].place
    if not isinstance(place, umem.Pool):
        umem.full(1000, 9.0, place=place).release()
    kept[1].release()
    kept.clear()
    gc.collect()


def check_kept(place, kept):
    later = [umem.full(1000, 7.0, place=place) for _ in range(4)]
    assert [array.tolist() for array in kept] == [[float(k)] * 1000 for k in range(len(kept))]
    addresses = [array.address for array in kept + later]
    assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_frees_nothing_of_its_parent(kind, tmp_path):
    with SHARED[kind](tmp_path) as place:
        kept = [umem.full(1000, float(k), place=place) for k in range(3)]
        child = multiprocessing.get_context("fork").Process(target=drop_all, args=(kept,))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        check_kept(place, kept)
        for array in kept:
            array.release()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_frees_what_numpy_allocates_there(capfd):
    np = pytest.importorskip("numpy")

    def work(parents):
        before = place.info.available
        for _ in range(20):  # without a free they need more than there is
            array = np.zeros(1 << 17, "u1")
            array.resize(1 << 18)
            del array
        grandchild = multiprocessing.get_context("fork").Process(target=parents.clear)
        grandchild.start()
        grandchild.join(60)
        parents.clear()
        assert grandchild.exitcode == 0 and place.info.available == before

    with umem.Shm(size="2M") as place, umem.use_in_numpy(place):
        array = np.full(1000, 3.0)
        child = multiprocessing.get_context("fork").Process(target=work, args=([array],))
        child.start()
        child.join(120)
        assert child.exitcode == 0, capfd.readouterr().err
        other = np.full(1000, 4.0)
        assert array.tolist() == [3.0] * 1000 and other.tolist() == [4.0] * 1000
        del array, other


FORKS = """
import os, sys
import umem
place = {place}
kept = [umem.full(1000, float(k), place=place) for k in range(3)]
child = os.fork()
if not child:
    {end}
assert os.waitpid(child, 0)[1] == 0
later = [umem.full(1000, 7.0, place=place) for _ in range(3)]
assert [array.tolist() for array in kept] == [[float(k)] * 1000 for k in range(3)]
assert len({{array.address for array in kept + later}}) == 6
"""


def test_an_incomplete_array_stays_so_until_it_is_written():
    with umem.Shm(size="1M", incomplete=True) as place:
        for array in umem.zeros(10, place=place), umem.zeros(10, place=umem.Limit(place, "4K")):
            assert not umem.Shm.is_complete(array)
            umem.Shm.complete(array)
            assert umem.Shm.is_complete(array)
    with umem.Shm(size="1M") as place:
        assert umem.Shm.is_complete(umem.zeros(10, place=place))
    with pytest.raises(umem.TypeError, match="is in no shared memory"):
        umem.Shm.complete(umem.zeros(10))


@pytest.mark.parametrize("end", ["sys.exit()", "kept.clear(); place.close(); sys.exit()", "os._exit(0)"])
@pytest.mark.parametrize("made", ["umem.Shm(size='1M')", "umem.Track(umem.Shm(size='1M'))",
                                  "umem.Pool(umem.Shm(size='4M'))", "umem.File('a.bin', 'w+')",
                                  "umem.open('limit+mmap:b.bin?mode=w+&limit=1M')"])
def test_a_child_that_exits_leaves_its_parent_alone(run_python, made, end):
    assert run_python(FORKS.format(place=made, end=end)) == ""


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


# ---- descriptors ----

def descriptors():
    gc.collect()  # what other tests have left
    return len(os.listdir("/proc/self/fd"))


def falls_to(count, most, seconds=60):
    """Whether a count gets as small: the server of multiprocessing closes after the other side has what it sent."""
    end = time.monotonic() + seconds
    while count() > most and time.monotonic() < end:
        time.sleep(0.001)
    return count() <= most


def inherited():
    """How many descriptors a new program would get, beside the first three."""
    return sum(os.get_inheritable(int(fd)) for fd in os.listdir("/proc/self/fd")
               if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}"))


def count_there(jobs, counts):
    """What the other process does: it keeps no array, and counts its descriptors when it is asked to."""
    for array, number, wanted in iter(jobs.recv, None):
        array[0] = number
        if wanted:
            counts.send((descriptors(), inherited()))
        del array


def answer(pipe):
    """What another process sends, if it lives."""
    assert pipe.poll(60)
    return pipe.recv()


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_many_passes_leave_no_descriptor(context, named):
    passes = int(os.environ.get("UMEM_TEST_PASSES", 10_000 if named else 500))
    with umem.Shm(name("passes") if named else None, "1M") as place:
        array = umem.zeros(3, place=place)
        (theirs, jobs), (counts, answers) = context.Pipe(False), context.Pipe(False)
        child = context.Process(target=count_there, args=(theirs, answers), daemon=True)
        child.start()
        jobs.send((array, 0, True))
        first, before = answer(counts), descriptors()
        for k in range(passes):
            jobs.send((array, k + 1, k == passes - 1))
        assert answer(counts) == first
        assert falls_to(descriptors, before), (before, descriptors())
        jobs.send(None)
        child.join(60)
        assert child.exitcode == 0 and array.tolist() == [passes, 0, 0]
    if named:
        umem.Shm.remove(name("passes"))


def look_at_descriptors(jobs, answers, given):
    arrays = [given, jobs.recv()]
    answers.send((inherited(), [array.tolist() for array in arrays]))


def inherited_there(context, given, sent):
    """How many descriptors programs get that a child starts, which has got one array by its arguments, and one by a pipe."""
    (theirs, jobs), (answers, ours) = context.Pipe(False), context.Pipe(False)
    child = context.Process(target=look_at_descriptors, args=(theirs, ours, given), daemon=True)
    child.start()
    jobs.send(sent)
    count, lists = answer(answers)
    child.join(60)
    assert child.exitcode == 0 and lists == [[0, 0, 0]] * 2
    return count


def test_programs_that_others_start_get_no_descriptor(context):
    with umem.Shm(size="1M") as place:
        array, other, plain = umem.zeros(3, place=place), umem.zeros(3, place=place), umem.zeros(3)
        of_pipes = inherited_there(context, plain, plain)
        assert inherited_there(context, plain, array) == of_pipes
        assert inherited_there(context, array, plain) == of_pipes
        before = inherited()
        kept = pickle.dumps(other)
        assert inherited() == before and pickle.loads(kept).address == other.address


def test_pickles_of_one_memory_share_a_descriptor(run_python):
    run_python("""
import os, pickle, time, umem
count = lambda: len(os.listdir("/proc/self/fd"))
place = umem.Shm(size="1M")
array = umem.arange(3.0, place=place)
pickle.dumps(array)
before = count()
kept = [pickle.dumps(array[k % 3:]) for k in range(2000)]
assert count() == before, (before, count())
assert all(pickle.loads(one).address == array[k % 3:].address for k, one in enumerate(kept[:50]))
end = time.monotonic() + 50
while count() > before and time.monotonic() < end:  # the server closes after we have what it sent
    time.sleep(0.001)
assert count() == before, (before, count())
""")


def test_a_process_without_free_descriptors_is_told(run_python):
    run_python("""
import os, pickle, resource, umem
place = umem.Shm(size="1M")
array = umem.zeros(3, place=place)
pickle.dumps(array)
from umem import handles
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
error = None
try:
    handles.pickled(array)
except umem.OSError as refusal:
    error = refusal
finally:
    for fd in taken:
        os.close(fd)
assert "Too many open files" in str(error), error
""")


# ---- the end of a process ----

def send_and_end(place_name, where):
    place = umem.Shm(place_name, "1M")
    array = umem.full(3, 7.0, place=place)
    where.send(array)


def test_a_sender_may_end_first_where_the_memory_has_a_name(context):
    mine, theirs = context.Pipe()
    child = context.Process(target=send_and_end, args=(name("first"), theirs), daemon=True)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert answer(mine).tolist() == [7, 7, 7]
    umem.Shm.remove(name("first"))


def test_without_a_name_a_sender_that_has_ended_is_an_error(context):
    mine, theirs = context.Pipe()
    child = context.Process(target=send_and_end, args=(None, theirs), daemon=True)
    child.start()
    child.join(60)
    with pytest.raises(umem.OSError, match="process that has sent the array has ended.*name"):
        answer(mine)


def test_a_pickle_may_be_loaded_twice_where_the_memory_has_a_name(run_python):
    run_python("""
import os, pickle, sys, threading, umem
sys.excepthook = threading.excepthook = lambda *_: None  # multiprocessing prints that it has the descriptor no more
named = f"umem-test-{os.getpid()}-twice"
with umem.Shm(named, "1M") as place, umem.Shm(size="1M") as unnamed:
    umem.Shm.remove(named)
    array, other = umem.zeros(3, place=place), umem.zeros(3, place=unnamed)
    kept = pickle.dumps(array)
    assert pickle.loads(kept).address == pickle.loads(kept).address == array.address
    kept = pickle.dumps(other)
    assert pickle.loads(kept).address == other.address
    try:
        pickle.loads(kept)
    except umem.OSError as error:
        assert "was taken before" in str(error)
    else:
        raise SystemExit("loaded twice")
""")


@pytest.mark.parametrize("method", METHODS)
def test_an_array_that_nobody_takes_keeps_no_process(run_python, method):
    run_python(f"""
import multiprocessing, umem
place = umem.Shm(size="1M")
queue = multiprocessing.get_context("{method}").Queue()
for k in range(10):
    queue.put(umem.zeros(3, place=place))
""")


# ---- views ----

def test_views_of_others_keep_the_memory():
    numpy = pytest.importorskip("numpy")
    place = umem.Shm(size="1M")
    array = umem.arange(3.0, place=place)
    view = numpy.from_dlpack(array)
    again = numpy.asarray(pickle.loads(pickle.dumps(array)))
    place.close()
    with pytest.raises(umem.ValueError, match="closed"):
        array.tolist()
    again[1] = 5  # the memory lives as long as what looks at it
    assert again.tolist() == view.tolist() == [0, 5, 2]
    mapped = lambda: sum("memfd:umem" in line for line in open("/proc/self/maps"))
    before = mapped()
    del view, again, array, place
    gc.collect()
    assert mapped() == before - 1
