"""The program stage on .npy files of all kinds, good and bad. NumPy is the judge."""

import io
import itertools
import os
import random
import struct

import numpy

from support import BAD_INPUT, IDENTICAL, InFolder

TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
TYPES += ["f2", "f4", "f8", "f16", "c8", "c16", "c32"]
SHAPES = [(), (0,), (1,), (7,), (3, 4), (0, 5), (5, 0), (2, 3, 4), (1,) * 32, (257, 129)]


def header(text, version=(1, 0)):
    """A header with this text, padded as NumPy does."""
    size = "<H" if version == (1, 0) else "<I"
    used = 8 + struct.calcsize(size) + len(text) + 1
    text = text + b" " * (-used % 64) + b"\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack(size, len(text)) + text


def describe(descr="'<f8'", order="False", shape="(3, 4)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()


def numpy_bytes(array, version=None):
    out = io.BytesIO()
    numpy.lib.format.write_array(out, array, version=version)
    return out.getvalue()


class NpyTest(InFolder):
    def stage_bytes(self, content):
        (self.folder / "in.npy").write_bytes(content)
        return self.stage("in.npy", "out.npy")

    def assert_staged(self, content):
        done = self.stage_bytes(content)
        self.assertEqual((done.returncode, done.stderr), (IDENTICAL, ""))
        self.assertEqual((self.folder / "out.npy").read_bytes(), content)
        numpy.testing.assert_array_equal(
            numpy.load(self.folder / "out.npy"), numpy.load(self.folder / "in.npy")
        )

    def assert_refused(self, content, why):
        done = self.stage_bytes(content)
        self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
        self.assertRegex(done.stderr, rf"\Astage: in\.npy: {why}\n\Z")
        self.assertEqual(done.stdout, "")
        self.assert_left("in.npy")


class GoodFiles(NpyTest):
    def test_every_type_in_both_byte_orders(self):
        rng = numpy.random.default_rng(5)
        for kind, order in itertools.product(TYPES, "<>"):
            dtype = numpy.dtype(kind).newbyteorder(order)
            array = rng.integers(0, 2, (5, 7)) if kind == "?" else rng.integers(0, 100, (5, 7))
            with self.subTest(dtype=dtype.str):
                self.assert_staged(numpy_bytes(array.astype(dtype)))

    def test_every_shape(self):
        for shape in SHAPES:
            with self.subTest(shape=shape):
                array = numpy.arange(numpy.prod(shape, dtype=int), dtype="<i4").reshape(shape)
                self.assert_staged(numpy_bytes(array))

    def test_every_version(self):
        for version in [(1, 0), (2, 0), (3, 0)]:
            with self.subTest(version=version):
                self.assert_staged(numpy_bytes(numpy.arange(12.0).reshape(3, 4), version))

    def test_what_other_writers_may_do(self):
        data = numpy.arange(12.0).tobytes()
        for text in [
            b"{'shape': (3, 4), 'descr': '<f8', 'fortran_order': False}",
            b'{"descr":"<f8","fortran_order":False,"shape":(3,4)}',
            b" {\t'descr' : '<f8' ,\n 'fortran_order' : False ,\n 'shape' : ( 3 , 4 , ) , } ",
            describe(shape="(12,)"),
        ]:
            with self.subTest(text=text):
                self.assert_staged(header(text) + data)

    def test_header_without_padding(self):
        text = describe(shape="(1,)")
        self.assert_staged(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(8))

    def test_slices_and_nan(self):
        array = numpy.full((40, 50), numpy.nan)[::3, ::-2]
        self.assert_staged(numpy_bytes(numpy.ascontiguousarray(array)))


class BadFiles(NpyTest):
    GOOD = numpy_bytes(numpy.arange(12.0).reshape(3, 4))

    def test_truncated_at_every_length(self):
        for length in range(len(self.GOOD)):
            with self.subTest(length=length):
                why = "it is truncated: .*" if length >= 6 else "it is no .npy file: .*"
                self.assert_refused(self.GOOD[:length], why)

    def test_too_long(self):
        self.assert_refused(
            self.GOOD + b"x", "it is too long: its header says 96 bytes of data, it holds 97"
        )

    def test_truncated_data(self):
        self.assert_refused(
            self.GOOD[:-1], "it is truncated: its header says 96 bytes of data, it holds 95"
        )

    def test_wrong_magic(self):
        for content in [b"hello, world\n" * 20, b"PK\3\4" + bytes(100), b"\x92" + self.GOOD[1:]]:
            self.assert_refused(content, r"it is no \.npy file: it does not start with \\x93NUMPY")

    def test_versions(self):
        for version in [(0, 0), (1, 1), (4, 0), (255, 255)]:
            content = self.GOOD[:6] + bytes(version) + self.GOOD[8:]
            self.assert_refused(content, r"its format version \d+\.\d+ is unknown; known are .*")

    def test_fortran_order(self):
        array = numpy.asfortranarray(numpy.arange(12.0).reshape(3, 4))
        self.assert_refused(numpy_bytes(array), "it is in Fortran order; .*")

    def test_python_objects(self):
        out = io.BytesIO()
        numpy.save(out, numpy.array([{}, []], dtype=object), allow_pickle=True)
        self.assert_refused(out.getvalue(), r"its elements are Python objects \(type '\|O'\), .*")

    def test_records(self):
        array = numpy.zeros(3, dtype=[("x", "<f4"), ("y", "<i8")])
        self.assert_refused(numpy_bytes(array), "its elements are records; .*")

    def test_types_that_are_no_numbers(self):
        for dtype in ["S5", "U5", "V8", "M8[s]", "m8[D]"]:
            with self.subTest(dtype=dtype):
                why = rf"its type '[<|]{dtype[0]}.*' is unknown; known are .*"
                self.assert_refused(numpy_bytes(numpy.zeros(3, dtype=dtype)), why)

    def test_types_that_do_not_exist(self):
        for descr in ["<f3", "<i16", "<c4", "|b2", "f8", "<f", "<", "", "<f8 ", "<f08", "xf8"]:
            with self.subTest(descr=descr):
                self.assert_refused(
                    header(describe(f"'{descr}'")) + bytes(96), "its type '.*' is unknown; .*"
                )

    def test_shapes(self):
        for shape, why in [
            ("(3)", "its shape is a number, not a tuple"),
            ("3", "its shape is no tuple"),
            ("[3, 4]", "its shape is no tuple"),
            ("(-3, 4)", "its shape is not a tuple of whole numbers"),
            ("(03, 4)", "its shape is not a tuple of whole numbers"),
            ("(3, 4.0)", "its shape is not a tuple of whole numbers"),
            ("(3 4)", "its shape is not a tuple of whole numbers"),
            ("(3, , 4)", "its shape is not a tuple of whole numbers"),
            ("(,)", "its shape is not a tuple of whole numbers"),
            ("(3, 4", "its shape is not a tuple of whole numbers"),
            ("(True,)", "its shape is not a tuple of whole numbers"),
            ("(99999999999999999999,)", "its shape has a number that is too large"),
            ("(9223372036854775808,)", "its shape has a number that is too large"),
            ("(9223372036854775807,)", "its shape is larger than any array can be"),
            ("(4294967296, 4294967296)", "its shape is larger than any array can be"),
            ("(0, 4294967296, 4294967296)", "its shape is larger than any array can be"),
            ("(2305843009213693953,)", "its shape is larger than any array can be"),
            (f"({'1, ' * 65})", "its shape has more than 64 dimensions"),
            ("(1000000000000,)", "it is truncated: its header says 8000000000000 bytes .*"),
            ("(3, 5)", "it is truncated: its header says 120 bytes of data, it holds 96"),
            ("(3, 3)", "it is too long: its header says 72 bytes of data, it holds 96"),
            ("(3, 0)", "it is too long: its header says 0 bytes of data, it holds 96"),
        ]:
            with self.subTest(shape=shape):
                self.assert_refused(header(describe(shape=shape)) + bytes(96), why)

    def test_headers(self):
        no_dictionary = "its header is no dictionary: .* is missing"
        for text, why in [
            (b"", no_dictionary),
            (b"garbage", no_dictionary),
            (b"{", no_dictionary),
            (b"{'descr'}", no_dictionary),
            (b"{'descr': '<f8' 'shape': (3, 4)}", no_dictionary),
            (b"{,}", no_dictionary),
            (b"\0" * 50, no_dictionary),
            (b"{}", "its header lacks descr, fortran_order or shape"),
            (b"{'descr': '<f8', 'shape': (3, 4)}", "its header lacks .*"),
            (describe()[:-1] + b"'x': 1}", "its header has the unknown key 'x'"),
            (describe()[:-1] + b"'descr': '<f8'}", "its header has the key 'descr' twice"),
            (describe() + b" x", "its header goes on after the dictionary"),
            (describe() + b"\0", "its header goes on after the dictionary"),
            (describe(order="0"), "its fortran_order is neither True nor False"),
            (describe(descr="'<f8"), "its type '<f8, ' is unknown; .*"),
            (b"{'descr", "its header has a word that is too long, .*"),
            (describe(descr="'" + "<" * 99 + "'"), "its header has a word that is too long, .*"),
            (describe(descr="'\x1b[31m'"), "its header has a word that is too long, .*"),
            (describe(descr="'<f\\x38'"), "its header has a word that is too long, .*"),
            (describe(descr="7"), "its header is no dictionary: a quoted word is missing"),
        ]:
            with self.subTest(text=text):
                self.assert_refused(header(text) + bytes(96), why)

    def test_header_lengths(self):
        text = describe()
        too_long = header(text + b" " * 20000, (2, 0)) + bytes(96)
        self.assert_refused(too_long, "its header has 20.* bytes, more than the 10000 that are read")
        endless = b"\x93NUMPY\2\0\xff\xff\xff\xff" + text + bytes(96)
        self.assert_refused(endless, "it is truncated: it ends inside of its header")
        for length in [0, 1, len(text) - 1]:
            content = b"\x93NUMPY\1\0" + struct.pack("<H", length) + text + bytes(96)
            self.assert_refused(content, "its header .*")


class NoFiles(NpyTest):
    def assert_not_opened(self, path, why):
        done = self.stage(path, "out.npy")
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertRegex(done.stderr, rf"\Astage: umemFile_ctor: .*{why}.*\n\Z")
        self.assertFalse((self.folder / "out.npy").exists())

    def test_missing(self):
        self.assert_not_opened("missing.npy", "No such file or directory")

    def test_no_name(self):
        self.assert_not_opened("", "name")

    def test_folder(self):
        self.assert_not_opened(".", "")

    def test_device(self):
        self.assert_not_opened("/dev/zero", "")

    def test_pipe(self):
        """Opening it must not wait for a writer."""
        os.mkfifo(self.folder / "pipe")
        self.assert_not_opened("pipe", "")


class Mutations(NpyTest):
    COUNT = int(os.environ.get("UMEM_MUTATIONS", "250"))
    LETTERS = b"{}()[],:' \n\0\xff\"<>|=OfF8140LTruels-+_.xA"

    def mutate(self, rng, content):
        content = bytearray(content)
        for _ in range(rng.choice([1, 1, 2, 4])):
            at = rng.randrange(min(len(content), 80))
            kind = rng.randrange(4)
            if kind == 0:
                content[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                content[at] = rng.choice(self.LETTERS)
            elif kind == 2:
                content[at:at] = bytes([rng.choice(self.LETTERS)])
            else:
                del content[at]
        return bytes(content)

    def numpy_agrees(self, path):
        """Whether NumPy, too, finds an array of numbers in C order that fills the file."""
        array = numpy.lib.format.open_memmap(path, mode="r")
        filled = array.offset + array.nbytes == os.path.getsize(path)
        return array.flags.c_contiguous and array.dtype.kind in "biufc" and filled

    def test_what_is_accepted_numpy_accepts(self):
        rng = random.Random(2026)
        array = numpy.arange(12.0).reshape(3, 4)
        seeds = [numpy_bytes(array, version) for version in [(1, 0), (2, 0), (3, 0)]]
        accepted = 0
        for number in range(self.COUNT):
            content = self.mutate(rng, rng.choice(seeds))
            with self.subTest(number=number, content=content[:90]):
                done = self.stage_bytes(content)
                if done.returncode == IDENTICAL:
                    accepted += 1
                    self.assertTrue(self.numpy_agrees(self.folder / "out.npy"))
                else:
                    self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
                    self.assertRegex(done.stderr, r"\Astage: in\.npy: .*\n\Z")
        self.assertGreater(accepted, 0)
        self.assertLess(accepted, self.COUNT)
