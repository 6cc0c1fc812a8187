/* umem_log_file.c - see umem_log_file.h. */
#include "umem_log_file.h"
#include "umem_log_disk.h"

#include <errno.h>
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

static bool lock_file(int fd, umemVirtual *ctx, char const *filename) {
  int error = umemLogDisk_lock(fd);
  if (!error) return true;
  if (error != EWOULDBLOCK) return fail_with_words(ctx, "lock", filename, error);
  umemVirtual_fail(ctx, umemIOError, "another process is writing the log \"%s\"", filename);
  return false;
}

/* Tells what the file was, if it may be begun anew. */
static bool look(int fd, umemVirtual *ctx, char const *filename, umemLogBefore *before) {
  int error = umemLogDisk_look(fd, before);
  if (error) return fail_with_words(ctx, "read", filename, error);
  if (umemLogDisk_is_log(before)) return true;
  umemVirtual_fail(ctx, umemValueError, "\"%s\" is there and is no log: it is not overwritten",
                   filename);
  return false;
}

static bool map(umemLogFile *file, umemVirtual *ctx, char const *filename) {
  char *base = mmap(NULL, file->length, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
  if (base == MAP_FAILED) return fail_with_words(ctx, "map", filename, errno);
  file->header = (umemLogHeader *)base;
  file->contexts = (umemLogContext *)(base + umemLog_contexts_at);
  file->ring = (umemLogPlace *)(base + umemLog_ring_at);
  return true;
}

static umemLogHeader new_header(umemLogFile const *file) {
  return (umemLogHeader){.magic = UMEM_LOG_MAGIC,
                         .version = umemLog_version,
                         .byte_order = umemLog_byte_order,
                         .record_size = sizeof(umemLogRecord),
                         .context_size = sizeof(umemLogContext),
                         .capacity = file->mask + 1,
                         .begun = umemLog_now(),
                         .begun_calendar = clock_ns(CLOCK_REALTIME),
                         .process = (uint32_t)getpid()};
}

/* Its space is reserved before: a full disk that is found while writing to the mapping would kill. */
static bool write_header(umemLogFile *file, umemVirtual *ctx, char const *filename,
                         umemLogBefore const *before) {
  char const *what = "write";
  int error = umemLogDisk_mark(file->fd, before);
  if (!error) {
    error = umemLogDisk_reserve(file->fd, file->length, before);
    if (error) what = "reserve the space of";
  }
  if (!error) {
    umemLogHeader const header = new_header(file);
    error = umemLogDisk_begin(file->fd, &header, file->length, before);
  }
  if (!error) return true;
  umemLogDisk_give_back(file->fd, file->length, before);
  return fail_with_words(ctx, what, filename, error);
}

/* All behind the header. The first write to a page costs a microsecond or more: here, and not in the first
 * records. */
static void clear(umemLogFile *file) {
  memset((char *)file->header + sizeof *file->header, 0, file->length - sizeof *file->header);
}

/* Makes the file of the descriptor, which is locked, a log without records. */
static bool begin_log(umemLogFile *file, umemVirtual *ctx, char const *filename) {
  umemLogBefore before;
  if (!look(file->fd, ctx, filename, &before) || !is_allowed(ctx, filename, file->length))
    return false;
  if (!umemLogDisk_has_room(file->fd, file->length))
    return fail_with_words(ctx, "reserve the space of", filename, ENOSPC);
  if (!map(file, ctx, filename)) return false;
  if (write_header(file, ctx, filename, &before)) {
    clear(file);
    return true;
  }
  munmap(file->header, file->length);
  return false;
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
  if (!lock_file(fd, ctx, filename)) return NULL;
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
                        .users = 1};
  if (begin_log(file, ctx, filename)) return file;
  free(file);
  return NULL;
}

/* Of a file that is open: what kind of file, and which. */
static bool examine(int fd, umemVirtual *ctx, char const *filename, struct stat *about) {
  if (fstat(fd, about) != 0) return fail_with_words(ctx, "open", filename, errno);
  if (S_ISREG(about->st_mode)) return true;
  umemVirtual_fail(ctx, umemIOError, "cannot write the log \"%s\": it is no regular file",
                   filename);
  return false;
}

static umemLogFile *keep(umemLogFile *file) {
  if (!file) return NULL;
  file->older = newest;
  return newest = file;
}

/* What fd, a file that was there, is of this process, or becomes; NULL with a status otherwise. fd is owned
 * by it, or closed. */
static umemLogFile *share_or_begin(umemVirtual *ctx, char const *filename, int fd,
                                   uint64_t max_bytes) {
  struct stat about;
  bool known = examine(fd, ctx, filename, &about);
  umemLogFile *file = known ? find(&about) : NULL;
  if (known && !file) {
    file = begin(ctx, filename, fd, &about, max_bytes);
    if (file) return keep(file);
  }
  close(fd);
  return file;
}

static void discard(umemLogFile *file) {
  munmap(file->header, file->length);
  free(file);
}

/* A log with a name that nothing has; NULL with a status otherwise, or with *taken if something has it by
 * now. */
static umemLogFile *make(umemVirtual *ctx, char const *filename, uint64_t max_bytes, bool *taken) {
  umemLogDraft draft;
  struct stat about;
  umemLogFile *file = NULL;
  int error = umemLogDraft_open(&draft, filename);
  if (error)
    fail_with_words(ctx, "open", filename, error);
  else if (examine(draft.fd, ctx, filename, &about))
    file = begin(ctx, filename, draft.fd, &about, max_bytes);
  error = file ? umemLogDraft_publish(&draft) : 0;
  *taken = error == EEXIST;
  if (error) {
    if (!*taken) fail_with_words(ctx, "make", filename, error);
    discard(file);
    file = NULL;
  }
  umemLogDraft_end(&draft);
  return keep(file);
}

/* A link to nothing is not made the way to something: who set it may be anybody. */
static bool is_link(umemVirtual *ctx, char const *filename) {
  struct stat about;
  if (lstat(filename, &about) != 0 || !S_ISLNK(about.st_mode)) return false;
  umemVirtual_fail(ctx, umemIOError,
                   "cannot make the log \"%s\": it is a symbolic link to a file that is not there",
                   filename);
  return true;
}

static umemLogFile *open_under_lock(umemVirtual *ctx, char const *filename, uint64_t max_bytes) {
  enum { most_tries = 100 }; /* each time somebody has made the file meanwhile, or removed it */
  int error = EEXIST;
  for (int i = 0; i < most_tries; i++) {
    bool taken;
    int fd = umemLogDisk_open(filename);
    if (fd >= 0) return share_or_begin(ctx, filename, fd, max_bytes);
    if (errno != ENOENT) {
      error = errno;
      break;
    }
    if (is_link(ctx, filename)) return NULL;
    umemLogFile *file = make(ctx, filename, max_bytes, &taken);
    if (file || !taken) return file;
  }
  fail_with_words(ctx, "open", filename, error);
  return NULL;
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

/* No context writes any more: the file has its end, and may be begun anew. In a child of fork the lock and
 * the header are the parent's. */
static void complete(umemLogFile *file) {
  umemLogFile **link = &newest;
  while (*link != file) link = &(*link)->older;
  *link = file->older;
  file->complete = true;
  if (!umemLogFile_is_ours(file)) return;
  __atomic_store_n(&file->header->ended, umemLog_now(), __ATOMIC_RELAXED);
  flock(file->fd, LOCK_UN); /* children may have the descriptor for longer */
}

void umemLogFile_close(umemLogFile *file, bool left) {
  umemLock_acquire(&opening);
  file->users--;
  file->left -= left;
  if (file->users == file->left && !file->complete) complete(file);
  if (file->users == 0) {
    munmap(file->header, file->length);
    close(file->fd);
    free(file);
  }
  umemLock_release(&opening);
}

bool umemLogFile_leave(umemLogFile *file) {
  enum { most_tries = 1000 };
  struct timespec const nap = {0, 1000000};
  int tries = 0;
  while (!umemLock_try(&opening))
    if (++tries == most_tries || nanosleep(&nap, NULL) < 0) return false;
  if (++file->left == file->users) complete(file);
  umemLock_release(&opening);
  return true;
}
