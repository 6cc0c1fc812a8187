#!/usr/bin/env python3
"""Pages with a defect each, all of which doc/check_browser.py must find."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "doc/check_browser.py"
PICTURE = '<figure class="picture"><svg width="{size}" height="{size}"><text y="50" fill="{colour}">words</text></svg></figure>'
PAGES = {
    "good.html": ("<p>fine" + PICTURE.format(size=200, colour="#767676"), None),
    "wide.html": ('<div style="width: 500px">wide</div>', "400 pixels: is"),
    "image.html": ('<img src="none.png" alt="">', "lacks the image"),
    "small.html": (PICTURE.format(size=20, colour="black"), "has a picture of 20 x 20"),
    "pale.html": (PICTURE.format(size=200, colour="#ddd"), "light, 1300 pixels: has words of contrast"),
    "dark.html": (PICTURE.format(size=200, colour="black"), "dark, 1300 pixels: has words of contrast"),
    "howto/lost.html": ("<h1>Find me<a></a></h1>", "the search does not find it by its title, Find me"),
    "code.html": ('<pre style="width: 300px; overflow: auto">' + "x" * 200 + "</pre>", "1300 pixels: cuts code of"),
    "tab.html": ('<div class="tab-set"><div class="tab-content" style="display: none"><pre style="width: 99px; overflow: auto">'
                 + "x" * 200 + "</pre></div></div>", "1300 pixels: cuts code of"),
    "contexts/shm.html": ("<p>not found", "it is not among the first three answers to shared memory"),
    "error.html": ("<script>throw new Error('broken')</script>", "console:"),
}
STYLE = "<style>body { background: white } @media (prefers-color-scheme: dark) { body { background: black } }</style>"


class CheckBrowser(unittest.TestCase):
    def test_finds_each_defect(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, (body, _) in PAGES.items():
                (Path(folder) / name).parent.mkdir(exist_ok=True)
                (Path(folder) / name).write_text(f"<!doctype html><html><head>{STYLE}</head><body>{body}</body></html>")
            done = subprocess.run([sys.executable, PROGRAM, folder], stdout=subprocess.PIPE, text=True)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        for name, (_, complaint) in PAGES.items():
            with self.subTest(name):
                lines = [line for line in done.stdout.splitlines() if line.startswith(f"{name}: ")]
                if complaint:
                    self.assertIn(complaint, "".join(lines))
                else:
                    self.assertEqual(lines, [])
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
