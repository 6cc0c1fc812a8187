#!/usr/bin/env python3
"""Tests the examples as a user runs them.

    run.py BUILD_DIR_OF_EXAMPLES [NAME ...]

BUILD_DIR_OF_EXAMPLES holds the programs stage, hello, persist, connect, laplace, add_index,
blocks and halo.
NAMEs choose tests, as of unittest: npy_files, npy_files.BadFiles, ... NumPy is needed; UMEM_PYTHON may
name a Python that has it. Each test is a line "ok - NAME" or "not ok - NAME", the last line is "N passed, N failed"; the
exit code is 0 if none failed, else 1.
"""

import os
import sys
import unittest

MODULES = ["main_job", "output_file", "npy_files", "small_programs", "run_command"]


def use_chosen_python():
    """Goes on in the Python that UMEM_PYTHON names, if that is another one."""
    chosen = os.environ.pop("UMEM_PYTHON", None)
    if chosen:
        os.execvp(chosen, [chosen, os.path.abspath(__file__), *sys.argv[1:]])


class Lines(unittest.TestResult):
    """Tells each test by a line, and what went wrong after it."""

    def __init__(self):
        super().__init__()
        self.failed = 0

    def stopTest(self, test):
        super().stopTest(test)
        self.tell(test.id())

    def tell(self, name):
        reports = self.failures + self.errors
        if reports:
            self.failed += 1
        print(f"{'not ok' if reports else 'ok'} - {name}", flush=True)
        for case, report in reports:
            print(f"{case}\n{report}", flush=True)
        self.failures.clear()
        self.errors.clear()


def main():
    if len(sys.argv) < 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    os.environ["UMEM_EXAMPLES"] = os.path.abspath(sys.argv[1])
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    result = Lines()
    unittest.defaultTestLoader.loadTestsFromNames(sys.argv[2:] or MODULES).run(result)
    if result.failures or result.errors:
        result.tell("preparation")  # of a whole class
    print(f"{result.testsRun - result.failed} passed, {result.failed} failed")
    sys.exit(1 if result.failed or not result.testsRun else 0)


if __name__ == "__main__":
    use_chosen_python()
    main()
