/* store_blocks.c - the blocks of a store, and the ways in which others get at their bytes: a
 * pointer, a descriptor, a handle. */
#include "stores/store.h"
#include "base/files.h"
#include "core/status.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ==== pointers to bytes ====
 *
 * A store of pointers has its mapping. One of offsets maps a part of the file, and keeps that
 * mapping for the next copy: to map and unmap costs as much as ten reads of the file. It is address
 * space alone; the pages are those of the page cache.
 *
 * It maps the whole file where there is address space for it, and room to grow. Otherwise it maps a
 * part, which begins at a multiple of part_step and is longer by one step than the longest window
 * in it, so that all windows that begin in one step share it. Threads that need another part
 * meanwhile map it for themselves. */

static uint64_t const whole_most = (uint64_t)1
                                   << 40; /* bytes of a file that is mapped as a whole */
static uint64_t const part_step = 32 << 20, part_window = 64 << 20;

/* The mapping of a window that is not the kept one, in the members of its umemWindow. */
enum { own_base, own_size };

/* NULL where the file system or the descriptor has no such mappings, or there is no address
 * space. */
static char *map(umemStore const *store, uint64_t start, size_t size) {
  int protection = PROT_READ | (store->writable ? PROT_WRITE : 0);
  char *base = mmap(NULL, size, protection, MAP_SHARED | MAP_NORESERVE, store->fd, (off_t)start);
  return base == MAP_FAILED ? NULL : base;
}

static bool is_inside(umemStoreView const *view, uint64_t offset, size_t size) {
  uint64_t inside = offset - view->start;
  return view->base && offset >= view->start && inside < view->size && size <= view->size - inside;
}

static void drop(umemStoreView *view) {
  if (view->base) munmap(view->base, view->size);
  *view = (umemStoreView){0};
}

static void release_kept(umemVirtual *ctx, umemWindow *window) {
  umemStore *store = (umemStore *)window->own[0];
  (void)ctx;
  UMEM_LOCKED(&store->lock);
  store->view.users--;
}

static void release_own(umemVirtual *ctx, umemWindow *window) {
  (void)ctx;
  munmap((void *)window->own[own_base], window->own[own_size]);
}

/* Replaces the kept mapping, which has no users. */
static bool map_kept(umemStoreView *view, umemStore const *store, uint64_t start, uint64_t size) {
  char *base = map(store, start, (size_t)size);
  if (base) *view = (umemStoreView){base, start, (size_t)size, 0};
  return base != NULL;
}

static void renew(umemStore *store, uint64_t offset, size_t size, uint64_t length) {
  umemStoreView *view = &store->view;
  uint64_t whole = (length / part_step + 2) * part_step + length / 2;
  drop(view);
  if (length <= whole_most && map_kept(view, store, 0, whole)) return;
  if (size <= part_window)
    map_kept(view, store, offset & ~(part_step - 1), part_step + part_window);
}

/* Takes the kept mapping, made anew if it lacks these bytes and has no users. */
static bool take_kept(umemStore *store, uint64_t offset, size_t size, uint64_t length,
                      umemWindow *window) {
  umemStoreView *view = &store->view;
  UMEM_LOCKED(&store->lock);
  if (!is_inside(view, offset, size) && !view->users) renew(store, offset, size, length);
  bool taken = is_inside(view, offset, size);
  if (taken) {
    view->users++;
    *window = (umemWindow){view->base + (offset - view->start), release_kept, {(uintptr_t)store}};
  }
  return taken;
}

static bool map_own(umemStore *store, uint64_t offset, size_t size, umemWindow *window) {
  uint64_t start = offset & ~(uint64_t)(umemStorePage - 1);
  size_t whole = size + (size_t)(offset - start);
  char *base = map(store, start, whole);
  if (!base) return false;
  *window = (umemWindow){base + (offset - start), release_own, {(uintptr_t)base, whole}};
  return true;
}

bool umemStoreContext_window(umemVirtual *ctx, uintptr_t adr, size_t size, umemCapability access,
                             umemWindow *window) {
  umemStore *store = umemStore_of(ctx);
  uint64_t offset = umemStore_offset(store, adr), length;
  if (offset >= store->limit || !umemStore_may_touch(store, offset, size, access, &length))
    return false;
  if (store->base) {
    *window = (umemWindow){.bytes = store->base + offset};
    return size <= store->limit - offset;
  }
  return take_kept(store, offset, size, length, window) || map_own(store, offset, size, window);
}

/* Unmaps what is kept for the next window, if no window is open. */
static void drop_window(umemStore *store) {
  UMEM_LOCKED(&store->lock);
  if (!store->view.users) drop(&store->view);
}

/* ==== the file, for devices ==== */

static size_t const looks = 8; /* pages of a range that are looked for in the cache */

/* The cache is faster than a disk. */
static bool is_any_cached(umemStore *store, uint64_t offset, size_t size) {
  size_t const stride = size / looks + 1;
  for (size_t at = 0; at < size; at += stride)
    if (umemStore_is_cached(store, offset + at)) return true;
  return false;
}

static bool bypasses_cache(umemStore *store, uint64_t offset, size_t size, umemCapability access) {
  if (size < umemStoreDirectFrom || __atomic_load_n(&store->refused_by_device, __ATOMIC_RELAXED))
    return false;
  if (store->direct != umemDirectAuto) return store->direct == umemDirectOn;
  return access == umemReadable && umemStore_bypasses_cache(store) &&
         !is_any_cached(store, offset, size);
}

enum { own_store, own_reads };

/* What the device has read counts as read around the cache; not what it was only to read. */
static void release(umemVirtual *ctx, umemDirectFile *file) {
  (void)ctx;
  umemStore *store = (umemStore *)file->own[own_store];
  if (file->refused) __atomic_store_n(&store->refused_by_device, true, __ATOMIC_RELAXED);
  if (file->own[own_reads]) __atomic_fetch_add(&store->bypassed, file->moved, __ATOMIC_RELAXED);
  close(file->fd); /* nothing was written that the close could lose */
}

/* Clears O_NONBLOCK, with which the descriptor was opened: drivers may not know the flag. */
static bool is_plain(int fd) {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

/* The file is lent where the option direct lets transfers of so many bytes go around the page
 * cache: with umemDirectAuto only to readers, of bytes that are not cached. */
bool umemStoreContext_direct_file(umemVirtual *ctx, uintptr_t adr, size_t size,
                                  umemCapability access, umemDirectFile *file) {
  umemStore *store = umemStore_of(ctx);
  uint64_t offset = umemStore_offset(store, adr), length;
  umemDirectPath path;
  if (offset >= store->limit || !umemStore_may_touch(store, offset, size, access, &length) ||
      !bypasses_cache(store, offset, size, access))
    return false;
  umemDirectPath_open(&path, store, access == umemWritable);
  if (path.refused || !is_plain(path.fd)) {
    umemDirectPath_close(&path);
    return false;
  }
  *file = (umemDirectFile){
      .fd = path.fd,
      .offset = offset,
      .label = store->label,
      .release = release,
      .own = {[own_store] = (uintptr_t)store, [own_reads] = access == umemReadable}};
  return true;
}

/* ==== handles ==== */

bool umemStoreContext_share(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle,
                            int *fd) {
  umemStore *store = umemStore_of(ctx);
  uint64_t offset = umemStore_offset(store, adr);
  struct stat st;
  if (!umemStore_maps(store, adr, umemIndexError) || !umemStore_ensure_committed(store))
    return false;
  if (!store->readable)
    return UMEM_FAIL(store->ctx, umemNotSupportedError,
                     "%s is open for writing only, so it cannot be mapped", store->label);
  if (fstat(store->fd, &st) != 0)
    return umemStore_fail(store, umemIOError, errno, "cannot examine");
  uint64_t length = (uint64_t)st.st_size;
  if (offset > length || nbytes > length - offset)
    return UMEM_FAIL(store->ctx, umemIndexError,
                     "%zu bytes at %" PRIu64 " are past the end of %s (%" PRIu64 " bytes)", nbytes,
                     offset, store->label, length);
  if (!umemStore_is_whole(store, "share", offset, nbytes)) return false;
  handle->kind = umemHandleFile;
  handle->offset = offset;
  handle->size = offset + nbytes;
  handle->identity[0] = st.st_dev;
  handle->identity[1] = st.st_ino;
  handle->flags = store->writable ? 0 : UMEM_HANDLE_READ_ONLY;
  *fd = store->fd;
  return true;
}

/* Whether the bytes of handle are in this file. */
bool umemStoreContext_attach(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr) {
  (void)fd;
  umemStore *store = umemStore_of(ctx);
  struct stat st;
  *adr = umemStore_address(store, handle->offset);
  return handle->kind == umemHandleFile && fstat(store->fd, &st) == 0 &&
         handle->identity[0] == st.st_dev && handle->identity[1] == st.st_ino &&
         handle->size <= umem_lesser((uint64_t)st.st_size, store->limit) &&
         (store->writable || handle->flags & UMEM_HANDLE_READ_ONLY);
}

/* ==== blocks ====
 *
 * The range allocator alone places blocks. It knows nothing of the file, so that placement is the
 * same in all modes. Then the file must get length and space for the block (store_length.c); if it
 * cannot, the block is freed again. */

/* ---- what the file must provide ---- */

static bool within_limit(umemStore *store, uint64_t to) {
  uint64_t limit;
  return umem_may_write_to(to, &limit) ||
         UMEM_FAIL(store->ctx, umemMemoryError,
                   "cannot reserve space in %s: %s (a block up to %" PRIu64 " passes the %" PRIu64
                   " bytes that this process may write to, RLIMIT_FSIZE)",
                   store->label, UMEM_WORDS(EFBIG), to, limit);
}

/* A file that is only read may have been made longer by its writer since we looked. */
static bool within_file(umemStore *store, uint64_t from, uint64_t to) {
  uint64_t length;
  if (to <= store->length) return true;
  if (!umemStore_measure(store, &length)) return false;
  if (length > store->length) store->length = length;
  if (to <= store->length) return true;
  return UMEM_FAIL(store->ctx, umemMemoryError,
                   "%" PRIu64 " bytes at offset %" PRIu64 " do not fit into %s, which has %" PRIu64
                   " bytes and is only read",
                   to - from, from, store->label, store->length);
}

/* Before the commit: refuses only blocks that the disk cannot have room for. */
static bool may_have_all(umemStore *store) {
  uint64_t from, to;
  umemStore_span(store, &from, &to); /* the new block is one of them */
  return store->sparse || umemStore_may_fit(store, from, to);
}

/* Makes the file hold a block that the allocator has placed at [from, to). */
static bool provide(umemStore *store, uint64_t from, uint64_t to) {
  if (to > store->limit)
    return UMEM_FAIL(store->ctx, umemMemoryError,
                     "a block up to %" PRIu64 " of %s is beyond the %" PRIu64
                     " bytes of address space that the mapping has",
                     to, store->label, store->limit);
  if (!store->writable) return within_file(store, from, to);
  if (!within_limit(store, to)) return false;
  return store->building ? may_have_all(store) : umemStore_reserve(store, from, to);
}

/* ---- free ---- */

/* What a forked child has freed may still be in use by its parent, and the other way round. */
static bool may_give_back(umemStore *store) { return store->writable && store->owner == getpid(); }

/* The hole is punched first: as soon as the range is free, another thread may write there. */
static void free_block(umemStore *store, uint64_t offset) {
  umemRangeItem block;
  UMEM_STORE_LOCKED(store);
  if (!umemStore_find(store, offset, &block)) return;
  if (store->scratch && may_give_back(store))
    umemStore_punch(store, block.start, block.start + block.extent);
  umemStore_forget_lost(store, offset);
  umemRange_free(store->range, offset);
}

void umemStoreContext_free(umemVirtual *ctx, uintptr_t adr) {
  umemStore *store = umemStore_of(ctx);
  if (umemStore_maps(store, adr, umemValueError)) free_block(store, umemStore_offset(store, adr));
}

/* ---- allocate ---- */

/* Places a block. From *used on the bytes of the file were zero before. */
static uint64_t place(umemStore *store, size_t size, size_t alignment, uint64_t *used) {
  UMEM_STORE_LOCKED(store);
  uint64_t offset = umemRange_alloc(store->range, size, alignment);
  if (offset == UMEM_STORE_NONE)
    return UMEM_FAIL_AS(UMEM_STORE_NONE, store->ctx, umemMemoryError,
                        "no room for %zu bytes at a multiple of %zu in %s", size, alignment,
                        store->label);
  if (!provide(store, offset, offset + size)) {
    umemRange_free(store->range, offset);
    return UMEM_STORE_NONE;
  }
  *used = store->used;
  store->used = umem_greater(*used, offset + size);
  return offset;
}

/* The offset of a new block; all zero if zeroed. */
static uint64_t allocate(umemStore *store, size_t size, size_t alignment, bool zeroed) {
  uint64_t used = 0, offset = place(store, size, alignment, &used);
  if (offset == UMEM_STORE_NONE || !zeroed || offset >= used) return offset;
  if (umemStore_fill(store, offset, 0, (size_t)umem_lesser(size, used - offset))) return offset;
  free_block(store, offset);
  return UMEM_STORE_NONE;
}

uintptr_t umemStoreContext_alloc(umemVirtual *ctx, size_t nbytes) {
  umemStore *store = umemStore_of(ctx);
  return umemStore_address(store, allocate(store, nbytes, umemStoreGranule, false));
}

uintptr_t umemStoreContext_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  umemStore *store = umemStore_of(ctx);
  return umemStore_address(store, allocate(store, nmemb * size, umemStoreGranule, true));
}

uintptr_t umemStoreContext_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  umemStore *store = umemStore_of(ctx);
  if (!store->base || alignment <= store->alignment)
    return umemStore_address(store, allocate(store, size, alignment, false));
  return UMEM_FAIL_AS(0, ctx, umemMemoryError,
                      "%s is mapped at a multiple of %" PRIu64
                      ": the alignment of %zu is too large",
                      store->label, store->alignment, alignment);
}

uintptr_t umemStoreContext_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  umemStore *store = umemStore_of(ctx);
  umemRangeItem block;
  UMEM_STORE_LOCKED(store);
  bool begins = umemStore_maps(store, adr, umemValueError) &&
                umemStore_find(store, umemStore_offset(store, adr), &block);
  return begins ? adr : umemStore_address(store, UMEM_STORE_NONE);
}

/* ---- trim ---- */

/* Gives back the disk space of the free range [from, to), but not that of bytes of others, or past
 * the end that the context knows. The first *keep bytes stay, and *keep becomes what is left of
 * them. */
static bool give_back(umemStore *store, uint64_t from, uint64_t to, uint64_t *keep) {
  bool last = to >= store->length;
  from = umem_greater(from, store->original);
  to = umem_lesser(to, store->length);
  if (from >= to) return true;
  uint64_t kept = umem_lesser(*keep, to - from);
  *keep -= kept;
  if (from + kept == to) return true;
  return umemStore_punch(store, from + kept, to) && (!last || umemStore_cut(store, from + kept));
}

void umemStoreContext_trim(umemVirtual *ctx, size_t keep) {
  umemStore *store = umemStore_of(ctx);
  umemRangeItem item;
  uint64_t left = keep, live_end = 0;
  drop_window(store);
  /* by contexts on duplicates, whose blocks are free in this table */
  bool shared = store->taken_over;
  if (shared || !may_give_back(store) || !umemStore_ensure_committed(store)) return;
  UMEM_STORE_LOCKED(store);
  for (uint64_t at = 0; umemRange_next(store->range, at, &item); at = item.start + item.extent) {
    if (item.live)
      live_end = item.start + item.size;
    else if (!give_back(store, live_end, item.start + item.extent, &left))
      break;
  }
  umemStore_drop_leftover(store);
}

/* ---- realloc ---- */

/* Whether the block at offset, stored in *block, has old_size bytes and could be moved. */
static bool can_realloc(umemStore *store, uint64_t offset, size_t old_size, umemRangeItem *block) {
  UMEM_STORE_LOCKED(store);
  if (!umemStore_find(store, offset, block)) return false;
  if (old_size > block->size)
    return UMEM_FAIL(store->ctx, umemValueError,
                     "the block at offset %" PRIu64 " of %s has %" PRIu64 " bytes, not %zu", offset,
                     store->label, block->size, old_size);
  if (!store->readable)
    return UMEM_FAIL(store->ctx, umemNotSupportedError,
                     "%s is open for writing only: its blocks cannot be moved", store->label);
  return true;
}

/* A block that shrinks by less than a half remains where it is. In a file that is only read nothing
 * is copied: the writer of the file has moved the bytes. */
static uint64_t reallocate(umemStore *store, uint64_t offset, size_t old_size, size_t new_size) {
  umemRangeItem block;
  if (!can_realloc(store, offset, old_size, &block)) return UMEM_STORE_NONE;
  if (new_size <= block.size && new_size > block.size / 2) return offset;

  uint64_t moved = allocate(store, new_size, umemStoreGranule, false);
  if (moved == UMEM_STORE_NONE) return moved;
  if (store->writable &&
      !umemStore_move(store, offset, moved, (size_t)umem_lesser(old_size, new_size))) {
    free_block(store, moved);
    return UMEM_STORE_NONE;
  }
  UMEM_FORGETTING(); /* the block has moved, whether or not the disk takes its old place back */
  free_block(store, offset);
  return moved;
}

uintptr_t umemStoreContext_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size,
                                   size_t new_size) {
  umemStore *store = umemStore_of(ctx);
  uint64_t moved = UMEM_STORE_NONE;
  if (umemStore_maps(store, adr, umemValueError))
    moved = reallocate(store, umemStore_offset(store, adr), old_size, new_size);
  return umemStore_address(store, moved);
}
