"""Where the program stage writes, what it refuses to write to, and that it leaves nothing else."""

import os
import signal
import stat
import subprocess
import time

from support import BAD_INPUT, CELL, IDENTICAL, InFolder, program


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


class Output(InFolder):
    def test_default_name(self):
        self.assertEqual(self.stage(CELL).returncode, IDENTICAL)
        self.assert_left("staged.npy")

    def test_replaces_an_older_one(self):
        (self.folder / "out.npy").write_bytes(b"x" * 1000000)
        self.assertEqual(self.stage(CELL, "out.npy").returncode, IDENTICAL)
        self.assertEqual((self.folder / "out.npy").read_bytes(), CELL.read_bytes())

    def test_may_be_the_input(self):
        (self.folder / "a.npy").write_bytes(CELL.read_bytes())
        self.assertEqual(self.stage("a.npy", "a.npy").returncode, IDENTICAL)
        self.assertEqual((self.folder / "a.npy").read_bytes(), CELL.read_bytes())
        self.assert_left("a.npy")

    def test_longest_name(self):
        name = "x" * 255
        self.assertEqual(self.stage(CELL, name).returncode, IDENTICAL)
        self.assert_left(name)

    def test_keeps_the_mode_of_an_older_one(self):
        path = self.folder / "out.npy"
        for mode in [0o600, 0o640, 0o666, 0o755]:
            path.touch()
            path.chmod(mode)
            self.assertEqual(self.stage(CELL, "out.npy").returncode, IDENTICAL)
            self.assertEqual(mode_of(path), mode)

    def test_a_new_one_has_the_mode_of_new_files(self):
        for mask in [0o022, 0o027, 0o077, 0]:
            name = f"out-{mask}.npy"
            done = self.stage(CELL, name, preexec_fn=lambda mask=mask: os.umask(mask))
            self.assertEqual(done.returncode, IDENTICAL, done.stderr)
            self.assertEqual(mode_of(self.folder / name), 0o666 & ~mask)

    def test_no_file_of_the_user_is_touched(self):
        """Names that a program might take for its own files."""
        names = [f"out.npy{end}" for end in [".part", ".file", ".mmap", ".tmp", "~"]]
        names += ["umem-stage", "umem-stage-XXXXXX"]
        for name in names:
            (self.folder / name).write_text("mine")
        self.assertEqual(self.stage(CELL, "out.npy").returncode, IDENTICAL)
        self.assert_left("out.npy", *names)
        for name in names:
            self.assertEqual((self.folder / name).read_text(), "mine")


class Links(InFolder):
    def assert_written_through(self, link, target):
        text = os.readlink(self.folder / link)
        done = self.stage(CELL, link)
        self.assertEqual(done.returncode, IDENTICAL, done.stderr)
        self.assertEqual(os.readlink(self.folder / link), text)
        self.assertFalse((self.folder / target).is_symlink())
        self.assertEqual((self.folder / target).read_bytes(), CELL.read_bytes())

    def setUp(self):
        super().setUp()
        (self.folder / "there").mkdir()

    def test_to_a_file(self):
        target = self.folder / "there/a.npy"
        target.write_text("older")
        target.chmod(0o600)
        (self.folder / "link").symlink_to("there/a.npy")
        self.assert_written_through("link", "there/a.npy")
        self.assertEqual(mode_of(target), 0o600)
        self.assert_left("link", "there")

    def test_to_nothing_yet(self):
        (self.folder / "link").symlink_to("there/new.npy")
        self.assert_written_through("link", "there/new.npy")

    def test_to_links(self):
        (self.folder / "link").symlink_to("there/second")
        (self.folder / "there/second").symlink_to(self.folder / "there/third")
        (self.folder / "there/third").symlink_to("../new.npy")
        self.assert_written_through("link", "new.npy")

    def test_in_a_folder_that_is_a_link(self):
        (self.folder / "folder").symlink_to("there")
        (self.folder / "there/link").symlink_to("new.npy")
        self.assert_written_through("folder/link", "there/new.npy")

    def test_into_no_folder(self):
        (self.folder / "link").symlink_to("nowhere/new.npy")
        done = self.stage(CELL, "link")
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertEqual(done.stderr, 'stage: cannot write "link": No such file or directory\n')

    def test_to_itself(self):
        (self.folder / "link").symlink_to("link")
        done = self.stage(CELL, "link")
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertRegex(done.stderr, r'^stage: cannot write "link": Too many levels of symbolic links')


class Refused(InFolder):
    def assert_refused(self, name, why):
        """Before anything is opened: the input is not even looked for."""
        before = sorted(self.folder.iterdir())
        done = self.stage("missing.npy", name)
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertEqual(done.stderr, f"stage: {why}\n")
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def assert_kind_refused(self, kind, is_kind):
        (self.folder / "link").symlink_to("out")
        for name in ["out", "link"]:
            before = os.lstat(self.folder / name)
            self.assert_refused(name, f'"{name}" is {kind}, and the output replaces nothing but files')
            after = os.lstat(self.folder / name)
            self.assertEqual((after.st_ino, after.st_mode), (before.st_ino, before.st_mode))
        self.assertTrue(is_kind(os.stat(self.folder / "link").st_mode))

    def test_pipe(self):
        os.mkfifo(self.folder / "out")
        self.assert_kind_refused("a pipe (FIFO)", stat.S_ISFIFO)

    def test_socket(self):
        os.mknod(self.folder / "out", stat.S_IFSOCK | 0o600)
        self.assert_kind_refused("a socket", stat.S_ISSOCK)

    def test_folder(self):
        (self.folder / "out").mkdir()
        self.assert_kind_refused("a folder", stat.S_ISDIR)

    def test_names_that_cannot_be(self):
        (self.folder / "file").touch()
        for name, why in [
            ("", "No such file or directory"),
            ("file/out.npy", "Not a directory"),
            ("x" * 256, "File name too long"),
            ("x" * 5000, "File name too long"),
        ]:
            self.assert_refused(name, f'cannot write "{name}": {why}')

    def test_folders_that_do_not_exist(self):
        for name in ["nowhere/out.npy", "nowhere/", str(self.folder / "nowhere/out.npy")]:
            done = self.stage(CELL, name)
            self.assertEqual(done.returncode, BAD_INPUT)
            self.assertEqual(done.stderr, f'stage: cannot write "{name}": No such file or directory\n')
            self.assertEqual(done.stdout, "")
            self.assert_left()


class Killed(InFolder):
    ENDING = [signal.SIGHUP, signal.SIGINT, signal.SIGTERM]

    def setUp(self):
        """An array that takes minutes, and an output that is older."""
        super().setUp()
        with open(self.folder / "in.npy", "wb") as file:
            text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (67108864,)}"
            file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
            file.truncate(file.tell() + 67108864)
        (self.folder / "out.npy").write_text("older")

    def start(self, ignored=()):
        """Starts stage, and waits until it has a file of its own."""

        def set_signals():
            for number in self.ENDING:
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

        process = subprocess.Popen(
            [program("stage"), "in.npy", "out.npy", "4096"],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.DEVNULL,
            preexec_fn=set_signals,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while not list(self.folder.glob("umem-stage-*")):
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        return process

    def test_leaves_nothing(self):
        for number in self.ENDING:
            with self.subTest(number=number):
                process = self.start()
                process.send_signal(number)
                self.assertEqual(process.wait(60), -number)
                self.assert_left("in.npy", "out.npy")
                self.assertEqual((self.folder / "out.npy").read_text(), "older")

    def test_ignores_what_it_was_told_to_ignore(self):
        process = self.start(ignored=[signal.SIGHUP])
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), -signal.SIGTERM)
        self.assert_left("in.npy", "out.npy")
