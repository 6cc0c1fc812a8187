"""One array, three places to keep it."""
import umem


def squares(place, n):
    """The squares of 0 to n - 1, in any place."""
    array = umem.empty(n, "float64", place)
    with array.host("w") as x:  # its elements, as an array of NumPy
        x[:] = range(n)
        x *= x
    return array


# From here on no line names a place.
places = [umem.Host(), umem.File("squares.bin", "w+"), umem.MMap("mapped.bin", "w+")]
for place in places:
    print(f"{type(place).__name__}: {squares(place, 1000)[999].item():.0f}")
