"""Fills and sums an array of 32 MB in a file, with 4 MB of memory."""
import numpy
import umem

ram = umem.Host()
numbers = umem.empty(4_000_000, "float64", umem.File("numbers.bin", "w+"))

for block in umem.blocks(numbers, ram, budget="4M", destination=numbers):
    with block.array.host("w") as x:  # an array of NumPy
        x[:] = numpy.arange(block.first, block.first + block.rows)

total = 0
for block in umem.blocks(numbers, ram, budget="4M"):
    with block.array.host("r") as x:
        total += x.sum()
print(f"the mean is {total / numbers.size:.1f}")
