"""The directive ``picture``, which puts a picture or a plot of this folder on a page:

    .. picture:: stack

       What it shows.

The SVG becomes a part of the page, so that it has the page's colours. A plot says below which machine it is of.
"""
import importlib
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True


class Picture(Directive):
    required_arguments = 1
    has_content = True

    def run(self):
        document = self.state.document.settings.env
        name = self.arguments[0]
        for source in (name, "draw", "plots"):
            document.note_dependency(str(HERE / f"{source}.py"))
        module = importlib.import_module(name)
        is_plot = hasattr(module, "RESULTS")
        drawing = importlib.import_module("plots" if is_plot else "draw")

        figure = nodes.figure(classes=["picture"])
        figure += nodes.raw("", drawing.svg_of(module), format="html")
        words = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, words)
        caption = nodes.caption()
        for paragraph in words.findall(nodes.paragraph):
            caption += paragraph.children
        if is_plot:
            caption += [nodes.Text(" " if caption.children else ""), nodes.inline("", drawing.caption_of(module), classes=["machine"])]
        figure += caption
        return [figure]


def setup(app):
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}
