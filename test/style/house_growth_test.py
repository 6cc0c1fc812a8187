#!/usr/bin/env python3
"""house_growth.py: what it counts as a feature, and that its rows add up."""
import tempfile
import unittest
from fractions import Fraction
from pathlib import Path

import house_growth


class Growth(unittest.TestCase):
    def setUp(self):
        self.since, self.feature_of = house_growth.read_features(house_growth.FEATURES)
        try:
            self.begin, self.now = house_growth.sizes_at(self.since), house_growth.sizes_at("HEAD")
        except (OSError, house_growth.subprocess.CalledProcessError):
            self.skipTest("no history here")

    def test_counts_code_and_files_of_a_commit(self):
        blob = house_growth.git("ls-tree", "HEAD", "c/src/base/number.h").split()[2]
        lines, none = house_growth.code_lines(blob), "0" * 40
        self.assertGreater(lines, 10)

        def change(before, after, status, path):
            return house_growth.change_of(f":100644 100644 {before} {after} {status}\t{path}")

        self.assertEqual(change(none, blob, "A", "c/src/base/number.h"), ((1, lines), (0, 0), (0, 0)))
        self.assertEqual(change(blob, none, "D", "test/number.h"), ((0, 0), (0, 0), (-1, -lines)))
        self.assertEqual(change(none, blob, "A", "c/src/README"), house_growth.NONE)

    def test_reads_shares_of_commits(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "features.tsv"
            path.write_text("Feature\tCommits\nbegin\ta\nfirst\tb c:45/102\n")
            self.assertEqual(house_growth.read_features(path),
                             ("a", {"b": ("first", 1), "c": ("first", Fraction(45, 102))}))
        self.assertEqual(house_growth.scaled(((-102, -905),), Fraction(45, 102)), ((-45, -399),))

    def test_rows_add_up(self):
        found = house_growth.growth(self.since, self.feature_of)
        self.assertEqual(set(found) - {None}, {name for name, _ in self.feature_of.values()})
        total = self.begin
        for counts in found.values():
            total = house_growth.added(total, counts)
        self.assertEqual(total, self.now)


if __name__ == "__main__":
    unittest.main()
