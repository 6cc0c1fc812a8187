/* umem_log_file.h - writes a file of umem_log_format.h, from many threads and for several
 * contexts. */
#ifndef UMEM_LOG_FILE_H
#define UMEM_LOG_FILE_H

#include "umem_core.h"
#include "umem_lock.h"
#include "umem_log_format.h"

#include <sys/types.h>

/* Where a record goes, as the words in which it is written. The first is its number. */
typedef struct umemLogPlace {
  uint64_t words[sizeof(umemLogRecord) / sizeof(uint64_t)];
} umemLogPlace;

typedef struct umemLogFile {
  umemLogHeader *header; /* mapped: the whole file */
  umemLogContext *contexts;
  umemLogPlace *ring;
  uint64_t mask;  /* capacity - 1 */
  size_t length;  /* bytes that are mapped */
  unsigned forks; /* umem_fork_count of the process that writes */
  int fd;         /* owned; holds the lock of the file */
  dev_t device;   /* which file it is */
  ino_t inode;
  /* under the lock of all files: */
  unsigned users; /* contexts */
  unsigned left;  /* those of them that write no more */
  bool complete;
  struct umemLogFile *older;
} umemLogFile;

/* The file of this name: that which this process writes already, or a new one of at most max_bytes.
 * NULL, with a status on ctx, when it cannot be. */
umemLogFile *umemLogFile_open(umemVirtual *ctx, char const *filename, uint64_t max_bytes);

/* Gives back what umemLogFile_open gave. left: umemLogFile_leave was true before. The last context that
 * writes completes the file. */
void umemLogFile_close(umemLogFile *file, bool left);

/* Enters a context. Its number; 0, with a status on ctx, when there are too many. */
uint16_t umemLogFile_enter(umemLogFile *file, umemVirtual *ctx, umemLogContext const *context);

/* A context that stays will write no more: the file is completed where it is the last one. Waits at most a
 * moment for other threads; false, with nothing done, when they keep the lock longer. */
bool umemLogFile_leave(umemLogFile *file);

/* Whether this process is the one that writes the file, and not a child of it. */
static inline bool umemLogFile_is_ours(umemLogFile const *file) {
  return file->forks == umem_fork_count();
}

uint64_t umemLog_now(void);

/* Writes a record, which gets its number, time and thread. */
void umemLogFile_put(umemLogFile *file, umemLogRecord *record);

/* Writes a record anew after its number was given, if it is still in the ring. */
void umemLogFile_amend(umemLogFile *file, umemLogRecord *record);

#endif
