/* store.c - makes contexts of the engine: their construction, names and end, and what they say of
 * themselves. */
#include "stores/store.h"
#include "base/files.h"
#include "base/system.h"
#include "core/ram.h"
#include "core/context.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

_Static_assert(UMEM_STORE_NONE == UINTPTR_MAX, "the engine's null is that of offsets");

bool umemStore_maps(umemStore const *store, uintptr_t adr, umemStatusType otherwise) {
  return !store->base || umemStore_offset(store, adr) < store->limit ||
         UMEM_FAIL(store->ctx, otherwise, "the address %#" PRIxPTR " is not in the mapping of %s",
                   adr, store->label);
}

/* ---- queries ---- */

/* A file that is only read holds what it holds; others may grow as far as the disk goes. */
void umemStoreContext_info(umemVirtual *ctx, umemInfo *info) {
  umemStore *store = umemStore_of(ctx);
  struct statvfs disk;
  if (UMEM_AGAIN(fstatvfs(store->fd, &disk)) != 0) {
    umemStore_fail(store, umemIOError, errno, "cannot examine the disk of");
    return;
  }
  info->page_size = store->base ? (uint64_t)sysconf(_SC_PAGESIZE) : disk.f_frsize;
  if (disk.f_blocks) { /* none: memory without a limit of its own, as of a memfd */
    info->capacity = (uint64_t)disk.f_blocks * disk.f_frsize;
    info->available = (uint64_t)disk.f_bavail * disk.f_frsize;
  }
  if (store->takes_ram) info->available = umem_lesser(info->available, umemMemory_left());
  if (store->path) snprintf(info->name, sizeof info->name, "%s", store->path);
  if (store->writable) return;
  UMEM_LOCKED(&store->lock);
  uint64_t live = umemRange_totals(store->range).live_bytes;
  info->capacity = store->length;
  info->available = live < store->length ? store->length - live : 0;
}

umemSearch umemStoreContext_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  umemStore *store = umemStore_of(ctx);
  uint64_t offset = umemStore_offset(store, adr);
  umemRangeItem block;
  if (offset >= store->limit) return umemSearchNone;
  if (!umemLock_try(&store->lock)) return umemSearchBusy;
  bool has = umemRange_find(store->range, offset, &block) && block.live;
  umemLock_release(&store->lock);
  if (!has || offset - block.start >= block.size) return umemSearchNone;
  found->adr = umemStore_address(store, block.start);
  found->nbytes = (size_t)block.size;
  return umemSearchFound;
}

bool umemStoreContext_usage(umemVirtual *ctx, umemUsage *usage) {
  umemStore *store = umemStore_of(ctx);
  if (!umemLock_try(&store->lock)) return false;
  usage->nbytes = umemRange_totals(store->range).live_bytes;
  umemLock_release(&store->lock);
  return true;
}

bool umemStoreContext_locate(umemVirtual *ctx, uintptr_t adr, uint64_t where[3]) {
  umemStore *store = umemStore_of(ctx);
  memcpy(where, store->identity, sizeof store->identity);
  where[2] = umemStore_offset(store, adr);
  return where[2] < store->limit;
}

/* ---- hints ---- */

/* A mapping has the hints of RAM: the kernel reads ahead by what it knows of the mapping. */
void umemStoreContext_advise(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice,
                             int device) {
  umemStore *store = umemStore_of(ctx);
  if (store->base && advice != umemAdviceUnneeded) {
    umem_ram_advise(ctx, adr, nbytes, advice, device);
    return;
  }
  int theirs = umem_kernel_advice(advice, device, POSIX_FADV_DONTNEED), error = 0;
  if (theirs < 0)
    umem_refuse_advice(ctx, advice, device);
  else if ((error = posix_fadvise(store->fd, (off_t)umemStore_offset(store, adr), (off_t)nbytes,
                                  theirs)))
    umemVirtual_fail(ctx, umemNotSupportedError, "the kernel refuses the hint: %s",
                     UMEM_WORDS(error));
}

/* ---- mapping ----
 *
 * The file is mapped once, far beyond its end, so that growth needs no further call and blocks
 * never move. The kernel lets a page be used as soon as the file reaches it. */

/* Bytes of address space for a mapping. Builds for emulators that pay for each page of it take
 * fewer. */
#ifndef UMEM_MMAP_ROOM
#define UMEM_MMAP_ROOM (UINT64_C(1) << 40)
#endif
static uint64_t const room_wanted = UMEM_MMAP_ROOM;
static uint64_t const room_spare = 1 << 16; /* beyond the file: less is of no use */

/* The mapping begins at a multiple of this, where there is space enough, so that blocks aligned in
 * the file are aligned in memory. */
static uint64_t const base_alignment = 1 << 30;

/* Maps room_wanted bytes, or less where there is less address space, but always more than the file
 * has. */
static bool map(umemStore *store) {
  uint64_t length;
  if (!umemStore_measure(store, &length)) return false;
  uint64_t needed = (store->empties ? 0 : length & ~(room_spare - 1)) + 2 * room_spare;
  uint64_t room = needed > room_wanted / 2 ? 2 * needed : room_wanted;
  for (; !store->base && room >= needed; room = room / 2 & ~(room_spare - 1)) {
    store->alignment = room < base_alignment ? room_spare : base_alignment;
    store->base =
        umem_map_aligned(store->fd, room, store->alignment, store->writable, MAP_NORESERVE);
    store->limit = room;
  }
  if (store->base) return true;
  return umemStore_fail(store, errno == ENOMEM || errno == EAGAIN ? umemMemoryError : umemIOError,
                        errno, "cannot map");
}

/* ---- construction ---- */

/* What of capabilities and identity comes from the file. */

static uint32_t capabilities_of(umemStore const *store) {
  bool keeps = store->writable && !store->scratch && store->reuse != umemReuseYes;
  return umemConcurrent | umemShared | umemPlansAlike | (store->readable ? umemReadable : 0u) |
         (store->writable ? umemWritable : 0u) |
         (store->base && store->writable ? umemCpuWritable : 0u) | (keeps ? umemKeeps : 0u) |
         (keeps && store->reuse == umemReuseNo ? umemKeepsAll : 0u);
}

static bool identify(umemStore const *store, uint64_t space[2]) {
  struct stat st;
  if (fstat(store->fd, &st) != 0) return umemStore_fail_open(store, errno, "cannot examine");
  space[0] = st.st_dev;
  space[1] = st.st_ino;
  return true;
}

/* What a kind of offsets, or of pointers, needs of the open file. The space of pointers remains the
 * context's own: two mappings of one file have different addresses for one byte. */
static bool prepare(umemVirtual *ctx, umemKind const *kind, umemStore *store) {
  if (!identify(store, store->identity)) return false;
  if (kind->capabilities & umemFaultable && !map(store)) return false;
  if (kind->capabilities & umemOffsets) memcpy(ctx->space, store->identity, sizeof ctx->space);
  return !kind->start || kind->start(ctx, NULL);
}

umemStatusType umemStore_construct(void *ctx, umemKind const *kind, umemStoreWish const *wish) {
  umemVirtual *self = ctx;
  uint64_t before = umem_thread.failures;
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  memset(ctx, 0, kind->scheme.context_size);
  umem_construct(self, kind, NULL);
  bool mapped = kind->capabilities & umemFaultable;
  umemStore *store = *umemStore_impl(self) = umemStore_open(self, wish, mapped);
  if (store && prepare(self, kind, store) && umemStore_start(store) &&
      (wish->waits || umemStore_commit(store))) {
    self->capabilities |= capabilities_of(store);
    self->host = &store->host;
    umemLive_add(&store->live, self);
    return umemOK;
  }
  umemStore_close(store);
  *umemStore_impl(self) = NULL;
  umem_construct_failed(self);
  return umem_result(before);
}

void umemStoreContext_dtor(umemVirtual *ctx) {
  umemLive_remove(&umemStore_of(ctx)->live);
  umemStore_close(umemStore_of(ctx));
}

/* ---- by name: "file:scratch.bin?mode=w+", "mmap:array.bin?mode=r" ---- */

umemOption const umem_store_path = {.name = "path",
                                    .kind = umemPathOption,
                                    .help = "of the file; without one it is a scratch file"};

static char const *const modes[] = {"r", "r+", "w", "w+", "a", "a+"};

_Static_assert(umemReserveAuto == 0 && umemReserveNone == 1, "the indices of the words of reserve");
_Static_assert(umemReuseAuto == 0 && umemReuseNo == 2, "those of reuse");
_Static_assert(umemDirectAuto == 0 && umemDirectOn == 1 && umemDirectOff == 2, "those of direct");

umemOption const umem_store_options[umemStoreOptionCount] = {
    UMEM_OPTION_OWN("mode", umemWordOption, "r r+ w w+ a a+",
                    "as of umemFile_ctor; default: r+, for a scratch file w+"),
    UMEM_OPTION_WORD(umemFileOptions, reserve, "reserve", "auto none",
                     "disk space when a block is allocated, or when it is written; default: auto"),
    UMEM_OPTION_WORD(umemFileOptions, direct, "direct", "auto on off",
                     "long transfers around the page cache; default: auto"),
    UMEM_OPTION_WORD(
        umemFileOptions, reuse, "reuse", "auto yes no",
        "bytes of an array of a named file that has ended, while it is open; auto: C reuses"),
};

umemFileOptions const umem_store_defaults = UMEM_FILE_OPTIONS_INIT;

static char const *mode_of(umemOptionValue const *place, umemOptionValue const *given) {
  if (given[0].given) return modes[given[0].number];
  return place->given ? "r+" : "w+";
}

umemStatusType umemStore_construct_named(void *ctx, void *upstream, umemOptionValue const *place,
                                         umemOptionValue const *given, void *user) {
  (void)upstream;
  umemFileOptions options;
  if (!umemKind_read(user, given, &options)) return umemValueError;
  umemStoreWish wish = {
      .filename = place->text, .mode = mode_of(place, given), .options = &options, .waits = true};
  return umemStore_construct(ctx, user, &wish);
}

umemStatusType umemStore_commit_named(void *ctx, void *user) {
  (void)user;
  uint64_t before = umem_thread.failures;
  umemStore_commit(umemStore_of(ctx));
  return umem_result(before);
}
