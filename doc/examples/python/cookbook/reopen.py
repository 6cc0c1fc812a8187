"""Keeps arrays in a file, and finds them again in a later run."""
import umem


def arrays(mode):
    """The arrays of the file, in the order in which the first run made them."""
    file = umem.File("state.bin", mode)
    return umem.empty((100, 50), "float64", file), umem.empty(1, "int64", file)


field, steps = arrays("w+")  # the first run
field.fill(1.5)
steps.fill(7)
field.place.flush()  # the bytes are on the disk
field.place.close()

field, steps = arrays("r+")  # a later run: nothing is read before it is used
print(field[99, 49].item(), steps[0].item())
