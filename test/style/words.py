#!/usr/bin/env python3
"""Refuses words that only their authors understand, in names and comments. CONTRIBUTING.md says what to write.

Usage: words.py [--lower | WORD...]

Prints how often each word stands in which part of the tree. test/style/words.tsv has the places that are left: a word,
a part, and how many at most; what it does not name must not occur. --lower writes smaller numbers into it. With
words it prints the places of these.

Public names are exempt, and so are names of tests that are sentences, of four words and more. In C++, where a guard is
the object that gives access, the word guard is exempt.
"""
import re
import sys
from pathlib import Path

import c_source
from report import Report

ROOT = Path(__file__).resolve().parents[2]
BUDGET = Path(__file__).with_suffix(".tsv")
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"}
PARTS = ("c", "cxx", "mpi", "formats", "tool", "python", "bench", "examples", "test")

NAMES, COMMENTS, BOTH = {"names"}, {"comments"}, {"names", "comments"}
# word -> where it is refused
WORDS = {
    "guard": NAMES, "guards": NAMES, "leg": NAMES, "legs": NAMES, "router": BOTH, "thrift": BOTH, "nobody": BOTH,
    "asks": BOTH, "stays": NAMES, "around": NAMES, "apart": NAMES, "offer": NAMES, "pause": NAMES, "dress": BOTH,
    "adopt": NAMES, "tells": BOTH, "told": BOTH, "decorator": BOTH, "decorates": BOTH,
}
# What is no single word: name -> (where, pattern). A comment begins with its /* or //, on one line.
PHRASES = {
    "take_after": ("names", r"\w*take_after\w*\(?"),
    "keep()": ("names", r"\b(?:keep|follow)\("),
    "to be had": ("comments", r"\bto be had\b"),
    "The same": ("comments", r"^/[*/]\s*The same\b"),
    "- see x.h": ("comments", r"^/\*\s*\S+\.\w+ - see\b"),
}
C_PLUS_PLUS = ("cxx/", "python/", "test/cxx/", "test/compat/cxx-0.1/", "examples/", "test/gpu/")
SENTENCE = 4
# In the library alone: elsewhere plain English, the name of a public idea, or of what a test does.
IN_C = {"pause", "leg", "legs", "apart", "adopt", "around"}
COMMENTS_IN_C = {"nobody", "asks"}
STANDARD = {"lock_guard", "guard_at"}


def words_of(name):
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)]


def names_in(text):
    """[(line, name)]"""
    code = c_source.without_strings(c_source.without_comments(text))
    return [(number, name) for number, line in enumerate(code.splitlines(), 1) for name in re.findall(r"\b[A-Za-z_]\w*\(?", line)]


def comments_in(text):
    """[(line, the comment on one line)]; lines of // that follow one another are one comment."""
    found, last = [], -1
    for token in c_source.tokens(text):
        comment = token[0]
        if not comment.startswith("/"):
            continue
        line = text.count("\n", 0, token.start()) + 1
        if comment.startswith("//") and line == last + 1 and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {comment[2:].strip()}")
        else:
            found.append((line, " ".join(re.sub(r"\n\s*\*(?!/)", " ", comment).split())))
        last = line if comment.startswith("//") else -1
    return found


def public_names(root):
    headers = [path for name in ("c/include", "mpi/include", "formats/include") for path in (root / name).rglob("*.h")]
    return {name for path in headers for name in re.findall(r"\w+", c_source.without_comments(path.read_text()))} | STANDARD


def refused(text, public, is_cxx=False, in_tests=False):
    """What text has that is refused: [(word, line, the name or the comment)]"""
    found = []
    for line, name in names_in(text):
        plain, words = name.rstrip("("), words_of(name)
        if plain in public or len(words) >= SENTENCE and in_tests:
            continue
        found += [(word, line, plain) for word in sorted(set(words)) if "names" in WORDS.get(word, ())]
        found += [(phrase, line, name) for phrase, (where, pattern) in PHRASES.items() if where == "names" and re.fullmatch(pattern, name)]
    for line, comment in comments_in(text):
        found += [(word, line, comment) for word in re.findall("[a-z]+", comment.lower()) if "comments" in WORDS.get(word, ())]
        found += [(phrase, line, comment) for phrase, (where, pattern) in PHRASES.items()
                  if where == "comments" and re.search(pattern, comment)]
    return [one for one in found if not (is_cxx and one[0] in ("guard", "guards"))]


def places(root):
    """{(word, part): [where and what]}"""
    public, found = public_names(root), {}
    for part in PARTS:
        for path in sorted((root / part).rglob("*")):
            name = str(path.relative_to(root))
            if path.suffix not in SUFFIXES or "/build/" in name:
                continue
            for word, line, what in refused(path.read_text(encoding="utf-8"), public, name.startswith(C_PLUS_PLUS), "test" in name.split("/")):
                if part != "c" and (word in IN_C or word in COMMENTS_IN_C and " " in what):
                    continue
                found.setdefault((word, part), []).append(f"{name}:{line}: {what[:90]}")
    return found


def read_budget(path):
    """{(word, part): number}"""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:])
    return {(word, part): int(number) for word, part, number in rows}


def lowered(budget, counts):
    """The budget with what is counted where that is less; without it where there is none."""
    return {key: min(number, counts[key]) for key, number in budget.items() if counts.get(key)}


def write_budget(path, budget):
    rows = [f"{word}\t{part}\t{number}" for (word, part), number in sorted(budget.items())]
    path.write_text("\n".join(["Word\tPart\tAt most", *rows]) + "\n", encoding="utf-8")


def excess(found, budget):
    for (word, part), where in sorted(found.items()):
        most = budget.get((word, part), 0)
        if len(where) > most:
            yield f'"{word}" in {part}: {len(where)}, at most {most}: words.py "{word}" prints where'


def undocumented(root):
    """The refused words that the table of CONTRIBUTING.md does not name."""
    table = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| idea | word | not |")[2].partition("\n\n")[0]
    return sorted(word for word in [*WORDS, *PHRASES] if f"`{word}`" not in table)


def main():
    words, found = sys.argv[1:], places(ROOT)
    if words and words != ["--lower"]:
        print("\n".join(place for (word, _), where in found.items() if word in words for place in where))
        return 0
    counts = {key: len(where) for key, where in found.items()}
    budget = read_budget(BUDGET)
    if words:
        budget = lowered(budget, counts)
        write_budget(BUDGET, budget)
    for word in [*WORDS, *PHRASES]:
        left = [f"{part} {counts[word, part]}" for part in PARTS if (word, part) in counts]
        if left:
            print(f"{word:<12}{', '.join(left)}")
    report = Report()
    report.check("no refused word has come back", list(excess(found, budget)))
    report.check("CONTRIBUTING.md says what to write in place of each", undocumented(ROOT))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
