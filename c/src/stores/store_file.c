/* store_file.c - the file below a store: reports what fails, measures it, and finds the block of a
 * byte; and what its file system and the page cache can do. */
#include "stores/store_file.h"
#include "base/files.h"
#include "core/status.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- messages ---- */

bool umemStore_fail(umemStore const *store, umemStatusType type, int error, char const *what) {
  return UMEM_FAIL(store->ctx, type, "%s %s: %s", what, store->label, UMEM_WORDS(error));
}

bool umemStore_fail_open(umemStore const *store, int error, char const *what) {
  return umemStore_fail(store, error == ENOMEM ? umemMemoryError : umemIOError, error, what);
}

bool umemStore_fail_space(umemStore const *store, int error) {
  return umemStore_fail(store, umem_is_full(error) ? umemMemoryError : umemIOError, error,
                        "cannot reserve space in");
}

/* ---- questions ---- */

bool umemStore_measure(umemStore const *store, uint64_t *length) {
  struct stat st;
  if (fstat(store->fd, &st) != 0) return umemStore_fail_open(store, errno, "cannot measure");
  *length = (uint64_t)st.st_size;
  return true;
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
  if (__atomic_load_n(&store->building, __ATOMIC_ACQUIRE)) return false;
  UMEM_FORGETTING();
  return umemStore_measure_often(store, length) && size <= *length && offset <= *length - size &&
         (access == umemReadable || find_containing(store, offset, size, &block)) &&
         umemStore_is_whole(store, "access", offset, size);
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

/* ==== the page cache ====
 *
 * cachestat (Linux 6.5) answers. Where it is missing or not allowed, preadv2 of a byte with
 * RWF_NOWAIT does; newer kernels begin to read ahead then, so that it comes second. On an overlay
 * it comes first: cachestat counts the pages of the overlay's own file, which never has any. */

enum { cachestat_number = 451, page_size = 4096 };

/* struct cachestat_range and struct cachestat of linux/mman.h, which older systems do not have. */
typedef struct Range {
  uint64_t offset, length;
} Range;

typedef struct Pages {
  uint64_t cached, dirty, written, evicted, lately_evicted;
} Pages;

/* How the system answers; atomic. */
enum { queryByCachestat = 0, queryByRead, queryNone };

/* Of both: 1: cached, 0: not, -1 with errno: no answer. */
static int query_cachestat(umemStore const *store, uint64_t offset) {
  Range range = {offset, page_size};
  Pages pages = {0};
  if (syscall(cachestat_number, store->fd, &range, &pages, 0) != 0) return -1;
  return pages.cached != 0;
}

static int query_read(umemStore const *store, uint64_t offset) {
  char byte;
  struct iovec piece = {&byte, 1};
  ssize_t n = preadv2(store->fd, &piece, 1, (off_t)offset, RWF_NOWAIT);
  return n >= 0 ? 1 : errno == EAGAIN ? 0 : -1;
}

int umemStore_first_query(uint32_t magic) {
  uint32_t const overlay = 0x794c7630; /* OVERLAYFS_SUPER_MAGIC of linux/magic.h */
  return magic == overlay ? queryByRead : queryByCachestat;
}

bool umemStore_is_cached(umemStore *store, uint64_t offset) {
  for (int way; (way = __atomic_load_n(&store->query, __ATOMIC_RELAXED)) != queryNone;) {
    int answer = (way == queryByCachestat ? query_cachestat : query_read)(store, offset);
    if (answer >= 0) return answer;
    if (errno == EINTR) continue;
    __atomic_store_n(&store->query, way + 1, __ATOMIC_RELAXED);
  }
  return true;
}

/* ==== file systems ====
 *
 * Refuses what is no regular file of a file system that stores files.
 *
 * The files of /proc, /sys and their kin are regular by name only: reading and writing them talks
 * to the kernel, and a write by root can change the machine. */

/* The numbers of linux/magic.h and of the kernel's sources, which do not change. */
static struct {
  uint32_t magic;
  char const *name;
} const interfaces[] = {
    {0x9fa0, "proc"},           {0x62656572, "sysfs"},       {0x64626720, "debugfs"},
    {0x74726163, "tracefs"},    {0x27e0eb, "cgroup"},        {0x63677270, "cgroup2"},
    {0x73636673, "securityfs"}, {0xcafe4a11, "bpf"},         {0x62656570, "configfs"},
    {0xde5e81e4, "efivarfs"},   {0x6165676c, "pstore"},      {0xf97cff8c, "selinuxfs"},
    {0x43415d53, "smackfs"},    {0x42494e4d, "binfmt_misc"}, {0x7655821, "resctrl"},
    {0x1cd1, "devpts"},         {0x50495045, "pipefs"},      {0x534f434b, "sockfs"},
    {0x19800202, "mqueue"},     {0x65735543, "fusectl"},     {0x67596969, "rpc_pipefs"},
    {0x6e736673, "nsfs"},       {0x5a3c69f0, "apparmorfs"},  {0xabba1974, "xenfs"},
    {0x6e667364, "nfsd"},
};

/* What kind of interface the file system is; NULL for one that stores files. */
static char const *interface_of(struct statfs const *disk) {
  for (size_t i = 0; i < sizeof interfaces / sizeof *interfaces; i++)
    if ((uint32_t)disk->f_type == interfaces[i].magic) return interfaces[i].name;
  return NULL;
}

/* tmpfs and ramfs. Newer kernels open files of a tmpfs with O_DIRECT, and copy as without. */
static bool takes_ram(uint32_t magic) { return magic == 0x01021994 || magic == 0x858458f6; }

static bool stores(umemStore *store, struct statfs const *disk) {
  char const *name = interface_of(disk);
  if (!name) return true;
  return UMEM_FAIL(store->ctx, umemIOError,
                   "%s is on a file system that stores nothing (%s), so it is no regular file",
                   store->label, name);
}

bool umemStore_check_mode(umemStore const *store, mode_t mode) {
  return S_ISREG(mode) ||
         UMEM_FAIL(store->ctx, umemIOError, "%s is %s, not a regular file", store->label,
                   S_ISDIR(mode) ? "a directory" : "a device, a pipe or a socket");
}

bool umemStore_fail_planted(umemStore const *store) {
  return UMEM_FAIL(store->ctx, umemIOError,
                   "cannot write to %s: another user has put it into a folder that everybody may "
                   "write to",
                   store->label);
}

bool umemStore_check_kind(umemStore *store) {
  struct stat st;
  struct statfs disk = {0};
  if (fstat(store->fd, &st) != 0 || UMEM_AGAIN(fstatfs(store->fd, &disk)) != 0)
    return umemStore_fail(store, umemIOError, errno, "cannot examine");
  store->query = umemStore_first_query((uint32_t)disk.f_type);
  store->in_memory = /* hugetlbfs, too, whose pages are set aside */
      takes_ram((uint32_t)disk.f_type) || (uint32_t)disk.f_type == 0x958458f6;
  store->takes_ram = takes_ram((uint32_t)disk.f_type);
  return umemStore_check_mode(store, st.st_mode) && stores(store, &disk);
}

/* The folder in which a file of this path would be created. False where it has no room. */
static bool folder_of(char const *path, char folder[PATH_MAX]) {
  char const *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) + 1 : 1;
  if (length >= PATH_MAX) return false;
  memcpy(folder, slash ? path : ".", length);
  folder[length] = 0;
  return true;
}

/* Errors of a path itself, which opening it reports as well. */
static bool is_of_path(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP ||
         error == ENAMETOOLONG;
}

bool umemStore_check_place(umemStore *store, char const *path) {
  struct statfs disk;
  char folder[PATH_MAX];
  int result = UMEM_AGAIN(statfs(path, &disk));
  if (result != 0 && errno == ENOENT && folder_of(path, folder))
    result = UMEM_AGAIN(statfs(folder, &disk));
  if (result == 0) return stores(store, &disk);
  return is_of_path(errno) || umemStore_fail(store, umemIOError, errno, "cannot examine");
}

/* ==== transfers around it ==== */

/* ---- the descriptor ---- */

/* By way of /proc: the file may have no name any more, or another one. O_NONBLOCK: a lease refuses
 * instead of waiting. */
static int open_again(umemStore const *store, bool writes) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", store->fd);
  int access = writes ? O_WRONLY : O_RDONLY;
  return UMEM_AGAIN(open(path, access | O_DIRECT | O_CLOEXEC | O_NONBLOCK));
}

void umemDirectPath_open(umemDirectPath *path, umemStore *store, bool writes) {
  *path = (umemDirectPath){.store = store, .fd = open_again(store, writes)};
  path->refused = path->fd < 0;
  if (path->refused)
    UMEM_DECIDED(
        umemDecisionFallbacks, NULL,
        "the file system of %s has no direct I/O (%s): transfers go through the page cache",
        store->label, UMEM_WORDS(errno));
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
  UMEM_FORGETTING();
  if (!path->buffer)
    path->buffer =
        (char *)umem_aligned_alloc(&path->store->host, umemDirectHugePage, umemDirectBuffer);
  return path->buffer;
}

/* pread or pwrite. EINVAL says that the device needs other addresses or units. */
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
