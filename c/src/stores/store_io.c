/* store_io.c - writes to the file, and makes the bytes durable.
 *
 * pwrite in loops: a call may transfer less than asked, be interrupted, and transfers at most io_most. One
 * thread writes: writes of one file exclude each other in the kernel, and several threads take longer. */
#include "stores/store_io.h"
#include "base/again.h"
#include "base/disk.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/watch.h"
#include "core/status.h"
#include "stores/store_ahead.h"
#include "stores/store_blocks.h"
#include "stores/store_commit.h"
#include "stores/store_direct.h"
#include "stores/store_read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { fill_chunk = 2 << 20, least_fill = 1 << 12 };

static size_t const zero_range_from = 1 << 20; /* below this, writing zeros is faster */

/* ---- write ---- */

static __attribute__((noinline)) bool fail_write(umemStore *store, uint64_t offset, size_t size,
                                                 int error) {
  char words[128];
  return UMEM_FAIL(store->ctx, umemIOError, "cannot write %zu bytes at %" PRIu64 " of %s: %s", size,
                   offset, store->label, umem_system_words(error, words, sizeof words));
}

/* size > 0 */
static inline bool write_all(umemStore *store, uint64_t offset, char const *bytes, size_t size) {
  for (size_t done = 0;;) {
    ssize_t n = umemStore_pwrite(store->fd, bytes + done, size - done, (off_t)(offset + done));
    if (n == (ssize_t)(size - done)) return true;
    if (n > 0)
      done += (size_t)n;
    else if (n == 0 || errno != EINTR)
      return fail_write(store, offset, size, n == 0 ? EIO : errno);
  }
}

/* The same, noted for the route of the copy. */
static __attribute__((noinline)) bool write_noted(umemStore *store, uint64_t offset,
                                                  char const *bytes, size_t size) {
  uint64_t begin = umem_route_clock();
  bool good = write_all(store, offset, bytes, size);
  umem_note(umemWayPageCache, good ? size : 0, 1, begin);
  return good;
}

static inline bool write_cached(umemStore *store, uint64_t offset, char const *bytes, size_t size) {
  return umem_is_watched() ? write_noted(store, offset, bytes, size)
                           : write_all(store, offset, bytes, size);
}

/* All whole units around the cache, the rest, and what the file system does not do, through it. */
static __attribute__((noinline)) bool write_around(umemStore *store, uint64_t offset,
                                                   char const *bytes, size_t size) {
  size_t done = umem_lesser(-offset % umemDirectUnit, size);
  size_t end = done + (size - done) / umemDirectUnit * umemDirectUnit;
  umemDirectPath path;
  umemDirectPath_open(&path, store, true);
  bool good = !done || write_cached(store, offset, bytes, done);
  while (good && done < end && !path.refused) {
    uint64_t begin = umem_route_clock();
    ssize_t n = umemDirectPath_write(&path, offset + done, bytes + done,
                                     umem_lesser(end - done, umemStoreMostIO));
    if (n > 0) {
      done += (size_t)n;
      umem_note(umemStore_direct_way(store), (size_t)n, 1, begin);
    } else if (!path.refused)
      good = fail_write(store, offset, size, n == 0 ? EIO : errno);
    if (n > 0 && n % umemDirectUnit) break; /* a part of a unit: the cache does the rest */
  }
  umemDirectPath_close(&path);
  return good && (done == size || write_cached(store, offset + done, bytes + done, size - done));
}

bool umemStore_write(umemStore *store, uint64_t offset, void const *bytes, size_t size) {
  if (!umemStore_may_write(store, offset, size) || !umemStore_settle(store)) return false;
  if (size >= umemStoreDirectFrom && store->direct == umemDirectOn)
    return write_around(store, offset, bytes, size);
  return write_cached(store, offset, bytes, size);
}

/* ---- buffers ---- */

/* Host memory of nbytes, or NULL: callers then use a small buffer of their own. */
static char *take_buffer(umemStore *store, size_t nbytes) {
  umemAttempt ignored;
  umemAttempt_begin(&ignored);
  uintptr_t buffer = umem_alloc(&store->host, nbytes);
  umemAttempt_end(&ignored);
  return (char *)buffer;
}

/* ---- fill ---- */

/* Lets the file system zero the range without writing; false where it cannot. */
static bool zero_range(umemStore *store, uint64_t offset, size_t size) {
  return umem_change_space(store->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset,
                           offset + size) == 0;
}

/* After umemStore_settle. */
static bool fill(umemStore *store, uint64_t offset, int c, size_t size) {
  if (!(unsigned char)c && size >= zero_range_from && zero_range(store, offset, size)) return true;
  char small[least_fill];
  char *large = size > sizeof small ? take_buffer(store, umem_lesser(size, fill_chunk)) : NULL;
  char *buffer = large ? large : small;
  size_t chunk = umem_lesser(size, large ? fill_chunk : sizeof small);
  memset(buffer, c, chunk);
  bool good = true;
  for (size_t done = 0, n; good && done < size; done += n) {
    size_t odd = chunk == fill_chunk ? (size_t)((offset + done) % chunk) : 0;
    n = umem_lesser(size - done, chunk - odd);
    good = write_all(store, offset + done, buffer, n);
  }
  umem_free(&store->host, (uintptr_t)large);
  return good;
}

bool umemStore_fill(umemStore *store, uint64_t offset, int c, size_t size) {
  return umemStore_settle(store) && fill(store, offset, c, size);
}

bool umemStore_set(umemStore *store, uint64_t offset, int c, size_t size) {
  return umemStore_may_write(store, offset, size) && umemStore_settle(store) &&
         fill(store, offset, c, size);
}

/* ---- move ---- */

bool umemStore_move(umemStore *store, uint64_t from, uint64_t to, size_t size) {
  char small[least_fill];
  char *large = size > sizeof small ? take_buffer(store, umem_lesser(size, fill_chunk)) : NULL;
  char *buffer = large ? large : small;
  size_t chunk = umem_lesser(size, large ? fill_chunk : sizeof small);
  bool good = true;
  for (size_t done = 0; good && done < size; done += chunk) {
    size_t n = umem_lesser(size - done, chunk);
    good = umemStore_read(store, from + done, buffer, n) && write_all(store, to + done, buffer, n);
  }
  umem_free(&store->host, (uintptr_t)large);
  return good;
}

/* ---- durability ---- */

/* The name of a new file is durable when its directory is; where that cannot be opened any more, the
 * whole file system's state is written. */
static bool sync_name(umemStore *store) {
  int fd = umemStore_open_directory(store, O_RDONLY);
  int result = fd >= 0 ? UMEM_AGAIN(fsync(fd)) : UMEM_AGAIN(syncfs(store->fd));
  int error = errno;
  if (fd >= 0) close(fd); /* read-only: nothing to lose */
  return result == 0 || umemStore_fail(store, umemIOError, error, "cannot flush the name of");
}

bool umemStore_flush(umemStore *store) {
  if (!store->writable) return true;
  if (!umemStore_settle(store)) return false;
  if (UMEM_AGAIN(fdatasync(store->fd)) != 0)
    return umemStore_fail(store, umemIOError, errno, "cannot flush");
  if (!__atomic_load_n(&store->unsynced_name, __ATOMIC_ACQUIRE)) return true;
  if (!sync_name(store)) return false;
  __atomic_store_n(&store->unsynced_name, false, __ATOMIC_RELEASE);
  return true;
}
