#!/usr/bin/env python3
"""Turns what umem_ratios or umem_bench has measured into a report.

Usage: report.py ratios FACTS.json RATIOS.json RATIOS.txt FOLDER
       report.py gpu    FACTS.json RATIOS.json RATIOS.txt FOLDER    or a part: see groups below
       report.py calls  FACTS.json BENCH.json FOLDER
       report.py compile FACTS.json COMPILE.json COMPILE.txt FOLDER
       report.py cxx    FACTS.json CXX.json CXX.txt FOLDER
       report.py traces FACTS.json TRACES.json TRACES.txt FOLDER
       report.py bw     FACTS.json BW.json BW.txt FOLDER
       report.py kernels FACTS.json KERNELS.txt FOLDER

Prints the report, and writes it to FOLDER/CPU-ratios.txt (or -calls.txt, -compile.txt) and all
samples to the .json beside it. That of gpu, the ratios of GPUs, is FOLDER/GPU-ratios.txt; those of
pool, pool-sizes, fixed, typed, strided, steps, transfers, many, blocks, routes, ram, python and its parts, extension, formats, zarr, gpu-pool and
gpu-file, parts of the ratios, are FOLDER/CPU-pool.txt, ..., and FOLDER/GPU-pool.txt. That of python-gpu is named for the GPU, too.
"""
import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def read_runs(bench):
    """{name: [seconds of each repetition]} in the order of registration, not in that of running,
    and {name: message} of those that failed."""
    runs, errors = defaultdict(list), {}
    for run in sorted(bench["benchmarks"], key=lambda run: run["family_index"]):
        if run.get("run_type") == "aggregate":
            continue
        name = run["run_name"].split("/real_time")[0].split("/iterations:")[0]
        if run.get("error_occurred"):
            errors[name] = run["error_message"]
        else:
            runs[name].append(run["real_time"] * UNITS[run["time_unit"]])
    return dict(runs), errors


def parse(name):
    """GROUP/PLACE.../METHOD[/SIZE] in parts; the size is None where there is none."""
    group, *rest = name.split("/")
    size = int(rest.pop()) if rest[-1].isdigit() else None
    return group, size, tuple(rest[:-1]), rest[-1]


def size_text(size):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or size % 1024 or unit == "GiB":
            return f"{size} {unit}"
        size //= 1024


def time_text(seconds):
    for unit in ("s", "ms", "us"):
        if seconds >= UNITS[unit]:
            return f"{seconds / UNITS[unit]:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def speed_text(size, seconds):
    return f"{size / seconds / 1e9:.3g} GB/s"


class Table:
    """The benchmarks of one group and size: umem on the rows of the table, others on kinds."""

    def __init__(self, group, size):
        self.group, self.size = group, size
        self.umem, self.by_hand = {}, defaultdict(dict)

    def add(self, places, method, seconds):
        if method == "umem":
            self.umem[places] = seconds
        else:
            self.by_hand[places][method] = seconds

    def lines(self, kind_of):
        moves = self.size and not self.group.startswith("alloc")
        yield f"{self.group}{', ' + size_text(self.size) if self.size else ''}"
        for places, samples in self.umem.items():
            median = statistics.median(samples)
            speed = speed_text(self.size, median) if moves else ""
            others = self.by_hand.get(tuple(kind_of[place] for place in places), {})
            ranked = sorted((statistics.median(s), method) for method, s in others.items())
            ratio = f"{median / ranked[0][0]:.3g}x" if ranked else ""
            texts = [f"{method} {time_text(s)}" + (f" {speed_text(self.size, s)}" if moves else "")
                     for s, method in ranked]
            spread = f"{time_text(min(samples))} to {time_text(max(samples))}"
            yield (f"  {' to '.join(places):<30} {time_text(median):>9} {speed:>10}  {spread:<21}"
                   f" {ratio:>7}  {', '.join(texts)}").rstrip()
        yield ""


def tables_of(runs):
    tables = {}
    for name, samples in runs.items():
        group, size, places, method = parse(name)
        tables.setdefault((group, size), Table(group, size)).add(places, method, samples)
    return tables.values()


def head(facts):
    for name, fact in facts.items():
        yield f"{name + ':':<24}{fact}"
    yield ""


def report_ratios(facts, text):
    yield from head(facts)
    yield "Each row ran both things in turns, in one process; the median of all rounds counts."
    yield "GB are 1e9 bytes; the first GB/s are those of umem, the second those of the other."
    yield ""
    yield text.strip()


def report_bw(facts, text):
    yield from head(facts)
    yield "Each turn of each program is a process of its own. umem: the result of umem bw. CUDA: the median of three samples of"
    yield "16 copies on one stream, after 4 that do not count, between events of CUDA, as nvbandwidth measures."
    yield ""
    yield text.strip()


def report_traces(facts, text):
    yield from head(facts)
    yield "The most bytes that each pool reserved, over the most bytes that were live; the least limit that suffices, over"
    yield "the same. pool: umem's over an upstream without pages; best fit: an arena that grows at its end, simulated."
    yield ""
    yield text.strip()


def report_compile(facts, text):
    yield from head({name: fact for name, fact in facts.items() if name not in ("compiler", "file system", "huge pages")})
    yield "Files of one #include, and two programs, compiled in turns: the compiler's time on the processor,"
    yield "user and system; the median of all rounds, and of their ratios to <vector>. The lines are those that"
    yield "the compiler reads, all files together."
    yield ""
    yield text.strip()


def report_cxx(facts, text):
    yield from head({name: fact for name, fact in facts.items() if name not in ("compiler", "file system", "huge pages")})
    yield text.strip()


def report_calls(facts, context, runs, errors):
    kind_of = {key.removeprefix("kind of "): kind for key, kind in context.items()
               if key.startswith("kind of ")}
    yield from head({**facts, "sizes skipped": context["sizes skipped for lack of room"],
                     "contexts skipped": context["contexts skipped"].replace("; ", f"\n{'':<24}")})
    yield "Median; GB/s (1e9 bytes); least to largest of the repetitions; umem's time as a multiple of the"
    yield "fastest way by hand; the ways by hand. Sets and copies are from warm to warm."
    yield ""
    for table in tables_of(runs):
        yield from table.lines(kind_of)
    for name, message in errors.items():
        yield f"FAILED: {name}: {message}"


def has_tables(value):
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(one, dict) or has_tables(one) for one in values)


def json_text(results, depth=0):
    """JSON with a line for each row, fact or sample list."""
    if depth > 1 and not has_tables(results) or not isinstance(results, (dict, list)):
        return json.dumps(results)
    named = isinstance(results, dict)
    lines = [(json.dumps(one) + ": " if named else "") + json_text(results[one] if named else one, depth + 1)
             for one in results]
    return "{\n" + ",\n".join(lines) + "\n}" if named else "[\n" + ",\n".join(lines) + "\n]"


def slug(words):
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def cpu_stem(facts):
    words = re.sub(r"\((R|TM)\)|CPU|Processor|@.*", " ", facts["CPU"])
    return f"{slug(words)}-{facts['cores']}-cores"


def gpu_stem(facts):
    """Of facts whose GPU is "2 x NVIDIA H200": nvidia-h200-x2."""
    count, model = facts.get("GPU", "1 x unknown GPU").split(" x ", 1)
    return slug(model) + (f"-x{count}" if count != "1" else "")


def store(folder, facts, name, lines, results):
    stem = Path(folder) / name
    text = "\n".join(lines).rstrip() + "\n"
    Path(f"{stem}.txt").write_text(text)
    Path(f"{stem}.json").write_text(json_text({"facts": facts, **results}) + "\n")
    print(f"{text}\nStored in {stem}.txt and .json")


def read_kernels(text):
    """{row: GB per second of the kernel and of the copy that it is compared with}"""
    rows = re.findall(r"^(\S.*?)  +(\d+) +(\d+) +[\d.]+", text, re.MULTILINE)
    return {name: [int(own), int(copy)] for name, own, copy in rows}


# Of umem_ratios: all, or one of its groups.
groups = ("ratios", "pool", "pool-sizes", "fixed", "typed", "strided", "steps", "transfers", "many", "blocks", "routes", "ram", "python",
          "python-calls", "python-files", "python-gpu", "extension", "formats", "zarr", "url", "gpu", "gpu-pool", "gpu-file")


def main():
    part, *rest = sys.argv[1:] or [""]
    if part in groups and len(rest) == 4:
        facts, ratios = (json.loads(Path(path).read_text()) for path in rest[:2])
        stem = (gpu_stem if "gpu" in part else cpu_stem)(facts)
        kind = {"gpu": "ratios"}.get(part, part.removeprefix("gpu-"))
        store(rest[3], facts, f"{stem}-{kind}", report_ratios(facts, Path(rest[2]).read_text()), {"ratios": ratios})
        return 0
    if part == "compile" and len(rest) == 4:
        facts, seconds = (json.loads(Path(path).read_text()) for path in rest[:2])
        store(rest[3], facts, f"{cpu_stem(facts)}-compile", report_compile(facts, Path(rest[2]).read_text()),
              {"compile": seconds})
        return 0
    if part == "cxx" and len(rest) == 4:
        facts, samples = (json.loads(Path(path).read_text()) for path in rest[:2])
        store(rest[3], facts, f"{cpu_stem(facts)}-cxx", report_cxx(facts, Path(rest[2]).read_text()), {"cxx": samples})
        return 0
    if part == "traces" and len(rest) == 4:
        facts, traces = (json.loads(Path(path).read_text()) for path in rest[:2])
        stem = (gpu_stem if "GPU" in facts else cpu_stem)(facts)
        store(rest[3], facts, f"{stem}-traces", report_traces(facts, Path(rest[2]).read_text()), {"traces": traces})
        return 0
    if part == "bw" and len(rest) == 4:
        facts, turns = (json.loads(Path(path).read_text()) for path in rest[:2])
        store(rest[3], facts, f"{gpu_stem(facts)}-bw", report_bw(facts, Path(rest[2]).read_text()), {"bw": turns})
        return 0
    if part == "kernels" and len(rest) == 3:
        facts, text = json.loads(Path(rest[0]).read_text()), Path(rest[1]).read_text()
        store(rest[2], facts, f"{gpu_stem(facts)}-kernels", report_ratios(facts, text), {"kernels": read_kernels(text)})
        return 0
    if part == "calls" and len(rest) == 3:
        facts, bench = (json.loads(Path(path).read_text()) for path in rest[:2])
        runs, errors = read_runs(bench)
        seconds = {name: [float(f"{s:.5g}") for s in samples] for name, samples in runs.items()}
        store(rest[2], facts, f"{cpu_stem(facts)}-calls", report_calls(facts, bench["context"], runs, errors),
              {"context": bench["context"], "seconds": seconds, "errors": errors})
        return 1 if errors else 0
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
