#!/usr/bin/env python3
"""Help, manual pages and completions of umem say the same. Usage: texts.py UMEM DEFAULT_USER"""
import re
import shutil
import subprocess

from program import Case, main


def options_of(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


class Texts(Case):
    def setUp(self):
        super().setUp()
        self.out("--write-texts", "texts")
        self.texts = self.folder / "texts"

    def commands(self):
        """The words of each command, such as ("trace", "run")."""
        found = [()]
        for words in found:
            lines = self.out(*words, "--help").split("Subcommands:\n")[1:]
            found += [(*words, line.split()[0]) for line in "".join(lines).splitlines() if re.match("  [a-z]", line)]
        return found

    def test_all_commands_are_there(self):
        commands = self.commands()
        for words in ("bw",), ("cp",), ("info",), ("trace",), ("trace", "run"), ("trace", "replay"), ("trace", "csv"), ("trace", "summary"):
            self.assertIn(words, commands)

    def test_help_has_the_exit_codes(self):
        for words in self.commands():
            self.assertIn("130 interrupted", self.out(*words, "--help"))
            self.assertEqual(self.out(*words, "-h"), self.out(*words, "--help"))

    def test_the_manual_has_all_options(self):
        for words in self.commands():
            page = (self.texts / "man1" / f"{'-'.join(('umem', *words[:1]))}.1").read_text()
            self.assertTrue(page.startswith(".TH UMEM"))
            self.assertIn(".SH EXIT STATUS", page)
            self.assertLessEqual(options_of(self.out(*words, "--help")), options_of(page.replace("\\-", "-")))

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

    def test_bash_completes_all_options(self):
        for words in self.commands():
            self.assertLessEqual(options_of(self.out(*words, "--help").split("\nOptions:", 1)[1].split("Subcommands:")[0]),
                                 self.complete("umem", *words, "--"))
        self.assertEqual(self.complete("umem", "tr"), {"trace"})
        self.assertEqual(self.complete("umem-trace", "--rep"), {"--replay"})
        self.assertEqual(self.complete("umem-trace", "repl"), {"replay"})
        self.assertEqual(self.complete("umem", "cp", "tex"), {"texts"})
        self.assertEqual(self.complete("umem", "trace", "run", "--fl"), {"--flows"})

    def test_zsh(self):
        text = (self.texts / "zsh/_umem").read_text()
        self.assertTrue(text.startswith("#compdef umem umem-trace\n"))
        for words in self.commands():
            self.assertIn(f"('{''.join('/' + word for word in words)}')", text)
        if shutil.which("zsh"):
            subprocess.run(["zsh", "-n", self.texts / "zsh/_umem"], check=True)

    def test_the_program_itself(self):
        self.assertRegex(self.out("--version"), r"^umem \d+\.\d+\.\d+\n$")
        self.assertIn("subcommand", self.error(expect=2))
        self.assertTrue(self.error("nonsense", expect=2).startswith("umem: there is no command nonsense\n"))
        self.assertNotIn("--write-texts", self.out("--help"))
        self.assertIn("cannot", self.error("--write-texts", "/dev/null/x").lower())


if __name__ == "__main__":
    main()
