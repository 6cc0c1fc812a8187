#!/usr/bin/env python3
"""Runs traces of umem_traces on the allocators of PyTorch and RMM, where they are installed.

Usage: trace_others.py FOLDER

FOLDER has the files that umem_traces --write made. Prints, for each, the most bytes reserved over the most bytes live.
"""
import importlib.util
import os
import struct
import subprocess
import sys
from pathlib import Path


def steps_of(path):
    return struct.iter_unpack("=IQ", path.read_bytes())


def run(path, alloc):
    """Returns the most bytes that live."""
    live, sizes, now, peak = {}, {}, 0, 0
    for block, size in steps_of(path):
        if size:
            live[block], sizes[block] = alloc(size), size
            now += size
            peak = max(peak, now)
        else:
            del live[block]
            now -= sizes.pop(block)
    return peak


def with_torch(path):
    import torch

    peak = run(path, lambda size: torch.empty(size, dtype=torch.uint8, device="cuda"))
    return torch.cuda.max_memory_reserved() / peak


def with_rmm(path):
    import rmm

    counted = rmm.mr.StatisticsResourceAdaptor(rmm.mr.CudaMemoryResource())
    pool = rmm.mr.PoolMemoryResource(counted)
    peak = run(path, lambda size: rmm.DeviceBuffer(size=size, mr=pool))
    return counted.allocation_counts.peak_bytes / peak


# name: module, function, settings
HEAPS = {
    "PyTorch": ("torch", with_torch, {}),
    "PyTorch, expandable": ("torch", with_torch, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    "RMM's pool": ("rmm", with_rmm, {}),
}


def factor(name, path):
    """In a process of its own: settings hold from the start."""
    done = subprocess.run([sys.executable, __file__, "--one", name, path], capture_output=True, text=True,
                          env={**os.environ, **HEAPS[name][2]})
    return f"{float(done.stdout):.3f}" if done.returncode == 0 else "failed"


def main():
    if sys.argv[1] == "--one":
        print(HEAPS[sys.argv[2]][1](Path(sys.argv[3])))
        return
    heaps = []
    for name, (module, _, _) in HEAPS.items():
        if importlib.util.find_spec(module):
            heaps.append(name)
        else:
            print(f"{name}: {module} is not installed")
    if not heaps:
        return
    print(f"\n{'trace':<18}", *(f"{name:>20}" for name in heaps))
    for path in sorted(Path(sys.argv[1]).glob("*.trace"), key=os.path.getmtime):
        print(f"{path.stem.replace('-', ' '):<18}", *(f"{factor(name, path):>20}" for name in heaps), flush=True)


if __name__ == "__main__":
    main()
