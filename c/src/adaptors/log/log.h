/* log.h - the parts of umemLog, which writes a file of log_format.h, from many threads and for
 * several contexts.
 *
 *   log.c       the methods, and the records that they write
 *   log_file.c  the file */
#ifndef UMEM_LOG_PRIVATE_H
#define UMEM_LOG_PRIVATE_H

#include "base/thread.h"
#include "base/files.h"
#include "adaptors/log/log_format.h"

#include <sys/types.h>
#include <time.h>
#include <umem/base.h>

/* The file as it was. */
typedef struct umemLogBefore {
  uint64_t length;
  size_t header_bytes;  /* as many as there are of the header, */
  umemLogHeader header; /* and these */
} umemLogBefore;

/* A slot of the ring: a record, as the words in which it is written. The first is its number. */
typedef struct umemLogSlot {
  uint64_t words[sizeof(umemLogRecord) / sizeof(uint64_t)];
} umemLogSlot;

typedef struct umemLogFile {
  umemLogHeader *header; /* mapped: the whole file */
  umemLogContext *contexts;
  umemLogSlot *ring;
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
  /* until the log begins, under the lock as well: */
  bool building;     /* atomic; while it is true records are written under the lock */
  umemNewFile draft; /* a new file, which may still be removed; folder is -1 without one */
  /* mapped: the existing file, which is not changed; header, contexts and ring are in memory
   * meanwhile. NULL without one */
  umemLogHeader *there;
  umemLogBefore before; /* what that was */
  char filename[];      /* as given */
} umemLogFile;

/* ---- log_file.c ---- */

/* Of all files: see log_file.c. */
extern umemLock umem_log_lock;

/* The file of this name: that which this process writes already, or a new one of at most max_bytes.
 * commits: it is committed and begun at once. NULL, with a status on ctx, when it cannot be. */
umemLogFile *umemLogFile_open(umemVirtual *ctx, char const *filename, uint64_t max_bytes,
                              bool commits);

/* All that can fail before the log begins: gives a new one its name, and shows that the one that
 * was there can be written. Does nothing later. Whether it could; if not, there is a status on
 * ctx. */
bool umemLogFile_commit(umemLogFile *file, umemVirtual *ctx);

/* Begins the log, with what was written since umemLogFile_open: from here on an old one is gone,
 * and a new one remains. After umemLogFile_commit; does nothing later. */
void umemLogFile_begin(umemLogFile *file);

/* Gives back what umemLogFile_open gave. left: umemLogFile_leave was true before. The last
 * context that writes completes the file; one that was not begun goes, or is as it was. */
void umemLogFile_close(umemLogFile *file, bool left);

/* A context that still exists will write no more: the file is completed where it is the last one.
 * Waits at most a moment for other threads. Returns false, with nothing done, when they keep the
 * lock longer. */
bool umemLogFile_leave(umemLogFile *file);

/* Whether this process is the one that writes the file, and not a child of it. */
static inline bool umemLogFile_is_ours(umemLogFile const *file) {
  return file->forks == umem_fork_count();
}

static inline uint64_t umemLog_now(void) { return umemClock_now(&umem_thread.clock); }

/* The time of an end, which no record of any thread is after: their clocks may lag behind, but
 * are never ahead. */
static inline uint64_t umemLog_end(void) { return umemClock_read(CLOCK_MONOTONIC); }

/* ---- log.c ---- */

/* Writes a record of the calling thread, which gets its number, time and thread. */
void umemLogFile_put(umemLogFile *file, umemThread *thread, umemLogRecord *record);

/* Writes a record that has its number once more, if it is still in the ring. */
void umemLogFile_amend(umemLogFile *file, umemLogRecord *record);

#endif
