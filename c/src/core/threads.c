/* threads.c - shares the pieces of jobs among the callers and a set of workers.
 *
 * One lock protects the jobs that have unclaimed pieces and the table of workers. A free thread
 * claims a piece under this lock: the caller from its own job until none is left, a worker from the
 * oldest job. A caller waits only for pieces that workers have claimed, and these never wait for
 * the caller. Therefore calls may be nested and come from many threads.
 *
 * dismiss() joins the workers: when dlclose returns, none of them may still run code of the
 * library. It does not join workers that run a piece; then the process is exiting, or the
 * program itself waits for the job. A worker without a piece touches no thread variable of the
 * library: the first use of one in a thread may wait for the lock that dlclose holds. */
#include "core/threads.h"
#include "core/status.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <umem/base.h>
#include <umem/threads.h>
#include <unistd.h>

/* By default copies use at most default_most threads: more gain nothing. */
enum { default_most = umemParallelMost, workers_most = umemParallelThreadsMost - 1 };

/* By default there may be so many workers where the process has fewer processors: those in the
 * background mostly wait for storage. */
enum { least_workers = 3 };

typedef struct Job {
  umemPiece *work;
  void *argument;
  unsigned pieces;
  unsigned next;             /* first unclaimed piece; pieces when there is none */
  unsigned helped;           /* pieces that workers run now */
  char const *function;      /* that messages begin with */
  struct umemOpenStep *step; /* of the caller: what pieces move counts there */
  unsigned forks;            /* umem_fork_count() of the process that began the job */
  unsigned failed;           /* lowest piece that failed, or pieces */
  umemAttempt held;          /* the failure of that piece */
  pthread_cond_t helpers_done;
  struct Job *later;
} Job;

typedef struct Worker {
  pthread_t thread;
  bool taken;    /* this entry of the table is in use */
  bool joinable; /* thread is set, and no thread has begun to join it */
  bool leaving;  /* has left, or will when it wakes */
  bool busy;     /* runs a piece */
  bool has_data; /* its thread variables */
} Worker;

static struct {
  umemLock lock;
  pthread_cond_t work; /* workers wait here for a job, or for a reason to leave */
  Job *oldest;         /* list of the jobs with unclaimed pieces, the oldest first */
  Worker workers[workers_most];
  unsigned hired, busy; /* workers that are not leaving; those of them that run a piece */
  unsigned keep;        /* workers beyond this number leave after their piece */
  /* Calls of umem_parallel_background that no worker has begun: all of one user. */
  unsigned background;
  void (*background_work)(void), (*background_lost)(void);
} pool = {.work = PTHREAD_COND_INITIALIZER, .keep = workers_most};

static umemLock hook_lock; /* protects the hook of calls that wait, and its data */
static umemWaitHook *wait_hook;
static void *wait_hook_data;

static unsigned wanted_threads; /* as set, 0 for the default; atomic */

/* ---- how many ---- */

static unsigned counted; /* processors, when they were counted last; atomic */

static unsigned processors(void) {
  cpu_set_t set;
  long count = sched_getaffinity(0, sizeof set, &set) == 0
                   ? CPU_COUNT(&set)
                   : sysconf(_SC_NPROCESSORS_ONLN); /* too many for a cpu_set_t */
  unsigned known = count > 1 ? (unsigned)count : 1;
  __atomic_store_n(&counted, known, __ATOMIC_RELAXED);
  return known;
}

/* What umem_set_threads has set, or all processors, but at most `most`. */
static unsigned threads_up_to(unsigned most) {
  unsigned wanted = __atomic_load_n(&wanted_threads, __ATOMIC_RELAXED);
  if (wanted) return wanted;
  unsigned count = processors();
  return count < most ? count : most;
}

unsigned umem_parallel_threads(void) { return threads_up_to(default_most); }

unsigned umem_parallel_loop_threads(void) { return threads_up_to(umemParallelThreadsMost); }

unsigned umem_parallel_pieces(size_t size, size_t least, unsigned most) {
  if (size / 2 < least) return 1;
  size_t pieces = size / least;
  unsigned threads = umem_parallel_threads();
  if (umem_thread.sharers > 1) threads = (threads + umem_thread.sharers - 1) / umem_thread.sharers;
  if (pieces > most) pieces = most;
  if (pieces > threads) pieces = threads;
  return (unsigned)pieces;
}

/* ---- jobs: with the lock held ---- */

/* Puts job at the end of the list, and wakes as many idle workers as it has unclaimed pieces. */
static void post(Job *job) {
  Job **link = &pool.oldest;
  while (*link) link = &(*link)->later;
  job->later = NULL;
  *link = job;
  unsigned idle = pool.hired - pool.busy, unclaimed = job->pieces - job->next;
  for (unsigned i = 0; i < idle && i < unclaimed; i++) pthread_cond_signal(&pool.work);
}

/* Removes job from the list, if it is there: in the child of a fork within a piece it is not. */
static void withdraw(Job *job) {
  Job **link = &pool.oldest;
  while (*link && *link != job) link = &(*link)->later;
  if (*link) *link = job->later;
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

typedef struct Piece {
  Job *job;
  unsigned number;
  char const *function; /* of the thread, before; as is step */
  struct umemOpenStep *step;
  umemAttempt attempt;
} Piece;

/* Acquires the lock. Also when an exception of C++ passes. */
static void end_piece(Piece *piece) {
  umem_thread.function = piece->function;
  umem_thread.step = piece->step;
  umemAttempt_end(&piece->attempt);
  umemLock_acquire(&pool.lock);
  Job *job = piece->job;
  if (!umemAttempt_failed(&piece->attempt) || piece->number > job->failed) return;
  job->failed = piece->number;
  job->held = piece->attempt;
}

/* Called with the lock. Runs the piece, and touches thread variables, without the lock. */
static void do_piece(Job *job, unsigned number) {
  umemLock_release(&pool.lock);
  __attribute__((cleanup(end_piece))) Piece piece = {
      .job = job, .number = number, .function = umem_thread.function, .step = umem_thread.step};
  umemAttempt_begin(&piece.attempt);
  umem_thread.function = job->function;
  umem_thread.step = job->step;
  job->work(job->argument, number);
}

/* Without the lock. Takes the worker's thread variables before it claims a piece. */
static void take_data(Worker *self) {
  umemLock_release(&pool.lock);
  bool has = umem_worker_has_data();
  umemLock_acquire(&pool.lock);
  self->has_data = has;
}

/* A worker does a piece; the job does not end before. False in a child of fork, which has no
 * caller of the job, and without thread variables. */
static bool help(Worker *self, Job *job) {
  job->helped++;
  pool.busy++;
  self->busy = true;
  if (!self->has_data)
    take_data(self);
  else
    do_piece(job, claim(job));
  if (job->forks != umem_fork_count()) return false;
  self->busy = false;
  pool.busy--;
  if (--job->helped == 0) pthread_cond_signal(&job->helpers_done);
  return self->has_data;
}

/* ---- workers ---- */

/* A thread gets the variables of a library that was opened at run time when it first uses one,
 * by a malloc of glibc. The first malloc of a thread may take a mapping, too. What is tried here
 * is several times as much, and what is freed remains with malloc. One thread at a time: so no two
 * of them take what only one has tried. */
static size_t const tried = 64 << 10;

static umemLock data_lock;

bool umem_worker_has_data(void) {
  UMEM_LOCKED(&data_lock);
  void *volatile room = malloc(tried);
  bool has = room != NULL;
  free(room);
  if (has) (void)*(uint64_t volatile *)&umem_thread.failures;
  return has;
}

/* A worker begins what no caller waits for. Returns whether it can go on. */
static bool do_background(Worker *self) {
  self->busy = true;
  pool.busy++;
  pool.background--;
  if (!self->has_data) take_data(self);
  void (*work)(void) = self->has_data ? pool.background_work : pool.background_lost;
  umemLock_release(&pool.lock);
  work();
  umemLock_acquire(&pool.lock);
  self->busy = false;
  pool.busy--;
  return self->has_data;
}

static void leave(Worker *self) {
  if (!self->leaving) pool.hired--;
  self->leaving = true;
}

static bool is_needed(Worker *self) {
  if (pool.hired > pool.keep) leave(self);
  return !self->leaving;
}

static void *serve(void *argument) {
  Worker *self = argument;
  bool here = true;
  UMEM_LOCKED(&pool.lock);
  while (here && (pool.background || is_needed(self))) {
    if (pool.background)
      here = do_background(self);
    else if (pool.oldest && pool.busy < umem_parallel_workers())
      here = help(self, pool.oldest);
    else
      pthread_cond_wait(&pool.work, &pool.lock.mutex);
  }
  if (!here && !self->has_data) leave(self);
  return NULL;
}

/* A free entry of the table, or NULL. With the lock held. */
static Worker *take_entry(void) {
  for (Worker *worker = pool.workers; worker < pool.workers + workers_most; worker++) {
    bool left = worker->joinable && worker->leaving;
    if (worker->taken && !left) continue;
    worker->taken = true;
    return worker;
  }
  return NULL;
}

/* Starts one more worker. Called with the lock, which it releases meanwhile: joining and starting a
 * thread take locks of the C library, and a thread that holds these may be calling umem. */
static bool hire(void) {
  Worker *worker = take_entry();
  if (!worker) return false;
  bool left = worker->leaving;
  worker->joinable = worker->leaving = worker->has_data = false;
  pool.hired++;
  umemLock_release(&pool.lock);
  if (left) pthread_join(worker->thread, NULL);
  bool started = umem_thread_start(&worker->thread, serve, worker) == 0;
  umemLock_acquire(&pool.lock);
  worker->joinable = worker->taken = started;
  if (!started) pool.hired--;
  return started;
}

/* Starts workers for all unclaimed pieces, but no more than `threads` allows with the caller,
 * also if some leave; and none that would leave at once, because another thread has lowered the
 * number meanwhile. */
static void hire_helpers(unsigned threads) {
  for (unsigned started = 1; started < threads && pool.hired + 1 < threads &&
                             pool.hired < pool.keep && pool.hired - pool.busy < unclaimed_pieces();
       started++)
    if (!hire()) return;
}

/* Ends sleeping workers until no more than keep are left. Joins them, and those that have left
 * before. */
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
  pool.keep = count ? count - 1 : workers_most;
  umemLock_release(&pool.lock);
  dismiss(umem_parallel_loop_threads() - 1);
}

/* ---- the life of the process ---- */

/* The child has this thread alone, and only the jobs whose pieces this thread runs. */
static void begin_child(void) {
  pthread_cond_init(&pool.work, NULL);
  pool.oldest = NULL;
  pool.hired = pool.busy = pool.keep = pool.background = 0;
  memset(pool.workers, 0, sizeof pool.workers);
  __atomic_store_n(&wanted_threads, 1, __ATOMIC_RELAXED);
}

/* Among the oldest locks: threads that hold others post jobs. */
__attribute__((constructor(101))) static void open_pool(void) {
  umemLock_init(&pool.lock);
  umemLock_init(&data_lock);
  umemLock_init(&hook_lock);
  pthread_atfork(NULL, NULL, begin_child);
}

/* After what works in the background has ended: that has no priority. */
__attribute__((destructor(102))) static void close_pool(void) { umem_parallel_set(1); }

/* ---- a job ---- */

/* Called with the lock; returns when no worker runs a piece of job. */
static void wait_for_helpers(Job *job) {
  while (job->helped && job->forks == umem_fork_count())
    umemLock_wait(&pool.lock, &job->helpers_done);
}

/* Releases the lock. Also when an exception of C++ passes: it abandons the unclaimed pieces, and
 * waits until no worker uses the caller's stack. */
static void end_job(Job **running) {
  Job *job = *running;
  if (job->next < job->pieces) withdraw(job);
  job->next = job->pieces;
  wait_for_helpers(job);
  umemLock_release(&pool.lock);
  pthread_cond_destroy(&job->helpers_done);
}

static void record_failure(Job const *job) {
  if (job->failed < job->pieces)
    umemAttempt_record(&job->held);
  else if (job->helped)
    umemVirtual_fail(NULL, umemRuntimeError,
                     "forked in the middle: the other threads' work is not in the child");
}

/* All pieces, by at most so many threads, unless workers that other calls have started are free. */
static void do_all(Job *job, unsigned threads) {
  pthread_cond_init(&job->helpers_done, NULL);
  umemLock_acquire(&pool.lock);
  __attribute__((cleanup(end_job))) Job *running = job;
  unsigned piece = claim(running);
  if (threads > 1) {
    post(running);
    hire_helpers(threads);
  }
  do_piece(running, piece);
  while (running->next < running->pieces) do_piece(running, claim(running));
}

static void run(unsigned pieces, umemPiece *work, void *data, unsigned threads) {
  umem_defer_cancel(); /* the helpers use this thread's stack */
  Job job = {.work = work,
             .argument = data,
             .pieces = pieces,
             .function = umem_thread.function,
             .step = umem_thread.step,
             .forks = umem_fork_count(),
             .failed = pieces};
  do_all(&job, threads);
  record_failure(&job);
}

void umem_parallel(unsigned pieces, umemPiece *work, void *data) {
  if (pieces == 1)
    work(data, 0);
  else
    run(pieces, work, data, umem_parallel_threads());
}

void umem_parallel_loop(unsigned pieces, umemPiece *work, void *data) {
  if (pieces == 1)
    work(data, 0);
  else
    run(pieces, work, data, umem_parallel_loop_threads());
}

/* ---- without a caller ---- */

unsigned umem_parallel_workers(void) {
  unsigned wanted = __atomic_load_n(&wanted_threads, __ATOMIC_RELAXED);
  if (wanted) return wanted - 1;
  unsigned count = __atomic_load_n(&counted, __ATOMIC_RELAXED);
  if (!count) count = processors(); /* which takes longer than to start a transfer */
  return count > least_workers ? count - 1 : least_workers;
}

/* If all workers are busy, another one is started: helpers may go on for as long as a copy does. */
bool umem_parallel_background(void (*work)(void), void (*lost)(void)) {
  UMEM_LOCKED(&pool.lock);
  pool.background_work = work;
  pool.background_lost = lost;
  pool.background++;
  if (pool.hired - pool.busy >= pool.background)
    pthread_cond_signal(&pool.work);
  else if (umem_parallel_workers())
    hire();
  bool served = pool.hired > 0 || !pool.background; /* one may have done it, and left */
  if (!served && pool.background) pool.background--;
  return served;
}

/* ---- how far a run is ---- */

umemMeter *umemMeter_find(umemVirtual *self, uintptr_t src_adr, uintptr_t dst_adr, size_t nbytes) {
  umemMeter *meter = umem_thread.meter;
  bool own = (self == meter->src || self == meter->dst) && meter->src_adr == src_adr &&
             meter->dst_adr == dst_adr && meter->nbytes == nbytes;
  return own ? meter : NULL;
}

size_t umemMeter_take(umemMeter *self) {
  self->taken = true;
  return self->rest;
}

/* With the lock. A thread that copies one piece after the other lengthens its range. What finds no
 * room is not reported before the end. */
static void add_range(umemMeter *self, size_t begin, size_t end) {
  unsigned k = 0;
  while (k < self->count && self->ahead[k].end != begin && self->ahead[k].begin != end) k++;
  if (k < self->count) {
    if (self->ahead[k].end == begin)
      self->ahead[k].end = end;
    else
      self->ahead[k].begin = begin;
  } else if (self->count < umemMeterRanges) {
    self->ahead[k].begin = begin;
    self->ahead[k].end = end;
    self->count++;
  }
}

/* With the lock. */
static void pass_ranges(umemMeter *self) {
  for (unsigned k = 0; k < self->count;)
    if (self->ahead[k].begin == self->arrived) {
      self->arrived = self->ahead[k].end;
      self->ahead[k] = self->ahead[--self->count];
      k = 0;
    } else {
      k++;
    }
}

void umemMeter_stop(umemMeter *self) { __atomic_store_n(&self->over, true, __ATOMIC_RELAXED); }

static void stop_unless(umemMeter **self) {
  if (*self) umemMeter_stop(*self);
}

static void report(umemMeter *self, size_t arrived) {
  __attribute__((cleanup(stop_unless))) umemMeter *stopped = self; /* also by an exception */
  if (self->report(self, arrived)) stopped = NULL;
}

size_t umemMeter_note(umemMeter *self, size_t at, size_t nbytes) {
  if (at == self->arrived) {
    self->arrived += nbytes;
    pass_ranges(self);
  } else {
    add_range(self, at, at + nbytes);
  }
  return self->arrived;
}

void umemMeter_add(umemMeter *self, size_t at, size_t nbytes) {
  pthread_mutex_lock(&self->lock);
  size_t arrived = umemMeter_note(self, at, nbytes);
  pthread_mutex_unlock(&self->lock);
  if (!umemMeter_is_over(self) && pthread_equal(self->caller, pthread_self()))
    report(self, arrived);
}

/* ---- calls that wait ---- */

void umem_set_wait_hook(umemWaitHook *hook, void *data) {
  UMEM_LOCKED(&hook_lock);
  wait_hook = hook;
  wait_hook_data = data;
}

/* An exception of C++ would leave calls of any kind in the middle. */
static void end_unless_returned(bool const *returned) {
  if (!*returned) abort();
}

bool umem_goes_on(void) {
  if (umem_thread.waiter) return umem_thread.waiter->goes_on(umem_thread.waiter);
  umemLock_acquire(&hook_lock);
  umemWaitHook *hook = wait_hook;
  void *data = wait_hook_data;
  umemLock_release(&hook_lock);
  if (!hook) return true;
  __attribute__((cleanup(end_unless_returned))) bool returned = false;
  UMEM_STEP_ASIDE(running);
  bool wanted = hook(data);
  returned = true;
  return wanted;
}

/* ---- public functions ---- */

_Static_assert(UMEM_MAX_THREADS == (int)umemParallelThreadsMost, "as many as there may be workers");

umemStatusType umem_set_threads(unsigned count) {
  UMEM_ENTER();
  if (count > UMEM_MAX_THREADS)
    return umemVirtual_fail(NULL, umemValueError, "%u threads are more than %d", count,
                            UMEM_MAX_THREADS);
  umem_defer_cancel();
  umem_parallel_set(count);
  return umemOK;
}

unsigned umem_get_threads(void) { return umem_parallel_threads(); }

unsigned umem_get_parallel_threads(void) { return umem_parallel_loop_threads(); }

typedef struct Body {
  umemParallelBody *function;
  void *data;
} Body;

static void call_body(void *job, unsigned piece) {
  Body const *body = job;
  UMEM_STEP_ASIDE(running);
  body->function(body->data, piece);
}

umemStatusType umem_parallel_for(unsigned count, umemParallelBody *body, void *data) {
  UMEM_ENTER();
  if (!body) return umemVirtual_fail(NULL, umemValueError, "the function to call is NULL");
  if (count) umem_parallel_loop(count, call_body, &(Body){body, data});
  return UMEM_RESULT();
}
