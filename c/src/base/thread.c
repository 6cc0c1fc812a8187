/* thread.c - starts threads, measures the rate of the processor's counter by clock_gettime, and
 * keeps a list of all locks for fork. */
#include "base/thread.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ==== threads ==== */

_Thread_local umemThread umem_thread;

int umem_thread_start(pthread_t *thread, void *(*work)(void *argument), void *argument) {
  static int const own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  sigset_t all, before;
  sigfillset(&all);
  for (size_t i = 0; i < sizeof own_faults / sizeof *own_faults; i++)
    sigdelset(&all, own_faults[i]);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(thread, NULL, work, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

/* ==== clocks ==== */

#if !defined(__x86_64__)

void umemClock_start(void) {}

#else

/* ns: how long a reading serves; the least and the most time over which the rate is measured, so
 * that the shift by 32 bits does not overflow. Ticks: what a reading may take, unless the thread
 * was interrupted. */
enum { serves = 250000, least_span = 10000000, most_span = 2000000000, quick = 1000, tries = 4 };

bool umem_clock_counts;

static void look(void) {
  char text[8] = "";
  int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  __atomic_store_n(&umem_clock_counts, n > 0 && !strcmp(text, "tsc\n"), __ATOMIC_RELAXED);
}

void umemClock_start(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, look);
}

/* Reads both: the counter last, so that the time lags behind. Whether it took as long as it
 * should. */
static bool read_both(uint64_t *ticks, uint64_t *ns) {
  for (int i = 0; i < tries; i++) {
    uint64_t before = __builtin_ia32_rdtsc();
    *ns = umemClock_read(CLOCK_MONOTONIC);
    *ticks = __builtin_ia32_rdtsc();
    if (*ticks - before < quick) return true;
  }
  return false;
}

static bool is_near(uint64_t rate, uint64_t other) {
  uint64_t difference = rate > other ? rate - other : other - rate;
  return difference <= other >> 10;
}

/* The first rate serves only when another one, of a time of its own, confirms it. One that differs
 * from the rate before is none: the counter has jumped, or has gone on during a suspension. */
static void measure_rate(umemClock *clock) {
  uint64_t ticks = clock->ticks - clock->first_ticks, ns = clock->ns - clock->first_ns;
  bool usable = clock->first_ns && clock->ticks > clock->first_ticks && ns < most_span;
  if (usable && ns < least_span) return;
  if (usable) {
    uint64_t before = clock->rate, rate = (ns << 32) / ticks;
    bool confirmed = before && is_near(rate, before);
    clock->rate = confirmed || !before ? rate - (rate >> 14) : 0;
    clock->window = confirmed ? ((uint64_t)serves << 32) / rate : 0;
    if (confirmed) return;
  }
  clock->first_ticks = clock->ticks;
  clock->first_ns = clock->ns;
}

uint64_t umemClock_renew(umemClock *clock, uint64_t since) {
  uint64_t lasted = since < clock->window ? since : clock->window;
  uint64_t last = clock->ns + (lasted * clock->rate >> 32); /* no time so far was later */
  bool good = read_both(&clock->ticks, &clock->ns);
  if (clock->ns < last) clock->ns = last;
  if (good)
    measure_rate(clock);
  else
    clock->window = 0; /* until it is read well */
  return clock->ns;
}

#endif

/* ==== locks: a list, newest first, whose own mutex is `list_mutex` ==== */

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
umemLock umem_global_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static umemLock *newest = &umem_global_lock;
unsigned umem_forks; /* atomic */

static void before_fork(void) {
  pthread_mutex_lock(&list_mutex);
  for (umemLock *lock = newest; lock; lock = lock->older) pthread_mutex_lock(&lock->mutex);
}

static void after_fork(void) {
  for (umemLock *lock = newest; lock; lock = lock->older) pthread_mutex_unlock(&lock->mutex);
  pthread_mutex_unlock(&list_mutex);
}

static void after_fork_in_child(void) {
  __atomic_fetch_add(&umem_forks, 1, __ATOMIC_RELAXED);
  after_fork();
}

/* At load time rather than on first use: registering allocates, and a library without it would only
 * fail in a forked child. Before the constructors of the program, into which this may be linked. */
__attribute__((constructor(101))) static void watch_fork(void) {
  pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void umemLock_init(umemLock *lock) {
  pthread_mutex_init(&lock->mutex, NULL);
  pthread_mutex_lock(&list_mutex);
  UMEM_LIST_ADD(newest, lock);
  pthread_mutex_unlock(&list_mutex);
}

void umemLock_destroy(umemLock *lock) {
  pthread_mutex_lock(&list_mutex);
  UMEM_LIST_REMOVE(newest, lock);
  pthread_mutex_unlock(&list_mutex);
  pthread_mutex_destroy(&lock->mutex);
}

void umemLock_wait(umemLock *lock, pthread_cond_t *condition) {
  umem_defer_cancel();
  pthread_cond_wait(condition, &lock->mutex);
}
void umemLock_wait_until(umemLock *lock, pthread_cond_t *condition, uint64_t deadline) {
  uint64_t const second = 1000000000;
  umem_defer_cancel();
  struct timespec const until = {(time_t)(deadline / second), (long)(deadline % second)};
  pthread_cond_timedwait(condition, &lock->mutex, &until);
}
void umemLock_init_timed(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

/* ==== fences ==== */

#ifdef SYS_membarrier

/* MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED */
enum { fence_command = 1 << 3, register_command = 1 << 4 };

static bool command(int which) { return syscall(SYS_membarrier, which, 0, 0) == 0; }

bool umem_fence_threads(void) {
  if (umem_is_single_threaded()) return true;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return command(fence_command) || (command(register_command) && command(fence_command));
}

#else

bool umem_fence_threads(void) { return umem_is_single_threaded(); }

#endif
