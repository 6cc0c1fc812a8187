"""One tensor of a safetensors file on a GPU. On a machine without a GPU, in RAM."""
import sys

import umem
import umem.formats


def open_gpu():
    try:
        return umem.Cuda(0)
    except umem.NotSupportedError as error:
        print("no GPU:", error, file=sys.stderr)
        return umem.Host()


place = open_gpu()
# A small file, which stands for one of 50 GB.
umem.formats.save("model.safetensors", {f"layer.{k}.weight": umem.full((4, 3), k, "float32") for k in range(10)})

# [one]
with umem.formats.open("model.safetensors") as model:             # reads the header
    print(model.info("layer.7.weight").nbytes, "bytes of", len(model), "arrays")
    weight = model["layer.7.weight"].to(place)                    # reads these bytes
# [/one]
print(weight.shape, weight.dtype, weight.max().item())

# [more]
with umem.formats.open("model.safetensors") as model:
    rows = model["layer.3.weight"][1:3].to(place)                 # a part of one
    some = model.load(place, ["layer.1.weight", "layer.2.weight"])    # several, in one call
# [/more]
print(rows.shape, sorted(some))
