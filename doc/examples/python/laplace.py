"""Laplace's equation on a square, by Jacobi's method, in expressions of NumPy on an array of umem.

u is 0 on three sides, and sin(pi y) on the fourth. Each step replaces each inner point by the mean of its neighbours,
until no point changes by 1e-5 or more.
"""
import sys

import numpy as np
import umem


def solve(place, n):
    """Returns the solution, and how many steps it took."""
    u = umem.zeros((n, n), "float64", place)
    u[-1, :] = np.sin(np.linspace(0, np.pi, n))
    with u.host() as x:
        new = x.copy()
        step, change = 0, 1.0
        while change >= 1e-5:
            step += 1
            new[1:-1, 1:-1] = (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]) / 4
            change = np.abs(new - x).max()
            x[...] = new
    return u, step


n = int(sys.argv[1]) if len(sys.argv) > 1 else 51
for place in (umem.Host(), umem.File("laplace.bin", "w+"), umem.MMap("laplace_map.bin", "w+")):
    u, steps = solve(place, n)
    print(f"{place.kind}: {steps} steps at n={n}, u in the middle {u[n // 2, n // 2].item():.6f}")
