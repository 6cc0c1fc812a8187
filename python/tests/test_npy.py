"""Files of NumPy."""
import os
import random
import shutil
import subprocess
import sys
import warnings

import pytest
from conftest import TYPES

import umem

numpy = pytest.importorskip("numpy")


@pytest.mark.parametrize("dtype", TYPES)
def test_numpy_reads_what_is_saved(dtype, tmp_path):
    check_saved(umem.host(), dtype, tmp_path)


def test_arrays_of_every_place_are_saved(place, tmp_path):
    check_saved(place, "int16", tmp_path)


def check_saved(place, dtype, tmp_path):
    expected = (numpy.arange(12) % 5).reshape(3, 4).astype(dtype)
    array = umem.asarray(expected, place=place)
    umem.save(tmp_path / "x.npy", array)
    umem.save(tmp_path / "y.npy", array[::2, ::-1])
    assert numpy.load(tmp_path / "x.npy").tolist() == expected.tolist()
    found = numpy.load(tmp_path / "y.npy")
    assert found.dtype == dtype and found.tolist() == expected[::2, ::-1].tolist()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (7,), (2, 3, 4)])
@pytest.mark.parametrize("order", "CF")
def test_what_numpy_saves_is_read(shape, order, tmp_path):
    check_read(umem.Pool(umem.Host()), shape, order, tmp_path)


def test_files_are_read_to_every_place(place, tmp_path):
    check_read(place, (2, 3, 4), "C", tmp_path)
    check_read(place, (4, 5), "F", tmp_path)


def check_read(place, shape, order, tmp_path):
    expected = numpy.asarray(numpy.random.default_rng(1).random(shape), order=order)
    numpy.save(tmp_path / "x.npy", expected)
    mapped = umem.load(tmp_path / "x.npy")
    assert mapped.shape == shape and mapped.tolist() == expected.tolist() and mapped.read_only
    assert type(mapped.place) is umem.MMap
    loaded = umem.load(tmp_path / "x.npy", place)
    assert loaded.place is place and loaded.tolist() == expected.tolist() and not loaded.read_only


def test_a_mapping_can_be_written(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros((2, 3)))
    array = umem.load(tmp_path / "x.npy", mode="r+")
    array.numpy()[1] = 5
    array.place.flush()
    assert numpy.load(tmp_path / "x.npy").tolist() == [[0] * 3, [5] * 3]
    with pytest.raises(umem.NotSupportedError):
        umem.load(tmp_path / "x.npy").fill(1)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.npy"
    umem.save(path, umem.full(3, 1))
    before = path.read_bytes()
    array = umem.full(1000, 2, place=umem.Fault(umem.Host(), calls="copies", status="IOError"))
    fault = array.place
    array.fill(2)
    umem.save(path, array)
    assert numpy.load(path).tolist() == [2] * 1000
    path.write_bytes(before)
    failing = umem.Fault(umem.Host(), calls="copy-to", status="IOError", nth=1)
    array = umem.zeros(1000, place=failing)
    with pytest.raises(umem.OSError):
        umem.save(path, array)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["x.npy"] and fault


def test_a_file_waits_for_the_disk_only_where_it_shall(tmp_path):
    strace = shutil.which("strace") or pytest.skip("there is no strace")
    for durable in False, True:
        program = f"import umem; umem.save({str(tmp_path / 'x.npy')!r}, umem.zeros(3), durable={durable})"
        done = subprocess.run([strace, "-f", "-e", "trace=fsync,fdatasync,syncfs", sys.executable, "-c", program],
                              capture_output=True, text=True)
        if done.returncode and "ptrace" in done.stderr:
            pytest.skip("strace may not trace")
        assert ("sync(" in done.stderr or "syncfs(" in done.stderr) == durable, done.stderr
        assert numpy.load(tmp_path / "x.npy").tolist() == [0, 0, 0]


def test_what_asarray_takes_is_saved(tmp_path):
    for value in (numpy.arange(6.0).reshape(2, 3), [[1, 2], [3, 4]], 7, memoryview(b"abc")):
        umem.save(tmp_path / "x.npy", value)
        assert numpy.array_equal(numpy.load(tmp_path / "x.npy"), numpy.asarray(value))
    with pytest.raises(umem.TypeError, match="str cannot be an array"):
        umem.save(tmp_path / "x.npy", "text")


def test_how_a_new_file_is_written(tmp_path):
    path = tmp_path / "x.npy"
    for options in {}, {"reserve": "none"}, {"reserve": "auto", "direct": "off"}, {"direct": "auto"}:
        umem.save(path, umem.full(3, 1), **options)
        assert numpy.load(path).tolist() == [1] * 3
    for options in {"reserve": "on"}, {"direct": "none"}, {"direct": 1}:
        with pytest.raises(umem.ValueError):
            umem.save(path, umem.full(3, 2), **options)
    try:
        umem.save(path, umem.full(100000, 2), direct="on")
    except umem.NotSupportedError:  # a file system without direct I/O
        assert numpy.load(path).tolist() == [1] * 3
    else:
        assert numpy.load(path).tolist() == [2] * 100000


@pytest.mark.parametrize("content, error", [
    (b"", ValueError), (b"no npy file at all", ValueError), (b"\x93NUMPY\x09\0\x10\0" + b" " * 16, ValueError),
    (b"\x93NUMPY\1\0\x10\0" + b"{'descr': 1     ", ValueError),
    (b"\x93NUMPY\1\0\x48\0" + b"{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }".ljust(72), TypeError),
    (b"\x93NUMPY\1\0\x48\0" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }".ljust(72), ValueError),
    (b"\x93NUMPY\1\0\x48\0" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }".ljust(72), ValueError),
    (b"\x93NUMPY\1\0\x58\0" + b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }".ljust(88), TypeError),
    (b"\x93NUMPY\1\0\x48\0" + b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }".ljust(72), TypeError),
])
def test_other_files_are_refused(tmp_path, content, error):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(error) as caught:
        umem.load(tmp_path / "x.npy")
    assert isinstance(caught.value, umem.Error)


def test_missing_files(tmp_path):
    with pytest.raises(OSError):
        umem.load(tmp_path / "x.npy")
    with pytest.raises(umem.OSError) as caught:
        umem.save(tmp_path / "no" / "x.npy", umem.zeros(3))
    assert caught.value.errno == 2
    with pytest.raises(umem.TypeError):
        umem.save(tmp_path / "x.npy", umem.zeros(3, "float32x4"))
    assert not (tmp_path / "x.npy").exists()


# ---- NumPy as the oracle for headers ----

def file_of(text, version=1, data=bytes(256), length=None, minor=0):
    text = text.encode("utf-8" if version == 3 else "latin1") if isinstance(text, str) else text
    length = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, minor]) + length.to_bytes(2 if version == 1 else 4, "little") + text + data


def text_of(descr="'<f8'", order="False", shape="(2, 3)", rest=", }"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}{rest}"


LETTERS = "?bBhHiIlLqQefdFD"
KINDS = [f"{kind}{size}" for kind in "biufc" for size in (1, 2, 4, 8, 16)]
ACCEPTED = [  # by both
    *(text_of(f"'{order}{kind}'") for order in ("", "<", "=", "|") for kind in (*KINDS, *LETTERS)),
    *(text_of(f"'{name}'") for name in TYPES), *(text_of(f"'>{kind}'") for kind in ("b1", "i1", "u1")),
    *(text_of(shape=shape) for shape in ("()", "(0,)", "(3,)", "(3L,)", "(3L, 4L)", "( 3 , 4,)", "(3,4)", "(0, 5)", "(2, 1, 3)",
                                         f"({'1, ' * 32})", "(4611686018427387, 0)", "(3 L, 2)")),
    text_of(order="True"), '{"descr": "<f8", "fortran_order": False, "shape": (2,)}', text_of(rest="}"), text_of(rest=",}\n"),
    "{'shape': (2,), 'descr': 'f8', 'fortran_order': True}", " \t" + text_of(), text_of() + " " * 100 + "\n",
    "{\n'descr'\t:\r\n'<f8' ,\f'fortran_order':False,'shape':(2,)}", "{u'descr': u'<f8', 'fortran_order': False, 'shape': (2,)}",
]
BROKEN = [  # ValueError of both
    "", "{}", "[]", "3", "None", "'text'", text_of()[:-1], text_of() + "x", text_of() + "{}", "{" * 200, "(" * 9000, "[" * 9000,
    text_of("[" * 2000), text_of("(" * 2000), text_of("[('a', " * 20), text_of("[('a', '<f8')"), text_of("[('a', [1, 2])]"), text_of("[[]]"),
    text_of("('<f8', )"), text_of("['<f8']"), text_of("3"), text_of("None"), text_of("True"), text_of("'f3'"),
    text_of("'i3'"), text_of("'foo'"), text_of("''"), text_of("'<'"), text_of("'<float64'"), text_of("'f8 '"), text_of("'<f8"),
    text_of("'i16'"), text_of("'<<f8'"), text_of("f8"), text_of("'c4'"), text_of("'b2'"), text_of("'\xe9'"),
    text_of(order="'False'"), text_of(order="'True'"), text_of(order="0"), text_of(order="None"), text_of(order="false"),
    text_of(order="[]"), text_of(order="Truee"), text_of(order=""), text_of(shape="[2, 3]"), text_of(shape="3"), text_of(shape="(3)"),
    text_of(shape="(-2, 3)"), text_of(shape="(2.0, 3)"), text_of(shape="('2', 3)"), text_of(shape="(None,)"), text_of(shape="(02, 3)"),
    text_of(shape="(2 3)"), text_of(shape="(,)"), text_of(shape="(2,, 3)"), text_of(shape="(3l, 2)"), text_of(shape="((2,), 3)"),
    text_of(shape="(99999999999999999999999, 1)"), text_of(shape="(9223372036854775807, 2)"), text_of(shape="(4611686018427387904, 4)"),
    text_of(shape="(100, 100)"), text_of(shape="(9223372036854775807, 0)"), text_of(shape=f"({'1, ' * 65})"),
    "{'descr': '<f8', 'fortran_order': False}", "{'descr': '<f8', 'shape': (2,)}", "{'fortran_order': False, 'shape': (2,)}",
    text_of(rest=", 'color': 1}"), text_of(rest=", 1: 2}"), "{descr: '<f8', 'fortran_order': False, 'shape': (2,)}",
    "{'descr' '<f8', 'fortran_order': False, 'shape': (2,)}", "{'descr': '<f8' 'fortran_order': False, 'shape': (2,)}",
    text_of() + "\0", "\0" + text_of(), text_of().replace("'shape'", "'sh\0ape'"), b"\xff\xfe", text_of() + " " * 10000, " " * 70000,
    "{'descr': __import__('os'), 'fortran_order': False, 'shape': (2,)}", text_of(shape="(2, 3) + (1,)"),
]
STORED = [  # only stored
    *(text_of(f"'{kind}'", shape="(2, 2)") for kind in (">f8", ">i2", ">c16", ">U3", "|S5", "<U3", "|V8", "<M8[ns]", "<m8[D]", "M8",
                                                        "<f16", "<c32")),
    text_of("[('a', '<f4'), ('b', '<i4', (2,))]"), text_of("[('a', [('b', '<f4')])]"), text_of("[(('title', 'a'), '<f4')]"),
    text_of("[('a', ('<f4', (2, 2)))]"),
]
UNSUPPORTED = [text_of("'|O'"), text_of("('<f8', (2,))")]  # TypeError


def numpy_loads(path):
    """The array that NumPy reads; None if it refuses the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return numpy.load(path, allow_pickle=False)
        except Exception:
            return None


def umem_loads(path):
    """The array that umem reads, or the exception, which must be one that names the file."""
    try:
        return umem.load(path, umem.host())
    except (umem.ValueError, umem.TypeError) as error:
        assert str(error).startswith(repr(str(path)) + ": ") and "umem_npy" not in str(error)
        with pytest.raises(type(error)):
            umem.load(path)  # mapped
        return error


def check_like_numpy(path):
    found, expected = umem_loads(path), numpy_loads(path)
    if isinstance(found, umem.Array):
        assert expected is not None, path.read_bytes()
        assert found.shape == expected.shape and found.dtype == expected.dtype
        if expected.dtype.kind not in "SUV":  # the bytes of which may be no text
            assert numpy.array_equal(found.numpy(), expected, equal_nan=expected.dtype.kind in "fcmM")
    return found, expected


@pytest.mark.parametrize("version", [1, 2])
def test_headers_that_numpy_reads_are_read(version, tmp_path):
    path = tmp_path / "x.npy"
    for text in ACCEPTED:
        path.write_bytes(file_of(text, version, bytes(range(1, 97)) + bytes(160)))
        found, expected = check_like_numpy(path)
        if isinstance(found, Exception):
            assert expected is None or isinstance(found, umem.TypeError), (text, found)
        if expected is None:
            assert isinstance(found, umem.ValueError), text
    assert len(ACCEPTED) > 170 and isinstance(found, umem.Array)


def test_version_three_has_no_numbers_of_python_two(tmp_path):
    path = tmp_path / "x.npy"
    for text, error in ((text_of(), None), (text_of(shape="(3L,)"), umem.ValueError), (text_of("[('\xe9\u4e00', '<f4')]"), None)):
        path.write_bytes(file_of(text, 3))
        found, expected = check_like_numpy(path)
        assert isinstance(found, error or umem.Array) and (error is not umem.ValueError or expected is None)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_broken_headers_are_value_errors(version, tmp_path):
    path = tmp_path / "x.npy"
    for text in BROKEN:
        if version == 1 and len(text) > 65535:
            continue
        path.write_bytes(file_of(text, version))
        found, expected = check_like_numpy(path)
        assert isinstance(found, umem.ValueError) and expected is None, (text, found, expected)


def test_types_that_umem_only_stores_are_read(tmp_path):
    path = tmp_path / "x.npy"
    for text in STORED:
        path.write_bytes(file_of(text))
        assert isinstance(check_like_numpy(path)[0], umem.Array), text


def test_types_that_umem_lacks_are_type_errors(tmp_path):
    path = tmp_path / "x.npy"
    for text in UNSUPPORTED:
        path.write_bytes(file_of(text))
        assert isinstance(umem_loads(path), umem.TypeError), text


def test_files_that_are_cut_off(tmp_path):
    path = tmp_path / "x.npy"
    for version in (1, 2, 3):
        whole = file_of(text_of(), version, bytes(48))
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            assert isinstance(umem_loads(path), umem.ValueError)
        path.write_bytes(whole + b"more")
        assert isinstance(check_like_numpy(path)[0], umem.Array)
        for start in (whole[:7] + b"\1" + whole[8:], whole[:6] + b"\4" + whole[7:], whole[:6] + b"\0" + whole[7:], b"\0" + whole[1:]):
            path.write_bytes(start)
            assert isinstance(umem_loads(path), umem.ValueError)
        path.write_bytes(file_of(text_of(), version, b"", 65535 if version == 1 else 2**32 - 1))
        assert isinstance(umem_loads(path), umem.ValueError)


def test_changed_headers_are_read_as_by_numpy_or_refused(tmp_path):
    """Whatever a change makes of a header: umem reads what NumPy reads, or refuses it in its own words."""
    path, chance, read = tmp_path / "x.npy", random.Random(7), 0
    seeds = [file_of(text, version) for version in (1, 2, 3) for text in (*ACCEPTED[::9], *BROKEN[::3], *STORED, *UNSUPPORTED)
             if len(text) < 1000]
    for _ in range(1500):
        content = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(min(len(content), 110))
            how = chance.randrange(4)
            if how == 0:
                content[at] = chance.randrange(256)
            elif how == 1:
                del content[at:at + chance.randint(1, 4)]
            elif how == 2:
                content[at:at] = chance.choice([b"'", b'"', b"(", b")", b"[", b",", b"L", b"0", b"9" * 20, b"{", b"u", b"\n", b"\0", b"\xff", b" ", b"#"])
            else:
                other = chance.choice(seeds)
                content[at:at + 8] = other[at:at + 8]
        path.write_bytes(content)
        read += isinstance(check_like_numpy(path)[0], umem.Array)
    assert read > 50


def test_elements_may_begin_at_any_byte(tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(file_of(text_of(shape="(2,)", rest=" }"), 1, numpy.array([1.0, 2.0]).tobytes()))
    offset = path.stat().st_size - 16
    assert offset % 8
    assert umem.load(path, umem.host()).tolist() == [1, 2]
    mapped = umem.load(path)
    assert mapped.address % 8 and mapped.tolist() == [1, 2] and numpy.asarray(mapped).tolist() == [1, 2]
    assert mapped.astype("float32").tolist() == [1, 2]


def test_only_arrays_are_saved(tmp_path):
    for value in (None, "text", {}, object()):
        with pytest.raises(umem.TypeError, match="cannot be an array"):
            umem.save(tmp_path / "x.npy", value)
    assert not os.listdir(tmp_path)
