#!/usr/bin/env python3
"""Checks that cxx/include/umem/with/python_functions.inc has each function that the public headers declare UMEM_EXTERN,
with its parameters. With --fix it writes the file.

Usage: python_functions.py [--fix]
"""
import re
import sys
from pathlib import Path

import c_source
from report import Report

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "cxx/include/umem/with/python_functions.inc"
HEAD = """\
/* umem/with/python_functions.inc - the functions of C that extensions of Python call in the package umem, each as
 * UMEM_PYTHON_FUNCTION(result, name, (parameters), (arguments)), made by test/style/python_functions.py --fix.
 *
 * umemVirtual_fail, whose arguments vary, is in python.cpp. No include guard: a file may include this twice. */
// clang-format off
"""
DECLARATION = re.compile(r"\bUMEM_EXTERN\b([^;{(]*?)\b(\w+)\s*\(((?:[^;()]|\([^()]*\))*)\)[^;]*;")


def split(parameters):
    """The parts of a list of parameters, which commas in parentheses do not separate."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", parameters)]


def argument(parameter):
    """The name of a parameter."""
    function = re.search(r"\(\*(\w+)\)", parameter)
    return function[1] if function else re.search(r"(\w+)(?:\[\w*\])*$", parameter)[1]


def entries():
    """(result, name, parameters), in the order of the headers' names."""
    for header in sorted((ROOT / "c/include").rglob("*.h")):
        text = c_source.without_directives(c_source.without_comments(header.read_text()))
        for result, name, parameters in DECLARATION.findall(text):
            yield " ".join(result.split()), name, split(" ".join(parameters.split()))


def line(result, name, parameters):
    arguments = [] if parameters == ["void"] else [argument(part) for part in parameters]
    return f"UMEM_PYTHON_FUNCTION({result}, {name}, ({', '.join(parameters)}), ({', '.join(arguments)}))"


def text():
    lines = sorted((line(*entry) for entry in entries() if "..." not in entry[2]), key=lambda one: one.split(",")[1])
    return HEAD + "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] == ["--fix"]:
        LIST.write_text(text())
    elif sys.argv[1:]:
        sys.exit(__doc__)
    report = Report()
    varying = [name for _, name, parameters in entries() if "..." in parameters]
    report.check("one function has arguments that vary", [] if varying == ["umemVirtual_fail"] else varying)
    is_whole = LIST.exists() and LIST.read_text() == text()
    report.check("the list for extensions of Python has the functions of the headers",
                 [] if is_whole else [f"{LIST.relative_to(ROOT)} is old: run {Path(__file__).name} --fix"])
    sys.exit(report.exit_code())


if __name__ == "__main__":
    main()
