"""Workers of a pool use one array, which no process copies, however they are started."""
import multiprocessing

import umem


def largest(part):
    return float(part.numpy().max())  # an array over the same memory


def main():
    with umem.Shm(size="1M") as place:
        array = umem.arange(12, dtype="float64", place=place).reshape(4, 3)
        for method in "fork", "spawn", "forkserver":
            with multiprocessing.get_context(method).Pool(2) as workers:
                print(workers.map(largest, [array[k] for k in range(4)]))  # handles are passed, no elements


if __name__ == "__main__":
    main()
