"""The default place, places by name, and the RAM that all share."""
import asyncio
import pickle
import threading

import pytest

import umem


def test_a_place_may_be_named_wherever_one_is_taken(tmp_path):
    for make in (lambda place: umem.zeros(10, "f4", place), lambda place: umem.empty((2, 5), "f4", place=place),
                 lambda place: umem.full(10, 1, place=place), lambda place: umem.arange(10, place=place),
                 lambda place: umem.asarray([1] * 10, place=place), lambda place: umem.zeros(10).to(place),
                 lambda place: umem.zeros(10).copy(place), lambda place: umem.zeros(10).astype("f4", place)):
        array = make("pool+stats+host:")
        assert array.place.stack == "pool+stats+host" and array.size == 10
    umem.save(tmp_path / "x.npy", range_of(4))
    assert umem.load(tmp_path / "x.npy", "pool+host:").place.kind == "pool"
    assert umem.Stats("pool+host:").stack == "stats+pool+host" and umem.Pool("host:").stack == "pool+host"
    array = umem.arange(5, dtype="int16").to(f"file:{tmp_path / 'y.bin'}?mode=w+")
    assert (tmp_path / "y.bin").read_bytes() == array.numpy(copy=True).tobytes()
    assert [block.rows for block in umem.blocks(umem.zeros((4, 2)), "pool+host:", rows=2)] == [2, 2]
    with pytest.raises(umem.ValueError, match="is no scheme"):
        umem.zeros(3, "f4", "nothing:")
    with pytest.raises(umem.TypeError, match="or its name, is expected, not the class umem.places.Cuda"):
        umem.zeros(3, "f4", umem.Cuda)


@pytest.mark.parametrize("scheme", ["file", "mmap", "stats+file"])
def test_a_copy_to_a_named_file_makes_it(tmp_path, scheme):
    path, array = tmp_path / "a.bin", umem.arange(3)
    for make in array.to, array.copy, lambda place: array.astype("int64", place):
        made = make(f"{scheme}:{path}")
        assert made.tolist() == [0, 1, 2] and made.place.stack == scheme
        del made
        assert path.read_bytes() == array.numpy().tobytes()
        with pytest.raises(umem.FileExistsError, match="mode=w\\+ to replace.*File exists"):
            make(f"{scheme}:{path}?direct=off")
        assert path.read_bytes() == array.numpy().tobytes()
        umem.full(1, 7, "int64").to(f"{scheme}:{path}?mode=w+")
        assert path.stat().st_size == 8
        path.unlink()
    link = tmp_path / "link"
    link.symlink_to(path)  # to no file
    with pytest.raises(umem.FileExistsError):
        array.to(f"{scheme}:{link}")
    assert not path.exists()
    assert array.to("file:").tolist() == [0, 1, 2]  # a file without a name


@pytest.mark.parametrize("make", [
    lambda place: umem.zeros(3, place=place), lambda place: umem.zeros(1, place=place, ghosts=1),
    lambda place: umem.ones(3, place=place), lambda place: umem.full(3, 1.0, place=place), lambda place: umem.arange(3.0, place=place),
    lambda place: umem.asarray([0.0, 1, 2], place=place), lambda place: umem.concatenate([umem.zeros(3)], place=place),
    lambda place: umem.stack([umem.zeros(3)], place=place), lambda place: umem.full_like(umem.zeros(3), 2, place=place),
    lambda place: umem.zeros(3).device(place).__enter__(), lambda place: [None for _ in umem.blocks(umem.zeros(3), place, rows=3)]])
def test_no_new_array_goes_into_a_file_that_is_there(tmp_path, make):
    path = tmp_path / "a.bin"
    make(f"file:{path}")
    assert path.stat().st_size >= 24
    path.write_bytes(b"what others have written")
    with pytest.raises(umem.FileExistsError):
        make(f"file:{path}")
    assert path.read_bytes() == b"what others have written"
    assert umem.empty(4, "u1", f"file:{path}").tolist() == list(b"what")  # writes nothing
    make(f"file:{path}?mode=r+")
    assert path.read_bytes() != b"what others have written"


def range_of(count):
    return [float(i) for i in range(count)]


def test_all_hosts_are_the_same_memory():
    array, place = umem.arange(4), umem.Host()
    assert array.to(place) is array and array.to("host:") is array
    assert place == umem.host() == umem.open("host:") and hash(place) == hash(umem.host())
    assert place != umem.File() and place != umem.Shm(size="64K") and place != "host:" and place is not None
    made = umem.arange(4, place=place)
    assert pickle.loads(pickle.dumps(made)).tolist() == [0, 1, 2, 3]
    with place:
        pass
    assert place != umem.host() and place == place


def test_a_host_on_nodes_is_a_host_of_its_own():
    try:
        place = umem.Host(nodes=0)
    except umem.NotSupportedError:
        pytest.skip("this system has no NUMA")
    assert type(umem.open("host:?nodes=0")) is type(place) is umem.Host and umem.open("host:?nodes=0").kind == "host"
    array = umem.zeros(3)
    assert place != umem.host() and array.to(place).place is place


def test_what_arrays_without_a_place_are_made_on():
    makers = (lambda: umem.zeros(3), lambda: umem.empty(3), lambda: umem.full(3, 1), lambda: umem.arange(3), lambda: umem.asarray([1, 2]),
              lambda: umem.ones(3), lambda: umem.zeros(3, ghosts=1), lambda: umem.asarray((1, 2)), lambda: umem.asarray(3),
              lambda: umem.asarray([1j]), lambda: umem.stack([[1, 2], [3, 4]]), lambda: umem.concatenate([[1, 2], [3]]),
              lambda: umem.zeros_like([1, 2]), lambda: umem.ones_like([1, 2]), lambda: umem.empty_like((1, 2)), lambda: umem.full_like([1, 2], 3))
    with umem.Pool(umem.Host()) as pool, umem.Stats(umem.Host()) as stats:
        with umem.using(pool) as used:
            assert used is pool is umem.default() and all(make().place is pool for make in makers)
            with umem.using(stats):
                assert umem.zeros(3).place is stats and umem.zeros(3, place=pool).place is pool
            assert umem.zeros(3).place is pool and umem.zeros(3, place=umem.host()).place is umem.host()
            assert umem.zeros_like(umem.zeros(3, place=umem.host())).place is umem.host()
            assert umem.zeros(3)[[0, 2]].place is pool and pickle.loads(pickle.dumps(umem.zeros(3, place=umem.host()))).place is umem.host()
        assert all(make().place is umem.host() for make in makers)
        umem.set_default(pool)
        try:
            assert umem.default() is pool and all(make().place is pool for make in makers)
            with umem.using(stats):
                assert umem.zeros(3).place is stats
        finally:
            umem.set_default(None)
        assert umem.default() is umem.host()
        with pytest.raises(RuntimeError), umem.using("pool+host:"):
            raise RuntimeError
        assert umem.default() is umem.host()
    with pytest.raises(umem.TypeError):
        umem.set_default(3)
    with pytest.raises(umem.TypeError):
        umem.using(None)


def test_threads_and_tasks_have_places_of_their_own():
    one, other = umem.Pool(umem.Host()), umem.Stats(umem.Host())
    found = []
    with umem.using(one):
        thread = threading.Thread(target=lambda: found.append(umem.zeros(3).place))
        thread.start()
        thread.join()
        assert found == [umem.host()]

        async def task(place, barrier):
            with umem.using(place):
                await asyncio.sleep(0)
                barrier.append(place)
                while len(barrier) < 2:
                    await asyncio.sleep(0)
                return umem.zeros(3).place is place

        async def main():
            barrier = []
            inherited = asyncio.create_task(asyncio.sleep(0, umem.default() is one))
            return await asyncio.gather(task(one, barrier), task(other, barrier), inherited)

        assert asyncio.run(main()) == [True] * 3 and umem.default() is one


def test_the_environment_names_the_first_default(run_python, monkeypatch):
    monkeypatch.setenv("UMEM_DEFAULT", "pool+stats+host:")
    out = run_python("import umem; print(umem.zeros(3).place.stack, umem.default() is umem.zeros(3).place); "
                     "umem.set_default(umem.host()); print(umem.zeros(3).place.stack)")
    assert out == "pool+stats+host True\nhost\n"


def test_c_knows_the_default_of_python(run_python):
    out = run_python("import umem; pool = umem.Pool(umem.Host()); umem.set_default(pool); print(umem._core._default(-1).kind)\n"
                     "pool.close(); umem.set_default(None); print(umem._core._default(-1).kind)")
    assert out == "pool\nhost\n"


def test_every_function_takes_what_asarray_takes():
    numpy = pytest.importorskip("numpy")
    target = numpy.zeros(4)
    umem.copy(target, [1, 2, 3, 4.0])
    assert target.tolist() == [1, 2, 3, 4]
    umem.copy_many([(target[:2], umem.full(2, 9.0)), (target[3:], [7.0])])
    assert target.tolist() == [9, 9, 3, 7]
    umem.start(target, numpy.ones(4)).wait()
    assert target.tolist() == [1] * 4
    with umem.blocks(target.reshape(2, 2), umem.Host(), rows=1, destination=target.reshape(2, 2)) as blocks:
        for block in blocks:
            block.array.fill(block.number)
    assert target.tolist() == [0, 0, 1, 1]
    for function in umem.copy, umem.start:
        with pytest.raises(umem.TypeError, match="list has no memory to write to"):
            function([1, 2], target)
