#!/bin/sh
# Shared memory by umem cp, in a folder with a file a.bin.
set -e

# [shm]
# a segment that other programs open by its name
umem cp a.bin "shm:umem-cp-$$?size=8M"
# and back
umem cp "shm:umem-cp-$$" copy.bin
# it stays in RAM until somebody removes it
rm "/dev/shm/umem-cp-$$"
# [/shm]
