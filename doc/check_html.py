#!/usr/bin/env python3
"""Usage: check_html.py FOLDER     the folder that doc/build wrote

Checks that each function, macro, class, struct, enum and type of C and C++ has a link to a line of a header, and that
each link inside of the documentation leads to a page, and to a place on it, that exist.
"""
import collections
import sys
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

# Entries of these kinds have a link to their source; members and constants stand in a struct or enum that has one.
LINKED = {"function", "macro", "struct", "class", "enum", "enum-class", "enum-struct", "type", "alias", "union"}
ELSEWHERE = ("http:", "https:", "mailto:", "data:", "javascript:")


class Page(HTMLParser):
    """What a page has: ids, links, and entries of the reference with the number of their links to sources."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.ids, self.links, self.entries = set(), [], []
        self.kinds = []  # of the lists that are open
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        classes = (values.get("class") or "").split()
        if values.get("id"):
            self.ids.add(values["id"])
        if tag == "dl":
            self.kinds.append(classes)
        elif tag == "dt" and "sig" in classes and self.kinds:
            kind = self.kinds[-1]
            self.entries.append([values.get("id") or "?", bool({"c", "cpp"} & set(kind) and LINKED & set(kind)), 0])
        for name in ("href", "src"):
            if values.get(name):
                self.links.append(values[name])
        if tag == "a" and "_source/" in (values.get("href") or "") and self.entries:
            self.entries[-1][2] += 1

    def handle_endtag(self, tag):
        if tag == "dl" and self.kinds:
            self.kinds.pop()


def complaints(folder):
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        if "_static" not in path.relative_to(folder).parts:
            pages[path] = Page(path.read_text(encoding="utf-8"))
    declared = 0
    for path, page in pages.items():
        name = path.relative_to(folder)
        for entry, wants, links in page.entries:
            declared += wants
            if links != wants:
                yield f"{name}: {entry} has {links} links to its source"
        for link, count in collections.Counter(page.links).items():
            if link.startswith(ELSEWHERE):
                continue
            parts = urllib.parse.urlsplit(link)
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{name}: {link} leads nowhere ({count} times)"
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].ids:
                yield f"{name}: {link} leads to no place on that page ({count} times)"
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
