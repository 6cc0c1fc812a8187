/* store.h - the engine that File and MMap share: bytes of one regular file, at offsets.
 *
 *   store.c         the struct, messages, questions and calls that all the others use
 *   store_kind.c    refuses what is no regular file of a storage
 *   store_ahead.c   pread and pwrite where the processor copies slowly
 *   store_cached.c  asks what the page cache has
 *   store_direct.c  transfers around the page cache
 *   store_replace.c opens a new file that takes the name of another one
 *   store_open.c    opens, locks and closes the file
 *   store_blocks.c  which bytes are whose, and which others have cut off
 *   store_zeros.c   disk space by writing zeros, where the file system has no fallocate
 *   store_room.c    the length of the file and the disk space behind it
 *   store_commit.c  the last step of construction
 *   store_read.c    reads
 *   store_io.c      writes, fills, makes durable
 *   store_window.c  lends pointers to bytes
 *   store_lend.c    lends the file to devices
 *   store_share.c   describes bytes for other processes
 *   store_pair.c    copies runs between two files
 *   store_space.c   allocates, frees and trims ranges
 *   store_context.c construction, names and the end of the contexts
 *
 * A file uses only those above it.
 *
 * Others may append to the file at any time: a process that takes no lock, a context on a duplicate of the
 * descriptor. No system call cuts a file on condition that it still has the length that was measured. So a
 * file is made shorter only between umemStore_isolate and umemStore_share, and by the emptying of mode w.
 *
 * All functions use offsets in the file, whatever the addresses of the context are. One that fails records a
 * status on store->ctx and returns false, NULL or UMEM_STORE_NONE.
 *
 * Threads: many threads may call all functions but those that open and close. The lock guards the members
 * below it and every change of the file's length; bytes are copied without it. Failures
 * under the lock are held until it is released, because the failure hook may call back. */
#ifndef UMEM_STORE_H
#define UMEM_STORE_H

#include "core/kind.h"
#include "core/live.h"
#include "base/lock.h"
#include "base/number.h"
#include "base/range.h"
#include "base/table.h"

#include <errno.h>
#include <sys/types.h>
#include <umem/file.h>
#include <umem/host.h>

#define UMEM_STORE_NONE UMEM_RANGE_NONE

enum {
  umemStoreGranule = 16,        /* bytes: the natural alignment of blocks */
  umemStorePage = 64 << 10,     /* a multiple of the page size of any machine */
  umemStoreMostIO = 0x7ffff000, /* bytes: Linux transfers no more in one call: read(2) */
  umemStoreDirectFrom =
      64 << 10, /* bytes: shorter transfers go through the cache, with umemDirectOn too */
  umemStoreTurns = 2
};

/* A mapped part of the file. */
typedef struct umemStoreView {
  char *base; /* NULL for none */
  uint64_t start;
  size_t size;
  unsigned users; /* windows that are open in it */
} umemStoreView;

typedef struct umemStore {
  umemVirtual *ctx; /* borrowed: where failures are recorded */
  umemLive live;
  umemHost host; /* for the context's intermediate buffers */
  int fd;        /* owned; one that was taken over, from the start on */
  bool readable, writable;
  bool appends; /* blocks start at the end of the file */
  bool empties; /* the file is cut to nothing at the start */
  bool scratch; /* nobody else can use its bytes: frees punch holes */
  bool sparse;  /* blocks reserve no disk space */
  umemDirect direct;
  umemReuse reuse;
  int asks;        /* how umemStore_is_cached does; atomic */
  bool refuses;    /* the file system does no direct I/O; atomic */
  bool in_memory;  /* the file has no disk: the page cache is where its bytes are */
  bool takes_ram;  /* and the system counts them as memory in use */
  bool stays;      /* a device has refused to transfer the file itself; atomic */
  uint64_t around; /* bytes that were read around the cache; atomic */
  bool taken_over; /* the descriptor, by umemFile_adopt: it may have duplicates */
  bool started;
  bool created;  /* this context made the file, and may remove it while it is not committed */
  bool planted;  /* another user has put the file, or a link to it, into a folder of all users */
  bool leased;   /* see umemStore_isolate */
  bool building; /* atomic; until the commit, nothing changes the file. See umemStore_commit */
  pid_t owner; /* the process that constructed it; a forked child gives no space of the file back */
  bool unsynced_name;          /* the file is new, and its name not yet durable; atomic */
  char *path;                  /* owned; as given, NULL where there is none */
  char *directory;             /* owned; of a new file, absolute; NULL when unknown */
  char label[200];             /* names the file in messages */
  struct umemReplace *replace; /* owned; NULL but for umemReplace_begin */

  uint64_t identity[2]; /* MMap's: device and inode */
  char *base;           /* MMap's: where the file is mapped, NULL without a mapping */
  uint64_t alignment;   /* MMap's: base is a multiple of it */
  uint64_t limit;       /* blocks must end here; MMap sets its own before the start */

  umemLock turns[umemStoreTurns]; /* of threads that read from the disk through the cache */

  umemLock lock;
  umemRange *range;    /* owned: who has which bytes; the same in all modes */
  uint64_t original;   /* this context may not give up bytes below: the file's length when it was
                        opened, and later when others were seen to have made it longer */
  uint64_t length;     /* as this context knows it */
  uint64_t first;      /* where the first block can begin */
  uint64_t reserved;   /* disk space for [first, reserved) is surely there */
  uint64_t used;       /* from here on all bytes read as zero: neither blocks nor others had them */
  umemStoreView view;  /* File's: kept for the next window */
  uint64_t before_cut; /* the largest length that others have made shorter; 0: none */
  bool cut;            /* atomic: blocks have lost bytes, because others have cut the file */
  umemTable lost;      /* from which byte on, by the offset of the block */
  uint64_t lost_from;  /* without memory for the table: in all blocks; UINT64_MAX otherwise */
  bool leftover;       /* a reservation that failed may have left disk space behind the end */
} umemStore;

/* ---- messages: each records a status on store->ctx and returns false ---- */

/* "what LABEL: the system's words for error". */
bool umemStore_fail(umemStore const *store, umemStatusType type, int error, char const *what);

/* The same as a umemIOError, or a umemMemoryError for ENOMEM. */
bool umemStore_fail_open(umemStore const *store, int error, char const *what);

/* Space cannot be reserved. */
bool umemStore_fail_space(umemStore const *store, int error);

/* ---- questions ---- */

/* What of capabilities and identity comes from the file. */
uint32_t umemStore_capabilities(umemStore const *store);
bool umemStore_identify(umemStore const *store, uint64_t space[2]);

/* The length of the file now. */
bool umemStore_measure(umemStore const *store, uint64_t *length);

void umemStore_info(umemStore *store, umemInfo *info);

/* Opens the directory of a new file; -1 where it is unknown, or cannot be opened. */
int umemStore_open_directory(umemStore const *store, int access);

/* ---- under the lock ---- */

/* Notes that others may have written bytes below end: they stay, and need not be zero. */
static inline void umemStore_note_others(umemStore *store, uint64_t end) {
  store->original = umem_greater(store->original, end);
  store->used = umem_greater(store->used, end);
}

/* Changes the length of the file. Returns an errno, recording nothing. */
int umemStore_resize(umemStore *store, uint64_t length);

/* Whether nobody else can have the file open from now until umemStore_share: nobody loses bytes that are
 * cut off or overwritten meanwhile. False for a descriptor that was taken over, which may have
 * duplicates. */
bool umemStore_isolate(umemStore *store);
void umemStore_share(umemStore *store);

/* Whether error says that the file system does not know the call. */
static inline bool umemStore_lacks(int error) { return error == EOPNOTSUPP || error == ENOSYS; }

#endif
