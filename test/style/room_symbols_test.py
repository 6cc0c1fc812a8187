#!/usr/bin/env python3
"""Shows that room_symbols.py fails: in a small library with an object in each room, a use of each forbidden kind
is added in turn. Needs cc."""
import functools
import subprocess
import sys
import tempfile
from pathlib import Path

import include_rules
import room_symbols
from report import Report


def function(name, *used):
    """The source of a function that calls others."""
    calls = "".join(f"{other}();" for other in used)
    return "".join(f"void {other}(void);" for other in used) + f"void {name}(void) {{{calls}}}\n"


# Each room has a file of its own, and uses libc.
GOOD = {f"{room}/plain.c": function("umem_of_" + room.replace("/", "_"), "abort") for room in include_rules.ENTERS}
GOOD |= {
    "core/copy.c": function("umem_copy", "umem_of_base", "umem_of_core"),
    "stores/host.c": function("umemHost_ctor", "umem_copy") + "int const umem_host_kind = 1;\n",
    "adaptors/debug/debug.c": function("umem_debug", "umem_of_adaptors", "umemHost_ctor"),
    "open/open.c": "extern int const *const umem_kinds[];\nint umem_first(void) { return *umem_kinds[0]; }\n",
    # made by the build, in no room: the table of kinds
    "kinds.c": "extern int const umem_host_kind;\nint const *const umem_kinds[] = {&umem_host_kind};\n",
}

# (what is wrong, the file that is added or replaced, its contents)
BAD = [
    ("a call from below", "base/lock.c", function("umem_lock", "umem_of_core")),
    ("a call of CUDA's room from the core", "core/ask.c", function("umem_ask", "umem_of_cuda")),
    ("the address of a function of another room", "core/ask.c",
     "void umem_of_cuda(void);\nvoid (*umem_asked)(void) = umem_of_cuda;\n"),
    ("the address of a constant of another room", "pool/pool.c",
     "extern int const umem_host_kind;\nint const *umem_pool(void) { return &umem_host_kind; }\n"),
    ("a call of a peer", "cuda/cuda.c", function("umem_cuda", "umem_of_stores")),
    ("a call of the room open from the core", "core/ask.c", function("umem_ask", "umem_of_open")),
    ("a host that the core constructs", "core/ask.c", function("umem_ask", "umemHost_ctor")),
    ("a call of a room inside", "adaptors/meter.c", function("umem_limit", "umem_of_adaptors_debug")),
    ("a call between two rooms inside", "adaptors/log/log.c", function("umem_log", "umem_of_adaptors_debug")),
    ("a kind that the room open names", "open/report.c",
     "extern int const umem_host_kind;\nint const *umem_report(void) { return &umem_host_kind; }\n"),
    ("two objects that call each other", "core/plain.c", function("umem_of_core", "umem_copy")),
    ("a circle of the address of a function", "core/plain.c",
     "void umem_copy(void);\nvoid umem_of_core(void) {}\nvoid (*umem_copier)(void) = umem_copy;\n"),
    ("a room without objects", "pool/plain.c", None),
]


class Counted(Report):
    """Counts without printing."""

    def check(self, name, problems):
        self.failed += bool(problems)


@functools.cache
def compiled(text):
    """The object of a source, as bytes."""
    with tempfile.NamedTemporaryFile(suffix=".o") as target:
        subprocess.run(["cc", "-w", "-c", "-x", "c", "-", "-o", target.name], input=text, text=True, check=True)
        return Path(target.name).read_bytes()


def failures(sources, stale=()):
    """How many checks fail for a library of these sources; those in stale are removed after compiling."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in sources.items():
            path, target = root / "c/src" / name, root / "build/library.dir/src" / f"{name}.o"
            for each in (path, target):
                each.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                continue
            path.write_text(text)
            target.write_bytes(compiled(text))
        for name in stale:
            (root / "c/src" / name).unlink()
        report = Counted()
        room_symbols.check(report, root / "build", root)
        return report.failed


def main():
    report = Report()
    count = failures(GOOD)
    report.check("the good library passes", [f"{count} checks failed"] if count else [])
    for wrong, name, text in BAD:
        count = failures({**GOOD, name: text})
        report.check(f"room symbols: fails for {wrong}", [] if count == 1 else [f"{count} checks failed, not 1"])
    name, text = BAD[0][1:]
    count = failures({**GOOD, name: text}, stale=[name])
    report.check("objects without a source are left out", [f"{count} checks failed"] if count else [])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
