#!/usr/bin/env python3
"""Draws copies to a GPU as most programs write them today beside the copy of umem, from a result in bench/results.

Usage: today.py RESULTS.json TODAY.svg            writes the picture
       today.py --check RESULTS.json TODAY.svg    exits with 1 unless this is the picture
"""
import json
import statistics
import sys
from html import escape
from pathlib import Path

GIB = 2**30
WIDTH, LEFT, BAR, ROW = 720, 330, 20, 30
STYLE = """
  text { font: 14px sans-serif; fill: #24292f; } .code { font: 13px monospace; }
  .title { font-weight: bold; } .umem { fill: #3572b0; } .today { fill: #c0772b; }
  @media (prefers-color-scheme: dark) {
    text { fill: #d6dbe0; } .umem { fill: #6ca6e0; } .today { fill: #d99a5b; }
  }
"""
# Each group: what is copied, the row of the results, and the calls of today and of umem.
GROUPS = [("A file of 1 GiB to a GPU", "open file, copy it to device, 1 GiB", "malloc, pread, cudaMemcpy, free",
           "umem_copy_to(file, ..., gpu, ...)"),
          ("1 GiB of ordinary RAM to a GPU", "pageable host to device, 1 GiB", "cudaMemcpy",
           "umem_copy_to(ram, ..., gpu, ...)")]


def speed(row, side):
    return GIB / statistics.median(row[f"{side}_seconds"]) / 1e9


def bar(y, words, side, value, scale):
    length = value * scale
    return (f'<text class="code" x="{LEFT - 10}" y="{y + 15}" text-anchor="end">{escape(words)}</text>'
            f'<rect class="{side}" x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}"/>'
            f'<text x="{LEFT + length + 8:.1f}" y="{y + 15}">{value:.1f} GB/s</text>')


def draw(results):
    rows = {row["operation"]: row for row in results["ratios"]}
    largest = max(speed(rows[group[1]], side) for group in GROUPS for side in ("umem", "other"))
    scale = (WIDTH - LEFT - 90) / largest
    lines, y = [], 10
    for title, operation, today, umem in GROUPS:
        lines.append(f'<text class="title" x="10" y="{y + 14}">{escape(title)}</text>')
        lines.append(bar(y + 24, today, "today", speed(rows[operation], "other"), scale))
        lines.append(bar(y + 24 + ROW, umem, "umem", speed(rows[operation], "umem"), scale))
        y += 24 + 2 * ROW + 14
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img" '
            'aria-label="Copies to a GPU as most programs write them, beside those of umem, in GB/s">')
    return "\n".join([head, f"<style>{STYLE}</style>", *lines, "</svg>"]) + "\n"


def main():
    *options, source, target = sys.argv[1:]
    picture = draw(json.loads(Path(source).read_text(encoding="utf-8")))
    if options == ["--check"]:
        sys.exit(Path(target).read_text(encoding="utf-8") != picture)
    Path(target).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
