/* inject.c - the wrappers, and the one decision that they share. */
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

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

/* For all threads. The plan is written before armed is set, and read after it was seen set. */
static Plan plan;
static atomic_bool armed;
static atomic_ulong calls[inject_call_count];
static atomic_ulong delivered;
static atomic_ulong interruptible; /* calls seen by a storm */
static atomic_ulong transfers;     /* reads and writes seen by short transfers */

static struct {
  InjectCall call;
  int error;
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
      [callProtect] = "mprotect",   [callRemap] = "mremap"};
  return names[call];
}

static void arm(Plan const *next) {
  atomic_store(&armed, false);
  plan = *next;
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
  if (is_due(&plan, call, count))
    error = plan.error;
  else if (plan.mode == modeStorm && can_be_interrupted(call) &&
           atomic_fetch_add(&interruptible, 1) % 4 != 3)
    error = EINTR;
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

/* ---- memory ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **block, size_t alignment, size_t size);

void *__wrap_malloc(size_t size) { return fails(callHeap) ? NULL : __real_malloc(size); }

void *__wrap_calloc(size_t count, size_t size) {
  return fails(callHeap) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size) {
  return fails(callHeap) ? NULL : __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  return fails(callHeap) ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **block, size_t alignment, size_t size) {
  int error = struck(callHeap);
  return error ? error : __real_posix_memalign(block, alignment, size);
}

/* ---- mappings ---- */

typedef void *Map(void *at, size_t size, int protection, int flags, int fd, off_t offset);
Map __real_mmap, __real_mmap64, __wrap_mmap, __wrap_mmap64;
int __real_munmap(void *at, size_t size);
int __real_madvise(void *at, size_t size, int advice);
int __real_mprotect(void *at, size_t size, int protection);
void *__real_mremap(void *at, size_t old_size, size_t new_size, int flags, void *to);
int __real_msync(void *at, size_t size, int flags);

/* What is mapped over an earlier mapping adds nothing. */
static void *map(Map *real, void *at, size_t size, int protection, int flags, int fd,
                 off_t offset) {
  if (fails(callMap)) return MAP_FAILED;
  void *result = real(at, size, protection, flags, fd, offset);
  if (result != MAP_FAILED && !(flags & MAP_FIXED)) atomic_fetch_add(&mapped, size);
  return result;
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  return map(__real_mmap, at, size, protection, flags, fd, offset);
}

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  return map(__real_mmap64, at, size, protection, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t size) {
  int result = __real_munmap(at, size);
  if (!result) atomic_fetch_sub(&mapped, size);
  return result;
}

int __wrap_madvise(void *at, size_t size, int advice) {
  return fails(callAdvise) ? -1 : __real_madvise(at, size, advice);
}

int __wrap_mprotect(void *at, size_t size, int protection) {
  return fails(callProtect) ? -1 : __real_mprotect(at, size, protection);
}

/* Umem moves pages to fixed places only. */
void *__wrap_mremap(void *at, size_t old_size, size_t new_size, int flags, void *to) {
  return fails(callRemap) ? MAP_FAILED : __real_mremap(at, old_size, new_size, flags, to);
}

int __wrap_msync(void *at, size_t size, int flags) {
  return fails(callMapSync) ? -1 : __real_msync(at, size, flags);
}

/* ---- opening and closing ---- */

typedef int Open(char const *path, int flags, ...);
typedef int OpenAt(int folder, char const *path, int flags, ...);
typedef int MakeTemporary(char *path, int flags);
Open __real_open, __real_open64, __wrap_open, __wrap_open64;
OpenAt __real_openat, __real_openat64, __wrap_openat, __wrap_openat64;
MakeTemporary __real_mkostemp, __real_mkostemp64, __wrap_mkostemp, __wrap_mkostemp64;
int __real_close(int fd);
int __real_unlink(char const *path);

/* The third argument of open, which is there only with flags that create. */
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

int __wrap_open(char const *path, int flags, ...) {
  READ_MODE(mode, flags)
  return cannot_open(flags) ? -1 : __real_open(path, flags, mode);
}

int __wrap_open64(char const *path, int flags, ...) {
  READ_MODE(mode, flags)
  return cannot_open(flags) ? -1 : __real_open64(path, flags, mode);
}

int __wrap_openat(int folder, char const *path, int flags, ...) {
  READ_MODE(mode, flags)
  return cannot_open(flags) ? -1 : __real_openat(folder, path, flags, mode);
}

int __wrap_openat64(int folder, char const *path, int flags, ...) {
  READ_MODE(mode, flags)
  return cannot_open(flags) ? -1 : __real_openat64(folder, path, flags, mode);
}

int __wrap_mkostemp(char *path, int flags) {
  return fails(callTemporary) ? -1 : __real_mkostemp(path, flags);
}

int __wrap_mkostemp64(char *path, int flags) {
  return fails(callTemporary) ? -1 : __real_mkostemp64(path, flags);
}

int __wrap_unlink(char const *path) {
  int error = struck(callUnlink);
  int result = __real_unlink(path);
  if (!error) return result;
  errno = error;
  return -1;
}

int __real_link(char const *path, char const *name);
int __real_linkat(int folder, char const *path, int other, char const *name, int flags);

int __wrap_link(char const *path, char const *name) {
  return fails(callLink) ? -1 : __real_link(path, name);
}

int __wrap_linkat(int folder, char const *path, int other, char const *name, int flags) {
  return fails(callLink) ? -1 : __real_linkat(folder, path, other, name, flags);
}

int __wrap_close(int fd) {
  int error = struck(callClose);
  int result = __real_close(fd);
  if (!error) return result;
  errno = error;
  return -1;
}

/* ---- reading, writing and the rest of a file ---- */

typedef ssize_t Read(int fd, void *buffer, size_t size, off_t offset);
typedef ssize_t Write(int fd, void const *buffer, size_t size, off_t offset);
typedef int Reserve(int fd, int mode, off_t offset, off_t size);
typedef int Length(int fd, off_t size);
typedef int Stat(int fd, struct stat *status);
typedef int StatFs(int fd, struct statvfs *status);
typedef ssize_t WritePieces(int fd, struct iovec const *pieces, int count, off_t offset, int flags);
typedef ssize_t ReadPieces(int fd, struct iovec const *pieces, int count, off_t offset);
ReadPieces __real_preadv, __real_preadv64, __wrap_preadv, __wrap_preadv64;
WritePieces __real_preadv2, __real_preadv64v2, __wrap_preadv2, __wrap_preadv64v2;
typedef int DiskOf(int fd, struct statfs *disk);
typedef int DiskAt(char const *path, struct statfs *disk);
WritePieces __real_pwritev2, __real_pwritev64v2, __wrap_pwritev2, __wrap_pwritev64v2;
DiskOf __real_fstatfs, __real_fstatfs64, __wrap_fstatfs, __wrap_fstatfs64;
DiskAt __real_statfs, __real_statfs64, __wrap_statfs, __wrap_statfs64;
Read __real_pread, __real_pread64, __wrap_pread, __wrap_pread64;
Write __real_pwrite, __real_pwrite64, __wrap_pwrite, __wrap_pwrite64;
Reserve __real_fallocate, __real_fallocate64, __wrap_fallocate, __wrap_fallocate64;
Length __real_ftruncate, __real_ftruncate64, __wrap_ftruncate, __wrap_ftruncate64;
off_t __real_lseek(int, off_t, int), __real_lseek64(int, off_t, int);
off_t __wrap_lseek(int, off_t, int), __wrap_lseek64(int, off_t, int);
Stat __real_fstat, __real_fstat64, __wrap_fstat, __wrap_fstat64;
StatFs __real_fstatvfs, __real_fstatvfs64, __wrap_fstatvfs, __wrap_fstatvfs64;
int __real_fdatasync(int fd);
int __real_fsync(int fd);
int __real_syncfs(int fd);
int __real_flock(int fd, int operation);

ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t offset) {
  return fails(callRead) ? -1 : __real_pread(fd, buffer, portion(size), offset);
}

ssize_t __wrap_pread64(int fd, void *buffer, size_t size, off_t offset) {
  return fails(callRead) ? -1 : __real_pread64(fd, buffer, portion(size), offset);
}

ssize_t __wrap_pwrite(int fd, void const *buffer, size_t size, off_t offset) {
  return fails(callWrite) ? -1 : __real_pwrite(fd, buffer, portion(size), offset);
}

ssize_t __wrap_pwrite64(int fd, void const *buffer, size_t size, off_t offset) {
  return fails(callWrite) ? -1 : __real_pwrite64(fd, buffer, portion(size), offset);
}

ssize_t __wrap_preadv(int fd, struct iovec const *pieces, int count, off_t offset) {
  return fails(callPeek) ? -1 : __real_preadv(fd, pieces, count, offset);
}

ssize_t __wrap_preadv64(int fd, struct iovec const *pieces, int count, off_t offset) {
  return fails(callPeek) ? -1 : __real_preadv64(fd, pieces, count, offset);
}

/* A part of them is a part of the first. */
static ssize_t move_pieces(InjectCall call, WritePieces *real, int fd, struct iovec const *pieces,
                           int count, off_t offset, int flags) {
  if (fails(call)) return -1;
  size_t size = portion(pieces->iov_len);
  if (size == pieces->iov_len) return real(fd, pieces, count, offset, flags);
  return real(fd, &(struct iovec){pieces->iov_base, size}, 1, offset, flags);
}

ssize_t __wrap_pwritev2(int fd, struct iovec const *pieces, int count, off_t offset, int flags) {
  return move_pieces(callWrite, __real_pwritev2, fd, pieces, count, offset, flags);
}

ssize_t __wrap_pwritev64v2(int fd, struct iovec const *pieces, int count, off_t offset, int flags) {
  return move_pieces(callWrite, __real_pwritev64v2, fd, pieces, count, offset, flags);
}

ssize_t __wrap_preadv2(int fd, struct iovec const *pieces, int count, off_t offset, int flags) {
  return move_pieces(callPeek, __real_preadv2, fd, pieces, count, offset, flags);
}

ssize_t __wrap_preadv64v2(int fd, struct iovec const *pieces, int count, off_t offset, int flags) {
  return move_pieces(callPeek, __real_preadv64v2, fd, pieces, count, offset, flags);
}

static int reserve(Reserve *real, int fd, int mode, off_t offset, off_t size) {
  if (fails(callReserve)) return -1;
  if ((uint64_t)size <= atomic_load(&longest_reserve)) return real(fd, mode, offset, size);
  errno = EINTR;
  return -1;
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size) {
  return reserve(__real_fallocate, fd, mode, offset, size);
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t size) {
  return reserve(__real_fallocate64, fd, mode, offset, size);
}

int __wrap_ftruncate(int fd, off_t size) {
  return fails(callLength) ? -1 : __real_ftruncate(fd, size);
}

int __wrap_ftruncate64(int fd, off_t size) {
  return fails(callLength) ? -1 : __real_ftruncate64(fd, size);
}

int __wrap_fstat(int fd, struct stat *status) {
  return fails(callStat) ? -1 : __real_fstat(fd, status);
}

int __wrap_fstat64(int fd, struct stat *status) {
  return fails(callStat) ? -1 : __real_fstat64(fd, status);
}

/* In units that leave room for all numbers. */
static int space_of(StatFs *real, int fd, struct statvfs *status) {
  if (fails(callStat)) return -1;
  int result = real(fd, status);
  uint64_t bytes = atomic_load(&free_space);
  if (!result && bytes != UINT64_MAX) {
    status->f_frsize = 1;
    status->f_bfree = status->f_bavail = bytes;
  }
  return result;
}

int __wrap_fstatvfs(int fd, struct statvfs *status) {
  return space_of(__real_fstatvfs, fd, status);
}

int __wrap_fstatvfs64(int fd, struct statvfs *status) {
  return space_of(__real_fstatvfs64, fd, status);
}

int __wrap_fstatfs(int fd, struct statfs *disk) {
  return fails(callStat) ? -1 : __real_fstatfs(fd, disk);
}

int __wrap_fstatfs64(int fd, struct statfs *disk) {
  return fails(callStat) ? -1 : __real_fstatfs64(fd, disk);
}

int __wrap_statfs(char const *path, struct statfs *disk) {
  return fails(callStat) ? -1 : __real_statfs(path, disk);
}

int __wrap_statfs64(char const *path, struct statfs *disk) {
  return fails(callStat) ? -1 : __real_statfs64(path, disk);
}

off_t __wrap_lseek(int fd, off_t offset, int from) {
  return fails(callSeek) ? -1 : __real_lseek(fd, offset, from);
}

off_t __wrap_lseek64(int fd, off_t offset, int from) {
  return fails(callSeek) ? -1 : __real_lseek64(fd, offset, from);
}

int __wrap_fdatasync(int fd) { return fails(callDataSync) ? -1 : __real_fdatasync(fd); }
int __wrap_fsync(int fd) { return fails(callSync) ? -1 : __real_fsync(fd); }
int __wrap_syncfs(int fd) { return fails(callSync) ? -1 : __real_syncfs(fd); }
int __wrap_flock(int fd, int operation) {
  return fails(callLock) ? -1 : __real_flock(fd, operation);
}

/* ---- threads ---- */

int __real_pthread_create(pthread_t *thread, pthread_attr_t const *attributes,
                          void *(*function)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, pthread_attr_t const *attributes,
                          void *(*function)(void *), void *argument) {
  int error = struck(callThread);
  return error ? error : __real_pthread_create(thread, attributes, function, argument);
}
