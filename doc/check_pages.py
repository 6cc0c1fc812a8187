#!/usr/bin/env python3
"""Usage: check_pages.py XML

Checks that each public name in Doxygen's XML stands on exactly one page, with a text, and that no
page holds code of its own: what a reader may copy is a file that the tests build and run. Such files
are in doc/examples, in a folder named as a page that shows them; those of C++ are in doc/examples/cxx. Each program
in C or C++ is on a page. Each how-to begins with a program of at most 40 lines, and has a tab for each of C, C++ and Python
that can do it. No page has more than 2500 words.

The names of C++ come in groups, one for each header (doxygen-filter), which pages show as a whole.
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

DIRECTIVE = re.compile(r"^\.\. doxygen(function|define|enum|typedef|struct):: (\w+)$", re.M)
GROUP = re.compile(r"^\.\. doxygengroup:: (\w+)\n   :content-only:$", re.M)
OWN_CODE = re.compile(r"^ *\.\. (?:code|code-block|sourcecode|parsed-literal)::(?! text$)"
                      r"|^(?! *\.\. ).*::$", re.M)


def has_text(element):
    return any("".join(part.itertext()).strip() for part in element.findall("detaileddescription"))


# Macros that the C++ headers define for each other.
PRIVATE_MACROS = {
    "UMEM_ALWAYS_INLINE",
    "UMEM_CHECK",
    "UMEM_CHECKED",
    "UMEM_DEVICE_FUNCTION",
    "UMEM_DLPACK_ASSERT",
    "UMEM_DLPACK_OFFSET",
    "UMEM_EXCEPTION",
    "UMEM_INLINE",
    "UMEM_RARELY",
    "UMEM_NODISCARD",
    "UMEM_LAUNCH_NAMESPACE",
    "UMEM_MDSPAN_NAMESPACE",
    "UMEM_NEEDS",
    "UMEM_STD",
}


def compounds(folder, pattern):
    for path in sorted(folder.glob(pattern)):
        yield from ElementTree.parse(path).getroot().findall("compounddef")


def description(compound):
    return " ".join("".join(part.itertext()) for part in compound.findall("detaileddescription"))


def groups(folder):
    """The names of the groups that hold something, each with its (kind, name), and whether they have a
    text. What a header says about itself is a text of its classes, types and operators; a deduction
    guide, whose name is that of its class, needs none."""
    found = {}
    for compound in compounds(folder, "group__cxx__*.xml"):
        names = {}
        for inner in compound.findall("innerclass"):
            own = compounds(folder, inner.get("refid") + ".xml")
            names["class", inner.text] = has_text(compound) or any(map(has_text, own))
        for member in compound.iter("memberdef"):
            key = kind, name = member.get("kind"), member.findtext("qualifiedname")
            if kind == "define" or ("class", name) in names:
                continue
            by_header = kind in ("typedef", "enum") or name.startswith("umem::operator")
            documented = has_text(member) or (by_header and has_text(compound))
            names[key] = names.get(key, False) or documented
        if names:
            found[compound.findtext("compoundname")] = names
    return found


def ungrouped(folder, known):
    """What is in namespace umem, but in no group."""
    for namespace in compounds(folder, "namespaceumem.xml"):
        for inner in namespace.findall("innerclass"):
            if ("class", inner.text) not in known:
                yield inner.text
        for member in namespace.iter("memberdef"):
            if not member.get("id").startswith("group__cxx__"):
                yield member.findtext("qualifiedname")


def public_names(folder):
    """The (kind, name) of everything public, each with whether it has a text."""
    names = {}
    headers = "".join(map(description, compounds(folder, "group__cxx__*.xml")))
    for pattern in ("*_8h.xml", "*_8hpp.xml", "structumem[A-Z]*.xml"):
        for compound in compounds(folder, pattern):
            if compound.get("kind") == "struct":
                names["struct", compound.findtext("compoundname")] = has_text(compound)
                continue
            for member in compound.iter("memberdef"):
                key = kind, name = member.get("kind"), member.findtext("name")
                documented = has_text(member) or (kind == "define" and name in headers)
                names[key] = names.get(key, False) or documented
    return names


def is_repeated(key, names):
    """A guard, a macro of the headers' own, a typedef of a struct or enum of the same name, or a macro
    around a function."""
    kind, name = key
    return (
        (kind == "define" and name.endswith(("_H", "_HPP")))
        or (kind == "define" and name in PRIVATE_MACROS)
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
    all_groups = groups(folder)
    shown = collections.Counter()
    for text in texts.values():
        shown.update(GROUP.findall(text))
    for group, members in all_groups.items():
        if shown[group] != 1:
            yield f"{group} (group of C++) stands on {shown[group]} pages"
        for (kind, name), documented in members.items():
            if not documented:
                yield f"{name} ({kind}) has no text in its header"
    for name in ungrouped(folder, {key for members in all_groups.values() for key in members}):
        yield f"{name} is in no group: is it in a header of cxx/include/umem?"
    for page, text in texts.items():
        for found in OWN_CODE.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{page}:{line}: code that no test runs: {found.group().strip()}"


def folders_of_no_page(doc, pages):
    """The folders of examples that are named neither as a page that shows their files nor as a chapter."""
    for folder in sorted(path for path in (doc / "examples").iterdir() if path.is_dir()):
        named_so = [page for page in pages if page.stem == folder.name]
        shown = any(f"examples/{folder.name}/" in page.read_text(encoding="utf-8") for page in named_so)
        if not shown and not (doc / folder.name).is_dir():
            yield f"{folder}: no page of this name shows a file of this folder"


def programs_on_no_page(doc, pages):
    """The programs in C and C++ that no page shows."""
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for program in sorted((doc / "examples").rglob("*.c*")):
        if str(program.relative_to(doc)) not in text:
            yield f"{program}: no page shows this program"


HOWTO_LINES = 40
# The languages of a how-to that cannot do it: RMM has no C, and a context is a struct of C.
# zarr is a package of Python, as what trains is.
LACKS = {"replace-rmm": {"C"}, "write-a-context": {"C++", "Python"}, "zarr-region": {"C", "C++"},
         "train-from-a-bucket": {"C", "C++"}}


def long_howtos(doc):
    """The how-tos that do not begin with a whole program of at most HOWTO_LINES lines."""
    for page in sorted((doc / "howto").glob("*.rst")):
        if page.stem == "index":
            continue
        lines = page.read_text(encoding="utf-8").splitlines()
        start = next((n for n, line in enumerate(lines) if line.strip().startswith(".. literalinclude::")), None)
        language = ":language: python" if LACKS.get(page.stem) == {"C", "C++"} else ":language: c"
        if start is None or language not in lines[start + 1] or lines[start + 2].strip():
            yield f"{page}: this does not begin with a whole program in C or C++, or in Python where it has no others"
            continue
        tabs = {line.split(":: ")[1] for line in lines if line.startswith(".. tab:: ")} or {"C"}
        missing = {"C", "C++", "Python"} - tabs
        if missing != LACKS.get(page.stem, set()):
            yield f"{page}: this lacks {missing}; LACKS says which languages a how-to has no tab for"
        program = page.parent / lines[start].split()[-1]
        length = len(program.read_text(encoding="utf-8").splitlines())
        if length > HOWTO_LINES:
            yield f"{program}: a program of {length} lines; a how-to has at most {HOWTO_LINES}"


PAGE_WORDS = 2500


def long_pages(pages):
    """The pages with more words than a reader takes in at once: divide them."""
    for page in pages:
        words = len(page.read_text(encoding="utf-8").split())
        if words > PAGE_WORDS:
            yield f"{page}: {words} words; a page has at most {PAGE_WORDS}"


def main():
    doc = pathlib.Path(__file__).parent
    pages = sorted(doc.rglob("*.rst"))
    failures = [
        *complaints(pathlib.Path(sys.argv[1]), pages),
        *folders_of_no_page(doc, pages),
        *programs_on_no_page(doc, pages),
        *long_howtos(doc),
        *long_pages(pages),
    ]
    for failure in failures:
        print(f"doc/check_pages.py: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
