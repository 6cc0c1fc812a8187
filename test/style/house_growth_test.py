#!/usr/bin/env python3
"""house_growth.py: what it counts as a feature, and that its rows add up."""
import unittest

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
        self.assertEqual(house_growth.change_of(f":000000 100644 {none} {blob} A\tc/src/base/number.h"), (1, lines))
        self.assertEqual(house_growth.change_of(f":100644 000000 {blob} {none} D\tc/src/base/number.h"), (-1, -lines))
        self.assertEqual(house_growth.change_of(f":000000 100644 {none} {blob} A\tc/src/README"), (0, 0))

    def test_rows_add_up(self):
        found = house_growth.growth(self.since, self.feature_of)
        self.assertEqual(set(found) - {None}, set(self.feature_of.values()))
        self.assertEqual(self.begin[0] + sum(files for files, _ in found.values()), self.now[0])
        self.assertEqual(self.begin[1] + sum(lines for _, lines in found.values()), self.now[1])


if __name__ == "__main__":
    unittest.main()
