#!/usr/bin/env python3
"""Shows that cuda_symbols.py fails: a small library breaks each rule in turn. Needs cc and ar."""
import subprocess
import sys
import tempfile
from pathlib import Path

import cuda_symbols
from report import Report

TABLE = "int cudaMalloc(void **, unsigned long);\nint f(void **p) { return cudaMalloc(p, 1); }\n"
PLAIN = "int g(void) { return 0; }\n"
SEARCH = "void *dlsym(void *, char const *);\nvoid *s(void) { return dlsym(0, \"cuFileRead\"); }\n"
GOOD = {"cuda_rt.c": TABLE, "cuda_driver.c": SEARCH, "copy.c": "int umemCuda_h(void);\nint cut(void);\n"
                                                "int g(void) { return umemCuda_h() + cut(); }\n"}

# (what is wrong, the library, the build that it is said to be, how many checks fail)
BAD = [
    ("a call of the runtime", {**GOOD, "cuda.c": "int cudaFree(void *);\nint h(void) { return cudaFree(0); }\n"},
     "with", 1),
    ("the address of a function of the runtime",
     {**GOOD, "copy.c": "int cudaFree(void *);\nint (*h)(void *) = cudaFree;\n"}, None, 1),
    ("a call of the driver", {**GOOD, "copy.c": "int cuInit(int);\nint h(void) { return cuInit(0); }\n"},
     "with", 1),
    ("a search for symbols", {**GOOD, "cuda.c": "void *dlsym(void *, char const *);\n"
                                                      "void *h(void) { return dlsym(0, \"cudaFree\"); }\n"},
     "with", 1),
    ("a call of cuFile", {**GOOD, "cuda_driver.c": "int cuFileDriverOpen(void);\nint h(void) { return cuFileDriverOpen(); }\n"},
     "with", 1),
    ("no table", {"copy.c": PLAIN, "host.c": PLAIN.replace("g", "h")}, None, 1),
    ("a table without CUDA", {**GOOD, "cuda_rt.c": PLAIN.replace("g", "f")}, "with", 1),
    ("a table with CUDA", GOOD, "without", 1),
    ("a table of a default stream per thread",
     {**GOOD, "cuda_rt.c": TABLE + "int cudaMemcpy_ptds(void);\nint g2(void) { return cudaMemcpy_ptds(); }\n"},
     "with", 1),
]


class Counted(Report):
    """Counts without printing."""

    def check(self, name, problems):
        self.failed += bool(problems)


def failures(sources, build):
    """How many checks fail for a library of these sources."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            Path(folder, name).write_text(text)
            subprocess.run(["cc", "-c", name, "-o", f"{name}.o"], cwd=folder, check=True)
        subprocess.run(["ar", "rcs", "libumem.a", *(f"{name}.o" for name in sources)],
                       cwd=folder, check=True)
        report = Counted()
        cuda_symbols.check(report, Path(folder, "libumem.a"), build)
        return report.failed


def main():
    report = Report()
    count = failures(GOOD, "with")
    report.check("the good library passes", [f"{count} checks failed"] if count else [])
    for wrong, sources, build, expected in BAD:
        count = failures(sources, build)
        report.check(f"cuda symbols: fails for {wrong}",
                     [] if count == expected else [f"{count} checks failed, not {expected}"])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
