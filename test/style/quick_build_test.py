#!/usr/bin/env python3
"""doc/quick_build.py replaces functions that it knows, and refuses others. Needs Sphinx and Breathe."""
import sys
import unittest
from pathlib import Path

from sphinx.errors import ExtensionError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "doc"))
import quick_build


def other(self, refid):
    return refid


class Replaced(unittest.TestCase):
    def test_the_installed_versions_are_known(self):
        quick_build.setup(None)
        self.assertIs(quick_build.DoxygenCompoundParser.parse, quick_build._parse_once)

    def test_a_function_of_another_version_is_refused(self):
        with self.assertRaisesRegex(ExtensionError, "replaces .*other, which this version has changed: adapt it, and note"):
            quick_build.check_sources({other: "5de37682"})


if __name__ == "__main__":
    unittest.main()
