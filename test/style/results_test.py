#!/usr/bin/env python3
"""What results.py refuses."""
import tempfile
import unittest
from pathlib import Path

import results


class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.folder = self.root / "bench/results"
        self.folder.mkdir(parents=True)
        (self.root / "doc/pictures").mkdir(parents=True)

    def store(self, name, text='{"facts": {"date": "2026-11-27", "commit": "abc"}}'):
        (self.folder / name).write_text(text)

    def test_takes_one_of_each(self):
        for name in ("nvidia-h200-x2-pool.json", "amd-epyc-2-cores-mpi.json"):
            self.store(name)
        self.assertEqual(list(results.names_that_are_wrong(self.folder)), [])
        self.assertEqual(list(results.facts_that_lack(self.folder)), [])

    def test_refuses_a_second_one(self):
        for name in ("2026-11-27-nvidia-h200-pool.json", "nvidia-h200-pool-2.json", "nvidia-h200-pool-2026-11-27.json"):
            self.store(name)
        self.assertEqual(len(list(results.names_that_are_wrong(self.folder))), 3)

    def test_wants_date_and_commit(self):
        self.store("nvidia-h200-pool.txt", "date:     2026-11-27\n")
        self.assertEqual(list(results.facts_that_lack(self.folder)), ["nvidia-h200-pool.txt does not say its commit"])

    def test_finds_what_pages_name_in_vain(self):
        self.store("nvidia-h200-pool.json")
        (self.root / "doc/page.rst").write_text("``bench/results/*-pool.json``, ``nvidia-h200-pool.json``, ``nvidia-h200-file.txt``")
        (self.root / "doc/pictures/plot.py").write_text('RESULTS = "2026-11-27-nvidia-h200-pool.json"')
        self.assertEqual(list(results.names_in_vain(self.root)),
                         ["doc/page.rst names nvidia-h200-file.txt, which bench/results lacks",
                          "doc/pictures/plot.py names 2026-11-27-nvidia-h200-pool.json, which bench/results lacks"])


if __name__ == "__main__":
    unittest.main()
