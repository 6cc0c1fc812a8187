/* log_faults.c - a log whose file the system refuses in one way after the other, or whose program is
 * killed or looked at between two calls. The linker sends the calls here. */
#include "log_help.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

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
  munmapCall,
  clockCall,
  callocCall
} Call;
static Call failing;
static int with;

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
int __real_munmap(void *at, size_t length);
int __wrap_munmap(void *at, size_t length);
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

static int calls, last_call; /* how many there were; the one that kills, or 0 */
static bool watched;

static void *ask(void *ctx) {
  umem_get_message(ctx);
  return NULL;
}

/* Whoever wants to know a message need not wait for the disk. */
static void another_thread_asks(void) {
  pthread_t thread;
  struct timespec until;
  assert_int_equal(pthread_create(&thread, NULL, ask, &host), 0);
  __real_clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 20;
  if (pthread_timedjoin_np(thread, NULL, &until) != 0) fail_msg("umem_get_message waits");
}

static bool fails(Call call) {
  if (++calls == last_call) raise(SIGKILL);
  if (watched && call != callocCall) another_thread_asks();
  if (failing != call) return false;
  failing = none;
  errno = with;
  return true;
}

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
int __wrap_munmap(void *at, size_t length) {
  return fails(munmapCall) ? -1 : __real_munmap(at, length);
}
int __wrap_clock_gettime(clockid_t clock, struct timespec *t) {
  return fails(clockCall) ? -1 : __real_clock_gettime(clock, t);
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
  for (size_t k = 0; k < 2 * sizeof refusals / sizeof *refusals; k++) {
    umemLog log;
    size_t i = k / 2;
    bool is_new = k % 2;
    if (is_new) unlink(path);
    int files = open_files();
    options.max_bytes = 1 << 16;
    with = refusals[i].error;
    failing = refusals[i].call;
    assert_int_equal(umemLog_ctor(&log, &host, &options), refusals[i].type);
    assert_int_equal(failing, none);
    expect_failure(&log, refusals[i].type, refusals[i].text);
    assert_int_equal(open_files(), files);
    umem_dtor(&log);
    assert_int_equal(access(path, F_OK), is_new ? -1 : 0); /* no empty file is left behind */

    open_small(&log, &host); /* the next one works, as if nothing had been */
    umem_free(&log, umem_alloc(&log, 10));
    end(&log);
    assert_int_equal(open_files(), files);
    read_back();
    assert_int_equal(trace.count, 2);
  }
}

/* Whether a child is killed at this call of the constructor. */
static bool dies_at(int call) {
  int how;
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    umemLog log;
    calls = 0;
    last_call = call;
    _exit(umemLog_ctor(&log, &host, &options) != umemOK);
  }
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how) || (WIFEXITED(how) && !WEXITSTATUS(how)));
  return WIFSIGNALED(how);
}

/* The file is a log or empty at any moment, new or begun anew, and can be opened. */
static void killed_while_it_begins(void **state) {
  (void)state;
  int call = 1;
  options.max_bytes = 1 << 16;
  for (bool killed = true; killed; call++)
    for (int is_new = 0; is_new < 2; is_new++) {
      umemLog log;
      if (is_new) unlink(path);
      killed = dies_at(call);
      open_small(&log, &host);
      umem_free(&log, umem_alloc(&log, 10));
      end(&log);
      read_back();
      assert_int_equal(trace.count, 2);
    }
  assert_true(call > 8);
}

static void nobody_waits_for_the_disk(void **state) {
  (void)state;
  umemLog log;
  unlink(path);
  umem_set_status(&host, umemIOError, "something to tell");
  calls = 0;
  watched = true;
  open_small(&log, &host);
  end(&log);
  watched = false;
  assert_true(calls > 8);
  umem_clear_status(&host);
}

int main(void) {
  static struct CMUnitTest const tests[] = {
      LOG_TEST(each_refusal_is_a_status),
      LOG_TEST(killed_while_it_begins),
      LOG_TEST(nobody_waits_for_the_disk),
  };
  return cmocka_run_group_tests_name("Log without a file", tests, NULL, NULL);
}
