"""The squares of some numbers in three places."""
import numpy

import umem


def squares(place, n):
    """The squares of 0 to n - 1, in any place."""
    array = umem.empty(n, place=place)
    with array.host("w") as x:  # its elements as a NumPy array
        x[:] = numpy.arange(n) ** 2
    return array


places = [umem.Host(), umem.File("squares.bin", "w+"), umem.MMap("mapped.bin", "w+")]
for place in places:  # from here on no line names one
    print(f"{place.kind}: {squares(place, 1000)[999].item():g}")
