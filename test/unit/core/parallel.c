/* parallel.c - core/threads.h and umem/threads.h: who does the pieces, when helpers come and go,
 * and what a program may rely on.
 *
 * To test how a process exits, this program starts itself with the name of a deed. */
#include "parallel_help.h"

#include <spawn.h>

#include <umem/base.h>

#include "core/status.h"
#include "base/thread.h"
#include "core/threads.h"

extern char **environ;

/* Processes of each kind that exit; the sanitizer takes a second for one. */
enum { exits = UNDER_THREAD_SANITIZER ? 1 : 5 };

/* ---- the function under test ---- */

typedef umemStatusType Parallel(unsigned pieces, void (*body)(void *data, unsigned piece),
                                void *data);

static umemStatusType within(unsigned pieces, void (*body)(void *data, unsigned piece),
                             void *data) {
  umem_parallel(pieces, body, data);
  return umemOK;
}

/* umem_parallel, which the library calls, or umem_parallel_for, and how many pieces that takes. */
static Parallel *parallel;
static unsigned most;

static void begin_within(void **state) {
  parallel = within;
  most = umemParallelMost;
  begin(state);
}

static void begin_for(void **state) {
  parallel = umem_parallel_for;
  most = pieces_most;
  begin(state);
}

#define TEST(name) TEST_CASE_WITH(name, begin_within, end)
#define TEST_FOR(name) TEST_CASE_WITH(name, begin_for, end)

/* With both. */
#define TEST_BOTH(name)                                                                            \
  static void name(void **state);                                                                  \
  TEST_CASE_AGAIN(name, umem_parallel_for, begin_for, end, NULL)                                   \
  TEST(name)

static void run_log(Log *log, unsigned pieces, unsigned meeting) {
  begin_log(log, meeting);
  assert_int_equal(parallel(pieces, note, log), umemOK);
  assert_int_equal(umem_thread_status(), umemOK);
  expect_done(log, pieces);
}

static unsigned threads_of(Log const *log, unsigned pieces) {
  unsigned count = 0;
  for (unsigned i = 0; i < pieces; i++) {
    unsigned k = 0;
    while (k < i && !pthread_equal(log->thread[i], log->thread[k])) k++;
    count += k == i;
  }
  return count;
}

/* ---- who does the pieces ---- */

TEST_BOTH(each_piece_is_done_once) {
  Log log;
  for (unsigned pieces = 1; pieces <= most; pieces++) {
    run_log(&log, pieces, 0);
    assert_true(pthread_equal(log.thread[0], pthread_self()));
    assert_true(threads_of(&log, pieces) <= 4);
  }
}

TEST_FOR(no_pieces_are_done_at_once) {
  Log log;
  run_log(&log, 0, 0);
}

TEST_BOTH(pieces_run_at_the_same_time) {
  Log log;
  run_log(&log, 4, 4);
  assert_int_equal(threads_of(&log, 4), 4);
}

static bool is_among(pthread_t thread, pthread_t const *known, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    if (pthread_equal(thread, known[i])) return true;
  return false;
}

TEST(threads_are_kept) {
  Log first, log;
  run_log(&first, 4, 4);
  for (int round = 0; round < 50; round++) {
    run_log(&log, 4, 4);
    for (unsigned i = 0; i < 4; i++) assert_true(is_among(log.thread[i], first.thread, 4));
  }
  assert_true(task_count_becomes(tasks_alone() + 3));
}

TEST_BOTH(one_thread_does_all_in_order) {
  Log log;
  assert_int_equal(umem_set_threads(1), umemOK);
  assert_int_equal(umem_get_parallel_threads(), 1);
  run_log(&log, most, 0);
  assert_int_equal(threads_of(&log, most), 1);
  for (unsigned i = 0; i < most; i++) assert_int_equal(log.order[i], i);
}

TEST_BOTH(helpers_come_and_go) {
  Log log;
  unsigned const counts[] = {2, umemParallelMost, 3, 5, 1, 21, 40};
  for (size_t i = 0; i < sizeof counts / sizeof *counts && counts[i] <= most; i++) {
    assert_int_equal(umem_set_threads(counts[i]), umemOK);
    assert_int_equal(umem_get_threads(), counts[i]);
    assert_int_equal(umem_get_parallel_threads(), counts[i]);
    run_log(&log, counts[i], counts[i]);
    assert_int_equal(threads_of(&log, counts[i]), counts[i]);
    assert_true(task_count_becomes(tasks_alone() + counts[i] - 1));
  }
}

/* The helper that lowers the number is itself one too many, and leaves after its piece. */
static void set_one(void *job, unsigned piece) {
  note(job, piece);
  if (piece == 1) umem_set_threads(1);
}

TEST_BOTH(busy_helpers_leave_later) {
  for (int round = 0; round < 20; round++) {
    Log log = {.meeting = 4};
    assert_int_equal(umem_set_threads(4), umemOK);
    assert_int_equal(parallel(4, set_one, &log), umemOK);
    assert_int_equal(umem_get_parallel_threads(), 1);
  }
  assert_true(task_count_becomes(tasks_alone()));
}

TEST_FOR(the_default_is_all_processors) {
  cpu_set_t set;
  assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
  assert_int_equal(umem_set_threads(0), umemOK);
  assert_int_equal(umem_get_parallel_threads(), CPU_COUNT(&set));
}

TEST_FOR(no_function_is_refused) {
  assert_int_equal(umem_parallel_for(3, NULL, NULL), umemValueError);
  assert_string_equal(umem_thread_message(), "umem_parallel_for: the function to call is NULL");
  assert_int_equal(umem_parallel_for(0, NULL, NULL), umemValueError);
}

TEST(the_default_is_that_of_the_processors) {
  cpu_set_t set;
  assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
  unsigned expected = CPU_COUNT(&set) < 16 ? (unsigned)CPU_COUNT(&set) : 16;
  assert_int_equal(umem_set_threads(0), umemOK);
  assert_int_equal(umem_get_threads(), expected);
}

TEST(too_many_threads_are_refused) {
  assert_int_equal(umem_set_threads(UMEM_MAX_THREADS + 1), umemValueError);
  assert_non_null(strstr(umem_thread_message(), "umem_set_threads: 1025 threads"));
  assert_int_equal(umem_set_threads(UINT32_MAX), umemValueError);
  assert_int_equal(umem_get_threads(), 4);
}

TEST(pieces_follow_size_and_threads) {
  assert_int_equal(umem_parallel_pieces(0, 100, 8), 1);
  assert_int_equal(umem_parallel_pieces(199, 100, 8), 1);
  assert_int_equal(umem_parallel_pieces(200, 100, 8), 2);
  assert_int_equal(umem_parallel_pieces(399, 100, 8), 3);
  assert_int_equal(umem_parallel_pieces(SIZE_MAX, 100, 8), 4);
  assert_int_equal(umem_parallel_pieces(SIZE_MAX, 100, 3), 3);
  for (unsigned sharers = 0; sharers <= 5; sharers++) { /* that copy side by side */
    static unsigned const parts[] = {4, 4, 2, 2, 1, 1};
    umem_thread.sharers = sharers;
    assert_int_equal(umem_parallel_pieces(SIZE_MAX, 100, 8), parts[sharers]);
  }
  umem_thread.sharers = 0;
  umem_set_threads(1);
  assert_int_equal(umem_parallel_pieces(SIZE_MAX, 100, 8), 1);
}

static void read_mask(void *job, unsigned piece) {
  pthread_sigmask(SIG_BLOCK, NULL, (sigset_t *)job + piece);
}

TEST(helpers_block_signals) {
  Log log;
  run_log(&log, 2, 2);
  sigset_t masks[umemParallelMost];
  bool helped = false;
  for (int i = 0; i < seconds * 1000 && !helped; i++) {
    umem_parallel(umemParallelMost, read_mask, masks);
    for (unsigned k = 0; k < umemParallelMost; k++) {
      if (!sigismember(&masks[k], SIGUSR1)) continue; /* done by the caller */
      helped = true;
      assert_true(sigismember(&masks[k], SIGINT) && sigismember(&masks[k], SIGTERM));
      assert_false(sigismember(&masks[k], SIGSEGV) || sigismember(&masks[k], SIGBUS));
    }
  }
  assert_true(helped);
}

/* ---- nested, and from many threads ---- */

typedef struct Tree {
  int depth;
  atomic_uint *leaves;
} Tree;

static void grow(void *job, unsigned piece UNUSED) {
  Tree const *tree = job;
  Tree branch = {tree->depth - 1, tree->leaves};
  if (!tree->depth)
    atomic_fetch_add(tree->leaves, 1);
  else if (parallel(4, grow, &branch) != umemOK)
    atomic_fetch_add(tree->leaves, 1000000);
}

TEST_BOTH(jobs_may_be_nested) {
  unsigned const counts[] = {1, 2, 3, 4, umemParallelMost};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    atomic_uint leaves = 0;
    umem_set_threads(counts[i]);
    assert_int_equal(parallel(4, grow, &(Tree){4, &leaves}), umemOK);
    assert_int_equal(atomic_load(&leaves), 4 * 4 * 4 * 4 * 4);
  }
}

static void count_piece(void *job, unsigned piece) {
  atomic_fetch_add((atomic_uint *)job + piece, 1);
  if (piece % 3 == 1) umemVirtual_fail(NULL, umemIOError, "piece %u", piece);
}

/* The failure of a piece is the caller's, but not that of umem_parallel_for. NULL if all was
 * right. */
static void *run_many(void *argument) {
  bool fails = parallel == within;
  for (unsigned round = 0; round < 300; round++) {
    unsigned pieces = 2 + round % (most - 1);
    atomic_uint times[pieces_most] = {0};
    uint64_t before = umem_thread_failures();
    if (parallel(pieces, count_piece, times) != umemOK) return argument;
    for (unsigned i = 0; i < pieces_most; i++)
      if (atomic_load(&times[i]) != (i < pieces)) return argument;
    if (umem_thread_failures() != before + fails) return argument;
    if (fails && strcmp(umem_thread_message(), "piece 1")) return argument;
  }
  return NULL;
}

TEST_BOTH(many_threads_share_the_helpers) {
  enum { count = 8 };
  pthread_t threads[count];
  for (int i = 0; i < count; i++) threads[i] = start_thread(run_many, threads);
  for (unsigned i = 0; i < 60; i++) umem_set_threads(i % umemParallelMost); /* meanwhile */
  umem_set_threads(1);
  for (int i = 0; i < count; i++) assert_null(join_thread(threads[i]));
}

/* ---- failures ---- */

typedef struct Fallible {
  Log log;
  umemVirtual *ctx;
  unsigned fails; /* this piece and all higher ones */
} Fallible;

static void fail_from(void *job, unsigned piece) {
  Fallible *fallible = job;
  note(&fallible->log, piece);
  if (piece >= fallible->fails) umemVirtual_fail(fallible->ctx, umemIOError, "piece %u", piece);
}

TEST(the_lowest_failure_is_the_callers) {
  CONTEXT(umemHost, host);
  for (unsigned fails = 0; fails < 4; fails++) {
    Fallible job = {.log.meeting = 4, .ctx = &host.super, .fails = fails};
    char message[40];
    uint64_t before = umem_thread_failures();
    UMEM_ENTER_AS("umem_test", NULL);
    umem_parallel(4, fail_from, &job);
    snprintf(message, sizeof message, "umem_test: piece %u", fails);
    assert_true(umem_thread_failures() == before + 1);
    assert_int_equal(umem_thread_status(), umemIOError);
    assert_string_equal(umem_thread_message(), message);
    assert_string_equal(umem_get_message(&host), message);
    umem_clear_status(&host);
  }
}

TEST(a_later_job_knows_of_no_failure) {
  Fallible job = {.log.meeting = 4};
  umem_parallel(4, fail_from, &job);
  assert_int_equal(umem_thread_status(), umemIOError);
  umem_thread_clear();
  Log log;
  run_log(&log, 4, 4);
}

/* The message names the function that fails, not the one that calls body. */
static void fail_to_set(void *data, unsigned piece) {
  umemHost *host = data;
  if (umem_set(host, 0, 1, 1) != umemValueError)
    umemVirtual_fail(host, umemAssertError, "piece %u", piece);
}

TEST_FOR(a_failure_in_a_piece_is_its_own) {
  char const *expected = "umem_set: the address in Host is null"; /* each failure adds it */
  CONTEXT(umemHost, host);
  for (unsigned threads = 1; threads <= 4; threads++) {
    assert_int_equal(umem_set_threads(threads), umemOK);
    uint64_t before = umem_thread_failures();
    assert_int_equal(umem_parallel_for(pieces_most, fail_to_set, &host), umemOK);
    assert_true(umem_thread_failures() == before);
    assert_int_equal(umem_get_status(&host), umemValueError);
    assert_memory_equal(umem_get_message(&host), expected, strlen(expected));
    umem_clear_status(&host);
  }
}

/* ---- cancellation ---- */

typedef struct Cancelled {
  Log log;
  atomic_bool ready;
  umemStatusType status;
  bool returned;
} Cancelled;

static void reach_cancellation_points(void *data, unsigned piece) {
  Cancelled *job = data;
  note(&job->log, piece);
  if (piece) return;
  atomic_store(&job->ready, true);
  for (int i = 0; i < 50; i++) usleep(1000);
}

static void *be_cancelled(void *data) {
  Cancelled *job = data;
  job->status = umem_parallel_for(4, reach_cancellation_points, job);
  job->returned = true;
  pthread_testcancel();
  return NULL;
}

TEST_FOR(cancellation_waits) {
  for (unsigned threads = 1; threads <= 4; threads += 3) {
    Cancelled job = {.log.meeting = threads};
    pthread_t thread;
    void *result;
    assert_int_equal(umem_set_threads(threads), umemOK);
    assert_int_equal(pthread_create(&thread, NULL, be_cancelled, &job), 0);
    while (!atomic_load(&job.ready)) usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_true(job.returned);
    assert_int_equal(job.status, umemOK);
    for (unsigned i = 0; i < 4; i++) assert_int_equal(atomic_load(&job.log.times[i]), 1);
  }
}

/* ---- fork ---- */

/* Ends the child with 0 when all was right. */
static void use_in_child(unsigned forks) {
  Log log = {0};
  bool right = umem_fork_count() == forks + 1 && umem_get_threads() == 1 &&
               umem_get_parallel_threads() == 1 && count_tasks() == 1;
  right = right && parallel(5, note, &log) == umemOK && threads_of(&log, 5) == 1;
  if (!UNDER_THREAD_SANITIZER) { /* it may have threads of its own, if it says so */
    Log helped = {.meeting = 4};
    right = right && umem_set_threads(4) == umemOK;
    right = right && parallel(4, note, &helped) == umemOK && threads_of(&helped, 4) == 4;
    right = right && umem_set_threads(1) == umemOK;
  }
  _exit(right && umem_thread_status() == umemOK ? 0 : 1);
}

static int fork_and_use(void) {
  unsigned forks = umem_fork_count();
  pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    use_in_child(forks);
  }
  assert_int_equal(umem_fork_count(), forks);
  return child_wait(child);
}

TEST_BOTH(a_child_works_on_its_own_thread) {
  Log log;
  run_log(&log, 4, 4);
  assert_int_equal(fork_and_use(), 0);
  run_log(&log, 4, 4);
}

static void *work_until_over(void *over) {
  while (!atomic_load((atomic_bool *)over)) {
    atomic_uint times[umemParallelMost] = {0};
    umem_parallel(4, count_piece, times);
  }
  return NULL;
}

TEST(forks_beside_jobs) {
  atomic_bool over = false;
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) threads[i] = start_thread(work_until_over, &over);
  int failed = 0;
  for (int round = 0; round < 30; round++) failed += fork_and_use() != 0;
  atomic_store(&over, true);
  for (int i = 0; i < 3; i++) join_thread(threads[i]);
  assert_int_equal(failed, 0);
}

enum { came_back = 42, thread_ended = 43 };

typedef struct Forking {
  Log log;
  unsigned piece; /* that forks, while the others are under way */
  pid_t child;
  atomic_bool over;
  pthread_key_t key;
} Forking;

static void exit_with_thread(void *value UNUSED) { _exit(thread_ended); }

static void fork_in_piece(void *job, unsigned piece) {
  Forking *forking = job;
  note(&forking->log, piece);
  if (piece != forking->piece) {
    while (!atomic_load(&forking->over)) usleep(1000);
    return;
  }
  forking->child = fork();
  if (forking->child == 0) {
    alarm(seconds);
    pthread_setspecific(forking->key, job); /* so that its destructor is called */
  }
  atomic_store(&forking->over, true);
}

/* In the caller's child the call reports that the others' pieces are lost. */
TEST_BOTH(a_piece_may_fork) {
  pid_t parent = getpid();
  for (unsigned piece = 0; piece < 3; piece++) {
    Forking job = {.log.meeting = 3, .piece = piece};
    assert_int_equal(pthread_key_create(&job.key, exit_with_thread), 0);
    parallel(3, fork_in_piece, &job);
    if (getpid() != parent) _exit(umem_thread_status() == umemRuntimeError ? came_back : 1);
    assert_int_equal(child_wait(job.child), piece ? thread_ended : came_back);
    assert_int_equal(umem_thread_status(), umemOK);
    pthread_key_delete(job.key);
  }
}

/* ---- the end of a process ---- */

static Log deed_log;

static void never_end(void *job, unsigned piece) {
  note(job, piece);
  for (;;) pause();
}

static void exit_in_own_piece(void *job, unsigned piece) {
  note(job, piece);
  if (piece == 0) exit(5);
  for (;;) pause();
}

static void exit_in_others_piece(void *job, unsigned piece) {
  note(job, piece);
  if (piece == 1) exit(6);
  for (;;) pause();
}

static void *be_busy(void *unused) {
  umem_parallel(4, never_end, &deed_log);
  return unused;
}

static int exit_idle(void) {
  umem_parallel(4, note, &deed_log);
  exit(3);
}

static int exit_while_busy(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, be_busy, NULL) != 0 || !meet(&deed_log)) return 1;
  exit(4);
}

static int exit_from_own_piece(void) {
  umem_parallel(4, exit_in_own_piece, &deed_log);
  return 1;
}

static int exit_from_others_piece(void) {
  umem_parallel(4, exit_in_others_piece, &deed_log);
  return 1;
}

static int end_in_child(void) {
  umem_parallel(4, note, &deed_log);
  pid_t child = fork();
  if (child == 0) exit(7);
  return child_wait(child);
}

static struct {
  char const *name;
  int (*act)(void);
  int status;
} const deeds[] = {
    {"idle", exit_idle, 3},
    {"while busy", exit_while_busy, 4},
    {"from its own piece", exit_from_own_piece, 5},
    {"from another's piece", exit_from_others_piece, 6},
    {"in a child", end_in_child, 7},
};
enum { deed_count = sizeof deeds / sizeof *deeds };

static int act(char const *name) {
  deed_log.meeting = 4;
  if (umem_set_threads(4) != umemOK) return 1;
  alarm(seconds);
  for (size_t i = 0; i < deed_count; i++)
    if (!strcmp(name, deeds[i].name)) return deeds[i].act();
  return 1;
}

TEST(a_process_exits_at_any_time) {
  char program[4096] = "";
  assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
  for (size_t i = 0; i < deed_count; i++) {
    char name[40];
    snprintf(name, sizeof name, "%s", deeds[i].name);
    char *arguments[] = {program, name, NULL};
    for (int round = 0; round < exits; round++) {
      pid_t child;
      assert_int_equal(posix_spawn(&child, program, NULL, NULL, arguments, environ), 0);
      int status = child_wait(child);
      if (status != deeds[i].status) fail_msg("exit %s: %d", deeds[i].name, status);
    }
  }
}

int main(int argc, char **argv) {
  if (argc == 2) return act(argv[1]);
  return run_cases(NULL, NULL);
}
