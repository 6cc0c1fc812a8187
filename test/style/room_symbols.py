#!/usr/bin/env python3
"""Checks on the objects of the library that each room uses only what it may enter: a name of umem that an
object refers to is defined in its own room or in one that ENTERS of include_rules.py allows; and that the
objects of a room stand in layers. Names that no room defines belong to the system: libc, the compiler's
runtime, CUDA (see cuda_symbols.py).

The path of an object names its room: .../src/ROOM/NAME.c.o. Objects whose source c/src/ROOM/NAME.c is gone are
left out: build folders keep them.

Usage: room_symbols.py DIRECTORY_OF_THE_OBJECTS     searched with all folders below it
"""
import re
import subprocess
import sys
from pathlib import Path

import include_rules
from report import Report

ROOT = Path(__file__).resolve().parents[2]

# What ENTERS does not allow, and is allowed in all rooms above the core: umem/host.h. The table of kinds, which
# names those of all rooms, is made by c/kinds.cmake and stands in no room.
ALLOWED_ABOVE = r"umemHost_ctor"


def object_files(folder, root=ROOT):
    """The objects of the rooms: [(room, path)]."""
    found = []
    for path in sorted(Path(folder).rglob("*.c.o")):
        for source in (path.with_suffix("").relative_to(above) for above in path.parents if above.name == "src"):
            room = str(source.parent)
            if room in include_rules.ENTERS and (Path(root) / "c/src" / source).exists():
                found.append((room, path))
    return found


def names(paths, *options):
    """The global names of objects: {path: names}."""
    out = subprocess.run(
        ["nm", "--extern-only", "--format=posix", "--print-file-name", *options, *map(str, paths)],
        check=True, capture_output=True, text=True,
    ).stdout
    found = {path: set() for path in paths}
    for line in out.splitlines():
        path, rest = line.rsplit(": ", 1)
        found[Path(path)].add(rest.split()[0])
    return found


def is_allowed(room, other, name):
    """Whether objects of room may use name, which the room other defines."""
    if other in include_rules.ENTERS[room] | {room}:
        return True
    return room not in include_rules.BELOW_CONTEXTS and bool(re.fullmatch(ALLOWED_ABOVE, name))


def forbidden_uses(objects, defined, used):
    """["ROOM/OBJECT uses NAME of ROOM"], for each room."""
    home = {name: room for room, path in objects for name in defined[path]}
    found = {room: [] for room in include_rules.ENTERS}
    for room, path in objects:
        for name in sorted(used[path] & home.keys()):
            if not is_allowed(room, home[name], name):
                found[room].append(f"{room}/{path.name} uses {name} of {home[name]}")
    return found


def circles(objects, defined, used):
    """["ROOM/OBJECT: in a circle, or above one"], for each room: its objects that use each other, by way of
    others too."""
    found = {room: [] for room in include_rules.ENTERS}
    for room in found:
        own = [path for other, path in objects if other == room]
        uses = {path: {other for other in own if other != path and used[path] & defined[other]} for path in own}
        found[room] = [f"{room}/{path.name}: in a circle, or above one" for path in include_rules.circle(uses)]
    return found


def check(report, folder, root=ROOT):
    objects = object_files(folder, root)
    rooms = {room for room, _ in objects}
    missing = sorted(include_rules.ENTERS.keys() - rooms)
    report.check("there are objects of each room", [f"none of {room}" for room in missing])
    if not objects:
        return
    paths = [path for _, path in objects]
    defined, used = names(paths, "--defined-only"), names(paths, "--undefined-only")
    for room, problems in forbidden_uses(objects, defined, used).items():
        report.check(f"{room} uses only what it may enter", problems)
    for room, problems in circles(objects, defined, used).items():
        report.check(f"{room} stands in layers", problems)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    report = Report()
    check(report, sys.argv[1])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
