"""The programs hello, persist, connect, laplace, add_index, blocks and halo do what their comments say."""

import math

import numpy

from support import FAILED, InFolder, program

ROOTS = numpy.sqrt(numpy.arange(1000.0))


class Hello(InFolder):
    def test_the_same_in_both_places(self):
        done = self.call(program("hello"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        squares = "0 1 4 9 16 25 36 49 0 0"
        self.assertEqual(done.stdout, f"Host: {squares}\nFile: {squares}\n")

    def test_the_file_is_the_array(self):
        self.call(program("hello"))
        expected = numpy.arange(10.0) ** 2
        expected[8:] = 0
        numpy.testing.assert_array_equal(numpy.fromfile(self.folder / "hello.bin"), expected)

    def test_failures_are_told(self):
        (self.folder / "hello.bin").mkdir()
        done = self.call(program("hello"))
        self.assertEqual(done.returncode, FAILED)
        self.assertRegex(done.stderr, r"\Ahello: umemFile_ctor: .*hello\.bin.*\n\Z")


class Persist(InFolder):
    def test_read_finds_what_write_kept(self):
        written = self.call(program("persist"), "write")
        self.assertEqual((written.returncode, written.stderr), (0, ""))
        self.assertEqual(written.stdout, "the square root of 2 is 1.414213562\n")
        kept = (self.folder / "persist.bin").read_bytes()
        read = self.call(program("persist"), "read")
        self.assertEqual((read.returncode, read.stdout), (0, written.stdout))
        self.assertEqual((self.folder / "persist.bin").read_bytes(), kept)

    def test_the_file_holds_both_arrays(self):
        self.call(program("persist"), "write")
        numbers = numpy.fromfile(self.folder / "persist.bin", "i4", 1000)
        roots = numpy.fromfile(self.folder / "persist.bin", offset=4000)
        numpy.testing.assert_array_equal(numbers, numpy.arange(1000))
        numpy.testing.assert_allclose(roots, ROOTS, rtol=1e-14, atol=1e-14)

    def test_read_takes_what_is_in_the_file(self):
        self.call(program("persist"), "write")
        with open(self.folder / "persist.bin", "r+b") as file:
            file.seek(4000 + 2 * 8)
            file.write(numpy.float64(42).tobytes())
        self.assertIn("is 42\n", self.call(program("persist"), "read").stdout)

    def test_failures_are_told(self):
        done = self.call(program("persist"), "read")
        self.assertEqual(done.returncode, FAILED)
        self.assertRegex(done.stderr, r"\Apersist: umemFile_ctor: .*No such file or directory\n\Z")

    def test_a_file_that_is_too_short(self):
        (self.folder / "persist.bin").write_bytes(bytes(4000))
        done = self.call(program("persist"), "read")
        self.assertEqual((done.returncode, done.stdout), (FAILED, ""))
        self.assertIn("persist: umem_alloc: ", done.stderr)

    def test_usage(self):
        for arguments in [(), ("erase",), ("read", "write")]:
            done = self.call(program("persist"), *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: persist", done.stderr)


class Connect(InFolder):
    def test_both_sides_stay_in_sync(self):
        done = self.call(program("connect"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        places = done.stdout.splitlines()
        for name, lines in [("File: two arrays", places[:3]), ("Host: one array", places[3:])]:
            self.assertEqual(lines[0], name)
            self.assertEqual(lines[1].split(), "connected 0 0 0 0 0 0 0 0".split())
            self.assertEqual(lines[2].split()[-8:], "0 0 0 0 4 5 6 7".split())
        self.assert_left()


class Laplace(InFolder):
    def laplace(self, *arguments, large=2048):
        """Only one test waits for the sweep over the usual large grid, which takes most of the time."""
        done = self.call(program("laplace"), *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        solved, measured = done.stdout.splitlines()
        self.assertRegex(
            measured,
            rf"\AHost: sweep of {large} x {large} with its norm: \d+\.\d GB/s, "
            r"\d+\.\d\d times the speed of a loop with pointers\Z",
        )
        return solved

    def test_as_many_steps_as_in_the_talk(self):
        self.assertTrue(self.laplace().startswith("Host: 2097 steps at nx=51, "))

    def test_comes_near_the_solution(self):
        label, value = self.laplace(53, 64, large=64).split(" = ")
        self.assertTrue(label.endswith(" at nx=53, u(0.75, 0.5)"), label)
        self.assertAlmostEqual(float(value), math.sinh(0.75 * math.pi) / math.sinh(math.pi), delta=0.005)

    def test_the_smallest_grid(self):
        """One point inside: the mean of 0, 0, 0 and 1, and a step that changes nothing."""
        self.assertRegex(self.laplace(3, 64, large=64), r"\AHost: 2 steps at nx=3, .* = 0\.250000\Z")

    def test_usage(self):
        for arguments in [("2",), ("0",), ("-51",), ("many",), ("51", "2")]:
            done = self.call(program("laplace"), *arguments)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("usage: laplace", done.stderr)


class AddIndex(InFolder):
    def test_every_type_and_rank_is_right(self):
        done = self.call(program("add_index"), 1)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        cases = [(kind, rank) for kind in ["int32", "int64", "float", "double"] for rank in [1, 2, 3]]
        self.assertEqual(len(lines), len(cases), done.stdout)
        for line, (kind, rank) in zip(lines, cases):
            self.assertRegex(line, rf"\AHost +{kind} +{rank}D +\d+\.\d GB/s, +\d+ % of a copy\Z")


class Blocks(InFolder):
    def test_blocks_are_as_the_array_in_one_piece(self):
        done = self.call(program("blocks"), 2)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        product = sum((i % 7) * (i % 5) for i in range(2 << 17))
        dot, steps, memory = done.stdout.splitlines()
        self.assertEqual(dot, f"Host: dot product {product}")
        self.assertRegex(
            steps, r"\AHost: 50 steps, last change \d+\.\d{6}, 0 of 262144 points differ\Z"
        )
        share = float(memory.split()[4])
        self.assertTrue(95 <= share <= 100, memory)
        self.assert_left()

    def test_usage(self):
        for argument in ["0", "-3", "many"]:
            done = self.call(program("blocks"), argument)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("usage: blocks", done.stderr)


class Halo(InFolder):
    def test_two_halves_are_as_one_grid(self):
        done = self.call(program("halo"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(
            done.stdout, "Host and MMap: 200 steps in two halves, 0 of 6144 points differ\n"
        )
        self.assert_left()
