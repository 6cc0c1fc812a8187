import os

import numpy as np
import umem
import umem.formats

# [save]
umem.formats.save("model.safetensors", {"embed.weight": umem.full((4, 3), 1.5, "float32"), "head.bias": np.zeros(5)},
                  {"made by": "an example"})
# [/save]

# [get]
with umem.formats.open("model.safetensors") as model:
    for name in model:
        print(f"{name}: {model.info(name).nbytes} bytes")
    table = model["embed.weight"]                       # in the mapped file: nothing is copied
    row = table[2].to("host:")                          # a part; "cuda:0": to a GPU
    both = model.load("host:", ["embed.weight", "head.bias"])    # in one call
# [/get]
print(f"{table[1, 0].item()}, {row.size} elements, {len(both)} arrays, {model.metadata}")
os.remove("model.safetensors")
