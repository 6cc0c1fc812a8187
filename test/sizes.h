/* sizes.h - the rows of backends.c for blocks of one size, and for bins of sizes. */
#ifndef UMEM_TEST_SIZES_H
#define UMEM_TEST_SIZES_H

#include "backends.h"

/* The functions that open one of the two over each of the contexts. */
#define SIZES_OPENERS(name)                                                                        \
  umemVirtual *open_##name##_host(void), *open_##name##_file(void), *open_##name##_fake(void),     \
      *open_##name##_offset(void), *open_##name##_async(void);

/* Blocks as large as the contract ever asks for, so that it holds for them too. As it asks for
 * hundreds at once, they are more than the double of a GPU has: there they are among the bins. */
SIZES_OPENERS(fixed)
void close_fixed(umemVirtual *ctx);
BackendRecords fixed_records(umemVirtual *ctx);

/* Blocks of two sizes, and a pool for the rest. */
SIZES_OPENERS(binning)
umemVirtual *open_binning_cuda(void);
void close_binning(umemVirtual *ctx);
BackendRecords binning_records(umemVirtual *ctx);

/* They do not see writes outside of a block. */
enum {
  sizes_plain = backendWrapped | backendTestOnly | backendChecksFrees,
  sizes_gpu = sizes_plain | backendMayLack
};

#define SIZES_ROW(name, over, opener, traits, memory)                                              \
  { #name "(" over ")", open_##name##_##opener, close_##name, traits, memory, name##_records, NULL }

#define SIZES_ROWS(name)                                                                           \
  SIZES_ROW(name, "host", host, sizes_plain, "host"),                                              \
      SIZES_ROW(name, "file-scratch", file, sizes_plain, NULL),                                    \
      SIZES_ROW(name, "fake", fake, sizes_plain, NULL),                                            \
      SIZES_ROW(name, "fake-offset", offset, sizes_plain, NULL),                                   \
      SIZES_ROW(name, "fake-async", async, sizes_plain, NULL)

#define FIXED_ROWS SIZES_ROWS(fixed)
#define BINNING_ROWS SIZES_ROWS(binning), SIZES_ROW(binning, "cuda-async", cuda, sizes_gpu, "gpu 0")

#endif
