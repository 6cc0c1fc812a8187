#!/usr/bin/env python3
"""What new features have added to c/src, and how large the house would be without them: one table, from the history.

Usage: house_growth.py [COMMIT]

Counts files and code lines (see house.py) that each commit since COMMIT has added to c/src less those it has taken
away. COMMIT is by default that of the first row of house_features.tsv: the house as it was when it got its targets.
house_features.tsv names the commits of each feature; what no row names are merges, mends, words and small things.
"""
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import c_source

ROOT = Path(__file__).resolve().parents[2]
FEATURES = Path(__file__).with_name("house_features.tsv")
TARGETS = "files at most 170, code lines at most 28000"


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout


def read_features(path):
    """(the commit where counting begins, {commit: feature})"""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return rows[0][1], {commit: name for name, commits in rows[1:] for commit in commits.split()}


def code_lines(blob, known={"0" * 40: 0}):
    if blob not in known:
        text = c_source.without_comments(git("cat-file", "blob", blob))
        known[blob] = sum(bool(line.strip()) for line in text.splitlines())
    return known[blob]


def change_of(raw):
    """(files, code lines) that a commit adds; raw: what git diff-tree prints of it."""
    files = lines = 0
    for entry in raw.splitlines():
        facts, path = entry.split("\t")
        _, _, before, after, status = facts.split()
        if path.endswith((".c", ".h")):
            files += (status == "A") - (status == "D")
            lines += code_lines(after) - code_lines(before)
    return files, lines


def sizes_at(commit):
    """(files, code lines) of c/src"""
    entries = [entry.split() for entry in git("ls-tree", "-r", commit, "c/src").splitlines()]
    blobs = [blob for _, _, blob, path in entries if path.endswith((".c", ".h"))]
    return len(blobs), sum(map(code_lines, blobs))


def growth(since, feature_of):
    """{feature, or None: (files, code lines)} that the commits since then have added"""
    found = defaultdict(lambda: (0, 0))
    for commit in git("rev-list", "--no-merges", f"{since}..HEAD", "--", "c/src").split():
        files, lines = change_of(git("diff-tree", "-r", "--no-renames", "--no-abbrev", "--no-commit-id", commit, "c/src"))
        name = feature_of.get(commit[:8])
        found[name] = found[name][0] + files, found[name][1] + lines
    return found


def main():
    since, feature_of = read_features(FEATURES)
    since = sys.argv[1] if len(sys.argv) > 1 else since
    begin, now, found = sizes_at(since), sizes_at("HEAD"), growth(since, feature_of)
    rest = found.pop(None, (0, 0))
    print(f"{'c/src':<64}{'files':>7}{'code lines':>12}")
    print(f"{since + ', with the features of then':<64}{begin[0]:>7}{begin[1]:>12}")
    print(f"{'merges, mends, words':<64}{rest[0]:>+7}{rest[1]:>+12}")
    print(f"{'today, with the features of then':<64}{begin[0] + rest[0]:>7}{begin[1] + rest[1]:>12}   ({TARGETS})")
    for name, (files, lines) in sorted(found.items(), key=lambda item: -item[1][1]):
        print(f"  {name:<62}{files:>+7}{lines:>+12}")
    print(f"{'today':<64}{now[0]:>7}{now[1]:>12}")


if __name__ == "__main__":
    main()
