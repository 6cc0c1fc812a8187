"""Extension of Sphinx: a page for each public header and for the sources of the Python package, and a link to its line
behind each function, class, struct, member, enum, type and macro of the reference.

Doxygen counts the lines of what doxygen-filter prints. They are found again in the header by comparing the two texts,
and a line that lacks the name is a warning, which doc/build makes an error.
"""
import difflib
import importlib.machinery
import importlib.util
import os
import pathlib
import posixpath
import re
import xml.etree.ElementTree as ElementTree

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CLexer, CppLexer, PythonLexer
from sphinx import addnodes
from sphinx.util import logging

from python_sources import PythonSources

ROOT = pathlib.Path(__file__).parent.parent
INCLUDES = ("c/include", "cxx/include", "mpi/include", "formats/include")
FOLDER = "_source"
MODEL, TITLE, BODY = "model", "@TITLE@", "@BODY@"
# What has a link, as Sphinx's domains call it.
LINKED = {"function", "macro", "struct", "class", "enum", "enum-class", "enum-struct", "type", "alias", "union", "member",
          "method", "property", "exception"}
LEXERS = {".h": CLexer, ".hpp": CppLexer, ".cpp": CppLexer, ".py": PythonLexer}

FAR = 60  # lines

_log = logging.getLogger(__name__)


def _load_filter():
    loader = importlib.machinery.SourceFileLoader("doxygen_filter", str(ROOT / "doc/doxygen-filter"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def _declares(line, name):
    """Whether the name is in this line outside of a comment. A macro declares what each kind of context has."""
    if line.lstrip().startswith(("*", "/*")):
        return False
    if name == "of" and line.lstrip().startswith("UMEM_KIND_OF_CONTEXT("):
        return True
    if name.startswith("operator"):
        return name.replace(" ", "") in line.replace(" ", "")
    return re.search(r"(?<!\w)(?<!std::)" + re.escape(name) + r"(?!\w)", line) is not None


class Headers:
    """The public headers, and where in them the things are that Doxygen has found."""

    def __init__(self, xml):
        self.paths = {}  # umem/copy.h: its Path
        for include in INCLUDES:
            for path in sorted((ROOT / include).rglob("*.h*")):
                if "detail" not in path.parts:
                    self.paths[str(path.relative_to(ROOT / include))] = path
        self.places = dict(self._read(pathlib.Path(xml)))  # id of Doxygen: (header, line, name)
        self._filter = _load_filter()
        self._lines = {}

    @staticmethod
    def _read(folder):
        for path in sorted(folder.glob("*.xml")):
            for compound in ElementTree.parse(path).getroot().findall("compounddef"):
                found = [compound, *compound.iter("memberdef")]
                for element in found:
                    location = element.find("location")
                    if location is not None and location.get("line"):
                        name = element.findtext("name") or element.findtext("compoundname")
                        yield element.get("id"), (location.get("file"), int(location.get("line")), name.split("::")[-1])

    def lines(self, header):
        """The header's lines, and of each line that Doxygen has read the number in the header."""
        if header not in self._lines:
            source = self.paths[header].read_text(encoding="utf-8")
            text = source if header.endswith(".h") else self._filter.grouped(source, pathlib.Path(header).stem)
            old, new = source.split("\n"), self._filter.filtered(text).split("\n")
            blocks = difflib.SequenceMatcher(None, new, list(map(self._as_filtered, old)), autojunk=False).get_matching_blocks()
            numbers = []
            for block in blocks:  # lines that differ stand right before the next ones that do not
                numbers += range(block.b - (block.a - len(numbers)), block.b + block.size)
            self._lines[header] = old, numbers
        return self._lines[header]

    def _as_filtered(self, line):
        for pattern, meaning in self._filter.MEANINGS:
            line = re.sub(pattern, meaning, line)
        return line

    def find(self, refid):
        """(header, number of the line from 1) of what has this id; the line has the name."""
        header, line, name = self.places[refid]
        old, numbers = self.lines(header)
        guess = numbers[line - 1]
        # Nearest first: lines that doxygen-filter has changed are found by their neighbours.
        for here in sorted(range(max(0, guess - FAR), min(len(old), guess + FAR)), key=lambda number: abs(number - guess)):
            if _declares(old[here], name):
                return header, here + 1
        return None


def _find(app, signature, domain):
    """(file, number of the line) of what this entry describes; None where no file declares it."""
    if domain == "py":
        return app.umem_python.places.get(signature["fullname"])
    headers = app.umem_headers
    refids = [name for target in signature.findall(nodes.target) for name in target["ids"] if name in headers.places]
    refids += [name for name in signature["ids"] if name in headers.places]
    return headers.find(refids[0]) if refids else None


def _add_links(app, doctree, docname):
    for signature in doctree.findall(addnodes.desc_signature):
        entry = signature.parent
        if entry["domain"] not in ("c", "cpp", "py") or entry["objtype"] not in LINKED:
            continue
        found = _find(app, signature, entry["domain"])
        if not found:
            _log.warning("%s: no line of a source declares it", signature.astext(), location=signature)
            continue
        source, line = found
        uri = f"{app.builder.get_relative_uri(docname, f'{FOLDER}/{source}')}#L-{line}"
        text = nodes.inline("", "[source]", classes=["viewcode-link"])
        lines = list(signature.findall(addnodes.desc_signature_line))
        (lines[-1] if lines else signature).append(
            nodes.reference("", "", text, internal=True, refuri=uri, reftitle=f"{source}, line {line}"))


def _sources(app):
    return {**app.umem_headers.paths, **app.umem_python.paths}


def _pages(app):
    """One page for each folder of sources. To make each page as Sphinx makes others, with all of the sidebar, would take
    as long as the rest of the documentation: so the pages of a folder are copies of this one with other contents."""
    for folder in sorted({posixpath.dirname(header) for header in _sources(app)}):
        yield posixpath.join(FOLDER, folder, MODEL), {"title": TITLE, "body": BODY}, "page.html"


def _write_pages(app, error):
    """The sources as pages; the lines have the ids L-1, L-2, ..."""
    if error or app.builder.format != "html":
        return
    formatter = HtmlFormatter(linenos="inline", linespans="L")
    models = {}
    for header, path in _sources(app).items():
        model = pathlib.Path(app.builder.get_outfilename(posixpath.join(FOLDER, posixpath.dirname(header), MODEL)))
        if model not in models:
            models[model] = model.read_text(encoding="utf-8")
        code = highlight(path.read_text(encoding="utf-8"), LEXERS[path.suffix](), formatter)
        page = models[model].replace(TITLE, header).replace(BODY, f"<h1>{header}</h1>\n{code}")
        pathlib.Path(app.builder.get_outfilename(f"{FOLDER}/{header}")).write_text(page, encoding="utf-8")
    for model in models:
        model.unlink()


def _start(app):
    app.umem_headers = Headers(os.environ["UMEM_DOC_XML"])
    app.umem_python = PythonSources(ROOT)


def setup(app):
    app.connect("builder-inited", _start)
    app.connect("doctree-resolved", _add_links)
    app.connect("html-collect-pages", _pages)
    app.connect("build-finished", _write_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
