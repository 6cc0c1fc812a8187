"""Hints about an array in a file."""
import umem

# [advise]
array = umem.zeros((1000, 1000), "f4", umem.File())
array.advise("sequential")  # is read from the beginning to the end
array[:100].advise("prefetch")  # begins to read these rows
try:
    array.advise("prefetch", 0)
except umem.NotSupportedError as error:
    print(error)
# [/advise]
