/* store_lend.c - see store_lend.h. */
#include "stores/store_lend.h"
#include "stores/store_blocks.h"
#include "stores/store_cached.h"
#include "stores/store_direct.h"
#include "stores/store_read.h"

#include <fcntl.h>
#include <unistd.h>

static size_t const looks = 8; /* pages of a range that are looked for in the cache */

/* The cache is faster than a disk. */
static bool is_any_cached(umemStore *store, uint64_t offset, size_t size) {
  size_t const stride = size / looks + 1;
  for (size_t at = 0; at < size; at += stride)
    if (umemStore_is_cached(store, offset + at)) return true;
  return false;
}

static bool goes_around(umemStore *store, uint64_t offset, size_t size, umemCapability access) {
  if (size < umemStoreDirectFrom || __atomic_load_n(&store->stays, __ATOMIC_RELAXED)) return false;
  if (store->direct != umemDirectAuto) return store->direct == umemDirectOn;
  return access == umemReadable && umemStore_goes_around(store) &&
         !is_any_cached(store, offset, size);
}

enum { own_store, own_reads };

/* What the device has read counts as read around the cache; not what it was only to read. */
static void release(umemVirtual *ctx, umemDirectFile *file) {
  (void)ctx;
  umemStore *store = (umemStore *)file->own[own_store];
  if (file->refused) __atomic_store_n(&store->stays, true, __ATOMIC_RELAXED);
  if (file->own[own_reads]) __atomic_fetch_add(&store->around, file->moved, __ATOMIC_RELAXED);
  close(file->fd); /* nothing was written that the close could lose */
}

/* Clears O_NONBLOCK, with which the descriptor was opened: drivers may not know the flag. */
static bool is_plain(int fd) {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

bool umemStore_lend(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                    umemDirectFile *file) {
  uint64_t length;
  umemDirectPath path;
  if (!umemStore_may_touch(store, offset, size, access, &length) ||
      !goes_around(store, offset, size, access))
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
