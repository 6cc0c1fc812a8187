#!/usr/bin/env python3
"""Checks that access through views, and loops of generic calls, compile to the machine code of raw
pointers.

The file has pairs of functions, raw_X with view_X or call_X. Only loops that contain no other count.

view_X: without loops, all instructions of a function count; with loops, those of each loop. view_X may
not have more loops than raw_X, and none longer than its match in order of length; nor a call there where
raw_X has none, nor lose the vectors of raw_X.

call_X does its work in other functions, and has loops for operands of other layouts besides. raw_X must
have loops over vectors, and for each of them call_X, or a function that it calls, must have one with the
same arithmetic on vectors; for the same amount of that, no more accesses to memory and at most one more
instruction, for an index of its own; without calls and divisions of integers. With for_each in its name,
no function with such arithmetic is called in a loop: it would read what it needs from memory for each row.

Usage: machine_code.py [--must-fail] FILE COMPILER [OPTION...]

--must-fail: the check must find a difference, for call_X in every pair; it is tested itself so, with
assertions on or functors that stay calls.
"""
import collections
import re
import subprocess
import sys

LABEL = re.compile(r"^(\.?[\w.$]+):")
INSTRUCTION = re.compile(r"^\t([a-z][\w.]*)\s*(.*)$")
# What only fills space or marks a place.
NO_WORK = re.compile(r"^(?:nop\w*|endbr64|data16|cs|xchgw)$")
RETURN = re.compile(r"retq? ?$")
CALL = re.compile(r"call|blr? ")
DIVISION = re.compile(r"i?div[bwlq]? |[su]div ")
# Arithmetic on several elements at once: x86 and ARM.
VECTOR = re.compile(r"v?(?:add|sub|mul|div|fn?m\w+)p[sd] |v?p(?:add[dq]|maxsd|muludq|cmpgtd) |\w+ .*\.[248][sd]\b")
STORED_VECTOR = re.compile(r"v?mov(?:[au]p[sd]|dq[au]\w*) %[^(]*,.*\(|st[rp] q")
ACCESS = re.compile(r"(?!lea).*[(\[]")
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


def spans(body):
    """Where the loops of body begin and end. What has a return in it is none: a block behind the return jumps back. Nor is
    what a block behind it jumps into: a part of it, such as a loop in it, stands there."""
    at = {item[1]: n for n, item in enumerate(body) if item[0] == "label"}
    targets = [item[2].split(", ")[-1] if item[0] == "code" else None for item in body]
    jumps = [(at[target], n) for n, target in enumerate(targets) if target in at and at[target] < n]
    return {
        (first, last)
        for first, last in jumps
        if not has(body[first:last], RETURN) and not any(n > last and first < to <= last for to, n in jumps)
    }


def loops(body):
    """The loops of body that contain no other, the longest first."""
    every = spans(body)
    inner = [s for s in every if not any(t != s and s[0] <= t[0] and t[1] <= s[1] for t in every)]
    return sorted((body[a : b + 1] for a, b in inner), key=count, reverse=True)


def count(part):
    return sum(item[0] == "code" for item in part)


def matches(part, pattern):
    """The mnemonics of the instructions that match."""
    return [i[1] for i in part if i[0] == "code" and pattern.match(" ".join(i[1:]))]


def has(part, pattern):
    return bool(matches(part, pattern))


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


def called(part):
    """The names of the functions that are called from there."""
    return {i[2].split("@")[0].strip() for i in part if i[0] == "code"}


def reached(bodies, name):
    """The names of the functions that are called from this one, and its own."""
    found, todo = set(), [name]
    while todo:
        current = todo.pop()
        if current in found or current not in bodies:
            continue
        found.add(current)
        todo += called(bodies[current])
    return found


def called_in_loops(bodies, names):
    """Those of the functions that one of them calls in a loop."""
    parts = [bodies[name][a : b + 1] for name in names for a, b in spans(bodies[name])]
    return {callee for part in parts for callee in called(part)}


def vector_work(part):
    """Arithmetic on vectors and stores of them, each with its number."""
    found = collections.Counter(matches(part, VECTOR))
    found["store"] = len(matches(part, STORED_VECTOR))
    return found


def does_as_much(part, raw):
    """Whether a loop of a generic call has the arithmetic of one of raw pointers."""
    return vector_work(part).keys() == vector_work(raw).keys()


def is_as_good(part, raw):
    """Whether a loop of a generic call does what one of raw pointers does, with no more effort."""
    work, raw_work = vector_work(part), vector_work(raw)
    amount, raw_amount = sum(work.values()), sum(raw_work.values())
    if not does_as_much(part, raw) or has(part, CALL) or has(part, DIVISION):
        return False
    if any(work[what] * raw_amount != raw_work[what] * amount for what in work):
        return False
    accesses, raw_accesses = (len(matches(p, ACCESS)) for p in (part, raw))
    if accesses * raw_amount > raw_accesses * amount:
        return False
    return (count(part) - 1) * raw_amount <= count(raw) * amount


def worse_loops(bodies, name):
    """What call_NAME lacks of raw_NAME, in words."""
    wanted = [loop for loop in loops(bodies["raw_" + name]) if sum(vector_work(loop).values())]
    if not wanted:
        return ["no vectors in the loops over raw pointers"], "0 loops"
    names = reached(bodies, "call_" + name)
    by_rows = called_in_loops(bodies, names) if name.startswith("for_each") else set()
    found = []
    for raw in wanted:
        if not any(is_as_good(part, raw) for n in names for part in loops(bodies[n])):
            found.append(f"nothing like the loop with {dict(vector_work(raw))}")
        elif any(does_as_much(part, raw) for n in names & by_rows for part in loops(bodies[n])):
            found.append(f"a call for each row of the loop with {dict(vector_work(raw))}")
    return found, f"{[count(raw) for raw in wanted]} in loops over vectors"


def compared(bodies, name):
    """The differences of a pair and its numbers, in words."""
    if "call_" + name in bodies:
        return worse_loops(bodies, name)
    return differences(bodies["raw_" + name], bodies["view_" + name])


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
    failed = []
    for name in names:
        others = [bodies[kind + name] for kind in ("view_", "call_") if kind + name in bodies]
        if len(others) != 1 or not count(bodies["raw_" + name]) or not count(others[0]):
            return f"{name}: one of the pair has no instructions"
        found, numbers = compared(bodies, name)
        failed += [name] if found else []
        print(f"{name}: instructions {numbers}{''.join(f', {what}' for what in found)}")
    if must_fail:
        unseen = [n for n in names if n not in failed and ("call_" + n in bodies or not failed)]
        return f"nothing is found in {unseen}" if unseen else 0
    return f"{len(failed)} of {len(names)} pairs differ" if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
