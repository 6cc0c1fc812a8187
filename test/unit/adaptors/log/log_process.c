/* log_process.c - umem/log.h when the program is killed, forks, or may not have the disk. */
#include "log_help.h"

#include "settings.h"

#include <sys/resource.h>

static umemLog shared;

/* ---- killed ---- */

static void *never_end(void *number) {
  size_t size = ((size_t)number + 1) << 16;
  for (;;) {
    uintptr_t adr = umem_alloc(&shared, size);
    EXPECT(adr && !umem_set(&shared, adr, 7, 100));
    umem_free(&shared, adr);
  }
  return NULL;
}

static int reported[2]; /* a pipe: a child writes to it when it is ready to be killed */

/* Kills a child that runs work so many microseconds after it is ready. */
static pid_t start_and_kill(void (*run)(void *), int microseconds) {
  char byte;
  assert_int_equal(pipe(reported), 0);
  pid_t child = child_start(run, NULL);
  assert_int_equal(read(reported[0], &byte, 1), 1);
  usleep((useconds_t)microseconds);
  child_kill(child);
  close(reported[0]), close(reported[1]);
  return child;
}

static void run_until_killed(void *unused UNUSED) {
  pthread_t thread;
  EXPECT(!umemLog_ctor(&shared, &host, &options));
  for (uintptr_t i = 1; i <= 1000; i++) EXPECT(umem_alloc(&shared, i));
  EXPECT(write(reported[1], "x", 1) == 1);
  for (uintptr_t i = 0; i < worker_count; i++)
    EXPECT(!pthread_create(&thread, NULL, never_end, (void *)i));
  for (;;) pause();
}

/* All that was recorded before is there; of what was going on at most one record of each thread is
 * not. */
LOG_TEST(nothing_is_lost_when_killed) {
  for (int round = 0; round < 10; round++) {
    pid_t child = start_and_kill(run_until_killed, 300 * round);
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

static void die_in_copy(umemVirtual *ctx UNUSED, uintptr_t adr UNUSED, umemVirtual *that UNUSED,
                        uintptr_t src UNUSED, size_t nbytes UNUSED) {
  raise(SIGKILL);
}
static uintptr_t any_address(umemVirtual *ctx UNUSED, size_t nbytes UNUSED) { return 4096; }

static void copy_and_die(void *unused UNUSED) {
  static struct umemVtbl const methods = {.alloc = any_address, .copy_from = die_in_copy};
  umemVirtual deadly;
  char bytes[50] = "";
  umemVirtual_ctor(&deadly, &host);
  deadly.vptr = &methods;
  EXPECT(!umemLog_ctor(&shared, &deadly, &options));
  EXPECT(umem_alloc(&shared, 100));
  umem_copy_from(&shared, 4100, &host, (uintptr_t)bytes, sizeof bytes);
}

/* The copy that a program dies in has its record. */
LOG_TEST(the_last_copy_is_there) {
  assert_int_equal(child_wait(child_start(copy_and_die, NULL)), -SIGKILL);
  read_back();
  assert_int_equal(trace.count, 2);
  assert_int_equal(trace.records[1].kind, umemLogCopy);
  assert_int_equal(trace.records[1].flags, umemLogUnfinished);
  assert_int_equal(trace.records[1].size, 50);
  assert_true(trace.records[1].other_adr == 4100);
}

static void begin_until_killed(void *unused UNUSED) {
  EXPECT(write(reported[1], "x", 1) == 1);
  EXPECT(!umemLog_ctor(&shared, &host, &options));
  for (;;) pause();
}

/* Wherever the constructor is when it happens, the next one opens the file. */
LOG_TEST(it_begins_again_after_a_kill) {
  for (int round = 0; round < 40; round++) {
    start_and_kill(begin_until_killed, 250 * round);
    assert_ok(umemLog_ctor(&shared, &host, &options));
    end(&shared);
    unlink(path);
  }
}

static void use_in_child(void *unused UNUSED) {
  char other[BACKEND_PATH_SIZE];
  umemLog own;
  uintptr_t adr = umem_realloc(&shared, umem_calloc(&shared, 1, 20), 20, 200);
  EXPECT(adr && !umem_set(&shared, adr, 1, 20) && !umem_copy_to(&shared, adr, &host, adr + 50, 9));
  umem_free(&shared, adr);
  EXPECT(umemLog_ctor(&own, &host, &options) == umemIOError);
  EXPECT(strstr(umem_get_message(&own), "another process is writing the log"));
  EXPECT(backend_temp_file(other));
  options.filename = other;
  EXPECT(!umemLog_ctor(&own, &host, &options));
  umem_free(&own, umem_alloc(&own, 30));
  umem_dtor(&own);
  EXPECT(trace_read(&trace, other) && trace.count == 2);
  EXPECT(trace.records[0].thread == (uint32_t)getpid());
  trace_close(&trace);
  unlink(other);
  umem_dtor(&shared);
  EXPECT(umem_is_ok(&shared));
}

/* ---- children of fork ---- */

LOG_TEST(a_child_writes_nothing) {
  assert_ok(umemLog_ctor(&shared, &host, &options));
  uintptr_t mine = umem_alloc(&shared, 10);
  assert_true(child_run(use_in_child, NULL));
  umem_free(&shared, mine);
  read_back();
  assert_int_equal(trace.count, 2);
  assert_int_equal(trace.header.ended, 0);
  assert_int_equal(trace.contexts[1].ended, 0);
  end(&shared);
}

static void log_in_child(void *unused UNUSED) {
  SCOPED(umem_dtor) umemLog own;
  EXPECT(!umemLog_ctor(&own, &host, &options));
  umem_free(&own, umem_alloc(&own, 30));
}

/* Processes that have the same options, as by UMEM_DEFAULT, write at the same time. */
LOG_TEST(each_process_has_a_log_of_its_own) {
  char other[BACKEND_PATH_SIZE + 16];
  options.each_process = 1;
  assert_ok(umemLog_ctor(&shared, &host, &options));
  pid_t child = child_start(log_in_child, NULL);
  assert_int_equal(child_wait(child), 0);
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

static void wait_for_the_end(void *ends) {
  char byte;
  close(((int *)ends)[1]);
  EXPECT(read(((int *)ends)[0], &byte, 1) == 0);
}

/* A child that goes on with the descriptor does not keep the parent from beginning anew. */
LOG_TEST(a_child_holds_no_lock) {
  int wait_for[2];
  assert_int_equal(pipe(wait_for), 0);
  assert_ok(umemLog_ctor(&shared, &host, &options));
  pid_t child = child_start(wait_for_the_end, wait_for);
  end(&shared);
  assert_ok(umemLog_ctor(&shared, &host, &options));
  end(&shared);
  close(wait_for[0]), close(wait_for[1]);
  assert_int_equal(child_wait(child), 0);
}

static void begin_below_the_limit(void *unused UNUSED) {
  struct rlimit const limit = {100000, 100000};
  EXPECT(!setrlimit(RLIMIT_FSIZE, &limit));
  EXPECT(umemLog_ctor(&shared, &host, &options) == umemMemoryError);
  EXPECT(strstr(umem_get_message(&shared), "RLIMIT_FSIZE"));
  EXPECT(!unlink(path) && umemLog_ctor(&shared, &host, &options) == umemMemoryError);
  EXPECT(access(path, F_OK) != 0); /* a new one is not left behind */
  options.max_bytes = 100000;      /* a smaller one goes */
  EXPECT(!umemLog_ctor(&shared, &host, &options));
  for (int i = 0; i < 2000; i++) umem_free(&shared, umem_alloc(&shared, 1));
  umem_dtor(&shared);
}

/* ---- the disk ---- */

LOG_TEST(the_limit_of_file_size_is_a_status) {
  struct stat about;
  assert_true(child_run(begin_below_the_limit, NULL));
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
