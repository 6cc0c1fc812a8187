/* log_faults.c - a log whose file the system refuses in one way after the other, or whose program
 * is killed or looked at between two calls. The linker sends the calls here. */
#include "base/thread.h"
#include "descriptors.h"
#include "log_help.h"

#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include "wrap.h"

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
  statvfsCall,
  linkCall,
  mmapCall,
  munmapCall,
  clockCall,
  callocCall
} Call;
static Call failing;
static int with;

int __real_clock_gettime(clockid_t clock, struct timespec *t);

static int calls, last_call; /* how many there were; the one that kills, or 0 */
static bool watched;

static void *ask(void *ctx) {
  umem_get_message(ctx);
  return NULL;
}

/* A thread that asks for a message does not wait for the disk. */
static void another_thread_queries(void) {
  pthread_t thread;
  struct timespec until;
  assert_int_equal(pthread_create(&thread, NULL, ask, &host), 0);
  __real_clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 20;
  if (pthread_timedjoin_np(thread, NULL, &until) != 0) fail_msg("umem_get_message waits");
}

/* At this call another file comes to the path of the log; 0 for none. */
static int rename_at;
static char const important[] = "important";
static char another[BACKEND_PATH_SIZE];

static void rename_other(void) {
  rename_at = 0;
  FILE *file = fopen(another, "w");
  assert_non_null(file);
  assert_true(fputs(important, file) >= 0 && !fclose(file));
  assert_int_equal(rename(another, path), 0);
}

static bool fails(Call call) {
  if (++calls == last_call) raise(SIGKILL);
  if (calls == rename_at) rename_other();
  if (watched && call != callocCall) another_thread_queries();
  if (failing != call) return false;
  failing = none;
  errno = with;
  return true;
}

/* A file system without files that have no name, and one without renaming over nothing. */
static bool no_nameless, no_rename;

WRAPPED(long, syscall, (long number, ...)) {
  long word[5];
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < 5; i++) word[i] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_renameat2 && ++calls == rename_at) rename_other();
  if (number != SYS_renameat2 || !no_rename)
    return __real_syscall(number, word[0], word[1], word[2], word[3], word[4]);
  errno = EINVAL;
  return -1;
}

/* Functions that return -1 when they fail. */
#define FAILS(call, type, name, parameters, arguments)                                             \
  WRAP(fails(call), (type)-1, type, name, parameters, arguments)

FAILS(openCall, int, open, (char const *name, int flags, mode_t mode), (name, flags, mode))
WRAPPED(int, openat, (int folder, char const *name, int flags, mode_t mode)) {
  if (no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return fails(openCall) ? -1 : __real_openat(folder, name, flags, mode);
}
FAILS(fstatCall, int, fstat, (int fd, struct stat *about), (fd, about))
FAILS(flockCall, int, flock, (int fd, int operation), (fd, operation))
FAILS(preadCall, ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
/* A disk that is full writes less. */
WRAPPED(ssize_t, pwrite, (int fd, void const *from, size_t n, off_t at)) {
  return fails(pwriteCall) ? (with ? -1 : 0) : __real_pwrite(fd, from, n, at);
}
FAILS(ftruncateCall, int, ftruncate, (int fd, off_t length), (fd, length))
FAILS(fallocateCall, int, fallocate, (int fd, int mode, off_t at, off_t length),
      (fd, mode, at, length))
FAILS(statvfsCall, int, fstatvfs, (int fd, struct statvfs *disk), (fd, disk))
FAILS(linkCall, int, linkat, (int folder, char const *at, int other, char const *name, int flags),
      (folder, at, other, name, flags))
WRAP(fails(mmapCall), MAP_FAILED, void *, mmap,
     (void *at, size_t length, int protection, int flags, int fd, off_t offset),
     (at, length, protection, flags, fd, offset))
FAILS(munmapCall, int, munmap, (void *at, size_t length), (at, length))
FAILS(clockCall, int, clock_gettime, (clockid_t clock, struct timespec *t), (clock, t))
WRAP(fails(callocCall), NULL, void *, calloc, (size_t count, size_t size), (count, size))

/* What is where the log is to be. */
enum { nothing = 0, empty = 1 };
static char before[1 << 18];
static size_t length;

static size_t read_bytes(char *bytes) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t count = fread(bytes, 1, sizeof before, file);
  assert_int_equal(fclose(file), 0);
  return count;
}

/* Nothing, an empty file, or a log of so many bytes that has two records. */
static void prepare(uint64_t bytes) {
  umemLog log;
  unlink(path);
  if (bytes == nothing) return;
  if (bytes == empty) {
    FILE *file = fopen(path, "w");
    assert_true(file && !fclose(file));
  } else {
    options.max_bytes = bytes;
    assert_ok(umemLog_ctor(&log, &host, &options));
    umem_free(&log, umem_alloc(&log, 10));
    end(&log);
  }
  length = read_bytes(before);
}

static bool is_as_before(void) {
  static char now[sizeof before];
  return read_bytes(now) == length && !memcmp(now, before, length);
}

static struct {
  Call call;
  int error;
  umemStatusType type; /* umemOK: that the call fails is no failure */
  char const *text;
  enum { always, ifNew, ifThere, ifLarger } when;
} const refusals[] = {
    {openCall, EMFILE, umemIOError, "cannot open the log", always},
    {fstatCall, EIO, umemIOError, "cannot open the log", always},
    {flockCall, ENOLCK, umemIOError, "cannot lock the log", always},
    {flockCall, EWOULDBLOCK, umemIOError, "another process is writing the log", ifThere},
    {preadCall, EIO, umemIOError, "cannot read the log", always},
    {ftruncateCall, EIO, umemIOError, "cannot write the log", ifLarger},
    {pwriteCall, EIO, umemIOError, "cannot write the log", always},
    {pwriteCall, 0, umemMemoryError, "cannot write the log", always},
    {fallocateCall, ENOSPC, umemMemoryError, "cannot reserve the space of the log", always},
    {fallocateCall, EDQUOT, umemMemoryError, "cannot reserve the space of the log", always},
    {fallocateCall, EIO, umemIOError, "cannot reserve the space of the log", always},
    {fallocateCall, EOPNOTSUPP, umemOK, "", always},
    {statvfsCall, EIO, umemOK, "", always},
    {mmapCall, ENOMEM, umemMemoryError, "cannot map the log", always},
    {linkCall, EACCES, umemIOError, "cannot make the log", ifNew},
    {linkCall, EDQUOT, umemMemoryError, "cannot make the log", ifNew},
    {callocCall, ENOMEM, umemMemoryError, "no memory", always},
};

static void refuse(size_t i, uint64_t bytes) {
  umemLog log;
  bool is_new = bytes == nothing;
  prepare(bytes);
  int files = open_descriptors();
  options.max_bytes = 1 << 16;
  with = refusals[i].error;
  failing = refusals[i].call;
  assert_int_equal(umemLog_ctor(&log, &host, &options), refusals[i].type);
  assert_int_equal(failing, none);
  if (refusals[i].type) {
    expect_failure(&log, refusals[i].type, refusals[i].text);
    assert_int_equal(open_descriptors(), files);
    if (is_new) assert_int_equal(access(path, F_OK), -1); /* no empty file is left behind */
    if (!is_new) assert_true(is_as_before());
  }
  umem_dtor(&log);
  open_small(&log, &host); /* the next one works, as if nothing had been */
  umem_free(&log, umem_alloc(&log, 10));
  end(&log);
  assert_int_equal(open_descriptors(), files);
  read_back();
  assert_int_equal(trace.count, 2);
}

LOG_TEST(each_refusal_is_a_status) {
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    if (refusals[i].when == always || refusals[i].when == ifNew) refuse(i, nothing);
    if (refusals[i].when == always || refusals[i].when == ifThere) {
      refuse(i, empty);
      refuse(i, 1 << 16);
    }
    if (refusals[i].when != ifNew) refuse(i, 1 << 18);
  }
}

/* A signal without SA_RESTART may come at each of them. */
LOG_TEST(interrupted_calls_are_made_again) {
  static Call const interruptible[] = {openCall,      flockCall,     preadCall,  pwriteCall,
                                       ftruncateCall, fallocateCall, statvfsCall};
  for (size_t i = 0; i < sizeof interruptible / sizeof *interruptible; i++)
    for (int is_new = 0; is_new < 2; is_new++) {
      umemLog log;
      if (is_new && interruptible[i] == ftruncateCall) continue;
      prepare(is_new ? nothing : 1 << 18);
      with = EINTR;
      failing = interruptible[i];
      open_small(&log, &host);
      assert_int_equal(failing, none);
      end(&log);
    }
}

/* ---- killed ---- */

static void begin_in_child(void *call) {
  umemLog log;
  calls = 0;
  last_call = *(int *)call;
  EXPECT(umemLog_ctor(&log, &host, &options) == umemOK);
}

/* Whether a child is killed at this call of the constructor. */
static bool dies_at(int call) {
  int status = child_wait(child_start(begin_in_child, &call));
  assert_true(status == -SIGKILL || status == 0);
  return status != 0;
}

/* What a child that was killed has left: the log as it was, or a new one. Whether it is the
 * first. */
static bool read_what_is_left(void) {
  read_back();
  bool is_old = trace.header.process == (uint32_t)getpid();
  assert_int_equal(trace.count, is_old ? 2 : 0);
  assert_int_equal(trace.header.ended != 0, is_old);
  return is_old;
}

/* Whatever the moment, a log that was there is there, or a new one, and a name that was free has
 * none or a whole one. The next one begins. */
LOG_TEST(killed_while_it_begins) {
  static uint64_t const kinds[] = {nothing, empty, 1 << 16, 1 << 17, 1 << 18};
  for (int i = 0; i < 5; i++) {
    int call = 1, old = 0;
    for (bool killed = true; killed; call++) {
      umemLog log;
      prepare(kinds[i]);
      options.max_bytes = 1 << 17;
      killed = dies_at(call);
      if (kinds[i] == nothing ? access(path, F_OK) == 0 : kinds[i] != empty)
        old += read_what_is_left();
      open_small(&log, &host);
      umem_free(&log, umem_alloc(&log, 10));
      end(&log);
      read_back();
      assert_int_equal(trace.count, 2);
    }
    assert_true(call > 8);
    assert_int_equal(old > 5, kinds[i] > empty);
  }
}

/* ---- beside others ---- */

/* Another file that comes to the path at any moment is left alone, whether the log is then begun in
 * the file that was there before, or is refused. A new log has no name, or a hidden one, until it
 * is complete. */
LOG_TEST(another_file_takes_the_name) {
  snprintf(another, sizeof another, "%.*s-new", (int)sizeof another - 5, path);
  for (int is_new = 0; is_new < 3; is_new++)
    for (int fault = 0; fault < 3; fault++) {
      bool renamed = true;
      for (int at = 1; renamed; at++) {
        umemLog log;
        static Call const faults[] = {none, fallocateCall, linkCall};
        prepare(is_new ? nothing : 1 << 16);
        no_nameless = is_new == 2;
        options.max_bytes = 1 << 16;
        with = ENOSPC;
        failing = faults[fault];
        calls = 0;
        rename_at = at;
        umemStatusType status = umemLog_ctor(&log, &host, &options);
        failing = none;
        renamed = rename_at == 0;
        rename_at = 0;
        umem_dtor(&log);
        umem_thread_clear();
        if (renamed) {
          char text[sizeof important] = "";
          FILE *file = fopen(path, "r");
          assert_non_null(file);
          assert_non_null(fgets(text, sizeof text, file));
          fclose(file);
          assert_string_equal(text, important);
        }
        if (!renamed && !fault) assert_int_equal(status, umemOK);
      }
    }
  no_nameless = false;
}

/* The name for the time being does not stay, whatever becomes of the log. */
LOG_TEST(a_file_system_that_has_less_will_do) {
  char folder[BACKEND_PATH_SIZE + 8], whole[BACKEND_PATH_SIZE];
  memcpy(whole, path, sizeof whole);
  snprintf(folder, sizeof folder, "%s-dir", path);
  assert_int_equal(mkdir(folder, 0700), 0);
  snprintf(path, sizeof path, "%.*s/a", (int)sizeof path - 3, folder);
  no_nameless = true;
  for (int i = 0; i < 4; i++) {
    umemLog log;
    no_rename = i % 2;
    if (i < 2) {
      failing = mmapCall;
      with = ENOMEM;
      options.max_bytes = 1 << 16;
      assert_int_equal(umemLog_ctor(&log, &host, &options), umemMemoryError);
      umem_dtor(&log);
      umem_thread_clear();
    } else {
      open_small(&log, &host);
      end(&log);
      read_back();
      assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0); /* it is empty */
    assert_int_equal(mkdir(folder, 0700), 0);
  }
  no_nameless = no_rename = false;
  assert_int_equal(rmdir(folder), 0);
  memcpy(path, whole, sizeof whole);
}

LOG_TEST(nobody_waits_for_the_disk) {
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
  umemClock_start(); /* opens a file once in a process: no call of a log */
  return run_cases(NULL, NULL);
}
