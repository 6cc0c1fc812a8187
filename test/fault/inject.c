/* inject.c - the wrappers, and the one decision that they share. */
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "wrap.h"

/* ---- what is armed ---- */

typedef enum Mode { modeCount, modeFail, modeShort, modeStorm } Mode;

typedef struct Plan {
  Mode mode;
  InjectCall call;
  unsigned long nth;
  int error;
  bool lasting;
  unsigned seed;
} Plan;

/* For all threads. A worker may read the plan while the test writes the next one: each part is
 * atomic, and the test arms a plan when all of it is written. */
static struct {
  _Atomic Mode mode;
  _Atomic InjectCall call;
  atomic_ulong nth;
  atomic_int error;
  atomic_bool lasting;
  atomic_uint seed;
} plan;
static atomic_bool armed;
static atomic_ulong calls[inject_call_count];
static atomic_ulong delivered;
static atomic_ulong interruptible; /* calls seen by a storm */
static atomic_ulong transfers;     /* reads and writes seen by short transfers */

static struct {
  _Atomic InjectCall call;
  atomic_int error;
} lacking;

static _Atomic uint64_t free_space = UINT64_MAX, longest_reserve = UINT64_MAX;

/* For the calling thread alone. */
static _Thread_local struct {
  Plan plan;
  bool armed;
  unsigned long calls, delivered;
} own;

static atomic_int paused;
static atomic_size_t mapped;

char const *inject_call_name(InjectCall call) {
  static char const *const names[inject_call_count] = {
      [callHeap] = "malloc",        [callMap] = "mmap",           [callAdvise] = "madvise",
      [callOpen] = "open",          [callNameless] = "open",      [callLink] = "link",
      [callTemporary] = "mkostemp", [callUnlink] = "unlink",      [callRead] = "pread",
      [callPeek] = "preadv",        [callWrite] = "pwrite",       [callReserve] = "fallocate",
      [callLength] = "ftruncate",   [callDataSync] = "fdatasync", [callSync] = "fsync",
      [callMapSync] = "msync",      [callClose] = "close",        [callLock] = "flock",
      [callStat] = "fstat",         [callSeek] = "lseek",         [callThread] = "pthread_create",
      [callProtect] = "mprotect",   [callRemap] = "mremap",       [callEvent] = "eventfd"};
  return names[call];
}

static void arm(Plan const *next) {
  atomic_store(&armed, false);
  plan.mode = next->mode;
  plan.call = next->call;
  plan.nth = next->nth;
  plan.error = next->error;
  plan.lasting = next->lasting;
  plan.seed = next->seed;
  for (int i = 0; i < inject_call_count; i++) atomic_store(&calls[i], 0);
  atomic_store(&delivered, 0);
  atomic_store(&interruptible, 0);
  atomic_store(&transfers, 0);
  atomic_store(&armed, true);
}

void inject_count(void) { arm(&(Plan){.mode = modeCount}); }
void inject_short(unsigned seed) { arm(&(Plan){.mode = modeShort, .seed = seed}); }
void inject_storm(void) { arm(&(Plan){.mode = modeStorm}); }

void inject_fail(InjectCall call, unsigned long nth, int error, bool lasting) {
  arm(&(Plan){.mode = modeFail, .call = call, .nth = nth, .error = error, .lasting = lasting});
}

unsigned long inject_off(void) {
  atomic_store(&armed, false);
  return atomic_load(&delivered);
}

void inject_fail_here(InjectCall call, unsigned long nth, int error, bool lasting) {
  own.plan = (Plan){.mode = modeFail, .call = call, .nth = nth, .error = error, .lasting = lasting};
  own.calls = own.delivered = 0;
  own.armed = true;
}

unsigned long inject_off_here(void) {
  own.armed = false;
  return own.delivered;
}

void inject_lacking(InjectCall call, int error) {
  lacking.call = call;
  lacking.error = error;
}

unsigned long inject_calls(InjectCall call) { return atomic_load(&calls[call]); }

void inject_pause(void) { atomic_fetch_add(&paused, 1); }
void inject_resume(void) { atomic_fetch_sub(&paused, 1); }

void inject_free_space(uint64_t bytes) { atomic_store(&free_space, bytes); }

void inject_longest_reserve(uint64_t bytes) { atomic_store(&longest_reserve, bytes); }

void inject_reset(void) {
  inject_longest_reserve(UINT64_MAX);
  inject_free_space(UINT64_MAX);
  inject_off();
  inject_off_here();
  inject_lacking(callHeap, 0);
  atomic_store(&paused, 0);
}

size_t inject_mapped(void) { return atomic_load(&mapped); }

/* ---- the decision ---- */

static bool is_due(Plan const *of, InjectCall call, unsigned long count) {
  return of->mode == modeFail && of->call == call &&
         (count == of->nth || (of->lasting && count > of->nth));
}

static bool can_be_interrupted(InjectCall call) {
  switch (call) {
  case callOpen:
  case callTemporary:
  case callRead:
  case callWrite:
  case callReserve:
  case callLength:
  case callDataSync:
  case callSync:
  case callMapSync:
    return true;
  default:
    return false;
  }
}

static int struck_here(InjectCall call) {
  if (!own.armed || own.plan.call != call || !is_due(&own.plan, call, ++own.calls)) return 0;
  own.delivered++;
  return own.plan.error;
}

/* The errno with which this call must fail, or 0. */
static int struck(InjectCall call) {
  if (atomic_load(&paused)) return 0;
  int error = struck_here(call);
  if (error || !atomic_load(&armed)) return error;
  unsigned long count = atomic_fetch_add(&calls[call], 1) + 1;
  if (lacking.error && lacking.call == call) return lacking.error;
  Plan now = {plan.mode, plan.call, plan.nth, plan.error, plan.lasting, plan.seed};
  if (is_due(&now, call, count))
    error = now.error;
  else if (now.mode == modeStorm && can_be_interrupted(call) &&
           atomic_fetch_add(&interruptible, 1) % 4 != 3)
    error = EINTR;
  if (error == inject_kill) kill(getpid(), SIGKILL);
  if (error) atomic_fetch_add(&delivered, 1);
  return error;
}

/* As struck, for functions that return -1 and set errno. */
static bool fails(InjectCall call) {
  int error = struck(call);
  if (error) errno = error;
  return error != 0;
}

/* How many of size bytes the next transfer may move. */
static size_t portion(size_t size) {
  if (atomic_load(&paused) || !atomic_load(&armed) || plan.mode != modeShort || size < 2)
    return size;
  uint64_t count = atomic_fetch_add(&transfers, 1);
  atomic_fetch_add(&delivered, 1);
  if (count < 64) return 1;
  uint64_t mix = (count + plan.seed) * UINT64_C(0x9e3779b97f4a7c15);
  return 1 + (size_t)((mix ^ mix >> 29) % size);
}

/* Functions that return -1 when they fail. glibc has some under two names; of musl the second is a
 * macro. */
#define FAILS(call, type, name, parameters, arguments)                                             \
  WRAP(fails(call), (type)-1, type, name, parameters, arguments)
#ifdef __GLIBC__
#define FAILS64(call, type, name, parameters, arguments)                                           \
  FAILS(call, type, name, parameters, arguments)                                                   \
  FAILS(call, type, name##64, parameters, arguments)
#else
#define FAILS64 FAILS
#endif

/* A function of two names that does what shared does with __real_NAME and the arguments. */
#define ONE(type, name, parameters, shared, ...)                                                   \
  WRAPPED(type, name, parameters) { return shared(__real_##name, __VA_ARGS__); }
#ifdef __GLIBC__
#define BOTH(type, name, parameters, shared, ...)                                                  \
  ONE(type, name, parameters, shared, __VA_ARGS__)                                                 \
  ONE(type, name##64, parameters, shared, __VA_ARGS__)
#else
#define BOTH ONE
#endif

/* ---- memory ---- */

WRAP(fails(callHeap), NULL, void *, malloc, (size_t size), (size))
WRAP(fails(callHeap), NULL, void *, calloc, (size_t count, size_t size), (count, size))
WRAP(fails(callHeap), NULL, void *, realloc, (void *block, size_t size), (block, size))
WRAP(fails(callHeap), NULL, void *, aligned_alloc, (size_t alignment, size_t size),
     (alignment, size))

WRAPPED(int, posix_memalign, (void **block, size_t alignment, size_t size)) {
  int error = struck(callHeap);
  return error ? error : __real_posix_memalign(block, alignment, size);
}

/* ---- mappings ---- */

typedef void *Map(void *at, size_t size, int protection, int flags, int fd, off_t offset);

/* What is mapped over an earlier mapping adds nothing. */
static void *map(Map *real, void *at, size_t size, int protection, int flags, int fd,
                 off_t offset) {
  if (fails(callMap)) return MAP_FAILED;
  void *result = real(at, size, protection, flags, fd, offset);
  if (result != MAP_FAILED && !(flags & MAP_FIXED)) atomic_fetch_add(&mapped, size);
  return result;
}

BOTH(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset), map,
     at, size, protection, flags, fd, offset)

WRAPPED(int, munmap, (void *at, size_t size)) {
  int result = __real_munmap(at, size);
  if (!result) atomic_fetch_sub(&mapped, size);
  return result;
}

FAILS(callAdvise, int, madvise, (void *at, size_t size, int advice), (at, size, advice))
FAILS(callProtect, int, mprotect, (void *at, size_t size, int protection), (at, size, protection))
FAILS(callMapSync, int, msync, (void *at, size_t size, int flags), (at, size, flags))

/* Umem moves pages to fixed places only. */
WRAP(fails(callRemap), MAP_FAILED, void *, mremap,
     (void *at, size_t old_size, size_t new_size, int flags, void *to),
     (at, old_size, new_size, flags, to))

/* ---- opening and closing ---- */

/* The last argument of open, which is there only with flags that create. */
#define READ_MODE(mode, flags)                                                                     \
  mode_t mode = 0;                                                                                 \
  if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) {                                       \
    va_list rest;                                                                                  \
    va_start(rest, flags);                                                                         \
    mode = va_arg(rest, mode_t);                                                                   \
    va_end(rest);                                                                                  \
  }

static bool cannot_open(int flags) {
  if ((flags & O_TMPFILE) == O_TMPFILE && lacking.call == callNameless && fails(callNameless))
    return true;
  return fails(callOpen);
}

#define OPENS(name)                                                                                \
  WRAPPED(int, name, (char const *path, int flags, ...)) {                                         \
    READ_MODE(mode, flags)                                                                         \
    return cannot_open(flags) ? -1 : __real_##name(path, flags, mode);                             \
  }
OPENS(open)
#ifdef __GLIBC__
OPENS(open64)
#endif

#define OPENS_AT(name)                                                                             \
  WRAPPED(int, name, (int folder, char const *path, int flags, ...)) {                             \
    READ_MODE(mode, flags)                                                                         \
    return cannot_open(flags) ? -1 : __real_##name(folder, path, flags, mode);                     \
  }
OPENS_AT(openat)
#ifdef __GLIBC__
OPENS_AT(openat64)
#endif

FAILS64(callTemporary, int, mkostemp, (char *path, int flags), (path, flags))
FAILS(callLink, int, link, (char const *path, char const *name), (path, name))
FAILS(callLink, int, linkat, (int folder, char const *path, int other, char const *name, int flags),
      (folder, path, other, name, flags))

/* The result of a call that has done its work, or a failure all the same. */
static int done_but(int result, int error) {
  if (!error) return result;
  errno = error;
  return -1;
}

WRAPPED(int, unlink, (char const *path)) {
  int error = struck(callUnlink);
  return done_but(__real_unlink(path), error);
}

WRAPPED(int, close, (int fd)) {
  int error = struck(callClose);
  return done_but(__real_close(fd), error);
}

/* ---- reading, writing and the rest of a file ---- */

FAILS64(callRead, ssize_t, pread, (int fd, void *buffer, size_t size, off_t offset),
        (fd, buffer, portion(size), offset))
FAILS64(callWrite, ssize_t, pwrite, (int fd, void const *buffer, size_t size, off_t offset),
        (fd, buffer, portion(size), offset))
FAILS64(callPeek, ssize_t, preadv, (int fd, struct iovec const *pieces, int count, off_t offset),
        (fd, pieces, count, offset))

typedef ssize_t MovePieces(int fd, struct iovec const *pieces, int count, off_t offset, int flags);

/* A part of them is a part of the first. */
static ssize_t move_pieces(MovePieces *real, InjectCall call, int fd, struct iovec const *pieces,
                           int count, off_t offset, int flags) {
  if (fails(call)) return -1;
  size_t size = portion(pieces->iov_len);
  if (size == pieces->iov_len) return real(fd, pieces, count, offset, flags);
  return real(fd, &(struct iovec){pieces->iov_base, size}, 1, offset, flags);
}

#define MOVES(call, name)                                                                          \
  WRAPPED(ssize_t, name,                                                                           \
          (int fd, struct iovec const *pieces, int count, off_t offset, int flags)) {              \
    return move_pieces(__real_##name, call, fd, pieces, count, offset, flags);                     \
  }
#ifdef __GLIBC__ /* musl lacks them: umem calls the kernel */
MOVES(callWrite, pwritev2)
MOVES(callWrite, pwritev64v2)
MOVES(callPeek, preadv2)
MOVES(callPeek, preadv64v2)
#endif

static int reserve(int (*real)(int, int, off_t, off_t), int fd, int mode, off_t offset,
                   off_t size) {
  if (fails(callReserve)) return -1;
  if ((uint64_t)size <= atomic_load(&longest_reserve)) return real(fd, mode, offset, size);
  errno = EINTR;
  return -1;
}

BOTH(int, fallocate, (int fd, int mode, off_t offset, off_t size), reserve, fd, mode, offset, size)

/* In units that leave room for all numbers. */
static int space_of(int (*real)(int, struct statvfs *), int fd, struct statvfs *status) {
  if (fails(callStat)) return -1;
  int result = real(fd, status);
  uint64_t bytes = atomic_load(&free_space);
  if (!result && bytes != UINT64_MAX) {
    status->f_frsize = 1;
    status->f_bfree = status->f_bavail = bytes;
  }
  return result;
}

BOTH(int, fstatvfs, (int fd, struct statvfs *status), space_of, fd, status)

FAILS64(callLength, int, ftruncate, (int fd, off_t size), (fd, size))
FAILS64(callStat, int, fstat, (int fd, struct stat *status), (fd, status))
FAILS64(callStat, int, fstatfs, (int fd, struct statfs *disk), (fd, disk))
FAILS64(callStat, int, statfs, (char const *path, struct statfs *disk), (path, disk))
FAILS64(callSeek, off_t, lseek, (int fd, off_t offset, int from), (fd, offset, from))
FAILS(callDataSync, int, fdatasync, (int fd), (fd))
FAILS(callSync, int, fsync, (int fd), (fd))
FAILS(callSync, int, syncfs, (int fd), (fd))
FAILS(callLock, int, flock, (int fd, int operation), (fd, operation))

/* ---- threads, and the ends of transfers ---- */

WRAP(fails(callEvent), -1, int, eventfd, (unsigned first, int flags), (first, flags))

WRAPPED(int, pthread_create,
        (pthread_t * thread, pthread_attr_t const *attributes, void *(*function)(void *),
         void *argument)) {
  int error = struck(callThread);
  return error ? error : __real_pthread_create(thread, attributes, function, argument);
}
