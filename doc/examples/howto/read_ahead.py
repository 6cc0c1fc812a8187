"""Adds up the numbers of four files. While it works on one, the next is read."""
import asyncio

import umem

COUNT = 1 << 20


def name_of(number):
    return f"part{number}.bin"


def start_read(number, numbers):
    file = umem.empty(COUNT, "float32", umem.File(name_of(number), "r"))
    return umem.start(numbers, file)


async def add_up(files):
    total = 0.0
    now, following = (umem.empty(COUNT, "float32") for _ in range(2))
    read = start_read(0, now)
    for number in range(files):
        await read
        if number + 1 < files:
            read = start_read(number + 1, following)
        total += now.numpy().sum(dtype="float64")
        now, following = following, now
    return total


for k in range(4):
    with umem.File(name_of(k), "w") as place:
        umem.full(COUNT, 1, "float32", place)
print(f"4 files, the sum is {asyncio.run(add_up(4)):.0f}")
