/* umem_log_file.c - see umem_log_file.h. */
#include "umem_allowed.h"
#include "umem_log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { least_page = 4096 };

/* All files that this process writes; under a lock of their own, which is held while one is opened
 * and closed, so that two threads which open one file get one umemLogFile. The disk is waited for
 * under it, which under the global lock would stop whoever asks for a message. Older than the locks
 * of all contexts, as what is there from the beginning. */
static umemLogFile *newest;
static umemLock opening;

__attribute__((constructor(102))) static void begin_lock(void) { umemLock_init(&opening); }

static uint64_t clock_ns(clockid_t clock) {
  struct timespec t = {0, 0};
  clock_gettime(clock, &t); /* neither clock can fail */
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t umemLog_now(void) { return clock_ns(CLOCK_MONOTONIC); }

/* ---- records ---- */

/* The number of the calling thread. A child of fork, where it would be wrong, writes nothing
 * through the files of its parent; its own ask again. */
static uint32_t thread_number(umemLogFile const *file) {
  static _Thread_local struct {
    unsigned forks;
    uint32_t number;
  } self;
  if (__builtin_expect(!self.number || self.forks != file->forks, 0)) {
    self.number = (uint32_t)syscall(SYS_gettid);
    self.forks = file->forks;
  }
  return self.number;
}

/* All but the first word, and then that: each store is seen after those before it, so that whoever
 * reads the number before and after the rest has read one record. */
static void fill(umemLogPlace *place, umemLogRecord const *record) {
  for (size_t i = 1; i < sizeof place->words / sizeof *place->words; i++) {
    uint64_t word;
    memcpy(&word, (char const *)record + i * sizeof word, sizeof word);
    __atomic_store_n(&place->words[i], word, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&place->words[0], record->number, __ATOMIC_RELEASE);
}

static bool take(umemLogPlace *place, uint64_t seen) {
  return __atomic_compare_exchange_n(&place->words[0], &seen, UMEM_LOG_BUSY, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* A place that holds a later record, or is being written by a thread that has slept for a whole
 * round of the ring, is left alone: this record is older than all that the ring holds. */
void umemLogFile_put(umemLogFile *file, umemLogRecord *record) {
  record->time = umemLog_now();
  uint64_t before = __atomic_fetch_add(&file->header->next, 1, __ATOMIC_RELAXED);
  umemLogPlace *place = &file->ring[before & file->mask];
  record->number = before + 1;
  uint64_t seen = __atomic_load_n(&place->words[0], __ATOMIC_RELAXED);
  record->thread = thread_number(file);
  if (seen <= before && take(place, seen)) fill(place, record);
}

void umemLogFile_amend(umemLogFile *file, umemLogRecord *record) {
  umemLogPlace *place = &file->ring[(record->number - 1) & file->mask];
  if (take(place, record->number)) fill(place, record);
}

/* ---- contexts ---- */

uint16_t umemLogFile_enter(umemLogFile *file, umemVirtual *ctx, umemLogContext const *context) {
  uint32_t *count = &file->header->contexts;
  uint32_t before = __atomic_load_n(count, __ATOMIC_RELAXED);
  do
    if (before + 1 >= umemLog_context_count) {
      umemVirtual_fail(ctx, umemMemoryError, "the log has had its %d contexts",
                       umemLog_context_count - 1);
      return 0;
    }
  while (!__atomic_compare_exchange_n(count, &before, before + 1, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
  file->contexts[before + 1] = *context;
  return (uint16_t)(before + 1);
}

/* ---- opening and closing ---- */

static bool fail_with_words(umemVirtual *ctx, char const *what, char const *filename, int error) {
  char words[128];
  bool full = error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM;
  umemVirtual_fail(ctx, full ? umemMemoryError : umemIOError, "cannot %s the log \"%s\": %s", what,
                   filename, umem_system_words(error, words, sizeof words));
  return false;
}

/* Passing the limit sends SIGXFSZ, which kills. */
static bool is_allowed(umemVirtual *ctx, char const *filename, uint64_t length) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      length <= limit.rlim_cur)
    return true;
  umemVirtual_fail(ctx, umemMemoryError,
                   "the %" PRIu64 " bytes of the log \"%s\" pass the %" PRIu64
                   " that this process may write to (RLIMIT_FSIZE)",
                   length, filename, (uint64_t)limit.rlim_cur);
  return false;
}

/* Whether the file may be begun anew: empty, or a log. */
static bool is_log(int fd, umemVirtual *ctx, char const *filename) {
  char magic[sizeof UMEM_LOG_MAGIC];
  ssize_t length = pread(fd, magic, sizeof magic, 0);
  if (length < 0) return fail_with_words(ctx, "read", filename, errno);
  if (!length || (length == sizeof magic && !memcmp(magic, UMEM_LOG_MAGIC, sizeof magic)))
    return true;
  umemVirtual_fail(ctx, umemValueError, "\"%s\" is there and is no log: it is not overwritten",
                   filename);
  return false;
}

/* Makes the empty file one that is_log, whatever ends the program before the rest is written. */
static bool mark(int fd, umemVirtual *ctx, char const *filename) {
  ssize_t written = pwrite(fd, UMEM_LOG_MAGIC, sizeof UMEM_LOG_MAGIC, 0);
  return written == sizeof UMEM_LOG_MAGIC ||
         fail_with_words(ctx, "write", filename, written < 0 ? errno : ENOSPC);
}

static bool lock_file(int fd, umemVirtual *ctx, char const *filename) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK) return fail_with_words(ctx, "lock", filename, errno);
  umemVirtual_fail(ctx, umemIOError, "another process is writing the log \"%s\"", filename);
  return false;
}

/* A new file of this descriptor. Its space is reserved: a full disk found while writing to the
 * mapping would kill. */
static bool reserve(umemLogFile *file, umemVirtual *ctx, char const *filename) {
  if (!lock_file(file->fd, ctx, filename)) return false;
  if (!is_log(file->fd, ctx, filename) || !is_allowed(ctx, filename, file->length)) return false;
  if (ftruncate(file->fd, 0) != 0) return fail_with_words(ctx, "empty", filename, errno);
  if (!mark(file->fd, ctx, filename)) return false;
  int error = posix_fallocate(file->fd, 0, (off_t)file->length);
  if (error) {
    /* What was reserved of it is of no use to anyone; that this fails too changes nothing. */
    if (ftruncate(file->fd, 0) != 0) error = errno;
    return fail_with_words(ctx, "reserve the space of", filename, error);
  }
  return true;
}

/* The first write to a page of a file costs a microsecond or more: here, and not in the first
 * records. The first page begins with what mark has written, and is left to the header. */
static void touch_pages(char volatile *base, size_t length) {
  for (size_t at = least_page; at < length; at += least_page) base[at] = 0;
}

/* All but the magic, which is there, and is not to be missing for a moment. */
static void write_header(umemLogFile *file) {
  umemLogHeader const header = {.version = umemLog_version,
                                .byte_order = umemLog_byte_order,
                                .record_size = sizeof(umemLogRecord),
                                .context_size = sizeof(umemLogContext),
                                .capacity = file->mask + 1,
                                .begun = umemLog_now(),
                                .begun_calendar = clock_ns(CLOCK_REALTIME),
                                .process = (uint32_t)getpid()};
  size_t const magic = sizeof header.magic;
  memcpy((char *)file->header + magic, (char const *)&header + magic, sizeof header - magic);
}

static bool map(umemLogFile *file, umemVirtual *ctx, char const *filename) {
  char *base = mmap(NULL, file->length, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
  if (base == MAP_FAILED) return fail_with_words(ctx, "map", filename, errno);
  touch_pages(base, file->length);
  file->header = (umemLogHeader *)base;
  file->contexts = (umemLogContext *)(base + umemLog_contexts_at);
  file->ring = (umemLogPlace *)(base + umemLog_ring_at);
  write_header(file);
  return true;
}

/* The umemLogFile of that file in this process, with a user more; or NULL. */
static umemLogFile *find(struct stat const *about) {
  for (umemLogFile *file = newest; file; file = file->older)
    if (file->device == about->st_dev && file->inode == about->st_ino &&
        umemLogFile_is_ours(file)) {
      file->users++;
      return file;
    }
  return NULL;
}

/* The largest power of two of records that fits. */
static uint64_t capacity_of(uint64_t max_bytes) {
  uint64_t records = (max_bytes - umemLog_ring_at) / sizeof(umemLogRecord), capacity = 1;
  while (capacity <= records / 2) capacity *= 2;
  return capacity;
}

/* A new umemLogFile for fd, which it owns from then on; or NULL. */
static umemLogFile *begin(umemVirtual *ctx, char const *filename, int fd, struct stat const *about,
                          uint64_t max_bytes) {
  umemLogFile *file = calloc(1, sizeof *file);
  if (!file) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a log");
    return NULL;
  }
  uint64_t capacity = capacity_of(max_bytes);
  *file = (umemLogFile){.mask = capacity - 1,
                        .length = (size_t)(umemLog_ring_at + capacity * sizeof(umemLogRecord)),
                        .forks = umem_fork_count(),
                        .fd = fd,
                        .device = about->st_dev,
                        .inode = about->st_ino,
                        .users = 1,
                        .older = newest};
  if (reserve(file, ctx, filename) && map(file, ctx, filename)) return newest = file;
  free(file);
  return NULL;
}

/* Opens the file, and makes an empty one where there is none. *created: it is this call's. -1 and
 * errno otherwise. */
static int open_file(char const *filename, bool *created) {
  int const flags = O_RDWR | O_CLOEXEC | O_NONBLOCK;
  *created = false;
  int fd = umem_open_path(filename, flags, 0);
  if (fd >= 0 || errno != ENOENT) return fd;
  fd = umem_open_path(filename, flags | O_CREAT | O_EXCL, 0666);
  *created = fd >= 0;
  /* a link to what is not there, or another process was faster */
  return fd < 0 && errno == EEXIST ? umem_open_path(filename, flags | O_CREAT, 0666) : fd;
}

/* What fd is of this process, or becomes; NULL with a status otherwise. fd is owned by it only where
 * *is_new. */
static umemLogFile *find_or_begin(umemVirtual *ctx, char const *filename, int fd,
                                  uint64_t max_bytes, bool *is_new) {
  struct stat about;
  *is_new = false;
  if (fd < 0 || fstat(fd, &about) != 0) {
    fail_with_words(ctx, "open", filename, errno);
    return NULL;
  }
  if (!S_ISREG(about.st_mode)) {
    umemVirtual_fail(ctx, umemIOError, "cannot write the log \"%s\": it is no regular file",
                     filename);
    return NULL;
  }
  umemLogFile *file = find(&about);
  if (file) return file;
  file = begin(ctx, filename, fd, &about, max_bytes);
  *is_new = file != NULL;
  return file;
}

static umemLogFile *open_under_lock(umemVirtual *ctx, char const *filename, uint64_t max_bytes) {
  bool created, is_new;
  int fd = open_file(filename, &created);
  umemLogFile *file = find_or_begin(ctx, filename, fd, max_bytes, &is_new);
  if (fd < 0 || is_new) return file;
  /* an empty file is left to nobody, but to another process that has begun its log in it since */
  if (created && flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(filename);
  close(fd);
  return file;
}

umemLogFile *umemLogFile_open(umemVirtual *ctx, char const *filename, uint64_t max_bytes) {
  umemAttempt held; /* a failure is told after the lock: a hook may take others */
  umemAttempt_begin(&held);
  umemLock_acquire(&opening);
  umemLogFile *file = open_under_lock(ctx, filename, max_bytes);
  umemLock_release(&opening);
  umemAttempt_end(&held);
  umemAttempt_record(&held);
  return file;
}

/* In a child of fork the lock and the header are the parent's. */
static void complete(umemLogFile *file) {
  umemLogFile **link = &newest;
  while (*link != file) link = &(*link)->older;
  *link = file->older;
  if (umemLogFile_is_ours(file)) {
    file->header->ended = umemLog_now();
    flock(file->fd, LOCK_UN); /* children may have the descriptor for longer */
  }
  munmap(file->header, file->length);
  close(file->fd);
  free(file);
}

void umemLogFile_close(umemLogFile *file) {
  umemLock_acquire(&opening);
  if (--file->users == 0) complete(file);
  umemLock_release(&opening);
}
