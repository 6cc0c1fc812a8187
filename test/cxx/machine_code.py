#!/usr/bin/env python3
"""Checks that access through views compiles to no more machine code than raw pointers.

The file has pairs of functions, raw_X and view_X. Without loops, all instructions of a function
count; with loops, those of each loop that contains no other. view_X may not have more loops than
raw_X, and none longer than its match in order of length; nor a call there where raw_X has none, nor
lose the vectors of raw_X.

Usage: machine_code.py [--must-fail] FILE COMPILER [OPTION...]

--must-fail: the check must find a difference; it is tested itself so, with assertions on.
"""
import re
import subprocess
import sys

LABEL = re.compile(r"^(\.?[\w.$]+):")
INSTRUCTION = re.compile(r"^\t([a-z][\w.]*)\s*(.*)$")
# What only fills space or marks a place.
NO_WORK = re.compile(r"^(?:nop\w*|endbr64|data16|cs|xchgw)$")
CALL = re.compile(r"call|blr? ")
# Arithmetic on several elements at once: x86 and ARM.
VECTOR = re.compile(r"v?(?:add|sub|mul|div|fn?m\w+)p[sd] |\w+ .*\.[248][sd]\b")
COMMENT = re.compile(r"\s*(?:#|//|@ ).*$")


def functions(assembly):
    """Name -> its lines: ("label", name) and ("code", mnemonic, operands)."""
    found, current = {}, None
    for line in assembly.splitlines():
        label = LABEL.match(line)
        if label and not label[1].startswith((".L", "L")):
            current = found.setdefault(label[1], [])
        elif current is None:
            continue
        elif label:
            current.append(("label", label[1]))
        elif line.startswith("\t.size") or line.startswith("\t.section"):
            current = None if line.startswith("\t.size") else current
        else:
            code = INSTRUCTION.match(COMMENT.sub("", line))
            if code and not NO_WORK.match(code[1]):
                current.append(("code", code[1], code[2]))
    return found


def loops(body):
    """The loops of body that contain no other, the longest first."""
    at = {item[1]: n for n, item in enumerate(body) if item[0] == "label"}
    spans = set()
    for n, item in enumerate(body):
        target = item[2].split(", ")[-1] if item[0] == "code" else None
        if target in at and at[target] < n:
            spans.add((at[target], n))
    inner = [s for s in spans if not any(t != s and s[0] <= t[0] and t[1] <= s[1] for t in spans)]
    return sorted((body[a : b + 1] for a, b in inner), key=count, reverse=True)


def count(part):
    return sum(item[0] == "code" for item in part)


def has(part, pattern):
    return any(item[0] == "code" and pattern.match(" ".join(item[1:])) for item in part)


def differences(raw, view):
    """What view has more of than raw, or lacks of it, in words."""
    found = []
    raw_parts, view_parts = loops(raw), loops(view)
    if not raw_parts and not view_parts:
        raw_parts, view_parts = [raw], [view]
    of_raw, of_view = [[count(part) for part in parts] for parts in (raw_parts, view_parts)]
    if len(of_view) > len(of_raw) or any(v > r for v, r in zip(of_view, of_raw)):
        found.append("more instructions")
    if not any(has(p, CALL) for p in raw_parts) and any(has(p, CALL) for p in view_parts):
        found.append("a call")
    if any(has(p, VECTOR) for p in raw_parts) and not any(has(p, VECTOR) for p in view_parts):
        found.append("no vectors")
    return found, f"{of_view} for {of_raw}"


def main(arguments):
    must_fail = arguments[:1] == ["--must-fail"]
    file, *compiler = arguments[must_fail:]
    assembly = subprocess.run(
        [*compiler, "-S", "-g0", "-o", "-", file], check=True, capture_output=True, text=True
    ).stdout
    bodies = functions(assembly)
    names = sorted(name[4:] for name in bodies if name.startswith("raw_"))
    if len(names) < 5:
        return f"only the pairs {names} are found in the assembly"
    failed = 0
    for name in names:
        raw, view = bodies["raw_" + name], bodies.get("view_" + name)
        if view is None or not count(raw) or not count(view):
            return f"{name}: one of the pair has no instructions"
        found, numbers = differences(raw, view)
        failed += bool(found)
        print(f"{name}: instructions {numbers}{''.join(f', {what}' for what in found)}")
    if must_fail:
        return 0 if failed else "nothing is found where there are assertions"
    return f"{failed} of {len(names)} pairs differ" if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
