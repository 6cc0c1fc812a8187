#!/bin/sh
# Arrays of files by umem, in a folder with the files model.safetensors and results.npz.
set -e

# [arrays]
# what the files hold
umem info model.safetensors results.npz
# one array; with cuda:0 into a GPU
umem cp -q model.safetensors#layer.0 host:
# with its type and shape, for NumPy
umem cp -q results.npz#a a.npy
# its elements alone
umem cp -q results.npz#a a.bin --verify
# [/arrays]
