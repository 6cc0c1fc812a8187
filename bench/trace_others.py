#!/usr/bin/env python3
"""Runs traces of umem_traces on the allocators of PyTorch, where it is installed.

Usage: trace_others.py FOLDER

FOLDER has the files that umem_traces --write made. Prints, for each, the most bytes reserved over the most bytes live.
"""
import importlib.util
import os
import struct
import subprocess
import sys
from pathlib import Path

# name: settings, which hold from the start of a process
ALLOCATORS = {"PyTorch": {}, "PyTorch, expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}}


def factor(path):
    """Runs a trace in this process."""
    import torch

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    live, now, peak = {}, 0, 0
    for block, size in struct.iter_unpack("=IQ", path.read_bytes()):
        if size:
            live[block] = torch.empty(size, dtype=torch.uint8, device="cuda")
            now += size
            peak = max(peak, now)
        else:
            now -= live.pop(block).numel()
    return torch.cuda.max_memory_reserved() / peak


def factors(settings, paths):
    """Those of all traces, in a process of its own; a trace that fails ends it."""
    done = subprocess.run([sys.executable, __file__, "--run", *paths], capture_output=True, text=True,
                          env={**os.environ, **settings})
    if done.returncode:
        print(*done.stderr.splitlines()[-1:])
    found = [f"{float(line):.3f}" for line in done.stdout.splitlines()]
    return found + ["failed"] * (len(paths) - len(found))


def main():
    if sys.argv[1] == "--run":
        for path in sys.argv[2:]:
            print(factor(Path(path)), flush=True)
        return
    if not importlib.util.find_spec("torch"):
        print("PyTorch is not installed")
        return
    paths = sorted(Path(sys.argv[1]).glob("*.trace"), key=os.path.getmtime)
    columns = [factors(settings, paths) for settings in ALLOCATORS.values()]
    print(f"\n{'trace':<18}", *(f"{name:>20}" for name in ALLOCATORS))
    for path, *row in zip(paths, *columns):
        print(f"{path.stem.replace('-', ' '):<18}", *(f"{text:>20}" for text in row))


if __name__ == "__main__":
    main()
