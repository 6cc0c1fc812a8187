#!/usr/bin/env python3
"""umem-trace as its users call it: what it writes is read by other programs' parsers.

Usage: log_trace.py UMEM_TRACE LOG_SAMPLE
"""
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TRACE = SAMPLE = None  # the programs


def run(*words, expect=0):
    done = subprocess.run([TRACE, *words], capture_output=True, text=True)
    if done.returncode != expect:
        raise AssertionError(f"{words}: {done.returncode}, {done.stderr}")
    return done.stderr if expect else done.stdout


class Trace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix=f"umem-test-{os.getpid()}-")
        cls.log = str(Path(cls.folder.name) / "run.umem")
        done = subprocess.run([SAMPLE, cls.log], capture_output=True, text=True, check=True)
        cls.one, cls.other, cls.moved = (int(word) for word in done.stdout.split())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def write(self, *options):
        out = Path(self.folder.name) / "out"
        run(self.log, *options, str(out))
        return out.read_text()

    def test_summary(self):
        text = run(self.log)
        self.assertRegex(text, r"process \d+, begun \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, complete\n")
        self.assertIn("9 records\n", text)
        self.assertIn("1 Limit over Host\n  2 allocations, 2 frees, 0 sets, 2 copies\n"
                      "  live at the end: 0 bytes; peak: 4000 bytes\n  failed: 1\n", text)
        self.assertIn("2 File\n  1 allocations, 0 frees, 1 sets, 2 copies\n"
                      "  live at the end: 2000 bytes; peak: 2000 bytes\n", text)

    def test_summary_of_one_context(self):
        text = run(self.log, "--context", "2")
        self.assertIn("9 records\n\n2 File\n  1 allocations, 0 frees, 1 sets, 2 copies\n"
                      "  live at the end: 2000 bytes; peak: 2000 bytes\n", text)
        self.assertNotIn("Limit", text)

    def test_summary_of_what_did_not_end(self):
        log = Path(self.folder.name) / "unended"
        content = bytearray(Path(self.log).read_bytes())
        content[48:56] = bytes(8)  # when it ended
        log.write_bytes(content)
        self.assertIn(" UTC, not completed: the program runs, was killed, or did not end its contexts\n",
                      run(str(log)))

    def hostile(self, name, locale="C"):
        """What umem-trace says of a log whose first context has that name, as bytes: each output."""
        log = Path(self.folder.name) / "hostile"
        content = bytearray(Path(self.log).read_bytes())
        content[4096 + 128 + 40:4096 + 256] = name.ljust(88, b"\0")
        log.write_bytes(content)
        environment = dict(os.environ, LC_ALL=locale)
        return [subprocess.run([TRACE, str(log), *words], capture_output=True, check=True, env=environment).stdout
                for words in ([], ["--csv", "-"], ["--chrome", "-", "--flows"])]

    def test_names_that_act_on_a_terminal(self):
        name = b'\x1b]0;owned\x07\x1b[2J\r\n\t,"x\\y",\x7f\xc2\x9b31m\x9b\xff\xc0\x80\xe2\x80\xae\xed\xa0\x80\xe4\xb8'
        for locale in "C", "C.UTF-8":
            summary, text, chrome = self.hostile(name, locale)
            for out in summary, text, chrome:
                self.assertFalse(set(out) - set(range(0x20, 0x7f)) - {10}, out)
            self.assertIn(b'\n1 \\x1b]0;owned\\x07\\x1b[2J\\x0d\\x0a\\x09,"x\\\\y",\\x7f\\xc2\\x9b31m\\x9b\\xff'
                          b'\\xc0\\x80\\xe2\\x80\\xae\\xed\\xa0\\x80\\xe4\\xb8\n  2 allocations', summary)
            names = {e["name"] for e in json.loads(chrome)["traceEvents"] if e["ph"] == "C"}
            self.assertIn('1 \x1b]0;owned\x07\x1b[2J\r\n\t,"x\\y",\x7f\x9b31m\ufffd\ufffd\ufffd\ufffd\u202e'
                          '\ufffd\ufffd\ufffd\ufffd\ufffd', names)
            self.assertEqual({len(row) for row in csv.reader(text.decode().splitlines())}, {6})

    def test_names_in_other_languages(self):
        name = "Блок €😀"
        summary, _, chrome = self.hostile(name.encode(), "C.UTF-8")
        self.assertIn(f"\n1 {name}\n", summary.decode())
        self.assertIn(f"1 {name}", {e["name"] for e in json.loads(chrome.decode("ascii"))["traceEvents"]})
        summary, _, _ = self.hostile("é".encode(), "C")
        self.assertIn(b"\n1 \\xc3\\xa9\n", summary)

    def test_complaints_about_names_that_act(self):
        done = subprocess.run([TRACE, "/nonexistent/\x1b[2J"], capture_output=True)
        self.assertIn(b"cannot read /nonexistent/\\x1b[2J: No such file", done.stderr)

    def test_the_memory_is_that_of_what_a_log_holds(self):
        log = Path(self.folder.name) / "sparse"
        content = bytearray(Path(self.log).read_bytes())
        count = 1 << 25  # records, of which the file has the first nine and the last one
        with open(log, "wb") as out:
            out.truncate(36864 + 64 * count + (1 << 30))
            content[24:32] = content[128:136] = count.to_bytes(8, sys.byteorder)
            out.write(content[:36864 + 64 * 9])
            out.seek(36864 + 64 * (count - 1))
            out.write(count.to_bytes(8, sys.byteorder) + content[36864 + 8:36864 + 64])
        for words in [], ["--csv", "-"], ["--chrome", "-"], ["--replay"]:
            with subprocess.Popen([TRACE, str(log), *words], stdout=subprocess.PIPE) as child:
                text = child.stdout.read().decode()
                _, status, usage = os.wait4(child.pid, 0)
                child.returncode = status
            self.assertEqual(status, 0)
            self.assertLess(usage.ru_maxrss, 100000)  # KiB
            if not words:
                self.assertIn(f"\n10 records, {count - 10} incomplete\n", text)
        log.unlink()

    def test_csv(self):
        text = self.write("--csv")
        self.assertTrue(text.startswith("Thread,Time,Action,Pointer,Size,Stream\n"))
        rows = list(csv.DictReader(text.splitlines()))
        self.assertEqual([(r["Action"], int(r["Pointer"], 16), int(r["Size"])) for r in rows], [
            ("allocate", self.one, 1000),
            ("allocate", self.other, 2000),
            ("free", self.one, 1000),
            ("allocate", self.moved, 4000),
            ("allocate failure", 0, 20000),
            ("free", self.moved, 4000),
        ])
        for row in rows:
            self.assertEqual(len(row), 6)
            self.assertTrue(int(row["Thread"]) > 0)
            self.assertTrue(re.fullmatch(r"[012]\d:[0-5]\d:[0-5]\d:\d{6}", row["Time"]))
            self.assertEqual(row["Stream"], "0")

    def test_csv_of_one_context(self):
        rows = list(csv.reader(self.write("--context", "2", "--csv").splitlines()))
        self.assertEqual([row[2] for row in rows], ["Action", "allocate"])

    def events(self, *options):
        return json.loads(self.write(*options, "--chrome"))["traceEvents"]

    def test_counters(self):
        counters = {}
        for event in self.events():
            if event["ph"] == "C":
                counters.setdefault(event["name"], []).append(event["args"]["live bytes"])
        self.assertEqual(counters["1 Limit over Host"], [0, 1000, 4000, 4000, 0])
        self.assertEqual(counters["2 File"], [0, 2000])

    def test_events_of_one_context(self):
        events = self.events("--context", "2")
        self.assertEqual([e["args"]["live bytes"] for e in events if e["ph"] == "C"], [0, 2000])
        self.assertEqual({e["name"] for e in events if e["ph"] == "C"}, {"2 File"})
        self.assertEqual(len([e for e in events if e["ph"] == "X"]), 3)
        self.assertFalse([e for e in events if e["ph"] == "i"])
        slices = [e["name"] for e in self.events("--context", "1") if e["ph"] == "X"]
        self.assertEqual(slices, ["copy 2 File to 1 Limit over Host", "copy 1 Limit over Host to 2 File"])

    def test_the_process_is_called_as_the_file(self):
        names = [event["args"]["name"] for event in self.events() if event["ph"] == "M"]
        self.assertEqual(names, ["run.umem"])

    def test_slices(self):
        slices = [event for event in self.events() if event["ph"] == "X"]
        self.assertEqual([(event["name"], event["args"]["bytes"]) for event in slices], [
            ("set 2 File", 2000),
            ("copy 2 File to 1 Limit over Host", 500),
            ("copy 1 Limit over Host to 2 File", 300),
        ])
        end = 0
        for event in slices:  # one after another, in one thread
            self.assertTrue(event["ts"] >= end and event["dur"] > 0)
            end = event["ts"] + event["dur"] - 0.001
            self.assertEqual(event["tid"], slices[0]["tid"])
        self.assertEqual(int(slices[1]["args"]["to"], 16), self.one)

    def test_failures(self):
        failures = [event for event in self.events() if event["ph"] == "i"]
        self.assertEqual([(event["name"], event["args"]) for event in failures], [
            ("allocation failed",
             {"bytes": 20000, "status": "MemoryError", "context": "1 Limit over Host"})])

    def test_flows(self):
        self.assertFalse([event for event in self.events() if event["ph"] in "sf"])
        events = self.events("--flows")
        copies = [event for event in events if event.get("cat") == "copy"]
        start, finish = [event for event in events if event["ph"] in "sf"]
        self.assertEqual((start["ph"], finish["ph"], finish["bp"]), ("s", "f", "e"))
        self.assertEqual(start["id"], finish["id"])
        self.assertEqual((start["ts"], finish["ts"]), (copies[0]["ts"], copies[1]["ts"]))

    def test_replay(self):
        for place in "host:", "stats+pool+host:", "file:":
            text = run(self.log, "--replay", "--on", place)
            self.assertRegex(text, r"^7 operations in \d+\.\d{6} s, \d+ ns each\n"
                                   r"peak of live bytes: 6000\n$")

    def test_replay_of_one_context(self):
        for number, count, peak, left_out in (1, 3, 4000, 2), (2, 2, 2000, 2):
            text = run(self.log, "--context", str(number), "--replay")
            self.assertRegex(text, rf"^{count} operations in .*\npeak of live bytes: {peak}\n"
                                   rf"left out, of unknown blocks: {left_out}\n$")

    def test_what_the_documentation_shows(self):
        script = Path(__file__).parents[4] / "doc/examples/log/log.sh"
        folder = Path(self.folder.name)
        environment = dict(os.environ, PATH=f"{Path(TRACE).parent}:{os.environ['PATH']}")
        subprocess.run([script], cwd=folder, env=environment, check=True, capture_output=True)
        self.assertTrue((folder / "run.json").stat().st_size > 100)
        self.assertEqual(len((folder / "run.csv").read_text().splitlines()), 2)

    def test_complaints(self):
        here = str(Path(self.folder.name))
        self.assertIn("umem: cannot read /nonexistent: No such file",
                      run("/nonexistent", expect=1))
        self.assertIn("it is no regular file", run(here, expect=1))
        self.assertIn("it is no log of umem", run(TRACE, expect=1))
        self.assertIn("cannot write /nonexistent/out", run(self.log, "--csv", "/nonexistent/out", expect=1))
        self.assertIn('cannot replay on x: "x" has no ":"', run(self.log, "--replay", "--on", "x", expect=1))
        if Path("/dev/full").exists():
            self.assertIn("cannot write /dev/full: No space", run(self.log, "--chrome", "/dev/full", expect=1))
        for words in ([], ["--csv"], [self.log, "--csv"], [self.log, "other"], ["--nonsense", self.log],
                      [self.log, "--context", "256"], [self.log, "--context", "-1"]):
            self.assertRegex(run(*words, expect=2), "^umem: .*\numem: --help lists the commands")
        self.assertIn("--replay", run("--help"))
        for words, why in [
                (["--flows"], "--flows requires --chrome"),
                (["--flows", "--csv", "-"], "--flows requires --chrome"),
                (["--on", "host:"], "--on requires --replay"),
                (["--csv", "-", "--csv", "-"], "--csv: "),
                (["--context", "1", "--context", "2"], "--context: ")]:
            self.assertIn(f"umem: {why}", run(self.log, *words, expect=2))
        for words in [], ["--csv", "-"], ["--chrome", "-"], ["--replay"]:
            self.assertEqual(run(self.log, "--context", "3", *words, expect=2),
                             "umem: there is no context 3 in run.umem: "
                             "its contexts are numbered from 1 to 2\n")


if __name__ == "__main__":
    TRACE, SAMPLE = (os.path.abspath(program) for program in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
