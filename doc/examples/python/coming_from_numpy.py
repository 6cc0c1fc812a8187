"""What NumPy's calls are in umem: the right column of the table."""
import numpy as np
import umem

# What the lines below use.
place = umem.File("a.bin", "w+")
x = np.arange(12.0).reshape(3, 4)
a = umem.zeros((3, 4), "f8", place)
y = umem.empty((2, 4))

umem.zeros((3, 4), "f8", place)
umem.full((3, 4), 7, "f8", place)
umem.ones((3, 4), "f8", place)
umem.zeros_like(a, place=place)
umem.arange(12, place=place).reshape(3, 4)
umem.concatenate([a, x], place=place)
umem.stack([a, x], place=place)
umem.asarray(x)
umem.array(x)
umem.array(x, place=place)
a[1:, ::2]
a.T
a.ravel()
a.flatten()
a.squeeze()
a.swapaxes(0, 1)
a.view("u1")
np.asarray(a)
np.sqrt(x, out=a)
a[...] = x * 2 + 1
a.sum(axis=0)
np.mean(a)
a.astype("i1")
a.astype("i1", saturate=True)
umem.zeros(3, "M8[D]", place)
a[1, 2].item()
a[1] = 5
a[[2, 0]]
a[x > 5]
a[x > 5] = 0
a.take([2, 0], 0, y)
a.put([1, 3], 7)
a.astype("f4")
a.copy()
umem.copy(a, umem.asarray(x))
a.tolist()
a.item(3)
a.tobytes()
umem.save("a.npy", a)
umem.load("a.npy", umem.MMap())
umem.load("a.npy")
a.random_uniform(0, 1, seed=3)
umem.all_equal(a, x)
umem.all_close(a, x)
a.numpy(copy=True) == 5
a * 2 + x
a < 5
a *= 2
with a.host("rw") as x: x *= 2
a.numpy(copy=True)
for block in umem.blocks(a, umem.Host(), budget="1G", destination=a): block.array.fill(1)
np.zeros(12, "f4").tofile("b.bin")
umem.memmap("b.bin", "f4", "r", offset=8)
a = umem.create_npy("c.npy", (9, 3))
rows = np.ones((2, 3))
a.append(rows)
umem.create_npy("a.npy", (9, 3))
with umem.use_in_numpy(umem.MMap("b.bin", "w+")): np.zeros(100)
print("done")
