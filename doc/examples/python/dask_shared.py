"""Tasks of Dask in other processes work on one array. Needs dask."""
import os

try:
    import dask
except ImportError:
    raise SystemExit("this program needs dask: pip install dask")

import umem


@dask.delayed
def fill(part, number):
    part[...] = number
    return os.getpid()


def main():
    name = f"dask-example-{os.getpid()}"
    with umem.Shm(name, "1M") as place:
        array = umem.zeros((4, 3), place=place)
        processes = dask.compute(*[fill(array[k], k) for k in range(4)], scheduler="processes", num_workers=2)
        print("in other processes:", os.getpid() not in processes)
        print(array.tolist())
    umem.Shm.remove(name)


if __name__ == "__main__":
    main()
