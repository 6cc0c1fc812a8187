"""Regions of zarr arrays beside zarr itself."""
import os
import resource
import shutil
import sys
import threading
import types

import pytest

import umem

numpy = pytest.importorskip("numpy")
zarr = pytest.importorskip("zarr")
hypothesis = pytest.importorskip("hypothesis")
strategies = pytest.importorskip("hypothesis.strategies")

DTYPES = ["<f4", ">f4", "<i2", ">i8", "u1", "bool", "<c8", "<M8[s]", "<f8"]


def draw_elements(draw, shape, dtype):
    random = numpy.random.default_rng(draw(strategies.integers(0, 9)))
    return random.integers(0, 200, shape).astype("i8").astype(dtype)


def draw_key(draw, extent):
    kind = draw(strategies.sampled_from(["all", "slice", "slice", "int"]))
    bound = strategies.none() | strategies.integers(-extent - 1, extent + 1)
    if kind == "int" and extent:
        return draw(strategies.integers(-extent, extent - 1))
    if kind == "all":
        return slice(None)
    return slice(draw(bound), draw(bound), draw(strategies.sampled_from([None, 1, 1, 2, 3, 7, -1, -2])))


def draw_selection(draw, shape):
    keys = [draw_key(draw, extent) for extent in shape]
    cut = draw(strategies.integers(0, len(keys)))
    form = draw(strategies.sampled_from(["all", "dots", "short"]))
    if form == "dots":
        rest = draw(strategies.integers(cut, len(keys)))
        return (*keys[:cut], ..., *keys[rest:])
    return tuple(keys if form == "all" else keys[:cut])


def draw_array(draw, folder):
    """An array of zarr with some chunks written, and what it has."""
    shape = tuple(draw(strategies.lists(strategies.integers(0, 11), max_size=3)))
    chunks = tuple(draw(strategies.integers(1, 5)) for _ in shape)
    dtype, version = draw(strategies.sampled_from(DTYPES)), draw(strategies.sampled_from([2, 3]))
    options = {"compressors": draw(strategies.sampled_from([None, None, "auto"]))}
    fill = draw(strategies.sampled_from([0, 7, None]))
    if numpy.dtype(dtype).kind == "M":
        fill = None if fill is None else numpy.datetime64(fill, "s")
    if version == 2:
        options |= {"order": draw(strategies.sampled_from("CF"))}
    elif shape and draw(strategies.booleans()):
        options |= {"shards": tuple(n * draw(strategies.integers(1, 3)) for n in chunks)}
    if version == 3 and shape and draw(strategies.booleans()):
        turn = draw(strategies.permutations(range(len(shape))))
        options |= {"filters": [zarr.codecs.TransposeCodec(order=tuple(turn))]}
    if version == 3 and "shards" not in options and numpy.dtype(dtype).itemsize > 1:
        options |= {"serializer": zarr.codecs.BytesCodec(endian=draw(strategies.sampled_from(["little", "big"])))}
    array = zarr.create_array(folder, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill, zarr_format=version, **options)
    for _ in range(draw(strategies.integers(0, 2))):
        part = tuple(slice(*sorted((draw(strategies.integers(0, n)), draw(strategies.integers(0, n))))) for n in shape)
        if draw(strategies.booleans()):
            part = (slice(None),) * len(shape)
        array[part] = draw_elements(draw, numpy.empty(shape)[part].shape, dtype)
    return zarr.open_array(folder, mode="r+") if draw(strategies.booleans()) else array


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """New folders, of which only the last one is kept."""
    base, count = tmp_path_factory.mktemp("zarr"), iter(range(1 << 30))

    def make():
        shutil.rmtree(base)
        return base / str(next(count))
    return make


MANY = hypothesis.settings(max_examples=60, deadline=None, derandomize=True, database=None,
                           suppress_health_check=list(hypothesis.HealthCheck))


def same(found, expected):
    return found.shape == expected.shape and found.tobytes() == expected.astype(found.dtype).tobytes()


@pytest.fixture(params=[1 << 20, 0], ids=["put together in RAM", "in parts"])
def parts(request):
    """Below how many bytes parts are put together in RAM for other places, and copied at once."""
    module = sys.modules["umem.zarr"]
    module._PART, before = request.param, module._PART
    yield
    module._PART = before


@MANY
@hypothesis.given(strategies.data())
def test_regions_are_those_that_zarr_reads(folders, parts, data):
    array = draw_array(data.draw, folders())
    whole, selection = numpy.asarray(array[...]), draw_selection(data.draw, array.shape)
    expected = numpy.asarray(whole[selection])
    place = umem.File() if data.draw(strategies.booleans()) else umem.host()
    found = umem.from_zarr(array, selection, place)
    assert found.place is place and found.dtype == array.dtype.newbyteorder("=")
    assert same(found.numpy(copy=True), expected)
    around = umem.zeros(tuple(2 * n + 1 for n in expected.shape), found.dtype, place)
    out = around[tuple(slice(1, None, 2) for _ in expected.shape)]
    assert umem.from_zarr(array, selection, out=out) is out
    assert same(out.numpy(copy=True), expected)
    rest = around.numpy(copy=True)
    rest[tuple(slice(1, None, 2) for _ in expected.shape)] = 0
    assert same(rest, numpy.zeros_like(rest))  # what is between is as before


@MANY
@hypothesis.given(strategies.data())
def test_regions_are_written_as_by_zarr(folders, parts, data):
    folder = folders()
    array = draw_array(data.draw, folder)
    whole, selection = numpy.array(array[...]), draw_selection(data.draw, array.shape)
    place = umem.File() if data.draw(strategies.booleans()) else umem.host()
    source = draw_elements(data.draw, whole[selection].shape, array.dtype.newbyteorder("="))
    whole[selection] = source
    umem.to_zarr(umem.asarray(source, place=place), array, selection)
    assert same(numpy.asarray(array[...]), whole)
    assert same(numpy.asarray(zarr.open_array(folder)[...]), whole)
    assert same(umem.from_zarr(array).numpy(), whole)
    assert not [name for _, _, names in os.walk(folder) for name in names if "partial" in name]


# ---- which way chunks go ----

KINDS = {
    "plain": {"compressors": None}, "edges": {"compressors": None, "chunks": (4, 5)},
    "v2": {"compressors": None, "zarr_format": 2, "order": "F"},
    "transposed": {"compressors": None, "filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
    "shards": {"compressors": None, "shards": (8, 4)},
    "swapped": {"compressors": None, "serializer": zarr.codecs.BytesCodec(endian="big")},
    "swapped v2": {"compressors": None, "zarr_format": 2, "dtype": ">f4"},
    "index first": {"shards": {"shape": (8, 4), "index_location": "start"}, "compressors": None},
    "zstd": {}, "zstd in shards": {"shards": (8, 4)}, "zstd v2": {"zarr_format": 2},
    "checksums": {"compressors": [zarr.codecs.Crc32cCodec()]},
}
BY_ZARR = {"zstd", "zstd in shards", "zstd v2", "checksums"}


def make(store, kind="plain", shape=(10, 12), **more):
    options = {"shape": shape, "chunks": (4, 4), "dtype": "f4", "fill_value": 3} | KINDS[kind] | more
    array = zarr.create_array(store, **options)
    array[...] = expected = numpy.arange(120, dtype="f4").reshape(10, 12)
    return array, expected


@pytest.fixture
def by_zarr(monkeypatch):
    """How many regions zarr reads or writes."""
    calls = []
    module = sys.modules["umem.zarr"]
    for name in ("_read_by_zarr", "_write_by_zarr"):
        def count(*arguments, function=getattr(module, name)):
            calls.append(function)
            return function(*arguments)
        monkeypatch.setattr(module, name, count)
    return calls


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_must_be_decoded_goes_by_zarr(kind, by_zarr, tmp_path):
    array, expected = make(tmp_path / "a", kind)
    found = umem.from_zarr(array, (slice(2, 9), slice(None, None, 3)))
    assert found.tolist() == expected[2:9, ::3].tolist()
    assert bool(by_zarr) == (kind in BY_ZARR)
    by_zarr.clear()
    umem.to_zarr(expected + 1, array)
    assert numpy.array_equal(array[...], expected + 1)
    assert bool(by_zarr) == (kind in BY_ZARR or kind.startswith("swapped"))


@pytest.mark.parametrize("kind", ["plain", "shards", "swapped", "zstd"])
def test_every_place_gets_and_gives_regions(kind, place, parts, tmp_path):
    array, expected = make(tmp_path / "a", kind)
    key = slice(None, None, -2), slice(1, -1)
    found = umem.from_zarr(array, key, place)
    assert found.place is place and found.numpy(copy=True).tolist() == expected[key].tolist()
    umem.to_zarr(found, array, (slice(0, 5), slice(2, None)))
    expected = expected.copy()
    expected[:5, 2:] = expected[key].copy()
    assert numpy.array_equal(array[...], expected)


@pytest.mark.parametrize("kind", ["plain", "zstd", "swapped"])
def test_blocks_bound_the_memory(kind, monkeypatch, tmp_path):
    """Blocks end at chunks, and a chunk is not cut."""
    module = sys.modules["umem.zarr"]
    array, expected = make(tmp_path / "a", kind)
    sizes = []
    empty = umem._core.empty

    def measured(shape, dtype, place):
        sizes.append(numpy.prod(shape, dtype=int) * 4)
        return empty(shape, dtype, place)
    for block, most in ((4 * 4 * 4, 4 * 4 * 4), (200, 4 * 12 * 4), (400, 6 * 12 * 4), (1, 64)):
        sizes.clear()
        monkeypatch.setattr(module, "_BLOCK", block)
        monkeypatch.setattr(module, "_DECODED", block)
        found = umem.empty((10, 12), "f4", umem.File())
        source = umem.asarray(expected, place=umem.File())
        with monkeypatch.context() as patch:
            patch.setattr(umem._core, "empty", measured)
            umem.from_zarr(array, out=found)
            umem.to_zarr(source, array)
        assert found.tolist() == expected.tolist() and numpy.array_equal(array[...], expected)
        assert max(sizes, default=0) <= most and sizes


def test_missing_chunks_have_the_fill_value(tmp_path):
    for kind in ("plain", "shards", "zstd", "swapped"):
        array = zarr.create_array(tmp_path / kind, shape=(10, 12), chunks=(4, 4), dtype="f4", fill_value=numpy.nan, **KINDS[kind])
        array[4:8, 4:8] = 1
        assert same(umem.from_zarr(array).numpy(), array[...])
    array, expected = make(tmp_path / "folder")
    os.unlink(tmp_path / "folder/c/0/0")
    os.mkdir(tmp_path / "folder/c/0/0")
    os.unlink(tmp_path / "folder/c/0/1")
    os.symlink("nowhere", tmp_path / "folder/c/0/1")
    shutil.rmtree(tmp_path / "folder/c/1")
    (tmp_path / "folder/c/1").write_bytes(b"no folder")
    assert numpy.array_equal(array[...], umem.from_zarr(array).numpy()) and umem.from_zarr(array, (0, 0)).item() == 3


def test_stores_that_are_no_folder_go_by_zarr(by_zarr, tmp_path):
    from zarr.storage import LoggingStore, MemoryStore, ZipStore

    stores = [MemoryStore(), LoggingStore(zarr.storage.LocalStore(tmp_path / "a")), ZipStore(tmp_path / "a.zip", mode="w")]
    try:
        import fsspec  # noqa: F401
        stores.append(zarr.storage.FsspecStore.from_url("memory://zarr-regions"))
    except ImportError:
        pass
    for k, store in enumerate(stores, 1):
        array, expected = make(store)
        assert umem.from_zarr(array, (..., 3)).tolist() == expected[:, 3].tolist() and len(by_zarr) == k


def test_zarr_reads_to_ram_also_when_it_was_told_to_use_a_gpu(tmp_path):
    array, expected = make(tmp_path / "a", "zstd")
    with zarr.config.enable_gpu():
        assert umem.from_zarr(array).tolist() == expected.tolist()
        umem.to_zarr(expected[:3], array, slice(0, 3))


def test_strings_and_records(tmp_path):
    words = numpy.array(["a", "bc", "def"])
    for version, dtype in ((2, "U3"), (2, "S4"), (3, "U3"), (2, [("a", "<i4"), ("b", ">f8")])):
        array = zarr.create_array(tmp_path / "a", shape=3, chunks=2, dtype=dtype, zarr_format=version, compressors=None,
                                  overwrite=True)
        array[...] = expected = numpy.array([(1, 2), (3, 4), (5, 6)], dtype) if isinstance(dtype, list) else words.astype(dtype)
        found = umem.from_zarr(array, slice(None, None, -1))
        assert numpy.array_equal(found.numpy(), expected[::-1])
        umem.to_zarr(found, array)
        assert numpy.array_equal(array[...], expected[::-1])
    texts = zarr.create_array(tmp_path / "b", shape=3, dtype=str)
    with pytest.raises(umem.TypeError):
        umem.from_zarr(texts)


@pytest.mark.parametrize("shards", [None, (8 << 20,)])
def test_long_chunks_are_complete_when_the_call_returns(shards, tmp_path):
    """Many at a time, each as a whole."""
    expected = numpy.arange(32 << 20, dtype="u4").reshape(-1)[:24 << 20]
    array = zarr.create_array(tmp_path / "a", shape=expected.shape, chunks=(1 << 20,), dtype="u4", compressors=None, shards=shards)
    umem.to_zarr(expected, array)
    for _ in range(4):
        assert numpy.array_equal(umem.from_zarr(array).numpy(), expected)


# ---- what is refused ----


def test_wrong_arguments_are_refused(tmp_path):
    array, expected = make(tmp_path / "a")
    for wrong in (expected, str(tmp_path / "a"), zarr.create_group(tmp_path / "g")):
        with pytest.raises(umem.TypeError, match="zarr.Array"):
            umem.from_zarr(wrong)
        with pytest.raises(umem.TypeError, match="zarr.Array"):
            umem.to_zarr(expected, wrong)
    for key, error in (((0, 0, 0), umem.IndexError), (10, umem.IndexError), (-11, umem.IndexError), ((..., ...), umem.IndexError),
                       ([1, 2], umem.TypeError), (None, umem.TypeError), (True, umem.TypeError), ("x", umem.TypeError),
                       (1.5, umem.TypeError), (slice(0, 3, 0), ValueError)):
        with pytest.raises(error):
            umem.from_zarr(array, key)
        with pytest.raises(error):
            umem.to_zarr(expected, array, key)
    with pytest.raises(umem.ValueError, match=r"shape \(10,\), and the region \(12,\)"):
        umem.from_zarr(array, 0, out=umem.empty(10, "f4"))
    with pytest.raises(umem.TypeError, match="out has elements of float64"):
        umem.from_zarr(array, out=umem.empty((10, 12), "f8"))
    with pytest.raises(umem.ValueError, match="a place or out"):
        umem.from_zarr(array, ..., "host:", out=umem.empty((10, 12), "f4"))
    with pytest.raises(umem.ValueError, match=r"source has the shape \(10,\)"):
        umem.to_zarr(umem.empty(10, "f4"), array, 0)
    with pytest.raises(umem.TypeError, match="astype"):
        umem.to_zarr(umem.empty((10, 12), "f8"), array)
    with pytest.raises(umem.ValueError, match="read only"):
        umem.to_zarr(expected, zarr.open_array(tmp_path / "a", mode="r"))
    frozen = umem.asarray(memoryview(expected.tobytes()).cast("f", (10, 12)))
    with pytest.raises(umem.Error):
        umem.from_zarr(array, out=frozen)
    assert numpy.array_equal(array[...], expected)


@pytest.mark.parametrize("change, why", [
    (lambda text: text[:-1], "of 63 bytes, expected 64"), (lambda text: text + b"\0", "of 65 bytes, expected 64"),
    (lambda text: b"", "of 0 bytes, expected 64"),
])
def test_chunks_of_another_length_are_refused(change, why, tmp_path):
    array, expected = make(tmp_path / "a")
    file = tmp_path / "a/c/1/2"
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(umem.ValueError, match=f"a/c/1/2: a chunk {why}"):
        umem.from_zarr(array)
    assert umem.from_zarr(array, slice(0, 4)).tolist() == expected[:4].tolist()


def test_a_pipe_is_no_chunk(tmp_path):
    array, _ = make(tmp_path / "a")
    os.unlink(tmp_path / "a/c/1/2")
    os.mkfifo(tmp_path / "a/c/1/2")
    with pytest.raises(umem.OSError, match="c/1/2.*regular"):
        umem.from_zarr(array)


def change_index(file, change, location):
    """Changes the index of a shard of two chunks of 64 bytes, and its checksum with it."""
    import google_crc32c

    text = file.read_bytes()
    index, rest = (text[-36:], text[:-36]) if location == "end" else (text[:36], text[36:])
    numbers = numpy.frombuffer(index[:32], "<u8").copy().reshape(2, 1, 2)
    change(numbers)
    index = numbers.tobytes() + google_crc32c.value(numbers.tobytes()).to_bytes(4, "little")
    file.write_bytes(rest + index if location == "end" else index + rest)


def set_number(position, value):
    def change(numbers):
        numbers[position] = value
    return change


LIES = {
    "an offset behind the end": set_number((0, 0, 0), 1 << 20), "an offset of 2^64 - 8": set_number((0, 0, 0), (1 << 64) - 8),
    "an end behind the end": set_number((0, 0, 0), 101), "fewer bytes": set_number((0, 0, 1), 63),
    "more bytes": set_number((0, 0, 1), 65), "bytes of 2^64 - 1": set_number((0, 0, 1), (1 << 64) - 1),
    "half missing": set_number((0, 0, 0), (1 << 64) - 1), "an overflow": set_number((0, 0), [(1 << 64) - 32, 64]),
}


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("lie", LIES)
def test_an_index_that_lies_is_refused(lie, location, tmp_path):
    shards = {"shape": (8, 4), "index_location": location}
    array, expected = make(tmp_path / "a", "shards", shards=shards)
    change_index(tmp_path / "a/c/0/1", lambda numbers: None, location)
    assert umem.from_zarr(array).tolist() == expected.tolist()
    change_index(tmp_path / "a/c/0/1", LIES[lie], location)
    with pytest.raises(umem.ValueError, match=r"a/c/0/1: chunk \(0, 0\) of the shard has"):
        umem.from_zarr(array)
    assert umem.from_zarr(array, slice(4, None)).tolist() == expected[4:].tolist()


def test_a_shard_is_checked(tmp_path):
    array, expected = make(tmp_path / "a", "shards")
    file = tmp_path / "a/c/0/1"
    text = file.read_bytes()
    for place in (-1, -5, -36):
        wrong = bytearray(text)
        wrong[place] ^= 1
        file.write_bytes(wrong)
        with pytest.raises(umem.ValueError, match="a/c/0/1: the index of the shard has another checksum"):
            umem.from_zarr(array)
    for length in (0, 1, 35):
        file.write_bytes(text[:length])
        with pytest.raises(umem.ValueError, match=f"a shard of {length} bytes has no index"):
            umem.from_zarr(array)
    file.write_bytes(text[-36:])
    with pytest.raises(umem.ValueError, match="expected 64 of 36"):
        umem.from_zarr(array)
    file.write_bytes(b"gap" + text[:-36] + text[-36:])
    assert umem.from_zarr(array).tolist() == array[...].tolist()  # zarr allows gaps, too; the elements are others


def test_versions_of_zarr_with_another_package_for_checksums(monkeypatch, tmp_path):
    import google_crc32c

    array, expected = make(tmp_path / "a", "shards")
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    monkeypatch.setitem(sys.modules, "crc32c", types.SimpleNamespace(crc32c=google_crc32c.value))
    assert umem.from_zarr(array).tolist() == expected.tolist()


def test_blocks_are_decoded_beside_others_and_used_again(monkeypatch, tmp_path):
    """The first one waits until others have begun."""
    module = sys.modules["umem.zarr"]
    expected = numpy.arange(64 * 16, dtype="f4").reshape(64, 16)
    array = zarr.create_array(tmp_path / "a", shape=expected.shape, chunks=(2, 16), dtype="f4")
    array[...] = expected
    begun, rooms, read, empty = threading.Semaphore(0), [], module._read_by_zarr, umem._core.empty

    def waiting(array, region, dst):
        begun.release()
        if region[0].start == 0:
            assert all(begun.acquire(timeout=60) for _ in range(module._READERS))
        read(array, region, dst)

    def counted(*arguments):
        rooms.append(empty(*arguments))
        return rooms[-1]
    monkeypatch.setattr(module, "_DECODED", 128)
    monkeypatch.setattr(module, "_read_by_zarr", waiting)
    found = umem.empty(expected.shape, "f4", umem.File())
    monkeypatch.setattr(umem._core, "empty", counted)
    umem.from_zarr(array, out=found)
    assert found.tolist() == expected.tolist() and len(rooms) == module._READERS + 1


def test_what_zarr_raises_arrives(monkeypatch, tmp_path):
    array, _ = make(tmp_path / "a", "zstd")
    (tmp_path / "a/c/0/0").write_bytes(b"no zstd at all")
    with pytest.raises(Exception) as ours:
        umem.from_zarr(array)
    with pytest.raises(Exception) as theirs:
        array[...]
    assert type(ours.value) is type(theirs.value) and not isinstance(ours.value, umem.Error)
    monkeypatch.setattr(sys.modules["umem.zarr"], "_DECODED", 1)  # the other blocks are read meanwhile
    with pytest.raises(type(theirs.value)):
        umem.from_zarr(array, ..., umem.File())


def test_a_chunk_that_is_replaced_is_the_old_one_or_the_new_one(tmp_path):
    array = zarr.create_array(tmp_path / "a", shape=(4096,), chunks=(1024,), dtype="i4", compressors=None)
    array[...] = 1
    ended = threading.Event()

    def replace():
        number = 1
        while not ended.is_set():
            number += 1
            umem.to_zarr(numpy.full(4096, number, "i4"), array)
    thread = threading.Thread(target=replace)
    thread.start()
    try:
        seen = set()
        for _ in range(100):
            found = umem.from_zarr(array).numpy().reshape(4, 1024)
            assert (found == found[:, :1]).all()
            seen.update(found[:, 0].tolist())
    finally:
        ended.set()
        thread.join()
    assert len(seen) > 1


def test_a_chunk_that_becomes_shorter_is_an_error_and_not_a_crash(monkeypatch, tmp_path):
    array, _ = make(tmp_path / "a")
    copy_many = umem.transfer.copy_many

    def cut(pairs):
        os.truncate(tmp_path / "a/c/0/1", 8)
        copy_many(pairs)
    monkeypatch.setattr(umem.transfer, "copy_many", cut)
    monkeypatch.setattr(sys.modules["umem.zarr"], "_LONG_RUN", 0)
    with pytest.raises(umem.Error, match="c/0/1"):
        umem.from_zarr(array)


# ---- writing ----


@pytest.mark.parametrize("kind", ["plain", "shards"])
def test_a_write_that_fails_leaves_whole_chunks(kind, tmp_path):
    array, expected = make(tmp_path / "a", kind)
    big = zarr.create_array(tmp_path / "b", shape=(64, 1024), chunks=(8, 1024), dtype="f4", compressors=None,
                            shards=(16, 1024) if kind == "shards" else None)
    before = umem.full((64, 1024), 1, "f4")
    umem.to_zarr(before, big)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, limit[1]))
    try:
        with pytest.raises((umem.OSError, umem.MemoryError)):
            umem.to_zarr(umem.full((64, 1024), 2, "f4"), big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert numpy.array_equal(big[...], before.numpy())
    assert not list((tmp_path / "b").rglob("*.partial")) and numpy.array_equal(array[...], expected)


def test_chunks_have_the_rights_of_files_of_the_user(tmp_path):
    array = zarr.create_array(tmp_path / "a", shape=(4, 4), chunks=(4, 4), dtype="f4", compressors=None)
    old = os.umask(0o027)
    try:
        umem.to_zarr(umem.zeros((4, 4), "f4"), array)
    finally:
        os.umask(old)
    assert (tmp_path / "a/c/0/0").stat().st_mode & 0o777 == 0o640


def test_a_shard_is_as_others_expect_it(tmp_path):
    """Chunks that are outside of the array are missing, and zarr can change what umem wrote."""
    for location in ("start", "end"):
        array, expected = make(tmp_path / location, "shards", shards={"shape": (8, 8), "index_location": location})
        umem.to_zarr(expected + 1, array)
        assert (tmp_path / location / "c/1/1").stat().st_size == 64 + 4 * 16 + 4
        array[3:9, 5:] = 7
        expected = expected + 1
        expected[3:9, 5:] = 7
        assert numpy.array_equal(zarr.open_array(tmp_path / location)[...], expected)
        assert numpy.array_equal(umem.from_zarr(array).numpy(), expected)


def test_numbers_and_lists_are_written(tmp_path):
    array, _ = make(tmp_path / "a")
    umem.to_zarr(5, array, (1, 2))
    umem.to_zarr([1, 2, 3], array, (0, slice(0, 3)))
    assert array[1, 2] == 5 and array[0, :3].tolist() == [1, 2, 3]


def test_umem_does_not_import_zarr(run_python):
    assert run_python("import sys, umem; print('zarr' in sys.modules, 'numpy' in sys.modules)") == "False False\n"
