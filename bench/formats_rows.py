#!/usr/bin/env python3
"""Measures files of named arrays beside the library safetensors and, those of .npz, beside NumPy.

Usage: formats_rows.py [--once] [--json FILE]

Runs with the Python of an environment in which umem, NumPy and safetensors are installed, for a GPU PyTorch, too. The file has
one array of a quarter of its bytes and many smaller ones, 1 GiB in all, for the rows of a GPU 4 GiB; it is in $TMPDIR, and in the
page cache. In each row both sides run in turns in one process; the median of the rounds counts. Exit status 0: everything
was measured, whether targets were met or not.
"""
import argparse
import json
import tempfile
from pathlib import Path

from python_rows import Rows, has_gpu, module

import umem
import umem.formats

PARTS = 48  # arrays besides the large one


def make_arrays(size):
    numpy = module("numpy")
    large = numpy.arange(size // 16, dtype="float32").reshape(64, -1)
    small = {f"layer.{k}.weight": numpy.full((size * 3 // 4 // PARTS // 4096, 1024), k, "float32") for k in range(PARTS)}
    return {"embed.weight": large} | small


def measure_open(rows, safetensors, many):
    def read():
        with umem.formats.open(many) as archive:
            return archive["layer.5"]

    def read_theirs():
        with safetensors.safe_open(many, framework="numpy") as file:
            return file.get_tensor("layer.5")

    rows.add("open a file of 1000 arrays, get one", "safe_open, get_tensor", 1, read, read_theirs, calls=50)
    with umem.formats.open(many) as archive, safetensors.safe_open(many, framework="numpy") as file:
        rows.add("get one of 1000, 4 KiB, no copy", "get_tensor", 1, lambda: archive["layer.7"], lambda: file.get_tensor("layer.7"),
                 calls=2000)
    load_file = module("safetensors.numpy").load_file
    rows.add("all of 1000 arrays of 4 KiB to RAM", "load_file", 1, lambda: umem.formats.load(many, "host:"), lambda: load_file(many), calls=5)


def measure_ram(rows, safetensors, path):
    load_file = module("safetensors.numpy").load_file

    def read_theirs():
        with safetensors.safe_open(path, framework="numpy") as file:
            return file.get_tensor("embed.weight")

    rows.add("one array of a file to RAM", "safe_open, get_tensor", 1,
             lambda: umem.formats.load(path, "host:", ["embed.weight"]), read_theirs, rounds=9)
    rows.add("all arrays of a file to RAM", "load_file", 1, lambda: umem.formats.load(path, "host:"),
             lambda: load_file(path), rounds=5)


def measure_save(rows, arrays, folder):
    save_file = module("safetensors.numpy").save_file
    rows.add("write all arrays of RAM to a new file", "save_file", 1,
             lambda: umem.formats.save(folder / "ours", arrays), lambda: save_file(arrays, folder / "theirs"), rounds=5)


def measure_npz(rows, arrays, folder):
    """One file, stored and compressed, and its large array."""
    numpy = module("numpy")
    plain, packed = folder / "plain.npz", folder / "packed.npz"
    rows.add("write all arrays of RAM to a new .npz file", "savez", 1, lambda: umem.formats.save(plain, arrays),
             lambda: numpy.savez(folder / "theirs.npz", **arrays), rounds=5)
    few = {"embed.weight": arrays["embed.weight"].ravel()[:1 << 24]}
    numpy.savez_compressed(packed, **few)

    def read(path):
        with numpy.load(path) as file:
            return file["embed.weight"]

    def read_sums():
        with numpy.load(plain) as file:
            return [file[name] for name in file.files]

    def check():
        with umem.formats.open(plain) as archive:
            archive.check()

    def show():
        with umem.formats.open(plain) as archive:
            return archive["embed.weight"]

    rows.add("open a .npz file, get one array, no copy", "load, one array", 1, show, lambda: read(plain), rounds=5)
    rows.add("one array of a .npz file to RAM", "load, one array", 1,
             lambda: umem.formats.load(plain, "host:", ["embed.weight"]), lambda: read(plain), rounds=5)
    rows.add("check all arrays of a .npz file", "load, which checks, too", 1, check, read_sums, rounds=5)
    rows.add("one compressed array of 64 MiB to RAM", "load, one array", 1, lambda: umem.formats.load(packed), lambda: read(packed),
             rounds=5)
    return plain


def measure_npz_gpu(rows, path):
    torch, numpy = module("torch"), module("numpy")
    if not torch:
        return
    gpu = umem.open("pool+cuda:0")

    def load_theirs():
        with numpy.load(path) as file:
            found = torch.from_numpy(file["embed.weight"]).cuda()
        torch.cuda.synchronize()
        return found

    rows.add("one array of a .npz file to the GPU", "load, from_numpy, cuda", 1 / 3,
             lambda: umem.formats.load(path, gpu, ["embed.weight"]), load_theirs, rounds=5)


def measure_gpu(rows, safetensors, path, size):
    torch = module("torch")
    if not torch:
        return
    umem.formats.save(path, make_arrays(size))
    load_file = module("safetensors.torch").load_file
    gpu = umem.open("pool+cuda:0")
    info = umem.formats.open(path).info("embed.weight")

    def read_theirs():
        with safetensors.safe_open(path, framework="pt", device="cuda") as file:
            found = file.get_tensor("embed.weight")
        torch.cuda.synchronize()
        return found

    def load_theirs():
        found = load_file(path, device="cuda")
        torch.cuda.synchronize()
        return found

    with umem.File(path, "r") as file:
        raw, target = umem.at(file, info.offset, info.shape, "float32"), umem.empty(info.shape, "float32", gpu)
        rows.add("one array of a file to the GPU", 'safe_open(device="cuda")', 1 / 3,
                 lambda: umem.formats.load(path, gpu, ["embed.weight"]), read_theirs, rounds=9)
        rows.add("one array of a file to the GPU", "umem.copy of these bytes", 1 / 0.95,
                 lambda: umem.formats.load(path, gpu, ["embed.weight"]), lambda: umem.copy(target, raw), rounds=9)
        rows.add("all arrays of a file to the GPU", 'load_file(device="cuda")', 1 / 3, lambda: umem.formats.load(path, gpu),
                 load_theirs, rounds=5)
        seconds = min(rows.results[-2]["umem"])
        print(f"one array: {info.nbytes / seconds / 1e9:.1f} GB/s at best")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="one short round: the figures mean nothing")
    parser.add_argument("--json", help="the file for all samples")
    arguments = parser.parse_args()
    safetensors = module("safetensors")
    if not safetensors:
        return
    rows = Rows(arguments.once)
    size = (16 << 20) if arguments.once else 1 << 30
    arrays = make_arrays(size)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, many = folder / "model.safetensors", folder / "many.safetensors"
        umem.formats.save(path, arrays)
        umem.formats.save(many, {f"layer.{k}": umem.zeros((32, 32), "float32") for k in range(1000)})
        measure_open(rows, safetensors, many)
        measure_ram(rows, safetensors, path)
        if has_gpu():
            measure_gpu(rows, safetensors, folder / "large.safetensors", 4 * size)
            (folder / "large.safetensors").unlink(missing_ok=True)
        measure_save(rows, arrays, folder)
        plain = measure_npz(rows, arrays, folder)
        if has_gpu():
            measure_npz_gpu(rows, plain)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows.results))


if __name__ == "__main__":
    main()
