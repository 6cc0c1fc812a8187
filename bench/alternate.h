/* alternate.h - times several things in turns, so that a noisy machine is noisy to all of them. */
#ifndef UMEM_BENCH_ALTERNATE_H
#define UMEM_BENCH_ALTERNATE_H

#include <chrono>
#include <functional>
#include <time.h>
#include <vector>

namespace bench {

/* Seconds that work takes. */
template <typename Work> double seconds_of(Work &&work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/* Seconds that the calling thread takes of the processor for it, which other programs take less
 * part in. */
template <typename Work> double processor_seconds_of(Work &&work) {
  auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time); /* which Linux always has */
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double begin = now();
  work();
  return now() - begin;
}

/* Of seconds_of, the second time, for work on fresh memory. A virtual machine hands free memory
 * back to its host; to get it again costs far more than the first touch that is to be measured.
 * What the first time has freed is still there for the second. */
template <typename Work> double seconds_of_second(Work &&work) {
  work();
  return seconds_of(work);
}

/* Makes the compiler believe that value is used. */
template <typename T> void use(T const &value) { asm volatile("" : : "r"(value) : "memory"); }

/* Does one piece of work and returns the seconds that count; what it prepares and cleans up does
 * not. */
using Timed = std::function<double()>;

/* Times each of the candidates once per round, beginning with another one each time, after a round
 * that is not counted, except if there is only one. samples[i][r] are the seconds of candidate i in
 * round r. */
using Samples = std::vector<std::vector<double>>;
Samples alternate(int rounds, std::vector<Timed> const &candidates);

/* The value below which the fraction q of all values is; 0.5 gives the median. */
double quantile(std::vector<double> values, double q);

} // namespace bench

#endif
