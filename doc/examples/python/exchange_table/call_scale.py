"""Calls a function of C with an array of umem, by DLPack's exchange table."""
import umem
from scale import scale

# [use]
array = umem.arange(4.0)
scale(array, 10.0)
print(array.tolist())
# [/use]
