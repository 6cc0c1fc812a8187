/* small_disk.h - small file systems of a test's own, which its child can fill. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct SmallDisk {
  char folder[200]; /* where it is mounted */
  char image[200];  /* "" for tmpfs and overlay */
  bool twice;       /* an overlay: mounted over its own tmpfs */
} SmallDisk;

/* In a child: mounts a file system of the type (tmpfs, overlay, ext2, ext4, xfs, btrfs) and of so
 * many MiB on a new folder, which only this child sees. False, and a message, where that is not
 * possible: without root, without mkfs, in a container. */
bool small_disk_mount(SmallDisk *disk, char const *type, unsigned mebibytes);

void small_disk_unmount(SmallDisk *disk);

/* Creates a file of that many bytes that leaves `left` free, on a mounted disk. */
void small_disk_fill(SmallDisk const *disk, size_t left);
