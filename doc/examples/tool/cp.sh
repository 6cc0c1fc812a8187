#!/bin/sh
# Copies with umem cp, in a folder with a file a.bin of 4 MiB.
set -e

# [files]
# a file; b.bin gets its name when it is complete
umem cp a.bin b.bin
# 1 MiB from byte 4096 on
umem cp a.bin@4K,1M part.bin
# reads both files again and compares them, before b.bin gets its name
umem cp a.bin b.bin --verify
# the result for other programs
umem cp a.bin b.bin --json
# [/files]

# [places]
# how fast the file can be read into RAM; with cuda:0 into a GPU
umem cp a.bin host:
# zeros from RAM
umem cp host:@0,2M zeros.bin
# [/places]
