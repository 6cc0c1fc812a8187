/* clock.h - the time of CLOCK_MONOTONIC in less time than clock_gettime takes.
 *
 * A thread reads the processor's counter, and clock_gettime only every 250 us: between two such
 * readings the time follows from the counter and from its rate, which the thread has measured
 * twice, over 10 ms or more. The rate is a bit too low on purpose, so that the time lags behind by
 * at most some 0.1 us and never has to go back.
 *
 * Only where Linux itself takes the time from that counter (the clock source "tsc" of x86-64):
 * there it has a constant rate and is the same on all processors. Elsewhere, and in a thread that
 * is younger than 20 ms, each call is one of clock_gettime. */
#ifndef UMEM_CLOCK_H
#define UMEM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Of one thread. All zero is a clock that has not been read. */
typedef struct umemClock {
  uint64_t ticks, ns;             /* the last reading of clock_gettime */
  uint64_t window;                /* ticks for which that serves; 0: the rate is unknown */
  uint64_t rate;                  /* ns for each tick, times 2^32 */
  uint64_t first_ticks, first_ns; /* the reading that the rate is measured from; 0: none yet */
} umemClock;

static inline uint64_t umemClock_read(clockid_t clock) {
  struct timespec t = {0, 0};
  clock_gettime(clock, &t); /* CLOCK_MONOTONIC and CLOCK_REALTIME do not fail */
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Looks once whether the counter can be used. Before that it is not. */
void umemClock_start(void);

#if defined(__x86_64__)

extern bool umem_clock_counts __attribute__((visibility("hidden"))); /* atomic */

/* Reads clock_gettime. since: ticks since the last time. */
uint64_t umemClock_renew(umemClock *clock, uint64_t since);

/* Nanoseconds of CLOCK_MONOTONIC. For one clock they never become less. */
static inline uint64_t umemClock_now(umemClock *clock) {
  if (!__atomic_load_n(&umem_clock_counts, __ATOMIC_RELAXED))
    return umemClock_read(CLOCK_MONOTONIC);
  uint64_t since = __builtin_ia32_rdtsc() - clock->ticks;
  if (__builtin_expect(since < clock->window, 1)) return clock->ns + (since * clock->rate >> 32);
  return umemClock_renew(clock, since);
}

#else

static inline uint64_t umemClock_now(umemClock *clock) {
  (void)clock;
  return umemClock_read(CLOCK_MONOTONIC);
}

#endif
#endif
