"""Calls the functions of seeds.cpp with arrays of umem and of NumPy.

Exit code: 0; 1 when a number is wrong.
"""
import math
import sys
import tempfile

import numpy

import umem

sys.path.insert(0, ".")
import seeds  # the module in the folder where this runs

# ---- the kernel that adds indices, on two places: the memory is that of the array ----

for place in umem.host(), umem.File(tempfile.mktemp(), "w+"):
    array = umem.zeros((2, 3), "float32", place)
    seeds.add_index(array)
    print(f"add_index on {place.kind}: {array.tolist()}")

# ---- the Laplace equation: from an array of NumPy, back as a umem.Array ----

nx = 51
start = numpy.zeros((nx, nx))
start[nx - 1, :] = numpy.sin(numpy.linspace(0, math.pi, nx))
u, steps, change = seeds.solve_cpp(start)
print(f"solve_cpp: {steps} steps, the last change {change:.2e}, u(0.5, 0.5) = {u[25, 25].item():.6f} on {u.place.kind}")

# ---- a processing function: where the arrays are ----

one, other, out = umem.arange(4, dtype="float64"), umem.full(4, 10.0), umem.empty(4)
seeds.vector_add(one, other, out)
print(f"vector_add: {out.tolist()}")

# ---- what does not fit ----

try:
    seeds.vector_add(one, other.astype("float32"), out)
except TypeError as error:
    print(error)

right = steps == 2097 and out.tolist() == [10, 11, 12, 13] and array.tolist() == [[0, 1, 2], [1, 2, 3]]
sys.exit(0 if right else 1)
