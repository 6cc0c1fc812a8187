/* umem/log.h - a context that writes a record of each call of another to a file. */
#ifndef UMEM_LOG_H
#define UMEM_LOG_H

#include <umem/base.h>

/* A umemLog passes every call on to another context, upstream, and writes a record of each
 * allocation, free, resize, set and copy to a file. A record contains the thread, the time, the
 * address, the size, the context, the other side of a copy, and the status of a failure. The
 * program umem-trace summarises the file, converts it for viewers, or repeats the calls.
 *
 * - The file is a ring in mapped memory. Records survive when the program is killed, but not when
 *   the machine loses power. The file never grows: new records overwrite the oldest.
 * - The name of a context in the file is that of its layers with their labels: "Pool \"fields\"
 *   over Host". A label of the umemLog itself precedes it. Labels of the layers below that come
 *   after the constructor are written when ctx ends.
 * - All umemLogs of a process whose options name the same file write to it together; a copy between
 *   two of them is one record with both. The first umemLog begins the file anew; the last one that
 *   ends completes it.
 * - umem writes the record of a free before it calls upstream, and the record of an allocation
 *   after that call. So in the order of the records an address never belongs to two blocks. It
 *   writes the record of a set or copy at the beginning, and the duration afterwards; on an ordered
 *   context this is the time for queuing the work.
 * - umem takes no lock for a record. A record takes less than 40 ns; reading the clock is half of
 *   that. A set or copy reads the clock twice.
 * - A child of fork writes nothing: there the context only passes calls on. It may construct a
 *   umemLog of its own, on another file, such as one with each_process.
 *
 * Threads: as many as upstream allows. */
typedef struct umemLog {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemLog;

/* Options of the constructors. */
typedef struct umemLogOptions {
  size_t size;          /* sizeof(umemLogOptions) as the caller was compiled */
  char const *filename; /* must be given; borrowed for the call */
  uint64_t max_bytes;   /* of the file, at least 65536; 0 for UMEM_LOG_BYTES */
  /* not 0: a "." and the number of the process go behind filename. So processes with the same
   * options, such as those of one UMEM_DEFAULT, do not write one file */
  uint32_t each_process;
  uint32_t reserved; /* zero; not read */
} umemLogOptions;

/* The default of max_bytes: 2^18 records of 64 bytes. */
#define UMEM_LOG_BYTES (((uint64_t)16 << 20) + 36864)

/* The defaults, without a file name: one file for all processes. */
#define UMEM_LOG_OPTIONS_INIT                                                                      \
  { sizeof(umemLogOptions), NULL, 0, 0, 0 }

/* upstream: any context; borrowed, it must live longer than ctx. The number of records is the
 * largest power of two that fits into max_bytes; the constructor reserves the space on disk. It
 * ignores max_bytes if another umemLog has opened the file already. The first constructor takes
 * some milliseconds for 16 MiB, because it touches all pages, so that later records need not wait
 * for a page. A fork in another thread waits for this constructor.
 *
 * A new log replaces an old one in the same file, which keeps its owner and permissions. A log in a
 * new file gets its name when it is complete. A constructor that fails leaves the old log as it
 * was, and no new file. If the process is killed in it, the file is the old log or a new one
 * without records.
 *
 * The constructor follows a symbolic link to a file that is empty or a log. It refuses a link to a
 * file that does not exist (umemIOError), and does not create that file.
 *
 * In a folder where everybody may make files (sticky and writable for all, as /tmp) it refuses a
 * file, and a link to it, that belongs to another user than the effective one and the owner of the
 * folder (umemIOError).
 *
 * Errors: umemValueError for NULL, a wrong size, no file name or one too long, too few bytes, or an
 * existing file that is neither empty nor a log; umemIOError, with the system's text, for a file
 * that cannot be opened or created, is not a regular one or is a log that another process is
 * writing; umemMemoryError for a full disk, the limit of file size (RLIMIT_FSIZE), or the 256th
 * context of one file; the status of an upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemLog_ctor(umemLog *ctx, void *upstream,
                                        umemLogOptions const *options);

/* Constructs ctx as umemLog_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. The
 * caller still owns the memory of the struct. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemLog_adopt(umemLog *ctx, void *upstream,
                                         umemLogOptions const *options);

/* Returns the number of ctx in the records of its file, from 1. Returns 0, and records a status,
 * for a context that is not constructed or is not a umemLog (umemTypeError). */
UMEM_EXTERN unsigned umemLog_number(umemLog *ctx);

#endif
