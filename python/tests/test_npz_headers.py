"""Files of .npz whose headers are made by hand, beside NumPy and zipfile."""
import io
import struct
import warnings
import zipfile
import zlib

import pytest

import umem
import umem.formats

numpy = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")
strategies = pytest.importorskip("hypothesis.strategies")
if not umem._core._has_formats:
    pytest.skip("the package was built without nlohmann-json", allow_module_level=True)


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
        self.extra, self.comment, self.disk, self.version, self.local_fields = b"", b"", 0, 20, {}
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
        return struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 20, self.version, self.flags, self.method, 0, 33, self.crc, packed, size,
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


def archive_inside_of_an_array():
    inner = Member("b.npy")
    held = inner.local() + inner.data
    head = npy("uint8", (len(held),))
    outer = Member(data=head + held)
    inner.begin = len(outer.local() + head)
    raw, directory = outer.local() + outer.data, outer.entry() + inner.entry()
    return raw + directory + end(len(raw), len(directory), 2)


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
    "an overlap": archive_of(Member(), Member("b.npy", at=0)), "a file inside of another": archive_inside_of_an_array(),
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
    "encryption": (Member(flags=1), "encrypted"), "patched data": (Member(flags=1 << 5), "patch"),
    "a later version": (Member(version=64), "version 6.4"), "an unknown compression": (Member(method=12), "method 12"),
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
