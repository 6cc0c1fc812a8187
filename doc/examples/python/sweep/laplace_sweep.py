"""Laplace's equation in arrays of umem, by a sweep in C++ that umem's headers make.

    laplace_sweep.py LIBRARY

LIBRARY is laplace_sweep.cpp as a shared library.
"""
import ctypes
import math
import sys

import umem

library = ctypes.CDLL(sys.argv[1])  # its functions run without the GIL
library.jacobi.restype = ctypes.c_double
library.jacobi.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
set_name = ctypes.pythonapi.PyCapsule_SetName
set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]
NAME, USED = b"dltensor_versioned", b"used_dltensor_versioned"


def tensor(array):
    """The address of a DLPack tensor, which the C++ function takes over."""
    capsule = array.__dlpack__(max_version=(1, 0))
    pointer = get_pointer(capsule, NAME)
    set_name(capsule, USED)  # the capsule no longer owns it
    return pointer


n = 51
u, new = umem.zeros((n, n)), umem.zeros((n, n))
u[-1] = new[-1] = umem.asarray([math.sin(math.pi * i / (n - 1)) for i in range(n)])
steps, change = 0, 1.0
while change >= 1e-5:
    change = library.jacobi(tensor(u), tensor(new))
    if change < 0:
        sys.exit("the sweep has failed")
    u, new = new, u
    steps += 1
print(f"{steps} steps at n={n}, u in the middle {u[n // 2, n // 2].item():.6f}")
