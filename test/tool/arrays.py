#!/usr/bin/env python3
"""umem info and umem cp of files of arrays. Usage: arrays.py UMEM DEFAULT_USER"""
import json
import os
import struct
import subprocess
import zipfile
from pathlib import Path

from program import UMEM, Case, main

EXAMPLES = Path(__file__).resolve().parents[2] / "doc/examples/tool"


def npy(descr, shape, data, order=False):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    text += " " * (-(11 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + data


class Arrays(Case):
    def setUp(self):
        super().setUp()
        self.floats = struct.pack("<6f", *range(6))
        self.long = bytes(range(256)) * 4096 * 3  # 3 MiB
        header = json.dumps({"__metadata__": {"made by": "a test"},
                             "layer.0": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                             "half#1": {"dtype": "BF16", "shape": [2], "data_offsets": [24, 28]}}).encode()
        (self.folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + self.floats + b"abcd")
        for name, method in (("stored.npz", zipfile.ZIP_STORED), ("packed.npz", zipfile.ZIP_DEFLATED)):
            with zipfile.ZipFile(self.folder / name, "w", method) as file:
                file.writestr("a.npy", npy("<f4", "(2, 3)", self.floats))
                file.writestr("long.npy", npy("|u1", f"({len(self.long)},)", self.long))
                file.writestr("turned.npy", npy("<f4", "(2, 3)", self.floats, True))
                file.writestr("text.npy", npy("<U1", "(1,)", b"abcd"))
                file.writestr("at@5.npy", npy("|u1", "(4,)", b"wxyz"))

    def read(self, name):
        return (self.folder / name).read_bytes()

    # ---- cp ----

    def test_an_array_goes_to_a_file_or_memory(self):
        for name, elements in (("model.safetensors#layer.0", self.floats), ("model.safetensors#half#1", b"abcd"),
                               ("stored.npz#a", self.floats), ("packed.npz#a", self.floats), ("stored.npz#at@5", b"wxyz"),
                               ("stored.npz#long", self.long), ("packed.npz#long", self.long)):
            for options in ([], ["--verify"]):
                self.out("cp", name, "out.bin", *options)
                self.assertEqual(self.read("out.bin"), elements)
            self.out("cp", name, "host:", "--verify")
        self.assertIn(", inflated", self.out("cp", "packed.npz#long", "out.bin"))
        self.assertIn("file -> ", self.out("cp", "stored.npz#long", "out.bin"))
        found = json.loads(self.out("cp", "packed.npz#long", "out.bin", "--json", "--verify"))
        self.assertTrue(found["verified"] and found["bytes"] == len(self.long))
        self.out("cp", "stored.npz#long", "out.bin", "--direct", "--quiet")
        self.assertEqual(self.read("out.bin"), self.long)

    def test_big_endian_arrays(self):
        swapped = b"".join(self.floats[i:i + 4][::-1] for i in range(0, 24, 4))
        (self.folder / "big.npy").write_bytes(npy(">f4", "(2, 3)", swapped))
        with zipfile.ZipFile(self.folder / "big.npz", "w") as file:
            file.write(self.folder / "big.npy", "a.npy")
        for name in "big.npy", "big.npz":
            self.assertRegex(self.out("info", name), r"\na? +float32 +\(2, 3\) +24 B +big endian\n")
        self.assertIn(", turned", self.out("cp", "big.npz#a", "out.bin", "--verify"))
        self.assertEqual(self.read("out.bin"), self.floats)

    def test_one_array_makes_no_file_of_named_arrays(self):
        for name in "new.npz", "new.safetensors":
            self.assertIn("make no file of named arrays", self.error("cp", "stored.npz#a", name, expect=2))
            self.assertFalse((self.folder / name).exists())

    def test_an_array_becomes_a_npy_file(self):
        for name in "stored.npz", "packed.npz":
            self.out("cp", name + "#a", "out.npy", "--verify")
            self.assertEqual(self.read("out.npy"), npy("<f4", "(2, 3)", self.floats))
            self.out("cp", name + "#turned", "file:out.npy")
            self.assertEqual(self.read("out.npy"), npy("<f4", "(2, 3)", self.floats, True))
        self.out("cp", "out.npy", "again.npy")  # a file, not an array
        self.assertEqual(self.read("again.npy"), self.read("out.npy"))
        before = sorted(os.listdir(self.folder))
        self.assertIn(".npy files have no elements of type bfloat16", self.error("cp", "model.safetensors#half#1", "new.npy"))
        self.assertIn("a part of an array", self.error("cp", "stored.npz#a@0,4", "new.npy", expect=2))
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_what_would_not_be_an_array_is_refused(self):
        model = self.read("model.safetensors")
        (self.folder / "one.npy").write_bytes(npy("<f4", "(2, 3)", self.floats))
        before = sorted(os.listdir(self.folder))
        for source in "one.npy", "stored.npz#a":
            self.assertIn("model.safetensors are only read", self.error("cp", source, "model.safetensors#layer.0", expect=2))
        for source in "model.safetensors", "stored.npz":
            self.assertIn(f"{source} has several arrays", self.error("cp", source, "new.npy", expect=2))
        self.assertIn("only on a disk", self.error("cp", "stored.npz#a", "s3://bucket/new.npy", expect=2))
        self.assertIn('stored.npz: there is no array "b"', self.error("cp", "stored.npz#b", "out.bin"))
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertEqual(self.read("model.safetensors"), model)

    def test_parts_of_arrays(self):
        for text, part in (("@4,8", self.floats[4:12]), ("@20", self.floats[20:]), ("@0,0", b"")):
            self.out("cp", "stored.npz#a" + text, "out.bin")
            self.assertEqual(self.read("out.bin"), part)
        self.assertIn("stored.npz#a holds 24 bytes: there is no range", self.error("cp", "stored.npz#a@20,8", "out.bin"))
        self.assertIn("a is compressed", self.error("cp", "packed.npz#a@0,4", "out.bin", expect=2))
        self.assertIn("a is compressed", self.error("cp", "packed.npz#a", "out.bin", "--direct", expect=2))

    def test_arrays_that_are_not_there(self):
        for name in "stored.npz#b", "model.safetensors#", "stored.npz#b@0,4":
            self.assertIn("there is no array", self.error("cp", name, "out.bin"))
        self.assertIn("has no elements of its type '<U1'", self.error("cp", "stored.npz#text", "out.bin").replace("\\", ""))
        (self.folder / "bytes").write_bytes(b"no archive")
        self.assertIn("no file of safetensors or .npz", self.error("cp", "bytes#a", "out.bin"))
        self.assertIn("No such file", self.error("cp", "nowhere#a", "out.bin"))
        self.assertFalse((self.folder / "out.bin").exists())

    def test_damaged_elements_make_no_file(self):
        raw = bytearray(self.read("packed.npz"))
        raw[raw.index(b"long.npy") + 600] ^= 255
        (self.folder / "packed.npz").write_bytes(raw)
        self.assertIn('"long": its c', self.error("cp", "packed.npz#long", "out.bin"))
        self.assertFalse((self.folder / "out.bin").exists())

    def test_a_file_whose_name_has_that_sign(self):
        (self.folder / "model.safetensors#layer.0").write_bytes(b"a file")
        (self.folder / "a#b").write_bytes(b"another")
        self.out("cp", "model.safetensors#layer.0", "out#1.bin")
        self.assertEqual(self.read("out#1.bin"), b"a file")
        self.out("cp", "a#b@2,3", "out.bin")
        self.assertEqual(self.read("out.bin"), b"oth")
        self.out("cp", "file:a#b", "out.bin")
        self.assertEqual(self.read("out.bin"), b"another")

    # ---- info ----

    def test_the_arrays_of_a_file_are_listed(self):
        text = self.out("info", "model.safetensors")
        self.assertRegex(text, r"^model.safetensors  safetensors\n    made by +a test\n")
        self.assertRegex(text, r"\nlayer\.0 +float32 +\(2, 3\) +24 B *\nhalf#1 +bfloat16 +\(2,\) +4 B *\n$")
        for name, word in (("stored.npz", ""), ("packed.npz", "compressed")):
            text = self.out("info", name)
            self.assertRegex(text, rf"\na +float32 +\(2, 3\) +24 B *{word}\n")
            self.assertRegex(text, rf"\nlong +uint8 +\(3145728,\) +3 MiB *{word}\n")
            self.assertRegex(text, r"\ntext +none +umem has no elements of its type '<U1'\n")
        (self.folder / "x.npy").write_bytes(npy("<c8", "()", bytes(8)))
        self.assertRegex(self.out("info", "x.npy"), r"^x.npy  npy\n.*\n +complex64 +\(\) +8 B")

    def test_arrays_as_json(self):
        found = json.loads(self.out("info", "--json", "packed.npz#a", "model.safetensors", "host:"))
        self.assertEqual([context["name"] for context in found["contexts"]], ["host:"])
        one, other = found["files"]
        self.assertEqual(one["arrays"], [{"name": "a", "type": "float32", "shape": [2, 3], "bytes": 24, "compressed": True,
                                          "big_endian": False, "offset": one["arrays"][0]["offset"], "problem": None}])
        self.assertEqual((one["format"], other["format"]), ("npz", "safetensors"))
        self.assertEqual(other["metadata"], [{"key": "made by", "text": "a test"}])
        offset = other["arrays"][0]["offset"]
        self.assertEqual(self.read("model.safetensors")[offset:offset + 24], self.floats)
        self.assertIsNone(json.loads(self.out("info", "--json", "stored.npz#text"))["files"][0]["arrays"][0]["type"])

    def test_files_that_cannot_be_listed(self):
        (self.folder / "bytes").write_bytes(b"no archive")
        (self.folder / "cut.npy").write_bytes(npy("<f8", "(9,)", b""))
        (self.folder / "PK.npz").write_bytes(b"PK")
        for name, why in (("bytes", "no file of safetensors or .npz"), ("nowhere.npz", "no such file"), ("cut.npy", "truncated"),
                          ("stored.npz#b", "no array"), (".", "it is a folder"),
                          ("PK.npz", "too short for a file of safetensors or .npz")):
            done = self.run_umem("info", name, expect=1)
            self.assertIn(why, done.stdout)
            self.assertIn("cannot be opened", done.stderr)
            self.assertFalse(json.loads(self.out("info", "--json", name, expect=1))["files"][0]["opens"])


    # ---- the commands of the page ----

    def test_the_example(self):
        (self.folder / "bin").mkdir()
        (self.folder / "bin/umem").symlink_to(UMEM)
        (self.folder / "packed.npz").rename(self.folder / "results.npz")
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        shown = subprocess.run([EXAMPLES / "arrays.sh"], cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True,
                               check=True).stdout
        self.assertEqual(shown, (EXAMPLES / "arrays.txt").read_text())
        self.assertEqual(self.read("a.npy"), npy("<f4", "(2, 3)", self.read("a.bin")))


if __name__ == "__main__":
    main()
