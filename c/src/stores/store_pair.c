/* store_pair.c - copies a cached run from one file to another with one call: pwrite from a mapping of the source.
 *
 * The way through a buffer copies the bytes twice. The destination is not mapped: its pages may be new, and to write
 * those through a mapping takes a page fault for each. A source that another process cuts meanwhile ends the call
 * with EFAULT and raises no signal; the way through a buffer then says what has happened. */
#include "stores/store_pair.h"
#include "base/ahead.h"
#include "core/watch.h"
#include "stores/store_blocks.h"
#include "stores/store_cached.h"
#include "stores/store_context.h"
#include "stores/store_window.h"

#include <umem/mmap.h>
#include <unistd.h>

/* Bytes. A longer run is copied by two threads. */
static size_t const pair_most = 4 << 20;

/* The store of a context of the file that store_context.h constructs; NULL for any other one. */
static umemStore *store_of(umemVirtual const *ctx) {
  return ctx->vptr->dtor == umemStore_dtor ? ((umemFile const *)ctx)->impl : NULL;
}
_Static_assert(offsetof(umemFile, impl) == offsetof(umemMMap, impl), "one cast serves both");

static uint64_t offset_of(umemStore const *store, uintptr_t adr) {
  return store->base ? adr - (uintptr_t)store->base : adr;
}

/* The ends stand for all of it: what the cache lacks comes by page faults. */
static bool is_cached(umemStore *store, uint64_t offset, size_t size) {
  return umemStore_is_cached(store, offset) && umemStore_is_cached(store, offset + size - 1);
}

static bool write_mapped(umemStore const *store, uint64_t offset, char const *bytes, size_t size) {
  return pwrite(store->fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

bool umemStore_copy_pair(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                         size_t size) {
  umemStore *from = store_of(src), *to = store_of(dst);
  if (!from || !to || size > pair_most) return false;
  if (from->direct == umemDirectOn || to->direct == umemDirectOn) return false;
  uint64_t offset = offset_of(from, src_adr), target = offset_of(to, dst_adr), length;
  umemWindow window = {0};
  if (umem_is_ahead((uintptr_t)target, (uintptr_t)offset)) return false;
  if (!umemStore_may_touch(to, target, size, umemWritable, &length) ||
      !is_cached(from, offset, size) ||
      !umemStore_window(from, offset, size, umemReadable, &window))
    return false;
  uint64_t begin = umem_route_clock();
  bool done = write_mapped(to, target, window.bytes, size);
  /* Otherwise the way through a buffer notes its legs. */
  if (done) umem_note(umemWayPageCache, size, 1, begin);
  if (window.release) window.release(src, &window);
  return done;
}
