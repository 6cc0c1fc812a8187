"""Random batches from a file that need not fit into memory: one call reads the rows of a batch. Needs torch."""
try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    raise SystemExit("this program needs PyTorch: pip install torch")

import numpy as np
import umem


class Rows(Dataset):
    """The rows of an array in a file."""

    def __init__(self, path):
        self.array = umem.open_npy(path, "r", mapped=False)

    def __len__(self):
        return len(self.array)

    def __getitems__(self, indices):  # of a batch
        return torch.from_dlpack(self.array[np.array(indices)])


np.save("samples.npy", np.repeat(np.arange(10, dtype="f4"), 3).reshape(10, 3))
loader = DataLoader(Rows("samples.npy"), batch_size=4, shuffle=True, collate_fn=lambda batch: batch, num_workers=2,
                    multiprocessing_context="fork")
batches = list(loader)
print([tuple(batch.shape) for batch in batches])
print(sorted(torch.cat(batches)[:, 0].tolist()))
