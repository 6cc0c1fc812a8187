#!/usr/bin/env python3
"""The commands of the pages about umem run as they stand there. Usage: docs.py UMEM DEFAULT_USER"""
import json
import os
import subprocess
from pathlib import Path

from program import DEFAULT_USER, UMEM, Case, main

EXAMPLES = Path(__file__).resolve().parents[2] / "doc/examples/tool"


class Docs(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        for name, program in ("umem", UMEM), ("my_program", DEFAULT_USER):
            (self.folder / "bin" / name).symlink_to(program)
        (self.folder / "a.bin").write_bytes(bytes(range(256)) * 16384)

    def run_script(self, name):
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        environment.pop("UMEM_DEFAULT", None)
        done = subprocess.run([EXAMPLES / name], cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_cp(self):
        out = self.run_script("cp.sh")
        result = json.loads(out[out.index("{"):out.index("}") + 1])
        shown = json.loads((EXAMPLES / "cp.json").read_text())
        self.assertEqual(list(result), list(shown))
        for key in "source", "destination", "bytes", "verified":
            self.assertEqual(result[key], shown[key])
        self.assertEqual([(self.folder / name).stat().st_size for name in ("b.bin", "part.bin", "zeros.bin")],
                         [4 << 20, 1 << 20, 2 << 20])

    def test_shm(self):
        try:
            self.run_script("shm.sh")
            self.assertEqual((self.folder / "copy.bin").read_bytes(), (self.folder / "a.bin").read_bytes())
            self.assertEqual(list(Path("/dev/shm").glob("*umem-cp-*")), [])
        finally:
            for path in Path("/dev/shm").glob("*umem-cp-*"):
                path.unlink()

    def test_trace(self):
        self.assertIn("2 operations in", self.run_script("trace.sh"))
        for name in "trace.json", "run.json", "run.umem", "run.csv":
            self.assertTrue((self.folder / name).stat().st_size)


if __name__ == "__main__":
    main()
