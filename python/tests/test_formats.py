"""Files of named arrays, beside the library safetensors."""
import gc
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

import umem
import umem.formats

numpy = pytest.importorskip("numpy")
safetensors = pytest.importorskip("safetensors")
hypothesis = pytest.importorskip("hypothesis")
strategies = pytest.importorskip("hypothesis.strategies")
if not umem._core._has_formats:
    pytest.skip("the package was built without nlohmann-json", allow_module_level=True)

# Names of the format, umem's, bits, and how many extents of the last dimension are one element of umem.
TYPES = [("BOOL", "bool", 8, 1), ("F4", "float4_e2m1fnx2", 4, 2), ("F6_E2M3", "float6_e2m3fnx4", 6, 4),
         ("F6_E3M2", "float6_e3m2fnx4", 6, 4), ("U8", "uint8", 8, 1), ("I8", "int8", 8, 1),
         ("F8_E5M2", "float8_e5m2", 8, 1), ("F8_E4M3", "float8_e4m3fn", 8, 1), ("F8_E8M0", "float8_e8m0fnu", 8, 1),
         ("F8_E4M3FNUZ", "float8_e4m3fnuz", 8, 1), ("F8_E5M2FNUZ", "float8_e5m2fnuz", 8, 1), ("I16", "int16", 16, 1),
         ("U16", "uint16", 16, 1), ("F16", "float16", 16, 1), ("BF16", "bfloat16", 16, 1), ("I32", "int32", 32, 1),
         ("U32", "uint32", 32, 1), ("F32", "float32", 32, 1), ("C64", "complex64", 64, 1), ("F64", "float64", 64, 1),
         ("I64", "int64", 64, 1), ("U64", "uint64", 64, 1)]


def make_file(path, header, data=b""):
    """A file with this header: a text, bytes, or what json writes."""
    text = header if isinstance(header, (str, bytes)) else json.dumps(header)
    text = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def make_arrays():
    random = numpy.random.default_rng(1)
    return {"b": random.random((3, 4)).astype("float32"), "a": random.integers(0, 9, (2, 0, 5)),
            "layer.0/w\"eight\n": random.random(()), "ä": random.integers(0, 2, 7).astype("bool")}


def write_by_safetensors(path, arrays, metadata=None):
    from safetensors.numpy import save_file

    save_file(arrays, path, metadata)
    return path


# ---- both ways ----


def test_what_safetensors_writes_is_read_without_a_copy(tmp_path):
    arrays = make_arrays()
    path = write_by_safetensors(tmp_path / "x.safetensors", arrays, {"by": "me", "an": "other"})
    with umem.formats.open(path) as archive:
        assert set(archive) == set(arrays) and len(archive) == 4 and "b" in archive and "c" not in archive
        assert archive.metadata == {"an": "other", "by": "me"}
        raw = path.read_bytes()
        for name, expected in arrays.items():
            array, info = archive[name], archive.info(name)
            assert array.dtype == info.dtype == expected.dtype and array.shape == info.shape == expected.shape
            assert array.read_only and type(array.place) is umem.MMap and info.strides == array.strides
            assert raw[info.offset:info.offset + info.nbytes] == expected.tobytes() and info.file == str(path)
            assert array.tolist() == expected.tolist()
        with pytest.raises(KeyError):
            archive["c"]
    gc.collect()
    assert array.tolist() == arrays[name].tolist()  # outlives the archive
    with pytest.raises(umem.ValueError, match="closed"):
        archive["b"]


def test_arrays_are_loaded_to_every_place(place, tmp_path):
    arrays = make_arrays()
    path = write_by_safetensors(tmp_path / "x.safetensors", arrays)
    for names in (None, ["b", "ä"]):
        loaded = umem.formats.load(path, place, names)
        assert set(loaded) == set(arrays if names is None else names)
        for name, array in loaded.items():
            assert array.place is place and array.dtype == arrays[name].dtype and not array.read_only
            assert array.tolist() == arrays[name].tolist()


def test_loading_takes_no_more_memory_than_the_arrays_have(tmp_path):
    path = tmp_path / "x.safetensors"
    umem.formats.save(path, {"a": umem.zeros((256, 1024), "float32")})
    loaded = umem.formats.load(path, umem.Limit(umem.Host(), "1025K"))
    assert loaded["a"].shape == (256, 1024)


def test_arrays_are_loaded_into_parts(place, tmp_path):
    arrays = make_arrays()
    archive = umem.formats.open(write_by_safetensors(tmp_path / "x.safetensors", arrays))
    whole = umem.zeros((6, 8), "float32", place)
    flags = umem.zeros(7, "bool", place)
    archive.load_into({"b": whole[::2, 1::2], "ä": flags})
    assert whole[::2, 1::2].tolist() == arrays["b"].tolist() and not any(whole[1].tolist())
    assert flags.tolist() == arrays["ä"].tolist()
    with pytest.raises(umem.ValueError, match="another shape"):
        archive.load_into({"ä": flags, "b": whole})
    with pytest.raises(umem.TypeError, match="another type"):
        archive.load_into({"b": umem.zeros((3, 4), "int32", place)})


def test_arrays_of_every_place_are_saved(place, tmp_path):
    arrays = make_arrays()
    there = {name: umem.asarray(array, place=place) for name, array in arrays.items()}
    turned = umem.asarray(arrays["b"], place=place).T
    umem.formats.save(tmp_path / "x.safetensors", there | {"t": turned}, {"by": "me"})
    expected = arrays | {"t": numpy.ascontiguousarray(arrays["b"].T)}
    write_by_safetensors(tmp_path / "y.safetensors", expected, {"by": "me"})
    assert (tmp_path / "x.safetensors").read_bytes() == (tmp_path / "y.safetensors").read_bytes()


def test_all_types_go_both_ways(tmp_path):
    header, data = {}, b""
    for name, _, bits, lanes in TYPES:
        nbytes = 2 * 3 * lanes * bits // 8
        header[name] = entry(name, [2, 3 * lanes], len(data), len(data) + nbytes)
        data += bytes((7 * k + len(data)) % 2 for k in range(nbytes))
    path = make_file(tmp_path / "x.safetensors", header, data)
    archive = umem.formats.open(path)
    for name, ours, _, lanes in TYPES:
        assert str(archive[name].dtype) == ours and archive[name].shape == (2, 3)
    umem.formats.save(tmp_path / "y.safetensors", archive)
    found = dict(safetensors.deserialize((tmp_path / "y.safetensors").read_bytes()))
    expected = dict(safetensors.deserialize(path.read_bytes()))
    assert found == expected
    order = [info["dtype"] for _, info in sorted(json.loads(header_of(tmp_path / "y.safetensors")).items(),
                                                 key=lambda item: item[1]["data_offsets"])]
    assert order == [row[0] for row in reversed(TYPES)]


def header_of(path):
    raw = path.read_bytes()
    return raw[8:8 + struct.unpack("<Q", raw[:8])[0]]


def test_types_that_the_format_lacks_are_refused(tmp_path):
    for dtype in ("complex128", "float4_e2m1fn", "float32x2"):
        with pytest.raises(umem.TypeError, match="safetensors files have no " + dtype):
            umem.formats.save(tmp_path / "x", {"a": umem.zeros(4, dtype)})
    with pytest.raises(umem.TypeError, match="without a dimension"):
        umem.formats.save(tmp_path / "x", {"a": umem.zeros((), "float4_e2m1fnx2")})
    assert not os.listdir(tmp_path)


def test_a_file_in_memory_is_read(tmp_path):
    path = write_by_safetensors(tmp_path / "x.safetensors", make_arrays())
    held = umem.asarray(numpy.frombuffer(path.read_bytes(), "uint8").copy())
    archive = umem.formats.open(held)
    array = archive["b"]
    assert array.address == held.address + archive.info("b").offset and array.place is held.place
    file = umem.File(path, "r")
    there = umem.formats.open(umem.at(file, 0, path.stat().st_size, "uint8"))
    assert there["b"].place is file and there["b"].tolist() == array.tolist()
    assert there.load("host:")["b"].tolist() == array.tolist()
    with pytest.raises(umem.ValueError, match="in C order"):
        umem.formats.open(held[::2])


# ---- sets of files ----


def make_set(folder):
    arrays = {f"layer.{k}": numpy.full((2, 3), k, "float32") for k in range(5)}
    index = {"metadata": {"total_size": 5 * 24}, "weight_map": {}}
    for shard in range(2):
        part = {name: array for name, array in arrays.items() if int(name[-1]) % 2 == shard}
        file = f"model-0000{shard + 1}-of-00002.safetensors"
        write_by_safetensors(folder / file, part, {"shard": str(shard)})
        index["weight_map"] |= dict.fromkeys(part, file)
    return arrays, index, folder / "model.safetensors.index.json"


def test_a_set_of_files_is_one_archive(tmp_path):
    arrays, index, path = make_set(tmp_path)
    path.write_text(json.dumps(index))
    archive = umem.formats.open(path)
    assert set(archive) == set(arrays) and archive.metadata == {"shard": "0"}
    for name, array in archive.load("host:").items():
        assert array.tolist() == arrays[name].tolist() == archive[name].tolist()
        assert archive.info(name).file == str(tmp_path / index["weight_map"][name])
    del index["weight_map"]["layer.3"]
    path.write_text(json.dumps(index))
    assert "layer.3" not in umem.formats.open(path)


@pytest.mark.parametrize("change, why", [
    (lambda index: index["weight_map"].update({"layer.9": "model-00001-of-00002.safetensors"}), "no array \"layer.9\""),
    (lambda index: index["weight_map"].update({"layer.0": "model-00002-of-00002.safetensors"}), "no array \"layer.0\""),
    (lambda index: index["weight_map"].update({"layer.0": "../x.safetensors"}), "only files in its folder"),
    (lambda index: index["weight_map"].update({"layer.0": "/etc/passwd"}), "only files in its folder"),
    (lambda index: index["weight_map"].update({"layer.0": ".."}), "only files in its folder"),
    (lambda index: index["weight_map"].update({"layer.0": "a\0"}), "only files in its folder"),
    (lambda index: index["weight_map"].update({"layer.0": 1}), "no index"),
    (lambda index: index.pop("weight_map"), "no index"),
    (lambda index: index.update(weight_map=[]), "no index"),
])
def test_an_index_that_lies_is_refused(change, why, tmp_path):
    _, index, path = make_set(tmp_path)
    change(index)
    path.write_text(json.dumps(index))
    with pytest.raises(umem.ValueError, match=why):
        umem.formats.open(path)


def test_a_file_of_a_set_that_is_missing_is_named(tmp_path):
    _, index, path = make_set(tmp_path)
    path.write_text(json.dumps(index))
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(umem.FileNotFoundError, match="model-00002-of-00002.safetensors"):
        umem.formats.open(path)


# ---- what is refused ----

A, B = entry("U8", [1], 0, 1), entry("U8", [1], 1, 2)
DEEP = '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":%s}}'
REFUSED = {
    "an array": (b"[]", b""), "null": (b"null", b""), "nothing": (b"", b""), "a comma": (b'{"a":1,}', b""),
    "a zero": (b"{}\0", b""), "a byte order mark": (b"\xef\xbb\xbf{}", b""), "no UTF-8": (b'{"\xff":1}', b""),
    "half of a pair": (b'{"\\ud83d":1}', b""), "a control character": (b'{"\n":1}', b""), "a comment": (b"{/**/}", b""),
    "metadata of numbers": ({"__metadata__": {"a": 1}}, b""), "metadata in depth": ({"__metadata__": {"a": {}}}, b""),
    "metadata that are a list": ({"__metadata__": []}, b""),
    "metadata twice": (b'{"__metadata__":{},"__metadata__":{}}', b""),
    "an array that is null": ({"a": None}, b""), "no offsets": ({"a": {"dtype": "U8", "shape": [1]}}, b"x"),
    "no type": ({"a": {"shape": [1], "data_offsets": [0, 1]}}, b"x"),
    "no shape": ({"a": {"dtype": "U8", "data_offsets": [0, 1]}}, b"x"),
    "three offsets": ({"a": A | {"data_offsets": [0, 1, 2]}}, b"x"), "one offset": ({"a": A | {"data_offsets": [0]}}, b"x"),
    "a fraction": ({"a": A | {"shape": [1.0]}}, b"x"), "a negative extent": ({"a": A | {"shape": [-1]}}, b"x"),
    "minus zero": (b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[-0,0]}}', b""),
    "an extent in quotes": ({"a": A | {"shape": ["1"]}}, b"x"), "an extent of 2^64": ({"a": A | {"shape": [1 << 64, 0]}}, b""),
    "another type": ({"a": A | {"dtype": "U9"}}, b"x"), "a small type": ({"a": A | {"dtype": "u8"}}, b"x"),
    "a field twice": (b'{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"),
    "a hole": ({"a": A, "b": entry("U8", [1], 2, 3)}, b"xyz"), "an overlap": ({"a": A, "b": A}, b"x"),
    "a half overlap": ({"a": entry("U8", [2], 0, 2), "b": B}, b"xy"), "a late begin": ({"b": B}, b"xy"),
    "bytes behind": ({"a": A}, b"xy"), "an early end": ({"a": A}, b""), "an end before": ({"a": entry("U8", [0], 1, 0)}, b"x"),
    "fewer bytes than elements": ({"a": A | {"shape": [2]}}, b"x"), "more": ({"a": A | {"data_offsets": [0, 2]}}, b"xy"),
    "an overflow": ({"a": entry("U8", [1 << 63, 2, 0], 0, 0)}, b""),
    "an overflow of bits": ({"a": entry("F64", [1 << 59], 0, 0)}, b""), "half a byte": ({"a": entry("F4", [1], 0, 1)}, b"x"),
    "128 levels": (DEEP % ("[" * 126 + "]" * 126), b"x"), "a million levels": (DEEP % ("[" * 1000000), b"x"),
    "a number too large for a float": (DEEP % "1e999", b"x"),
}
# What the library accepts, and umem refuses: see umem/formats.h.
STRICTER = {
    "a name twice": (b'{"a":%s,"a":%s}' % ((json.dumps(entry("U8", [0], 0, 0)).encode(),) * 2), b""),
    "a text twice": (b'{"__metadata__":{"a":"b","a":"c"}}', b""), "a name with a zero": ({"\0": A}, b"x"),
    "33 dimensions": ({"a": A | {"shape": [1] * 33}}, b"x"), "an extent of 2^63": ({"a": entry("U8", [0, 1 << 63], 0, 0)}, b""),
    "rows of half bytes": ({"a": entry("F4", [2, 1], 0, 1)}, b"x"),
    "a list of fields": ({"a": ["U8", [1], [0, 1]]}, b"x"), "a type that is an object": ({"a": A | {"dtype": {"U8": None}}}, b"x"),
}
ACCEPTED = {
    "nothing": ({}, b""), "space": (b" {} \n", b""), "metadata that are null": ({"__metadata__": None}, b""),
    "other fields": ({"a": A | {"x": [{"y": None}, "z", -1.5, True]}}, b"x"), "127 levels": (DEEP % ("[" * 125 + "]" * 125), b"x"),
    "another order": ({"b": B, "a": A}, b"xy"), "an empty name": ({"": A}, b"x"), "a pair": (b'{"\\ud83d\\ude00":%s}' % json.dumps(A).encode(), b"x"),
    "no elements": ({"a": entry("F32", [3, 0], 0, 0)}, b""), "no elements of many": ({"a": entry("U8", [0, (1 << 63) - 1], 0, 0)}, b""),
    "an odd address": ({"a": A, "b": entry("F32", [1], 1, 5)}, b"xyyyy"), "32 dimensions": ({"a": A | {"shape": [1] * 32}}, b"x"),
}


def is_accepted_by_safetensors(path):
    try:
        safetensors.deserialize(path.read_bytes())
    except safetensors.SafetensorError:
        return False
    return True


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_library_refuses_is_refused(what, tmp_path):
    path = make_file(tmp_path / "x.safetensors", *REFUSED[what])
    assert not is_accepted_by_safetensors(path)
    with pytest.raises(umem.ValueError, match="^umemArchive_open: \".*x.safetensors\": .{10}") as caught:
        umem.formats.open(path)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 600


@pytest.mark.parametrize("what", STRICTER)
def test_what_only_the_library_accepts_is_refused(what, tmp_path):
    path = make_file(tmp_path / "x.safetensors", *STRICTER[what])
    assert is_accepted_by_safetensors(path)
    with pytest.raises(umem.ValueError):
        umem.formats.open(path)


@pytest.mark.parametrize("what", ACCEPTED)
def test_what_the_library_accepts_is_accepted(what, tmp_path):
    path = make_file(tmp_path / "x.safetensors", *ACCEPTED[what])
    assert is_accepted_by_safetensors(path)
    for array in umem.formats.open(path).load("host:").values():
        array.tolist()


def test_short_files_and_long_headers_are_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    for raw in (b"", b"\0", b"\2\0\0\0\0\0\0", struct.pack("<Q", 3) + b"{}", struct.pack("<Q", 1 << 63) + b"{}",
                struct.pack("<Q", 100000001) + b"{}" + b" " * 99999999):
        path.write_bytes(raw)
        with pytest.raises(umem.ValueError):
            umem.formats.open(path)
    path.write_bytes(struct.pack("<Q", 100000000) + b"{}" + b" " * 99999998)
    assert len(umem.formats.open(path)) == 0


# ---- found by chance ----

numbers = strategies.one_of(strategies.integers(0, 9), strategies.sampled_from([1 << 31, 1 << 62, 1 << 63, 1 << 64, -1, 1.0]))
described = strategies.fixed_dictionaries(
    {"dtype": strategies.sampled_from([row[0] for row in TYPES] + ["", "F9"]), "shape": strategies.lists(numbers, max_size=3),
     "data_offsets": strategies.lists(numbers, min_size=2, max_size=2)},
    optional={"other": strategies.recursive(strategies.none() | strategies.text(max_size=3) | strategies.floats(), strategies.lists)})
headers = strategies.dictionaries(strategies.text(max_size=3), described, max_size=3)


def is_stricter(header):
    """Whether umem refuses for a reason of its own."""
    for name, array in header.items():
        lanes = {row[0]: row[3] for row in TYPES}.get(array["dtype"], 1)
        whole = all(isinstance(extent, int) for extent in array["shape"])
        if "\0" in name or whole and any(extent >= 1 << 63 for extent in array["shape"]):
            return True
        if whole and lanes > 1 and (not array["shape"] or array["shape"][-1] % lanes):
            return True
    return False


@hypothesis.given(headers, strategies.integers(0, 20))
@hypothesis.settings(max_examples=400, deadline=None)
def test_both_agree_on_any_header(tmp_path_factory, header, length):
    path = make_file(tmp_path_factory.getbasetemp() / "any.safetensors", header, b"x" * length)
    check_agreement(path, is_stricter(header))


def check_agreement(path, stricter=False):
    try:
        archive = umem.formats.open(path)
    except umem.ValueError:
        assert stricter or not is_accepted_by_safetensors(path)
        return
    for name, expected in safetensors.deserialize(path.read_bytes()):
        info = archive.info(name)
        assert path.read_bytes()[info.offset:info.offset + info.nbytes] == bytes(expected["data"])


@hypothesis.given(strategies.data())
@hypothesis.settings(max_examples=400, deadline=None)
def test_both_agree_on_changed_files(tmp_path_factory, data):
    header = {"a": entry("U8", [2], 0, 2), "b": entry("F32", [1], 2, 6), "__metadata__": {"k": "v"}}
    raw = bytearray(json.dumps(header).encode())
    for _ in range(data.draw(strategies.integers(1, 2))):
        at = data.draw(strategies.integers(0, len(raw) - 1))
        raw[at:at + data.draw(strategies.integers(0, 2))] = data.draw(strategies.sampled_from(
            [b"0", b"1", b"9", b"{", b"}", b"[", b"]", b",", b'"', b"a", b"\\u00e4", b"\xc3", b" ", b"-", b".", b"e", b""]))
    path = make_file(tmp_path_factory.getbasetemp() / "changed.safetensors", bytes(raw), b"x" * 6)
    twice = json.loads(raw, object_pairs_hook=lambda pairs: pairs) if is_json(raw) else []
    check_agreement(path, has_pair_twice(twice))


def is_json(raw):
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


def has_pair_twice(pairs):
    if not isinstance(pairs, list):
        return False
    keys = [pair[0] for pair in pairs if isinstance(pair, tuple)]
    return len(keys) != len(set(keys)) or any(has_pair_twice(pair[1]) for pair in pairs if isinstance(pair, tuple))


names = strategies.text(strategies.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
saved = strategies.dictionaries(
    names.filter(lambda name: name != "__metadata__"),
    strategies.tuples(strategies.sampled_from(["bool", "int16", "float32", "complex64", "uint64"]),
                      strategies.lists(strategies.integers(0, 4), max_size=3)), max_size=5)


@hypothesis.given(saved, strategies.dictionaries(names, names, max_size=1))
@hypothesis.settings(max_examples=200, deadline=None)
def test_both_write_the_same_bytes(tmp_path_factory, described, metadata):
    folder = tmp_path_factory.getbasetemp()
    arrays = {name: numpy.arange(numpy.prod(shape, dtype=int)).astype(dtype).reshape(shape)
              for name, (dtype, shape) in described.items()}
    umem.formats.save(folder / "ours.safetensors", arrays, metadata)
    write_by_safetensors(folder / "theirs.safetensors", arrays, metadata or None)
    assert (folder / "ours.safetensors").read_bytes() == (folder / "theirs.safetensors").read_bytes()


# ---- the programs of the page ----

EXAMPLES = Path(__file__).resolve().parents[2] / "doc/examples/formats"


def test_the_example_of_the_page(tmp_path):
    run = subprocess.run([sys.executable, EXAMPLES / "model.py"], capture_output=True, text=True, cwd=tmp_path)
    assert run.stdout == (EXAMPLES / "model.py.out").read_text(), run.stderr
    assert not os.listdir(tmp_path)


def test_datasets_of_hdf5_are_mapped_or_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    sys.path.insert(0, str(EXAMPLES))
    from hdf5 import open_hdf5
    sys.path.pop(0)

    expected = numpy.arange(3000, dtype="float32").reshape(1000, 3)
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["plain"], file["scalar"] = expected, 5.0
        file["big"] = expected.astype(">f4")
        file.create_dataset("chunked", data=expected, chunks=(7, 3))
        file.create_dataset("packed", data=expected, compression="gzip")
    plain = open_hdf5(path, "plain")
    assert type(plain.place) is umem.MMap and plain.tolist() == expected.tolist()
    for name in ("plain", "big", "chunked", "packed"):
        found = open_hdf5(path, name, "host:")
        assert type(found.place) is umem.Host and found.numpy().tolist() == expected.tolist()
    assert open_hdf5(path, "scalar").tolist() == 5


# ---- what fails, and what ends ----


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.safetensors"
    umem.formats.save(path, {"a": numpy.arange(3)})
    before = path.read_bytes()
    with pytest.raises(umem.ValueError, match="__metadata__"):
        umem.formats.save(path, {"__metadata__": numpy.arange(3)})
    with pytest.raises(umem.TypeError):
        umem.formats.save(path, {"a": numpy.arange(3), "b": numpy.zeros(3, "complex128")})
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["x.safetensors"]


def save_to(path, array):
    """By the function that writes this format."""
    if path.suffix == ".npy":
        umem.save(path, array)
    else:
        umem.formats.save(path, {"a": array})


FILES = ["x.safetensors", "x.npz", "x.npy"]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_may_not_be_so_long_leaves_the_old_one(tmp_path, name):
    path = tmp_path / name
    save_to(path, numpy.arange(3))
    before = path.read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limit[1]))
    try:
        for array in numpy.zeros(1 << 20), numpy.zeros((1 << 10, 1 << 10)).T:
            with pytest.raises((umem.OSError, umem.MemoryError), match="too large") as caught:
                save_to(path, array)
            assert str(path) in str(caught.value)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert path.read_bytes() == before and os.listdir(tmp_path) == [name]


def test_an_array_may_be_saved_over_the_file_it_is_mapped_from(tmp_path):
    path = tmp_path / "x.safetensors"
    umem.formats.save(path, {"a": numpy.arange(100000), "b": numpy.arange(5)})
    archive = umem.formats.open(path)
    umem.formats.save(path, {"b": archive["a"]})
    assert umem.formats.open(path)["b"].tolist() == archive["a"].tolist() == list(range(100000))


KILLED = """
import sys, numpy, umem.formats
path = sys.argv[1]
save = umem.save if path.endswith(".npy") else lambda path, array: umem.formats.save(path, {"a": array})
for k in range(1000000):
    save(path, numpy.full(1 << 18, k))
    if k == 2: print("on", flush=True)
"""


@pytest.mark.parametrize("name", FILES)
def test_a_killed_save_leaves_a_whole_file(tmp_path, name):
    """At random; formats/test/fault.c kills at each call into the system."""
    path = tmp_path / name
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(random.uniform(0, 0.02))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        if name == "x.npy":
            found = umem.load(path)
        else:
            umem.formats.open(path).check()
            found = umem.formats.load(path)["a"]
        assert found.shape == (1 << 18,) and len(set(found.tolist())) == 1
        assert all(left == name or left.startswith(".umem-") for left in os.listdir(tmp_path))


BOUNDED = """
import resource, sys, umem, umem.formats
place = umem.File(sys.argv[1], "w+")
arrays = {"a": umem.zeros((4096, 8192), "float64", place), "t": umem.zeros((2048, 8192), "float64", place).T}
limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (96 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
umem.formats.save(sys.argv[2], arrays)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
archive = umem.formats.open(sys.argv[2])
print(archive.info("t").shape, archive.info("a").nbytes >> 20)
"""


def test_a_save_needs_little_memory(tmp_path):
    """384 MiB of a file are written with 96 MiB of address space."""
    run = subprocess.run([sys.executable, "-c", BOUNDED, tmp_path / "a.bin", tmp_path / "x.safetensors"],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "(8192, 2048) 256\n"
