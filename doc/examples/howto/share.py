"""Eight processes add up one array in shared memory; none of them copies it."""
import multiprocessing

import umem

WORKERS = 8


def add(x, sums, w):
    n = x.size // WORKERS
    sums[w] = x.numpy()[w * n:(w + 1) * n].sum()


def main():
    with umem.Shm(size="16M") as place:
        x = umem.full(1 << 20, 0.5, "float64", place)
        sums = umem.zeros(WORKERS, "float64", place)
        context = multiprocessing.get_context("fork")
        # No elements are passed.
        workers = [context.Process(target=add, args=(x, sums, w)) for w in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()  # keep x and sums until all are done
        print(f"{sums.numpy().sum():g}")


if __name__ == "__main__":
    main()
