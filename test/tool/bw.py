#!/usr/bin/env python3
"""umem bw. Usage: bw.py UMEM UMEM_WITH_DOUBLE_OF_CUDA FOLDER_OF_DOUBLE_OF_DRIVER"""
import json
import os
import pty
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import unittest
import unittest.mock
from pathlib import Path

from program import UMEM, Case, closed_pipe, main

GPU_UMEM, DRIVER = (os.path.abspath(path) for path in sys.argv[2:4])
DOUBLE = {"program": GPU_UMEM, "env": {**os.environ, "LD_LIBRARY_PATH": DRIVER}}
EXAMPLES = Path(__file__).resolve().parents[2] / "doc/examples/tool"
RAM = ["host:", "shm:", "file:", "mmap:"]
SMALL = ["--size", "64K"]


class Bandwidth(Case):
    def cell(self, *words, expect=0, **options):
        cells = json.loads(self.out("bw", *words, "--json", expect=expect, **options))["cells"]
        self.assertEqual(len(cells), 1)
        return cells[0]

    def reason(self, *words, **options):
        cell = self.cell(*words, expect=1, **options)
        self.assertIsNone(cell["bytes_per_second"])
        self.assertEqual(cell["samples"], [])
        return cell["reason"]

    def test_a_pair(self):
        lines = self.out("bw", "host:", "file:", *SMALL).splitlines()
        self.assertRegex(lines[0], "^from +to +GB/s +route$")
        self.assertRegex(lines[1], r"^host: +file: +\d+\.\d\d  host -> .*file$")
        self.assertEqual(len(lines), 2)

    def test_json(self):
        result = json.loads(self.out("bw", "shm:", "host:", "--size", "1M", "--threads", "1", "--json"))
        self.assertEqual([result[key] for key in ("size", "warmups", "copies", "repeats", "threads", "latency", "cold", "verified")],
                         [1 << 20, 4, 16, 3, 1, False, False, False])
        cell = result["cells"][0]
        self.assertEqual((cell["source"], cell["destination"], cell["route"], cell["reason"]), ("shm:", "host:", "shm -> host", ""))
        self.assertEqual(cell["seconds"], sorted(cell["samples"])[1])
        self.assertEqual(len(cell["samples"]), 3)
        self.assertAlmostEqual(cell["bytes_per_second"] * cell["seconds"], 1 << 20, delta=1)

    def test_all(self):
        out = self.out("bw", "--all", *SMALL)
        matrix, pairs = out.split("\n\n")[:2]
        heads = re.findall(r"to (\S+)", matrix.splitlines()[0])
        self.assertLessEqual({*RAM, "cuda:0"}, set(heads))
        self.assertEqual([line.split()[0] for line in matrix.splitlines()[1:]], heads)
        self.assertGreaterEqual(len(pairs.splitlines()), 1 + len(RAM) ** 2)
        result = json.loads(self.out("bw", "--all", "--json", "--verify", *SMALL))
        self.assertTrue(result["verified"])
        cells = {(cell["source"], cell["destination"]): cell for cell in result["cells"]}
        self.assertEqual(len(cells), len(heads) ** 2)
        for source in RAM:
            for destination in RAM:
                self.assertGreater(cells[source, destination]["bytes_per_second"], 0)
                self.assertIn(" -> ", cells[source, destination]["route"])
        for cell in cells.values():
            self.assertNotEqual(cell["bytes_per_second"] is None, cell["reason"] == "")

    def test_without_a_gpu(self):
        if not self.cell_of_gpu():
            done = self.run_umem("bw", "host:", "cuda:0", *SMALL, expect=1)
            self.assertRegex(done.stdout, r"host: +cuda:0 +N/A  \w+")
            self.assertTrue(done.stderr.startswith("umem: host: -> cuda:0: "))
            reasons = [line for line in self.out("bw", "--all", *SMALL).splitlines() if line.startswith("N/A")]
            self.assertTrue(any(line.startswith("N/A  cuda:0: ") for line in reasons))
            self.assertEqual(len(reasons), len(set(reasons)))

    def cell_of_gpu(self):
        done = subprocess.run([UMEM, "info", "cuda:0"], capture_output=True, check=False)
        return done.returncode == 0

    def test_latency(self):
        self.assertRegex(self.out("bw", "host:", "host:", "--latency"), r"^from +to +us +route\nhost: +host: +\d+\.\d\d")
        result = json.loads(self.out("bw", "file:", "shm:", "--latency", "--json", "--size", "4K"))
        self.assertEqual((result["size"], result["copies"], result["latency"]), (4096, 256, True))
        self.assertLess(result["cells"][0]["seconds"], 1)

    def test_cold(self):
        result = json.loads(self.out("bw", "file:.", "host:", "--cold", "--json", "--size", "1M"))
        self.assertTrue(result["cold"])
        self.assertGreater(result["cells"][0]["seconds"], 0)

    def test_verify(self):
        for source in *RAM, "pool+host:", "file:.?direct=off", "log+host:?file=x.log":
            self.assertEqual(self.cell(source, "host:", "--verify", "--size", "1048583")["reason"], "")
        # a context that loses bytes: all sets and copies but the first ones fail
        self.assertIn("fault", self.reason("host:", "fault+host:?calls=copy-to,copy-from&nth=3", "--verify", *SMALL).lower())

    def open_file_of(self, pid):
        """A descriptor of the nameless file that this umem bw measures; None if it has none."""
        try:
            for link in Path(f"/proc/{pid}/fd").iterdir():
                if "umem-bw-" in os.readlink(link):
                    return os.open(link, os.O_RDWR)
        except OSError:  # it ends
            pass
        return None

    def test_verification_finds_a_byte_that_differs(self):
        child = subprocess.Popen([UMEM, "bw", "file:.", "host:", "--latency", "--size", "4M", "--verify"], cwd=self.folder,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while child.poll() is None:  # the source changes again and again, at last when it has been written
            file = self.open_file_of(child.pid)
            if file is not None:
                os.pwrite(file, b"xy", 1000)
                os.close(file)
            time.sleep(0.001)
        out, error = child.communicate()
        self.assertEqual(child.returncode, 1)
        self.assertRegex(error, r"^umem: file:\. -> host:: verification failed: byte 100[01] of the copy differs$")
        self.assertRegex(out, r"N/A  verification failed")

    def test_layers_and_options(self):
        for name in "stats+file:.", "pool+shm:?size=8M", "mmap:.?reserve=none", "host:?policy=first-touch":
            self.assertGreater(self.cell("host:", name, *SMALL)["bytes_per_second"], 0)
            self.assertGreater(self.cell(name, name, *SMALL)["bytes_per_second"], 0)

    def test_files_of_others_stay(self):
        (self.folder / "a.bin").write_bytes(b"old")
        for name in "file:a.bin", "mmap:a.bin", "file:a.bin?mode=w", "stats+file:a.bin", "log+host:?file=a.bin":
            self.assertIn("a.bin exists", self.reason("host:", name, *SMALL))
        self.assertIn("only segments that it makes", self.reason(f"shm:umem-bw-{os.getpid()}?size=1M", "host:", *SMALL))
        self.out("bw", "host:", "file:new.bin", *SMALL)
        self.out("bw", "file:.", "mmap:.", *SMALL)
        self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, {"a.bin": b"old"})

    def test_what_cannot_be_measured(self):
        none = {"env": {**os.environ, "TMPDIR": str(self.folder / "none")}}
        self.assertIn("No such file", self.reason("host:", "file:", *SMALL, **none))
        self.assertIn("No such file", self.reason("host:", "file:none/x", *SMALL))
        self.assertIn("no scheme", self.reason("what:", "host:", *SMALL))
        self.assertTrue(self.reason("host:", "limit+host:?limit=1K", *SMALL))
        self.assertTrue(self.reason("host:", "shm:?size=1M", "--size", "4M"))
        self.assertTrue(json.loads(self.out("bw", "--all", "--json", *SMALL, **none))["cells"])

    def test_too_little_memory(self):
        self.assertRegex(self.reason("host:", "shm:", "--size", "64T"), "takes 128 TiB of RAM, and .* are available")
        for size in "8388608T", "16777215T":
            self.assertTrue(self.reason("host:", "host:", "--size", size))

    def test_too_little_address_space(self):
        if not os.path.isdir(DRIVER):
            self.skipTest("sanitizers need more address space")
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))  # noqa: E731
        self.assertTrue(self.reason("host:", "host:", "--size", "400M", preexec_fn=limit))
        self.assertEqual(self.cell("host:", "host:", *SMALL, preexec_fn=limit)["reason"], "")

    def test_a_full_disk(self):
        mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
        script = ('mount -t tmpfs -o size=1m none disk || exit 99; TMPDIR=disk "$0" bw host: file: --size 4M --json; s=$?; '
                  'TMPDIR=disk "$0" bw host: "mmap:?reserve=none" --size 4M > mmap.txt; ls -A disk; exit $s')
        (self.folder / "disk").mkdir()
        done = subprocess.run([*mount, script, UMEM], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode == 99 or "unshare" in done.stderr:
            self.skipTest("no file system can be mounted here")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(json.loads(done.stdout)["cells"][0]["reason"], "space|free")
        self.assertIn("N/A", (self.folder / "mmap.txt").read_text())

    def test_wrong_use(self):
        for words, why in [([], "FROM and TO"), (["host:"], "FROM and TO"), (["host:", "host:", "--all"], "or --all"),
                           (["--nvbandwidth", "host:", "host:"], "--nvbandwidth"), (["--nvbandwidth", "--cold"], "--nvbandwidth"),
                           (["host:", "host:", "--size", "1X"], "not a size"), (["host:", "host:", "--size", "0"], "at least one byte"),
                           (["host:", "host:", "--size", ""], "not a size"), (["host:", "host:", "--threads", ""], "threads"),
                           (["host:", "host:", "--threads", "2000"], "2000"), (["host:", "host:", "--threads", "x"], "threads"),
                           (["host:", "host:", "x"], "x")]:
            self.assertIn(why, self.error("bw", *words, expect=2), words)

    def test_an_interrupt_ends_it(self):
        terminal, side = pty.openpty()
        child = subprocess.Popen([UMEM, "bw", "host:", "host:", "--size", "32M", "--latency"], stdout=subprocess.PIPE,
                                 stderr=side, cwd=self.folder)
        os.close(side)
        shown = os.read(terminal, 1000)
        self.assertIn(b"1 of 1: host: -> host:", shown)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.communicate()[0], b"")
        self.assertEqual(child.returncode, 130)
        self.assertIn(b"interrupted", os.read(terminal, 1000))
        os.close(terminal)

    def test_terminals(self):
        wide = self.on_terminal_out(200, "bw", "host:", "shm:", *SMALL)
        self.assertRegex(wide, r"^from +to +GB/s +route\nhost: +shm: ")
        narrow = self.on_terminal_out(15, "bw", "host:", "shm:", *SMALL)
        self.assertRegex(narrow, r"^from: host:\nto: shm:\nGB/s: \d+\.\d\d\nroute: host ->\n  shm\n$")
        self.assertNotIn("\x1b[2J", self.on_terminal(100, "bw", "host:\x1b[2J", "host:", expect=1))
        with unittest.mock.patch.dict(os.environ, {"LC_ALL": "C.UTF-8"}):  # no half character
            self.assertIn("1 of 1: host:\u00e4\u00e4\u00e4\r", self.on_terminal(17, "bw", "host:" + 9 * "\u00e4", "host:", expect=1))
        for columns in 10, 100:
            for part in re.split("\r\x1b\\[K", self.on_terminal(columns, "bw", "host:", "shm:", *SMALL)):
                self.assertLess(len(part), columns)
        self.assertEqual(self.run_umem("bw", "host:", "shm:", *SMALL).stderr, "")
        self.assertNotIn("\x1b", self.out("bw", "host:", "what\x1b[2J", expect=1, *SMALL))

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertIn("No space", self.error("bw", "host:", "host:", *SMALL, stdout=full))
        pipe = closed_pipe()
        self.assertEqual(self.error("bw", "host:", "host:", "--json", *SMALL, stdout=pipe, expect=141), "")
        os.close(pipe)

    def test_gpus_of_the_double(self):
        result = json.loads(self.out("bw", "--all", "--json", "--verify", *SMALL, **DOUBLE))
        cells = {(cell["source"], cell["destination"]): cell for cell in result["cells"]}
        for pair in [("host:", "cuda:0"), ("cuda-host:", "cuda:1"), ("cuda:0", "cuda:1"), ("cuda:2", "file:"),
                     ("cuda-async:1", "cuda-host:"), ("cuda-managed:0", "cuda:0"), ("cuda:0", "cuda:0")]:
            self.assertEqual(cells[pair]["reason"], "")
        self.assertRegex(cells["cuda-host:", "cuda:1"]["route"], "^cuda-host.* -> cuda:1$")
        self.assertIn("GPU", self.reason("cuda:7", "host:", *SMALL, **DOUBLE))
        self.assertGreater(self.cell("cuda-async:0", "host:", "--latency", **DOUBLE)["seconds"], 0)

    def test_nvbandwidth(self):
        result = json.loads(self.out("bw", "--nvbandwidth", "--size", "1M", "--verify", **DOUBLE))["nvbandwidth"]
        self.assertGreater(result["CUDA Runtime Version"], 12000 if os.path.isdir(DRIVER) else -1)
        self.assertIs(type(result["Driver Version"]), str)
        devices = result["GPU Device list"]
        self.assertEqual(len(devices), 3)
        if os.path.isdir(DRIVER):
            for number, device in enumerate(devices):
                self.assertRegex(device, rf"^{number}: \S.* \([0-9a-f]{{8}}:[0-9a-f]{{2}}:[0-9a-f]{{2}}\): \({re.escape(socket.gethostname())}\)$")
        tests = {test["name"]: test for test in result["testcases"]}
        self.assertEqual(list(tests), ["host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce",
                                       "device_to_device_memcpy_write_ce", "device_local_copy"])
        for name, test in tests.items():
            self.assertEqual(test["status"], "Passed")
            self.assertTrue(test["bandwidth_description"].endswith("bandwidth (GB/s)"))
            matrix = test["bandwidth_matrix"]
            self.assertEqual((len(matrix), len(matrix[0])), (3, 3) if "to_device_memcpy_" in name and "host" not in name else (1, 3))
            speeds = [float(cell) for row in matrix for cell in row if cell != "N/A"]
            self.assertEqual(len(speeds), 6 if len(matrix) == 3 else 3)
            self.assertAlmostEqual(sum(speeds), test["sum"], delta=1e-3 * test["sum"])

    def test_nvbandwidth_without_a_gpu(self):
        if not self.cell_of_gpu():
            result = json.loads(self.out("bw", "--nvbandwidth"))["nvbandwidth"]
            self.assertTrue(result["error"])
            self.assertEqual(result["testcases"], [])

    def test_the_commands_of_the_page(self):
        (self.folder / "bin").mkdir()
        (self.folder / "bin/umem").symlink_to(UMEM)
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        done = subprocess.run([EXAMPLES / "bw.sh"], cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout[done.stdout.index("{"):])
        shown = json.loads((EXAMPLES / "bw.json").read_text())
        self.assertEqual(list(result), list(shown))
        self.assertEqual(list(result["cells"][0]), list(shown["cells"][0]))


if __name__ == "__main__":
    main()
