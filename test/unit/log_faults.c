/* log_faults.c - a log whose file the system refuses in one way after the other. The linker sends the
 * calls here. */
#include "log_help.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Which call fails next, once, and how. */
typedef enum Call {
  none,
  openCall,
  fstatCall,
  flockCall,
  preadCall,
  pwriteCall,
  ftruncateCall,
  fallocateCall,
  mmapCall,
  callocCall
} Call;
static Call failing;
static int with;

static bool fails(Call call) {
  if (failing != call) return false;
  failing = none;
  errno = with;
  return true;
}

int __real_open(char const *name, int flags, mode_t mode);
int __real_fstat(int fd, struct stat *about);
int __real_flock(int fd, int operation);
ssize_t __real_pread(int fd, void *to, size_t n, off_t at);
int __real_ftruncate(int fd, off_t length);
int __real_posix_fallocate(int fd, off_t at, off_t length);
void *__real_mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset);
void *__real_calloc(size_t count, size_t size);
int __wrap_open(char const *name, int flags, mode_t mode);
int __wrap_fstat(int fd, struct stat *about);
int __wrap_flock(int fd, int operation);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at);
ssize_t __real_pwrite(int fd, void const *from, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, void const *from, size_t n, off_t at);
int __wrap_ftruncate(int fd, off_t length);
int __wrap_posix_fallocate(int fd, off_t at, off_t length);
void *__wrap_mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_calloc(size_t count, size_t size);

int __wrap_open(char const *name, int flags, mode_t mode) {
  return fails(openCall) ? -1 : __real_open(name, flags, mode);
}
int __wrap_fstat(int fd, struct stat *about) {
  return fails(fstatCall) ? -1 : __real_fstat(fd, about);
}
int __wrap_flock(int fd, int operation) {
  return fails(flockCall) ? -1 : __real_flock(fd, operation);
}
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at) {
  return fails(preadCall) ? -1 : __real_pread(fd, to, n, at);
}
/* A disk that is full writes less. */
ssize_t __wrap_pwrite(int fd, void const *from, size_t n, off_t at) {
  return fails(pwriteCall) ? (with ? -1 : 0) : __real_pwrite(fd, from, n, at);
}
int __wrap_ftruncate(int fd, off_t length) {
  return fails(ftruncateCall) ? -1 : __real_ftruncate(fd, length);
}
/* This one returns its error. */
int __wrap_posix_fallocate(int fd, off_t at, off_t length) {
  return fails(fallocateCall) ? with : __real_posix_fallocate(fd, at, length);
}
void *__wrap_mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
  return fails(mmapCall) ? MAP_FAILED : __real_mmap(at, length, protection, flags, fd, offset);
}
void *__wrap_calloc(size_t count, size_t size) {
  return fails(callocCall) ? NULL : __real_calloc(count, size);
}

static int open_files(void) {
  DIR *folder = opendir("/proc/self/fd");
  assert_non_null(folder);
  int count = 0;
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

static void each_refusal_is_a_status(void **state) {
  (void)state;
  static struct {
    Call call;
    int error;
    umemStatusType type;
    char const *text;
  } const refusals[] = {
      {openCall, EMFILE, umemIOError, "cannot open the log"},
      {fstatCall, EIO, umemIOError, "cannot open the log"},
      {flockCall, ENOLCK, umemIOError, "cannot lock the log"},
      {flockCall, EWOULDBLOCK, umemIOError, "another process is writing the log"},
      {preadCall, EIO, umemIOError, "cannot read the log"},
      {ftruncateCall, EIO, umemIOError, "cannot empty the log"},
      {pwriteCall, EIO, umemIOError, "cannot write the log"},
      {pwriteCall, 0, umemMemoryError, "cannot write the log"},
      {fallocateCall, ENOSPC, umemMemoryError, "cannot reserve the space of the log"},
      {fallocateCall, EDQUOT, umemMemoryError, "cannot reserve the space of the log"},
      {fallocateCall, EIO, umemIOError, "cannot reserve the space of the log"},
      {mmapCall, ENOMEM, umemMemoryError, "cannot map the log"},
      {callocCall, ENOMEM, umemMemoryError, "no memory"},
  };
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    umemLog log;
    int files = open_files();
    options.max_bytes = 1 << 16;
    with = refusals[i].error;
    failing = refusals[i].call;
    assert_int_equal(umemLog_ctor(&log, &host, &options), refusals[i].type);
    assert_int_equal(failing, none);
    expect_failure(&log, refusals[i].type, refusals[i].text);
    assert_int_equal(open_files(), files);
    umem_dtor(&log);

    open_small(&log, &host); /* the next one works, as if nothing had been */
    umem_free(&log, umem_alloc(&log, 10));
    end(&log);
    assert_int_equal(open_files(), files);
    read_back();
    assert_int_equal(trace.count, 2);
  }
}

int main(void) {
  static struct CMUnitTest const tests[] = {LOG_TEST(each_refusal_is_a_status)};
  return cmocka_run_group_tests_name("Log without a file", tests, NULL, NULL);
}
