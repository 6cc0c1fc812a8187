/* shm_segment.c - creates, opens, locks and removes segments of shared memory. */
#include "share/shm_segment.h"
#include "base/files.h"
#include "base/system.h"
#include "base/number.h"
#include "core/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ==== the lock ====
 *
 * The mark of the holder is written and removed by one instruction. So at any time the word says
 * who has the lock, also if that process is killed. */

_Static_assert(sizeof(umemShmLock) == 64, "the lock has a line of the cache");

/* Milliseconds between two looks at whether the holder lives; a release wakes a waiter earlier. */
enum { first_nap = 1, longest_nap = 50 };

static bool try(umemShmLock *lock, uint64_t old, uint64_t new) {
  return __atomic_compare_exchange_n(&lock->holder, &old, new, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED);
}

static uint64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The half of the mark that the kernel compares: the one with the number of the process. */
static uint32_t *half_of(umemShmLock *lock) {
  return (uint32_t *)(void *)&lock->holder + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Waits for a release. Whether so many milliseconds have passed without one. */
static bool nap(umemShmLock *lock, uint64_t holder, uint64_t time) {
  struct timespec most = {(time_t)(time / 1000), (long)(time % 1000) * 1000000};
  __atomic_store_n(&lock->waiters, 1, __ATOMIC_SEQ_CST);
  return syscall(SYS_futex, half_of(lock), FUTEX_WAIT, (uint32_t)holder, &most, NULL, 0) != 0 &&
         errno == ETIMEDOUT;
}

/* A release wakes one waiter, and forgets that there are others. So a waiter that gets the lock
 * says again that there may be some. */
static umemShmLocked wait_for(umemShmLock *lock, uint64_t self, int fd, uint64_t limit) {
  uint64_t const begin = milliseconds();
  bool in_vain = false;
  for (uint64_t time = first_nap;; time = umem_lesser(2 * time, longest_nap)) {
    uint64_t holder = __atomic_load_n(&lock->holder, __ATOMIC_RELAXED);
    bool inherits = holder && in_vain && umemShmOwner_is_mark_of_dead(holder, fd);
    if ((!holder || inherits) && try(lock, holder, self)) {
      __atomic_store_n(&lock->waiters, 1, __ATOMIC_RELAXED);
      return inherits ? umemShmLockInherited : umemShmLockTaken;
    }
    uint64_t waited = milliseconds() - begin;
    if (waited >= limit) return umemShmLockRefused;
    in_vain = holder && nap(lock, holder, umem_lesser(time, limit - waited));
  }
}

umemShmLocked umemShmLock_acquire(umemShmLock *lock, uint64_t self, int fd, uint64_t limit) {
  return try(lock, 0, self) ? umemShmLockTaken : wait_for(lock, self, fd, limit);
}

void umemShmLock_release(umemShmLock *lock, uint64_t self) {
  if (!try(lock, self, 0) || !__atomic_load_n(&lock->waiters, __ATOMIC_SEQ_CST)) return;
  __atomic_store_n(&lock->waiters, 0, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, half_of(lock), FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ==== segments ====
 *
 * Who opens a name holds a lock on the file (flock) until the segment is complete. The kernel ends
 * that lock with the process: so a process that is killed while it makes a segment leaves one that
 * the next one makes again. */

enum {
  least_blocks = 1024,
  bytes_per_block = 4096,
  lock_milliseconds = 2000,       /* for which a call waits for one of another process */
  records_per_millisecond = 4096, /* that a repair surely does; large tables have more time */
  open_milliseconds = 30000,
  most_tries = 100
};

static uint64_t const reserve_step = 1 << 30; /* bytes of one call */

/* ---- messages ---- */

static char const *label_of(umemShmSegment const *segment) {
  return *segment->name ? segment->name : "without a name";
}

/* An error of the system; always false. */
static bool fail(umemVirtual *ctx, umemShmSegment const *segment, char const *what, int error) {
  bool memory = error == ENOMEM || error == ENOSPC || error == EAGAIN;
  return UMEM_FAIL(ctx, memory ? umemMemoryError : umemIOError, "cannot %s shared memory %s: %s",
                   what, label_of(segment), UMEM_WORDS(error));
}

/* For an error of the system, after which fd is not needed. */
static bool fail_closing(umemVirtual *ctx, umemShmSegment const *segment, int fd,
                         char const *what) {
  umem_close_failed(fd);
  return fail(ctx, segment, what, errno);
}

bool umemShmSegment_name(umemVirtual *ctx, char const *name, char text[256]) {
  char const *bare = name + (*name == '/');
  size_t length = strlen(bare);
  if (!length || length > 250 || strchr(bare, '/') || !strcmp(bare, ".") || !strcmp(bare, ".."))
    return UMEM_FAIL(ctx, umemValueError,
                     "\"%.60s\" is no name for shared memory: 1 to 250 bytes, without \"/\" inside",
                     name);
  snprintf(text, 256, "/%s", bare);
  return true;
}

/* ---- the layout ---- */

/* What a segment for these options has in its header, without the lock. */
static umemShmHeader plan(umemShmOptions const *options) {
  umemShmHeader header = {.version = umemSegmentVersion,
                          .pages = options->pages,
                          .lock_size = sizeof(umemShmLock),
                          .extent_size = sizeof(umemShmExtent)};
  uint64_t usual = umem_greater(options->capacity / bytes_per_block, least_blocks);
  memcpy(header.magic, umemSegment_magic, sizeof umemSegment_magic);
  header.blocks =
      (uint32_t)umem_lesser(options->blocks ? options->blocks : usual, umemSegmentMostBlocks);
  header.capacity = umemSegment_round_up(options->capacity, umemSegment_page(options->pages));
  header.total = umemSegment_data(header.blocks, options->pages) + header.capacity;
  return header;
}

static void use(umemShmSegment *segment, umemShmHeader const *header) {
  segment->data = umemSegment_data(header->blocks, header->pages);
  segment->total = header->total;
  segment->pages = header->pages;
  memcpy(segment->id, header->id, sizeof segment->id);
  segment->table = (umemShmTable){.count = umemShmTable_count(header->blocks),
                                  .blocks = header->blocks,
                                  .head_mask = umemShmTable_heads(header->blocks) - 1,
                                  .capacity = header->capacity,
                                  .origin = segment->data};
}

/* ---- the lock ---- */

/* If this process dies while it repairs, the next one repairs again. */
bool umemShmSegment_lock(umemVirtual *ctx, umemShmSegment *segment, uint64_t self) {
  uint64_t limit = lock_milliseconds + segment->table.count / records_per_millisecond;
  umemShmLocked how = umemShmLock_acquire(&segment->header->lock, self, segment->mapped->fd, limit);
  if (how == umemShmLockInherited) umemShmTable_rebuild(&segment->table);
  return how != umemShmLockRefused ||
         UMEM_FAIL(
             ctx, umemRuntimeError,
             "cannot lock shared memory %s: for %" PRIu64
             " ms it was held by a process that is stopped, or somebody has destroyed the lock",
             label_of(segment), limit);
}

/* ---- mapping ---- */

/* Takes fd over. */
static bool map(umemVirtual *ctx, umemShmSegment *segment, int fd) {
  umemMapped *mapped = umemMapped_open(fd, segment->total, umemSegment_page(segment->pages), true,
                                       umemMappedByContext);
  if (!mapped) return fail(ctx, segment, "map", errno);
  segment->mapped = mapped;
  segment->header = (umemShmHeader *)mapped->base;
  segment->table.root = &segment->header->root;
  segment->table.extents = (umemShmExtent *)(mapped->base + umemSegmentHeader);
  segment->table.heads = (uint32_t *)(segment->table.extents + segment->table.count);
  if (segment->pages == umemShmPagesAdvise) /* advice: the kernel may have none */
    madvise(mapped->base + segment->data, segment->table.capacity, MADV_HUGEPAGE);
  return true;
}

void umemShmSegment_close(umemShmSegment *segment) {
  if (segment->mapped) umemMapped_close(segment->mapped, umemMappedByContext);
  segment->mapped = NULL;
}

/* ---- making ---- */

/* A signal interrupts a call, which then has done nothing, on a tmpfs: so no call is long. */
static int reserve(int fd, uint64_t total) {
  for (uint64_t done = 0; done < total; done += reserve_step) {
    uint64_t step = umem_lesser(reserve_step, total - done);
    if (UMEM_AGAIN(fallocate(fd, 0, (off_t)done, (off_t)step)) != 0) return errno;
  }
  return 0;
}

/* umem writes the tables at once, and the program its blocks when it likes. The kernel lets a file
 * in memory grow until it has to end processes: so the size is checked before. What is set aside
 * for huge pages is counted by itself. */
static bool fill_room(umemVirtual *ctx, umemShmSegment *segment, int fd,
                      umemShmOptions const *options) {
  char what[96];
  uint64_t tables = umemSegment_tables(segment->table.blocks);
  bool huge = segment->pages >= umemShmPages2M;
  uint64_t needed = !options->sparse ? segment->total : huge ? segment->data : tables;
  snprintf(what, sizeof what, "reserve %" PRIu64 " bytes of", needed);
  if (UMEM_AGAIN(ftruncate(fd, (off_t)segment->total)) != 0) return fail(ctx, segment, what, errno);
  if (!huge && needed > umemMemory_left()) return fail(ctx, segment, what, ENOMEM);
  int error = reserve(fd, needed);
  return !error || fail(ctx, segment, what, error);
}

/* Makes a segment of fd, an empty file, or one that another process has not completed. Takes fd
 * over. The store that makes it ready is the last one. */
static bool make(umemVirtual *ctx, umemShmSegment *segment, int fd, umemShmOptions const *options) {
  umemShmHeader header = plan(options);
  if (UMEM_AGAIN(getrandom(header.id, sizeof header.id, 0)) != (ssize_t)sizeof header.id)
    return fail_closing(ctx, segment, fd, "name");
  use(segment, &header);
  if (!fill_room(ctx, segment, fd, options)) {
    close(fd);
    return false;
  }
  if (!map(ctx, segment, fd)) return false;
  memcpy(segment->header, &header, offsetof(umemShmHeader, lock));
  memset(&segment->header->lock, 0, umemSegmentHeader - offsetof(umemShmHeader, lock));
  umemShmTable_rebuild(&segment->table);
  __atomic_store_n(&segment->header->ready, 1, __ATOMIC_RELEASE);
  segment->created = true;
  return true;
}

static mode_t mode_of(umemShmOptions const *options) {
  return options->permissions ? options->permissions & 0777 : 0600;
}

/* Who lets others write a segment trusts them. */
static umemTrust trust_of(umemShmOptions const *options) {
  if (options->trust) return options->trust;
  if (mode_of(options) & S_IWOTH) return umemTrustAll;
  return mode_of(options) & S_IWGRP ? umemTrustGroup : umemTrustUser;
}

/* Called before anything is made. */
static bool check_wish(umemVirtual *ctx, umemShmOptions const *options) {
  uint64_t limit;
  if (!options->capacity || options->capacity > UMEM_SEGMENT_MOST)
    return UMEM_FAIL(ctx, umemValueError, "new shared memory cannot have %zu bytes",
                     options->capacity);
  if (options->blocks > umemSegmentMostBlocks)
    return UMEM_FAIL(ctx, umemValueError, "the table cannot have room for %zu blocks",
                     options->blocks);
  uint64_t total = plan(options).total;
  return umem_may_write_to(total, &limit) ||
         UMEM_FAIL(ctx, umemMemoryError,
                   "new shared memory of %" PRIu64 " bytes passes the %" PRIu64
                   " bytes that this process may write to a file (RLIMIT_FSIZE)",
                   total, limit);
}

/* The logarithm of the size of a page stands in the flags: memfd_create(2). */
static int memory_file(umemShmPages pages) {
  unsigned huge = 0;
  if (pages == umemShmPages2M) huge = MFD_HUGETLB | 21u << 26;
  if (pages == umemShmPages1G) huge = MFD_HUGETLB | 30u << 26;
  return memfd_create("umem", MFD_CLOEXEC | MFD_ALLOW_SEALING | huge);
}

bool umemShmSegment_create(umemVirtual *ctx, umemShmSegment *segment,
                           umemShmOptions const *options) {
  if (!check_wish(ctx, options)) return false;
  int fd = memory_file(options->pages);
  if (fd < 0 && errno != EMFILE && errno != ENFILE && options->pages >= umemShmPages2M)
    return UMEM_FAIL(ctx, umemNotSupportedError, "the system has no pages of this size: %s",
                     UMEM_WORDS(errno));
  if (fd < 0) return fail(ctx, segment, "create", errno);
  if (fchmod(fd, mode_of(options)) != 0) /* a process that receives it looks at them */
    return fail_closing(ctx, segment, fd, "set the permissions of");
  if (!make(ctx, segment, fd, options)) return false;
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) return true;
  int error = errno;
  umemShmSegment_close(segment);
  return fail(ctx, segment, "seal the size of", error);
}

/* ---- opening ---- */

static bool lock_file(int fd) {
  struct timespec const interval = {0, 1000000};
  for (int waited = 0; UMEM_AGAIN(flock(fd, LOCK_EX | LOCK_NB)) != 0; waited++) {
    if (errno != EWOULDBLOCK) return false;
    if (waited == open_milliseconds) {
      errno = ETIMEDOUT;
      return false;
    }
    nanosleep(&interval, NULL);
  }
  return true;
}

/* Opens what exists. Takes fd over. */
static bool take_over(umemVirtual *ctx, umemShmSegment *segment, int fd, uint64_t length,
                      size_t capacity) {
  umemShmHeader header;
  char const *wrong = umemSegment_check(fd, &header, length);
  umemStatusType type = umemIOError;
  if (!wrong && capacity &&
      header.capacity != umemSegment_round_up(capacity, umemSegment_page(header.pages))) {
    wrong = "it exists with another size";
    type = umemValueError;
  }
  if (wrong) {
    close(fd);
    return UMEM_FAIL(ctx, type, "cannot open shared memory %s (%" PRIu64 " bytes): %s",
                     label_of(segment), length, wrong);
  }
  use(segment, &header);
  return map(ctx, segment, fd);
}

/* Closes fd; always false. */
static bool distrust(umemVirtual *ctx, umemShmSegment const *segment, int fd, char const *why) {
  close(fd);
  return UMEM_FAIL(ctx, umemIOError, "cannot open shared memory %s: %s", label_of(segment), why);
}

bool umemShmSegment_take_over(umemVirtual *ctx, umemShmSegment *segment, int fd,
                              umemShmOptions const *options) {
  struct stat st;
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fstat(fd, &st) != 0) return fail_closing(ctx, segment, fd, "open");
  if (!S_ISREG(st.st_mode) || (flags & O_ACCMODE) != O_RDWR) {
    close(fd);
    return UMEM_FAIL(ctx, umemIOError,
                     "the descriptor is no file that is open for reading and writing");
  }
  char const *why = umemSegment_distrust(&st, trust_of(options));
  if (why) return distrust(ctx, segment, fd, why);
  return take_over(ctx, segment, fd, (uint64_t)st.st_size, 0);
}

/* Whether the first bytes say that a segment was begun and not completed. */
static bool is_begun(int fd) {
  umemShmHeader header = {.ready = 1};
  if (UMEM_AGAIN(pread(fd, &header, sizeof header, 0)) < 0) return false;
  return !memcmp(header.magic, umemSegment_magic, sizeof umemSegment_magic) && header.ready == 0;
}

/* Before the file gets its length it says whose it is. What another process has begun is cut off,
 * so that all is zero. */
static bool begin(int fd, umemShmOptions const *options) {
  umemShmHeader header = plan(options);
  return fchmod(fd, mode_of(options)) == 0 &&
         UMEM_AGAIN(pwrite(fd, &header, offsetof(umemShmHeader, lock), 0)) ==
             (ssize_t)offsetof(umemShmHeader, lock) &&
         UMEM_AGAIN(ftruncate(fd, umemSegmentHeader)) == 0;
}

/* Begins and makes a segment of fd, which it takes over. */
static bool make_locked(umemVirtual *ctx, umemShmSegment *segment, int fd,
                        umemShmOptions const *options) {
  return begin(fd, options) ? make(ctx, segment, fd, options)
                            : fail_closing(ctx, segment, fd, "begin");
}

/* Makes a file empty again that another process has made. Best effort, after a failure. */
static void restore(int fd, mode_t mode) {
  bool shorter = UMEM_AGAIN(ftruncate(fd, 0)) == 0;
  bool as_before = fchmod(fd, mode & 07777) == 0;
  (void)shorter, (void)as_before;
}

/* is_new: this call has made the name. Only then does a failure remove it: an empty file may be
 * somebody else's. It is empty after the failure, too. */
static bool make_named(umemVirtual *ctx, umemShmSegment *segment, int fd, bool is_new,
                       umemShmOptions const *options, mode_t mode) {
  int again = -1;
  bool good = check_wish(ctx, options);
  if (good && !is_new) {
    again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    good = again >= 0 || fail(ctx, segment, "open", errno);
  }
  if (good)
    good = make_locked(ctx, segment, fd, options);
  else
    close(fd);
  if (!good && is_new) shm_unlink(segment->name);
  if (!good && again >= 0) restore(again, mode);
  if (again >= 0) close(again);
  segment->created = good && is_new;
  return good;
}

/* The file is locked. No process makes a segment of the file of another user, who would own it. */
static bool open_locked(umemVirtual *ctx, umemShmSegment *segment, int fd, bool is_new,
                        struct stat const *st, umemShmOptions const *options) {
  bool fresh = st->st_size == 0 || is_begun(fd);
  if (fresh && options->how != umemShmOpen && st->st_uid != geteuid())
    return distrust(ctx, segment, fd, "another user has made this name, and no segment of it");
  if (fresh && options->how != umemShmOpen)
    return make_named(ctx, segment, fd, is_new, options, st->st_mode);
  return take_over(ctx, segment, fd, (uint64_t)st->st_size, options->capacity);
}

/* Sets *is_new to whether this call has made the name. */
static int open_name(char const *name, umemShmHow how, bool *is_new) {
  int fd = -1;
  *is_new = false;
  if (how != umemShmOpen) fd = UMEM_AGAIN(shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600));
  if (fd >= 0) *is_new = true;
  bool exists = how == umemShmOpen || (fd < 0 && errno == EEXIST && how == umemShmOpenOrCreate);
  return exists ? UMEM_AGAIN(shm_open(name, O_RDWR, 0600)) : fd;
}

/* A name can be removed between opening and locking: then it is opened again. */
bool umemShmSegment_open(umemVirtual *ctx, umemShmSegment *segment, char const *name,
                         umemShmOptions const *options) {
  if (!umemShmSegment_name(ctx, name, segment->name)) return false;
  if (options->pages >= umemShmPages2M)
    return UMEM_FAIL(ctx, umemNotSupportedError,
                     "a name has no pages of hugetlbfs: use no name, or pages=advise");
  for (int tries = 0; tries < most_tries; tries++) {
    struct stat st = {0};
    bool is_new;
    int fd = open_name(segment->name, options->how, &is_new);
    if (fd < 0 && errno == ENOENT && options->how == umemShmOpenOrCreate)
      continue; /* removed between */
    if (fd < 0) return fail(ctx, segment, "open", errno);
    char const *why = fstat(fd, &st) == 0 ? umemSegment_distrust(&st, trust_of(options)) : NULL;
    if (why) return distrust(ctx, segment, fd, why); /* who is not trusted may hold the lock */
    if (!lock_file(fd) || fstat(fd, &st) != 0) return fail_closing(ctx, segment, fd, "lock");
    if (st.st_nlink) {
      bool opened = open_locked(ctx, segment, fd, is_new, &st, options);
      if (opened) flock(segment->mapped->fd, LOCK_UN);
      return opened;
    }
    close(fd);
  }
  return fail(ctx, segment, "open", EAGAIN);
}

/* ---- what is public of it ---- */

void umemShmSegment_describe(umemShmBlock *blocks, size_t count, uintptr_t first) {
  umemShmOwner last = {0};
  bool dead = false;
  for (size_t i = 0; i < count; i++) {
    umemShmOwner owner = {blocks[i].start, blocks[i].pid};
    if (!i || owner.process != last.process || owner.space != last.space)
      dead = umemShmOwner_is_dead(owner);
    last = owner;
    blocks[i].address += first;
    blocks[i].start = umemShmOwner_start(owner);
    blocks[i].pid = umemShmOwner_pid(owner);
    blocks[i].dead = dead;
  }
}

umemStatusType umemShm_remove(char const *name) {
  UMEM_ENTER();
  umem_defer_cancel();
  char text[256];
  if (!name) return umemVirtual_fail(NULL, umemValueError, "the name is NULL");
  if (!umemShmSegment_name(NULL, name, text)) return umemValueError;
  if (shm_unlink(text) == 0) return umemOK;
  return umemVirtual_fail(NULL, umemIOError, "cannot remove the shared memory %s: %s", text,
                          UMEM_WORDS(errno));
}
