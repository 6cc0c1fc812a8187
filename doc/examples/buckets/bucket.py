"""Writes an array to a bucket, and reads two rows of it back."""
import umem

# [write]
rows = umem.arange(12, dtype="float32").reshape(4, 3)
with umem.open("s3://bucket/rows.bin#mode=w") as place:
    umem.copy(umem.empty((4, 3), "float32", place), rows)  # the end of the block makes the object
# [/write]

# [read]
with umem.open("s3://bucket/rows.bin") as place:
    there = umem.at(place, 0, (4, 3), "float32")  # no byte is read yet
    two = there[1:3].to("host:")  # "cuda:0" for a GPU
print(two.tolist())
# [/read]
