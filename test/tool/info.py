#!/usr/bin/env python3
"""umem info. Usage: info.py UMEM UMEM_WITH_DOUBLE_OF_CUDA FOLDER_OF_DOUBLE_OF_DRIVER"""
import json
import os
import re
import sys
import unittest
from pathlib import Path

from program import Case, closed_pipe, main

GPU_UMEM, DRIVER = (os.path.abspath(path) for path in sys.argv[2:4])
STORAGES = ["host:", "file:", "mmap:", "shm:", "cuda:0", "cuda-async:0", "cuda-host:", "cuda-managed:0"]
ADAPTORS = {"pool", "fixed", "limit", "stats", "track", "debug", "fault", "log", "guarded", "cuda-prefetch"}


class Info(Case):
    def all(self, *words, **options):
        return json.loads(self.out("info", "--json", *words, **options))

    def one(self, name, **options):
        return self.all(name, **options)["contexts"][0]

    def test_all_storages_are_listed(self):
        contexts = self.all()["contexts"]
        names = [context["name"] for context in contexts if not context["name"].startswith("host:?nodes=")]
        self.assertLessEqual(set(STORAGES), set(names))
        for context in contexts:
            self.assertIs(type(context["opens"]), bool)
            if context["opens"]:
                self.assertGreater(context["alignment"], 0)
                self.assertIn("copies to", context["capabilities"])
            else:
                self.assertTrue(context["reason"] and not context["reason"].startswith("umem_"), context)
        text = self.out("info")
        for name in STORAGES:
            self.assertRegex(text, rf"(?m)^{re.escape(name)}  (yes$|no: .)")

    def test_the_output_on_the_page(self):
        page = (Path(__file__).resolve().parents[2] / "doc/examples/tool/info.txt").read_text()
        heads = lambda text: set(re.findall(r"(?m)^    ([a-zA-Z/]+(?: [a-zA-Z/]+)*)  ", text))  # noqa: E731
        self.assertLessEqual(heads(page) - heads(self.out("info")), {"NUMA nodes"})

    def test_the_machine(self):
        machine = self.all()["machine"]
        self.assertEqual(machine["processors"], len(os.sched_getaffinity(0)))
        total = int(re.search(r"MemTotal: +(\d+)", Path("/proc/meminfo").read_text()).group(1)) * 1024
        self.assertTrue(0 < machine["available_ram"] <= total)
        self.assertTrue(machine["numa"])
        for fact in "direct_io", "cuda", "gpudirect_storage", "mpi":
            self.assertIn("detail" if machine[fact]["available"] else "reason", machine[fact])
        self.assertFalse(machine["mpi"]["available"])
        text = self.out("info")
        for head in "processors", "available RAM", "NUMA node", "locked memory", "direct I/O", "CUDA", "GPUDirect Storage", "MPI":
            self.assertRegex(text, rf"(?m)^    {head}  ?")

    def test_schemes(self):
        schemes = {scheme["name"]: scheme for scheme in self.all("--schemes")["schemes"]}
        self.assertEqual(schemes, {scheme["name"]: scheme for scheme in self.all()["schemes"]})
        self.assertLessEqual(ADAPTORS, {name for name, scheme in schemes.items() if scheme["adaptor"]})
        limit = schemes["limit"]["options"][0]
        self.assertEqual((limit["name"], limit["kind"], limit["required"]), ("limit", "size", True))
        self.assertIn("w+", next(option for option in schemes["file"]["options"] if option["name"] == "mode")["words"])
        self.assertIn("\nlimit+...:  ", self.out("info", "--schemes"))
        self.assertIn("takes no names", self.error("info", "--schemes", "host:", expect=2))

    def test_named_contexts(self):
        (self.folder / "a.bin").write_bytes(bytes(5000))
        file = self.one("file:a.bin")
        self.assertEqual((file["kind"], file["capacity"], file["path"]), ("File", 5000, "a.bin"))
        self.assertNotIn("copies to", file["capabilities"])
        pool = self.one("pool+stats+host:")
        self.assertEqual((pool["kind"], pool["over"]), ("Pool", ["Stats", "Host"]))
        self.assertEqual(self.one("shm:?size=1M")["capacity"], 1 << 20)
        self.assertIsNone(self.one("shm:")["capacity"])
        self.assertIn("capacity           4.883 KiB", self.out("info", "file:a.bin"))

    def test_what_cannot_be_opened(self):
        for name, why in [("what:", "no scheme"), ("file:none", "No such file"), ("host:?x=1", "x"), ("", ""),
                          (f"shm:umem-no-{os.getpid()}", "No such file")]:
            done = self.run_umem("info", "host:", name, expect=1)
            self.assertIn("host:  yes\n", done.stdout)
            self.assertRegex(done.stdout, rf"(?m)^{re.escape(name)}  no: .*{why}")
            self.assertIn("cannot be opened", done.stderr)
            self.assertFalse(json.loads(self.out("info", "--json", name, expect=1))["contexts"][0]["opens"])

    def test_nothing_is_changed(self):
        (self.folder / "a.bin").write_bytes(b"old")
        for name in "file:a.bin?mode=w", "mmap:a.bin?mode=w+", "file:new?mode=w":
            self.assertIn("only reads files", self.out("info", name, expect=1))
        for name in "log+host:?file=a.bin", "pool+log+host:?log.file=new&max=64K":
            self.assertIn("changes no file, and a layer writes", self.out("info", name, expect=1))
        self.assertIn("only opens segments", self.out("info", "shm:umem-x?how=create&size=1M", expect=1))
        self.out("info")
        self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, {"a.bin": b"old"})

    def test_folders_for_files_that_are_not_there(self):
        environment = {**os.environ, "TMPDIR": str(self.folder / "none")}
        self.assertIn("file:  no: ", self.out("info", env=environment))
        self.assertFalse(self.all(env=environment)["machine"]["direct_io"]["available"])

    def test_a_terminal_sees_no_control_characters(self):
        self.assertNotIn("\x1b", self.out("info", "file:x\x1b[2J", expect=1))

    def test_terminals(self):
        for columns in 30, 60, 200:
            for words, expect in ((), 0), (("host:", "what:"), 1), (("--schemes",), 0):
                lines = self.on_terminal_out(columns, "info", *words, expect=expect).splitlines()
                self.assertTrue(all(len(line) <= columns or " " not in line.strip() for line in lines), lines)
        self.assertIn("\n    kind               Host\n", self.on_terminal_out(60, "info", "host:"))
        self.assertIn("\n    kind\n        Host\n", self.on_terminal_out(30, "info", "host:"))

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertIn("No space", self.error("info", stdout=full))
        pipe = closed_pipe()
        self.assertEqual(self.error("info", "--json", stdout=pipe, expect=141), "")
        os.close(pipe)

    def test_gpus_of_the_double(self):
        options = {"program": GPU_UMEM, "env": {**os.environ, "LD_LIBRARY_PATH": DRIVER}}
        found = self.all(**options)
        contexts = {context["name"]: context for context in found["contexts"]}
        for name in "cuda:0", "cuda:2", "cuda-async:1", "cuda-managed:2", "cuda-host:":
            self.assertTrue(contexts[name]["opens"], contexts[name])
        gpu = contexts["cuda:2"]["gpu"]
        self.assertEqual(gpu["number"], 2)
        if os.path.isdir(DRIVER):
            self.assertRegex(gpu["pci"], "^[0-9a-fA-F]+:[0-9a-fA-F]+:[0-9a-fA-F]+")
        self.assertIn("GPU access", contexts["cuda:2"]["capabilities"])
        self.assertTrue(found["machine"]["cuda"]["available"])
        text = self.out("info", **options)
        self.assertRegex(text, r"(?m)^    CUDA +yes: 3 GPUs")
        if os.path.isdir(DRIVER):
            self.assertGreater(found["machine"]["cuda"]["driver_version"], 12000)
            self.assertRegex(text, r"(?m)^    CUDA +yes: 3 GPUs, CUDA \d+\.\d+")
            self.assertRegex(text, r"(?m)^    PCI +[0-9a-fA-F]+:")
        self.assertIn("cuda:3  no: ", self.out("info", "cuda:3", expect=1, **options))


if __name__ == "__main__":
    main()
