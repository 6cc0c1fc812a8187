/* store.h - the engine that File and MMap share: bytes of one regular file, at offsets.
 *
 *   store.c         opens, locks and closes the file
 *   store_kind.c    refuses what is no regular file of a storage
 *   store_space.c   allocates, frees and trims ranges of it
 *   store_room.c    the length of the file and the disk space behind it
 *   store_zeros.c   the same where the file system has no fallocate
 *   store_commit.c  the last step of construction; undoes a file that was created in vain
 *   store_io.c      reads, writes, fills, makes durable
 *   store_window.c  pointers to bytes of it
 *   store_replace.c opens a new file that takes the name of another one
 *   store_context.c construction, names and the end of the contexts
 *
 * Others may add bytes at the end of the file at any time: a process that asks for no lock, a context
 * on a duplicate of the descriptor. No system call cuts a file only if it still has the length that was
 * measured. So nothing here cuts a file, or punches into it, but umemStore_trim and the emptying of mode
 * w; see umemStore_isolate.
 *
 * All functions use offsets in the file, whatever the addresses of the context are. One that fails records a
 * status on store->ctx and returns false, NULL or UMEM_STORE_NONE.
 *
 * Threads: everything but opening and closing may be called from many at once. The lock guards the
 * members below it and every change of the file's length; bytes are moved outside of it. Failures
 * under the lock are held until it is released, because the failure hook may call back. */
#ifndef UMEM_STORE_H
#define UMEM_STORE_H

#include "core/kind.h"
#include "base/lock.h"
#include "base/range.h"

#include <errno.h>
#include <sys/types.h>
#include <umem/file.h>
#include <umem/host.h>

#define UMEM_STORE_NONE UMEM_RANGE_NONE

enum {
  umemStoreGranule = 16,    /* bytes: the natural alignment of blocks */
  umemStorePage = 64 << 10, /* a multiple of the page size of any machine */
};

static inline uint64_t umem_greater(uint64_t one, uint64_t other) {
  return one > other ? one : other;
}

/* A mapped part of the file. */
typedef struct umemStoreView {
  char *base; /* NULL for none */
  uint64_t start;
  size_t size;
  unsigned users; /* windows that are open in it */
} umemStoreView;

typedef struct umemStore {
  umemVirtual *ctx; /* borrowed: where failures are recorded */
  umemHost host;    /* for the context's intermediate buffers */
  int fd;           /* owned, but for one taken over that is not started */
  bool readable, writable;
  bool appends;    /* blocks start at the end of the file */
  bool empties;    /* the file is cut to nothing at the start */
  bool scratch;    /* nobody else can use its bytes: frees punch holes */
  bool sparse;     /* blocks reserve no disk space */
  bool taken_over; /* the descriptor, by umemFile_adopt: it may have duplicates */
  bool started;
  bool created;  /* this context made the file, and may remove it while it is not committed */
  bool leased;   /* see umemStore_isolate */
  bool building; /* atomic; until the commit, nothing changes the file. See umemStore_commit */
  pid_t owner; /* the process that constructed it; a forked child gives no space of the file back */
  bool unsynced_name;          /* the file is new, and its name not yet durable; atomic */
  char *path;                  /* owned; as given, NULL where there is none */
  char *directory;             /* owned; of a new file, absolute; NULL when unknown */
  char label[200];             /* names the file in messages */
  struct umemReplace *replace; /* owned; NULL but for umemStore_replace */

  char *base;         /* MMap's: where the file is mapped, NULL without a mapping */
  uint64_t alignment; /* MMap's: base is surely a multiple of it */
  uint64_t limit;     /* blocks must end here; MMap sets its own before the start */

  umemLock lock;
  umemRange *range;  /* owned: who has which bytes; the same in all modes */
  uint64_t original; /* this context may not give up bytes below: the file's length when it was
                        opened, and later when others were seen to have made it longer */
  uint64_t length;   /* as this context knows it */
  uint64_t first;    /* where the first block can begin */
  uint64_t reserved; /* disk space for [first, reserved) is surely there */
  uint64_t used;     /* from here on no byte was ever handed out, so that they read as zero */
  umemStoreView view; /* File's: kept for the next window */
  bool leftover;     /* a reservation that failed may have left disk space behind the end */
} umemStore;

/* ---- store.c ---- */

/* Opens filename, or a scratch file for NULL, in mode as umem/file.h says; options NULL: the defaults.
 * mapped: the descriptor can be read in all modes. The file is not locked before the start, and no byte
 * of it changed before the commit. */
umemStore *umemStore_open(umemVirtual *ctx, char const *filename, char const *mode,
                          umemFileOptions const *options, bool mapped);

/* Opens a new file that is to take the place of filename: umem_store_replace.h. */
umemStore *umemStore_replace(umemVirtual *ctx, char const *filename);

/* Takes over fd. It stays the caller's until the start. */
umemStore *umemStore_take_over(umemVirtual *ctx, int fd, umemFileOptions const *options,
                               bool mapped);

/* Locks the file against other writers and measures it. The context can be used from now on. */
bool umemStore_start(umemStore *store);

/* Closes the file and frees store; NULL is ignored. Removes a file that was created and is not
 * committed. Reports a failing close on the context. */
void umemStore_close(umemStore *store);

/* What of capabilities and identity comes from the file. */
uint32_t umemStore_capabilities(umemStore const *store);
bool umemStore_identify(umemStore const *store, uint64_t space[2]);

/* Opens the directory of a new file; -1 where it is unknown, or cannot be opened. */
int umemStore_open_directory(umemStore const *store, int access);

/* The length of the file now. */
bool umemStore_measure(umemStore const *store, uint64_t *length);

void umemStore_info(umemStore *store, umemInfo *info);

/* Records "what LABEL: the system's words for error". Returns false. */
bool umemStore_fail(umemStore const *store, umemStatusType type, int error, char const *what);

/* ---- store_kind.c ---- */

/* Whether the open file is a regular file of a file system that stores files; else an umemIOError. */
bool umemStore_check_kind(umemStore *store);

/* Whether path, or where it does not exist the folder that it would be created in, is on such a file
 * system; else an umemIOError. Opens nothing. What cannot be examined passes: opening it says why. */
bool umemStore_check_place(umemStore *store, char const *path);

/* ---- store_commit.c ---- */

/* The last step of construction, of a context alone or of all contexts over it. Until then blocks are
 * placed, and the file stays as it is; now it is emptied where the mode says so, and made to hold the
 * blocks. When this fails the file has its old bytes. Does nothing later. */
bool umemStore_commit(umemStore *store);

/* umemStore_commit for calls that need the file before all layers are there. */
static inline bool umemStore_settle(umemStore *store) {
  return __builtin_expect(!__atomic_load_n(&store->building, __ATOMIC_ACQUIRE), 1) ||
         umemStore_commit(store);
}

/* The bytes from the first live block to the end of the last one; both 0 without any. Under the lock. */
void umemStore_span(umemStore const *store, uint64_t *from, uint64_t *to);

/* What umemStore_commit does under the lock. */
bool umemStore_carry_out(umemStore *store);

/* Removes the file that store has created, unless another one has its name by now, or somebody else has
 * opened it or written to it. */
void umemStore_remove(umemStore *store);

/* ---- store_context.c ---- */

/* Where the bytes of a new context come from. */
typedef struct umemStoreWish {
  enum {
    umemStoreOpens = 0, /* filename in mode; NULL: a scratch file */
    umemStoreReplaces,  /* a new file that is to take the place of filename */
    umemStoreTakesOver  /* the descriptor fd */
  } source;
  char const *filename, *mode;
  umemFileOptions const *options; /* NULL: the defaults */
  int fd;
  bool
      waits; /* somebody else calls umemStore_commit, when what goes over the context is constructed */
} umemStoreWish;

/* Makes *ctx a context of this kind, whose impl is the umemStore. kind->start adds what the kind alone needs,
 * before the file is locked. A descriptor stays the caller's when this fails. */
umemStatusType umemStore_construct(void *ctx, umemKind const *kind, umemStoreWish const *wish);
void umemStore_dtor(umemVirtual *ctx);

/* What the schemes have in common; user is the umemKind. */
enum { umemStoreOptionCount = 2 };
extern umemOption const umem_store_path, umem_store_options[umemStoreOptionCount];
extern umemFileOptions const umem_store_defaults;
umemStatusType umemStore_construct_named(void *ctx, void *upstream, umemOptionValue const *place,
                                         umemOptionValue const *given, void *user);
umemStatusType umemStore_commit_named(void *ctx, void *user);
#define UMEM_STORE_SCHEME(kind)                                                                    \
  .place = &umem_store_path, UMEM_OPTIONS(umem_store_options),                                     \
  .construct = umemStore_construct_named, .commit = umemStore_commit_named,                        \
  .user = (void *)&(kind)
#define UMEM_STORE_OPTIONS .options_size = sizeof(umemFileOptions), .defaults = &umem_store_defaults

/* ---- store_space.c ---- */

/* A new block; all zero if zeroed. */
uint64_t umemStore_alloc(umemStore *store, size_t size, size_t alignment, bool zeroed);
bool umemStore_free(umemStore *store, uint64_t offset);
uint64_t umemStore_realloc(umemStore *store, uint64_t offset, size_t old_size, size_t new_size);

/* Whether a live block begins at offset; a umemValueError otherwise. */
bool umemStore_begins(umemStore *store, uint64_t offset);

/* Whether [offset, offset + size) is inside one live block; else records umemIndexError. */
bool umemStore_owns(umemStore *store, uint64_t offset, size_t size);

void umemStore_trim(umemStore *store, size_t keep);

/* ---- store_room.c: all under the lock ---- */

/* Makes the file hold [from, to), with disk space unless it is sparse; changes no bytes, and never makes
 * the file shorter. */
bool umemStore_reserve(umemStore *store, uint64_t from, uint64_t to);

/* Whether the disk may have room for [from, to). False with a umemMemoryError when it surely has not. */
bool umemStore_may_fit(umemStore *store, uint64_t from, uint64_t to);

/* Measures the file and notes what others have added to it. */
bool umemStore_look(umemStore *store, uint64_t *length);

/* Whether nobody else can have the file open from now until umemStore_share: nobody loses bytes that are
 * cut off or overwritten meanwhile. Only a context that opened the file itself can say so: a
 * descriptor that was taken over may have duplicates. */
bool umemStore_isolate(umemStore *store);
void umemStore_share(umemStore *store);

/* Gives the disk space of [from, to), which reads as zero from now on, back to the system. */
bool umemStore_punch(umemStore *store, uint64_t from, uint64_t to);

/* Cuts the file to length if nobody else can have added bytes; else leaves it as it is. */
bool umemStore_cut(umemStore *store, uint64_t length);

/* Frees the disk space behind the end that a failed reservation left, if nobody else can have the file
 * open. */
void umemStore_drop_leftover(umemStore *store);

/* Changes the length of the file. Returns an errno, recording nothing. */
int umemStore_resize(umemStore *store, uint64_t length);

/* fallocate of [from, to). Returns an errno, recording nothing. */
int umemStore_change_space(umemStore *store, int how, uint64_t from, uint64_t to);

/* Records that space cannot be reserved. Returns false. */
bool umemStore_fail_space(umemStore *store, int error);

/* Whether error says that the file system does not know the call. */
static inline bool umemStore_lacks(int error) { return error == EOPNOTSUPP || error == ENOSYS; }

/* ---- store_zeros.c: under the lock ---- */

/* As umemStore_reserve, by writing zeros: into holes, and behind the end of the file, at *length, which
 * becomes the new one. */
bool umemStore_fill_up(umemStore *store, uint64_t from, uint64_t to, uint64_t *length);

/* Makes the file, now of *length bytes, at least `to` bytes long without fallocate. */
bool umemStore_lengthen(umemStore *store, uint64_t to, uint64_t *length);

/* ---- store_io.c ---- */

bool umemStore_read(umemStore *store, uint64_t offset, void *bytes, size_t size);

/* Inside one live block only. */
bool umemStore_write(umemStore *store, uint64_t offset, void const *bytes, size_t size);
bool umemStore_set(umemStore *store, uint64_t offset, int c, size_t size);

/* As umemStore_set, for a range that the caller knows to be inside a block. */
bool umemStore_fill(umemStore *store, uint64_t offset, int c, size_t size);

/* Copies size bytes between two blocks of the file. */
bool umemStore_move(umemStore *store, uint64_t from, uint64_t to, size_t size);

bool umemStore_flush(umemStore *store);

/* ---- store_window.c ---- */

/* See the method window in umem/virtual.h. */
bool umemStore_window(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                      umemWindow *window);

/* Unmaps what is kept for the next window, if no window is open. */
void umemStore_drop_window(umemStore *store);

#endif
