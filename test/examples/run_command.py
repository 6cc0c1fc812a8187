"""The command examples/run, from a copy of the sources to a table."""

import os
import pathlib
import shutil
import tempfile

import numpy

from support import BAD_INPUT, CELL, IDENTICAL, NOT_BUILT, ROOT, InFolder, table

RUN = ROOT / "examples/run"

# What Debian and Ubuntu always have, as far as examples/run uses it.
ALWAYS_THERE = ["bash", "env", "dirname", "mkdir", "cat", "nproc", "sh", "tail"]

# What apt-get brings.
TOOLS = ["cc", "gcc", "as", "ld", "ar", "ranlib", "make", "cmake"]

APT_GET = """#!/bin/bash
echo "$*" >>"{log}"
case "$1" in install) {cp} -P "{tools}"/* "{bin}" ;; esac
"""

SUDO = """#!/bin/bash
exec "$@"
"""

# To optimise the loops over numbers takes as long as half of the rest.
CMAKE = """#!/bin/bash
[ "$1" != -S ] || set -- "$@" -DUMEM_LOOPS_OPTIMISATION=-O0
exec {cmake} "$@"
"""


def link_all(names, folder):
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(os.path.realpath(shutil.which(name)))


def write_script(path, text):
    path.write_text(text)
    path.chmod(0o755)


class RunCommand(InFolder):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix=f"umem-test-{os.getpid()}-")
        cls.addClassCleanup(folder.cleanup)
        cls.shared = pathlib.Path(folder.name)

    def setUp(self):
        super().setUp()
        for name in ["CC", "CFLAGS", "LDFLAGS"]:
            self.env.pop(name, None)
        self.env["UMEM_BUILD_DIR"] = str(self.shared / "build")
        self.env["CMAKE_BUILD_TYPE"] = "Debug"  # compiles in half of the time

    def make_fresh_machine(self, folder=None):
        """A PATH without compiler, make and CMake, and an apt-get that brings them; below folder."""
        folder = folder or self.folder
        names = {
            "log": folder / "apt.log",
            "tools": folder / "tools",
            "bin": folder / "bin",
            "cp": shutil.which("cp"),
        }
        link_all(ALWAYS_THERE, names["bin"])
        link_all(TOOLS, names["tools"])
        (names["tools"] / "cmake").unlink()
        write_script(names["tools"] / "cmake", CMAKE.format(cmake=os.path.realpath(shutil.which("cmake"))))
        write_script(names["bin"] / "apt-get", APT_GET.format(**names))
        write_script(names["bin"] / "sudo", SUDO)
        self.env["PATH"] = str(names["bin"])
        return names

    def test_a_fresh_machine(self):
        """The tests after this one use what it has built, and the compiler that its build folder names."""
        self.assertFalse((self.shared / "build").exists())
        machine = self.make_fresh_machine(self.shared)
        done = self.call(RUN)
        self.assertEqual(done.returncode, IDENTICAL, done.stderr)
        self.assertEqual(
            machine["log"].read_text().splitlines(),
            ["update -q", "install -y -q --no-install-recommends gcc libc6-dev make cmake"],
        )
        self.assertIn("examples/run: installing gcc libc6-dev make cmake\n", done.stderr)
        self.assertEqual({row[5] for row in table(done.stdout)}, {"yes"})
        array = numpy.load(self.shared / "build/staged.npy")
        self.assertGreaterEqual(array.nbytes, 64 << 20)
        self.assertTrue((array == numpy.load(CELL)).all())
        self.assertIn("examples/run: the array: 185 copies of a measured image of a cell", done.stderr)
        self.assertIn("185 x 660 x 550 elements of type |u1, 67155000 bytes", done.stdout)
        self.assertRegex(done.stderr, r"what next: .*\n.*\n$")

    def test_only_what_is_missing_is_installed(self):
        machine = self.make_fresh_machine()
        for name in TOOLS:
            if name != "cmake":
                shutil.copy(machine["tools"] / name, machine["bin"] / name, follow_symlinks=False)
        write_script(machine["bin"] / "apt-get", f'#!/bin/bash\necho "$*" >>"{machine["log"]}"\nexit 1\n')
        done = self.call(RUN)
        self.assertEqual(done.returncode, NOT_BUILT)
        self.assertIn("could not install cmake\n", done.stderr)
        self.assertTrue(machine["log"].read_text().endswith(" cmake\n"))

    def test_a_machine_without_apt(self):
        machine = self.make_fresh_machine()
        (machine["bin"] / "apt-get").unlink()
        done = self.call(RUN)
        self.assertEqual(done.returncode, NOT_BUILT)
        self.assertIn("please install what these Debian packages hold: gcc libc6-dev make cmake", done.stderr)

    def test_files_of_the_user(self):
        """Names are relative to where the user stands; spaces do not matter; exit codes come through."""
        shutil.copy(CELL, self.folder / "my data.npy")
        done = self.call(RUN, "my data.npy", "my copy.npy")
        self.assertEqual(done.returncode, IDENTICAL, done.stderr)
        self.assertNotIn("installing", done.stderr)
        self.assertNotIn("the array:", done.stderr)
        self.assertEqual((self.folder / "my copy.npy").read_bytes(), CELL.read_bytes())

        (self.folder / "bad.npy").write_bytes(CELL.read_bytes()[:-1])
        done = self.call(RUN, "bad.npy")
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn("stage: bad.npy: it is truncated", done.stderr)

        os.mkfifo(self.folder / "pipe")
        done = self.call(RUN, CELL, "pipe")
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn('stage: "pipe" is a pipe (FIFO), ', done.stderr)

    def test_python(self):
        folder = self.folder / "python"
        folder.mkdir()
        for answer, line in (("exit 1", "left out: Python, which has no umem"), ("echo Python: fine", "Python: fine")):
            write_script(folder / "python3", f"#!/bin/sh\n{answer}\n")
            done = self.call(RUN, CELL, env={**self.env, "PATH": f"{folder}:{self.env['PATH']}"})
            self.assertEqual(done.returncode, IDENTICAL, done.stderr)
            self.assertIn(f"examples/run: {line}", done.stderr)

    def test_usage(self):
        for arguments in [("a", "b", "c"), ("--no-such-option",), ("--help", "a")]:
            done = self.call(RUN, *arguments)
            self.assertEqual(done.returncode, BAD_INPUT)
            self.assertIn("usage: examples/run", done.stderr)

    def test_help(self):
        for option in ["--help", "-h"]:
            done = self.call(RUN, option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = done.stdout.splitlines()
            self.assertRegex(lines[0], "^Copies an array to every storage")
            self.assertIn("  examples/run [FILE.npy [OUTPUT.npy]]", lines)
            self.assertNotIn("set -euo pipefail", done.stdout)

    def test_a_build_that_fails_says_so(self):
        self.env["UMEM_BUILD_DIR"] = str(self.folder / "build")
        self.env["CFLAGS"] = "-no-such-option"
        done = self.call(RUN)
        self.assertEqual(done.returncode, NOT_BUILT)
        self.assertIn("no-such-option", done.stderr)
        self.assertIn("examples/run: failed: cmake", done.stderr)
