/* open_default.c - umem/default.h: the default contexts. Each case is a process of its own, because
 * what is opened first stays for good. */
#include "open_help.h"
#include "adaptors/log/log_format.h"

#include <sys/resource.h>

/* ---- a process for each case ---- */

/* Runs work in a child with this variable; NULL: without. */
static void in_process(char const *variable, void (*work)(void)) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    alarm(60);
    umemCudaRt_replace(fake_cudart());
    unsetenv("UMEM_DEFAULT");
    if (variable) setenv("UMEM_DEFAULT", variable, 1);
    work();
    exit(0); /* not _exit: leaks are looked for */
  }
  assert_int_equal(child_wait(child), 0);
}

static bool is_of_kind(void *ctx, char const *kind) {
  return ctx && !strcmp(umem_get_device_name(ctx), kind);
}

static bool said(umemStatusType status, char const *message) {
  return umem_thread_status() == status && !strcmp(umem_thread_message(), message);
}

static int64_t gpu_of(void *ctx) {
  umemInfo info = UMEM_INFO_INIT;
  EXPECT(umem_get_info(ctx, &info) == umemOK);
  return info.ordinal;
}

/* ---- what they begin as ---- */

static void without_variable(void) {
  void *ctx = umem_default();
  EXPECT(is_of_kind(ctx, "Host"));
  EXPECT(umem_default() == ctx);
  use(ctx);
  void *gpu = umem_default_of(1);
  EXPECT(is_of_kind(gpu, "Cuda") && gpu_of(gpu) == 1);
  EXPECT(umem_default_of(1) == gpu && umem_default_of(0) != gpu);
  EXPECT(umem_thread_failures() == 0);
  EXPECT(umem_close(ctx) == umemValueError); /* it is the library's */
  use(ctx);
}

static void with_host(void) {
  EXPECT(is_of_kind(umem_default(), "Stats"));
  EXPECT(is_of_kind(umem_default_of(0), "Cuda"));
  setenv("UMEM_DEFAULT", "host:", 1); /* too late for what is open */
  EXPECT(is_of_kind(umem_default(), "Stats"));
}

static void expect_pool_on_both(void) {
  umemPool *pool = umem_default_of(1), *first = umem_default();
  EXPECT(is_of_kind(pool, "Pool") && gpu_of(pool) == 1);
  EXPECT(is_of_kind(first, "Pool") && gpu_of(first) == 0);
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  EXPECT(umemPool_stats(pool, &stats) == umemOK && stats.reserved == 2 << 20);
  EXPECT(umem_thread_failures() == 0);
}

static void with_gpu(void) {
  EXPECT(umem_default() == umem_default_of(0));
  expect_pool_on_both();
}

static void with_gpu_first(void) {
  EXPECT(umem_default_of(0) == umem_default());
  expect_pool_on_both();
}

static void with_gpu_beyond(void) {
  EXPECT(umem_default() == NULL);
  EXPECT(said(
      umemValueError,
      "umem_default: UMEM_DEFAULT is \"cuda:64\": there is no GPU 64: this machine has 0 to 2"));
}

TEST_CASE(they_begin_as_the_variable_says) {
  in_process(NULL, without_variable);
  in_process("", without_variable);
  in_process("stats+host:", with_host);
  in_process("pool+cuda:0?initial=1M", with_gpu);
  in_process("pool+cuda:?initial=1M", with_gpu_first);
  in_process("cuda:64", with_gpu_beyond);
}

/* ---- what goes wrong ---- */

static void with_bad_name(void) {
  for (int i = 1; i < 3; i++) { /* each time */
    EXPECT(!umem_default() && umem_thread_failures() == (uint64_t)(2 * i - 1));
    EXPECT(said(umemValueError, "umem_default: UMEM_DEFAULT is \"stats+host\": \"stats+host\" has "
                                "no \":\", which ends the schemes, as in \"host:\" and "
                                "\"pool+cuda:0\""));
    EXPECT(!umem_default_of(0));
    EXPECT(!strncmp(umem_thread_message(), "umem_default_of: UMEM_DEFAULT is \"stats+host\": \"st",
                    50));
  }
  setenv("UMEM_DEFAULT", "stats+host:", 1);
  EXPECT(is_of_kind(umem_default(), "Stats"));
}

static void with_missing_file(void) {
  EXPECT(!umem_default());
  EXPECT(said(umemIOError,
              "umem_default: UMEM_DEFAULT is \"pool+file:/nonexistent/x\": \"file\": cannot open "
              "\"/nonexistent/x\": No such file or directory"));
}

/* The variable, which names no GPU, is not to blame. */
static void with_missing_gpu_and_host(void) {
  EXPECT(!umem_default_of(9));
  EXPECT(said(umemValueError,
              "umem_default_of: \"cuda:9\": there is no GPU 9: this machine has 0 to 2"));
}

static void with_missing_gpu(void) {
  with_missing_gpu_and_host();
  static int const odd[] = {-1, 64, 1 << 30};
  for (int i = 0; i < 3; i++) {
    EXPECT(!umem_default_of(odd[i]) && umem_thread_status() == umemValueError);
    EXPECT(umem_set_default_of(odd[i], NULL) == umemValueError);
  }
  EXPECT(said(umemValueError, "umem_set_default_of: device 1073741824: right would be 0 to 63"));
}

static void with_missing_gpu_of_pool(void) {
  EXPECT(!umem_default_of(9));
  EXPECT(said(umemValueError,
              "umem_default_of: UMEM_DEFAULT is \"pool+cuda:0\": \"cuda\": there is no GPU 9: this "
              "machine has 0 to 2"));
}

TEST_CASE(what_goes_wrong_is_told) {
  in_process("stats+host", with_bad_name);
  in_process("pool+file:/nonexistent/x", with_missing_file);
  in_process(NULL, with_missing_gpu);
  in_process("stats+host:", with_missing_gpu_and_host);
  in_process("file:/nonexistent/x", with_missing_gpu_and_host);
  in_process("pool+cuda:0", with_missing_gpu_of_pool);
}

/* ---- those of the program ---- */

static void set_and_unset(void) {
  umemHost one, none = {.super = {.vptr = NULL}};
  EXPECT(umemHost_ctor(&one) == umemOK);
  EXPECT(umem_set_default(&one) == umemOK && umem_default() == &one);
  EXPECT(umem_set_default_of(63, &one) == umemOK && umem_default_of(63) == &one);
  EXPECT(umem_set_default(&none) == umemValueError && umem_default() == &one);
  EXPECT(umem_set_default_of(63, &none) == umemValueError && umem_default_of(63) == &one);
  EXPECT(umem_set_default(NULL) == umemOK);
  void *own = umem_default();
  EXPECT(is_of_kind(own, "Stats") && own != &one);
  EXPECT(umem_set_default(&one) == umemOK && umem_default() == &one);
  EXPECT(umem_set_default(NULL) == umemOK && umem_default() == own); /* still there */
  EXPECT(umem_set_default_of(63, NULL) == umemOK && !umem_default_of(63));
  umem_dtor(&one);
}

/* A default that the program sets needs no variable that is right. */
static void set_before_a_bad_name(void) {
  SCOPED(umem_dtor) umemHost one;
  EXPECT(umemHost_ctor(&one) == umemOK && umem_set_default(&one) == umemOK);
  EXPECT(umem_default() == &one && umem_thread_failures() == 0);
}

static void *ask_in_thread(void *unused UNUSED) {
  EXPECT(!umem_thread_default());
  return umem_default();
}

static void set_for_a_thread(void) {
  umemHost one, other, none = {.super = {.vptr = NULL}};
  pthread_t thread;
  void *seen_there;
  EXPECT(umemHost_ctor(&one) == umemOK && umemHost_ctor(&other) == umemOK);
  EXPECT(!umem_thread_default() && umem_set_thread_default(&one) == umemOK);
  EXPECT(umem_default() == &one && umem_thread_default() == &one);
  EXPECT(umem_thread_failures() == 0); /* the variable is not read */
  EXPECT(umem_set_default(&other) == umemOK && umem_default() == &one);
  EXPECT(umem_set_thread_default(&none) == umemValueError && umem_default() == &one);
  EXPECT(pthread_create(&thread, NULL, ask_in_thread, NULL) == 0);
  EXPECT(pthread_join(thread, &seen_there) == 0 && seen_there == &other);
  EXPECT(umem_set_thread_default(NULL) == umemOK && umem_default() == &other);
  DESTRUCT(&one, &other);
}

TEST_CASE(a_program_sets_its_own) {
  in_process("nothing:", set_for_a_thread);
  in_process("stats+host:", set_and_unset);
  in_process("nothing:", set_before_a_bad_name);
}

/* ---- threads and fork ---- */

static void *seen[worker_count], *first;

static void *ask(void *number) {
  void *mine = umem_default();
  EXPECT(mine != NULL && umem_thread_failures() == 0);
  seen[(uintptr_t)number] = mine;
  for (int i = 0; i < 1000; i++) {
    EXPECT(umem_default_of(i % 3) != NULL);
    void *now = umem_default_of(5);
    EXPECT(now == first || now == mine);
    EXPECT(umem_set_default_of(5, mine) == umemOK);
  }
  return number;
}

/* A file has one writer: a second one that opens it is refused. */
static void ask_in_threads(void) {
  first = umem_default_of(0);
  EXPECT(umem_set_default_of(5, first) == umemOK);
  in_threads(ask);
  for (int i = 1; i < worker_count; i++) EXPECT(seen[i] == seen[0]);
}

static int opening; /* atomic: how many are being opened by the scheme below */
static int go_on;   /* atomic */
static _Thread_local bool opened_here;

CONSTRUCTOR(open_slowly) {
  struct timespec const nap = {0, 1000000};
  __atomic_fetch_add(&opening, 1, __ATOMIC_RELEASE);
  opened_here = true;
  while (!__atomic_load_n(&go_on, __ATOMIC_ACQUIRE)) nanosleep(&nap, NULL);
  return umemHost_ctor(ctx);
}

CONSTRUCTOR(open_again) { return umem_default() ? umemHost_ctor(ctx) : umem_thread_status(); }

static void register_schemes(void) {
  static umemScheme const slow = {SCHEME_OF("slow", umemHost, open_slowly)},
                          again = {SCHEME_OF("again", umemHost, open_again)};
  EXPECT(umem_register_scheme(&slow) == umemOK && umem_register_scheme(&again) == umemOK);
}

static void *open_default(void *result) {
  *(void **)result = umem_default();
  return NULL;
}

/* All ask while the first one is opening it: it is opened once, and the others sleep until then,
 * without waking up to look. */
static void *ask_for_slow_one(void *number) {
  struct rusage before, after;
  EXPECT(getrusage(RUSAGE_THREAD, &before) == 0);
  seen[(uintptr_t)number] = umem_default();
  EXPECT(getrusage(RUSAGE_THREAD, &after) == 0);
  EXPECT(opened_here || after.ru_nvcsw - before.ru_nvcsw < 30);
  return number;
}

static void *let_it_go_on(void *unused) {
  struct timespec const nap = {0, 50000000}; /* so long that the others have come, most times */
  while (!__atomic_load_n(&opening, __ATOMIC_ACQUIRE)) sched_yield();
  nanosleep(&nap, NULL);
  __atomic_store_n(&go_on, 1, __ATOMIC_RELEASE);
  return unused;
}

static void ask_for_slow_one_in_threads(void) {
  pthread_t other;
  register_schemes();
  EXPECT(pthread_create(&other, NULL, let_it_go_on, NULL) == 0);
  in_threads(ask_for_slow_one);
  EXPECT(pthread_join(other, NULL) == 0);
  EXPECT(opening == 1 && is_of_kind(seen[0], "Host"));
  for (int i = 1; i < worker_count; i++) EXPECT(seen[i] == seen[0]);
}

/* While another thread is opening the default, which that thread never does in the child. */
static void fork_meanwhile(void) {
  struct timespec const nap = {0, 1000000};
  void *in_parent = NULL;
  pthread_t thread;
  register_schemes();
  EXPECT(pthread_create(&thread, NULL, open_default, &in_parent) == 0);
  while (!__atomic_load_n(&opening, __ATOMIC_ACQUIRE)) nanosleep(&nap, NULL);
  pid_t child = fork();
  EXPECT(child >= 0);
  if (!child) {
    alarm(60);
    go_on = 1;
    EXPECT(is_of_kind(umem_default(), "Host"));
    _exit(0);
  }
  EXPECT(child_wait(child) == 0);
  __atomic_store_n(&go_on, 1, __ATOMIC_RELEASE);
  EXPECT(pthread_join(thread, NULL) == 0 && is_of_kind(in_parent, "Host"));
  child = fork(); /* what is open is there in a child */
  EXPECT(child >= 0);
  if (!child) {
    EXPECT(umem_default() == in_parent);
    use(in_parent);
    _exit(0);
  }
  EXPECT(child_wait(child) == 0);
}

static void ask_while_opening(void) {
  register_schemes();
  EXPECT(!umem_default());
  EXPECT(said(umemValueError, "umem_default: UMEM_DEFAULT is \"again:\": the default context is "
                              "being opened by this thread"));
}

static void find_file(void **state UNUSED) { assert_true(backend_temp_file(scratch)); }

static void remove_file(void **state UNUSED) { assert_int_equal(remove(scratch), 0); }

#define FILE_TEST(name) TEST_CASE_WITH(name, find_file, remove_file)

FILE_TEST(threads_get_the_same) {
  char text[BACKEND_PATH_SIZE + 40];
  snprintf(text, sizeof text, "stats+file:%s?mode=w+", scratch);
  in_process(text, ask_in_threads);
  in_process("slow:", ask_for_slow_one_in_threads);
}

TEST_CASE(a_child_of_fork_opens_its_own) { in_process("slow:", fork_meanwhile); }

TEST_CASE(a_scheme_may_not_ask_for_it) { in_process("again:", ask_while_opening); }

/* ---- the end ---- */

/* At the end of the process CUDA may be gone: a call of it crashes here. */
static void log_a_gpu(void) {
  void *gpu = umem_default();
  EXPECT(is_of_kind(gpu, "Log") && umem_default_of(0) == gpu);
  use(gpu);
  static umemCudaRt const gone;
  umemCudaRt_replace(&gone);
}

FILE_TEST(a_log_of_a_gpu_is_completed) {
  char text[BACKEND_PATH_SIZE + 40];
  umemLogHeader header;
  snprintf(text, sizeof text, "log+debug+track+cuda:0?file=%s", scratch);
  in_process(text, log_a_gpu);
  FILE *file = fopen(scratch, "rb");
  assert_non_null(file);
  assert_int_equal(fread(&header, sizeof header, 1, file), 1);
  fclose(file);
  assert_true(header.ended && header.contexts == 1 && header.next == 3);
}
