#!/usr/bin/env python3
"""Pages with a defect each, all of which doc/check_html.py must find."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "doc/check_html.py"
ENTRY = '<dl class="{kind}"><dt class="sig" id="{name}">{name}{link}</dt></dl>'
LINK = '<a href="_source/umem/a.h.html#L-2">[source]</a>'
PAGES = {
    "_source/umem/a.h.html": ('<span id="L-2">int f(void);</span>', None),
    "good.html": (ENTRY.format(kind="c function", name="f", link=LINK)
                  + ENTRY.format(kind="c enumerator", name="m", link="")
                  + '<a href="good.html#f">f</a><a href="https://example.org/none">elsewhere</a>', None),
    "unlinked.html": (ENTRY.format(kind="cpp function", name="g", link=""), "g has 0 links to its source"),
    "member.html": (ENTRY.format(kind="c member", name="k", link=""), "k has 0 links to its source"),
    "python.html": (ENTRY.format(kind="py method", name="p", link=""), "p has 0 links to its source"),
    "twice.html": (ENTRY.format(kind="c macro", name="h", link=LINK + LINK), "h has 2 links to its source"),
    "page.html": ('<a href="none.html">none</a>', "none.html leads nowhere"),
    "place.html": ('<a href="good.html#none">none</a>', "good.html#none leads to no place"),
    "line.html": (ENTRY.format(kind="c struct", name="s", link=LINK.replace("L-2", "L-9")), "#L-9 leads to no place"),
    "detail.html": ('<dl class="cpp enumerator"><dt class="sig" id="x">umem::<span>detail::</span>X x</dt></dl>', "x names umem::detail"),
    "index.html": ('<div class="sidebar-tree"><ul><li><a class="reference" href="good.html">One</a><div></div></li>'
                   '<li><a class="reference" href="page.html">One</a></li></ul></div>', "2 pages are called One"),
    "image.html": ('<img src="none.png">', "none.png leads nowhere"),
}


class CheckHtml(unittest.TestCase):
    def run_on(self, pages):
        with tempfile.TemporaryDirectory() as folder:
            for name, (body, _) in pages.items():
                page = Path(folder) / name
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(f"<!doctype html><html><body>{body}</body></html>")
            return subprocess.run([sys.executable, PROGRAM, folder], stderr=subprocess.PIPE, text=True)

    def test_finds_each_defect(self):
        done = self.run_on(PAGES)
        self.assertEqual(done.returncode, 1)
        for name, (_, complaint) in PAGES.items():
            with self.subTest(name):
                lines = [line for line in done.stderr.splitlines() if f" {name}: " in line]
                self.assertEqual(len(lines), 1 if complaint else 0)
                self.assertIn(complaint or "", "".join(lines))

    def test_accepts_good_pages(self):
        self.assertEqual(self.run_on({name: page for name, page in PAGES.items() if not page[1]}).returncode, 0)

    def test_refuses_a_folder_without_a_reference(self):
        self.assertEqual(self.run_on({"empty.html": ("", None)}).returncode, 1)


if __name__ == "__main__":
    unittest.main()
