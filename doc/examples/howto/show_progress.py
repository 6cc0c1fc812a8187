"""Shows how far a long copy is. Ctrl-C ends it."""
import sys

import umem


def show(done, total):
    """A copy calls this about every 100 ms, and at its end. An exception ends the copy."""
    print(f"\r{100 * done // total:3} %", end="\n" if done == total else "", file=sys.stderr)


here = umem.zeros(64 << 20, "uint8")
file = umem.empty(64 << 20, "uint8", umem.File("copy.bin", "w+"))
try:
    umem.copy(file, here, progress=show)
    print("copied")
except KeyboardInterrupt:
    print("stopped")
