/* pools.h - the rows of backends.c for pools: over RAM, files, devices that the CPU cannot address,
 * ordered ones, and CUDA's. */
#ifndef UMEM_TEST_POOLS_H
#define UMEM_TEST_POOLS_H

#include "backends.h"

umemVirtual *open_pool_host(void), *open_pool_file(void), *open_pool_mmap(void),
    *open_pool_fake(void), *open_pool_offset(void), *open_pool_async(void),
    *open_pool_fake_managed(void), *open_pool_cuda(void), *open_pool_cuda_async(void),
    *open_pool_cuda_host(void), *open_pool_cuda_managed(void);

/* Views of pools. */
umemVirtual *open_pool_on_async(void), *open_pool_on_cuda_sync(void),
    *open_pool_on_cuda_async(void);

void close_pool(umemVirtual *ctx);
void close_pool_on(umemVirtual *ctx);

/* Its own blocks, and what has moved below. */
BackendRecords pool_records(umemVirtual *ctx);
BackendRecords pool_on_records(umemVirtual *ctx);

/* It does not see writes outside of a block. */
enum {
  pool_plain = backendWrapped | backendTestOnly | backendChecksFrees,
  pool_gpu = pool_plain | backendMayLack
};

#define POOL_ROW(over, opener, traits, memory)                                                     \
  { "pool(" over ")", opener, close_pool, traits, memory, pool_records, NULL }

#define POOL_ON_ROW(over, opener, traits, memory)                                                  \
  { "pool-on(" over ")", opener, close_pool_on, traits, memory, pool_on_records, NULL }

#define POOL_ROWS                                                                                  \
  POOL_ROW("host", open_pool_host, pool_plain, "host"),                                            \
      POOL_ROW("file-scratch", open_pool_file, pool_plain, NULL),                                  \
      POOL_ROW("mmap-scratch", open_pool_mmap, pool_plain, NULL),                                  \
      POOL_ROW("fake", open_pool_fake, pool_plain, NULL),                                          \
      POOL_ROW("fake-offset", open_pool_offset, pool_plain, NULL),                                 \
      POOL_ROW("fake-async", open_pool_async, pool_plain, NULL),                                   \
      POOL_ROW("fake-managed", open_pool_fake_managed, pool_plain, NULL),                          \
      POOL_ROW("cuda", open_pool_cuda, pool_gpu, "gpu 0"),                                         \
      POOL_ROW("cuda-async", open_pool_cuda_async, pool_gpu, "gpu 0"),                             \
      POOL_ROW("cuda-host", open_pool_cuda_host, pool_gpu, "pinned"),                              \
      POOL_ROW("cuda-managed", open_pool_cuda_managed, pool_gpu, "managed"),                       \
      POOL_ON_ROW("fake-async", open_pool_on_async, pool_plain, NULL),                             \
      POOL_ON_ROW("cuda", open_pool_on_cuda_sync, pool_gpu, "gpu 0"),                              \
      POOL_ON_ROW("cuda-async", open_pool_on_cuda_async, pool_gpu, "gpu 0")

#endif
