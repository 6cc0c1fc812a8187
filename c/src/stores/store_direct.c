/* store_direct.c - see store_direct.h. */
#include "stores/store_direct.h"
#include "base/again.h"
#include "base/number.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the descriptor ---- */

/* By way of /proc: the file may have no name any more, or another one. O_NONBLOCK: a lease refuses instead of
 * waiting. */
static int open_again(umemStore const *store, bool writes) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", store->fd);
  int access = writes ? O_WRONLY : O_RDONLY;
  return UMEM_AGAIN(open(path, access | O_DIRECT | O_CLOEXEC | O_NONBLOCK));
}

void umemDirectPath_open(umemDirectPath *path, umemStore *store, bool writes) {
  *path = (umemDirectPath){.store = store, .fd = open_again(store, writes)};
  path->refused = path->fd < 0;
}

void umemDirectPath_close(umemDirectPath *path) {
  if (path->fd >= 0) close(path->fd); /* nothing was written that the close could lose */
  umem_aligned_free(&path->store->host, (uintptr_t)path->buffer);
  path->fd = -1;
  path->buffer = NULL;
}

bool umemStore_check_direct(umemStore *store) {
  int fd = open_again(store, !store->readable);
  if (fd >= 0) {
    close(fd);
    return true;
  }
  return umemStore_fail(store, umemNotSupportedError, errno, "cannot use direct I/O on");
}

umemWay umemStore_direct_way(umemStore const *store) {
  return store->in_memory ? umemWayPageCache : umemWayDirect;
}

/* ---- transfers ---- */

static bool take_buffer(umemDirectPath *path) {
  umemAttempt ignored;
  if (path->buffer) return true;
  umemAttempt_begin(&ignored);
  path->buffer =
      (char *)umem_aligned_alloc(&path->store->host, umemDirectHugePage, umemDirectBuffer);
  umemAttempt_end(&ignored);
  return path->buffer;
}

/* pread or pwrite. EINVAL says that the device asks for other addresses or units. */
static ssize_t transfer(umemDirectPath const *path, uint64_t offset, char *bytes, size_t size,
                        bool writes) {
  return UMEM_AGAIN(writes ? pwrite(path->fd, bytes, size, (off_t)offset)
                           : pread(path->fd, bytes, size, (off_t)offset));
}

static ssize_t refuse(umemDirectPath *path) {
  path->refused = true;
  return -1;
}

/* Straight between the device and the caller's memory. -1 also where the buffer must help. */
static ssize_t move_straight(umemDirectPath *path, uint64_t offset, char *bytes, size_t size,
                             bool writes) {
  ssize_t n = transfer(path, offset, bytes, size, writes);
  path->buffered = n < 0 && errno == EINVAL;
  return n;
}

static ssize_t move_buffered(umemDirectPath *path, uint64_t offset, char *bytes, size_t size,
                             bool writes) {
  if (!take_buffer(path)) return refuse(path);
  size = umem_lesser(size, umemDirectBuffer);
  if (writes) memcpy(path->buffer, bytes, size);
  ssize_t n = transfer(path, offset, path->buffer, size, writes);
  if (n < 0 && errno == EINVAL) return refuse(path);
  if (n > 0 && !writes) memcpy(bytes, path->buffer, (size_t)n);
  return n;
}

static ssize_t move(umemDirectPath *path, uint64_t offset, char *bytes, size_t size, bool writes) {
  if (path->refused) return -1;
  if (!path->buffered && (uintptr_t)bytes % umemDirectAddress == 0) {
    ssize_t n = move_straight(path, offset, bytes, size, writes);
    if (!path->buffered) return n;
  }
  return move_buffered(path, offset, bytes, size, writes);
}

ssize_t umemDirectPath_read(umemDirectPath *path, uint64_t offset, char *bytes, size_t size) {
  return move(path, offset, bytes, size, false);
}

ssize_t umemDirectPath_write(umemDirectPath *path, uint64_t offset, char const *bytes,
                             size_t size) {
  return move(path, offset, (char *)(uintptr_t)bytes, size, true);
}
