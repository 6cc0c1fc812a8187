/* parallel.c - see parallel.h.
 *
 * One lock guards the jobs that have pieces left and the table of workers. Whoever is free claims a
 * piece under it: the caller from its own job until there is none left, a worker from the oldest job.
 * A caller waits only for pieces that workers are at, and these cannot wait for it; therefore calls may
 * be nested and come from many threads.
 *
 * Workers are joined, not detached: when dlclose returns, no code of theirs may still be running. Only
 * those that are at a piece are not waited for; then the process is exiting, or the job is the
 * program's to wait for. A worker that is at no piece touches no thread variable of the library, whose
 * first use in a thread may wait for the lock that dlclose holds. */
#include "core/parallel.h"
#include "base/lock.h"
#include "base/thread.h"

#include <umem/base.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { default_most = 8, workers_most = umemParallelMost - 1 };

typedef struct Job {
  umemPiece *work;
  void *argument;
  unsigned pieces;
  unsigned next;        /* piece that nobody has claimed */
  unsigned helped;      /* pieces that workers are at */
  char const *function; /* that messages begin with */
  unsigned forks;       /* umem_fork_count() of the process whose job it is */
  unsigned failed;      /* lowest piece that did, or pieces */
  umemAttempt held;     /* its failure */
  pthread_cond_t helpers_done;
  struct Job *later;
} Job;

typedef struct Worker {
  pthread_t thread;
  bool taken;    /* this place of the table */
  bool joinable; /* thread is set, and nobody has begun to join it */
  bool leaving;  /* has left, or will when it wakes */
  bool busy;     /* at a piece */
} Worker;

static struct {
  umemLock lock;
  pthread_cond_t work; /* there may be some, or a reason to leave */
  Job *oldest;         /* of those with pieces that nobody has claimed */
  Worker workers[workers_most];
  unsigned hired, busy; /* workers that are not leaving; those of them at a piece */
  unsigned keep;        /* workers beyond this number leave after their piece */
} pool = {.work = PTHREAD_COND_INITIALIZER, .keep = default_most - 1};

static unsigned wanted_threads; /* as set, 0 for the default; atomic */

/* ---- how many ---- */

static unsigned processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return (unsigned)CPU_COUNT(&set);
  long online = sysconf(_SC_NPROCESSORS_ONLN); /* more than a cpu_set_t has room for */
  return online > 1 ? (unsigned)online : 1;
}

unsigned umem_parallel_threads(void) {
  unsigned wanted = __atomic_load_n(&wanted_threads, __ATOMIC_RELAXED);
  if (wanted) return wanted;
  unsigned count = processors();
  return count < default_most ? count : default_most;
}

unsigned umem_parallel_pieces(size_t size, size_t least, unsigned most) {
  if (size / 2 < least) return 1;
  size_t pieces = size / least;
  unsigned threads = umem_parallel_threads();
  if (pieces > most) pieces = most;
  if (pieces > threads) pieces = threads;
  return (unsigned)pieces;
}

/* ---- jobs: with the lock held ---- */

static void post(Job *job) {
  Job **place = &pool.oldest;
  while (*place) place = &(*place)->later;
  job->later = NULL;
  *place = job;
}

/* Takes out what has no pieces left, if it is there: after a fork in a piece it is not. */
static void withdraw(Job *job) {
  Job **place = &pool.oldest;
  while (*place && *place != job) place = &(*place)->later;
  if (*place) *place = job->later;
}

static unsigned unclaimed_pieces(void) {
  unsigned count = 0;
  for (Job *job = pool.oldest; job; job = job->later) count += job->pieces - job->next;
  return count;
}

/* The next piece of a job that has one left. */
static unsigned claim(Job *job) {
  unsigned piece = job->next++;
  if (job->next == job->pieces) withdraw(job);
  return piece;
}

/* ---- one piece ---- */

/* Called with the lock, does the piece, and touches thread variables, without it. */
static void do_piece(Job *job, unsigned piece) {
  umemLock_release(&pool.lock);
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  char const *function = umem_thread.function;
  umem_thread.function = job->function;
  job->work(job->argument, piece);
  umem_thread.function = function;
  umemAttempt_end(&attempt);
  umemLock_acquire(&pool.lock);
  if (!umemAttempt_failed(&attempt) || piece > job->failed) return;
  job->failed = piece;
  job->held = attempt;
}

/* The same, by a worker. False in a child of fork: there its caller is not. */
static bool help(Worker *self, Job *job) {
  unsigned piece = claim(job);
  job->helped++;
  pool.busy++;
  self->busy = true;
  do_piece(job, piece);
  if (job->forks != umem_fork_count()) return false;
  self->busy = false;
  pool.busy--;
  if (--job->helped == 0) pthread_cond_signal(&job->helpers_done);
  return true;
}

/* ---- workers ---- */

static bool stays(Worker *self) {
  if (!self->leaving && pool.hired > pool.keep) {
    self->leaving = true;
    pool.hired--;
  }
  return !self->leaving;
}

static void *serve(void *argument) {
  Worker *self = argument;
  bool here = true;
  umemLock_acquire(&pool.lock);
  while (here && stays(self)) {
    if (pool.oldest)
      here = help(self, pool.oldest);
    else
      pthread_cond_wait(&pool.work, &pool.lock.mutex);
  }
  umemLock_release(&pool.lock);
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

/* A place in the table for a worker more, or NULL. With the lock held. */
static Worker *take_place(void) {
  for (Worker *worker = pool.workers; worker < pool.workers + workers_most; worker++) {
    bool left = worker->joinable && worker->leaving;
    if (worker->taken && !left) continue;
    worker->taken = true;
    return worker;
  }
  return NULL;
}

/* Starts one worker more. Called with the lock, starts it without: both joining and starting a thread
 * take locks of the C library, under which other threads may be calling umem. */
static bool hire(void) {
  Worker *worker = take_place();
  if (!worker) return false;
  bool left = worker->leaving;
  worker->joinable = worker->leaving = false;
  pool.hired++;
  umemLock_release(&pool.lock);
  if (left) pthread_join(worker->thread, NULL);
  sigset_t signals;
  block_signals(&signals);
  bool started = pthread_create(&worker->thread, NULL, serve, worker) == 0;
  pthread_sigmask(SIG_SETMASK, &signals, NULL);
  umemLock_acquire(&pool.lock);
  worker->joinable = worker->taken = started;
  if (!started) pool.hired--;
  return started;
}

/* Enough workers for all pieces that nobody has claimed, if so many threads may be; none that would
 * have to leave at once, because the number has been lowered meanwhile. */
static void hire_helpers(unsigned threads) {
  while (pool.hired + 1 < threads && pool.hired < pool.keep &&
         pool.hired - pool.busy < unclaimed_pieces())
    if (!hire()) return;
}

/* Sends sleeping workers away until no more than keep are left, and waits until they and those that
 * have left before are gone. */
static void dismiss(unsigned keep) {
  Worker *gone[workers_most];
  unsigned count = 0;
  umemLock_acquire(&pool.lock);
  for (Worker *worker = pool.workers; worker < pool.workers + workers_most; worker++) {
    if (!worker->joinable || worker->busy) continue;
    if (!worker->leaving) {
      if (pool.hired <= keep) continue;
      worker->leaving = true;
      pool.hired--;
    }
    worker->joinable = false;
    gone[count++] = worker;
  }
  pthread_cond_broadcast(&pool.work);
  umemLock_release(&pool.lock);
  for (unsigned i = 0; i < count; i++) pthread_join(gone[i]->thread, NULL);
  umemLock_acquire(&pool.lock);
  for (unsigned i = 0; i < count; i++) gone[i]->taken = gone[i]->leaving = false;
  umemLock_release(&pool.lock);
}

void umem_parallel_set(unsigned count) {
  umemLock_acquire(&pool.lock);
  __atomic_store_n(&wanted_threads, count, __ATOMIC_RELAXED);
  pool.keep = (count ? count : default_most) - 1;
  umemLock_release(&pool.lock);
  dismiss(umem_parallel_threads() - 1);
}

/* ---- the life of the process ---- */

/* No thread but this one is left, and no job but those that it is in the middle of. */
static void begin_child(void) {
  pthread_cond_init(&pool.work, NULL);
  pool.oldest = NULL;
  pool.hired = pool.busy = pool.keep = 0;
  memset(pool.workers, 0, sizeof pool.workers);
  __atomic_store_n(&wanted_threads, 1, __ATOMIC_RELAXED);
}

/* The lock is as old as can be: jobs are posted by holders of others. */
__attribute__((constructor(101))) static void open_pool(void) {
  umemLock_init(&pool.lock);
  pthread_atfork(NULL, NULL, begin_child);
}

__attribute__((destructor)) static void close_pool(void) { umem_parallel_set(1); }

/* ---- a job ---- */

/* Called with the lock; returns when no worker is at a piece of job. */
static void wait_for_helpers(Job *job) {
  while (job->helped && job->forks == umem_fork_count())
    umemLock_wait(&pool.lock, &job->helpers_done);
}

static void record_failure(Job const *job) {
  if (job->failed < job->pieces)
    umemAttempt_record(&job->held);
  else if (job->helped)
    umemVirtual_fail(NULL, umemRuntimeError,
                     "forked in the middle: the other threads' work is not in the child");
}

void umem_parallel(unsigned pieces, umemPiece *work, void *data) {
  if (pieces == 1) {
    work(data, 0);
    return;
  }
  umem_defer_cancel(); /* the helpers use this thread's stack */
  unsigned threads = umem_parallel_threads();
  Job job = {.work = work,
             .argument = data,
             .pieces = pieces,
             .function = umem_thread.function,
             .forks = umem_fork_count(),
             .failed = pieces};
  pthread_cond_init(&job.helpers_done, NULL);
  umemLock_acquire(&pool.lock);
  unsigned piece = claim(&job);
  if (threads > 1) {
    post(&job);
    for (unsigned i = 1; i < pieces; i++) pthread_cond_signal(&pool.work);
    hire_helpers(threads);
  }
  do_piece(&job, piece);
  while (job.next < pieces) do_piece(&job, claim(&job));
  wait_for_helpers(&job);
  umemLock_release(&pool.lock);
  pthread_cond_destroy(&job.helpers_done);
  record_failure(&job);
}
