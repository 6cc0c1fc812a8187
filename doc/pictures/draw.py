"""Draws boxes, arrows and words as SVG, for the pictures of the documentation.

A picture is a file of this folder with a name, TITLE (what it shows, for readers who cannot see it) and a function
draw(picture). Coordinates are in pixels of a canvas that is 640 wide. The colours come from the page (umem.css), so a
picture is light or dark as the page is.
"""
from html import escape

WIDTH = 640
LINE = 18  # from one line of words to the next


class Picture:
    def __init__(self, title, height):
        self.title, self.height = title, height
        self.lines = []

    def add(self, line):
        self.lines.append(line)

    def text(self, x, y, words, kind="", anchor="middle"):
        """Words whose first line stands on y; each \\n begins a line."""
        for number, line in enumerate(words.split("\n")):
            self.add(f'<text class="{kind}" x="{x}" y="{y + LINE * number}" text-anchor="{anchor}">{escape(line)}</text>')

    def box(self, x, y, width, height, words="", kind="plain", word_kind=""):
        """A box with its words in the middle. kind: plain, host, gpu, file, free, umem or none."""
        self.add(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="4"/>')
        if words:
            count = words.count("\n") + 1
            self.text(x + width / 2, y + height / 2 + 5 - LINE * (count - 1) / 2, words, word_kind)

    def line(self, *points, kind="line"):
        self.add(f'<polyline class="{kind}" points="{" ".join(f"{x},{y}" for x, y in points)}"/>')

    def arrow(self, *points, kind="line", both=False):
        """A line that ends in the tip of an arrow."""
        start = ' marker-start="url(#arrow)"' if both else ""
        self.add(f'<polyline class="{kind}" points="{" ".join(f"{x},{y}" for x, y in points)}" '
                 f'marker-end="url(#arrow)"{start}/>')

    def svg(self):
        marker = ('<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
                  'orient="auto-start-reverse"><path class="tip" d="M0,0 L8,4 L0,8 z"/></marker></defs>')
        return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img" '
                          f'aria-label="{escape(self.title)}">', marker, *self.lines, "</svg>"]) + "\n"


def svg_of(module):
    """The picture that a module of this folder draws."""
    picture = Picture(module.TITLE, module.HEIGHT)
    module.draw(picture)
    return picture.svg()
