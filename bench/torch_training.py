#!/usr/bin/env python3
"""Trains a small transformer on sequences of changing lengths: over PyTorch's allocators, and over a pool of umem.

Usage: torch_training.py [--steps N] [--rounds N] [--json FILE]

Each run is a process of its own; the allocators take turns. Prints, for each, the median milliseconds of a step without
the first tenth and the seconds of all steps, both of the faster round, the GiB of the GPU that the process took beyond
the first tensor, as CUDA reports them, and the last loss.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

# name: settings of PyTorch, the pool that replaces its allocator
ALLOCATORS = {
    "PyTorch": ("", ""),
    "PyTorch, expandable": ("expandable_segments:True", ""),
    "umem.Pool": ("", "pool+cuda:0"),
}


def train(steps, pool):
    """What one allocator takes."""
    import torch

    use = None
    if pool:
        import umem

        use = umem.use_in_torch(umem.open(pool), permanent=True)
    width, heads, layers, batch, words = 1024, 16, 12, 8, 32000
    torch.manual_seed(1)
    torch.zeros(1, device="cuda")
    before = torch.cuda.mem_get_info()[0]
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True, dropout=0.0)
    model = torch.nn.Sequential(torch.nn.Embedding(words, width), torch.nn.TransformerEncoder(layer, layers),
                                torch.nn.Linear(width, words)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    lengths = torch.randint(32, 513, (steps,), generator=torch.Generator().manual_seed(2)).tolist()
    milliseconds, least = [], before
    begin = time.perf_counter()
    for length in lengths:
        start = time.perf_counter()
        text = torch.randint(words, (batch, length), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(text).flatten(0, 1), text.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        milliseconds.append((time.perf_counter() - start) * 1e3)
        least = min(least, torch.cuda.mem_get_info()[0])
    assert not use or use.failure is None
    return {"milliseconds": statistics.median(milliseconds[steps // 10:]), "seconds": time.perf_counter() - begin,
            "GiB": (before - least) / 2**30, "loss": loss.item()}


def run(name, steps):
    settings, pool = ALLOCATORS[name]
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": settings} if settings else os.environ
    done = subprocess.run([sys.executable, __file__, "--steps", str(steps), "--pool", pool, "--one"], env=environment,
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--pool", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(train(arguments.steps, arguments.pool)), flush=True)
        return
    runs = {name: [] for name in ALLOCATORS}
    for i in range(arguments.rounds):
        for name in list(ALLOCATORS)[::-1 if i % 2 else 1]:
            runs[name].append(run(name, arguments.steps))
    print(f"{'allocator':<24}{'ms a step':>10}{'seconds':>10}{'GiB':>8}{'loss':>10}")
    for name, results in runs.items():
        milliseconds, seconds = (min(result[key] for result in results) for key in ("milliseconds", "seconds"))
        print(f"{name:<24}{milliseconds:>10.2f}{seconds:>10.1f}{max(result['GiB'] for result in results):>8.2f}"
              f"{results[0]['loss']:>10.4f}", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(runs, file, indent=1)


if __name__ == "__main__":
    main()
