/* several.h - one call for several blocks, or several contexts, in the order in which they are
 * named. */
#pragma once

#include <umem.h>

#include "scoped.h"

static inline void free_blocks(void *ctx, uintptr_t const *adr, size_t count) {
  for (size_t i = 0; i < count; i++) umem_free(ctx, adr[i]);
}
static inline void destruct_contexts(void *const *contexts, size_t count) {
  for (size_t i = 0; i < count; i++) umem_dtor(contexts[i]);
}
static inline void forget_contexts(void *const *contexts, size_t count) {
  for (size_t i = 0; i < count; i++) umem_clear_status(contexts[i]);
  umem_thread_clear();
}

/* For SCOPED. */
static inline void release_array(umemArray *const *array) { umemArray_release(*array); }

/* Frees these blocks of ctx. */
#define FREE(ctx, ...)                                                                             \
  free_blocks(ctx, (uintptr_t[]){__VA_ARGS__}, sizeof(uintptr_t[]){__VA_ARGS__} / sizeof(uintptr_t))

/* Destructs these contexts. */
#define DESTRUCT(...)                                                                              \
  destruct_contexts((void *[]){__VA_ARGS__}, sizeof(void *[]){__VA_ARGS__} / sizeof(void *))

/* Forgets the failures of these contexts, and of the thread. */
#define FORGET(...)                                                                                \
  forget_contexts((void *[]){__VA_ARGS__}, sizeof(void *[]){__VA_ARGS__} / sizeof(void *))
