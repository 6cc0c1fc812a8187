"""Runs the program umem for the tests in this folder, whose first argument is the program."""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from pathlib import Path

UMEM, DEFAULT_USER = (os.path.abspath(program) for program in sys.argv[1:3])


def closed_pipe():
    """The end for writing of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix=f"umem-test-{os.getpid()}-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_umem(self, *words, expect=0, program=UMEM, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder, **options}
        done = subprocess.run([program, *map(str, words)], text=True, check=False, **options)
        self.assertEqual(done.returncode, expect, f"{words}: {done.stdout} {done.stderr}")
        return done

    def out(self, *words, **options):
        return self.run_umem(*words, **options).stdout

    def error(self, *words, expect=1, **options):
        return self.run_umem(*words, expect=expect, **options).stderr

    def on_terminal(self, columns, *words, expect=0, stream="stderr"):
        """What the standard error, or the standard output, shows on a terminal of this width."""
        terminal, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: side}
        child = subprocess.Popen([UMEM, *map(str, words)], cwd=self.folder, env=environment, **streams)
        os.close(side)
        shown = b""
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # EIO: the other side is closed
                break
            if not part:
                break
            shown += part
        os.close(terminal)
        self.assertEqual(child.wait(), expect)
        return shown.decode()

    def on_terminal_out(self, columns, *words, **options):
        return self.on_terminal(columns, *words, stream="stdout", **options).replace("\r\n", "\n")


def main():
    unittest.main(argv=sys.argv[:1])
