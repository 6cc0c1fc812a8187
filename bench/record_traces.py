#!/usr/bin/env python3
"""Records what real models allocate on a GPU, as traces for umem_traces.

Usage: record_traces.py FOLDER [--allocations N]

Needs PyTorch and a GPU. Trains three models and has a fourth write text, each in a process of its own, and writes what
PyTorch's allocator was asked for, from the first weight on, to FOLDER/NAME.txt. Each line is an allocation: its size in
units of 512 bytes, rounded up, and how many later allocations come before its free; "-" if it lives to the end. Lines
that begin with # are a comment. The first N allocations are stored, by default 10000.
"""
import argparse
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

UNIT = 512


def numbers(low, high, seed=2):
    """Endless random integers, the same in each run."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield int(torch.randint(low, high, (1,), generator=generator))


def train(model, optimizer, losses):
    """One training step for each loss; autocast to bfloat16."""
    while True:
        with torch.autocast("cuda", torch.bfloat16):
            loss = next(losses)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del loss
        yield


def transformer():
    """A transformer of 12 layers and 1024 channels, 8 sequences of 32 to 512 words, AdamW."""
    width, layers, batch, words = 1024, 12, 8, 32000
    layer = nn.TransformerEncoderLayer(width, 16, 4 * width, batch_first=True, dropout=0.0)
    model = nn.Sequential(nn.Embedding(words, width), nn.TransformerEncoder(layer, layers), nn.Linear(width, words)).cuda()

    def losses():
        for length in numbers(32, 513):
            text = torch.randint(words, (batch, length), device="cuda")
            yield functional.cross_entropy(model(text).flatten(0, 1), text.flatten())

    return train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), losses())


class Residual(nn.Module):
    """Three convolutions beside a shortcut, as in a residual network of 50 layers."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.way = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity() if inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, images):
        return functional.relu(self.way(images) + self.shortcut(images))


def convolutions():
    """A residual network of 50 layers, 32 images of 128 to 320 pixels, SGD."""
    layers, inputs = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for i, count in enumerate((3, 4, 6, 3)):
        width = 64 << i
        for k in range(count):
            layers.append(Residual(inputs, width, 2 if i and not k else 1))
            inputs = 4 * width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)).cuda()

    def losses():
        for edge in numbers(4, 11):
            images = torch.rand(32, 3, 32 * edge, 32 * edge, device="cuda")
            yield functional.cross_entropy(model(images), torch.randint(1000, (32,), device="cuda"))

    return train(model, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9), losses())


class Experts(nn.Module):
    """Eight feed-forward networks; each word goes to the two that a linear layer chooses."""

    def __init__(self, width, count=8):
        super().__init__()
        self.norm, self.choice = nn.LayerNorm(width), nn.Linear(width, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(count))

    def forward(self, words):
        normal = self.norm(words)
        weights, chosen = self.choice(normal).softmax(-1).topk(2)
        result = words
        for i, expert in enumerate(self.experts):
            rows, ranks = (chosen == i).nonzero(as_tuple=True)
            if len(rows):
                result = result.index_add(0, rows, (expert(normal[rows]) * weights[rows, ranks, None]).to(result.dtype))
        return result


def experts():
    """A mixture of eight experts, 6 layers of 768 channels, 2,000 to 16,000 words, AdamW."""
    width, layers, words = 768, 6, 8000
    model = nn.Sequential(nn.Embedding(words, width), *(Experts(width) for _ in range(layers)), nn.Linear(width, words)).cuda()

    def losses():
        for length in numbers(2000, 16001):
            text = torch.randint(words, (length,), device="cuda")
            yield functional.cross_entropy(model(text), text)

    return train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), losses())


@torch.no_grad()
def generation():
    """A transformer of 8 layers writes text for 16 sequences; their keys and values grow with torch.cat."""
    width, heads, layers, batch, words = 1024, 16, 8, 16, 32000
    embedding, last = nn.Embedding(words, width).cuda().half(), nn.Linear(width, words).cuda().half()
    blocks = [[nn.Linear(width, 3 * width).cuda().half(), nn.Linear(width, width).cuda().half(),
               nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)).cuda().half()]
              for _ in range(layers)]

    def by_heads(block):
        return block.unflatten(-1, (heads, -1)).transpose(1, 2)

    def write(text, kept):
        hidden = embedding(text)
        for i, (queries, out, forward) in enumerate(blocks):
            query, key, value = (by_heads(part) for part in queries(hidden).chunk(3, -1))
            if kept[i]:
                key, value = torch.cat((kept[i][0], key), 2), torch.cat((kept[i][1], value), 2)
            kept[i] = key.contiguous(), value.contiguous()
            mixed = functional.scaled_dot_product_attention(query, *kept[i], is_causal=text.shape[1] > 1)
            hidden = hidden + out(mixed.transpose(1, 2).flatten(2))
            hidden = hidden + forward(hidden)
        return last(hidden[:, -1]).argmax(-1, keepdim=True)

    for length in numbers(64, 1025):
        kept = [None] * layers
        text = write(torch.randint(words, (batch, length), device="cuda"), kept)
        for _ in range(12):
            text = write(text, kept)
        del kept, text
        yield


MODELS = {"transformer": transformer, "convolutions": convolutions, "experts": experts, "generation": generation}


def lifetimes(events, most):
    """Of the first allocations: the size of each in units and how many later ones come before its free, or None."""
    found, live = [], {}
    for event in events:
        if event["action"] == "alloc" and len(found) == most:
            break
        if event["action"] == "alloc":
            live[event["addr"]] = len(found)
            found.append([-(-event["size"] // UNIT), None])
        elif event["action"] == "free_requested" and event["addr"] in live:
            i = live.pop(event["addr"])
            found[i][1] = len(found) - 1 - i
    return found


def record(name, allocations):
    """The trace of a model, which runs until it has made so many allocations."""
    torch.manual_seed(1)
    torch.zeros(1, device="cuda")
    most = 8 * allocations
    torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=most)
    for _ in MODELS[name]():
        torch.cuda.synchronize()
        events = torch.cuda.memory._snapshot()["device_traces"][0]
        if len(events) >= most:
            raise RuntimeError(f"{name}: {len(events)} events do not fit")
        found = lifetimes(events, allocations)
        if len(found) == allocations:
            return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--allocations", type=int, default=10000)
    parser.add_argument("--only", choices=MODELS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.only:
        for name in MODELS:
            subprocess.run([sys.executable, __file__, arguments.folder, "--allocations", str(arguments.allocations),
                            "--only", name], check=True)
        return
    found = record(arguments.only, arguments.allocations)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    path = arguments.folder / f"{arguments.only}.txt"
    lines = [f"# {MODELS[arguments.only].__doc__}",
             f"# The first {len(found)} allocations on {torch.cuda.get_device_name()} with PyTorch {torch.__version__}, by bench/record_traces.py"]
    lines += [f"{size} {'-' if later is None else later}" for size, later in found]
    path.write_text("\n".join(lines) + "\n")
    print(f"{path}: {len(found)} allocations, {path.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    main()
