"""PyTorch allocates from a place."""
import torch
import umem

place = umem.Stats(umem.Cuda(0))
with umem.use_in_torch(place) as use:
    x = torch.arange(1000.0, device="cuda")
    print(float(x.sum()))
print(use.blocks, place.figures["current_bytes"] >= 4000)
