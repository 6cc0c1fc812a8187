"""Doubles each number of an array in a file with the memory for an eighth of it."""
import umem

array = umem.full((4096, 256), 1.0, "float64", umem.File("array.bin", "w+"))
budget = array.nbytes // 8  # bytes for all blocks together

for block in umem.blocks(array, umem.Host(), budget=budget, destination=array):
    with block.array.host() as x:
        x *= 2

total = 0.0
for block in umem.blocks(array, umem.Host(), budget=budget):
    with block.array.host("r") as x:
        total += x.sum()
print(f"the sum of {array.size} numbers is {total:.0f}")
