#!/usr/bin/env python3
"""Checks that mistakes do not compile, each for the reason that a table gives.

A table has a section for each mistake. Its head is `[NAME] REGEX`, and the compiler's complaint must match REGEX. The
lines below are a program: those with a `-` in front are the mistake, those with a `+` what is right instead. With the
latter it compiles, so that nothing else is the reason. The lines above the first section begin every program.

What the compiler says of a program in C++ fits a screen: fewer than 25 lines. If the head is `[NAME] at once: REGEX`,
the first line with an error matches, and there are at most 15 lines, as a user sees them.

Each program becomes a file. Most of the time goes to headers, so the files are compiled as one unit, each in a
namespace of its own: once without the mistakes, which must compile, and then with all of them. A file for which there
is no fitting error is compiled again by itself. GCC and Clang precompile the headers for all of this. If the unit
without the mistakes does not compile, each file is compiled by itself, without the mistake and with it.

Usage: refused.py UNIT TABLE... -- COMPILER [OPTION...]
UNIT is the file to write; the programs get its suffix, in a folder beside it. A program with `#define UMEM_` is always
compiled by itself, as headers read such macros.
"""
import os
import re
import subprocess
import sys


SCREEN = 25  # lines
AT_ONCE = 15


def fits_a_screen(file, said):
    return file.endswith(".cu") or said.count("\n") < SCREEN


def compiled(command, file, *options):
    """Whether the compiler takes the file, and what it says."""
    run = subprocess.run(
        [*command, *options, file],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    return run.returncode == 0, run.stdout + run.stderr


def read(file):
    with open(file) as text:
        return text.read()


def marked(line):
    if line[:1] not in ("-", "+"):
        return line
    return f"#if{'n' * (line[0] == '+')}def REFUSED\n{line[1:]}\n#endif"


def programs_of(table, folder, suffix):
    """Writes the programs of a table, after a line with the reason. Returns their files."""
    common, *sections = re.split(r"^\[", read(table), flags=re.MULTILINE)
    common = [line for line in common.splitlines() if not line.startswith("# ")]
    for section in sections:
        head, *lines = section.splitlines()
        name, reason = head.split("] ", 1)
        file = os.path.join(folder, name + suffix)
        with open(file, "w") as text:
            text.write("\n".join([f"// refused: {reason}", *common, *map(marked, lines)]) + "\n")
        yield file


def reason_of(file):
    """The expression that the complaint must match."""
    return re.match(r"// refused:(?: at once:)? (.+)\n", read(file))[1]


def is_at_once(file):
    return read(file).startswith("// refused: at once:")


def includes_of(files):
    """The lines by which the files include headers."""
    return [*{line: None for file in files for line in re.findall(r"^#include .*$", read(file), re.MULTILINE)}]


def precompiled(unit, files, command):
    """The options for a file whose includes are those of the files, precompiled beside the unit; none if the compiler
    cannot."""
    header = unit + ".hpp"
    with open(header, "w") as text:
        text.write("\n".join(includes_of(files)) + "\n")
    to_header = [option for option in command if option != "-fsyntax-only"] + ["-x", "c++-header"]
    clang = "clang" in subprocess.run([command[0], "--version"], capture_output=True, text=True).stdout
    output, use = (header + ".pch", "-include-pch") if clang else (header + ".gch", "-include")
    if "nvcc" in os.path.basename(command[0]) or not compiled(to_header, header, "-o", output)[0]:
        return []
    return [use, output if clang else header]


def write_unit(unit, files):
    """What the files include, then each file in a namespace, where its includes have no effect any more."""
    lines = includes_of(files)
    for number, file in enumerate(files):
        lines += [f"namespace refused_{number} {{", f'#include "{file}"', "}"]
    with open(unit, "w") as text:
        text.write("\n".join(lines) + "\n")


def errors_by_file(said, files):
    """The errors that each file leads to, as text with the notes after them.

    GCC names the file that instantiates a template before the error in it, Clang and nvcc after the error.
    """
    errors = {file: [] for file in files}
    named = re.compile("|".join(re.escape(file) for file in files))
    before = owner = error = None  # the file named since the last error, the file of this error, and its lines
    for line in said.splitlines():
        file = named.search(line)
        if re.search(r"\berror\b.*: ", line):
            owner, before, error = file[0] if file else before, None, [line]
            if owner:
                errors[owner].append(error)
            continue
        if error:
            error.append(line)
        if file and error and not owner:
            owner = file[0]
            errors[owner].append(error)
        elif file:
            before = file[0]
    return {file: ["\n".join(lines) for lines in errors[file]] for file in files}


def complaint_alone(file, command, is_good=False, options=()):
    """None if the file is refused for its reason, or what is wrong. is_good: that it compiles without the mistake is
    known. With options its headers are precompiled."""
    good, said = (True, "") if is_good else compiled(command, file)
    if not good:
        return f"{file} does not compile without the mistake:\n{said}"
    good, said = compiled(command, file, *options, "-DREFUSED")
    if good:
        return f"{file} compiles with the mistake"
    first = re.search(r"^.*\berror\b.*$", said, re.MULTILINE)
    if not re.search(reason_of(file), first[0] if first and is_at_once(file) else said):
        return f"{file}: the compiler does not say '{reason_of(file)}':\n{said}"
    if is_at_once(file) and said.count("\n") > AT_ONCE:
        return f"{file}: the compiler says more than {AT_ONCE} lines:\n{said}"
    if not fits_a_screen(file, said):
        return f"{file}: the compiler says more than fits a screen:\n{said}"
    return None


def refused_together(unit, files, command, options):
    """Those of the files that are refused for their reasons in one unit; None if it does not compile without them.

    Some errors keep a compiler from looking for others, so what is refused is left out and the others tried again.
    Those that are refused at once are left to be compiled alone.
    """
    write_unit(unit, files)
    if not compiled(command, unit, *options)[0]:
        return None
    left, found = [file for file in files if not is_at_once(file)], True
    while left and found:
        write_unit(unit, left)
        errors = errors_by_file(compiled(command, unit, *options, "-DREFUSED")[1], left)
        found = [
            file
            for file in left
            if any(re.search(reason_of(file), error) for error in errors[file])
            and fits_a_screen(file, "\n".join(errors[file]))
        ]
        left = [file for file in left if file not in found]
    return {file for file in files if not is_at_once(file)} - set(left)


def main(unit, *arguments):
    end = arguments.index("--")
    tables, command = arguments[:end], arguments[end + 1:]
    folder, suffix = os.path.splitext(unit)
    os.makedirs(folder, exist_ok=True)
    files = [file for table in tables for file in programs_of(table, folder, suffix)]
    in_unit = [file for file in files if "#define UMEM_" not in read(file)]
    options = precompiled(unit, in_unit, command)
    refused = refused_together(unit, in_unit, command, options)
    compiles, refused, complaints = refused is not None, refused or set(), []
    for file in files:
        complaint = None
        if file not in refused:
            is_good = file in in_unit and compiles
            complaint = complaint_alone(file, command, is_good, options if is_good else [])
            if complaint and is_good and options:  # the includes of others may have made it longer, or be what it needs
                complaint = complaint_alone(file, command)
        together = "together" if file in refused else "alone"
        print(complaint or f"{file}: refused {together}, since '{reason_of(file)}'")
        complaints += [complaint] if complaint else []
    return f"{len(complaints)} of {len(files)} programs" if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
