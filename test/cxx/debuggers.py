#!/usr/bin/env python3
"""Shows the variables of debuggers.cpp in GDB with the printers of umem, and evaluates every expression of the natvis
file on them.

Usage: debuggers.py PROGRAM PRINTERS NATVIS
Exit code: 77 where there is no GDB with Python, or where GDB cannot run a program.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

SHOWN = {
    "host": 'umem::Host of kind Host = {status = umemOK, alignment = 16}',
    "file": 'umem::File of kind File = {status = umemOK, alignment = 16}',
    "empty": "umem::Context, empty",
    "failed": 'umem::Context of kind File = {status = umemValueError, message = "an example", alignment = 16}',
    "array": "umem::Array<int, 2> of 2 x 3 on Host, ghosts (1, 0), current: both = {(0, 0) = 1, (0, 1) = 2, "
             "(0, 2) = 3, (1, 0) = 4, (1, 1) = 5, (1, 2) = 6}",
    "columns": "umem::Array<int, 2> of 2 x 2 on Host, ghosts (0, 1), column-major, current: both = {(0, 0) = 1, "
               "(0, 1) = 2, (1, 0) = 3, (1, 1) = 4}",
    "on_file": "umem::Array<double, 1> of 3 on File, current: device",
    "mirrored": "umem::Array<double, 1> of 3 on File, current: both = {(0,) = 0.5, (1,) = 0.5, (2,) = 0.5}",
    "none": "umem::Array<int, 1>, empty",
    "guard": "umem::Guard<int, 2> of 2 x 3, ghosts (1, 0) = {(0, 0) = 1, (0, 1) = 2, (0, 2) = 3, (1, 0) = 4, "
             "(1, 1) = 5, (1, 2) = 6}",
    "view": "umem::View<int, 2> of 2 x 3, ghosts (1, 0) = {(0, 0) = 1, (0, 1) = 2, (0, 2) = 3, (1, 0) = 4, "
            "(1, 1) = 5, (1, 2) = 6}",
    "turned": "umem::View<int, 2> of 3 x 2, strides (1, 3), ghosts (0, 1) = {(0, 0) = 1, (0, 1) = 4, (1, 0) = 2, "
              "(1, 1) = 5, (2, 0) = 3, (2, 1) = 6}",
    "row": "umem::View<int const, 1> of 3 = {(0,) = 4, (1,) = 5, (2,) = 6}",
    "cube": "umem::View<int, 3> of 1 x 2 x 3 = {(0, 0, 0) = 1, (0, 0, 1) = 2, (0, 0, 2) = 3, (0, 1, 0) = 4, "
            "(0, 1, 1) = 5, (0, 1, 2) = 6}",
    "element": "umem::View<int, 0> of one element = {() = 5}",
    "nowhere": "umem::View<double, 1> of 4, at 0x10, which is not memory of the CPU",
    "no_elements": "umem::View<int, 1> of 0",
    "extents": "(5,)",
    "four": "(1, 2, 3, 4)",
}
# Names of types in the natvis file, and variables of these types.
VARIABLES = {
    "umem::Extents<1>": ["extents"],
    "umem::Extents<2>": ["view.extents"],
    "umem::Extents<3>": ["cube.extents"],
    "umem::Extents<*>": ["four"],
    "umem::View<*,0>": ["element"],
    "umem::View<*,1>": ["row"],
    "umem::View<*,2>": ["view", "turned"],
    "umem::View<*,3>": ["cube"],
    "umem::View<*,*>": ["view", "cube"],
    "umem::Guard<*,*,*>": ["guard"],
    "umem::Array<*,*>": ["array", "on_file"],
    "umem::Context": ["host", "file"],
}
ELEMENTS = {"row": [4, 5, 6], "view": [1, 2, 3, 4, 5, 6], "turned": [1, 4, 2, 5, 3, 6], "cube": [1, 2, 3, 4, 5, 6]}

failures = 0


def check(holds, what):
    global failures
    print("ok" if holds else "WRONG", what)
    failures += not holds


def gdb(program, *commands):
    start = ["-ex", "set print elements 100", "-ex", "set width 0", "-ex", "set debuginfod enabled off",
             "-ex", "break stop", "-ex", "run", "-ex", "up"]
    words = [word for command in commands for word in ("-ex", command)]
    done = subprocess.run(["gdb", "-nx", "-batch", *start, *words, program], capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def expressions(kind):
    """What the debugger evaluates for a type: (expression, whether it is that of an element)."""
    for node in kind.iter():
        if "Condition" in node.attrib:
            yield node.attrib["Condition"], False
        tag = node.tag.partition("}")[2]
        if tag == "DisplayString":
            for found in re.findall(r"\{([^}]*)\}", node.text):
                yield found, False
        elif tag in ("Item", "Size", "ValuePointer", "ExpandedItem", "ValueNode"):
            yield node.text, tag == "ValueNode"


def of_variable(expression, variable, first_argument):
    """The expression about members of a variable, as GDB reads it."""
    expression = re.sub(r",\w+$", "", expression).replace("nullptr", "0")
    expression = expression.replace("$T1", first_argument)
    member = r"(?<![\w.>$:])(at|context_|data|extents_?|ghosts_?|mirror_|order_|strides|view_)\b"
    expression = re.sub(member, rf"({variable}).\1", expression)
    pointer = r"(\S*?(?:mirror_|context_))"  # what a debugger sees through, by its operators
    expression = re.sub(pointer + r"->", r"\1._M_ptr->", expression)
    return re.sub(r"!" + pointer + r"(?![\w.])", r"!\1._M_ptr", expression)


def check_natvis(program, natvis):
    root = ElementTree.parse(natvis).getroot()
    seen, commands = set(), []
    for kind in root:
        name = kind.attrib["Name"]
        seen.add(name)
        for variable in VARIABLES.get(name, []):
            argument = {"on_file": "double"}.get(variable, "4" if name.startswith("umem::Extents") else "int")
            for expression, is_element in expressions(kind):
                for i in range(len(ELEMENTS[variable]) if is_element else 1):
                    commands.append((variable, i if is_element else None, expression,
                                     of_variable(expression, variable, argument).replace("$i", str(i))))
    check(seen == set(VARIABLES), f"natvis names {len(seen)} types that exist")
    echo = [word for command in commands for word in ("echo =\\n", "print " + command[3])]
    printed, _ = gdb(program, *echo)
    answers = printed.split("=\n")[1:]
    check(len(answers) == len(commands) > 60, f"GDB has answered {len(commands)} expressions")
    for (variable, i, expression, text), answer in zip(commands, answers):
        value = re.match(r"\$\d+ = (.*)", answer)
        holds = value is not None
        if holds and i is not None:
            holds = value[1] == str(ELEMENTS[variable][i])
        check(holds, f"natvis, {variable}: {expression} -> {answer.strip()[:60] or text}")


def main():
    program, printers, natvis = sys.argv[1:]
    if not pathlib.Path(program).exists():
        print(f"there is no program {program}")
        return 1
    if not shutil.which("gdb"):
        print("there is no gdb")
        return 77
    printed, complaint = gdb(program, "python print('Python is here')", "print next")
    if "Python is here" not in printed or "= 7" not in printed:
        print("gdb has no Python, or cannot run a program:", complaint)
        return 77
    commands = [f"source {printers}"] + [f"print {name}" for name in SHOWN]
    printed, complaint = gdb(program, *commands)
    shown = re.findall(r"^\$\d+ = (.*)$", printed, re.M)
    check(len(shown) == len(SHOWN), f"GDB shows all variables {complaint if len(shown) != len(SHOWN) else ''}")
    for (name, expected), found in zip(SHOWN.items(), shown):
        found = re.sub(r'0x[0-9a-f]+ (?:<[^>]*> )?(?=")', "", found)
        check(found == expected, f"gdb, {name}: {found}")
    check_natvis(program, natvis)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
