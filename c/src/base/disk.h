/* disk.h - disk space of open files, and their durability. */
#ifndef UMEM_DISK_H
#define UMEM_DISK_H

#include <stdbool.h>
#include <stdint.h>

/* fallocate of [from, to), with its flags. Signals do not keep it from ending, however often they come.
 * Returns an errno; part of it may be done then. */
int umem_change_space(int fd, int how, uint64_t from, uint64_t to);

/* fsync, fdatasync or syncfs of fd, again after each signal. Returns an errno. */
int umem_sync(int (*call)(int fd), int fd);

/* The bytes of the disk of fd that this process may still take; UINT64_MAX where the disk does not say.
 * Returns an errno. */
int umem_free_on_disk(int fd, uint64_t *bytes);

#endif
