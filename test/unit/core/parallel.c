/* parallel.c - core/threads.h and umem/threads.h: who does the pieces, and when helpers come and
 * go.
 *
 * To test how a process exits, this program starts itself with the name of a deed. */
#include "parallel_help.h"

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>

#include <umem/base.h>

#include "core/status.h"
#include "base/thread.h"
#include "core/threads.h"

extern char **environ;

/* Processes of each kind that exit; the sanitizer takes a second for one. */
enum { exits = under_thread_sanitizer ? 1 : 5 };

static void run_log(Log *log, unsigned pieces, unsigned meeting) {
  begin_log(log, meeting);
  umem_parallel(pieces, note, log);
  assert_int_equal(umem_thread_status(), umemOK);
  expect_done(log, pieces);
}

#define TEST(name) TEST_CASE_WITH(name, begin, end)

/* ---- who does the pieces ---- */

TEST(the_first_piece_is_the_callers) {
  Log log;
  for (unsigned pieces = 1; pieces <= umemParallelMost; pieces++) {
    run_log(&log, pieces, 0);
    assert_true(pthread_equal(log.thread[0], pthread_self()));
  }
}

TEST(pieces_run_at_the_same_time) {
  Log log;
  run_log(&log, 4, 4);
  for (unsigned i = 0; i < 4; i++)
    for (unsigned k = 0; k < i; k++) assert_false(pthread_equal(log.thread[i], log.thread[k]));
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

TEST(one_thread_does_all) {
  Log log;
  assert_int_equal(umem_set_threads(1), umemOK);
  run_log(&log, 7, 0);
  for (unsigned i = 0; i < 7; i++) assert_true(pthread_equal(log.thread[i], pthread_self()));
}

TEST(helpers_come_and_go) {
  Log log;
  unsigned const counts[] = {2, umemParallelMost, 3, 5, 1};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    assert_int_equal(umem_set_threads(counts[i]), umemOK);
    assert_int_equal(umem_get_threads(), counts[i]);
    run_log(&log, counts[i], counts[i]);
    assert_true(task_count_becomes(tasks_alone() + counts[i] - 1));
  }
}

/* The helper that lowers the number is itself one too many, and leaves after its piece. */
static void set_one(void *job, unsigned piece) {
  note(job, piece);
  if (piece == 1) umem_set_threads(1);
}

TEST(busy_helpers_leave_later) {
  for (int round = 0; round < 20; round++) {
    Log log = {.meeting = 4};
    assert_int_equal(umem_set_threads(4), umemOK);
    umem_parallel(4, set_one, &log);
    assert_int_equal(umem_get_threads(), 1);
  }
  assert_true(task_count_becomes(tasks_alone()));
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

static void grow(void *job, unsigned piece) {
  (void)piece;
  Tree const *tree = job;
  Tree branch = {tree->depth - 1, tree->leaves};
  if (tree->depth)
    umem_parallel(4, grow, &branch);
  else
    atomic_fetch_add(tree->leaves, 1);
}

TEST(jobs_may_be_nested) {
  unsigned const counts[] = {1, 2, 4, umemParallelMost};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    atomic_uint leaves = 0;
    umem_set_threads(counts[i]);
    umem_parallel(4, grow, &(Tree){4, &leaves});
    assert_int_equal(atomic_load(&leaves), 4 * 4 * 4 * 4 * 4);
  }
}

static void count_piece(void *job, unsigned piece) {
  atomic_fetch_add((atomic_uint *)job + piece, 1);
  if (piece % 3 == 1) umemVirtual_fail(NULL, umemIOError, "piece %u", piece);
}

/* Returns NULL when all was right. */
static void *run_many(void *argument) {
  for (unsigned round = 0; round < 300; round++) {
    unsigned pieces = 2 + round % (umemParallelMost - 1);
    atomic_uint times[umemParallelMost] = {0};
    uint64_t before = umem_thread_failures();
    umem_parallel(pieces, count_piece, times);
    for (unsigned i = 0; i < umemParallelMost; i++)
      if (atomic_load(&times[i]) != (i < pieces)) return argument;
    if (umem_thread_failures() != before + 1) return argument;
    if (strcmp(umem_thread_message(), "piece 1")) return argument;
  }
  return NULL;
}

TEST(many_threads_share_the_helpers) {
  enum { count = 8 };
  pthread_t threads[count];
  for (int i = 0; i < count; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, run_many, threads), 0);
  for (unsigned i = 0; i < 60; i++) umem_set_threads(i % umemParallelMost); /* meanwhile */
  umem_set_threads(1);
  for (int i = 0; i < count; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
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
  umemHost host;
  assert_int_equal(umemHost_ctor(&host), umemOK);
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
  umem_dtor(&host);
}

TEST(a_later_job_knows_of_no_failure) {
  Fallible job = {.log.meeting = 4};
  umem_parallel(4, fail_from, &job);
  assert_int_equal(umem_thread_status(), umemIOError);
  umem_thread_clear();
  Log log;
  run_log(&log, 4, 4);
}

/* ---- fork ---- */

/* Ends the child with 0 when all was right. */
static void use_in_child(unsigned forks) {
  Log log = {0};
  bool right = umem_fork_count() == forks + 1 && umem_get_threads() == 1 && count_tasks() == 1;
  umem_parallel(5, note, &log);
  for (unsigned i = 0; i < 5; i++) right = right && pthread_equal(log.thread[i], pthread_self());
  if (!under_thread_sanitizer) { /* it may have threads of its own, if it says so */
    Log helped = {.meeting = 4};
    right = right && umem_set_threads(4) == umemOK;
    umem_parallel(4, note, &helped);
    right = right && umem_set_threads(1) == umemOK;
  }
  _exit(right && umem_thread_status() == umemOK ? 0 : 1);
}

TEST(a_child_works_on_its_own_thread) {
  Log log;
  run_log(&log, 4, 4);
  unsigned forks = umem_fork_count();
  pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    use_in_child(forks);
  }
  assert_int_equal(status_of(child), 0);
  assert_int_equal(umem_fork_count(), forks);
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
  for (int i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work_until_over, &over), 0);
  int failed = 0;
  for (int round = 0; round < 30; round++) {
    unsigned forks = umem_fork_count();
    pid_t child = fork();
    if (child == 0) {
      alarm(seconds);
      use_in_child(forks);
    }
    failed += status_of(child) != 0;
  }
  atomic_store(&over, true);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
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

static void exit_with_thread(void *value) {
  (void)value;
  _exit(thread_ended);
}

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
TEST(a_piece_may_fork) {
  pid_t parent = getpid();
  for (unsigned piece = 0; piece < 3; piece++) {
    Forking job = {.log.meeting = 3, .piece = piece};
    assert_int_equal(pthread_key_create(&job.key, exit_with_thread), 0);
    umem_parallel(3, fork_in_piece, &job);
    if (getpid() != parent) _exit(umem_thread_status() == umemRuntimeError ? came_back : 1);
    assert_int_equal(status_of(job.child), piece ? thread_ended : came_back);
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
  return status_of(child);
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
      int status = status_of(child);
      if (status != deeds[i].status) fail_msg("exit %s: %d", deeds[i].name, status);
    }
  }
}

int main(int argc, char **argv) {
  if (argc == 2) return act(argv[1]);
  return run_cases(NULL, NULL);
}
