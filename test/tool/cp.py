#!/usr/bin/env python3
"""umem cp. Usage: cp.py UMEM DEFAULT_USER"""
import http.server
import io
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import unittest
import unittest.mock
import zipfile
import zlib
from pathlib import Path

from program import UMEM, Case, closed_pipe, main

MIB = 1 << 20


class Object(http.server.BaseHTTPRequestHandler):
    """Serves ranges of its server's bytes."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if not self.path.startswith("/a.bin") or self.path.startswith("/a.bin1"):
            self.send_error(404)
            return
        whole = self.server.bytes
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        part = whole[first:last + 1]
        self.send_response(206)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(whole)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


class Bucket(http.server.BaseHTTPRequestHandler):
    """Takes objects of one request into its server's objects."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        good = self.headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=key/") and self.path.startswith("/bucket/")
        if good:
            self.server.objects[self.path] = body
        self.send_response(200 if good else 403)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "0")
        self.end_headers()


def npz_with_a_wrong_checksum():
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (100000,), }".ljust(117) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(100000)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", array)
    right = struct.pack("<I", zlib.crc32(array))
    return made.getvalue().replace(right, struct.pack("<I", zlib.crc32(array) ^ 1))


class Copies(Case):
    def setUp(self):
        super().setUp()
        self.bytes = bytes(range(256)) * 4096 * 3 + b"end"
        (self.folder / "a.bin").write_bytes(self.bytes)

    def read(self, name):
        return (self.folder / name).read_bytes()

    def names(self):
        return sorted(os.listdir(self.folder))

    def test_file_to_file(self):
        self.assertRegex(self.out("cp", "a.bin", "b.bin"), r"^3 MiB in \d+\.\d{3} s, \d+\.\d\d GB/s, file -> .*file\n$")
        self.assertEqual(self.read("b.bin"), self.bytes)

    def test_a_file_to_a_bucket(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
        server.objects = {}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        keys = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "hidden", "HOME": str(self.folder)}
        (self.folder / "empty.bin").touch()
        try:
            with unittest.mock.patch.dict(os.environ, keys):
                self.out("cp", "a.bin", "s3://bucket/a b.bin")
                self.out("cp", "a.bin@3,5", "s3://bucket/part#retries=0")
                self.out("cp", "empty.bin", "s3://bucket/empty")
                error = self.error("cp", "a.bin", "s3://other/a.bin")
                self.assertIn("cannot write s3://other/a.bin: HTTP status 403", error)
                self.assertNotIn("hidden", error)
                self.assertIn("mode=r is not allowed", self.error("cp", "a.bin", "s3://bucket/a.bin#mode=r", expect=2))
                (self.folder / "bad.npz").write_bytes(npz_with_a_wrong_checksum())
                self.error("cp", "bad.npz#x", "s3://bucket/bad")  # all bytes were written when it fails
                self.assertIn("can only be written", self.error("cp", "a.bin", "s3://bucket/a", "--verify", expect=2))
        finally:
            server.shutdown()
            server.server_close()
        self.assertEqual(server.objects, {"/bucket/a%20b.bin": self.bytes, "/bucket/part": self.bytes[3:8], "/bucket/empty": b""})

    def test_an_interrupt_ends_what_waits_for_a_silent_server(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
            keys = {**os.environ, "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hidden"}
            for words in (f"{endpoint}/a", "b.bin"), ("a.bin", "s3://bucket/a"), ("a.bin", "s3://bucket/a#part=5M&connections=1"):
                child = subprocess.Popen([UMEM, "cp", *words], cwd=self.folder, env=keys, stderr=subprocess.PIPE, text=True)
                connection, _ = server.accept()
                connection.recv(1)
                child.send_signal(signal.SIGINT)
                error = child.communicate(timeout=20)[1]  # stall_ms is 30 s, six times
                connection.close()
                self.assertEqual((child.returncode, error), (130, "umem: interrupted\n"), words)
        self.assertEqual(self.names(), ["a.bin"])

    def test_a_new_file_with_a_number_sign(self):
        self.out("cp", "a.bin", "a.bin#2")  # beside a file that has no arrays
        self.assertEqual(self.read("a.bin#2"), self.bytes)
        self.out("cp", "a.bin#2", "b.bin")
        (self.folder / "broken.npz").write_bytes(b"PK")
        self.assertIn("only read", self.error("cp", "a.bin", "broken.npz#x", expect=2))

    def test_names_and_mapped_files(self):
        self.out("cp", "mmap:a.bin", "file:b%2525.bin?reserve=none&file.direct=off")
        self.assertEqual(self.read("b%25.bin"), self.bytes)
        self.out("cp", "stats+file:a.bin?mode=r", "mmap:c.bin")
        self.assertEqual(self.read("c.bin"), self.bytes)

    def test_ranges(self):
        for text, part in [("@0", self.bytes), ("@5", self.bytes[5:]), ("@1K,2K", self.bytes[1024:3072]),
                           ("@3M,3", b"end"), ("@7,0", b"")]:
            self.out("cp", "a.bin" + text, "b.bin")
            self.assertEqual(self.read("b.bin"), part)

    def test_ranges_that_are_not_there(self):
        for text in "@3M,4", "@4M", "@4M,0", "@0,1T":
            self.assertIn("a.bin holds 3145731 bytes: there is no range from", self.error("cp", "a.bin" + text, "b.bin"))
        self.assertIn("too large", self.error("cp", "a.bin@99999999999T", "b.bin", expect=2))
        self.assertIn("too large", self.error("cp", "a.bin@1,18446744073709551615", "b.bin", expect=2))
        self.assertEqual(self.names(), ["a.bin"])

    def test_an_empty_file(self):
        (self.folder / "empty").touch()
        self.assertTrue(self.out("cp", "empty", "b.bin", "--verify").startswith("0 B in "))
        self.assertEqual(self.read("b.bin"), b"")

    def test_memory_at_either_end(self):
        self.out("cp", "host:@0,1M", "zeros")
        self.assertEqual(self.read("zeros"), bytes(MIB))
        for place in "host:", "pool+host:", "file:", "fixed+host:?block=4M":
            self.out("cp", "a.bin", place, "--verify")
        self.assertIn("host: holds nothing yet: say how many zeros to copy", self.error("cp", "host:", "b.bin", expect=2))

    def serve(self):
        """The URL of a.bin on a web server of the test; /moved leads there."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Object)
        server.bytes = self.bytes
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"127.0.0.1:{server.server_address[1]}/a.bin"

    def test_objects_of_web_servers(self):
        url = self.serve()
        for text, part in [("", self.bytes), ("?signed=secret", self.bytes), ("#piece=64K&connections=3", self.bytes),
                           ("@1K,2K", self.bytes[1024:3072]), ("?signed=secret#piece=1M@3M,3", b"end")]:
            self.out("cp", f"http://{url}{text}", "b.bin")
            self.assertEqual(self.read("b.bin"), part)
        for wrong in (f"http://me:secret@{url}?signed=secret@4M",), (f"http://me:secret@{url}1?secret", "b.bin"):
            self.assertNotIn("secret", self.error("cp", *wrong, *["c.bin"][len(wrong) - 1:]))
        self.assertIn("is only read", self.error("cp", "a.bin", f"http://{url}", expect=2))
        facts = json.loads(self.out("info", "--json", f"http://me:secret@{url}?signed=secret"))["contexts"][0]
        self.assertEqual(facts["kind"], "Url")
        self.assertEqual(facts["capacity"], len(self.bytes))
        self.assertNotIn("secret", json.dumps(facts))

    def test_shared_memory_keeps_the_bytes(self):
        name = f"umem-test-{os.getpid()}-cp"
        try:
            self.out("cp", "a.bin", f"shm:{name}?size=8M")
            self.out("cp", f"shm:{name}@3M", "b.bin")
            self.assertEqual(self.read("b.bin"), b"end")
            self.out("cp", "a.bin", f"shm:{name}")
            self.assertIn("holds 2 blocks, but one is copied", self.error("cp", f"shm:{name}", "b.bin"))
        finally:
            for path in Path("/dev/shm").glob(f"*{name}*"):
                path.unlink()

    def segment(self, text):
        """A name of shared memory that is removed after the test."""
        name = f"umem-test-{os.getpid()}-{text}"
        path = Path("/dev/shm") / name
        self.addCleanup(lambda: path.unlink(missing_ok=True))
        return f"shm:{name}", path

    def test_shared_memory_is_as_large_as_needed(self):
        self.out("cp", "a.bin", "shm:", "--verify")
        self.out("cp", "shm:@0,1K", "zeros")
        self.assertEqual(self.read("zeros"), bytes(1024))
        name, _ = self.segment("new")
        self.out("cp", "a.bin", name)
        self.out("cp", name, "b.bin")
        self.assertEqual(self.read("b.bin"), self.bytes)
        self.assertIn("no room", self.error("cp", "a.bin", name))
        other, path = self.segment("none")
        self.assertIn("No such file", self.error("cp", "a.bin", other + "?how=open"))
        self.assertIn("No such file", self.error("cp", other, "c.bin"))
        self.assertIn("no room", self.error("cp", "a.bin", other + "?size=1M"))
        self.assertFalse(path.exists())

    def test_an_interrupt_leaves_no_block_in_shared_memory(self):
        name, path = self.segment("half")
        child = self.start("a.bin", name)
        child.send_signal(signal.SIGINT)
        child.communicate()
        self.assertEqual(child.returncode, 130)
        self.assertFalse(path.exists())
        self.out("cp", "host:@0,1K", name + "?size=8M")
        child = self.start("a.bin", name)
        child.send_signal(signal.SIGINT)
        child.communicate()
        self.assertEqual(child.returncode, 130)
        self.out("cp", name, "b.bin")  # the one block that was there
        self.assertEqual(self.read("b.bin"), bytes(1024))

    def check_what_a_kill_has_left(self, name, pid):
        """Whether it was an incomplete block."""
        done = subprocess.run([UMEM, "cp", name, "copy"], cwd=self.folder, text=True, capture_output=True, check=False)
        if done.returncode == 0:
            self.assertEqual(self.read("copy"), self.bytes)
            return False
        if "incomplete" not in done.stderr:
            self.assertRegex(done.stderr, "holds 0 blocks|not complete|too short|No such file")
            return False
        self.assertIn(f"process {pid} has ended before it had written all", done.stderr)
        self.out("cp", "a.bin", name)  # takes the room of what was left
        self.out("cp", name, "copy")
        self.assertEqual(self.read("copy"), self.bytes)
        return True

    def test_a_kill_leaves_no_block_that_looks_complete(self):
        name, path = self.segment("killed")
        for attempt in range(20):  # after so many lines of progress
            child = self.start("a.bin", name)
            for _ in range(attempt * 20):
                child.stderr.readline()
            child.kill()
            child.communicate()
            self.assertTrue(self.check_what_a_kill_has_left(name, child.pid))
            path.unlink()
        for attempt in range(40):  # at any time
            child = subprocess.Popen([UMEM, "cp", "-q", "a.bin", name, "--step", "4K"], cwd=self.folder)
            try:
                child.wait(timeout=0.002 + 0.0005 * attempt)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            self.check_what_a_kill_has_left(name, child.pid)
            path.unlink(missing_ok=True)

    def test_an_incomplete_block_is_refused(self):
        name, path = self.segment("writing")
        child = self.start("a.bin", name)
        self.assertIn(f"process {child.pid} is still writing it", self.error("cp", name, "b.bin"))
        child.kill()
        child.communicate()
        self.assertIn(f"process {child.pid} has ended before it had written all", self.error("cp", name, "b.bin"))
        self.assertFalse((self.folder / "b.bin").exists())

    def test_sparse_on_a_full_disk(self):
        name, path = self.segment("sparse")
        command = (f"mount -t tmpfs -o size=1m none /dev/shm && dd if=/dev/zero of=/dev/shm/filler bs=4k count=150 2>/dev/null; "
                   f"{UMEM} cp a.bin '{name}?sparse=yes'; code=$?; ls /dev/shm; exit $code")
        done = subprocess.run(["unshare", "-m", "sh", "-c", command], cwd=self.folder, text=True, capture_output=True,
                              check=False)
        if "unshare" in done.stderr or "mount" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual((done.returncode, done.stdout), (1, "filler\n"), done.stderr)
        self.assertRegex(done.stderr, "No space left|Cannot allocate")

    def test_shared_memory_of_another_user(self):
        if os.geteuid():
            self.skipTest("only root can make files of another user")
        name, path = self.segment("squatted")
        for content in b"", b"x" * 8192:
            path.write_bytes(content)
            os.chown(path, 12345, 12345)
            path.chmod(0o666)
            self.assertIn("it belongs to another user", self.error("cp", "a.bin", name))
            self.assertEqual(path.read_bytes(), content)
            self.assertEqual(path.stat().st_uid, 12345)

    def test_json(self):
        result = json.loads(self.out("cp", "a.bin@1M,1M", "b.bin", "--json", "--verify"))
        self.assertEqual((result["bytes"], result["verified"], result["source"], result["destination"]),
                         (MIB, True, "a.bin@1M,1M", "b.bin"))
        self.assertAlmostEqual(result["bytes_per_second"], MIB / result["seconds"], delta=MIB)
        self.assertIn("file", result["route"])
        self.assertFalse(json.loads(self.out("cp", "a.bin", "b.bin", "--json"))["verified"])

    def test_quiet(self):
        done = self.run_umem("cp", "-q", "a.bin", "b.bin", "--interval", "0", "--step", "4K")
        self.assertEqual((done.stdout, done.stderr), ("", ""))
        self.assertTrue(json.loads(self.out("cp", "--quiet", "--json", "a.bin", "b.bin")))

    def test_direct(self):
        done = subprocess.run([UMEM, "cp", "a.bin", "b.bin", "--direct", "--verify"], cwd=self.folder, text=True,
                              capture_output=True, check=False)
        if done.returncode:  # a file system without O_DIRECT
            self.assertIn("direct", done.stderr)
            self.assertEqual(self.names(), ["a.bin"])
        else:
            self.assertEqual(self.read("b.bin"), self.bytes)
            self.assertIn("verified", done.stdout)
        self.run_umem("cp", "host:@0,64K", "file:", "--direct", expect=done.returncode)
        self.assertIn("--direct is for files", self.error("cp", "host:@0,1M", "host:", "--direct", expect=2))

    def test_a_file_may_replace_itself_and_keeps_its_permissions(self):
        os.chmod(self.folder / "a.bin", 0o640)
        self.out("cp", "a.bin@1M", "a.bin")
        self.assertEqual(self.read("a.bin"), self.bytes[MIB:])
        self.assertEqual(os.stat(self.folder / "a.bin").st_mode & 0o777, 0o640)

    def test_links_and_permissions(self):
        (self.folder / "old").write_text("old")
        os.link(self.folder / "old", self.folder / "hard")
        (self.folder / "link").symlink_to("old")
        self.out("cp", "a.bin", "link")
        self.assertEqual(self.read("old"), self.bytes)
        self.assertEqual(os.readlink(self.folder / "link"), "old")
        self.assertEqual(self.read("hard"), b"old")
        (self.folder / "a.bin").chmod(0o600)
        self.out("cp", "a.bin", "new", preexec_fn=lambda: os.umask(0o027))
        self.assertEqual((self.folder / "new").stat().st_mode & 0o7777, 0o640)

    def test_progress_on_a_pipe(self):
        lines = self.run_umem("cp", "a.bin", "b.bin", "--interval", "0", "--step", "1M").stderr.splitlines()
        self.assertTrue(lines)
        for line in lines:
            self.assertRegex(line, r"^\d+ MiB of 3 MiB, \d+ %, \d+\.\d\d GB/s, 0:00 left$")
        self.assertEqual(self.run_umem("cp", "a.bin", "b.bin", "--step", "4K").stderr, "")  # before 10 s

    def test_progress_knows_the_route_after_the_first_part(self):
        lines = self.run_umem("cp", "host:@0,66M", "host:", "--interval", "0", "--step", "1M").stderr.splitlines()
        self.assertRegex(lines[-1], r"left, host -> .*host$")

    def test_progress_fits_a_terminal(self):
        for columns in 12, 30, 50, 200:
            shown = self.on_terminal(columns, "cp", "a.bin", "b.bin", "--interval", "0", "--step", "64K")
            parts = [part for part in re.split("\r\x1b\\[K", shown) if part]
            self.assertTrue(parts or columns < 17)
            self.assertTrue(all(len(part) < columns and "\n" not in part for part in parts), parts)
            self.assertTrue(shown.endswith("\r\x1b[K"))
        self.assertRegex(shown, "left")

    def start(self, *words):
        """A copy whose first line of progress was read; it then waits for a reader of the others."""
        child = subprocess.Popen([UMEM, "cp", *words, "--interval", "0", "--step", "512"], cwd=self.folder,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn(" of 3 MiB", child.stderr.readline())
        return child

    def test_an_interrupt_leaves_nothing_half(self):
        (self.folder / "old.bin").write_text("old")
        for number, status in (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129):
            for name in "new.bin", "old.bin":
                child = self.start("a.bin", name)
                child.send_signal(number)
                out, error = child.communicate()
                self.assertEqual((child.returncode, out), (status, ""))
                self.assertTrue(error.endswith("umem: interrupted\n"))
        self.assertEqual(self.names(), ["a.bin", "old.bin"])
        self.assertEqual(self.read("old.bin"), b"old")

    def test_verification_finds_a_byte_that_differs(self):
        child = self.start("a.bin", "b.bin", "--verify")
        with open(self.folder / "a.bin", "r+b") as file:
            file.seek(3)
            file.write(b"x")
        self.assertTrue(child.communicate()[1].endswith("umem: verification failed: byte 3 of the copy differs\n"))
        self.assertEqual(child.returncode, 1)
        self.assertEqual(self.names(), ["a.bin"])

    def test_gpus(self):
        double = os.environ.get("UMEM_TEST_DRIVER_DOUBLE")
        if not double:
            self.skipTest("this build cannot use the double of the driver")
        environment = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(double)}
        for place in "cuda:0", "cuda-async:0", "cuda-host:", "pool+cuda:0":
            self.assertIn("verified", self.out("cp", "a.bin", place, "--verify", env=environment))
            self.out("cp", f"{place}@0,1M", "zeros.bin", "--verify", env=environment)
            self.assertEqual(self.read("zeros.bin"), bytes(MIB))

    def test_messages_do_not_go_to_a_file_where_descriptors_are_closed(self):
        for closed in "<&- 2>&-", "<&- >&- 2>&-", ">&- 2>&-":
            script = f'exec "$0" cp host:@0,1M zeros --interval 0 --step 4K {closed}'
            done = subprocess.run(["sh", "-c", script, UMEM], cwd=self.folder, stdout=subprocess.DEVNULL,
                                  check=False)
            self.assertEqual(done.returncode, 1 if " >&-" in f" {closed}" else 0)
            self.assertEqual(self.read("zeros"), bytes(MIB))

    def test_wrong_use(self):
        for words, why in [
                ([], "SRC"), (["a.bin"], "DST"), (["a.bin", "b.bin", "c"], "c"), (["a.bin", "b.bin", "--nonsense"], "nonsense"),
                (["a.bin", ""], "empty name"), (["", "b.bin"], "empty name"),
                (["a.bin", "b.bin", "--step", "1X"], "not a size: 1X"), (["a.bin", "b.bin", "--interval", "-1"], "--interval"),
                (["a.bin", "b.bin", "--interval", "nan"], "--interval: not a number of seconds: nan"),
                (["a.bin", "b.bin", "--interval", "x"], "not a number of seconds: x"),
                (["host:@0,1E", "b.bin"], "not a range: @0,1E"), (["host:@1", "b.bin"], "how many zeros"),
                (["file:a.bin?mode=w", "b.bin"], "mode=w is not allowed"),
                (["a.bin", "file:b.bin?mode=w"], "not mode=w"), (["a.bin", "stats+file:b.bin"], "no layers over it"),
                (["a.bin", "file:b%zz"], "two hexadecimal digits"), (["a.bin", "b.bin", "--step", "0"], "at least one byte"),
                (["a.bin", "-"], "for a file of this name write ./-"), (["-", "b.bin"], "for a file of this name write ./-")]:
            self.assertIn(why, self.error("cp", *words, expect=2), words)
        self.assertEqual(self.names(), ["a.bin"])
        self.assertEqual(self.read("a.bin"), self.bytes)

    def test_failures(self):
        (self.folder / "folder").mkdir()
        for words, why in [(["none", "b.bin"], "No such file"), (["a.bin", "none/b.bin"], "No such file"),
                           (["a.bin", "folder"], "folder"), (["a.bin", "/dev/null"], "/dev/null"), (["a.bin", "what:x"], "what"),
                           (["a:b", "x"], "there is no scheme a: for a file write ./a:b"),
                           (["cuda:0@0,1M", "b.bin"], ""), (["a.bin", "limit+host:?limit=1M"], "")]:
            message = self.error("cp", *words)
            self.assertTrue(message.startswith("umem: ") and not message.startswith("umem: umem") and why in message, message)
        self.assertEqual(self.names(), ["a.bin", "folder"])

    def test_long_names(self):
        long = 60000 * "1"
        for words in [long, "b.bin"], ["a.bin", long], ["file:" + long, "b.bin"]:
            self.assertRegex(self.error("cp", *words), "too long|longer than")
        self.assertIn("too large", self.error("cp", long + "@" + long, "b.bin", expect=2))
        self.assertIn("not a size", self.error("cp", "a.bin", "b.bin", "--step", long + "x", expect=2))

    def test_messages_do_not_act_on_a_terminal(self):
        for name in "none\x1b[2J", "none\\x1b[2J", "shm:none\x1b[2J":
            message = self.error("cp", name, "b.bin")
            self.assertNotIn("\x1b", message)
            self.assertIn("none\\x1b[2J", message)
        self.assertIn("none\\x0a\\xff.\\xc2\\x9b", self.error("cp", os.fsdecode(b"none\n\xff.\xc2\x9b"), "b.bin"))
        self.assertIn("\\x1b[2J", self.error("cp", "a.bin", "file:b.bin?x\x1b[2J=1", expect=2))

    def test_a_file_that_may_not_grow(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))  # noqa: E731
        self.assertIn("umem: ", self.error("cp", "a.bin", "b.bin", preexec_fn=limit))
        self.assertEqual(self.names(), ["a.bin"])

    def test_a_full_disk(self):
        mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
        script = 'mount -t tmpfs -o size=1m none disk || exit 99; "$0" cp a.bin disk/b.bin; s=$?; ls -A disk; exit $s'
        (self.folder / "disk").mkdir()
        done = subprocess.run([*mount, script, UMEM], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode == 99 or "unshare" in done.stderr:
            self.skipTest("no file system can be mounted here")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, "^umem: .*(space|free)")

    def test_output_that_cannot_be_written(self):
        for words in ["cp", "a.bin", "b.bin"], ["cp", "a.bin", "b.bin", "--json"], ["cp", "--help"]:
            with open("/dev/full", "w", encoding="utf-8") as full:
                self.assertIn("cannot write to the standard output: No space", self.error(*words, stdout=full))
            pipe = closed_pipe()
            self.assertEqual(self.error(*words, stdout=pipe, expect=141), "")
            os.close(pipe)
        self.assertEqual(self.read("b.bin"), self.bytes)


if __name__ == "__main__":
    main()
