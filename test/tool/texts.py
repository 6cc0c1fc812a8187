#!/usr/bin/env python3
"""Help, manual pages and completions of umem say the same. Usage: texts.py UMEM DEFAULT_USER"""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from program import UMEM, Case, main


def options_of(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


class Texts(Case):
    helps = {}  # what --help prints: the same each time, and under sanitizers a process takes long

    def setUp(self):
        super().setUp()
        self.out("--write-texts", "texts")
        self.texts = self.folder / "texts"

    def help(self, *words):
        if words not in self.helps:
            self.helps[words] = self.out(*words, "--help")
        return self.helps[words]

    def commands(self):
        """The words of each command, such as ("trace", "run")."""
        found = [()]
        for words in found:
            lines = self.help(*words).split("Subcommands:\n")[1:]
            found += [(*words, line.split()[0]) for line in "".join(lines).splitlines() if re.match("  [a-z]", line)]
        return found

    def test_all_commands_are_there(self):
        commands = self.commands()
        for words in ("bw",), ("cp",), ("info",), ("trace",), ("trace", "run"), ("trace", "replay"), ("trace", "csv"), ("trace", "summary"):
            self.assertIn(words, commands)

    def test_help_has_the_exit_codes(self):
        for words in self.commands():
            self.assertIn("130 interrupted", self.help(*words))
            self.assertEqual(self.out(*words, "-h"), self.help(*words))

    def test_help_fits_a_terminal(self):
        for columns, most in (20, 40), (50, 50), (70, 70), (120, 120):
            for words in self.commands():
                lines = self.on_terminal_out(columns, *words, "--help").splitlines()
                self.assertTrue(all(len(line) <= most for line in lines), lines)
        self.assertTrue(all(len(line) <= 80 for line in self.help("cp").splitlines()))
        self.assertEqual(self.help("trace", "run").split(), self.on_terminal_out(40, "trace", "run", "--help").split())
        self.assertIn("\n  --context N               of the context with this number only\n", self.help("trace"))
        self.assertIn("arrows", self.help("trace").split("--flows")[1].split("(needs --chrome)")[0])

    def test_the_manual_has_all_options(self):
        for words in self.commands():
            page = (self.texts / "man1" / f"{'-'.join(('umem', *words[:1]))}.1").read_text()
            self.assertTrue(page.startswith(".TH UMEM"))
            self.assertIn(".SH EXIT STATUS", page)
            self.assertLessEqual(options_of(self.help(*words)), options_of(page.replace("\\-", "-")))

    def test_the_manual_is_well_formed(self):
        if not shutil.which("groff"):
            self.skipTest("there is no groff")
        for page in (self.texts / "man1").iterdir():
            done = subprocess.run(["groff", "-man", "-ww", "-z", page], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")

    def complete(self, *words):
        script = 'source "$1/bash/umem"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _umem; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script, "bash", self.texts, *words], cwd=self.folder, capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_each_option_has_a_test(self):
        root = Path(__file__).resolve().parents[2] / "test"
        paths = [*(root / "tool").glob("*.py"), root / "unit/adaptors/log/log_trace.py"]
        tests = {option for path in paths for option in options_of(path.read_text())}
        for command in self.commands():
            self.assertEqual(options_of(self.help(*command)) - tests, set(), command)

    def test_bash_completes_all_options(self):
        for words in self.commands():
            self.assertLessEqual(options_of(self.help(*words).split("\nOptions:", 1)[1].split("Subcommands:")[0]),
                                 self.complete("umem", *words, "--"))
        self.assertEqual(self.complete("umem", "tr"), {"trace"})
        self.assertEqual(self.complete("umem-trace", "--rep"), {"--replay"})
        self.assertEqual(self.complete("umem-trace", "repl"), {"replay"})
        self.assertEqual(self.complete("umem", "cp", "tex"), {"texts"})
        self.assertEqual(self.complete("umem", "trace", "run", "--fl"), {"--flows"})
        self.assertEqual(self.complete("umem", "trace", "run", "--", "x", "--fl"), set())
        self.assertEqual(self.complete("umem", "trace", "run", "--", "x", "tex"), {"texts"})
        self.assertIn("bash", self.complete("umem", "trace", "run", "--", "bas"))

    def test_zsh(self):
        text = (self.texts / "zsh/_umem").read_text()
        self.assertTrue(text.startswith("#compdef umem umem-trace\n"))
        for words in self.commands():
            self.assertIn(f"('{''.join('/' + word for word in words)}')", text)

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh_completes(self):
        (self.folder / "with space").touch()
        (self.folder / "bin").mkdir()
        for name in "umem", "umem-trace":
            (self.folder / "bin" / name).symlink_to(UMEM)
        for typed, shown in [("umem tr", "umem trace "), ("umem-trace repl", "umem-trace replay "), ("umem cp --st", "umem cp --step "),
                             ("umem cp wi", r"umem cp with\ space "), ("umem cp file:wi", r"umem cp file:with\ space "),
                             ("umem trace run -- ls wi", r"umem trace run -- ls with\ space ")]:
            self.assertIn(shown, self.typed_in_zsh(typed + "\t", shown))

    def typed_in_zsh(self, keys, wanted):
        """What a terminal of zsh shows after these keys, until it has what is wanted or 10 s are over."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            path = f"{self.folder}/bin:{os.environ['PATH']}"
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "PATH": path, "HOME": str(self.folder)})
        try:
            setup = f"fpath=({self.texts}/zsh $fpath); autoload -U compinit; compinit -u -D; print rea''dy\n"
            os.write(terminal, setup.encode())
            self.read_until(terminal, "ready")
            os.write(terminal, keys.encode())
            return self.read_until(terminal, wanted)
        finally:
            os.kill(child, signal.SIGKILL)
            os.close(terminal)
            os.waitpid(child, 0)

    def read_until(self, terminal, wanted):
        shown, end = "", time.monotonic() + 10
        while wanted not in shown and select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            shown += os.read(terminal, 4096).decode(errors="replace").replace("\a", "")
        return shown

    def test_the_program_itself(self):
        config = (Path(__file__).resolve().parents[2] / "c/include/umem/config.h").read_text()
        version = re.search(r'UMEM_VERSION "(.+)"', config)[1]
        self.assertEqual(self.out("--version"), f"umem {version}\n")
        self.assertIn("subcommand", self.error(expect=2))
        self.assertTrue(self.error("nonsense", expect=2).startswith("umem: there is no command nonsense\n"))
        for word in "-V", "--nonsense", "--nonsense=1":
            self.assertTrue(self.error(word, expect=2).startswith(f"umem: there is no option {word}\n"))
        self.assertNotIn("--write-texts", self.help())
        self.assertIn("cannot", self.error("--write-texts", "/dev/null/x").lower())


if __name__ == "__main__":
    main()
