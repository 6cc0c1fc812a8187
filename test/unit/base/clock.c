/* clock.c - base/thread.h: the time of a thread is that of clock_gettime, never goes back, and
 * seldom asks it.
 *
 * Linked with -Wl,--wrap=clock_gettime. */

#include <stdatomic.h>

#include "base/thread.h"
#include "settings.h"
#include "workers.h"
#include "wrap.h"

enum {
  lag_most = 2000,
  ahead_most = 1000
}; /* ns; more than the clock needs, for a rate that the system changes */

static atomic_ulong calls; /* of clock_gettime */
static atomic_bool slow;   /* it takes much longer than it should */

WRAPPED(int, clock_gettime, (clockid_t clock, struct timespec *t)) {
  atomic_fetch_add(&calls, 1);
  int result = __real_clock_gettime(clock, t);
  if (slow) usleep(20);
  return result;
}

static uint64_t real_time(void) {
  struct timespec t;
  __real_clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Reads the clock once, between two readings of the real one. Whether it is right, and not before
 * *last. */
static bool read_once(umemClock *clock, uint64_t *last) {
  uint64_t before = real_time(), now = umemClock_now(clock), after = real_time();
  bool right = now + lag_most >= before && now <= after + ahead_most && now >= *last;
  *last = now;
  return right;
}

static bool read_for(umemClock *clock, uint64_t ns) {
  uint64_t last = 0, end = real_time() + ns;
  bool right = true;
  while (right && real_time() < end) right = read_once(clock, &last);
  return right;
}

static uint64_t long_time(void) { return setting_small() ? 50000000 : 100000000; }

/* Whether the clock of this system is the processor's counter. */
static bool counts(void) {
#if defined(__x86_64__)
  umemClock_start();
  return umem_clock_counts;
#else
  return false;
#endif
}

TEST_CASE(it_is_the_time_and_never_goes_back) {
  umemClock clock = {0};
  umemClock_start();
  assert_true(read_for(&clock, long_time()));
  for (int i = 0; i < 20; i++) { /* after times without any reading */
    usleep(i % 2 ? 3000 : 100);
    assert_true(read_for(&clock, 50000));
  }
}

static void *read_in_thread(void *unused UNUSED) {
  umemClock clock = {0};
  return read_for(&clock, long_time()) ? &calls : NULL;
}

TEST_CASE(each_thread_has_its_own) {
  umemClock_start();
  assert_true(in_threads(read_in_thread));
}

TEST_CASE(it_seldom_asks_the_system) {
  umemClock clock = {0};
  enum { readings = 100000 };
  umemClock_start();
  assert_true(read_for(&clock, long_time()));
  unsigned long before = calls;
  for (int i = 0; i < readings; i++) umemClock_now(&clock);
  if (counts())
    assert_true(calls - before < readings / 10);
  else
    assert_true(calls - before >= readings);
}

/* As when the thread is interrupted each time. */
TEST_CASE(a_reading_that_takes_long_is_right) {
  umemClock clock = {0};
  umemClock_start();
  for (int i = 0; i < 3; i++) {
    slow = i % 2 == 0;
    assert_true(read_for(&clock, long_time()));
  }
  slow = false;
}

/* The processor's counter has begun anew, or has gone on, while the time stood still: as after a
 * suspension. */
TEST_CASE(a_counter_that_jumps_does_no_harm) {
  umemClock clock = {0};
  uint64_t const jumps[] = {UINT64_MAX / 8, 0 - (UINT64_MAX / 8), 1000000000,
                            0 - UINT64_C(1000000000)};
  uint64_t const times[] = {5000000, 8000000, 15000000, 40000000}; /* ns */
  umemClock_start();
  for (int i = 0; i < 16;
       i++) { /* before the rate is measured, before it is confirmed, and after that */
    assert_true(read_for(&clock, times[i / 4]));
    uint64_t jump =
        jumps[i % 4] + (uint64_t)i * 10000000; /* two that are the same would confirm each other */
    clock.ticks += jump;
    clock.first_ticks += jump;
    usleep(1000);
  }
  assert_true(read_for(&clock, long_time()));
}
