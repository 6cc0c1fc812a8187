/* umem_parallel.c - see umem_parallel.h. Threads live for one job: starting one costs some 20 us,
 * which is little for the jobs that are worth splitting, and nothing outlives a fork. */
#include "umem_parallel.h"
#include "umem_core.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

typedef struct {
  umemPiece *work;
  void *job;
  unsigned piece;
  char const *function; /* that messages begin with */
  umemAttempt held;
  pthread_t thread;
  bool started;
} Task;

unsigned umem_parallel_pieces(size_t size, size_t least, unsigned most) {
  if (size / 2 < least) return 1;
  cpu_set_t set;
  int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  size_t pieces = size / least;
  if (pieces > most) pieces = most;
  if (pieces > (size_t)processors) pieces = (size_t)processors;
  return (unsigned)pieces;
}

static void run(Task *task) {
  umemAttempt_begin(&task->held);
  task->work(task->job, task->piece);
  umemAttempt_end(&task->held);
}

static void *run_in_thread(void *argument) {
  Task *task = argument;
  umem_thread.function = task->function;
  run(task);
  return NULL;
}

/* The program's signal handlers must not run in threads that it did not start. */
static void block_signals(sigset_t *old) {
  static int const own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  sigset_t all;
  sigfillset(&all);
  for (size_t i = 0; i < sizeof own_faults / sizeof *own_faults; i++)
    sigdelset(&all, own_faults[i]);
  pthread_sigmask(SIG_SETMASK, &all, old);
}

void umem_parallel(unsigned pieces, umemPiece *work, void *job) {
  if (pieces == 1) {
    work(job, 0);
    return;
  }
  Task tasks[umemParallelMost];
  sigset_t signals;
  block_signals(&signals);
  for (unsigned i = 0; i < pieces; i++) {
    Task *task = &tasks[i];
    task->work = work;
    task->job = job;
    task->piece = i;
    task->function = umem_thread.function;
    task->started = i && pthread_create(&task->thread, NULL, run_in_thread, task) == 0;
  }
  pthread_sigmask(SIG_SETMASK, &signals, NULL);

  for (unsigned i = 0; i < pieces; i++)
    if (!tasks[i].started) run(&tasks[i]);
  for (unsigned i = 0; i < pieces; i++)
    if (tasks[i].started) pthread_join(tasks[i].thread, NULL);

  unsigned failed = 0;
  while (failed < pieces && !umemAttempt_failed(&tasks[failed].held)) failed++;
  if (failed < pieces) umemAttempt_record(&tasks[failed].held);
}
