/* external.h - the rows of backends.c for allocators of others. */
#ifndef UMEM_TEST_EXTERNAL_H
#define UMEM_TEST_EXTERNAL_H

#include "backends.h"

umemVirtual *open_external_malloc(void), *open_external_cuda(void), *open_external_async(void),
    *open_external_managed(void);
void close_external(umemVirtual *ctx);

enum {
  external_plain = backendWrapped | backendTestOnly | backendChecksFrees,
  external_gpu = external_plain | backendMayLack
};

#define EXTERNAL_ROW(over, opener, traits, memory)                                                 \
  { "external(" over ")", opener, close_external, traits, memory, NULL, NULL }
#define EXTERNAL_ROWS                                                                              \
  EXTERNAL_ROW("malloc", open_external_malloc, external_plain, "host"),                            \
      EXTERNAL_ROW("cuda", open_external_cuda, external_gpu, "gpu 0"),                             \
      EXTERNAL_ROW("cuda-async", open_external_async, external_gpu, "gpu 0"),                      \
      EXTERNAL_ROW("cuda-managed", open_external_managed, external_gpu, "managed")

#endif
