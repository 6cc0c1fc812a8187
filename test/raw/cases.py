"""Raw bytes of files as arrays: cases that C, C++, Python and the program umem answer alike.

A case is the bytes of its file, how many are left when it is read after it was opened (None: all), and an array: offset,
type, shape and strides (None: C order). Its answers are the bytes of the elements, in C order and in this machine's order of
bytes, or the name of umem's status; the second one is of a mapped file where that differs.
"""
import math
from typing import NamedTuple

BYTES = bytes((i * 7 + 3) % 256 for i in range(96))
PAGES = 3 * 4096  # so long that a mapping loses pages when the file is cut


class Case(NamedTuple):
    name: str
    offset: int
    type: str  # order of bytes, kind and size, as NumPy writes it
    shape: tuple
    strides: tuple | None = None
    answers: tuple = ()  # of a File and of a MMap; (): the elements
    size: int = len(BYTES)
    left: int | None = None

    def content(self):
        return (BYTES * (self.size // len(BYTES) + 1))[:self.size]

    def steps(self):
        """The strides."""
        steps = [self.itemsize()]
        for extent in self.shape[:0:-1]:
            steps.insert(0, steps[0] * extent)
        return self.strides if self.strides is not None else tuple(steps[:len(self.shape)])

    def itemsize(self):
        return int(self.type[2:])

    def element(self, at):
        raw = self.content()[at:at + self.itemsize()]
        half = len(raw) // 2
        if self.type[0] == "<":
            return raw
        return raw[half - 1::-1] + raw[:half - 1:-1] if self.type[1] == "c" else raw[::-1]

    def elements(self):
        """The bytes of the elements, one by one."""
        places = [self.offset]
        for extent, step in zip(self.shape, self.steps()):
            places = [place + k * step for place in places for k in range(extent)]
        return b"".join(map(self.element, places))

    def answer(self, mapped):
        return self.answers[mapped] if self.answers else self.elements().hex()

    def nbytes(self):
        return self.itemsize() * math.prod(self.shape)

    def is_range(self):
        """Whether offset and length say it all."""
        return self.type[0] == "<" and self.strides is None and self.left is None and 0 <= self.nbytes() < 1 << 64

    def of_range(self):
        """The answer of umem cp, which refuses each range that is not there."""
        return self.elements().hex() if self.offset + self.nbytes() <= self.size else "IndexError"


LEAVES, SPACE, WRAPS, CUT = (2 * ("IndexError",), 2 * ("ValueError",), ("ValueError", "IndexError"), 2 * ("IOError",))
CASES = [
    Case("one element", 0, "<u1", ()), Case("an odd offset", 5, "<i4", (3, 2)), Case("the last byte", 95, "<u1", (1,)),
    Case("all", 0, "<i8", (12,)), Case("none at the end", 96, "<i4", (0,)), Case("none behind the end", 1000, "<i4", (2, 0)),
    Case("big endian", 3, ">i4", (2, 5)), Case("big endian of one byte", 3, ">u1", (7,)), Case("big endian of two", 1, ">i2", (4,)),
    Case("big-endian complex numbers", 8, ">c8", (2, 3)), Case("big endian with gaps", 2, ">i2", (3, 2), (20, 6)),
    Case("Fortran's order", 4, "<i2", (3, 4), (2, 6)), Case("gaps", 1, "<i4", (4, 3), (21, 5)),
    Case("a stride of zero", 7, "<i4", (3, 2), (0, 9)), Case("only strides of zero", 92, "<i4", (2, 2), (0, 0)),
    Case("negative strides", 92, "<i4", (24,), (-4,)), Case("both negative", 95, "<u1", (3, 4), (-30, -2)),
    Case("overlapping elements", 10, "<i4", (6,), (1,)), Case("negative and overlapping", 40, ">i4", (5, 3), (-3, 2)),
    Case("strides of one element", 9, "<i4", (1, 1), (1 << 40, -1 << 40)), Case("32 dimensions", 0, "<u1", (1,) * 31 + (5,)),
    Case("one byte too many", 93, "<i4", (1,), answers=LEAVES), Case("an offset behind the end", 97, "<u1", (1,), answers=LEAVES),
    Case("far behind the end", 1 << 40, "<i4", (2,), answers=LEAVES), Case("strides that leave the file", 0, "<i4", (3,), (47,), LEAVES),
    Case("strides that leave it at the beginning", 8, "<i4", (4,), (-4,), WRAPS),
    Case("an offset near 2^64", (1 << 64) - 4, "<i4", (2,), answers=WRAPS), Case("2^62 elements of 8 bytes", 0, "<i8", (1 << 62,), answers=SPACE),
    Case("a product that is 0 in 64 bits", 0, "<i4", (1 << 32, 1 << 32), answers=SPACE),
    Case("strides beyond 64 bits", 0, "<u1", (3, 3), (1 << 62, 1 << 62), SPACE), Case("a negative extent", 0, "<u1", (-1,), answers=SPACE),
    Case("cut behind the array", 8, "<i4", (2,), size=PAGES, left=16), Case("cut before it", 8192, "<i4", (2,), None, CUT, PAGES, 4096),
    Case("cut inside", 4092, "<i4", (2,), None, CUT, PAGES, 4096),
    Case("cut to nothing", 0, ">i2", (3, 2), (8, 4), CUT, PAGES, 0),
]
