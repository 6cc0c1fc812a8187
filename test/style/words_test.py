#!/usr/bin/env python3
"""words.py: which names and comments it refuses, and that its budget only falls."""
import tempfile
import unittest
from pathlib import Path

import words


def found(text, public=(), **where):
    return [(word, line) for word, line, _ in words.refused(text, public, **where)]


class Words(unittest.TestCase):
    def test_refuses_words_in_names(self):
        self.assertEqual(found("int a;\nvoid umem_goes_around(int x);\nstruct umemOpenLeg leg;\n"),
                         [("around", 2), ("leg", 3), ("leg", 3)])
        self.assertEqual(found('char const *leg_is = "leg around"; /* a leg */'), [("leg", 1)])

    def test_exempts_public_names_and_tests(self):
        self.assertEqual(found("umem_leg x;", public={"umem_leg"}), [])
        self.assertEqual(found("void the_leg_is_long(void);", in_tests=True), [])
        self.assertEqual(found("void the_leg_is_long(void);"), [("leg", 1)])

    def test_a_guard_is_an_object_of_cxx(self):
        self.assertEqual(found("Guard guard;", is_cxx=True), [])
        self.assertEqual(found("guard(x);"), [("guard", 1)])

    def test_refuses_words_in_comments(self):
        self.assertEqual(found("/* what nobody\n * asks for */\nint nobody_asks;\n"),
                         [("asks", 3), ("nobody", 3), ("nobody", 1), ("asks", 1)])
        self.assertEqual(found("// memory that is not\n// to be had\n"), [("to be had", 1)])

    def test_refuses_phrases(self):
        self.assertEqual(found("/* The same for x. */\n// The same.\n/* It is\n * the same */\n"),
                         [("The same", 1), ("The same", 2)])
        self.assertEqual(found("/* x.c - see x.h. */\n/* x.c - what x does; see x.h. */\n"), [("- see x.h", 1)])
        self.assertEqual(found("int keep(int keep); follow(a); take_after(b);"),
                         [("keep()", 1), ("keep()", 1), ("take_after", 1)])

    def test_the_budget_only_falls(self):
        budget = words.lowered({("leg", "c"): 3, ("leg", "cxx"): 2, ("told", "c"): 1}, {("leg", "c"): 5, ("leg", "cxx"): 1})
        self.assertEqual(budget, {("leg", "c"): 3, ("leg", "cxx"): 1})
        self.assertEqual(len(list(words.excess({("leg", "c"): ["a"] * 4, ("leg", "cxx"): ["b"], ("told", "c"): ["c"]}, budget))), 2)

    def test_reads_what_it_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "words.tsv"
            words.write_budget(path, {("leg", "c"): 3, ("The same", "test"): 2})
            self.assertEqual(words.read_budget(path), {("leg", "c"): 3, ("The same", "test"): 2})


if __name__ == "__main__":
    unittest.main()
