"""Two processes fill parts of one array, which nobody copies."""
import multiprocessing

import umem


def serve(queue):
    for part, number in iter(queue.get, None):
        part[...] = number  # a Host array over the same memory


def main():
    with umem.Shm(size="1M") as place:
        array = umem.zeros((4, 3), "int32", place)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        workers = [context.Process(target=serve, args=(queue,)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for number in range(4):
            queue.put((array[number], number))  # a handle goes through the queue, no bytes
        for worker in workers:
            queue.put(None)
        for worker in workers:
            worker.join()  # from now on nobody else uses the array
        print(array.tolist())


if __name__ == "__main__":
    main()
