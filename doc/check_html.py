#!/usr/bin/env python3
"""Usage: check_html.py FOLDER     the folder that doc/build wrote

Checks that each function, macro, class, struct, member, enum and type of the reference has a link to a line of its source,
that no signature names umem::detail, that each link inside of the documentation leads to a page, and to a place on it, that exist,
and that no two pages have one name in the sidebar.
"""
import collections
import sys
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

# Entries of these kinds have a link to their source; constants stand in an enum that has one.
LINKED = {"function", "macro", "struct", "class", "enum", "enum-class", "enum-struct", "type", "alias", "union", "member",
          "method", "property", "exception"}
ELSEWHERE = ("http:", "https:", "mailto:", "data:", "javascript:")


class Entry:
    """An entry of the reference: its id, whether it wants a link to a source, its text, and how many links it has."""

    def __init__(self, name, wants):
        self.name, self.wants, self.text, self.links = name, wants, "", 0


class Page(HTMLParser):
    """What a page has: ids, links, names in the sidebar, and entries of the reference."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.ids, self.links, self.entries = set(), [], []
        self.kinds = []  # of the lists that are open
        self.sidebar, self.in_name, self.in_entry = [], False, False
        self.depth = 0  # of div in the tree of the sidebar
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        classes = (values.get("class") or "").split()
        if values.get("id"):
            self.ids.add(values["id"])
        if tag == "dl":
            self.kinds.append(classes)
        elif tag == "dt" and "sig" in classes and self.kinds:
            kind = set(self.kinds[-1])
            self.entries.append(Entry(values.get("id") or "?", bool({"c", "cpp", "py"} & kind and LINKED & kind)))
            self.in_entry = True
        elif tag == "div" and (self.depth or "sidebar-tree" in classes):
            self.depth += 1
        elif tag == "a" and self.depth and "reference" in classes:
            self.sidebar.append("")
            self.in_name = True
        for name in ("href", "src"):
            if values.get(name):
                self.links.append(values[name])
        if tag == "a" and "_source/" in (values.get("href") or "") and self.entries:
            self.entries[-1].links += 1

    def handle_data(self, data):
        if self.in_name:
            self.sidebar[-1] += data
        if self.in_entry:
            self.entries[-1].text += data

    def handle_endtag(self, tag):
        if tag == "dl" and self.kinds:
            self.kinds.pop()
        elif tag == "dt":
            self.in_entry = False
        elif tag == "a":
            self.in_name = False
        elif tag == "div" and self.depth:
            self.depth -= 1


def complaints(folder):
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        if "_static" not in path.relative_to(folder).parts:
            pages[path] = Page(path.read_text(encoding="utf-8"))
    declared = 0
    for path, page in pages.items():
        name = path.relative_to(folder)
        for entry in page.entries:
            declared += entry.wants
            if entry.links != entry.wants:
                yield f"{name}: {entry.name} has {entry.links} links to its source"
            if "detail::" in entry.text:
                yield f"{name}: {entry.name} names umem::detail"
        for link, count in collections.Counter(page.links).items():
            if link.startswith(ELSEWHERE):
                continue
            parts = urllib.parse.urlsplit(link)
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{name}: {link} leads nowhere ({count} times)"
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].ids:
                yield f"{name}: {link} leads to no place on that page ({count} times)"
    index = pages.get(folder / "index.html")
    for title, count in collections.Counter(index.sidebar if index else []).items():
        if count > 1:
            yield f"index.html: {count} pages are called {title} in the sidebar"
    if declared == 0:
        yield "no page has an entry of the reference"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    failures = list(complaints(Path(sys.argv[1]).resolve()))
    for failure in failures:
        print(f"doc/check_html.py: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
