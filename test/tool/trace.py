#!/usr/bin/env python3
"""umem trace and its commands; log_trace.py has the options that umem-trace has always had.
Usage: trace.py UMEM DEFAULT_USER"""
import csv
import json
import os
import resource
import signal
import subprocess
import time
import unittest

from program import DEFAULT_USER, UMEM, Case, closed_pipe, main

TRACE = os.path.join(os.path.dirname(UMEM), "umem-trace")


class Traces(Case):
    def run_traced(self, *words, program=(DEFAULT_USER,), expect=0, **environment):
        base = {key: value for key, value in os.environ.items() if key != "UMEM_DEFAULT"}
        return self.run_umem("trace", "run", *words, "--", *program, expect=expect, env={**base, **environment})

    def log(self):
        self.run_traced("--log", "run.umem", "-o", "run.json")
        return "run.umem"

    def counters(self, name="trace.json"):
        events = json.loads((self.folder / name).read_text())["traceEvents"]
        return {event["name"] for event in events if event["ph"] == "C"}

    def test_run(self):
        self.run_traced()
        self.assertEqual(os.listdir(self.folder), ["trace.json"])
        self.assertEqual(len(self.counters()), 1)
        self.assertIn("Host", self.counters().pop())

    def test_run_of_a_program_that_changes_its_folder(self):
        (self.folder / "tmp").mkdir()
        self.run_traced("--log", "a.umem", program=("sh", "-c", 'cd / && exec "$0"', DEFAULT_USER), TMPDIR="tmp")
        self.run_traced(program=("sh", "-c", 'cd / && exec "$0"', DEFAULT_USER), TMPDIR="tmp")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.umem", "tmp", "trace.json"])
        self.assertEqual(os.listdir(self.folder / "tmp"), [])

    def test_run_writes_where_it_is_told(self):
        self.run_traced("--output", "a.json", "--flows", "--log", "a.umem", "--max", "128K")
        self.assertTrue(self.counters("a.json"))
        self.assertLess((self.folder / "a.umem").stat().st_size, 200000)
        self.assertTrue(json.loads(self.run_traced("-o", "-").stdout)["traceEvents"])

    def test_what_run_replaces_keeps_its_permissions_and_its_links(self):
        (self.folder / "inner").mkdir()
        links = {"run.umem": "inner/a.umem", "run.json": "inner/a.json"}
        for link, file in links.items():
            (self.folder / link).symlink_to(file)
        for mode in 0o600, 0o640:
            for file in links.values():
                (self.folder / file).write_text("")
                (self.folder / file).chmod(mode)
                if os.geteuid() == 0:
                    os.chown(self.folder / file, 4711, 4712)
            self.run_traced("--log", "run.umem", "-o", "run.json")
            for link, file in links.items():
                about = (self.folder / file).stat()
                self.assertEqual(about.st_mode & 0o7777, mode)
                self.assertGreater(about.st_size, 100)
                if os.geteuid() == 0:
                    self.assertEqual((about.st_uid, about.st_gid), (4711, 4712))
                self.assertTrue((self.folder / link).is_symlink())
        self.assertIn("allocations", self.out("trace", "summary", "run.umem"))
        self.assertEqual(sorted(os.listdir(self.folder / "inner")), ["a.json", "a.umem"])

    def test_run_keeps_no_log_in_place_of_a_pipe(self):
        os.mkfifo(self.folder / "pipe")
        (self.folder / "link").symlink_to("pipe")
        for path in "pipe", "link":
            self.assertIn(f"cannot write {path}: ", self.run_traced("--log", path, expect=1).stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["link", "pipe"])

    @unittest.skipIf(os.geteuid(), "needs root, to be another user")
    def test_run_keeps_no_log_in_place_of_what_another_user_put_into_a_folder_of_all(self):
        (self.folder / "all").mkdir()
        (self.folder / "all").chmod(0o1777)
        plant = "touch all/run.umem && chown 4711 all/run.umem"
        for _ in range(2):  # while the program runs, and before
            error = self.run_traced("--log", "all/run.umem", program=("sh", "-c", f'{plant}; exec "$0"', DEFAULT_USER), expect=1).stderr
            self.assertIn("another user has put it into a folder", error)
            self.assertEqual((self.folder / "all/run.umem").stat().st_size, 0)
        self.assertEqual(os.listdir(self.folder / "all"), ["run.umem"])

    def test_run_on_other_contexts(self):
        self.run_traced("--on", "pool+host:?max=8M")
        self.assertIn("Pool", self.counters().pop())
        self.run_traced(UMEM_DEFAULT="stats+pool+host:?max=8M&initial=1M")
        self.assertIn("Stats", self.counters().pop())
        self.assertIn("writes a log already", self.run_traced("--on", "log+host:?file=x", expect=2).stderr)
        self.assertIn("not the name of a context", self.run_traced("--on", "x", expect=2).stderr)

    def test_run_ends_as_the_program(self):
        self.assertIn("ended with status 5", self.run_traced(program=(DEFAULT_USER, "5"), expect=5).stderr)
        self.assertTrue(self.counters())
        os.unlink(self.folder / "trace.json")
        program = (DEFAULT_USER, str(-signal.SIGKILL))
        self.assertIn("signal 9", self.run_traced(program=program, expect=137).stderr)
        self.assertTrue(self.counters())

    def test_run_of_programs_without_a_log(self):
        self.assertIn("has not used the default context", self.run_traced(program=("true",), expect=1).stderr)
        self.assertIn("cannot run /nonexistent: No such file", self.run_traced(program=("/nonexistent",), expect=1).stderr)
        self.assertIn("PROGRAM", self.run_traced(program=(), expect=2).stderr)
        self.run_traced(program=("/bin/false",), expect=1)
        self.assertEqual(os.listdir(self.folder), [])

    def test_run_gives_signals_their_usual_meaning(self):
        program = ("sh", "-c", 'trap | grep -q . && exit 3; yes | head -n 1 > /dev/null; exec "$0"', DEFAULT_USER)
        self.assertEqual(self.run_traced(program=program).stderr, "")

    def test_run_leaves_ignored_signals_ignored(self):
        program = ("sh", "-c", 'trap "" HUP; exec "$0" trace run -- sh -c \'kill -HUP $PPID $$; exec "$0"\' "$1"', UMEM, DEFAULT_USER)
        done = subprocess.run(program, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_run_knows_before_what_cannot_be_written(self):
        program = ("sh", "-c", "touch ran")
        for words, why in [(["-o", "none/x"], "cannot write none/x: No such file"), (["--log", "none/x"], "cannot write none/x"),
                           (["-o", "."], "Is a directory"), (["--max", "1X"], "1X"), (["--max", "1"], "too few"),
                           (["--log", "/proc/self/none/x"], "cannot write")]:
            self.assertIn(why, self.run_traced(*words, program=program, expect=1).stderr)
        for name, why in ("nosuch:", "no scheme nosuch"), ("host:?x=y", "no option x"), ("pool+host:?host.max=1M&pool.y=1", "option pool.y"):
            self.assertIn(why, self.run_traced("--on", name, program=program, expect=2).stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_run_ends_as_a_program_that_fails_whatever_becomes_of_the_trace(self):
        error = self.run_traced("-o", "/dev/full", program=(DEFAULT_USER, "5"), expect=5).stderr
        self.assertIn("ended with status 5", error)
        self.assertIn("cannot write /dev/full", error)

    def test_run_keeps_the_output_of_the_program_out_of_the_trace(self):
        done = self.run_traced("-o", "-", program=("sh", "-c", 'echo hello; exec "$0"', DEFAULT_USER))
        self.assertEqual(done.stderr, "hello\n")
        self.assertTrue(json.loads(done.stdout)["traceEvents"])

    def test_an_interrupt_of_run_leaves_nothing(self):
        folder = self.folder / "tmp"
        folder.mkdir()
        child = subprocess.Popen([UMEM, "trace", "run", "--", "sh", "-c", 'echo; exec sleep 60'], cwd=self.folder,
                                 env={**os.environ, "TMPDIR": str(folder)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child.stdout.readline()
        self.assertEqual(len(os.listdir(folder)), 1)
        child.send_signal(signal.SIGTERM)
        self.assertIn("sh was ended by signal 15", child.communicate()[1])
        self.assertEqual(child.returncode, 143)
        self.assertEqual(os.listdir(folder), [])

    def test_no_signal_of_run_is_lost(self):
        folder = self.folder / "tmp"
        folder.mkdir()
        for _ in range(30):  # the folder is there before the program runs
            child = subprocess.Popen([UMEM, "trace", "run", "--", "sleep", "60"], cwd=self.folder, stderr=subprocess.DEVNULL,
                                     env={**os.environ, "TMPDIR": str(folder)})
            while not os.listdir(folder):
                pass
            child.send_signal(signal.SIGTERM)
            try:
                self.assertEqual(child.wait(timeout=30), 143)
            finally:
                child.kill()
            self.assertEqual(os.listdir(folder), [])

    def test_run_of_several_processes(self):
        both = 'for i in 1 2 3; do "$0" & all="$all $!"; done; for one in $all; do wait $one || exit; done'
        done = self.run_traced("--log", "run.umem", "-o", "run.json", program=("sh", "-c", both, DEFAULT_USER))
        traces = sorted(name for name in os.listdir(self.folder) if name.endswith(".json"))
        self.assertEqual(len(traces), 3)
        self.assertEqual(len([name for name in os.listdir(self.folder) if name.endswith(".umem")]), 3)
        self.assertEqual(len(os.listdir(self.folder)), 6)
        for name in traces:
            events = json.loads((self.folder / name).read_text())["traceEvents"]
            process = events[0]["pid"]
            self.assertEqual((name, events[0]["args"]["name"]), (f"run.{process}.json", "sh"))
            self.assertIn(f"umem: process {process}: {name}\n", done.stderr)
            self.assertIn("1 allocations", self.out("trace", f"run.{process}.umem"))
        error = self.run_traced("-o", "-", program=("sh", "-c", both, DEFAULT_USER), expect=1).stderr
        self.assertIn("3 processes have a log", error)
        self.run_traced("-o", "one.json", program=("sh", "-c", '"$0"; exit 0', DEFAULT_USER))
        self.assertTrue(self.counters("one.json"))

    def test_summary(self):
        log = self.log()
        text = self.out("trace", "summary", log)
        self.assertIn("1 allocations, 1 frees", text)
        self.assertEqual(text, self.out("trace", log))
        self.assertEqual(text, self.out("summary", log, program=TRACE))
        self.assertIn("no context 2", self.error("trace", "summary", log, "--context", "2", expect=2))

    def test_the_other_name(self):
        self.assertEqual(self.out("--version", program=TRACE), self.out("--version"))
        self.assertEqual(self.out("--help", program=TRACE), self.out("trace", "--help"))

    def test_csv(self):
        log = self.log()
        text = self.out("trace", "csv", log)
        self.assertEqual([row[2] for row in csv.reader(text.splitlines())], ["Action", "allocate", "free"])
        self.out("trace", "csv", log, "--output", "a.csv", "--context", "1")
        self.assertEqual((self.folder / "a.csv").read_text(), text)

    def test_a_file_is_replaced_when_it_is_complete(self):
        log = self.log()
        whole = self.out("trace", "csv", log)
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))  # noqa: E731
        (self.folder / "old.csv").write_text("old")
        for name in "old.csv", "new.csv":
            self.assertIn(f"cannot write {name}: ", self.error("trace", "csv", log, "-o", name, preexec_fn=limit))
            self.assertIn(f"cannot write {name}: ", self.error("trace", log, "--chrome", name, preexec_fn=limit))
        self.assertEqual((self.folder / "old.csv").read_text(), "old")
        self.assertFalse((self.folder / "new.csv").exists())
        for name in "old.csv", "new.csv":
            self.out("trace", "csv", log, "-o", name)
            self.assertEqual((self.folder / name).read_text(), whole)
        self.assertEqual(sorted(os.listdir(self.folder)), ["new.csv", "old.csv", "run.json", "run.umem"])

    def test_a_log_is_not_written_over(self):
        log = self.log()
        before = (self.folder / log).read_bytes()
        (self.folder / "link").symlink_to(log)
        for words in ["csv", log, "-o", log], ["csv", log, "-o", "./link"], [log, "--chrome", "link"], [log, "--csv", log]:
            self.assertIn("is the log itself", self.error("trace", *words))
        self.assertEqual((self.folder / log).read_bytes(), before)
        for keep in "one", "./one":
            message = self.error("trace", "run", "-o", "one", "--log", keep, "--", DEFAULT_USER, expect=2)
            self.assertIn("the trace and the log are the same file", message)
        self.assertFalse((self.folder / "one").exists())

    def test_an_interrupt_leaves_no_half_file(self):
        self.run_traced("--log", "run.umem", "--max", "32M", "-o", "run.json", program=(DEFAULT_USER, "0", "150000"))
        statuses = set()
        for seconds in 0.05, 0.1, 0.15, 0.2:
            (self.folder / "old.json").write_text("old")
            child = subprocess.Popen([UMEM, "trace", "run.umem", "--chrome", "old.json"], cwd=self.folder, stderr=subprocess.DEVNULL)
            time.sleep(seconds)
            child.send_signal(signal.SIGINT)
            statuses.add(child.wait())
            text = (self.folder / "old.json").read_text()
            self.assertTrue(text == "old" if child.returncode else json.loads(text))
            self.assertEqual(sorted(os.listdir(self.folder)), ["old.json", "run.json", "run.umem"])
        self.assertLessEqual(statuses, {0, 130, -signal.SIGINT})  # before it writes, the signal ends it at once

    def test_pipes_and_devices_are_written_to(self):
        log = self.log()
        os.mkfifo(self.folder / "fifo")
        reader = subprocess.Popen(["cat", "fifo"], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.out("trace", "csv", log, "-o", "fifo")
        self.assertEqual(reader.communicate()[0], self.out("trace", "csv", log))
        self.out("trace", "csv", log, "-o", "/dev/null")

    def test_replay(self):
        for words in [], ["--on", "pool+host:"], ["--context", "1"]:
            self.assertRegex(self.out("trace", "replay", self.log(), *words), "^2 operations in .*\npeak of live bytes: 1000\n$")
        self.assertIn("cannot replay on x", self.error("trace", "replay", self.log(), "--on", "x"))

    def test_wrong_use(self):
        log = self.log()
        for words in [], [log, "summary", log], ["summary"], ["csv"], ["replay"], ["run"], ["csv", log, "--flows"]:
            self.assertIn("umem: ", self.error("trace", *words, expect=2))

    def test_output_that_cannot_be_written(self):
        log = self.log()
        for words in [log], ["csv", log], ["summary", log], ["replay", log], [log, "--chrome", "-"]:
            with open("/dev/full", "w", encoding="utf-8") as full:
                self.assertIn("cannot write", self.error("trace", *words, stdout=full))
            pipe = closed_pipe()
            self.assertEqual(self.error("trace", *words, stdout=pipe, expect=141), "")
            os.close(pipe)
        self.assertIn("cannot write /dev/full", self.error("trace", "csv", log, "-o", "/dev/full"))


if __name__ == "__main__":
    main()
