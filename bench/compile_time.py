#!/usr/bin/env python3
"""Measures how long a file takes to compile that includes a header, compared with one that includes <vector>.

Usage: compile_time.py [--quick | --once] [--json FILE] ROOT

Compiles with g++ and clang++, if they are installed, as C++17 with -O0 and with -O2; umem/mdspan.hpp is
left out where there is no mdspan, and Eigen/Core, a header to compare with, where there is no Eigen. All files are
compiled in turns, seven times after a round that is not counted, so that a noisy machine is noisy to all of them;
--quick: once, with -O0; --once: the same, but only one compiler and no header alone except <vector>. What counts is the
compiler's time on the processor, user and system. Where the CUDA toolkit is, nvcc compiles a program with one reduction
and an empty one, three times. Prints the medians, and with --json writes every sample.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COMPILERS = ("g++", "clang++")
LEVELS = ("-O0", "-O2")
BESIDE = "<vector>"
HEADERS = (
    "vector", "string", "memory", "functional", "thread", "umem.h", "umem.hpp", "umem/view.hpp",
    "umem/context.hpp", "umem/array.hpp", "umem/for_each.hpp", "umem/memory_resource.hpp", "umem/sweep.hpp",
    "umem/reduce.hpp", "umem/reduce_along.hpp", "umem/reductions.hpp", "umem/fill_ghosts.hpp", "umem/npy.hpp",
    "umem/npy_c_array.hpp", "umem/compare.hpp",
    "umem/print.hpp", "umem/mdspan.hpp", "Eigen/Core",
)  # fmt: skip
LOOP_OVER_VECTOR = """
#include <vector>

double sum(std::vector<double> const &u) {
  double result = 0;
  for (double value : u) result += value;
  return result;
}
std::vector<double> filled() { return std::vector<double>(51 * 51, 1.0); }
"""
LOOP_OVER_ARRAY = """
#include <umem.hpp>

double sum(umem::Array<double, 2> const &array) {
  auto u = array.host(umem::read);
  double result = 0;
  for (umem::index_t i = 0; i < u.extent(0); i++)
    for (umem::index_t j = 0; j < u.extent(1); j++) result += u(i, j);
  return result;
}
umem::Array<double, 2> filled() {
  umem::Array<double, 2> array({51, 51});
  umem::fill(array, 1.0);
  return array;
}
"""
REDUCTION = """
#include <umem.hpp>
#include <umem/reductions.hpp>
#include <cstdio>

int main() {
  auto x = umem::Array<double, 1>::full({1000}, 1);
  std::printf("%g\\n", umem::sum(x));
}
"""
KERNELS = {BESIDE: "#include <vector>\nint main() {}\n", "a program with one reduction": REDUCTION}


def inclusion(*headers):
    return "".join(f"#include <{header}>\n" for header in headers)


def standard_headers(root, header, seen):
    """The headers of the standard library that a header of umem, and those that it includes, include; seen
    is a set that grows by the headers of umem."""
    seen.add(header)
    found = set()
    for name in re.findall(r"^ *#include <([\w./]+)>", (root / "cxx/include" / header).read_text(), re.MULTILINE):
        if re.fullmatch(r"[a-z_]+", name):
            found.add(name)
        elif (root / "cxx/include" / name).exists() and name not in seen:
            found |= standard_headers(root, name, seen)
    return found


def sources(root):
    """{name: text}"""
    program = (Path(__file__).parent / "compile_program.cpp").read_text()
    return {
        **{f"<{header}>": inclusion(header) for header in HEADERS},
        "the std headers of umem.hpp": inclusion(*sorted(standard_headers(root, "umem.hpp", set()))),
        "a program with std::vector": LOOP_OVER_VECTOR,
        "a program with umem::Array": LOOP_OVER_ARRAY,
        "a program of 70 lines": program,
        "the same, umem::cxx_compiled": "#define UMEM_COMPILED\n" + program,
    }


def find_nvcc():
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def include_flags(root):
    """umem's headers, and those of the CUDA toolkit that have an mdspan for C++17."""
    nvcc = find_nvcc()
    toolkit = Path(nvcc).resolve().parents[1] if nvcc else Path("/usr/local/cuda")
    cccl = [path for path in (toolkit / "include/cccl", toolkit / "include") if (path / "cuda/std/mdspan").exists()]
    others = [path for path in (Path("/usr/include/eigen3"), Path("/usr/local/include/eigen3")) if path.exists()]
    return [f"-I{root}/cxx/include", f"-I{root}/c/include", *(f"-isystem{path}" for path in cccl[:1] + others[:1])]


def seconds_of(command):
    """The time on the processor that command takes. It must succeed."""
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return usage.ru_utime + usage.ru_stime


def preprocessed_lines(compiler, flags, path):
    """Lines that the compiler reads, those of all included files together."""
    text = subprocess.run([compiler, "-E", *flags, path], capture_output=True, text=True, check=True).stdout
    return sum(bool(line.strip()) and not line.startswith("#") for line in text.splitlines())


# What is looked for before a header counts as there.
OPTIONAL = {
    "<umem/mdspan.hpp>": "#include <umem/mdspan.hpp>\n#if !UMEM_HAS_MDSPAN\n#error none\n#endif\n",
    "<Eigen/Core>": "#if !__has_include(<Eigen/Core>)\n#error none\n#endif\n",
}


def is_there(text, compiler, flags, folder):
    path = folder / "is_there.cpp"
    path.write_text(text)
    return not subprocess.run([compiler, "-fsyntax-only", *flags, path], capture_output=True, check=False).returncode


def measure(compiler, level, flags, texts, folder, rounds):
    """{source: {"lines": of all files, "seconds": [of each round]}}. Rounds before 0 do not count."""
    paths = {}
    for number, (name, text) in enumerate(texts.items()):
        if name in OPTIONAL and not is_there(OPTIONAL[name], compiler, flags, folder):
            continue
        paths[name] = folder / f"source_{number}.cpp"
        paths[name].write_text(text)
    results = {name: {"lines": preprocessed_lines(compiler, flags, path), "seconds": []}
               for name, path in paths.items()}
    names = list(paths)
    for a_round in rounds:
        for name in names[a_round % len(names):] + names[: a_round % len(names)]:
            seconds = seconds_of([compiler, level, *flags, "-c", paths[name], "-o", folder / "object.o"])
            if a_round >= 0:
                results[name]["seconds"].append(round(seconds, 4))
    return results


def quantile(values, part):
    return statistics.quantiles(values, n=10, method="inclusive")[part - 1] if len(values) > 1 else values[0]


def table(title, results):
    yield title
    yield f"  {'source':<28} {'lines':>7} {'median':>8} {'10 to 90 %':>17} {'beside ' + BESIDE:>16}"
    for name, result in results.items():
        seconds = result["seconds"]
        ratio = statistics.median(own / other for own, other in zip(seconds, results[BESIDE]["seconds"]))
        spread = f"{quantile(seconds, 1):.3f} to {quantile(seconds, 9):.3f} s"
        yield f"  {name:<28} {result['lines']:>7} {statistics.median(seconds):>6.3f} s {spread:>17} {ratio:>15.1f}x"
    yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true")
    effort.add_argument("--once", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("root", type=Path)
    wishes = parser.parse_args()
    flags = ["-std=c++17", *include_flags(wishes.root)]
    levels, rounds = (LEVELS[:1], range(1)) if wishes.quick or wishes.once else (LEVELS, range(-1, 7))
    compilers, texts = list(filter(shutil.which, COMPILERS)), sources(wishes.root)
    if wishes.once:
        compilers = compilers[:1]
        texts = {name: text for name, text in texts.items() if name == BESIDE or not name.startswith("<")}
    all_results = {}
    with tempfile.TemporaryDirectory() as folder:
        for compiler in compilers:
            version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
            for level in levels:
                title = f"{version.stdout.splitlines()[0]}, -std=c++17 {level}"
                all_results[title] = measure(compiler, level, flags, texts, Path(folder), rounds)
                print("\n".join(table(title, all_results[title])), flush=True)
        if nvcc := not wishes.once and find_nvcc():
            version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
            title = f"{version.splitlines()[-2]}, -std=c++17 -O2"
            flags = ["-x", "cu", "-std=c++17", f"-I{wishes.root}/cxx/include", f"-I{wishes.root}/c/include"]
            all_results[title] = measure(nvcc, "-O2", flags, KERNELS, Path(folder), range(1 if wishes.quick else 3))
            print("\n".join(table(title, all_results[title])), flush=True)
    if not all_results:
        sys.exit(f"there is none of {', '.join(COMPILERS)}")
    if wishes.json:
        wishes.json.write_text(json.dumps(all_results))


if __name__ == "__main__":
    main()
