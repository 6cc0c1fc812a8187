"""Files of .npz, beside NumPy."""
import io
import os
import signal
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from pathlib import Path

import pytest

import umem
import umem.formats

numpy = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")
strategies = pytest.importorskip("hypothesis.strategies")
if not umem._core._has_formats:
    pytest.skip("the package was built without nlohmann-json", allow_module_level=True)

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128"]


def make_arrays():
    random = numpy.random.default_rng(1)
    return {"b": random.random((3, 4)).astype("float32"), "a": random.integers(0, 9, (2, 0, 5)),
            "layer.0/w\"eight\n": random.random(()), "ä": random.integers(0, 2, 7).astype("bool"),
            "f": numpy.asfortranarray(random.random((5, 3, 2)))}


SAVERS = {"stored": numpy.savez, "compressed": numpy.savez_compressed}


@pytest.fixture(params=SAVERS)
def saver(request):
    return SAVERS[request.param]


def assert_same(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert numpy.array_equal(numpy.asarray(found.numpy() if isinstance(found, umem.Array) else found), expected)


# ---- both ways ----


def test_what_numpy_writes_is_read(saver, tmp_path):
    arrays = make_arrays()
    saver(tmp_path / "x.npz", **arrays)
    raw = (tmp_path / "x.npz").read_bytes()
    with umem.formats.open(tmp_path / "x.npz") as archive:
        assert list(archive) == numpy.load(tmp_path / "x.npz").files == list(arrays) and archive.metadata == {}
        archive.check()
        for name, expected in arrays.items():
            array, info = archive[name], archive.info(name)
            assert_same(array, expected)
            assert array.dtype == info.dtype and info.shape == array.shape and info.nbytes == expected.nbytes
            assert info.compressed == (saver is numpy.savez_compressed) and info.problem is None
            if expected.size:
                assert info.strides == array.strides == expected.strides
            if info.compressed:
                assert not array.read_only and type(array.place) is umem.Host
            else:
                assert array.read_only and type(array.place) is umem.MMap
                assert raw[info.offset:info.offset + info.nbytes] == expected.tobytes("A")
        with pytest.raises(KeyError):
            archive["c"]
    assert_same(array, expected)  # outlives the archive


def test_arrays_are_loaded_to_every_place(place, saver, tmp_path):
    arrays = make_arrays()
    saver(tmp_path / "x.npz", **arrays)
    for names in (None, ["f", "ä"]):
        loaded = umem.formats.load(tmp_path / "x.npz", place, names)
        assert set(loaded) == set(arrays if names is None else names)
        for name, array in loaded.items():
            assert array.place is place and array.dtype == arrays[name].dtype and not array.read_only
            assert array.tolist() == arrays[name].tolist()


def test_arrays_are_loaded_into_parts(place, saver, tmp_path):
    arrays = make_arrays()
    saver(tmp_path / "x.npz", **arrays)
    archive = umem.formats.open(tmp_path / "x.npz")
    whole, turned = umem.zeros((6, 8), "float32", place), umem.zeros((2, 3, 5), "float64", place)
    archive.load_into({"b": whole[::2, 1::2], "f": turned.T})
    assert whole[::2, 1::2].tolist() == arrays["b"].tolist() and not any(whole[1].tolist())
    assert turned.T.tolist() == arrays["f"].tolist()
    with pytest.raises(umem.ValueError, match="another shape"):
        archive.load_into({"b": whole})


@pytest.mark.parametrize("order", "CF")
def test_big_endian_arrays_are_turned(order, place, saver, tmp_path):
    random = numpy.random.default_rng(1)
    arrays = {name: numpy.array(random.integers(0, 200, (3, 4, 5)), name, order=order) for name in TYPES}
    arrays["complex128"] += 1j * arrays["complex128"].T.reshape(3, 4, 5)
    arrays |= {"long": random.random((3, 100001)), "scalar": random.random(()), "none": numpy.zeros((2, 0))}
    saver(tmp_path / "x.npz", **{name: array.astype(array.dtype.newbyteorder(">")) for name, array in arrays.items()})
    archive = umem.formats.open(tmp_path / "x.npz")
    archive.check()
    loaded = archive.load(place, [name for name in arrays if name != "long"])
    for name, expected in arrays.items():
        info = archive.info(name)
        assert info.big_endian == (expected.itemsize > 1)
        assert info.problem is None and info.compressed == (saver is SAVERS["compressed"] or expected.itemsize > 1)
        assert_same(archive[name], expected)
        if name in loaded:
            assert loaded[name].place is place and loaded[name].dtype == expected.dtype
            assert loaded[name].tolist() == expected.tolist()
    part = umem.zeros((3, 4, 10), "int32", place)
    archive.load_into({"int32": part[:, ::-1, 1::2]})
    assert part[:, ::-1, 1::2].tolist() == arrays["int32"].tolist() and not any(part[..., 0].tolist()[0])


@pytest.mark.parametrize("name", ["x.npz", "x.safetensors"])
def test_big_endian_arrays_are_written_as_others_write_them(name, place, tmp_path):
    random = numpy.random.default_rng(1)
    kinds = [kind for kind in TYPES if kind != "complex128" or name == "x.npz"]
    arrays = {kind: numpy.array(random.integers(0, 100, (3, 4, 5)), kind) for kind in kinds}
    arrays |= {"long": random.random((3, 100001)), "scalar": random.random(()), "none": numpy.zeros((2, 0))}
    arrays = {key: array.astype(array.dtype.newbyteorder(">")) for key, array in arrays.items()}
    given = {key: umem.asarray(array).copy(place) if array.nbytes < 1 << 20 else array for key, array in arrays.items()}
    given["turned"], arrays["turned"] = given["int32"].T, arrays["int32"].T
    given["part"], arrays["part"] = given["int16"][::2, 1:, ::-1], arrays["int16"][::2, 1:, ::-1]
    reported = []
    umem.formats.save(tmp_path / name, given, progress=lambda done, total: reported.append((done, total)))
    assert reported[-1][0] == reported[-1][1] and reported == sorted(reported)
    if name == "x.npz":
        umem.formats.open(tmp_path / name).check()
        with numpy.load(tmp_path / name) as file:
            found = {key: file[key] for key in file.files}
        assert {key: array.dtype for key, array in found.items()} == {key: array.dtype for key, array in arrays.items()}
    else:
        library = pytest.importorskip("safetensors.numpy")
        native = {key: array.astype(array.dtype.newbyteorder("="), order="C") for key, array in arrays.items()}
        assert (tmp_path / name).read_bytes() == library.save(native)
        found = library.load_file(tmp_path / name)
    assert found.keys() == arrays.keys()
    assert all(numpy.array_equal(found[key], array) for key, array in arrays.items())
    again = umem.formats.load(tmp_path / name)
    assert all(numpy.array_equal(again[key].numpy(), array) for key, array in arrays.items())


@pytest.mark.parametrize("kind", [">f16", ">U3", ">M8[s]"])
def test_other_big_endian_types_are_refused(kind, tmp_path):
    for name in "x.npz", "x.safetensors":
        with pytest.raises(umem.TypeError):
            umem.formats.save(tmp_path / name, {"a": numpy.zeros(3, kind)})


@pytest.mark.parametrize("shape", [(400000,), (2, 150001), (50000, 7), (2, 2, 2, 150000)])
def test_long_arrays_are_read_in_parts(shape, saver, tmp_path):
    arrays = {"c": numpy.arange(numpy.prod(shape), dtype="float64").reshape(shape)}
    arrays["f"] = numpy.asfortranarray(arrays["c"])
    saver(tmp_path / "x.npz", **arrays)
    archive = umem.formats.open(tmp_path / "x.npz")
    whole = {name: umem.zeros((*shape[:-1], shape[-1] + 1)) for name in arrays}
    archive.load_into({name: array[..., 1:] for name, array in whole.items()})
    for name, array in whole.items():
        assert numpy.array_equal(array.numpy()[..., 1:], arrays[name]) and not array.numpy()[..., 0].any()
        assert numpy.array_equal(archive[name].numpy(), arrays[name])


def test_arrays_of_every_place_are_saved(place, tmp_path):
    arrays = make_arrays()
    there = {name: umem.asarray(array, place=place) for name, array in arrays.items()}
    umem.formats.save(tmp_path / "x.npz", there | {"t": there["b"].T})
    with numpy.load(tmp_path / "x.npz") as found:
        assert found.files == [*arrays, "t"]
        for name, expected in (arrays | {"t": arrays["b"].T}).items():
            assert_same(found[name], expected)
    assert zipfile.ZipFile(tmp_path / "x.npz").testzip() is None
    archive = umem.formats.open(tmp_path / "x.npz")
    archive.check()
    assert all(archive.info(name).offset % 64 == 0 for name in archive)


NAMES = strategies.text(strategies.characters(codec="utf-8", exclude_characters="\0"), max_size=6).filter(
    lambda name: not name.endswith("/"))
SHAPES = strategies.lists(strategies.integers(0, 4), max_size=4)
FILES = strategies.dictionaries(NAMES, strategies.tuples(strategies.sampled_from(TYPES), SHAPES, strategies.booleans()), max_size=5)


def make_described(described):
    arrays = {}
    for name, (dtype, shape, fortran) in described.items():
        array = numpy.arange(numpy.prod(shape, dtype=int)).astype(dtype).reshape(shape)
        arrays[name] = numpy.asfortranarray(array) if fortran else array
    return arrays


@hypothesis.given(FILES)
@hypothesis.settings(max_examples=150, deadline=None)
def test_numpy_reads_what_umem_writes(tmp_path_factory, described):
    path = tmp_path_factory.getbasetemp() / "ours.npz"
    arrays = make_described(described)
    umem.formats.save(path, arrays)
    with numpy.load(path) as found:
        assert found.files == list(arrays)
        for name, expected in arrays.items():
            member = io.BytesIO(found.zip.read(name + ".npy"))  # a name "a.npy" is not what found["a.npy"] finds
            assert_same(numpy.load(member), expected)


def unsupported(*_):
    raise io.UnsupportedOperation


@hypothesis.given(FILES, strategies.booleans(), strategies.booleans())
@hypothesis.settings(max_examples=150, deadline=None)
def test_umem_reads_what_numpy_writes(tmp_path_factory, described, compressed, streamed):
    arrays = make_described(described)
    file = io.BytesIO()
    if streamed:  # sizes and checksums are behind the bytes
        file.seekable = lambda: False
        file.seek = file.tell = unsupported
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as made:
        for name, array in arrays.items():
            with made.open(name + ".npy", "w", force_zip64=True) as member:
                numpy.lib.format.write_array(member, array)
    raw = umem.asarray(numpy.frombuffer(file.getvalue(), "uint8").copy())
    archive = umem.formats.open(raw)
    assert list(archive) == list(arrays)
    archive.check()
    for name, expected in arrays.items():
        assert_same(archive[name], expected)
    for name, array in archive.load().items():
        assert_same(array, arrays[name])


def test_a_save_without_that_ending_needs_its_format(tmp_path):
    arrays = make_arrays()
    umem.formats.save(tmp_path / "x", arrays, format="npz")
    umem.formats.save(tmp_path / "y.npz", arrays, format="safetensors")
    assert numpy.load(tmp_path / "x").files == list(arrays)
    assert (tmp_path / "y.npz").read_bytes()[8:9] == b"{"
    with pytest.raises(umem.ValueError, match="known are"):
        umem.formats.save(tmp_path / "x", arrays, format="zip")
    with pytest.raises(umem.ValueError, match="no metadata"):
        umem.formats.save(tmp_path / "x.npz", arrays, {"by": "me"})
    with pytest.raises(umem.TypeError, match="bfloat16"):
        umem.formats.save(tmp_path / "x.npz", {"a": umem.zeros(3, "bfloat16")})
    assert sorted(os.listdir(tmp_path)) == ["x", "y.npz"]


def test_more_than_65535_arrays(tmp_path):
    one = umem.zeros(1, "uint8")
    umem.formats.save(tmp_path / "x.npz", {str(k): one for k in range(65540)})
    assert len(zipfile.ZipFile(tmp_path / "x.npz").infolist()) == 65540
    archive = umem.formats.open(tmp_path / "x.npz")
    assert len(archive) == 65540 and archive["65539"].tolist() == [0]


def test_an_array_beyond_4_gib_is_read(tmp_path):
    """Of a sparse file, whose headers have sizes of 64 bits."""
    header = npy("uint8", (5 << 30,))
    size = len(header) + (5 << 30)
    with open(tmp_path / "x.npz", "wb") as file:
        members = [Member("big.npy", header, size=size, packed=size), Member("small.npy", npy("uint8", (3,)) + b"abc")]
        position = 0
        for member in members:
            member.begin = position
            file.write(member.local() + member.data)
            position += len(member.local()) + member.packed
            file.seek(position)
        directory = b"".join(member.entry() for member in members)
        file.write(directory + end64(position, len(directory), 2))
    archive = umem.formats.open(tmp_path / "x.npz")
    assert archive["big"].shape == (5 << 30,) and archive["big"][5 << 29].item() == 0
    assert bytes(archive["small"].tolist()) == b"abc" and archive.info("small").offset > 5 << 30
    assert [entry.filename for entry in zipfile.ZipFile(tmp_path / "x.npz").infolist()] == ["big.npy", "small.npy"]


@pytest.mark.skipif("UMEM_TEST_LARGE" not in os.environ, reason="writes 4 GiB: UMEM_TEST_LARGE is not set")
def test_an_array_beyond_4_gib_is_written(tmp_path):
    with umem.File(tmp_path / "sparse", "w+", reserve="none") as place:
        big = umem.empty((4 << 30) + 5, "uint8", place)
        big[-1:] = 7
        umem.formats.save(tmp_path / "x.npz", {"big": big, "small": numpy.arange(3)})
    assert zipfile.ZipFile(tmp_path / "x.npz").testzip() is None
    with numpy.load(tmp_path / "x.npz") as found:
        assert found["small"].tolist() == [0, 1, 2] and found["big"].size == (4 << 30) + 5 and found["big"][-1] == 7


# ---- zip files made by hand ----


def npy(dtype, shape):
    file = io.BytesIO()
    numpy.lib.format.write_array_header_1_0(file, {"descr": numpy.dtype(dtype).str, "fortran_order": False, "shape": shape})
    return file.getvalue()


def deflated(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


class Member:
    """A file in a zip file, with any fields."""

    def __init__(self, name="a.npy", data=None, **fields):
        data = npy("uint8", (4,)) + b"abcd" if data is None else data
        self.name, self.data = name.encode() if isinstance(name, str) else name, data
        self.begin, self.flags, self.method, self.crc = 0, 0, 0, zlib.crc32(data)
        self.size = self.packed = len(data)
        self.extra, self.comment, self.disk, self.local_fields = b"", b"", 0, {}
        for key, value in fields.items():
            setattr(self, key, value)

    @classmethod
    def compressed(cls, data=None, **fields):
        data = npy("uint8", (4,)) + b"abcd" if data is None else data
        packed = deflated(data)
        return cls(data=packed, **({"method": 8, "crc": zlib.crc32(data), "size": len(data)} | fields))

    def wide(self, *numbers):
        """The field of 64 bits, and these numbers for the others."""
        extra = b"".join(struct.pack("<Q", number) for number in numbers if number >= 0xFFFFFFFF)
        return (struct.pack("<HH", 1, len(extra)) + extra if extra else b""), [min(number, 0xFFFFFFFF) for number in numbers]

    def local(self):
        held = {**vars(self), **self.local_fields}
        extra, (size, packed) = self.wide(held["size"], held["packed"])
        return struct.pack("<IHHHHHIIIHH", 0x04034b50, 20, held["flags"], held["method"], 0, 33, held["crc"], packed, size,
                           len(held["name"]), len(extra)) + held["name"] + extra

    def entry(self):
        extra, (size, packed, begin) = self.wide(self.size, self.packed, self.begin)
        extra += self.extra
        return struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 20, 20, self.flags, self.method, 0, 33, self.crc, packed, size,
                           len(self.name), len(extra), len(self.comment), self.disk, 0, 0, begin) + self.name + extra + self.comment


def end64(offset, size, count, at=None, disk=0):
    return (struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 20, 20, disk, 0, count, count, size, offset)
            + struct.pack("<IIQI", 0x07064b50, 0, offset + size if at is None else at, 1)
            + struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), size, min(offset, 0xFFFFFFFF), 0))


def end(offset, size, count, here=None, disk=0, comment=b"", length=None):
    return struct.pack("<IHHHHIIH", 0x06054b50, disk, 0, count if here is None else here, count, size, offset,
                       len(comment) if length is None else length) + comment


def archive_of(*members, ending=end, **fields):
    raw = b""
    for member in members:
        member.begin = member.__dict__.get("at", len(raw))
        raw += member.local() + member.data
    directory = b"".join(member.entry() for member in members)
    return raw + directory + ending(len(raw), len(directory), fields.pop("count", len(members)), **fields)


def open_bytes(raw):
    return umem.formats.open(umem.asarray(numpy.frombuffer(raw, "uint8").copy()))


def test_what_is_made_by_hand_is_read():
    for raw in (archive_of(Member()), archive_of(Member.compressed()), archive_of(Member(), comment=b"a comment"),
                archive_of(Member(), Member("b.npy")), archive_of(Member(), ending=end64),
                archive_of(Member(extra=struct.pack("<HH", 7, 3) + b"xyz", comment=b"of a file"))):
        with numpy.load(io.BytesIO(raw)) as expected:
            archive = open_bytes(raw)
            archive.check()
            assert list(archive) == expected.files and archive["a"].tolist() == expected["a"].tolist() == list(b"abcd")
    assert list(open_bytes(archive_of())) == []
    assert list(open_bytes(archive_of(Member(), comment=b"PK\5\6 and what Python takes for the end"))) == ["a"]
    folder = archive_of(Member("folder/", b""), Member("folder/a.npy"))
    assert list(open_bytes(folder)) == ["folder/a"]


def test_names_have_the_meaning_of_zip_files():
    for number in range(1, 256):
        name = bytes([number, 0x61])
        raw = archive_of(Member(name))
        assert list(open_bytes(raw)) == zipfile.ZipFile(io.BytesIO(raw)).namelist()


MARK = b"\x93NUMPY"
BOMB = Member.compressed(npy("uint8", (1 << 30,)) + b"x", size=(1 << 30) + 128)
REFUSED = {
    "nothing but a mark": b"PK\3\4\x14\0\0\0", "an end that is cut off": archive_of(Member())[:-1],
    "bytes behind": archive_of(Member()) + b"x", "bytes before the directory": archive_of(Member(), ending=lambda at, size, n: end(at - 1, size, n)),
    "a directory that is too long": archive_of(Member(), ending=lambda at, size, n: end(at, size + 1, n)),
    "a directory that is cut off": archive_of(Member(), ending=lambda at, size, n: end(at + 9, size - 9, n)),
    "more entries than are counted": archive_of(Member(), Member("b.npy"), count=1),
    "less entries than are counted": archive_of(Member(), count=2), "many entries": archive_of(Member(), count=65535),
    "another disk": archive_of(Member(), disk=1), "another number here": archive_of(Member(), here=0),
    "an entry of another disk": archive_of(Member(disk=1)), "a comment that is too short": archive_of(Member(), comment=b"abc", length=4),
    "a name twice": archive_of(Member(), Member()), "a name twice without its ending": archive_of(Member("a"), Member("a.npy")),
    "a name with a zero": archive_of(Member("a\0b")), "a name that is no UTF-8": archive_of(Member(b"\xff", flags=0x800)),
    "no local header": archive_of(Member(at=5)), "a local header behind the end": archive_of(Member(at=1 << 20)),
    "an overlap": archive_of(Member(), Member("b.npy", at=0)),
    "names that differ": archive_of(Member(local_fields={"name": b"b.npy"})), "methods that differ": archive_of(Member(local_fields={"method": 8})),
    "sizes that differ": archive_of(Member(local_fields={"size": 1})), "lengths that differ": archive_of(Member(local_fields={"packed": 1})),
    "checksums that differ": archive_of(Member(local_fields={"crc": 1})), "encryption in one header": archive_of(Member(local_fields={"flags": 1})),
    "stored, with two sizes": archive_of(Member(size=5)), "bytes into the directory": archive_of(Member(packed=1000, size=1000)),
    "bytes of 2^64": archive_of(Member(packed=(1 << 64) - 1, size=(1 << 64) - 1)),
    "a bomb": archive_of(BOMB), "no field of 64 bits": archive_of(Member(size=0xFFFFFFFF, packed=0xFFFFFFFF, wide=lambda *numbers: (b"", numbers))),
    "an end of 64 bits elsewhere": archive_of(Member(), ending=lambda at, size, n: end64(at, size, n, at=at)),
    "an end of 64 bits of another disk": archive_of(Member(), ending=lambda at, size, n: end64(at, size, n, disk=1)),
    "ends that differ": archive_of(Member(), ending=lambda at, size, n: end64(at, size, n)[:56 + 20] + end(at, size, n + 1)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_zip_file_that_lies_is_refused(what, tmp_path):
    (tmp_path / "x.npz").write_bytes(REFUSED[what])
    with pytest.raises(umem.ValueError, match="^umemArchive_open: \".*x.npz\": .{10}") as caught:
        umem.formats.open(tmp_path / "x.npz")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 600


def test_overlaps_of_many_are_refused():
    """The bytes of one file in the zip file are those of many: what it unpacks to is many times as long."""
    member = Member.compressed(npy("uint8", (1 << 20,)) + bytes(1 << 20))
    copies = [Member(f"{k}.npy", member.data, method=8, crc=member.crc, size=member.size, at=0) for k in range(50)]
    for copy in copies:
        copy.local_fields = {"name": b"0.npy"}
    raw = copies[0].local() + member.data
    directory = b"".join(copy.entry() for copy in copies)
    with pytest.raises(umem.ValueError, match="contradict|overlap"):
        open_bytes(raw + directory + end(len(raw), len(directory), 50))


GOOD = npy("uint8", (4,)) + b"abcd"
PROBLEMS = {
    "text": (Member(data=npy("<U1", (1,)) + b"abcd"), "umem has no elements of its type '<U1'"),
    "big endian": (Member(data=npy(">f16", (1,)) + bytes(16)), "no elements of its type"),
    "a long double": (Member(data=npy("longdouble", (1,)) + bytes(16)), "has no elements of its type \"<f16\""),
    "objects": (Member(data=npy("O", (1,)) + b"abcd"), "has no elements of its type '|O'"),
    "no .npy file": (Member(data=b"a text"), "no .npy file"), "an empty file": (Member(data=b""), "empty"),
    "compressed text": (Member.compressed(npy("<U1", (1,)) + b"abcd"), "umem has no elements"),
    "no .npy file, compressed": (Member.compressed(b"a text"), "no .npy file"),
    "elements that end": (Member(data=GOOD[:-1]), "truncated"), "compressed elements that end": (Member.compressed(GOOD[:-1]), "truncated"),
    "a header that ends": (Member.compressed(GOOD[:20]), "ends inside of its header"),
    "a header that is too long": (Member.compressed(MARK + b"\2\0" + struct.pack("<I", 20000) + bytes(20000)), "more than the 10000"),
    "encryption": (Member(flags=1), "encrypted"), "an unknown compression": (Member(method=12), "method 12"),
    "damaged bytes": (Member(data=b"\xff" * 9, method=8, size=132), "damaged"),
    "compressed bytes that end": (Member(data=deflated(GOOD)[:5], method=8, crc=zlib.crc32(GOOD), size=132), "end too early"),
}


@pytest.mark.parametrize("what", PROBLEMS)
def test_what_is_wrong_with_one_array_refuses_this_one(what):
    member, why = PROBLEMS[what]
    archive = open_bytes(archive_of(member, Member("b.npy")))
    info = archive.info("a")
    assert why in info.problem and info.dtype is None and info.shape == () and info.nbytes == 0
    for use in (lambda: archive["a"], archive.load, lambda: archive.load_into({"a": umem.zeros(4, "uint8")})):
        with pytest.raises(umem.TypeError) as caught:
            use()
        assert why.replace('"', "") in str(caught.value).replace("\\", "").replace('"', "")
    assert archive["b"].tolist() == list(b"abcd") and umem._core._has_formats


def changed(at, **fields):
    """A compressed member whose packed bytes are changed at a place; fields are those of the headers."""
    member = Member.compressed(npy("uint8", (1000,)) + bytes(range(250)) * 4, **fields)
    raw = bytearray(member.data)
    if at is not None:
        raw[at] ^= 1
    member.data = bytes(raw)
    return member


DAMAGED = {
    "changed bytes": changed(-30), "a wrong checksum": changed(None, crc=1), "less bytes": changed(None, size=1127),
    "more bytes": changed(None, size=1129), "bytes behind": Member.compressed(GOOD),
}
DAMAGED["bytes behind"].data += b"x"
DAMAGED["bytes behind"].packed += 1


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_elements_are_noticed_when_they_are_inflated(what):
    archive = open_bytes(archive_of(DAMAGED[what]))
    for use in (archive.check, *([] if archive.info("a").problem else [lambda: archive["a"], archive.load])):
        with pytest.raises(umem.ValueError, match='"a": '):
            use()


def test_a_check_finds_changed_bytes_of_stored_arrays(tmp_path):
    path = tmp_path / "x.npz"
    arrays = {"a": numpy.arange(3), "b": numpy.zeros(40 << 20, "uint8"), "c": numpy.arange(4)}
    umem.formats.save(path, arrays)
    archive = umem.formats.open(path)
    archive.check()
    for name, at in (("b", 0), ("b", 39 << 20), ("c", 3)):
        with open(path, "r+b") as file:
            file.seek(archive.info(name).offset + at)
            before = file.read(1)
            file.seek(-1, 1)
            file.write(bytes([before[0] ^ 1]))
            file.flush()
            with pytest.raises(umem.ValueError, match=f'"{name}": its checksum'):
                archive.check()
            archive.check(["a"])
            with pytest.raises(zipfile.BadZipFile):
                numpy.load(path)[name]
            file.seek(-1, 1)
            file.write(before)
    archive.check()


@hypothesis.given(strategies.data())
@hypothesis.settings(max_examples=300, deadline=None)
def test_changed_files_do_no_harm(data):
    """Whatever bytes change: what umem reads, NumPy reads, too, and with the same elements."""
    arrays = [Member("b.npy", npy("uint8", (6,)) + b"efghij"), Member.compressed()]
    raw = bytearray(archive_of(*arrays, ending=data.draw(strategies.sampled_from([end, end64]))))
    for _ in range(data.draw(strategies.integers(1, 3))):
        at = data.draw(strategies.integers(0, len(raw) - 1))
        raw[at] = data.draw(strategies.one_of(strategies.integers(0, 255), strategies.just(raw[at] ^ 1)))
    try:
        archive = open_bytes(bytes(raw))
        archive.check()
        found = {name: archive[name].tolist() for name in archive}
    except (umem.ValueError, umem.TypeError):
        return
    with warnings.catch_warnings(), numpy.load(io.BytesIO(bytes(raw))) as expected:
        warnings.simplefilter("ignore")
        assert found == {name: expected[name].tolist() for name in expected.files}


# ---- the program of the page ----

EXAMPLES = Path(__file__).resolve().parents[2] / "doc/examples/formats"


def test_the_example_of_the_page(tmp_path):
    run = subprocess.run([sys.executable, EXAMPLES / "results.py"], capture_output=True, text=True, cwd=tmp_path)
    assert run.stdout == (EXAMPLES / "results.py.out").read_text(), run.stderr
    assert not os.listdir(tmp_path)


# ---- progress, interrupts and memory ----


def test_progress_is_reported_to_the_end(saver, tmp_path):
    arrays = {"a": numpy.zeros((1000, 3000)), "b": numpy.ones((100, 300)), "f": numpy.asfortranarray(numpy.ones((500, 500)))}
    total = sum(array.nbytes for array in arrays.values())
    saver(tmp_path / "x.npz", **arrays)
    archive = umem.formats.open(tmp_path / "x.npz")
    seen = []
    archive.load("host:", progress=lambda *numbers: seen.append(numbers), step="1M")
    assert seen[0] == (0, total) and seen[-1] == (total, total) and seen == sorted(seen) and len(seen) > 10
    with pytest.raises(umem.CancelledError, match="cancelled"):
        archive.load("host:", progress=lambda done, total: done < 1 << 20, step="1M")
    turned = umem.zeros((3000, 1000))
    with pytest.raises(ZeroDivisionError):
        archive.load_into({"a": turned.T}, progress=lambda done, total: 1 / 0)
    for name, times in (("y.npz", 2), ("y.safetensors", 1)):
        seen.clear()
        umem.formats.save(tmp_path / name, arrays | {"t": arrays["a"].T}, progress=lambda *numbers: seen.append(numbers), step="1M")
        written = times * (total + arrays["a"].nbytes)
        assert seen[0] == (0, written) and seen[-1] == (written, written) and seen == sorted(seen)
        for last in range(len(seen) - 1):
            with pytest.raises(umem.CancelledError):
                umem.formats.save(tmp_path / "new", arrays | {"t": arrays["a"].T}, format=name[2:],
                                  progress=lambda done, total: (done, total) < seen[last], step="1M")
    assert sorted(os.listdir(tmp_path)) == ["x.npz", "y.npz", "y.safetensors"]
    checked = []
    umem.formats.open(tmp_path / "y.npz").check(progress=lambda *numbers: checked.append(numbers))
    assert checked[-1][0] == checked[-1][1] > total
    with pytest.raises(umem.CancelledError):
        umem.formats.open(tmp_path / "y.npz").check(progress=lambda done, total: done == 0)


INTERRUPTED = """
import os, signal, sys, threading, numpy, umem.formats
path, what = sys.argv[1:]
if what == "save":
    call = lambda: umem.formats.save(path + ".new.npz", {"a": umem.zeros(1 << 28, "uint8"), "b": umem.zeros(1 << 28, "uint8")})
else:
    archive = umem.formats.open(path)
    call = archive.load if what == "load" else archive.check
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets commands in the background ignore it
threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(100):
        call()
except KeyboardInterrupt:
    print("interrupted", os.path.exists(path + ".new.npz"))
"""


def test_few_bytes_make_many(tmp_path):
    """zlib has bytes to give when it has got all of its own."""
    numpy.savez_compressed(tmp_path / "x.npz", a=numpy.zeros(1 << 26, "uint8"))
    with umem.formats.open(tmp_path / "x.npz") as archive:
        archive.check()
        assert not archive.load()["a"].any()


@pytest.mark.parametrize("what", ["load", "check", "save"])
def test_an_interrupt_ends_a_call(what, tmp_path):
    numpy.savez_compressed(tmp_path / "x.npz", a=numpy.zeros(1 << 28, "uint8"))
    run = subprocess.run([sys.executable, "-c", INTERRUPTED, tmp_path / "x.npz", what], capture_output=True, text=True)
    assert run.stdout.startswith("interrupted") and run.returncode == 0, run.stderr
    if what != "save":
        assert run.stdout == "interrupted False\n"


BOUNDED = """
import resource, sys, umem, umem.formats
place = umem.File(sys.argv[1], "w+")
archive = umem.formats.open(sys.argv[2])
umem.set_threads(2)  # the stacks of others are address space
limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (64 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
loaded = archive.load(place)
umem.formats.save(sys.argv[3], loaded | {"t": loaded["a"].T})
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(umem.formats.open(sys.argv[3]).info("t").shape)
"""


def test_little_memory_is_needed(tmp_path):
    """128 MiB are inflated to a file, and 256 MiB are written, with 64 MiB of address space."""
    numpy.savez_compressed(tmp_path / "x.npz", a=numpy.zeros((2048, 8192)))
    run = subprocess.run([sys.executable, "-c", BOUNDED, tmp_path / "a.bin", tmp_path / "x.npz", tmp_path / "y.npz"],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "(8192, 2048)\n"
