#!/usr/bin/env python3
"""house.py: what it counts, and what it does with its budget."""
import tempfile
import unittest
from pathlib import Path

import house


class House(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def test_counts_code(self):
        path = self.write("c/src/core/a.c", "/* head\n * of two */\n#include <x.h>\n\nint a; // one\n" + " " * 101 + "\n")
        self.assertEqual(house.code_lines([path]), 2)
        self.assertEqual(house.small_files([path]), 1)
        self.assertEqual(house.wide_lines([path]), 1)

    def test_counts_floors_of_modules(self):
        self.write("c/src/core/low.h", "")
        self.write("c/src/core/middle.c", '#include "core/low.h"\n#include "base/other.h"\n')
        self.write("c/src/core/middle.h", "")
        self.write("c/src/core/top.c", '/* "core/low.h" */\n#include "core/middle.h"\n#include "core/top.h"\n')
        self.assertEqual(house.floors("core", house.rooms(self.root)["core"]), 3)

    def test_counts_walks_without_words_of_headers(self):
        core, stores = house.ROOT / "c/src/core", house.ROOT / "c/src/stores"
        walk = [("a", core / "a.c", False), ("can", core / "a.h", True), ("b", stores / "b.c", False),
                ("null", core / "a.h", True), ("c", stores / "b.h", False), ("d", core / "a.c", False)]
        self.assertEqual(house.trace_sizes({"x": walk}), {"x: calls": 6, "x: files": 3, "x: changes of room": 2})

    def test_knows_calls_that_call_no_other(self):
        program = self.write("program", "#!/bin/sh\nprintf 'TRACE x\\n1\\n2\\n-\\n3\\n-\\n-\\n'\n")
        program.chmod(0o755)
        self.assertEqual(house.traced(program), {"x": [("1", False), ("2", True), ("3", True)]})

    def test_the_budget_only_falls(self):
        path = self.write("budget", "What\tAt most\tWhy\na: files\t5\ta reason\nb: code lines\t300\t\nc: files\t2\t\n")
        budget = house.lowered(house.read_budget(path), {"a: files": 5, "b: code lines": 101, "c: files": 3, "d: files": 1})
        self.assertEqual(budget, {"a: files": (5, "a reason"), "b: code lines": (200, ""), "c: files": (2, ""), "d: files": (1, "")})
        house.write_budget(path, budget)
        self.assertEqual(house.read_budget(path), budget)

    def test_finds_what_exceeds(self):
        found = list(house.excess({"a": 3, "b": 2, "c": 1}, {"a": (2, ""), "b": (2, "")}))
        self.assertEqual([line.split(":")[0] for line in found], ["a", "c"])


if __name__ == "__main__":
    unittest.main()
