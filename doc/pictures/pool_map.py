#!/usr/bin/env python3
"""Draws the regions of a pool, as doc/examples/log/regions.c prints them, oldest first.

Usage: pool_map.py REGIONS.csv MAP.svg            writes the picture
       pool_map.py --check REGIONS.csv MAP.svg    exits with 1 unless this is the picture
"""
import csv
import sys
from pathlib import Path

WIDTH, LEFT, ROW, BAR = 720, 250, 26, 18
STYLE = """
  text { font: 13px sans-serif; fill: #24292f; }
  .used { fill: #3572b0; } .free { fill: #d7e3f0; }
  @media (prefers-color-scheme: dark) {
    text { fill: #d6dbe0; } .used { fill: #6ca6e0; } .free { fill: #2d3b4a; }
  }
"""


def mebibytes(nbytes):
    return f"{int(nbytes) / 2**20:.1f} MiB"


def row(number, region, scale):
    y = 34 + ROW * number
    total, used = (int(region[name]) * scale for name in ("bytes", "used"))
    words = f"age {region['age']}: {mebibytes(region['used'])} of {mebibytes(region['bytes'])}"
    title = f"{region['ranges']} blocks and spans, largest free range {mebibytes(region['largest_free'])}"
    return (f'<g><title>{title}</title><text x="{LEFT - 10}" y="{y + 14}" text-anchor="end">{words}</text>'
            f'<rect class="free" x="{LEFT}" y="{y}" width="{total:.1f}" height="{BAR}"/>'
            f'<rect class="used" x="{LEFT}" y="{y}" width="{used:.1f}" height="{BAR}"/></g>')


def draw(regions):
    regions = sorted(regions, key=lambda region: -int(region["age"]))
    scale = (WIDTH - LEFT - 10) / max(int(region["bytes"]) for region in regions)
    height = 44 + ROW * len(regions)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
             'role="img" aria-label="Chunks of a pool: size, and how much of it blocks use">',
             f"<style>{STYLE}</style>",
             f'<text x="{LEFT}" y="20">dark: blocks and spans, light: free</text>']
    lines += [row(number, region, scale) for number, region in enumerate(regions)]
    return "\n".join([*lines, "</svg>"]) + "\n"


def main():
    *options, source, target = sys.argv[1:]
    with open(source, newline="") as file:
        picture = draw(list(csv.DictReader(file)))
    if options == ["--check"]:
        sys.exit(Path(target).read_text() != picture)
    Path(target).write_text(picture)


if __name__ == "__main__":
    main()
