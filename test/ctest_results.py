#!/usr/bin/env python3
"""Tells the results of ctest, test by test, as lines "ok - NAME" and "not ok - NAME".

A program of CMocka or GoogleTest is told by each of its tests; one that failed beside them (it crashed,
leaked, or timed out), or that ran none, is told as failed itself. One that skips all of its tests has not
failed: this machine lacks what they need, as each of them says.

Usage: ctest_results.py FILE_OF_CTEST_OUTPUT_JUNIT
"""
import re
import sys
import xml.etree.ElementTree as ET


# What GoogleTest puts after the name of a test.
AFTER_NAME = r"(?:, where .*?)?(?: \(\d+ ms\))?$"


def marked(group, mark):
    """The tests of a group that CMocka or GoogleTest marks so; they repeat those that failed at the end."""
    lines = re.findall(rf"^\[\s*(?:{mark})\s*\] (.+?){AFTER_NAME}", group, re.MULTILINE)
    return dict.fromkeys(line for line in lines if not re.match(r"---|(tests: )?\d+ test", line))


def said(group, test):
    """What a test of a group printed."""
    name = re.escape(test)
    pattern = rf"^\[ RUN +\] {name}$(.*?)^\[ +\w+ +\] {name}{AFTER_NAME}"
    match = re.search(pattern, group, re.MULTILINE | re.DOTALL)
    return match[1].splitlines()[-12:] if match else []


def results(case):
    """What one test of ctest is: [(name, verdict, lines)]."""
    name = case.get("name")
    output = case.findtext("system-out") or ""
    passed = case.get("status") == "run"
    end = output.splitlines()[-30:]
    _, *groups = re.split(r"^\[==========\].* Running", output, flags=re.MULTILINE)
    if not groups:
        skip = case.find("skipped")
        if skip is not None and skip.get("message", "").startswith("SKIP_RETURN_CODE"):
            return [(name, "skipped", end)]
        return [(name, "ok", []) if passed else (name, "not ok", end)]

    found = []
    for group in groups:
        found += [(f"{name}: {test}", "ok", []) for test in marked(group, "OK")]
        for mark, verdict in [("FAILED|ERROR", "not ok"), ("SKIPPED", "skipped")]:
            found += [(f"{name}: {test}", verdict, said(group, test)) for test in marked(group, mark)]
    verdicts = [verdict for _, verdict, _ in found]
    if not verdicts:
        found.append((f"{name}: no test ran", "not ok", end))
    elif not passed and "not ok" not in verdicts:
        found.append((f"{name}: the program as a whole", "not ok", end))
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    failed = False
    for case in ET.parse(sys.argv[1]).getroot().iter("testcase"):
        for name, verdict, lines in results(case):
            print(f"{verdict} - {name}", *lines, sep="\n    ")
            failed |= verdict == "not ok"
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
