"""Places: construction, options, ends, callbacks."""
import gc
import inspect
import os
import threading
import weakref

import pytest

import umem
from umem import _core

KINDS = {row[0]: row for row in _core._schemes()}
CLASSES = {cls._kind: cls for cls in vars(umem).values()
           if isinstance(cls, type) and issubclass(cls, umem.Place) and cls._kind} | {"http": umem.Url, "https": umem.Url}


# ---- the table of kinds ----

def test_every_kind_of_the_library_has_a_class():
    assert set(KINDS) <= set(CLASSES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_has_every_option_of_its_kind(kind):
    _, decorates, where, options, _ = KINDS[kind]
    parameters = [p for p in inspect.signature(CLASSES[kind].__init__).parameters if p != "self"]
    names = {option[0].replace("-", "_") for option in options}
    if kind == "cuda-host":
        names = {"write_combined"}
    named = {where[0].lower()} if where else set()
    assert set(parameters) == names | named | ({"upstream"} if decorates else set())


# ---- what places are ----

def test_a_place_says_what_it_is(place):
    assert place.kind in repr(place) and "umem." in repr(place)
    assert place.info.alignment >= 1
    assert place.capabilities & 0b11000 == 0b11000  # readable and writable
    assert place.is_same_memory(place)
    place.synchronize()
    place.flush()
    place.trim()


def test_a_closed_place_refuses(place):
    array = umem.zeros(4, place=place)
    view = array[1:]
    place.close()
    place.close()
    assert place.closed and "closed" in repr(place)
    for use in (lambda: umem.empty(3, place=place), lambda: array.shape, lambda: view.tolist(), place.synchronize,
                lambda: place.info, lambda: umem.Limit(place, 10)):
        with pytest.raises(umem.ValueError, match="closed"):
            use()
    assert array.released and view.released and "released" in repr(array)


def test_the_layers_of_a_name():
    with umem.open("pool+stats+limit+host:?limit=64M") as place:
        assert place.stack == "pool+stats+limit+host"
        assert [type(place), type(place.upstream), type(place.layer("limit"))] == [umem.Pool, umem.Stats, umem.Limit]
        array = umem.empty(100, place=place)
        assert place.layer("stats").figures["current_bytes"] > 0
        assert place.layer("limit").used > 0
        with pytest.raises(umem.ValueError, match="no layer 'track'"):
            place.layer("track")
        assert array.place is place


def test_layers_below_keep_the_place_alive():
    stats = umem.open("pool+stats+host:").upstream
    gc.collect()
    assert umem.empty(10, place=stats).shape == (10,)


def test_upstream_is_the_place_that_was_given():
    host = umem.Host()
    assert umem.Pool(host).upstream is host
    assert host.upstream is None


def test_a_pool_may_have_spare_memory():
    with umem.Pool(umem.Host(), spare=12) as pool:
        assert umem.zeros(3, place=pool).tolist() == [0.0] * 3
    with pytest.raises(umem.ValueError, match="spare is 2000 percent: at most 1000"):
        umem.Pool(umem.Host(), spare=2000)


def test_the_shared_host_lives_as_long_as_the_process():
    assert umem.empty(3).place is umem.host()
    with pytest.raises(umem.ValueError, match="as long as the process"):
        umem.host().close()


def test_the_default_place(run_python):
    program = "import umem; d = umem.default(); print(d.stack, umem.zeros(3, place=d).tolist())"
    assert run_python(program) == "host [0.0, 0.0, 0.0]\n"
    os.environ["UMEM_DEFAULT"] = "stats+host:"
    try:
        assert run_python(program).startswith("stats+host ")
    finally:
        del os.environ["UMEM_DEFAULT"]


# ---- options ----

@pytest.mark.parametrize("value, nbytes", [(4096, 4096), ("4096", 4096), ("4K", 4096), ("1M", 1 << 20)])
def test_sizes_are_numbers_or_texts(value, nbytes):
    limit = umem.Limit(umem.Host(), value)
    umem.empty(nbytes, "uint8", limit)
    with pytest.raises(umem.MemoryError):
        umem.empty(nbytes + 1, "uint8", limit)


@pytest.mark.parametrize("make, message", [
    (lambda: umem.Limit(umem.Host(), "8X"), "8X"), (lambda: umem.Limit(umem.Host(), -1), "-1"),
    (lambda: umem.Limit(umem.Host(), 1.5), "1.5"), (lambda: umem.Limit(3, 1), "umem.Place"),
    (lambda: umem.File("a", "q"), "known are r, r\\+"), (lambda: umem.Fixed(umem.Host(), 0), "block"),
    (lambda: umem.Fault(umem.Host(), share=2), "share is 2"), (lambda: umem.Fault(umem.Host(), calls="x"), "known are"),
    (lambda: umem.open("nothing:"), "no scheme"), (lambda: umem.open("host:?x=1"), "x"),
    (lambda: umem.Retry(umem.Host(), 3), "not callable"), (lambda: umem.Retry(None, print), "upstream"),
    (lambda: umem.Pool(None), "upstream"), (lambda: umem.PoolOn(umem.Host(), umem.Host()), "Pool|pool"),
    (lambda: umem.Binning(umem.Host(), [(3, 4)]), "umem.Place"), (lambda: umem.Place(None), "no kind"),
])
def test_wrong_options_say_what_is_right(make, message):
    with pytest.raises(umem.Error, match=message):
        make()


# ---- the end ----

def test_a_place_ends_with_its_last_user():
    with umem.Stats(umem.Host()) as outer:
        pool = umem.Pool(outer)
        array = umem.zeros(100, place=pool)
        del pool
        gc.collect()
        assert outer.figures["current_count"] == 1
        assert array.tolist() == [0.0] * 100
        del array
        gc.collect()
        assert outer.figures["current_count"] == 0


def test_a_place_is_not_kept_by_itself():
    place = umem.Retry(umem.Host(), lambda *_: False)
    gone = weakref.ref(place)
    umem.zeros(3, place=place)
    del place
    gc.collect()
    assert gone() is None


def test_a_cycle_through_a_callback_is_collected():
    kept = []
    place = umem.Retry(umem.Host(), lambda *_: bool(kept))
    kept.append(umem.zeros(3, place=place))  # place, callback, kept, array, place
    gone = weakref.ref(place)
    del place, kept
    gc.collect()
    assert gone() is None


def test_memory_in_use_by_numpy_outlives_the_place(tmp_path):
    numpy = pytest.importorskip("numpy")
    with umem.MMap(tmp_path / "a.bin", "w+") as place:
        array = umem.zeros(1000, place=place)
        shared = array.numpy()
    shared[:] = 7
    assert array.released and shared.sum() == 7000
    with pytest.raises(umem.OSError):
        umem.MMap(tmp_path / "a.bin", "r+")  # its writer has not ended
    del shared
    assert numpy.fromfile(tmp_path / "a.bin")[:1000].tolist() == [7.0] * 1000
    umem.MMap(tmp_path / "a.bin", "r+").close()


def test_close_under_another_place_waits_for_it():
    host = umem.Stats(umem.Host())
    pool = umem.Pool(host)
    host.close()
    assert umem.zeros(3, place=pool).tolist() == [0.0] * 3
    with pytest.raises(umem.ValueError):
        umem.zeros(3, place=host)


def test_failures_of_the_end_arrive(tmp_path):
    fault = umem.Fault(umem.Host())
    place = umem.Log(umem.Limit(fault, 1000), tmp_path / "x.log")
    place.close()
    with pytest.raises(umem.ValueError):
        umem.Log(umem.Host(), __file__)  # no log


def test_a_file_keeps_its_bytes(tmp_path):
    with umem.File(tmp_path / "a.bin", "w") as place:
        umem.arange(5, dtype="int32", place=place)
    assert (tmp_path / "a.bin").read_bytes()[:20] == b"".join(i.to_bytes(4, "little") for i in range(5))
    with umem.File(tmp_path / "a.bin", "r") as place:
        array = umem.empty(5, "int32", place)
        assert array.tolist() == [0, 1, 2, 3, 4] and array.read_only
        with pytest.raises(umem.NotSupportedError, match="read-only"):
            array[0] = 1


# ---- callbacks ----

def test_retry_calls_back_until_there_is_memory():
    calls = []
    limit = umem.Limit(umem.Host(), 1000)
    kept = [umem.empty(400, "uint8", limit), umem.empty(400, "uint8", limit)]

    def free(nbytes, alignment, attempt):
        calls.append((nbytes >= 600, alignment > 0, attempt))
        kept.pop()
        return True

    assert umem.empty(600, "uint8", umem.Retry(limit, free)).nbytes == 600
    assert calls == [(True, True, 1)]


def test_retry_gives_up():
    with pytest.raises(umem.MemoryError):
        umem.empty(600, "uint8", umem.Retry(umem.Limit(umem.Host(), 10), lambda *_: False))


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_of_a_callback_arrives(error):
    def fail(*_):
        raise error

    place = umem.Retry(umem.Limit(umem.Host(), 10), fail)
    with pytest.raises(type(error)) as caught:
        umem.empty(600, "uint8", place)
    assert caught.value is error
    assert umem.empty(1, "uint8", place).shape == (1,)  # it has gone


def test_a_callback_runs_through_a_pool_with_threads():
    freed = []

    def free(*_):
        freed.append(1)
        return False

    pool = umem.Pool(umem.Retry(umem.Limit(umem.Host(), 10), free))
    failures = []

    def allocate():
        for _ in range(20):
            try:
                umem.empty(1000, place=pool)
            except umem.MemoryError:
                failures.append(1)

    threads = [threading.Thread(target=allocate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(failures) == 80 and freed


def test_the_failure_hook_sees_failures_and_may_raise():
    seen = []
    old = umem.set_failure_hook(lambda *args: seen.append(args))
    try:
        assert old is None
        with pytest.raises(umem.MemoryError):
            umem.empty(1000, place=umem.Limit(umem.Host(), 10))
        assert [(status, kind) for status, _, kind in seen][:1] == [("MemoryError", "Limit")]

        def fail(*_):
            raise LookupError("in the hook")

        umem.set_failure_hook(fail)
        with pytest.raises(LookupError, match="in the hook"):
            umem.empty(1000, place=umem.Limit(umem.Host(), 10))
    finally:
        with pytest.raises(umem.TypeError, match="not callable"):
            umem.set_failure_hook(3)
        assert umem.set_failure_hook(None)
    with pytest.raises(umem.MemoryError):
        umem.empty(1000, place=umem.Limit(umem.Host(), 10))


def test_decisions_are_lines_of_a_file(tmp_path):
    files, array = [tmp_path / "a", tmp_path / "b"], umem.zeros(100)
    umem.log_decisions(files[0], "memory")
    array.to(umem.Pool(umem.Host())).to(umem.File())
    umem.log_decisions(files[1])
    array.to(umem.File())
    umem.log_decisions(None)
    array.to(umem.Pool(umem.Host()))
    first, second = (file.read_text() for file in files)
    assert "memory: a pool over Host" in first and "copies: " not in first
    assert second.count("copies: ") == second.count("\n") == 1 and "800 bytes" in second
    with pytest.raises(umem.ValueError, match="'fallbacks', 'memory' or 'copies'"):
        umem.log_decisions(2, "all")
    with pytest.raises(OSError):
        umem.log_decisions(12345)


def test_decisions_in_a_full_pipe_hold_nothing_up():
    """Its reader may be a thread that waits for the GIL."""
    read, write = os.pipe()
    one, other = umem.zeros(10), umem.zeros(10)
    umem.log_decisions(write)
    try:
        for _ in range(4000):
            umem.copy(one, other)
    finally:
        umem.log_decisions(None)
        os.close(write)
    with os.fdopen(read, "rb") as lines:
        assert 100 < lines.read().count(b"copies: ") < 4000  # what had no room is lost


def test_the_gil_is_free_while_a_call_blocks(tmp_path):
    """A thread copies to a file; another one counts meanwhile."""
    array = umem.zeros(4 << 20)
    file = umem.empty(4 << 20, place=umem.File(tmp_path / "a.bin", "w+"))
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted[0]
        for _ in range(4):
            file[...] = array
        assert counted[0] > before
    finally:
        stop.set()
        thread.join()


def test_threads_have_a_number():
    old = umem.get_threads()
    umem.set_threads(2)
    assert umem.get_threads() == 2
    umem.set_threads()
    assert umem.get_threads() == old
    with pytest.raises(umem.ValueError):
        umem.set_threads(100000)


def test_host_on_nodes():
    allowed = umem.Host().info.nodes
    with pytest.raises(umem.ValueError, match="first touch"):
        umem.Host(nodes=0, policy="first-touch")
    if allowed is None:
        with pytest.raises(umem.NotSupportedError, match="container"):
            umem.Host(policy="interleave")
        return
    with umem.Host(nodes=allowed[0]) as place:
        assert place.info.nodes == allowed[:1]
        assert umem.zeros(10, place=place).numpy().sum() == 0
    with umem.Host(policy="first-touch") as place:
        assert place.info.nodes == allowed


# ---- files that others cut ----

@pytest.mark.parametrize("kind", [umem.File, umem.MMap])
def test_an_array_whose_file_was_cut_is_refused_also_when_the_file_is_longer_again(kind, tmp_path):
    place = kind(tmp_path / "a.bin", "w+")
    array = umem.full(5000, 1.5, place=place)
    os.truncate(tmp_path / "a.bin", 80)
    other = umem.full(5000, 2.5, place=place)
    assert os.path.getsize(tmp_path / "a.bin") == 80000
    for use in (array.copy, array.tolist, array[10:].tolist, lambda: umem.save(tmp_path / "a.npy", array),
                lambda: array.__setitem__(20, 1.0)):
        with pytest.raises(umem.OSError, match="was truncated by another process"):
            use()
    assert array[:10].tolist() == [1.5] * 10
    assert other.tolist() == [2.5] * 5000


def test_a_bin_comes_later():
    small, later = umem.Stats(umem.Fixed(umem.Host(), 256)), umem.Stats(umem.Fixed(umem.Host(), "4K"))
    place = umem.Binning(umem.Host(), [(256, small)])
    before = umem.empty(1000, "u1", place)
    place.add("4K", later)
    after = umem.empty(1000, "u1", place)
    assert later.figures["current_count"] == 1
    with pytest.raises(umem.ValueError, match="there is a bin of 4096 bytes"):
        place.add(4096, later)
    del before
    gc.collect()
    assert later.figures["current_count"] == 1
    del after
