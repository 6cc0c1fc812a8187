"""Plots of results in bench/results, as SVG whose colours come from the page (umem.css).

A plot is a file of this folder with TITLE, RESULTS (a file of bench/results) and a function plot(axes, rows), where rows
are the ratios of that file. The caption of a plot names the machine and the commit: caption_of.
"""
import io
import json
import re
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib.figure import Figure  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
UMEM, OTHERS = "#3f78b5", ["#c0772b", "#7f8a94", "#4f9a58"]
INK = "#010203"  # becomes the colour of the page's text
STYLE = {"svg.fonttype": "none", "font.size": 11, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK,
         "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
         "axes.grid": True, "grid.color": INK, "grid.alpha": 0.15, "legend.frameon": False}


def results(name):
    return json.loads((ROOT / "bench/results" / name).read_text(encoding="utf-8"))


def median(numbers):
    numbers = sorted(numbers)
    return numbers[len(numbers) // 2]


def bars(axes, names, series, label, text, scale="log"):
    """Horizontal bars: series are (name, a number or None for each of names). text(number) stands
    at the end of a bar."""
    height = 0.8 / len(series)
    for number, (name, values) in enumerate(series):
        colour = UMEM if number == 0 else OTHERS[number - 1]
        at = [row + height * number for row, value in enumerate(values) if value is not None]
        lengths = [value for value in values if value is not None]
        axes.barh(at, lengths, height * 0.9, label=name, color=colour)
        for y, value in zip(at, lengths):
            axes.annotate(text(value), (value, y), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(names))], names)
    axes.invert_yaxis()
    axes.set_xscale(scale)
    axes.set_xlabel(label)
    axes.margins(x=0.12)
    axes.grid(False, axis="y")
    axes.legend(loc="upper center", bbox_to_anchor=(0.3, 1.14), ncols=len(series))


def nanoseconds(seconds):
    return f"{seconds * 1e9:.0f} ns" if seconds < 1e-6 else f"{seconds * 1e6:.1f} us"


def svg_of(module):
    rows = results(module.RESULTS)["ratios"]
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": module.RESULTS + module.TITLE}):
        figure = Figure(figsize=(7.6, module.INCHES), layout="constrained")
        module.plot(figure.add_subplot(), rows)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    svg = re.sub(r"^.*?(?=<svg )", "", written.getvalue(), flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg [^>]*?) ?width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg [^>]*?) ?height="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{module.TITLE}" ', 1)
    return svg.replace(INK, "var(--color-foreground-primary)")


def caption_of(module):
    facts = results(module.RESULTS)["facts"]
    machine = facts.get("GPU", "").removeprefix("1 x ") if module.ON_GPU else f"{facts['CPU']}, {facts['cores']} cores"
    return f"{machine}, {facts['date'][:10]}, commit {facts['commit'][:7]}: bench/results/{module.RESULTS}"
