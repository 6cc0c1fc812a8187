"""The program stage: an array through every place and back."""

import os
import pty
import re
import resource
import subprocess

import numpy

from support import BAD_INPUT, CELL, FAILED, IDENTICAL, InFolder, left_out_places, program, table

# Every machine has these; tmpfs and GPUs may be missing.
EVERYWHERE = ["RAM", "scratch file", "named file", "mapped file"]
GPU = ["GPU", "GPU stream", "managed RAM", "pinned RAM"]


class ShippedData(InFolder):
    def test_comes_back_identical(self):
        done = self.stage(CELL, "out.npy")
        self.assertEqual(done.returncode, IDENTICAL, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertEqual((self.folder / "out.npy").read_bytes(), CELL.read_bytes())
        back = numpy.load(self.folder / "out.npy")
        self.assertEqual((back.shape, back.dtype), ((660, 550), numpy.uint8))
        self.assert_left("out.npy")

    def test_takes_every_ordered_pair(self):
        done = self.stage(CELL)
        rows = table(done.stdout)
        places = [to for start, to, *_ in rows if start == "input"]
        self.assertEqual(places[:4], EVERYWHERE)
        self.assertEqual("tmpfs file" in places, os.path.isdir("/dev/shm"))
        pairs = [("input", to) for to in places]
        pairs += [(start, to) for start in places for to in places]
        pairs += [(places[-1], "output")]
        self.assertEqual([row[:2] for row in rows], pairs)
        for row in rows:
            self.assertEqual(row[2], "363000")
            self.assertGreater(float(row[3]), 0)
            self.assertEqual(row[5], "yes")

    def test_says_why_a_place_is_left_out(self):
        done = self.stage(CELL)
        used = {row[1] for row in table(done.stdout)}
        left_out = left_out_places(done.stdout)
        for place in GPU:
            self.assertNotEqual(place in used, place in left_out)
            self.assertRegex(left_out.get(place, "GPU"), "^[^:]*(CUDA|GPU)")
        if not used & set(GPU):
            self.assertEqual(len({left_out[place] for place in GPU}), 1)  # one line for all of them

    def test_names_each_reason_once_and_after_the_table(self):
        lines = self.stage(CELL).stdout.splitlines()
        self.assertTrue(all(len(line) <= 80 for line in lines[1:]), lines)
        first = next((i for i, line in enumerate(lines) if line.startswith("left out: ")), len(lines))
        self.assertGreater(first, max(i for i, line in enumerate(lines) if line.endswith("  yes")))
        reasons = set(left_out_places("\n".join(lines)).values())
        self.assertEqual(sum(line.startswith("left out: ") for line in lines), len(reasons))

    def test_says_what_the_times_are(self):
        small = self.stage(CELL).stdout
        self.assertRegex(small, r"\n\nA copy shorter than 1 ms is timed 5 times, ")
        self.assertIn("\nA small array like this shows the speed of calls and caches", small)
        numpy.save(self.folder / "in.npy", numpy.zeros(4 << 20))
        large = self.stage("in.npy").stdout
        self.assertIn("\nFiles stay in the page cache, in RAM", large)
        self.assertNotIn("small array like this", large)

    def test_counts_one_as_one(self):
        for shape, words in [
            ((), "one element of type |u1, 1 byte"),
            ((1,), "1 element of type |u1, 1 byte"),
            ((1, 1), "1 x 1 element of type |u1, 1 byte"),
            ((2,), "2 elements of type |u1, 2 bytes"),
            ((0,), "0 elements of type |u1, 0 bytes"),
        ]:
            numpy.save(self.folder / "in.npy", numpy.zeros(shape, numpy.uint8))
            done = self.stage("in.npy", "out.npy")
            self.assertEqual(done.stdout.splitlines()[0], f"in.npy: {words}")

    def test_leaves_nothing_in_shared_memory(self):
        def entries():
            return {n for n in os.listdir("/dev/shm") if n.startswith("umem-stage-")}

        before = entries() if os.path.isdir("/dev/shm") else set()
        self.stage(CELL)
        after = entries() if os.path.isdir("/dev/shm") else set()
        self.assertEqual(after - before, set())


class Pieces(InFolder):
    def test_arrays_larger_than_a_piece(self):
        for size, piece in [(1, 1), (20, 1), (1000, 999), (1000, 500), (3001, 1000)]:
            with self.subTest(size=size, piece=piece):
                array = numpy.random.default_rng(size).integers(0, 256, size, dtype=numpy.uint8)
                numpy.save(self.folder / "in.npy", array)
                done = self.stage("in.npy", "out.npy", piece)
                self.assertEqual(done.returncode, IDENTICAL, done.stderr)
                self.assertTrue(all(int(row[2]) == size for row in table(done.stdout)))
                numpy.testing.assert_array_equal(numpy.load(self.folder / "out.npy"), array)

    def test_arrays_larger_than_the_usual_piece(self):
        array = numpy.random.default_rng(1).integers(0, 2**63, 5 << 19, dtype=numpy.uint64)
        numpy.save(self.folder / "in.npy", array)
        done = self.stage("in.npy", "out.npy")
        self.assertEqual(done.returncode, IDENTICAL, done.stderr)
        self.assertTrue(all(int(row[2]) == array.nbytes for row in table(done.stdout)))
        numpy.testing.assert_array_equal(numpy.load(self.folder / "out.npy"), array)

    def test_a_piece_must_be_a_number(self):
        for piece in ["0", "-1", "", "1x", "x", "99999999999999999999"]:
            done = self.stage(CELL, "out.npy", piece)
            self.assertEqual(done.returncode, BAD_INPUT, piece)
            self.assertIn("usage: stage", done.stderr)
        self.assert_left()


class Failures(InFolder):
    def test_no_room_for_the_output(self):
        (self.folder / "out.npy").write_bytes(b"older")

        def small_files_only():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

        done = self.stage(CELL, "out.npy", preexec_fn=small_files_only)
        self.assertEqual(done.returncode, FAILED)
        self.assertRegex(done.stderr, r'^stage: cannot write "out\.npy": umem_alloc: ')
        self.assertEqual((self.folder / "out.npy").read_bytes(), b"older")
        self.assert_left("out.npy")

    def test_a_place_of_every_machine_is_missing(self):
        self.env["TMPDIR"] = str(self.folder / "nowhere")
        done = self.stage(CELL, "out.npy")
        self.assertEqual(done.returncode, FAILED)
        self.assertRegex(done.stderr, r"^stage: scratch file: umemFile_ctor: .*No such file")
        rows = table(done.stdout)
        self.assertNotIn("scratch file", {row[1] for row in rows})
        self.assertEqual({row[5] for row in rows}, {"yes"})
        self.assert_left()

    def test_no_room_in_the_places(self):
        """The file limit lets the output pass, but not two blocks in one file."""

        def room_for_one():
            resource.setrlimit(resource.RLIMIT_FSIZE, (400000, 400000))

        done = self.stage(CELL, "out.npy", preexec_fn=room_for_one)
        self.assertEqual(done.returncode, FAILED)
        for place in ["scratch file", "named file", "mapped file"]:
            self.assertRegex(done.stderr, rf"stage: {place}: umem_alloc: ")
        self.assertEqual([row[:2] for row in table(done.stdout)][:2], [("input", "RAM"), ("RAM", "RAM")])
        self.assert_left()

    def test_usage(self):
        for arguments in [(), (CELL, "a", "1", "b")]:
            done = self.stage(*arguments)
            self.assertEqual(done.returncode, BAD_INPUT)
            self.assertIn("usage: stage", done.stderr)
            self.assertEqual(done.stdout, "")


class Progress(InFolder):
    def test_only_where_a_person_watches(self):
        """A terminal sees percentages, and none is left when the program ends; a pipe sees none."""
        shown = self.watch(CELL)
        self.assertRegex(shown, r"  0 %  input -> RAM")
        self.assertRegex(shown, r" 9\d %  .* -> output")
        self.assertTrue(shown.endswith("\r\033[K"), repr(shown[-40:]))
        self.assertNotIn("%", self.stage(CELL).stderr)

    def test_an_empty_array(self):
        numpy.save(self.folder / "empty.npy", numpy.zeros((0, 3)))
        self.assertRegex(self.watch("empty.npy"), r" 9\d %  .* -> output")

    def test_never_runs_backward(self):
        for arguments in [(CELL,), (CELL, "out.npy", 100000)]:
            shown = [int(share) for share in re.findall(r"(\d+) %", self.watch(*arguments))]
            self.assertEqual(shown, sorted(shown))
            self.assertGreater(len(set(shown)), 20)
            self.assertLessEqual(shown[-1], 100)

    def watch(self, *arguments):
        """What stage shows on a terminal while it stages the file."""
        terminal, stderr = pty.openpty()
        with open(terminal, "rb", buffering=0) as screen:
            subprocess.run(
                [program("stage"), *map(str, arguments)],
                cwd=self.folder,
                env=self.env,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                check=True,
            )
            os.close(stderr)
            return read_all(screen)


def read_all(screen):
    """What was written to a terminal whose other end is closed: reading ends with an error then."""
    shown = b""
    try:
        while part := screen.read(65536):
            shown += part
    except OSError:
        pass
    return shown.decode()
