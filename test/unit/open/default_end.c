/* default_end.c - what becomes of the default contexts when the process ends: linked with the
 * static library, and with the shared one. Each case is a process of its own. */

#include "child.h"
#include "temporary.h"
#include "trace.h"

static char path[256], log_of_host[300], said[4096];
static Trace trace;

/* ---- a process for each case ---- */

/* Runs work in a child with this variable, and exit(0) after it. How it ended, as of child_wait;
 * what it wrote to its standard error output is in said. */
static int run(char const *variable, void (*work)(void)) {
  int ends[2];
  size_t used = 0;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    alarm(60);
    EXPECT(dup2(ends[1], STDERR_FILENO) >= 0 && !close(ends[0]) && !close(ends[1]));
    EXPECT(!setenv(UMEM_DEFAULT, variable, 1));
    work();
    exit(0);
  }
  close(ends[1]);
  for (ssize_t n; used < sizeof said - 1; used += (size_t)n)
    if ((n = read(ends[0], said + used, sizeof said - 1 - used)) <= 0) break;
  said[used] = 0;
  close(ends[0]);
  return child_wait(child);
}

/* It ends with 0. */
static void run_well(char const *variable, void (*work)(void)) {
  assert_int_equal(run(variable, work), 0);
}

static void read_log(void) {
  trace_close(&trace);
  if (!trace_read(&trace, path)) fail_msg("%s", trace.why);
}

/* The log is complete, and has so many records. */
static void expect_log(size_t count) {
  read_log();
  assert_true(trace.header.ended && trace.contexts[1].ended);
  assert_int_equal(trace.incomplete, 0);
  assert_int_equal(trace.count, count);
}

static void set_up(void **state UNUSED) {
  temporary_name(path, sizeof path);
  snprintf(log_of_host, sizeof log_of_host, "log+host:?file=%s", path);
}

static void tear_down(void **state UNUSED) {
  trace_close(&trace);
  unlink(path);
}

/* ---- ends of many kinds ---- */

static void allocate_and_free(void) {
  void *ctx = umem_default();
  EXPECT(ctx);
  umem_free(ctx, umem_alloc(ctx, 100));
}

static void leak(void) { EXPECT(umem_alloc(umem_default(), 30) && umem_alloc(umem_default(), 40)); }

static void and_exit_at_once(void) {
  allocate_and_free();
  _exit(0);
}

static void and_be_killed(void) {
  allocate_and_free();
  raise(SIGKILL);
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

TEST(a_log_is_completed_by_exit_alone) {
  run_well(log_of_host, allocate_and_free);
  expect_log(2);
  assert_string_equal(said, "");
  run_well(log_of_host, and_exit_at_once);
  read_log();
  assert_true(!trace.header.ended && trace.count == 2);
  assert_int_equal(run(log_of_host, and_be_killed), -SIGKILL);
  read_log();
  assert_true(!trace.header.ended && trace.count == 2);
}

static void *exit_here(void *unused UNUSED) { exit(0); }

static void exit_in_thread(void) {
  pthread_t thread;
  allocate_and_free();
  EXPECT(!pthread_create(&thread, NULL, exit_here, NULL));
  for (;;) pause();
}

static void exit_in_hook(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  exit(0);
}

/* In the middle of a call, which has failed. */
static void exit_in_call(void) {
  allocate_and_free();
  umem_set_failure_hook(exit_in_hook, NULL);
  umem_set(umem_default(), 0, 1, 1);
}

/* In a context that keeps a table under a lock. */
static void exit_in_free(void) {
  uintptr_t adr = umem_alloc(umem_default(), 10);
  umem_set_failure_hook(exit_in_hook, NULL);
  umem_free(umem_default(), adr + 1);
}

TEST(exit_is_called_from_anywhere) {
  run_well(log_of_host, exit_in_thread);
  expect_log(2);
  run_well(log_of_host, exit_in_call);
  expect_log(2);
  run_well("track+host:", exit_in_free);
  assert_non_null(strstr(said, "1 block, 10 bytes in all, was not freed"));
  run_well("debug+host:", exit_in_free);
}

/* ---- what is found ---- */

static unsigned hooked;
static void count_failures(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  hooked++;
}

static void expect_no_call(void) { EXPECT(!hooked); }

/* What the hook uses may be gone. */
static void leak_with_hook(void) {
  EXPECT(!atexit(expect_no_call));
  umem_set_failure_hook(count_failures, NULL);
  leak();
}

static void overflow(void) {
  char *bytes = (char *)umem_alloc(umem_default(), 10);
  EXPECT(bytes);
  bytes[10] = 1;
}

TEST(leaks_are_reported) {
  run_well("track+host:", allocate_and_free);
  assert_string_equal(said, "");
  run_well("track+host:", leak);
  char const begins[] =
      "umem: at the end of a default context: 2 blocks, 70 bytes in all, were not "
      "freed: 30 at 0x";
  assert_memory_equal(said, begins, sizeof begins - 1);
  assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
  run_well("track+host:", leak_with_hook);
  assert_memory_equal(said, begins, sizeof begins - 1);
  run_well("stats+track+pool+host:", leak);
  assert_memory_equal(said, begins, sizeof begins - 1);
}

TEST(wrong_writes_are_reported) {
  run_well("debug+host:", leak);
  assert_string_equal(said, "");
  run_well("debug+host:", overflow);
  assert_non_null(strstr(said, "umem: at the end of a default context: "));
  assert_non_null(strstr(said, "past its end: 0x01 instead of 0xfd"));
}

/* ---- where it is reported ---- */

static void leak_unseen(void) {
  int ends[2];
  leak();
  EXPECT(!pipe(ends) && !close(ends[0]) && dup2(ends[1], STDERR_FILENO) >= 0);
}

static void leak_to_nothing(void) {
  leak();
  EXPECT(!close(STDERR_FILENO));
}

/* A file of data has got the number. */
static void leak_to_data(void) {
  umemFile file;
  leak();
  EXPECT(!close(STDERR_FILENO) && !umemFile_ctor(&file, path, "w"));
  EXPECT(fcntl(STDERR_FILENO, F_GETFD) >= 0); /* this is it */
}

static void leak_to_file(void) {
  leak();
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  EXPECT(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
}

TEST(a_report_does_no_harm) {
  struct stat about;
  run_well("track+host:", leak_unseen);
  run_well("track+host:", leak_to_nothing);
  run_well("track+host:", leak_to_data);
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_size, 0);
  run_well("track+host:", leak_to_file);
  assert_int_equal(stat(path, &about), 0);
  assert_true(about.st_size > 50);
}

/* ---- who still uses it ---- */

static uintptr_t kept;
static void free_at_exit(void) { umem_free(umem_default(), kept); }

static void free_later(void) {
  EXPECT(!atexit(free_at_exit));
  allocate_and_free();
  kept = umem_alloc(umem_default(), 50);
}

/* The constructor of a program runs after those of libraries; its destructor before theirs. */
__attribute__((destructor)) static void free_last(void) {
  if (kept == 0 || !getenv("UMEM_TEST_LAST")) return;
  umem_free(umem_default(), kept);
}

static void free_very_late(void) {
  EXPECT(!setenv("UMEM_TEST_LAST", "1", 1));
  allocate_and_free();
  kept = umem_alloc(umem_default(), 50);
}

static void use_in_layers(void) {
  static umemPool pool;
  static umemLog log;
  umemLogOptions options = {.size = sizeof options, .filename = path};
  EXPECT(!umemPool_ctor(&pool, umem_default(), NULL));
  EXPECT(umem_alloc(&pool, 10)); /* which takes a chunk */
  EXPECT(!umemLog_ctor(&log, umem_default(), &options));
}

TEST(those_who_end_later_may_use_it) {
  char name[320];
  run_well(log_of_host, free_later);
  expect_log(4);
  run_well("track+host:", free_later);
  assert_string_equal(said, "");
  snprintf(name, sizeof name, "track+%s", log_of_host);
  run_well(name, free_very_late);
  read_log();
  assert_true(trace.header.ended && trace.count == 4 && !trace.incomplete);
  run_well(log_of_host, use_in_layers); /* another log of the file has not ended */
  read_log();
  assert_true(!trace.header.ended && trace.contexts[1].ended && !trace.contexts[2].ended);
}

enum { threads = 4 };
static void *allocate_for_ever(void *unused) {
  for (;;) umem_free(umem_default(), umem_alloc(umem_default(), 10));
  return unused;
}

static void exit_beside_threads(void) {
  pthread_t thread;
  allocate_and_free();
  for (int i = 0; i < threads; i++) EXPECT(!pthread_create(&thread, NULL, allocate_for_ever, NULL));
  usleep(2000);
}

/* What they record until the end is in the log, and that is complete. */
TEST(threads_may_go_on) {
  for (int i = 0; i < 5; i++) {
    run_well(log_of_host, exit_beside_threads);
    read_log();
    assert_true(trace.header.ended != 0);
    assert_true(trace.count >= 2 && trace.incomplete <= threads);
    run_well("track+debug+host:", exit_beside_threads);
  }
}

/* ---- children ---- */

static void exit_in_child(void) {
  allocate_and_free();
  uintptr_t mine = umem_alloc(umem_default(), 20);
  pid_t child = fork();
  if (!child) exit(0);
  EXPECT(child_wait(child) == 0);
  EXPECT(trace_read(&trace, path) && !trace.header.ended && !trace.contexts[1].ended);
  umem_free(umem_default(), mine);
}

static void leave_to_child(void) {
  leak();
  if (fork() == 0) exit(0);
  _exit(0);
}

static void open_in_child(void) {
  pid_t child = fork();
  if (!child) {
    allocate_and_free();
    exit(0);
  }
  EXPECT(child_wait(child) == 0);
}

TEST(a_child_ends_only_its_own) {
  run_well(log_of_host, exit_in_child);
  expect_log(4);
  run_well("track+host:", leave_to_child);
  assert_string_equal(said, "");
  run_well(log_of_host, open_in_child);
  expect_log(2);
}
