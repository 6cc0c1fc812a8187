/* store_file.c - reports what fails, measures and resizes the file, and finds the block of a
 * byte. */
#include "stores/store_file.h"
#include "base/files.h"
#include "base/system.h"
#include "core/status.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- messages ---- */

bool umemStore_fail(umemStore const *store, umemStatusType type, int error, char const *what) {
  char words[128];
  return UMEM_FAIL(store->ctx, type, "%s %s: %s", what, store->label,
                   umem_system_words(error, words, sizeof words));
}

bool umemStore_fail_open(umemStore const *store, int error, char const *what) {
  return umemStore_fail(store, error == ENOMEM ? umemMemoryError : umemIOError, error, what);
}

bool umemStore_fail_space(umemStore const *store, int error) {
  return umemStore_fail(store, umem_is_full(error) ? umemMemoryError : umemIOError, error,
                        "cannot reserve space in");
}

/* ---- questions ---- */

uint32_t umemStore_capabilities(umemStore const *store) {
  bool keeps = store->writable && !store->scratch && store->reuse != umemReuseYes;
  return umemConcurrent | umemShared | (store->readable ? umemReadable : 0u) |
         (store->writable ? umemWritable : 0u) |
         (store->base && store->writable ? umemCpuWritable : 0u) | (keeps ? umemKeeps : 0u) |
         (keeps && store->reuse == umemReuseNo ? umemKeepsAll : 0u);
}

bool umemStore_identify(umemStore const *store, uint64_t space[2]) {
  struct stat st;
  if (fstat(store->fd, &st) != 0) return umemStore_fail_open(store, errno, "cannot examine");
  space[0] = st.st_dev;
  space[1] = st.st_ino;
  return true;
}

bool umemStore_measure(umemStore const *store, uint64_t *length) {
  struct stat st;
  if (fstat(store->fd, &st) != 0) return umemStore_fail_open(store, errno, "cannot measure");
  *length = (uint64_t)st.st_size;
  return true;
}

/* A file that is only read holds what it holds; others may grow as far as the disk goes. */
void umemStore_info(umemStore *store, umemInfo *info) {
  struct statvfs disk;
  if (UMEM_AGAIN(fstatvfs(store->fd, &disk)) != 0) {
    umemStore_fail(store, umemIOError, errno, "cannot examine the disk of");
    return;
  }
  info->page_size = disk.f_frsize;
  if (disk.f_blocks) { /* none: memory without a limit of its own, as of a memfd */
    info->capacity = (uint64_t)disk.f_blocks * disk.f_frsize;
    info->available = (uint64_t)disk.f_bavail * disk.f_frsize;
  }
  if (store->takes_ram) info->available = umem_lesser(info->available, umemMemory_left());
  if (!store->writable) {
    umemLock_acquire(&store->lock);
    uint64_t live = umemRange_totals(store->range).live_bytes;
    info->capacity = store->length;
    info->available = live < store->length ? store->length - live : 0;
    umemLock_release(&store->lock);
  }
  if (store->path) snprintf(info->name, sizeof info->name, "%s", store->path);
}

int umemStore_open_directory(umemStore const *store, int access) {
  if (!store->directory) return -1;
  return UMEM_AGAIN(open(store->directory, access | O_DIRECTORY | O_CLOEXEC));
}

/* ---- the length ---- */

int umemStore_resize(umemStore *store, uint64_t length) {
  return UMEM_AGAIN(ftruncate(store->fd, (off_t)length)) == 0 ? 0 : errno;
}

/* ---- whether another process has the file open ---- */

/* Linux gives a write lease only on a file that no other open file description has open, and lets
 * others who open the file wait until it is released. umem holds it for a few calls. The signal
 * that reports a process that waits is SIGURG, which is ignored by default; SIGIO, which is usual,
 * would kill. */
bool umemStore_isolate(umemStore *store) {
  if (store->scratch) return true;
  if (store->taken_over || fcntl(store->fd, F_SETSIG, SIGURG) != 0) return false;
  store->leased = fcntl(store->fd, F_SETLEASE, F_WRLCK) == 0;
  return store->leased;
}

void umemStore_end_isolation(umemStore *store) {
  if (store->leased) fcntl(store->fd, F_SETLEASE, F_UNLCK);
  store->leased = false;
}

/* ==== which bytes are whose ==== */

bool umemStore_fail_find(umemStore *store, uint64_t offset) {
  return UMEM_FAIL(store->ctx, umemValueError, "no live block of %s begins at offset %" PRIu64,
                   store->label, offset);
}

bool umemStore_begins(umemStore *store, uint64_t offset) {
  umemAttempt held;
  umemRangeItem block;
  umemStore_begin(store, &held);
  bool begins = umemStore_find(store, offset, &block);
  umemStore_end(store, &held);
  return begins;
}

/* The block that has all of the range. */
static bool find_containing(umemStore *store, uint64_t offset, size_t size, umemRangeItem *block) {
  umemLock_acquire(&store->lock);
  bool found = umemRange_find(store->range, offset, block) && block->live;
  umemLock_release(&store->lock);
  if (found) {
    uint64_t inside = offset - block->start;
    if (inside < block->size && size <= block->size - inside) return true;
  }
  return UMEM_FAIL(store->ctx, umemIndexError,
                   "%zu bytes at offset %" PRIu64 " of %s are not inside one live block", size,
                   offset, store->label);
}

/* lseek takes a third of the time of fstat. Only the context uses the position of a descriptor that
 * it has opened. */
bool umemStore_measure_often(umemStore *store, uint64_t *length) {
  off_t end = store->taken_over ? -1 : lseek(store->fd, 0, SEEK_END);
  *length = (uint64_t)end;
  return end >= 0 || umemStore_measure(store, length);
}

/* ---- bytes that others have cut off ---- */

static void lose(umemStore *store, uint64_t block, uint64_t from) {
  umemTableCell *cell = umemTable_find(&store->lost, block);
  if (cell)
    cell->value = umem_lesser(cell->value, from);
  else if (!umemTable_insert(&store->lost, block, from))
    store->lost_from = umem_lesser(store->lost_from, from);
}

/* Before the commit nothing was in the blocks. */
void umemStore_note_cut(umemStore *store, uint64_t length, uint64_t but) {
  umemRangeItem item;
  uint64_t had = store->length;
  if (length >= had) return;
  store->before_cut = umem_greater(store->before_cut, had);
  store->length = length;
  store->reserved = umem_lesser(store->reserved, length);
  for (uint64_t at = 0; !store->building && umemRange_next(store->range, at, &item);
       at = item.start + item.extent) {
    if (!item.live || item.start == but || item.start >= had || item.start + item.size <= length)
      continue;
    lose(store, item.start, umem_greater(item.start, length));
    __atomic_store_n(&store->cut, true, __ATOMIC_RELEASE);
  }
}

/* The first lost byte of a block with lost bytes in the range; UMEM_STORE_NONE: there is no such
 * block. */
static uint64_t find_lost(umemStore *store, uint64_t offset, uint64_t end) {
  umemRangeItem item;
  bool found =
      umemRange_find(store->range, offset, &item) || umemRange_next(store->range, offset, &item);
  for (; found && item.start < end;
       found = umemRange_next(store->range, item.start + item.extent, &item)) {
    umemTableCell *cell = item.live ? umemTable_find(&store->lost, item.start) : NULL;
    if (cell && end > cell->value && offset < item.start + item.size) return cell->value;
  }
  return end > store->lost_from ? store->lost_from : UMEM_STORE_NONE;
}

bool umemStore_is_whole_slowly(umemStore *store, char const *what, uint64_t offset, size_t size) {
  umemLock_acquire(&store->lock);
  uint64_t lost = find_lost(store, offset, offset + size);
  umemLock_release(&store->lock);
  return lost == UMEM_STORE_NONE ||
         UMEM_FAIL(store->ctx, umemIOError,
                   "%s was truncated by another process: %s of %zu bytes at %" PRIu64
                   ", but the block has lost its bytes from %" PRIu64 " on",
                   store->label, what, size, offset, lost);
}

void umemStore_forget_lost(umemStore *store, uint64_t offset) {
  umemTableCell *cell = umemTable_find(&store->lost, offset);
  if (cell) umemTable_remove(&store->lost, cell);
}

/* No other process knows a scratch file. */
bool umemStore_may_write(umemStore *store, uint64_t offset, size_t size) {
  umemRangeItem block;
  uint64_t length;
  if (!find_containing(store, offset, size, &block)) return false;
  if (store->scratch || __atomic_load_n(&store->building, __ATOMIC_ACQUIRE)) return true;
  if (!umemStore_measure_often(store, &length)) return false;
  if (length < block.start + block.size) {
    umemLock_acquire(&store->lock);
    umemStore_note_cut(store, length, UMEM_STORE_NONE);
    umemLock_release(&store->lock);
  }
  return umemStore_is_whole(store, "write", offset, size);
}

/* ---- other questions ---- */

bool umemStore_may_touch(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                         uint64_t *length) {
  umemRangeItem block;
  umemAttempt ignored;
  if (__atomic_load_n(&store->building, __ATOMIC_ACQUIRE)) return false;
  umemAttempt_begin(&ignored);
  bool good = umemStore_measure_often(store, length) && size <= *length &&
              offset <= *length - size &&
              (access == umemReadable || find_containing(store, offset, size, &block)) &&
              umemStore_is_whole(store, "access", offset, size);
  umemAttempt_end(&ignored);
  return good;
}

umemSearch umemStore_search(umemStore *store, uint64_t offset, umemFound *found) {
  umemRangeItem block;
  if (!umemLock_try(&store->lock)) return umemSearchBusy;
  bool has = umemRange_find(store->range, offset, &block) && block.live;
  umemLock_release(&store->lock);
  if (!has || offset - block.start >= block.size) return umemSearchNone;
  found->adr = (uintptr_t)block.start;
  found->nbytes = (size_t)block.size;
  return umemSearchFound;
}

void umemStore_span(umemStore const *store, uint64_t *from, uint64_t *to) {
  umemRangeItem item;
  *from = *to = 0;
  for (uint64_t at = 0; umemRange_next(store->range, at, &item); at = item.start + item.extent) {
    if (!item.live) continue;
    if (!*to) *from = item.start;
    *to = item.start + item.size;
  }
}
