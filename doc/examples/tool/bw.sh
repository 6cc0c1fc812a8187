#!/bin/sh
# Measurements with umem bw, of copies that are short enough for a test.
set -e

# [pairs]
# 4 MiB from RAM to a file in the folder of temporary files
umem bw host: file: --size 4M
# to a file on the disk of this folder; the file is gone at the end
umem bw host: file:. --size 4M
# from a file into pooled memory, by one thread, and with a look at the bytes
umem bw file:. pool+host: --size 4M --threads 1 --verify
# how long a copy of 8 bytes takes
umem bw host: shm: --latency
# all pairs, for other programs
umem bw --all --size 64K --json
# [/pairs]
