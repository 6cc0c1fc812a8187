/* store_window.c - pointers to bytes of the file, for copies of single items.
 *
 * MMap has its mapping. File maps a part of the file, and keeps that mapping for the next copy: to map and unmap
 * costs as much as ten reads of the file. It is address space alone; the pages are those of the page cache.
 *
 * It maps the whole file where there is address space for it, and room to grow. Otherwise it maps a part, which
 * begins at a multiple of part_step and is longer by one step than the longest window in it, so that all windows
 * that begin in one step share it. Threads that need another part meanwhile map it for themselves. */
#include "stores/store_window.h"
#include "stores/store_blocks.h"

#include <sys/mman.h>
#include <unistd.h>

static uint64_t const whole_most = (uint64_t)1
                                   << 40; /* bytes of a file that is mapped as a whole */
static uint64_t const part_step = 32 << 20, part_window = 64 << 20;

/* The mapping of a window that is not the kept one, in the members of its umemWindow. */
enum { own_base, own_size };

/* NULL where the file system or the descriptor has no such mappings, or there is no address space. */
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
  umemLock_acquire(&store->lock);
  store->view.users--;
  umemLock_release(&store->lock);
}

static void release_own(umemVirtual *ctx, umemWindow *window) {
  (void)ctx;
  munmap((void *)window->own[own_base], window->own[own_size]);
}

/* Replaces the kept mapping, which nobody uses. */
static bool keep(umemStoreView *view, umemStore const *store, uint64_t start, uint64_t size) {
  char *base = map(store, start, (size_t)size);
  if (base) *view = (umemStoreView){base, start, (size_t)size, 0};
  return base != NULL;
}

static void renew(umemStore *store, uint64_t offset, size_t size, uint64_t length) {
  umemStoreView *view = &store->view;
  uint64_t whole = (length / part_step + 2) * part_step + length / 2;
  drop(view);
  if (length <= whole_most && keep(view, store, 0, whole)) return;
  if (size <= part_window) keep(view, store, offset & ~(part_step - 1), part_step + part_window);
}

/* Takes the kept mapping, made anew if it lacks these bytes and nobody uses it. */
static bool take_kept(umemStore *store, uint64_t offset, size_t size, uint64_t length,
                      umemWindow *window) {
  umemStoreView *view = &store->view;
  umemLock_acquire(&store->lock);
  if (!is_inside(view, offset, size) && !view->users) renew(store, offset, size, length);
  bool taken = is_inside(view, offset, size);
  if (taken) {
    view->users++;
    *window = (umemWindow){view->base + (offset - view->start), release_kept, {(uintptr_t)store}};
  }
  umemLock_release(&store->lock);
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

bool umemStore_window(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                      umemWindow *window) {
  uint64_t length;
  if (!umemStore_may_touch(store, offset, size, access, &length)) return false;
  if (store->base) {
    *window = (umemWindow){.bytes = store->base + offset};
    return size <= store->limit && offset <= store->limit - size;
  }
  return take_kept(store, offset, size, length, window) || map_own(store, offset, size, window);
}

void umemStore_drop_window(umemStore *store) {
  umemLock_acquire(&store->lock);
  if (!store->view.users) drop(&store->view);
  umemLock_release(&store->lock);
}
