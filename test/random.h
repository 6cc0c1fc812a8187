/* random.h - random numbers: splitmix64 by S. Vigna, in the public domain. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The next one; any number may be the first state. */
static inline uint64_t random64(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* 0 ... n - 1 */
static inline size_t below(uint64_t *state, size_t n) { return (size_t)(random64(state) % n); }

/* 1 ... 2^bits, small ones as likely as large ones. */
static inline size_t random_size(uint64_t *state, unsigned bits) {
  return 1 + below(state, (size_t)1 << below(state, bits + 1));
}

/* For tests against a model: fails with what repeats the run. */
#define check_operation(condition, seed, operation)                                                \
  do {                                                                                             \
    if (!(condition))                                                                              \
      fail_msg("seed %ju, operation %ju: %s (%s)", (uintmax_t)(seed), (uintmax_t)(operation),      \
               #condition, umem_thread_message());                                                 \
  } while (0)
