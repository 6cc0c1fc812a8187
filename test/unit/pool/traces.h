/* traces.h - the traces of the benchmarks (bench/trace.h), for programs in C. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Each step is an allocation of a block by its number, or with size 0 its free. At the end no block
 * is live. */
typedef struct TestTrace {
  char const *name;
  size_t blocks, count; /* numbers of blocks; steps */
  uint32_t const *numbers;
  uint64_t const *sizes;
} TestTrace;

#ifdef __cplusplus
extern "C"
#endif
    /* All traces, of about so many allocations each, with their sizes in full; *count of them. They
 * remain until the end of the program. */
    TestTrace const *
    test_traces(size_t allocations, size_t *count);
