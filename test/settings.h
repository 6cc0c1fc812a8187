/* settings.h - what the environment asks of the tests. A variable that is empty is as one that is
 * not set. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Whether a variable is set. */
static inline bool setting_is_on(char const *variable) {
  char const *text = getenv(variable);
  return text && *text;
}

/* UMEM_TEST_SMALL: the environment is slow (a sanitizer, valgrind). */
static inline bool setting_small(void) { return setting_is_on("UMEM_TEST_SMALL"); }

/* UMEM_TEST_QEMU: qemu's user mode runs the program. */
static inline bool setting_qemu(void) { return setting_is_on("UMEM_TEST_QEMU"); }

/* UMEM_TEST_GPU: CUDA's contexts are of the real runtime, not of its double. */
static inline bool setting_gpu(void) { return setting_is_on("UMEM_TEST_GPU"); }

/* UMEM_TEST_DRIVER: they are of the driver's library that the dynamic linker finds, which may be a
 * double. */
static inline bool setting_driver(void) { return setting_is_on("UMEM_TEST_DRIVER"); }

/* UMEM_TEST_WITHOUT: a word; rows of the table of contexts that have it in their names are left
 * out. */
static inline bool setting_leaves_out(char const *row) {
  char const *variable = "UMEM_TEST_WITHOUT";
  return setting_is_on(variable) && strstr(row, getenv(variable));
}

/* UMEM_TEST_CASES: how many cases the tests of arrays against a model make in all; otherwise when
 * it is not set. The whole run sets 100000 for AddressSanitizer, where tests are small
 * otherwise. */
static inline int setting_cases(int otherwise) {
  char const *variable = "UMEM_TEST_CASES";
  return setting_is_on(variable) ? (int)strtol(getenv(variable), NULL, 10) : otherwise;
}

/* UMEM_TEST_SECONDS: how long a test takes that has no end of its own; otherwise when it is not
 * set. */
static inline int setting_seconds(int otherwise) {
  char const *variable = "UMEM_TEST_SECONDS";
  return setting_is_on(variable) ? (int)strtol(getenv(variable), NULL, 10) : otherwise;
}

/* UMEM_TEST_OPERATIONS: how many a random test makes; otherwise when it is not set. */
static inline uint64_t setting_operations(uint64_t otherwise) {
  char const *variable = "UMEM_TEST_OPERATIONS";
  return setting_is_on(variable) ? strtoull(getenv(variable), NULL, 10) : otherwise;
}
