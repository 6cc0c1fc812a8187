/* clock.c - measures the rate of the processor's counter by clock_gettime. */
#include "base/clock.h"

#if !defined(__x86_64__)

void umemClock_start(void) {}

#else

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

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
