#!/bin/sh
# Runs a command with a /dev/shm of 1 MB, in a namespace of its own. Exit status 77: the system permits no such namespace.
if [ "${inside_small_shm-}" != yes ]; then
  unshare --user --map-root-user --mount true 2> /dev/null || exit 77
  inside_small_shm=yes exec unshare --user --map-root-user --mount sh "$0" "$@"
fi
mount -t tmpfs -o size=1m tmpfs /dev/shm || exit 77
exec "$@"
