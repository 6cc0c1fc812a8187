"""Masks, results of NumPy and dates in a file."""
import numpy as np
import umem

place = umem.File("weather.bin", "w+")
days = umem.asarray(np.arange("2024-02-27", "2024-03-03", dtype="M8[D]"), place=place)
degrees = umem.asarray([3.0, -1.5, 0.5, -4.0, 7.5], "f4", place)

cold = np.asarray(degrees) < 0
print("cold:", *days[cold].tolist())
degrees[cold] = 0
np.sqrt(degrees, out=degrees)
print("roots: %.2f to %.2f," % (degrees.min(), degrees.max()), f"the first is {degrees[0]:.3f}")
