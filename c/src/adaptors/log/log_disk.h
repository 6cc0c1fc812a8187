/* log_disk.h - the file of a log on its disk: umem writes an existing log anew in the same file, a new file
 * gets its name when it is complete, and a failure changes nothing.
 *
 * An existing log keeps its file, and so its owner, its permissions and all its names. That also works where
 * the process may not write to the folder, or the disk has no room for two logs. All that may fail comes
 * before the first byte that changes.
 *
 * Functions return 0 or an errno. Calls that a signal interrupts are made again, however often signals
 * come.
 */
#ifndef UMEM_LOG_DISK_H
#define UMEM_LOG_DISK_H

#include "adaptors/log/log_format.h"
#include "base/files.h"

#include <stdbool.h>
#include <sys/types.h>

/* Opens a file that is there; symbolic links are followed. -1 and errno otherwise. */
int umemLogDisk_open(char const *filename);

/* Locks it for this process, without waiting: EWOULDBLOCK where another one has it. */
int umemLogDisk_lock(int fd);

/* ---- what is in it ---- */

/* The file as it was. */
typedef struct umemLogBefore {
  uint64_t length;
  size_t header_bytes;  /* as many as there are of the header, */
  umemLogHeader header; /* and these */
} umemLogBefore;

int umemLogDisk_look(int fd, umemLogBefore *before);

/* Whether the file may become a new log: it is empty, or a log. */
bool umemLogDisk_is_log(umemLogBefore const *before);

/* Whether the disk has enough free bytes for a file of this length. Call it before umemLogDisk_reserve: an attempt to
 * reserve more than there is takes all free space from other programs until it fails. */
bool umemLogDisk_has_room(int fd, uint64_t length);

/* Makes an empty file one that is_log, whatever ends the program before the rest is there. */
int umemLogDisk_mark(int fd, umemLogBefore const *before);

/* Makes the file at least this long, with space on the disk for every byte of that; what is in it
 * stays. */
int umemLogDisk_reserve(int fd, uint64_t length, umemLogBefore const *before);

/* Makes the file as long as it was, if one of these two functions or a later step has failed. */
void umemLogDisk_give_back(int fd, uint64_t length, umemLogBefore const *before);

/* Writes the bytes at the beginning of the file once more: what would keep umemLogDisk_begin from writing its
 * header is found while nothing has changed. */
int umemLogDisk_rehearse(int fd, umemLogBefore const *before);

/* Makes a reserved file the log that begins with this header, of this length; after a failure what was
 * there is there. Whoever reads the file finds the old log or the new one. What else the old one had is
 * the caller's to clear. */
int umemLogDisk_begin(int fd, umemLogHeader const *header, uint64_t length,
                      umemLogBefore const *before);

/* ---- a new file, which nobody sees before it is complete ---- */

/* Creates an empty file in the folder of filename, which is to be its name. To be ended in each case. */
int umemLogDisk_create(umemNewFile *file, char const *filename);

#endif
