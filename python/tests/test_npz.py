"""Files of .npz, beside NumPy."""
import io
import os
import signal
import subprocess
import sys
import zipfile
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


# Of writes of zeros nothing reaches the file, which has its length: they leave holes.
HOLES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
ssize_t pwrite(int fd, void const *bytes, size_t size, off_t offset) {
  char const *text = bytes;
  if (size > 65536 && !text[0] && !memcmp(text, text + 1, size - 1)) return (ssize_t)size;
  ssize_t (*real)(int, void const *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
  return real(fd, bytes, size, offset);
}
"""
LARGE = """
import sys, umem, umem.formats
with umem.File(None, "w+", reserve="none") as place:
    big = umem.empty((4 << 30) + 5, "uint8", place)
    big[-1:] = 7
    for name in sys.argv[1:]:
        umem.formats.save(name, {"big": big, "small": umem.array(range(3))}, reserve="none")
"""


@pytest.mark.skipif("UMEM_TEST_LARGE" not in os.environ, reason="takes ten seconds of a processor: UMEM_TEST_LARGE is not set")
def test_arrays_beyond_4_gib_are_written(tmp_path):
    safetensors, size, paths = pytest.importorskip("safetensors"), (4 << 30) + 5, [tmp_path / "x.npz", tmp_path / "x.safetensors"]
    (tmp_path / "holes.c").write_text(HOLES)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", tmp_path / "holes.c", "-o", tmp_path / "holes.so", "-ldl"], check=True)
    subprocess.run([sys.executable, "-c", LARGE, *paths], env=os.environ | {"LD_PRELOAD": str(tmp_path / "holes.so")}, check=True)
    assert all(path.stat().st_size > size and path.stat().st_blocks * 512 < 1 << 20 for path in paths)
    with zipfile.ZipFile(paths[0]) as file:
        assert file.testzip() is None  # all checksums
        assert file.infolist()[1].header_offset > 1 << 32
        with file.open("big.npy") as member:
            assert numpy.lib.format.read_magic(member) == (1, 0)
            assert numpy.lib.format.read_array_header_1_0(member) == ((size,), False, numpy.dtype("uint8"))
    with numpy.load(paths[0]) as file:
        assert file["small"].tolist() == [0, 1, 2]
    with safetensors.safe_open(paths[1], "np") as file:
        assert file.get_tensor("small").tolist() == [0, 1, 2]
        assert file.get_slice("big").get_shape() == [size] and file.get_slice("big")[size - 3:].tolist() == [0, 0, 7]
    for path in paths:
        with umem.formats.open(path) as archive:
            assert archive["small"].tolist() == [0, 1, 2] and archive["big"][-3:].tolist() == [0, 0, 7]

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
        for last in range(0, len(seen) - 1, 9):
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
    numpy.savez_compressed(tmp_path / "x.npz", a=numpy.zeros(1 << 26, "uint8"))
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
