"""Workers of a DataLoader read one array, which is in memory once. Needs torch."""
try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    raise SystemExit("this program needs PyTorch: pip install torch")

import umem


class Rows(Dataset):
    """The rows of an array. A spawned worker gets its handle; a forked one has it already."""

    def __init__(self, array):
        self.array = array

    def __len__(self):
        return len(self.array)

    def __getitem__(self, index):
        return torch.from_dlpack(self.array[index]).clone()


def main():
    with umem.Shm(size="1M") as place:
        array = umem.zeros((6, 2), "float32", place)
        for k in range(6):
            array[k] = k
        for batch in DataLoader(Rows(array), batch_size=3, num_workers=2, multiprocessing_context="fork"):
            print(batch.tolist())


if __name__ == "__main__":
    main()
