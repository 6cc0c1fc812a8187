/* number.h - questions about numbers. */
#ifndef UMEM_NUMBER_H
#define UMEM_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool umem_is_power_of_two(size_t n) { return n && !(n & (n - 1)); }

static inline uint64_t umem_greater(uint64_t one, uint64_t other) {
  return one > other ? one : other;
}

static inline uint64_t umem_lesser(uint64_t one, uint64_t other) {
  return one < other ? one : other;
}

#endif
