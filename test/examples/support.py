"""What the tests of the examples share."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CELL = ROOT / "examples/data/cell.npy"

IDENTICAL, FAILED, BAD_INPUT, NOT_BUILT = 0, 1, 2, 3


def program(name):
    return str(pathlib.Path(os.environ["UMEM_EXAMPLES"]) / name)


class InFolder(unittest.TestCase):
    """A test with an empty folder of its own, which is also where scratch files go."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix=f"umem-test-{os.getpid()}-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.env = {**os.environ, "TMPDIR": str(self.folder)}

    def call(self, *command, **options):
        """Runs command in the folder; its output is text, standard error apart."""
        options = {"cwd": self.folder, "env": self.env, "timeout": 240, **options}
        return subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, errors="replace", **options
        )

    def stage(self, *arguments, **options):
        return self.call(program("stage"), *arguments, **options)

    def assert_left(self, *names):
        """Only files of these names are in the folder: nothing was left behind."""
        self.assertEqual(sorted(names), sorted(path.name for path in self.folder.iterdir()))


def table(text):
    """The rows of the table that stage prints: (from, to, bytes, seconds, GB/s, verified)."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("from "))
    rows = []
    for line in lines[start + 1 :]:
        if not line:
            break
        rows.append((line[:14].strip(), line[15:29].strip(), *line[30:].split()))
    return rows


def left_out_places(text):
    """The places that stage says it left out, each with the reason."""
    folded = text.replace("\n  ", " ").splitlines()
    places = {}
    for line in folded:
        if line.startswith("left out: "):
            names, why = line.removeprefix("left out: ").split(": ", 1)
            places.update(dict.fromkeys(names.split(", "), why))
    return places
