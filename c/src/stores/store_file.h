/* store_file.h - one regular file behind a store: the struct of the engine, its messages, and who
 * has which bytes.
 *
 * The engine stands in layers. A file uses only those above it:
 *
 *   store_file.c    this one; what the file system can do, the page cache, transfers around it
 *   store_open.c    opens, replaces, locks and closes the file
 *   store_length.c  length and disk space of the file; the last step of construction
 *   store_ring.c    reads many runs at a time
 *   store.c         constructs a context, and describes it
 *   store_io.c      the methods that read, write, fill and make durable
 *   store_blocks.c  the methods that allocate, free and trim ranges, and lend bytes to others
 *   store_copy.c    the methods that copy alone: between files, far runs, lists
 *
 * The methods of umem/virtual.h turn addresses into offsets of the file. For pointers they check
 * that an address is in the mapping.
 *
 * Others may append to the file at any time: a process that takes no lock, a context on a duplicate
 * of the descriptor. No system call cuts a file on condition that it still has the length that was
 * measured. So a file is made shorter only between umemStore_isolate and umemStore_end_isolation,
 * and by the emptying of mode w.
 *
 * All functions use offsets in the file, whatever the addresses of the context are. One that fails
 * records a status on store->ctx and returns false, NULL or UMEM_STORE_NONE.
 *
 * Threads: many threads may call all functions but those that open and close. The lock protects the
 * members below it and every change of the file's length; bytes are copied without it. Failures
 * under the lock are held until it is released, because the failure hook may call back. */
#ifndef UMEM_STORE_FILE_H
#define UMEM_STORE_FILE_H

#include "base/number.h"
#include "base/range.h"
#include "core/kind.h"
#include "core/live.h"
#include "core/status.h"
#include "watch/watch.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <umem/file.h>
#include <umem/host.h>
#include <unistd.h>

#define UMEM_STORE_NONE UMEM_RANGE_NONE

enum {
  umemStoreGranule = 16,        /* bytes: the natural alignment of blocks */
  umemStorePage = 64 << 10,     /* a multiple of the page size of any machine */
  umemStoreMostIO = 0x7ffff000, /* bytes: Linux transfers no more in one call: read(2) */
  /* bytes: shorter transfers go through the cache, with umemDirectOn too */
  umemStoreDirectFrom = 64 << 10,
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
  bool scratch; /* its bytes are this context's alone: frees punch holes */
  bool sparse;  /* blocks reserve no disk space */
  umemDirect direct;
  umemReuse reuse;
  bool durable;           /* a new file that replaces another one waits for the disk */
  int query;              /* how umemStore_is_cached queries the system; atomic */
  bool refuses;           /* the file system does no direct I/O; atomic */
  bool in_memory;         /* the file has no disk: the page cache is where its bytes are */
  bool takes_ram;         /* and the system counts them as memory in use */
  bool refused_by_device; /* a device has refused to transfer the file itself; atomic */
  uint64_t bypassed;      /* bytes that were read around the cache; atomic */
  uint64_t far_runs;      /* that were read by a call each; atomic */
  bool taken_over;        /* the descriptor, by umemFile_adopt: it may have duplicates */
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
  struct umemReplace *replace; /* owned; NULL but for umemStore_replace */

  uint64_t identity[2]; /* device and inode */
  char *base;           /* of pointers: where the file is mapped, NULL without a mapping */
  uint64_t alignment;   /* of pointers: base is a multiple of it */
  uint64_t limit;       /* blocks must end here, and so does the mapping */

  umemLock turns[umemStoreTurns]; /* of threads that read from the disk through the cache */

  umemLock lock;
  umemRange *range;    /* owned: who has which bytes; the same in all modes */
  uint64_t original;   /* this context may not give up bytes below: the file's length when it was
                        opened, and later when others were seen to have made it longer */
  uint64_t length;     /* as this context knows it */
  uint64_t first;      /* where the first block can begin */
  uint64_t reserved;   /* disk space for [first, reserved) is surely there */
  uint64_t used;       /* from here on all bytes read as zero: neither blocks nor others had them */
  umemStoreView view;  /* of offsets: kept for the next window */
  uint64_t before_cut; /* the largest length that others have made shorter; 0: none */
  bool cut;            /* atomic: blocks have lost bytes, because others have cut the file */
  umemTable lost;      /* from which byte on, by the offset of the block */
  uint64_t lost_from;  /* without memory for the table: in all blocks; UINT64_MAX otherwise */
  bool leftover;       /* a reservation that failed may have left disk space behind the end */
} umemStore;

/* The public structs of contexts are {super, impl, ...}. */
static inline umemStore **umemStore_impl(umemVirtual *ctx) {
  return (umemStore **)(void *)(ctx + 1);
}
static inline umemStore *umemStore_of(umemVirtual *ctx) { return *(umemStore **)(void *)(ctx + 1); }

/* ==== store_file.c ==== */

/* ---- messages: each records a status on store->ctx and returns false ---- */

/* "what LABEL: the system's words for error". */
bool umemStore_fail(umemStore const *store, umemStatusType type, int error, char const *what);

/* umemStore_fail with umemIOError, or umemMemoryError for ENOMEM. */
bool umemStore_fail_open(umemStore const *store, int error, char const *what);

/* Space cannot be reserved. */
bool umemStore_fail_space(umemStore const *store, int error);

/* ---- questions ---- */

/* The length of the file now. */
bool umemStore_measure(umemStore const *store, uint64_t *length);

/* Opens the directory of a new file; -1 where it is unknown, or cannot be opened. */
int umemStore_open_directory(umemStore const *store, int access);

/* ---- under the lock ---- */

/* Notes that others may have written bytes below end: these are kept, and need not be zero. */
static inline void umemStore_note_others(umemStore *store, uint64_t end) {
  store->original = umem_greater(store->original, end);
  store->used = umem_greater(store->used, end);
}

/* Changes the length of the file. Returns an errno, recording nothing. */
int umemStore_resize(umemStore *store, uint64_t length);

/* Whether no other process can have the file open from now until umemStore_end_isolation: none
 * loses bytes that are cut off or overwritten meanwhile. False for a descriptor that was taken
 * over, which may have duplicates. */
bool umemStore_isolate(umemStore *store);
void umemStore_end_isolation(umemStore *store);

/* Whether error says that the file system does not know the call. */
static inline bool umemStore_lacks(int error) { return error == EOPNOTSUPP || error == ENOSYS; }

/* ---- which bytes are whose ---- */

/* Holds the lock, and failures, from here to the end of the block of code. */
#define UMEM_STORE_LOCKED(store)                                                                   \
  UMEM_HOLDING();                                                                                  \
  UMEM_LOCKED(&(store)->lock)

/* Finds the live block that begins at offset; false with a umemValueError otherwise. Under the
 * lock. */
bool umemStore_fail_find(umemStore *store, uint64_t offset);
static inline bool umemStore_find(umemStore *store, uint64_t offset, umemRangeItem *block) {
  bool found = umemRange_find(store->range, offset, block) && block->live && block->start == offset;
  return found || umemStore_fail_find(store, offset);
}

/* Sets *length to the length of the file now, as umemStore_measure, for calls that are frequent. */
bool umemStore_measure_often(umemStore *store, uint64_t *length);

/* The offset of adr. An address below a mapping gives one that is beyond any limit. */
static inline uint64_t umemStore_offset(umemStore const *store, uintptr_t adr) {
  return adr - (uintptr_t)store->base;
}

/* Notes that others have cut the file to length bytes: what live blocks had beyond is lost, even if
 * the file grows again. but: a new block, or UMEM_STORE_NONE. Under the lock. */
void umemStore_note_cut(umemStore *store, uint64_t length, uint64_t but);

/* Whether none of the bytes is lost; else records umemIOError. */
bool umemStore_is_whole_slowly(umemStore *store, char const *what, uint64_t offset, size_t size);
static inline bool umemStore_is_whole(umemStore *store, char const *what, uint64_t offset,
                                      size_t size) {
  return __builtin_expect(!__atomic_load_n(&store->cut, __ATOMIC_ACQUIRE), 1) ||
         umemStore_is_whole_slowly(store, what, offset, size);
}

/* Forgets what the block at offset has lost. Under the lock. */
void umemStore_forget_lost(umemStore *store, uint64_t offset);

/* Whether [offset, offset + size) is inside one live block, and no byte of it is lost; else records
 * umemIndexError or umemIOError. Notices when the file has been cut below the block: writing would
 * make it longer again, with zeros. */
bool umemStore_may_write(umemStore *store, uint64_t offset, size_t size);

/* Whether the bytes are there, in a file of *length bytes, and may be written if that is asked for.
 * False too before the commit. Records nothing. */
bool umemStore_may_touch(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                         uint64_t *length);

/* The bytes from the first live block to the end of the last one; both 0 without any. Under the
 * lock. */
void umemStore_span(umemStore const *store, uint64_t *from, uint64_t *to);

/* ==== store_file.c: the file system, the page cache, and transfers around it ==== */

/* ---- file systems ---- */

/* Whether mode, as of fstat, is that of a regular file; else an umemIOError. */
bool umemStore_check_mode(umemStore const *store, mode_t mode);

/* Records that another user has put the file, or a link to it, into a folder of all users. Returns
 * false. */
bool umemStore_fail_planted(umemStore const *store);

/* Whether the open file is a regular file of a file system that stores files; else an
 * umemIOError. */
bool umemStore_check_kind(umemStore *store);

/* Whether path, or where it does not exist the folder that it would be created in, is on such a
 * file system; else an umemIOError. Opens nothing. What cannot be examined passes: opening it says
 * why. */
bool umemStore_check_place(umemStore *store, char const *path);

/* ---- the page cache ---- */

/* Whether the page cache has the page of the file at offset; true where the system does not say.
 * Starts no I/O, and records nothing. */
bool umemStore_is_cached(umemStore *store, uint64_t offset);

/* The first value of the member query, for a file system with this f_type. */
int umemStore_first_query(uint32_t magic);

/* ---- transfers around it ---- */

enum {
  umemDirectUnit = 4096, /* offsets and sizes of direct transfers are multiples of it */
  /* the same for addresses in memory, where the device does not ask for more */
  umemDirectAddress = 512,
  umemDirectBuffer = 4 << 20,  /* bytes of a buffer, which Host puts on huge pages */
  umemDirectHugePage = 2 << 20 /* what it is aligned to */
};

/* One thread's way around the cache, for one call. */
typedef struct umemDirectPath {
  umemStore *store;
  int fd;        /* -1: there is none */
  bool refused;  /* the file system does not do it: the caller goes through the cache */
  bool buffered; /* the addresses of the caller do not suit the device */
  char *buffer;  /* owned; NULL until it is needed */
} umemDirectPath;

/* Opens the descriptor for reading or writing. Records nothing: where that fails, path is
 * refused. */
void umemDirectPath_open(umemDirectPath *path, umemStore *store, bool writes);
void umemDirectPath_close(umemDirectPath *path);

/* Transfers between the file and memory, as pread and pwrite do: returns the bytes transferred,
 * which may be fewer than size; -1 with errno otherwise. offset and size are multiples of
 * umemDirectUnit. Sets path->refused, and returns -1, where the file system does not do it, or
 * there is no memory for a buffer. */
ssize_t umemDirectPath_read(umemDirectPath *path, uint64_t offset, char *bytes, size_t size);
ssize_t umemDirectPath_write(umemDirectPath *path, uint64_t offset, char const *bytes, size_t size);

/* What such a transfer is for the route of a copy: a file without a disk is read and written in the
 * page cache. */
umemWay umemStore_direct_way(umemStore const *store);

/* Whether the file system opens the file for direct transfers; else umemNotSupportedError. For a
 * store that is constructed with umemDirectOn. */
bool umemStore_check_direct(umemStore *store);

/* ==== store_open.c: the beginning and the end of a store ==== */

struct umemStoreWish;

/* Opens the file of a wish (stores/store.h). mapped: the descriptor can be read in all modes.
 *
 * A file is not locked before the start, and no byte of it changed before the commit. A new file
 * that replaces another one has no name until the commit, where the file system allows that
 * (O_TMPFILE), so that it vanishes when the process is killed; elsewhere it has a hidden one,
 * ".umem-...". The caller owns a descriptor that is taken over until the start. */
umemStore *umemStore_open(umemVirtual *ctx, struct umemStoreWish const *wish, bool mapped);

/* Locks the file against other writers and measures it. The context can be used from now on. */
bool umemStore_start(umemStore *store);

/* Closes the file and frees store; NULL is ignored. Removes a file that was created and is not
 * committed. Reports a failing close on the context. */
void umemStore_close(umemStore *store);

/* ---- files that replace others ---- */

/* Gives the new file a hidden name, writes its path to path, of size bytes, and releases the lock:
 * other processes of this user write to it, too. False with a status. */
bool umemReplace_show(umemStore *store, char *path, size_t size);

/* Makes the file durable, gives it the name and makes that durable. False with a status: the old
 * file is unchanged then, unless the status says that the new one is there. A second call is an
 * error. */
bool umemReplace_commit(umemStore *store);

/* ==== store_length.c: the length of the file and the disk space behind it ==== */

/* Makes the file hold [from, to), with disk space unless it is sparse; changes no bytes, and never
 * makes the file shorter. */
bool umemStore_reserve(umemStore *store, uint64_t from, uint64_t to);

/* Whether the disk may have room for [from, to). False with a umemMemoryError if it cannot have
 * it. */
bool umemStore_may_fit(umemStore *store, uint64_t from, uint64_t to);

/* Gives the disk space of [from, to), which reads as zero from now on, back to the system. */
bool umemStore_punch(umemStore *store, uint64_t from, uint64_t to);

/* Cuts the file to length if no other process can have added bytes; else leaves it as it is. */
bool umemStore_cut(umemStore *store, uint64_t length);

/* Frees the disk space behind the end that a failed reservation left, if no other process can have
 * the file open. */
void umemStore_drop_leftover(umemStore *store);

/* ---- the last step of construction ---- */

/* The last step of construction, of a context alone or of all contexts over it. Until then blocks
 * are placed, and the file remains as it is; now it is emptied where the mode says so, and made to
 * hold the blocks. When this fails the file has its old bytes. Does nothing later. */
bool umemStore_commit(umemStore *store);

/* Before a call that needs the file: umemStore_commit, where not all layers over it are there
 * yet. */
static inline bool umemStore_ensure_committed(umemStore *store) {
  return __builtin_expect(!__atomic_load_n(&store->building, __ATOMIC_ACQUIRE), 1) ||
         umemStore_commit(store);
}

/* ==== store_io.c: reads and writes ==== */

/* Whether reads of store go around the cache for what the cache lacks. */
bool umemStore_bypasses_cache(umemStore *store);

/* How many of size bytes one call writes at offset through the cache. The kernel keeps what one
 * call has written in pages (folios) as long as that, up to 2 MiB. Later writes of a part are slow
 * in a long one, because ext4 looks at all blocks of it (Linux 6.18). Mappings gain by long
 * ones. */
static inline size_t umemStore_write_most(umemStore const *store, uint64_t offset, size_t size) {
  size_t const unit = 512 << 10;
  if (store->base) return umem_lesser(size, umemStoreMostIO);
  return size <= unit ? size : unit - (size_t)(offset % unit);
}

/* Sets the bytes of a range that the caller knows to be inside a block to c. */
bool umemStore_fill(umemStore *store, uint64_t offset, int c, size_t size);

/* Copies size bytes between two blocks of the file. */
bool umemStore_move(umemStore *store, uint64_t from, uint64_t to, size_t size);

/* ==== store_ring.c ==== */

/* Reads runs that wait into memory of the CPU, in their order, and notes which are done. It stops
 * at the first one that it cannot read, at the time umem_thread.until, and where the system
 * refuses: a run may then wait though a later one is done. Records nothing. Returns how many runs
 * it has passed. */
size_t umemStore_read_ring(umemStore *store, umemCopyRun *runs, size_t count);

#endif
