/* umem_store.h - the engine that File and MMap share: bytes of one regular file, at offsets.
 *
 *   umem_store.c        opens, locks and closes the file
 *   umem_store_space.c  allocates, frees, reserves and trims ranges of it
 *   umem_store_io.c     reads, writes, fills, makes durable
 *   umem_store_replace.c  opens a new file that takes the name of another one
 *
 * All functions speak of offsets in the file, whatever the addresses of the context are. One that
 * fails records it on store->ctx and returns false, NULL or UMEM_STORE_NONE.
 *
 * Threads: everything but opening and closing may be called from many at once. The lock guards the
 * members below it and every change of the file's length; bytes are moved outside of it. Failures
 * under the lock are held until it is released, because the failure hook may call back. */
#ifndef UMEM_STORE_H
#define UMEM_STORE_H

#include "umem_core.h"
#include "umem_lock.h"
#include "umem_range.h"

#include <sys/types.h>
#include <umem/host.h>

#define UMEM_STORE_NONE UMEM_RANGE_NONE

enum { umemStoreGranule = 16 }; /* bytes: the natural alignment of blocks */

typedef struct umemStore {
  umemVirtual *ctx; /* borrowed: where failures are recorded */
  umemHost host;    /* for the context's intermediate buffers */
  int fd;           /* owned, but for an adopted one that is not started */
  bool readable, writable;
  bool appends; /* blocks start at the end of the file */
  bool empties; /* the file is cut to nothing at the start */
  bool scratch; /* nobody else can want its bytes: frees punch holes */
  bool adopted, started;
  pid_t owner; /* the process that constructed it; a forked child gives no space of the file back */
  bool unsynced_name;          /* the file is new, and its name not yet durable; atomic */
  char *path;                  /* owned; as given, NULL where there is none */
  char *directory;             /* owned; of a new file, absolute; NULL when unknown */
  char label[200];             /* names the file in messages */
  struct umemReplace *replace; /* owned; NULL but for umemStore_replace */

  char *base;     /* MMap's: where the file is mapped, NULL without a mapping */
  uint64_t limit; /* blocks must end here; MMap sets its own before the start */

  umemLock lock;
  umemRange *range;  /* owned: who has which bytes; the same in all modes */
  uint64_t original; /* the file's length when it was opened: below it bytes are sacred */
  uint64_t length;   /* as this context knows it */
  uint64_t reserved; /* disk space for [original, reserved) is surely there */
  uint64_t used;     /* from here on no byte was ever handed out, so that they read as zero */
} umemStore;

/* ---- umem_store.c ---- */

/* Opens filename, or a scratch file for NULL, in mode as told in umem/file.h. mapped: the descriptor
 * can be read in all modes. The file is not locked, and no byte of it changed, before the start. */
umemStore *umemStore_open(umemVirtual *ctx, char const *filename, char const *mode, bool mapped);

/* Opens a new file that is to take the place of filename: umem_store_replace.h. */
umemStore *umemStore_replace(umemVirtual *ctx, char const *filename);

/* Takes over fd. It stays the caller's until the start. */
umemStore *umemStore_adopt(umemVirtual *ctx, int fd, bool mapped);

/* The last step of construction: locks the file against other writers, measures it, empties it where
 * the mode says so. */
bool umemStore_start(umemStore *store);

/* Closes the file and frees store; NULL is ignored. Reports a failing close on the context. */
void umemStore_close(umemStore *store);

/* What of capabilities and identity comes from the file. */
uint32_t umemStore_capabilities(umemStore const *store);
bool umemStore_identify(umemStore const *store, uint64_t space[2]);

/* The length of the file now. */
bool umemStore_measure(umemStore const *store, uint64_t *length);

void umemStore_info(umemStore *store, umemInfo *info);

/* Records "what LABEL: the system's words for error". Returns false. */
bool umemStore_fail(umemStore const *store, umemStatusType type, int error, char const *what);

/* ---- umem_store_space.c ---- */

/* A new block; all zero if zeroed. */
uint64_t umemStore_alloc(umemStore *store, size_t size, size_t alignment, bool zeroed);
bool umemStore_free(umemStore *store, uint64_t offset);
uint64_t umemStore_realloc(umemStore *store, uint64_t offset, size_t old_size, size_t new_size);

/* Whether a live block begins at offset; a umemValueError otherwise. */
bool umemStore_begins(umemStore *store, uint64_t offset);

/* Whether [offset, offset + size) lies inside one live block; a umemIndexError otherwise. */
bool umemStore_owns(umemStore *store, uint64_t offset, size_t size);

void umemStore_trim(umemStore *store, size_t keep);

/* Changes the length of the file. Returns an errno, recording nothing. */
int umemStore_resize(umemStore *store, uint64_t length);

/* ---- umem_store_io.c ---- */

bool umemStore_read(umemStore *store, uint64_t offset, void *bytes, size_t size);

/* Inside one live block only. */
bool umemStore_write(umemStore *store, uint64_t offset, void const *bytes, size_t size);
bool umemStore_set(umemStore *store, uint64_t offset, int c, size_t size);

/* As umemStore_set, for a range that the caller knows to be inside a block. */
bool umemStore_fill(umemStore *store, uint64_t offset, int c, size_t size);

/* Copies size bytes between two blocks of the file. */
bool umemStore_move(umemStore *store, uint64_t from, uint64_t to, size_t size);

bool umemStore_flush(umemStore *store);

#endif
