/* log_process.c - umem/log.h when the program is killed, forks, or may not have the disk. */
#include "log_help.h"

#include "settings.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* In a child: ends it with a status that fails the test. */
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) _exit(__LINE__ % 200 + 10);                                                  \
  } while (0)

static void expect_exit(pid_t child, int status) {
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  if (WEXITSTATUS(how) != status) fail_msg("the child ended with %d", WEXITSTATUS(how));
}

static umemLog shared;

/* ---- killed ---- */

static void *never_end(void *number) {
  size_t size = ((size_t)number + 1) << 16;
  for (;;) {
    uintptr_t adr = umem_alloc(&shared, size);
    CHECK(adr && !umem_set(&shared, adr, 7, 100));
    umem_free(&shared, adr);
  }
  return NULL;
}

static void run_until_killed(int reported) {
  pthread_t thread;
  CHECK(!umemLog_ctor(&shared, &host, &options));
  for (uintptr_t i = 1; i <= 1000; i++) CHECK(umem_alloc(&shared, i));
  CHECK(write(reported, "x", 1) == 1);
  for (uintptr_t i = 0; i < worker_count; i++)
    CHECK(!pthread_create(&thread, NULL, never_end, (void *)i));
  for (;;) pause();
}

/* All that was recorded before is there; of what was going on at most one record of each thread is
 * not. */
LOG_TEST(nothing_is_lost_when_killed) {
  for (int round = 0; round < 10; round++) {
    int reported[2], how;
    char byte;
    assert_int_equal(pipe(reported), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) run_until_killed(reported[1]);
    assert_int_equal(read(reported[0], &byte, 1), 1);
    usleep((useconds_t)(300 * round));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    close(reported[0]), close(reported[1]);
    read_back();
    assert_int_equal(trace.header.ended, 0);
    assert_int_equal(trace.header.process, child);
    assert_true(trace.incomplete <= worker_count);
    assert_int_equal(trace.count + trace.incomplete + trace.overwritten, trace.header.next);
    if (trace.overwritten) continue;
    assert_true(trace.count >= 1000);
    for (size_t i = 0; i < 1000; i++) {
      assert_int_equal(trace.records[i].kind, umemLogAlloc);
      assert_int_equal(trace.records[i].size, i + 1);
      assert_int_equal(trace.records[i].thread, child);
    }
  }
  assert_ok(umemLog_ctor(&shared, &host, &options)); /* its lock has gone with it */
  end(&shared);
}

static void die_in_copy(umemVirtual *ctx, uintptr_t adr, umemVirtual *that, uintptr_t src,
                        size_t nbytes) {
  (void)ctx, (void)adr, (void)that, (void)src, (void)nbytes;
  raise(SIGKILL);
}
static uintptr_t any_address(umemVirtual *ctx, size_t nbytes) {
  (void)ctx, (void)nbytes;
  return 4096;
}

/* The copy that a program dies in has its record. */
LOG_TEST(the_last_copy_is_there) {
  static struct umemVtbl const methods = {.alloc = any_address, .copy_from = die_in_copy};
  int how;
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    umemVirtual deadly;
    char bytes[50] = "";
    umemVirtual_ctor(&deadly, &host);
    deadly.vptr = &methods;
    CHECK(!umemLog_ctor(&shared, &deadly, &options));
    CHECK(umem_alloc(&shared, 100));
    umem_copy_from(&shared, 4100, &host, (uintptr_t)bytes, sizeof bytes);
    _exit(1);
  }
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how));
  read_back();
  assert_int_equal(trace.count, 2);
  assert_int_equal(trace.records[1].kind, umemLogCopy);
  assert_int_equal(trace.records[1].flags, umemLogUnfinished);
  assert_int_equal(trace.records[1].size, 50);
  assert_true(trace.records[1].other_adr == 4100);
}

/* Wherever the constructor is when it happens, the next one opens the file. */
LOG_TEST(it_begins_again_after_a_kill) {
  for (int round = 0; round < 40; round++) {
    int reported[2], how;
    char byte;
    assert_int_equal(pipe(reported), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
      CHECK(write(reported[1], "x", 1) == 1);
      CHECK(!umemLog_ctor(&shared, &host, &options));
      for (;;) pause();
    }
    assert_int_equal(read(reported[0], &byte, 1), 1);
    usleep((useconds_t)(250 * round));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    close(reported[0]), close(reported[1]);
    assert_ok(umemLog_ctor(&shared, &host, &options));
    end(&shared);
    unlink(path);
  }
}

/* ---- children of fork ---- */

LOG_TEST(a_child_writes_nothing) {
  assert_ok(umemLog_ctor(&shared, &host, &options));
  uintptr_t mine = umem_alloc(&shared, 10);
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    char other[BACKEND_PATH_SIZE];
    umemLog own;
    uintptr_t adr = umem_realloc(&shared, umem_calloc(&shared, 1, 20), 20, 200);
    CHECK(adr && !umem_set(&shared, adr, 1, 20) && !umem_copy_to(&shared, adr, &host, adr + 50, 9));
    umem_free(&shared, adr);
    CHECK(umemLog_ctor(&own, &host, &options) == umemIOError);
    CHECK(strstr(umem_get_message(&own), "another process is writing the log"));
    CHECK(backend_temp_file(other));
    options.filename = other;
    CHECK(!umemLog_ctor(&own, &host, &options));
    umem_free(&own, umem_alloc(&own, 30));
    umem_dtor(&own);
    CHECK(trace_read(&trace, other) && trace.count == 2);
    CHECK(trace.records[0].thread == (uint32_t)getpid());
    trace_close(&trace);
    unlink(other);
    umem_dtor(&shared);
    _exit(umem_is_ok(&shared) ? 0 : 1);
  }
  expect_exit(child, 0);
  umem_free(&shared, mine);
  read_back();
  assert_int_equal(trace.count, 2);
  assert_int_equal(trace.header.ended, 0);
  assert_int_equal(trace.contexts[1].ended, 0);
  end(&shared);
}

/* Processes that have the same options, as by UMEM_DEFAULT, write at the same time. */
LOG_TEST(each_process_has_a_log_of_its_own) {
  char other[BACKEND_PATH_SIZE + 16];
  options.each_process = 1;
  assert_ok(umemLog_ctor(&shared, &host, &options));
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    umemLog own;
    CHECK(!umemLog_ctor(&own, &host, &options));
    umem_free(&own, umem_alloc(&own, 30));
    umem_dtor(&own);
    _exit(0);
  }
  expect_exit(child, 0);
  snprintf(other, sizeof other, "%s.%ld", path, (long)child);
  assert_true(trace_read(&trace, other));
  assert_int_equal(trace.count, 2);
  assert_int_equal(trace.header.process, child);
  trace_close(&trace);
  unlink(other);
  end(&shared);
  snprintf(other, sizeof other, "%s.%ld", path, (long)getpid());
  assert_true(trace_read(&trace, other));
  assert_int_equal(trace.header.process, getpid());
  unlink(other);
  char longest[5000];
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = 0;
  options.filename = longest;
  assert_int_equal(umemLog_ctor(&shared, &host, &options), umemValueError);
  assert_non_null(strstr(umem_get_message(&shared), "too long"));
}

/* A child that goes on with the descriptor does not keep the parent from beginning anew. */
LOG_TEST(a_child_holds_no_lock) {
  int wait_for[2];
  char byte;
  assert_int_equal(pipe(wait_for), 0);
  assert_ok(umemLog_ctor(&shared, &host, &options));
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    close(wait_for[1]);
    _exit(read(wait_for[0], &byte, 1) == 0 ? 0 : 1);
  }
  end(&shared);
  assert_ok(umemLog_ctor(&shared, &host, &options));
  end(&shared);
  close(wait_for[0]), close(wait_for[1]);
  expect_exit(child, 0);
}

/* ---- the disk ---- */

LOG_TEST(the_limit_of_file_size_is_a_status) {
  struct stat about;
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    struct rlimit const limit = {100000, 100000};
    CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
    CHECK(umemLog_ctor(&shared, &host, &options) == umemMemoryError);
    CHECK(strstr(umem_get_message(&shared), "RLIMIT_FSIZE"));
    CHECK(!unlink(path) && umemLog_ctor(&shared, &host, &options) == umemMemoryError);
    CHECK(access(path, F_OK) != 0); /* a new one is not left behind */
    options.max_bytes = 100000;     /* a smaller one goes */
    CHECK(!umemLog_ctor(&shared, &host, &options));
    for (int i = 0; i < 2000; i++) umem_free(&shared, umem_alloc(&shared, 1));
    umem_dtor(&shared);
    _exit(0);
  }
  expect_exit(child, 0);
  assert_int_equal(stat(path, &about), 0);
  assert_true(about.st_size <= 100000);
  read_back();
  assert_int_equal(trace.count, 512);
}

LOG_TEST(a_full_disk_is_a_status) {
  struct stat about;
  options.max_bytes = (uint64_t)1 << 61;
  assert_int_equal(umemLog_ctor(&shared, &host, &options), umemMemoryError);
  expect_failure(&shared, umemMemoryError, "cannot reserve the space of the log");
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_size, 0);
}

/* Nobody may write to a program that runs. */
LOG_TEST(an_unwritable_file_is_a_status) {
  if (setting_qemu()) skip(); /* the program that the system runs is qemu */
  options.filename = "/proc/self/exe";
  assert_int_equal(umemLog_ctor(&shared, &host, &options), umemIOError);
  expect_failure(&shared, umemIOError, "cannot open the log \"/proc/self/exe\": Text file busy");
}

int main(void) { return run_cases(NULL, NULL); }
