#!/usr/bin/env python3
"""test/platforms.py: what it records of a log, how it merges, and that the stored table is one."""
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
import platforms  # noqa: E402

LOG = """-- The C compiler identification is GNU 12.2.0
-- The CXX compiler identification is GNU 12.2.0
-- The CUDA compiler identification is NVIDIA 13.0.88
ok - one
skipped - two
    ok - this is part of a message
ok - three
"""


def row(stage="gcc", date="2026-11-24", compilers="GCC 12.2", commit="abc"):
    return ("Debian 12", "x86_64", stage, compilers, "2", date, commit)


def stages():
    text = (ROOT / "test/stages.sh").read_text()
    return set(re.search(r"^nightly_stages=\(([^)]*)\)", text, re.MULTILINE)[1].split())


class Platforms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_records_what_a_log_says(self):
        (self.folder / "gcc.log").write_text(LOG)
        (self.folder / "arm64.log").write_text("ok - one\n")
        platforms.record(self.folder, self.folder / "record", ["gcc", "arm64"])
        platforms.record(self.folder, self.folder / "record", ["gcc"])
        rows = platforms.read(self.folder / "record")
        self.assertEqual([one[2:5] for one in rows],
                         [("gcc", "GCC 12.2, CUDA 13.0", "2"), ("arm64", "", "1"), ("gcc", "GCC 12.2, CUDA 13.0", "2")])
        self.assertEqual(rows[1][1], "aarch64 (qemu)")

    def test_no_git_is_an_unknown_commit(self):
        with mock.patch.dict("os.environ", {"PATH": str(self.folder)}):
            self.assertEqual(platforms.commit(), "unknown")

    def test_the_latest_of_a_kind_stays(self):
        rows = [row(date="2026-11-23", commit="old"), row(commit="new"), row(date="2026-11-22", compilers="Clang 14.0"),
                row("asan", "2026-11-21")]
        self.assertEqual(platforms.merged(rows), [rows[3], rows[2], rows[1]])

    def test_stores_beside_what_is_there(self):
        (self.folder / "a").write_text("\t".join(row()) + "\n")
        (self.folder / "b").write_text("\t".join(row("asan")) + "\n")
        platforms.store([self.folder / "a"], self.folder / "table")
        platforms.store([self.folder / "b"], self.folder / "table")
        self.assertEqual(platforms.read(self.folder / "table"), [row("asan"), row()])

    def test_a_broken_record_changes_nothing(self):
        (self.folder / "table").write_text("\t".join(row()) + "\n")
        (self.folder / "a").write_text("Debian 12\tx86_64\n")
        with self.assertRaisesRegex(ValueError, "a:1: this is no row"):
            platforms.store([self.folder / "a"], self.folder / "table")
        self.assertEqual(platforms.read(self.folder / "table"), [row()])

    def test_the_stored_table(self):
        rows = platforms.read(platforms.TABLE)
        self.assertEqual(rows, platforms.merged(rows))
        self.assertEqual({one[2] for one in rows} - stages(), set())
        self.assertEqual([one for one in rows if not re.fullmatch("[0-9a-f]{12}", one[6])], [])


if __name__ == "__main__":
    unittest.main()
