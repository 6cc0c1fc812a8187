#!/usr/bin/env python3
"""What new features have added to the library, the C++ headers and the tests, and how large these would be without
them: one table, from the history.

Usage: house_growth.py [COMMIT]

Counts files and code lines (see house.py) that each commit since COMMIT has added to c/src, cxx/include and test, less
those it has taken away. COMMIT is by default that of the first row of house_features.tsv: the house as it was when it
got its targets. house_features.tsv names the commits of each feature, also those that only test it; COMMIT:45/102 is
one of which this share belongs to the feature. What no row names are merges, mends, words and small things.

house.tsv is the budget: how many code lines there may be with the features of then.
"""
import functools
import subprocess
import sys
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import c_source
import house
from report import Report

ROOT = Path(__file__).resolve().parents[2]
FEATURES = Path(__file__).with_name("house_features.tsv")
PARTS = {"c/src": "at most 170, 28000", "cxx/include": "code lines at most 10500", "test": "code lines at most 65000"}
NO_BLOB = "0" * 40
NONE = ((0, 0),) * len(PARTS)


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout


def read_features(path):
    """(the commit where counting begins, {commit: (feature, the share that belongs to it)})"""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    found = {}
    for name, commits in rows[1:]:
        for commit, _, share in (word.partition(":") for word in commits.split()):
            found[commit] = name, Fraction(share or 1)
    return rows[0][1], found


@functools.cache
def blob_reader():
    """The one process that reads all blobs."""
    return subprocess.Popen(["git", "-C", ROOT, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def text_of(blob):
    reader = blob_reader()
    reader.stdin.write(f"{blob}\n".encode())
    reader.stdin.flush()
    size = int(reader.stdout.readline().split()[2])
    return reader.stdout.read(size + 1).decode()


@functools.cache
def code_lines(blob):
    if blob == NO_BLOB:
        return 0
    return sum(bool(line.strip()) for line in c_source.without_comments(text_of(blob)).splitlines())


def is_source(path):
    return Path(path).suffix in house.SUFFIXES


def part_of(path):
    """The index in PARTS."""
    return next(i for i, part in enumerate(PARTS) if path.startswith(f"{part}/"))


def added(one, other):
    return tuple((files + more, lines + code) for (files, lines), (more, code) in zip(one, other))


def only(part, files, lines):
    return tuple((files, lines) if i == part else (0, 0) for i in range(len(PARTS)))


def scaled(counts, share):
    return tuple((round(files * share), round(lines * share)) for files, lines in counts)


def change_of(raw):
    """(files, code lines) that a commit adds to each part; raw: what git diff-tree prints of it."""
    found = NONE
    for facts, path in (entry.split("\t") for entry in raw.splitlines()):
        _, _, before, after, status = facts.split()
        if is_source(path):
            files = (status == "A") - (status == "D")
            found = added(found, only(part_of(path), files, code_lines(after) - code_lines(before)))
    return found


def sizes_at(commit):
    """(files, code lines) of each part"""
    found = NONE
    for facts, path in (entry.split("\t") for entry in git("ls-tree", "-r", commit, *PARTS).splitlines()):
        if is_source(path):
            found = added(found, only(part_of(path), 1, code_lines(facts.split()[2])))
    return found


def changes(since):
    """(commit, what it adds to each part) of all since then that are no merges"""
    log = git("log", "--no-merges", "--raw", "--no-renames", "--no-abbrev", "--format=commit %H", f"{since}..HEAD", "--",
              *PARTS)
    for entry in log.split("commit ")[1:]:
        commit, _, raw = entry.partition("\n\n")
        yield commit, change_of(raw.strip())


def growth(since, feature_of):
    """{feature, or None: (files, code lines) of each part} that the commits since then have added"""
    found = defaultdict(lambda: NONE)
    for commit, change in changes(since):
        name, share = feature_of.get(commit[:8], (None, Fraction(1)))
        own = scaled(change, share)
        found[name] = added(found[name], own)
        found[None] = added(found[None], added(change, scaled(own, -1)))
    return found


def row(name, counts, sign=""):
    return f"{name:<66}" + "".join(f"{files:>{sign}8}{lines:>{sign}9}" for files, lines in counts)


def print_table(since, begin, rest, found, now):
    print(f"{'':<66}" + "".join(f"{part:>17}" for part in PARTS))
    print(f"{'':<66}" + f"{'files':>8}{'lines':>9}" * len(PARTS))
    print(row(f"{since}, with the features of then", begin))
    print(row("merges, mends, words", rest, "+"))
    print(row("today, with the features of then", added(begin, rest)))
    print(f"{'    the targets':<66}" + "; ".join(f"{part}: {target}" for part, target in PARTS.items()))
    for name, counts in sorted(found.items(), key=lambda item: -sum(lines for _, lines in item[1])):
        print(row(f"  {name}", counts, "+"))
    print(row("today", now))


def budget_names(counts):
    return {f"{part}: code lines with the features of then": lines for part, (_, lines) in zip(PARTS, counts)}


def main():
    since, feature_of = read_features(FEATURES)
    since = sys.argv[1] if len(sys.argv) > 1 else since
    try:
        begin, now, found = sizes_at(since), sizes_at("HEAD"), growth(since, feature_of)
    except (OSError, subprocess.CalledProcessError):
        print(f"no history since {since} here")
        return 0
    rest = found.pop(None, NONE)
    print_table(since, begin, rest, found, now)
    report = Report()
    report.check("the features of then need no more code than their budget",
                 list(house.excess(budget_names(added(begin, rest)), house.read_budget(house.BUDGET))))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
