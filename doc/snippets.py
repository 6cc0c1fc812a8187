"""Examples of functions of C in the reference: parts of the programs in examples/api, which the tests compile and run.

A part begins with a comment of names in brackets, `/* [umem_alloc umem_free] */`, and ends with `/* [/] */`. It stands at each
function and macro of these names, which it calls. A name that no page describes is an error, and so are a function without
a part and a part of more than LONGEST lines of code, unless LONGER has its first function.
"""
import pathlib
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging

FOLDER = pathlib.Path(__file__).parent / "examples/api"
PART = re.compile(r"^ */\* \[(\w[\w\s*]*)\] \*/\n(.*?)^ */\* \[/\] \*/$", re.M | re.S)
LONGEST = 6
LONGER = {"umemBlocks_run", "umemRetry_ctor", "umem_set_decision_hook"}  # a function of the program, and the call that gets it
COMMENT = re.compile(r"/\*.*?\*/", re.S)

_log = logging.getLogger(__name__)


def _check_length(program, names, text):
    lines = sum(1 for line in COMMENT.sub("", text).splitlines() if line.strip())
    if (lines > LONGEST) != (names[0] in LONGER):
        raise ValueError(f"{program}: the part {names[0]} has {lines} lines of code; {LONGEST} are the most, "
                         f"but for those in LONGER, which have more")


def parts():
    """{name of a function: the text of its part}"""
    found = {}
    for program in sorted(FOLDER.glob("*.c")):
        for part in PART.finditer(program.read_text(encoding="utf-8")):
            names = re.findall(r"\w+", part[1])
            _check_length(program, names, part[2])
            for name in names:
                if name in found or not re.search(rf"\b{name}\(", part[2]):
                    raise ValueError(f"{program}: {name} has two parts, or its part has no call of it")
                found[name] = part[2]
    return found


def _add(app, doctree):
    described = app.env.umem_described = getattr(app.env, "umem_described", {})
    described[app.env.docname] = []
    for entry in doctree.findall(addnodes.desc):
        if entry["domain"] != "c" or entry["objtype"] not in ("function", "macro"):
            continue
        name = entry[0]["ids"][-1].split(".")[-1] if entry[0]["ids"] else ""
        name = re.sub(r"^c\.", "", name)
        described[app.env.docname].append(name)
        if name in app.umem_parts:
            block = nodes.literal_block(app.umem_parts[name], app.umem_parts[name], language="c")
            entry.children[-1].append(block)


def _check(app, env):
    names = {name for names in getattr(env, "umem_described", {}).values() for name in names if name[:1].islower()}
    for name in sorted(set(app.umem_parts) - names):
        _log.warning("examples/api: no page describes %s", name)
    for name in sorted(names - set(app.umem_parts)):
        _log.warning("%s has no example: add it to a program of examples/api", name)


def _start(app):
    app.umem_parts = parts()


def _merge(app, env, docnames, other):
    env.umem_described = {**getattr(env, "umem_described", {}), **getattr(other, "umem_described", {})}


def setup(app):
    app.connect("builder-inited", _start)
    app.connect("doctree-read", _add)
    app.connect("env-merge-info", _merge)
    app.connect("env-check-consistency", _check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
