/* store.c - see store.h. */
#include "stores/store.h"
#include "base/again.h"
#include "base/disk.h"
#include "base/memory_left.h"
#include "core/status.h"

#include <fcntl.h>
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
         (store->writable ? umemWritable : 0u) | (keeps ? umemKeeps : 0u) |
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

/* ---- whether anybody else has the file open ---- */

/* Linux gives a write lease only on a file that no other open file description has open, and lets others
 * who open the file wait until it is released. umem holds it for a few calls. The signal that reports
 * somebody who waits is SIGURG, which is ignored by default; SIGIO, which is usual, would kill. */
bool umemStore_isolate(umemStore *store) {
  if (store->scratch) return true;
  if (store->taken_over || fcntl(store->fd, F_SETSIG, SIGURG) != 0) return false;
  store->leased = fcntl(store->fd, F_SETLEASE, F_WRLCK) == 0;
  return store->leased;
}

void umemStore_share(umemStore *store) {
  if (store->leased) fcntl(store->fd, F_SETLEASE, F_UNLCK);
  store->leased = false;
}
