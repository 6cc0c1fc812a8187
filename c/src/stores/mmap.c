/* mmap.c - arrays in a file, addressed by pointers.
 *
 * The engine of store.h with pointers for offsets: adr = base + offset. The file is mapped once,
 * far beyond its end, so that growth needs no further call and blocks never move; the kernel lets a
 * page be used as soon as the file reaches it. Copies of runs, and sets, go through the descriptor and
 * cannot fault, whatever others do to the file; copies of single items are guarded (base/faultable.h). */
#include "stores/store_blocks.h"
#include "core/status.h"
#include "stores/store_commit.h"
#include "stores/store_context.h"
#include "stores/store_io.h"
#include "stores/store_lend.h"
#include "stores/store_pair.h"
#include "stores/store_read.h"
#include "stores/store_share.h"
#include "stores/store_space.h"
#include "stores/store_window.h"
#include "base/again.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/run.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <umem/mmap.h>
#include <unistd.h>

/* Bytes of address space for a mapping. Builds for emulators that pay for each page of it take fewer. */
#ifndef UMEM_MMAP_ROOM
#define UMEM_MMAP_ROOM (UINT64_C(1) << 40)
#endif
static uint64_t const room_wanted = UMEM_MMAP_ROOM;
static uint64_t const room_spare = 1 << 16; /* beyond the file: less is of no use */

/* The mapping begins at a multiple of this, where there is space enough, so that blocks aligned in the
 * file are aligned in memory. */
static uint64_t const base_alignment = 1 << 30;

static umemStore *store_of(umemVirtual *ctx) { return ((umemMMap *)ctx)->impl; }

/* ---- pointers and offsets ---- */

static uintptr_t pointer_to(umemStore *store, uint64_t offset) {
  return offset == UMEM_STORE_NONE ? 0 : (uintptr_t)store->base + offset;
}

/* An adr below base gives an offset that is beyond any limit. */
static uint64_t offset_of(umemStore *store, uintptr_t adr) { return adr - (uintptr_t)store->base; }

static bool is_mapped(umemStore *store, uintptr_t adr, umemStatusType otherwise) {
  return offset_of(store, adr) < store->limit ||
         UMEM_FAIL(store->ctx, otherwise, "the address %#" PRIxPTR " is not in the mapping of %s",
                   adr, store->label);
}

extern umemKind const umem_mmap_kind; /* below */

uintptr_t umemMMap_offset(umemMMap *ctx, uintptr_t adr) {
  UMEM_ENTER();
  if (!umemKind_check(ctx, &umem_mmap_kind)) return UINTPTR_MAX;
  umemStore *store = ctx->impl;
  return is_mapped(store, adr, umemIndexError) ? offset_of(store, adr) : UINTPTR_MAX;
}

uintptr_t umemMMap_address(umemMMap *ctx, uintptr_t offset) {
  UMEM_ENTER();
  uint64_t length;
  if (!umemKind_check(ctx, &umem_mmap_kind) || !umemStore_settle(ctx->impl)) return 0;
  if (!umemStore_measure(ctx->impl, &length)) return 0;
  umemStore *store = ctx->impl;
  if (offset < length && offset < store->limit) return pointer_to(store, offset);
  umemVirtual_fail(ctx, umemIndexError,
                   "offset %" PRIuPTR " is past the end of %s (%" PRIu64 " bytes)", offset,
                   store->label, length);
  return 0;
}

/* ---- methods ---- */

static uintptr_t mmap_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  umemStore *store = store_of(ctx);
  if (alignment <= store->alignment)
    return pointer_to(store, umemStore_alloc(store, size, alignment, false));
  umemVirtual_fail(ctx, umemMemoryError,
                   "%s is mapped at a multiple of %" PRIu64 ": the alignment of %zu is too large",
                   store->label, store->alignment, alignment);
  return 0;
}

static uintptr_t mmap_alloc(umemVirtual *ctx, size_t nbytes) {
  return mmap_aligned_alloc(ctx, umemStoreGranule, nbytes);
}

static uintptr_t mmap_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  umemStore *store = store_of(ctx);
  return pointer_to(store, umemStore_alloc(store, nmemb * size, umemStoreGranule, true));
}

static void mmap_free(umemVirtual *ctx, uintptr_t adr) {
  umemStore *store = store_of(ctx);
  if (is_mapped(store, adr, umemValueError)) umemStore_free(store, offset_of(store, adr));
}

static uintptr_t mmap_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  umemStore *store = store_of(ctx);
  return is_mapped(store, adr, umemValueError) && umemStore_begins(store, offset_of(store, adr))
             ? adr
             : 0;
}

static uintptr_t mmap_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  umemStore *store = store_of(ctx);
  if (!is_mapped(store, adr, umemValueError)) return 0;
  return pointer_to(store, umemStore_realloc(store, offset_of(store, adr), old_size, new_size));
}

static void mmap_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  umemStore *store = store_of(ctx);
  if (is_mapped(store, adr, umemIndexError)) umemStore_set(store, offset_of(store, adr), c, nbytes);
}

static void mmap_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                         size_t nbytes) {
  (void)that;
  umemStore *store = store_of(ctx);
  if (is_mapped(store, src_adr, umemIndexError))
    umemStore_read(store, offset_of(store, src_adr), (void *)dst_adr, nbytes);
}

static void mmap_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                           uintptr_t src_adr, size_t nbytes) {
  (void)that;
  umemStore *store = store_of(ctx);
  if (is_mapped(store, dst_adr, umemIndexError))
    umemStore_write(store, offset_of(store, dst_adr), (void const *)src_adr, nbytes);
}

static bool mmap_window(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                        umemWindow *window) {
  umemStore *store = store_of(ctx);
  uint64_t offset = offset_of(store, adr);
  return offset < store->limit && umemStore_window(store, offset, nbytes, access, window);
}

static bool mmap_direct_file(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                             umemDirectFile *file) {
  umemStore *store = store_of(ctx);
  uint64_t offset = offset_of(store, adr);
  return offset < store->limit && umemStore_lend(store, offset, nbytes, access, file);
}

static bool mmap_share(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle,
                       int *fd) {
  umemStore *store = store_of(ctx);
  return is_mapped(store, adr, umemIndexError) &&
         umemStore_describe(store, offset_of(store, adr), nbytes, handle, fd);
}

static bool mmap_attach(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr) {
  (void)fd;
  umemStore *store = store_of(ctx);
  *adr = pointer_to(store, handle->offset);
  return handle->size <= store->limit && umemStore_has(store, handle);
}

/* Linux finds pages that were written through a mapping without msync too; POSIX asks for it. */
static void mmap_flush(umemVirtual *ctx) {
  umemStore *store = store_of(ctx);
  uint64_t length;
  if (!umem_can(ctx, umemWritable) || !umemStore_settle(store)) return;
  if (!umemStore_measure(store, &length)) return;
  if (length > store->limit) length = store->limit;
  if (length && UMEM_AGAIN(msync(store->base, length, MS_SYNC)) != 0)
    umemStore_fail(store, umemIOError, errno, "cannot flush the mapping of");
  else
    umemStore_flush(store);
}

static void mmap_trim(umemVirtual *ctx, size_t keep) { umemStore_trim(store_of(ctx), keep); }

static void mmap_info(umemVirtual *ctx, umemInfo *info) {
  umemStore_info(store_of(ctx), info);
  info->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
}

static umemSearch mmap_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  umemStore *store = store_of(ctx);
  uint64_t offset = offset_of(store, adr);
  umemSearch search =
      offset < store->limit ? umemStore_search(store, offset, found) : umemSearchNone;
  if (search == umemSearchFound) found->adr = pointer_to(store, found->adr);
  return search;
}

static bool mmap_locate(umemVirtual *ctx, uintptr_t adr, uint64_t where[3]) {
  umemStore *store = store_of(ctx);
  memcpy(where, store->identity, sizeof store->identity);
  where[2] = offset_of(store, adr);
  return where[2] < store->limit;
}

static struct umemVtbl const mmap_vtbl = {
    .dtor = umemStore_dtor,
    .alloc = mmap_alloc,
    .calloc = mmap_calloc,
    .free = mmap_free,
    .aligned_alloc = mmap_aligned_alloc,
    .aligned_origin = mmap_aligned_origin,
    .aligned_free = mmap_free,
    .set = mmap_set,
    .copy_to = mmap_copy_to,
    .copy_from = mmap_copy_from,
    .flush = mmap_flush,
    .trim = mmap_trim,
    .info = mmap_info,
    .realloc = mmap_realloc,
    .window = mmap_window,
    .direct_file = mmap_direct_file,
    .share = mmap_share,
    .attach = mmap_attach,
    .find = mmap_find,
    .usage = umemStore_usage,
    .locate = mmap_locate,
};

/* ---- mapping ---- */

/* Maps room bytes of the file at a multiple of alignment; NULL with errno set otherwise. */
static char *map_aligned(umemStore const *store, size_t room, size_t alignment) {
  char *start =
      mmap(NULL, room + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return NULL;
  size_t below = -(uintptr_t)start & (alignment - 1);
  char *base = start + below;
  int protection = PROT_READ | (store->writable ? PROT_WRITE : 0);
  int how = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
  if (mmap(base, room, protection, how, store->fd, 0) == MAP_FAILED) {
    int error = errno;
    munmap(start, room + alignment);
    errno = error;
    return NULL;
  }
  /* The rest on either side is only addresses: if it cannot be unmapped, nothing is lost. */
  if (below) munmap(start, below);
  munmap(base + room, alignment - below);
  return base;
}

/* Maps room_wanted bytes, or less where there is less address space, but always more than the file has. */
static bool map(umemStore *store) {
  uint64_t length;
  if (!umemStore_measure(store, &length)) return false;
  uint64_t needed = (store->empties ? 0 : length & ~(room_spare - 1)) + 2 * room_spare;
  uint64_t room = needed > room_wanted / 2 ? 2 * needed : room_wanted;
  for (; !store->base && room >= needed; room = room / 2 & ~(room_spare - 1)) {
    store->alignment = room < base_alignment ? room_spare : base_alignment;
    store->base = map_aligned(store, room, store->alignment);
    store->limit = room;
  }
  if (store->base) return true;
  return umemStore_fail(store, errno == ENOMEM || errno == EAGAIN ? umemMemoryError : umemIOError,
                        errno, "cannot map");
}

/* ---- construction ---- */

/* The space stays the context's own: two mappings of one file have different addresses for one byte. */
static bool mmap_start(umemVirtual *ctx, void const *options) {
  (void)options;
  umemStore *store = store_of(ctx);
  umem_stage_ask(umemStore_copy_pair);
  if (store->writable) ctx->capabilities |= umemCpuWritable;
  return umemStore_identify(store, store->identity) && map(store);
}

umemKind const umem_mmap_kind = {
    .scheme = {.size = sizeof(umemScheme),
               .name = "mmap",
               .context_size = sizeof(umemMMap),
               .vtbl = &mmap_vtbl,
               UMEM_STORE_SCHEME(umem_mmap_kind),
               .help = "a file, mapped into memory"},
    .label = "MMap",
    .type = umemMMapDevice,
    .capabilities = umemFaultable | umemCpuReadable,
    .alignment = umemStoreGranule,
    UMEM_STORE_OPTIONS,
    .start = mmap_start,
};

umemStatusType umemMMap_ctor(umemMMap *ctx, char const *filename, char const *mode) {
  UMEM_ENTER();
  return umemMMap_ctor_with(ctx, filename, mode, NULL);
}

umemStatusType umemMMap_ctor_with(umemMMap *ctx, char const *filename, char const *mode,
                                  umemFileOptions const *options) {
  UMEM_ENTER();
  umemStoreWish wish = {.filename = filename, .mode = mode, .options = options};
  return umemStore_construct(ctx, &umem_mmap_kind, &wish);
}

umemStatusType umemMMap_adopt(umemMMap *ctx, int fd) {
  UMEM_ENTER();
  return umemMMap_adopt_with(ctx, fd, NULL);
}

umemStatusType umemMMap_adopt_with(umemMMap *ctx, int fd, umemFileOptions const *options) {
  UMEM_ENTER();
  umemStoreWish wish = {.source = umemStoreTakesOver, .fd = fd, .options = options};
  return umemStore_construct(ctx, &umem_mmap_kind, &wish);
}
