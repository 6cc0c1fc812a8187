#!/usr/bin/env python3
"""doc/parameters.py: what it takes from comments, and what it complains about."""
import importlib.util
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "doc/parameters.py"
sys.path.insert(0, str(PROGRAM.parent))
parameters = importlib.util.module_from_spec(importlib.util.spec_from_file_location("parameters", PROGRAM))
parameters.__spec__.loader.exec_module(parameters)


def member(name, result, names, *paragraphs):
    """A function as Doxygen writes it."""
    given = "".join(f"<param><type>int</type><declname>{one}</declname></param>" for one in names)
    text = "".join(f"<para>{paragraph}</para>" for paragraph in paragraphs)
    return ElementTree.fromstring(
        f'<memberdef kind="function" id="{name}" prot="public"><type>{result}</type><name>{name}</name>{given}'
        f'<detaileddescription>{text}</detaileddescription><location file="umem/a.h" line="1"/></memberdef>')


def table(element, words=""):
    """The rows of a function, what is missing, and the text that is left."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "words.txt").write_text(words)
        function = parameters.Function(element, parameters.Words(Path(folder)))
        left = "".join(function.move_rows().itertext())
        missing = list(function.complete({}, {}))
    rows = {name: "".join(piece if isinstance(piece, str) else "".join(piece.itertext()) for piece in pieces).strip()
            for name, pieces in function.rows.items()}
    return rows, missing, left.strip()


class Parameters(unittest.TestCase):
    def test_moves_a_sentence_about_a_parameter(self):
        rows, missing, left = table(member("f", "void", ["n"], "Does it. n: how many, from 0. Errors: none."))
        self.assertEqual(rows, {"n": "How many, from 0."})
        self.assertEqual((missing, left), ([], "Does it. Errors: none."))

    def test_leaves_words_that_are_no_parameter(self):
        rows, missing, left = table(member("f", "void", [], "Threads: any."))
        self.assertEqual((rows, missing, left), ({}, [], "Threads: any."))

    def test_moves_what_is_returned(self):
        rows, _, left = table(member("f", "int", [], "Does it. Returns -1 if not.", "More."))
        self.assertEqual((rows, left), ({"result": "-1 if not."}, "Does it. More."))

    def test_moves_a_paragraph_that_begins_with_the_result(self):
        rows, _, left = table(member("f", "int", [], "The number of dimensions. Never 0."))
        self.assertEqual((rows, left), ({"result": "The number of dimensions. Never 0."}, ""))

    def test_keeps_references(self):
        rows, _, left = table(member("f", "int", [], 'Whether <ref refid="x">g()</ref> works. It may.'))
        self.assertEqual((rows, left), ({"result": "Whether g() works. It may."}, ""))

    def test_does_not_take_the_action_for_a_status(self):
        _, missing, left = table(member("f", "umemStatusType", [], "A call with wrong arguments does nothing."))
        self.assertEqual((missing, left), (["result"], "A call with wrong arguments does nothing."))

    def test_takes_the_last_line_of_the_words_that_fits(self):
        words = "n: how many\n[umem/a.h]\ng.n: of g\nf.n: of f\nresult int: a number\n[umem/b.h]\nn: of b\n"
        rows, missing, _ = table(member("f", "int", ["n"], "Does it."), words)
        self.assertEqual((rows, missing), ({"n": "Of f.", "result": "A number."}, []))

    def test_complains_about_what_has_no_meaning(self):
        _, missing, _ = table(member("f", "int", ["n", "m"], "Does it."), "m: how much\n")
        self.assertEqual(missing, ["n", "result"])

    def test_has_no_row_for_a_name_that_says_everything(self):
        rows, missing, _ = table(member("f", "void", ["ctx", "n"], "Does it."), "ctx: -\nn: at least 1\n")
        self.assertEqual((rows, missing), ({"n": "At least 1."}, []))
        self.assertTrue(all(parameters.repeats(*row) for row in [("ctx", "the context."), ("array", "An array"), ("n", "the number")]))
        self.assertFalse(parameters.repeats("ctx", "the context of the source."))

    def test_fails_for_a_row_that_repeats_the_name(self):
        with tempfile.TemporaryDirectory() as folder:
            root = ElementTree.Element("doxygen")
            root.append(member("f", "void", ["array"], "Does it. array: the array."))
            ElementTree.ElementTree(root).write(Path(folder) / "a_8h.xml")
            done = subprocess.run([sys.executable, PROGRAM, folder], stderr=subprocess.PIPE, text=True)
        self.assertIn("f: the row of array only repeats its name", done.stderr)

    def test_fails_for_a_function_and_for_lines_that_nobody_needs(self):
        with tempfile.TemporaryDirectory() as folder:
            root = ElementTree.Element("doxygen")
            root.append(member("f", "void", ["that_nobody_knows"], "Does it."))
            ElementTree.ElementTree(root).write(Path(folder) / "a_8h.xml")
            done = subprocess.run([sys.executable, PROGRAM, folder], stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("f: that_nobody_knows (parameter) has no meaning", done.stderr)
        self.assertIn("no function needs this line", done.stderr)


if __name__ == "__main__":
    unittest.main()
