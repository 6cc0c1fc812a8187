/* parallel_for.c - umem_parallel_for of umem/threads.h: what a program may rely on. parallel.c
 * tests who helps with the pieces, and when helpers come and go. */
#include "parallel_help.h"

#include <sched.h>

enum { four = 4 };

static void run_log(Log *log, unsigned pieces, unsigned meeting) {
  begin_log(log, meeting);
  assert_int_equal(umem_parallel_for(pieces, note, log), umemOK);
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

#define TEST(name) TEST_CASE_WITH(name, begin, end)

/* ---- pieces and threads ---- */

TEST(each_piece_is_done_once) {
  Log log;
  for (unsigned pieces = 0; pieces <= pieces_most; pieces++) {
    run_log(&log, pieces, 0);
    if (pieces) assert_true(pthread_equal(log.thread[0], pthread_self()));
    assert_true(threads_of(&log, pieces) <= four);
  }
}

TEST(pieces_run_at_the_same_time) {
  Log log;
  run_log(&log, four, four);
  assert_int_equal(threads_of(&log, four), four);
}

TEST(one_thread_does_all_in_order) {
  Log log;
  assert_int_equal(umem_set_threads(1), umemOK);
  assert_int_equal(umem_get_parallel_threads(), 1);
  run_log(&log, pieces_most, 0);
  assert_int_equal(threads_of(&log, pieces_most), 1);
  for (unsigned i = 0; i < pieces_most; i++) assert_int_equal(log.order[i], i);
}

TEST(as_many_threads_as_are_set) {
  Log log;
  for (unsigned threads = 2; threads <= 40; threads += 19) {
    assert_int_equal(umem_set_threads(threads), umemOK);
    assert_int_equal(umem_get_parallel_threads(), threads);
    run_log(&log, threads, threads);
    assert_int_equal(threads_of(&log, threads), threads);
    assert_true(task_count_becomes(tasks_alone() + threads - 1));
  }
}

TEST(the_default_is_all_processors) {
  cpu_set_t set;
  assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
  assert_int_equal(umem_set_threads(0), umemOK);
  assert_int_equal(umem_get_parallel_threads(), CPU_COUNT(&set));
}

TEST(no_function_is_refused) {
  assert_int_equal(umem_parallel_for(3, NULL, NULL), umemValueError);
  assert_string_equal(umem_thread_message(), "umem_parallel_for: the function to call is NULL");
  assert_int_equal(umem_parallel_for(0, NULL, NULL), umemValueError);
}

/* ---- nested, and from many threads ---- */

typedef struct Tree {
  int depth;
  atomic_uint *leaves;
} Tree;

static void grow(void *data, unsigned piece) {
  (void)piece;
  Tree const *tree = data;
  Tree branch = {tree->depth - 1, tree->leaves};
  if (!tree->depth)
    atomic_fetch_add(tree->leaves, 1);
  else if (umem_parallel_for(5, grow, &branch) != umemOK)
    atomic_fetch_add(tree->leaves, 1000000);
}

TEST(calls_may_be_nested) {
  for (unsigned threads = 1; threads <= 4; threads++) {
    atomic_uint leaves = 0;
    assert_int_equal(umem_set_threads(threads), umemOK);
    assert_int_equal(umem_parallel_for(5, grow, &(Tree){3, &leaves}), umemOK);
    assert_int_equal(atomic_load(&leaves), 5 * 5 * 5 * 5);
  }
}

static void set_one(void *data, unsigned piece) {
  note(data, piece);
  if (piece == 1) umem_set_threads(1);
}

TEST(body_may_set_the_number) {
  Log log = {.meeting = four};
  assert_int_equal(umem_parallel_for(four, set_one, &log), umemOK);
  assert_int_equal(umem_get_parallel_threads(), 1);
  assert_true(task_count_becomes(tasks_alone()));
}

static void add_one(void *data, unsigned piece) { ((unsigned *)data)[piece]++; }

/* Returns NULL when all was right. */
static void *run_many(void *argument) {
  for (unsigned round = 0; round < 300; round++) {
    unsigned pieces = round % pieces_most, times[pieces_most] = {0};
    if (umem_parallel_for(pieces, add_one, times) != umemOK) return argument;
    for (unsigned i = 0; i < pieces_most; i++)
      if (times[i] != (i < pieces)) return argument;
  }
  return NULL;
}

TEST(many_threads_may_call) {
  enum { count = 8 };
  pthread_t threads[count];
  for (int i = 0; i < count; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, run_many, threads), 0);
  for (unsigned i = 0; i < 60; i++) umem_set_threads(i % 10); /* meanwhile */
  for (int i = 0; i < count; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
}

/* ---- failures ---- */

/* The message names the function that fails, not the one that calls body. */
static void fail_to_set(void *data, unsigned piece) {
  umemHost *host = data;
  if (umem_set(host, 0, 1, 1) != umemValueError)
    umemVirtual_fail(host, umemAssertError, "piece %u", piece);
}

TEST(a_failure_in_a_piece_is_its_own) {
  char const *expected = "umem_set: the address in Host is null"; /* each failure adds it */
  umemHost host;
  assert_int_equal(umemHost_ctor(&host), umemOK);
  for (unsigned threads = 1; threads <= four; threads++) {
    assert_int_equal(umem_set_threads(threads), umemOK);
    uint64_t before = umem_thread_failures();
    assert_int_equal(umem_parallel_for(pieces_most, fail_to_set, &host), umemOK);
    assert_true(umem_thread_failures() == before);
    assert_int_equal(umem_get_status(&host), umemValueError);
    assert_memory_equal(umem_get_message(&host), expected, strlen(expected));
    umem_clear_status(&host);
  }
  umem_dtor(&host);
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
  job->status = umem_parallel_for(four, reach_cancellation_points, job);
  job->returned = true;
  pthread_testcancel();
  return NULL;
}

TEST(cancellation_waits) {
  for (unsigned threads = 1; threads <= four; threads += 3) {
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
    for (unsigned i = 0; i < four; i++) assert_int_equal(atomic_load(&job.log.times[i]), 1);
  }
}

/* ---- fork ---- */

TEST(a_child_works_on_its_own_thread) {
  Log log;
  run_log(&log, four, four);
  pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    memset(&log, 0, sizeof log);
    bool right = umem_get_parallel_threads() == 1;
    right = right && umem_parallel_for(9, note, &log) == umemOK;
    right = right && atomic_load(&log.begun) == 9 && threads_of(&log, 9) == 1;
    if (!under_thread_sanitizer) { /* whose runtime starts no thread in a child */
      memset(&log, 0, sizeof log);
      log.meeting = four;
      right = right && umem_set_threads(four) == umemOK;
      right = right && umem_parallel_for(four, note, &log) == umemOK;
      right = right && threads_of(&log, four) == four;
    }
    _exit(right ? 0 : 1);
  }
  assert_int_equal(status_of(child), 0);
  run_log(&log, four, four);
}

typedef struct Forking {
  Log log;
  pid_t child;
  atomic_bool over;
} Forking;

static void fork_in_first_piece(void *data, unsigned piece) {
  Forking *job = data;
  note(&job->log, piece);
  while (piece && !atomic_load(&job->over)) usleep(1000);
  if (piece) return;
  job->child = fork();
  if (job->child == 0) alarm(seconds);
  atomic_store(&job->over, true);
}

/* The pieces of the other threads are not in the child, and the call says so there. */
TEST(a_piece_may_fork) {
  Forking job = {.log.meeting = four};
  umemStatusType status = umem_parallel_for(four, fork_in_first_piece, &job);
  if (job.child == 0) _exit(status == umemRuntimeError ? 0 : 1);
  assert_int_equal(status, umemOK);
  assert_int_equal(status_of(job.child), 0);
}

int main(void) { return run_cases(NULL, NULL); }
