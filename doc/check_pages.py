#!/usr/bin/env python3
"""Usage: check_pages.py XML

Checks that each public name in Doxygen's XML stands on exactly one page, with a text, and that no
page holds code of its own: what a reader may copy is a file that the tests build and run.
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

DIRECTIVE = re.compile(r"^\.\. doxygen(function|define|enum|typedef|struct):: (\w+)$", re.M)
OWN_CODE = re.compile(r"^ *\.\. (?:code|code-block|sourcecode|parsed-literal)::"
                      r"|^(?! *\.\. ).*::$", re.M)


def has_text(element):
    return any("".join(part.itertext()).strip() for part in element.findall("detaileddescription"))


def public_names(folder):
    """The (kind, name) of everything public, each with whether it has a text."""
    names = {}
    for path in sorted(folder.glob("*_8h.xml")) + sorted(folder.glob("struct*.xml")):
        for compound in ElementTree.parse(path).getroot().findall("compounddef"):
            if compound.get("kind") == "struct":
                names["struct", compound.findtext("compoundname")] = has_text(compound)
                continue
            for member in compound.iter("memberdef"):
                key = member.get("kind"), member.findtext("name")
                names[key] = names.get(key, False) or has_text(member)
    return names


def is_repeated(key, names):
    """A guard, a typedef of a struct or enum of the same name, or a macro around a function."""
    kind, name = key
    return (
        (kind == "define" and name.endswith("_H"))
        or (kind == "define" and ("function", name) in names)
        or (kind == "typedef" and (("struct", name) in names or ("enum", name) in names))
    )


def complaints(folder, pages):
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    shown = collections.Counter()
    for text in texts.values():
        shown.update(DIRECTIVE.findall(text))
    names = public_names(folder)
    for key, documented in names.items():
        if is_repeated(key, names):
            continue
        if shown[key] != 1:
            yield f"{key[1]} ({key[0]}) stands on {shown[key]} pages"
        if not documented:
            yield f"{key[1]} ({key[0]}) has no text in its header"
    for page, text in texts.items():
        for found in OWN_CODE.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{page}:{line}: code that no test runs: {found.group().strip()}"


def main():
    doc = pathlib.Path(__file__).parent
    failures = list(complaints(pathlib.Path(sys.argv[1]), sorted(doc.rglob("*.rst"))))
    for failure in failures:
        print(f"doc/check_pages.py: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
