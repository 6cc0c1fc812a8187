#!/usr/bin/env python3
"""Writes doc/python/reference.rst, and a page for each class and for the functions of each section in the folder
doc/python/reference, from the docstrings of the installed package umem:

    python doc/python/reference.py

A test of the package compares both.
"""
import ast
import inspect
import pathlib
import re
import types

import umem
import umem.formats

# The sections of the reference, with the names of umem in each.
SECTIONS = {
    "Arrays": "Array Ghosts empty zeros ones full empty_like zeros_like ones_like full_like arange array asarray from_dlpack from_arrow from_zarr to_zarr at memmap "
              "concatenate stack save load create_npy open_npy DType dtype",
    "Places": "Place Info host open default set_default using Host File MMap Shm Url S3 Cuda CudaAsync CudaHost CudaManaged CudaPrefetch",
    "Pools": "Pool PoolOn Fixed Binning",
    "Adaptors": "Limit Stats Track Debug Retry Log Fault Guarded External",
    "Files of named arrays": "formats.open formats.load formats.save formats.Archive formats.ArrayInfo",
    "Whose address is it": "find Found find_foreign Foreign describe_places list_when_out_of_memory",
    "Comparisons": "all_equal all_close",
    "Copies and blocks": "copy copy_many start start_many Transfer blocks Block Blocks set_threads get_threads",
    "The ledger": "ledger.on ledger.start ledger.stop ledger.is_on ledger.clear ledger.read",
    "Logs": "trace.summary trace.replay trace.to_chrome trace.to_csv",
    "Allocators of other libraries": "use_in_numpy use_in_cupy use_in_torch use_in_numba cuda_core_resource Use place_of",
    "Errors": "Error MemoryError OSError FileNotFoundError FileExistsError IsADirectoryError PermissionError ValueError TypeError IndexError "
              "NotImplementedError NotSupportedError RuntimeError CancelledError AssertionError set_failure_hook log_decisions",
}
MADE = """..
   doc/python/reference.py writes this page.

.. py:currentmodule:: umem

"""
HEAD = MADE + """Reference of Python
===================

All names are in the module ``umem``. Sizes are in bytes; where a size is a text, ``K``, ``M``, ``G`` and ``T`` stand for
powers of 1024. Methods of NumPy's names do what NumPy's do.
"""
UNDERLINED = re.compile(r"^(.+)\n-+$", re.M)


def signature(function, is_method):
    """The names and defaults of the parameters, without their types."""
    texts = getattr(function, "__nb_signature__", None)
    if texts:
        text, _, defaults = texts[0]
        text = re.sub(r"\\(\d+)", lambda found: repr(defaults[int(found[1])]), text).replace(", /", "")
        arguments = ast.parse(text + ": ...").body[0].args
    elif inspect.isbuiltin(function) or inspect.ismethoddescriptor(function):
        arguments = ast.parse(f"def f{inspect.signature(function)}: ...").body[0].args
    else:
        source = inspect.cleandoc("\n" + inspect.getsource(inspect.unwrap(function)))
        arguments = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)).args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg,
                     arguments.kwarg]:
        if argument:
            argument.annotation = None
    if is_method:
        (arguments.posonlyargs or arguments.args).pop(0)
    return f"({ast.unparse(arguments)})"


def escape(text):
    """`code` of docstrings is ``code`` of pages; outside of code, a star begins no emphasis."""
    parts = re.split(r"(``.+?``)", re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text))
    return "".join(part if part.startswith("``") else part.replace("*", r"\*") for part in parts)


def fields(title, text):
    """A section of parameters, attributes or exceptions: names with a text each."""
    lines = [f"**{title}**", ""]
    for line in inspect.cleandoc(text).splitlines():
        if line and not line.startswith(" "):
            name, colon, kind = line.partition(" : ")
            mark = "" if title == "Returns" and not colon else "``"
            lines += ["", f"{mark}{name}{mark}" + (f" ({escape(kind)})" if colon else "")]
        else:
            lines.append("   " + escape(line.strip()) if line.strip() else "")
    return lines


def body(doc):
    """The text of a docstring, as lines of a page."""
    doc = inspect.cleandoc(doc or "")
    parts = UNDERLINED.split(doc)
    lines = escape(parts[0].strip()).splitlines()
    for title, text in zip(parts[1::2], parts[2::2]):
        lines += ["", *fields(title, text)]
    return lines


def entry(kind, name, doc, options=(), inner=()):
    lines = [f".. py:{kind}:: {name}", *(f"   :{option}:" for option in options), ""]
    for line in [*body(doc), "", *inner]:
        lines.append("   " + line if line else "")
    return lines


def members(cls):
    """The public members, those that are written in C++ included."""
    found = {}
    for base in (cls, *cls.__bases__):
        if base is cls or base.__module__ == "umem._core":
            for name, member in vars(base).items():
                if not name.startswith("_") and (member.__doc__ or "").strip():
                    found.setdefault(name, member)
    return found


def doc_of(member):
    texts = getattr(member, "__nb_signature__", None)
    return texts[0][1] if texts else member.__doc__


def class_entry(name, cls):
    inner = []
    for member_name, member in sorted(members(cls).items()):
        if isinstance(member, types.MemberDescriptorType):
            continue
        if callable(member):
            inner += entry("method", member_name + signature(member, True), doc_of(member))
        else:
            inner += entry("property", member_name, member.__doc__)
        inner += [""]
    own = vars(cls).get("__init__")
    is_made = own is not None and name not in ("formats.Archive", "formats.ArrayInfo", "Array", "Info", "Block", "Ghosts", "Use", "Place", "DType")
    return entry("class", name + (signature(own, True) if is_made else ""), cls.__doc__, inner=inner)


def value_of(name):
    value = umem
    for part in name.split("."):
        value = getattr(value, part)
    return value


def entry_of(name):
    value = value_of(name)
    if isinstance(value, type):
        if issubclass(value, Exception):
            return entry("exception", name, value.__doc__)
        return class_entry(name, value)
    return entry("function", name + signature(value, False), doc_of(value))


def text_of(lines):
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).rstrip() + "\n"


def is_class(name):
    value = getattr(umem, name, None)
    return isinstance(value, type) and not issubclass(value, Exception)


def role_of(value):
    return "func" if not isinstance(value, type) else "exc" if issubclass(value, Exception) else "class"


def titled(title, names):
    """A page with a title and the entries of the names."""
    lines = [*MADE.splitlines(), title, "=" * len(title), ""]
    for name in names:
        lines += [*entry_of(name), ""]
    return text_of(lines)


def pages():
    """{name of a file below this folder: its text}"""
    names = {name for text in SECTIONS.values() for name in text.split()}
    missing = set(umem.__all__) - names - {"ledger", "trace"}
    if missing:
        raise SystemExit(f"doc/python/reference.py: no section has {', '.join(sorted(missing))}")
    made, lines = {}, HEAD.splitlines()
    for title, text in SECTIONS.items():
        classes = [name for name in text.split() if is_class(name)]
        others = [name for name in text.split() if not is_class(name)]
        lines += ["", title, "-" * len(title), "", ".. toctree::", "   :maxdepth: 1", ""]
        if others:
            stem = title.lower().replace(" ", "-")
            lines.append(f"   reference/{stem}")
            kind = "Exceptions of Python" if title == "Errors" else f"Functions: {title[0].lower()}{title[1:]}"
            made[f"reference/{stem}.rst"] = titled(kind, others)
        for name in classes:
            lines.append(f"   reference/{name}")
            made[f"reference/{name}.rst"] = titled(f"umem.{name}", [name])
        if others:
            roles = (role_of(value_of(name)) for name in others)
            lines += ["", ", ".join(f":py:{role}:`{name}`" for role, name in zip(roles, others))]
    made["reference.rst"] = text_of(lines)
    return made


def main():
    here = pathlib.Path(__file__).parent
    made = pages()
    (here / "reference").mkdir(exist_ok=True)
    for old in (here / "reference").glob("*.rst"):
        if f"reference/{old.name}" not in made:
            old.unlink()
    for name, text in made.items():
        (here / name).write_text(text)


if __name__ == "__main__":
    main()
