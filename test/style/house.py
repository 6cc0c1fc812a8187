#!/usr/bin/env python3
"""How large the house is, and how far a reader walks in it: one table, and a budget that may not be exceeded.

Usage: house.py [--traces PROGRAM [--walk]] [--lower]

Prints files, code lines (without blank lines and comments) and floors of c/src and each of its rooms, and sizes of the
C++ headers and of the tests. The floors of a room are the longest chain of includes in it: a module that includes no
other of its room is on the first. With --traces also prints how many functions, files and changes of room three calls
need; PROGRAM is test/house/traces.c, which the target house_traces builds. A change of room is a function whose
file is in another folder of c/src than that of the function entered before it. An inline function of a header that calls
no other is a word, which a reader need not look up: it counts as a call only. --walk prints the functions in turn.

test/style/house.tsv is the budget: a name, the largest allowed number, and the reason why it was raised last. --lower
writes what is measured into it where that is less; numbers of lines are rounded up to hundreds. Raise a number by hand,
with a reason.
"""
import argparse
import subprocess
import sys
from pathlib import Path

import c_source
from report import Report

ROOT = Path(__file__).resolve().parents[2]
BUDGET = Path(__file__).with_suffix(".tsv")
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"}
SMALL, WIDE, ROUNDED = 60, 100, 100


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def code_of(path):
    return c_source.without_comments(path.read_text(encoding="utf-8"))


def code_lines(paths):
    return sum(bool(line.strip()) for path in paths for line in code_of(path).splitlines())


def small_files(paths):
    return sum(len(path.read_text(encoding="utf-8").splitlines()) <= SMALL for path in paths)


def wide_lines(paths):
    return sum(len(line) > WIDE for path in paths for line in path.read_text(encoding="utf-8").splitlines())


def room_of(path, root):
    """The folder of a file of c/src; "include" for a public header."""
    path = str(path)
    source = f"{root}/c/src/"
    return str(Path(path.removeprefix(source)).parent) if path.startswith(source) else "include"


def rooms(root):
    found = {}
    for path in sources(root / "c/src"):
        found.setdefault(room_of(path, root), []).append(path)
    return found


def floors(room, paths):
    """The length of the longest chain of modules of a room that include one another."""
    uses = {}
    for path in paths:
        named = {Path(name) for _, name in c_source.includes(code_of(path))}
        own = {name.stem for name in named if str(name.parent) == room}
        uses.setdefault(path.stem, set()).update(own - {path.stem})
    heights = {}

    def height(module, above=()):
        if module not in heights:
            below = uses.get(module, set()) - set(above) - {module}
            heights[module] = 1 + max((height(one, (*above, module)) for one in below), default=0)
        return heights[module]

    return max(map(height, uses))


def static_sizes(root):
    """({what the budget names: number}, rows of rooms to print)"""
    per_room = {room: (len(paths), code_lines(paths), small_files(paths), floors(room, paths))
                for room, paths in rooms(root).items()}
    library, headers, tests = (sources(root / name) for name in ("c/src", "cxx/include", "test"))
    sizes = {
        "c/src: files": len(library),
        "c/src: code lines": code_lines(library),
        f"c/src: files of at most {SMALL} lines": small_files(library),
        "c/src: floors of the deepest room": max(row[3] for row in per_room.values()),
        f"c: lines over {WIDE} columns": wide_lines(sources(root / "c")),
        "cxx/include: files": len(headers),
        "cxx/include: code lines": code_lines(headers),
        f"cxx: lines over {WIDE} columns": wide_lines(sources(root / "cxx")),
        "formats: code lines": code_lines(sources(root / "formats")),
        "test: code lines": code_lines(tests),
        f"test, bench, examples, mpi, formats, python, tool: lines over {WIDE} columns": wide_lines(
            [path for name in ("test", "bench", "examples", "mpi", "formats", "python", "tool") for path in sources(root / name)]),
    }
    return sizes, per_room


def places_of(program, addresses):
    """{address: (the name of the function there, its file, or None outside of the library)}"""
    ordered = sorted(addresses)
    found = subprocess.run(["addr2line", "-f", "-e", program], input="\n".join(ordered), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    paths = [Path(line.rsplit(":", 1)[0]).resolve() for line in found[1::2]]
    ours = (ROOT / "c/src", ROOT / "c/include")
    return {address: (name, path if any(one in path.parents for one in ours) else None)
            for address, name, path in zip(ordered, found[::2], paths)}


def traced(program):
    """{trace: [(address, whether it calls no other) of the functions that it enters, in turn]}"""
    printed = subprocess.run([program], capture_output=True, text=True, check=True)
    found = {}
    for line, following in zip(lines := printed.stdout.splitlines(), lines[1:] + [""]):
        if line.startswith("TRACE "):
            calls = found.setdefault(line.removeprefix("TRACE "), [])
        elif line != "-":
            calls.append((line, following == "-"))
    return found


def walks(program):
    """{trace: [(function, its file, whether it is a word) for each function of the library, in turn]}"""
    found = {}
    for name, calls in traced(program).items():
        place_of = places_of(program, {address for address, _ in calls})
        steps = [(*place_of[address], is_leaf) for address, is_leaf in calls]
        found[name] = [(function, path, is_leaf and path.suffix == ".h") for function, path, is_leaf in steps if path]
    return found


def trace_sizes(found):
    sizes = {}
    for name, walk in found.items():
        paths = [path for _, path, is_word in walk if not is_word]
        walked = [room_of(path, ROOT) for path in paths]
        sizes[f"{name}: calls"] = len(walk)
        sizes[f"{name}: files"] = len(set(paths))
        sizes[f"{name}: changes of room"] = sum(one != other for one, other in zip(walked, walked[1:]))
    return sizes


def print_walks(found):
    for name, walk in found.items():
        print(f"{name}:")
        for function, path, is_word in walk:
            print(f"  {'' if is_word else f'{room_of(path, ROOT)}/{path.name}':<34}{function}")
        print()


def read_budget(path):
    """{name: (number, reason)}"""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:])
    return {name: (int(number), reason) for name, number, reason in rows}


def lowered(budget, sizes):
    """The budget with what is measured where that is less, or not in it yet."""
    result = dict(budget)
    for name, size in sizes.items():
        rounded = -(-size // ROUNDED) * ROUNDED if name.endswith("code lines") else size
        if name not in budget or rounded < budget[name][0]:
            result[name] = (rounded, "")
    return result


def write_budget(path, budget):
    rows = [f"{name}\t{number}\t{reason}" for name, (number, reason) in budget.items()]
    path.write_text("\n".join(["What\tAt most\tWhy it was raised", *rows]) + "\n", encoding="utf-8")


def print_rooms(per_room):
    print(f"{'room':<20}{'files':>7}{'code lines':>12}{f'<= {SMALL} lines':>13}{'floors':>8}")
    for room, row in sorted(per_room.items()):
        print(f"{room:<20}{row[0]:>7}{row[1]:>12}{row[2]:>13}{row[3]:>8}")
    print()


def print_sizes(sizes, budget):
    width = max(map(len, sizes)) + 2
    print(f"{'':<{width}}{'now':>8}{'at most':>9}")
    for name, size in sizes.items():
        print(f"{name:<{width}}{size:>8}{budget[name][0] if name in budget else '-':>9}")
    print()


def excess(sizes, budget):
    for name, size in sizes.items():
        if name not in budget:
            yield f"{name}: not in {BUDGET.name}; house.py --lower adds it"
        elif size > budget[name][0]:
            yield f"{name}: {size}, at most {budget[name][0]}. Make it less, or raise it in test/style/{BUDGET.name} with a reason"


def main():
    parser = argparse.ArgumentParser(usage="house.py [--traces PROGRAM [--walk]] [--lower]")
    parser.add_argument("--traces")
    parser.add_argument("--walk", action="store_true")
    parser.add_argument("--lower", action="store_true")
    words = parser.parse_args()
    sizes, per_room = static_sizes(ROOT)
    if words.traces:
        found = walks(words.traces)
        sizes.update(trace_sizes(found))
        if words.walk:
            print_walks(found)
    budget = read_budget(BUDGET) if BUDGET.exists() else {}
    if words.lower:
        budget = lowered(budget, sizes)
        write_budget(BUDGET, budget)
    print_rooms(per_room)
    print_sizes(sizes, budget)
    report = Report()
    report.check("the house is no larger than its budget", list(excess(sizes, budget)))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
