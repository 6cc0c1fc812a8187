"""The tour of umem for Python."""
import numpy
import umem

# [places]
ram = umem.Host()
file = umem.File("numbers.bin", "w+")
pool = umem.Pool(umem.MMap("mapped.bin", "w+"), max="64M")
named = umem.open("pool+stats+host:?max=64M")
for place in (ram, file, pool, named):
    print(place)
# [/places]

# [arrays]
a = umem.zeros((3, 4), "float32", file)
b = umem.arange(12, dtype="int64", place=pool).reshape(3, 4)
c = umem.asarray([[1, 2], [3, 4]], place=ram)
a[1] = 5  # a row
a[:, 0] = [1, 2, 3]  # a column
print(a.tolist())
print(b[1:, ::2].T.tolist(), b.dtype, b.shape, b.strides)
print(c.astype("float16"), c[1, 0].item())
# [/arrays]

# [host]
with a.host("rw") as x:
    x += 1  # an array of NumPy
print(a[1, 1].item())
# [/host]

# [to]
there = b.to(ram)
print(b.to(pool) is b, there is b, there.place is ram)
moved = umem.copy(a, b.astype("float32"))  # from the pool to the file
print(moved["bytes"], "bytes")
# [/to]

# [exchange]
shared = b.numpy()  # the same memory
shared[0, 0] = 100
print(b[0, 0].item())
back = umem.asarray(numpy.ones(3))  # NumPy's memory, kept alive
also = numpy.from_dlpack(b)
print(back.tolist(), also[0, 0])
umem.save("b.npy", b)
print(numpy.load("b.npy").sum(), umem.load("b.npy").shape)
# [/exchange]

# [blocks]
large = umem.zeros((1000, 100), place=file)
largest = 0
for block in umem.blocks(large, ram, rows=300, destination=large):
    with block.array.host() as x:
        x[:] = block.number
        largest = max(largest, block.rows)
print(large[999, 0].item(), largest)
# [/blocks]

# [statistics]
with umem.Stats(umem.Host()) as stats, umem.ledger.on():
    with stats.scope() as figures:
        d = umem.zeros(1000, place=stats)
        e = d.copy()
    print(figures["peak_bytes"], figures["total_count"])
    print(sum(record["bytes"] for record in umem.ledger.read().values()))
# [/statistics]

# [log]
with umem.Log(umem.Host(), "run.umem") as log:
    for _ in range(100):
        umem.zeros(1000, place=log)
for place in (umem.Host(), umem.Pool(umem.Host())):
    figures = umem.trace.replay("run.umem", place)
    print(figures["operations"], figures["peak_bytes"], figures["failed"])
print("complete" in umem.trace.summary("run.umem"))
# [/log]
