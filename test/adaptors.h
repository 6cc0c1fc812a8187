/* adaptors.h - the rows of backends.c for the small adaptors: each over RAM, a file, a device
 * that the CPU cannot address, an ordered one, and CUDA's; over all four of these on a GPU. */
#ifndef UMEM_TEST_ADAPTORS_H
#define UMEM_TEST_ADAPTORS_H

#include "backends.h"

/* The functions that open one adaptor over each of the contexts. */
#define ADAPTOR_OPENERS(name)                                                                      \
  umemVirtual *open_##name##_host(void), *open_##name##_file(void), *open_##name##_fake(void),     \
      *open_##name##_async(void), *open_##name##_cuda(void), *open_##name##_gpu(void),             \
      *open_##name##_pinned(void), *open_##name##_managed(void);

ADAPTOR_OPENERS(limit)
ADAPTOR_OPENERS(stats)
ADAPTOR_OPENERS(track)
ADAPTOR_OPENERS(debug)
umemVirtual *open_debug_mmap(void), *open_debug_pool(void), *open_debug_pool_cuda(void);
ADAPTOR_OPENERS(retry)
ADAPTOR_OPENERS(fault)
ADAPTOR_OPENERS(guarded)
ADAPTOR_OPENERS(log)

umemVirtual *open_prefetch(void);

/* Makes ctx, by umemLog_ctor or umemLog_adopt, a log in a file of its own that vanishes with it. */
umemStatusType adaptor_log(umemStatusType (*construct)(umemLog *, void *, umemLogOptions const *),
                           void *ctx, void *upstream);

void close_adaptor(umemVirtual *ctx);
BackendRecords adaptor_records(umemVirtual *ctx);

/* Its own live blocks: those that wait are upstream's still. */
BackendRecords debug_records(umemVirtual *ctx);

enum {
  adaptor_plain = backendWrapped | backendTestOnly,
  adaptor_keeps = adaptor_plain | backendKeepsRecords | backendChecksFrees,
  adaptor_gpu = adaptor_plain | backendChecksFrees | backendMayLack
};

#define ADAPTOR_ROW(name, opener, over, traits, memory, records)                                   \
  { name "(" over ")", opener, close_adaptor, traits, memory, records, NULL }

/* The rows of one adaptor; more: traits of its own. */
#define ADAPTOR_ROWS(name, more, paging)                                                           \
  ADAPTOR_ROW(#name, open_##name##_host, "host", adaptor_plain | (more) | (paging), "host", NULL), \
      ADAPTOR_ROW(#name, open_##name##_file, "file-scratch", adaptor_keeps | (more), NULL, NULL),  \
      ADAPTOR_ROW(#name, open_##name##_fake, "fake", adaptor_keeps | (more), NULL,                 \
                  adaptor_records),                                                                \
      ADAPTOR_ROW(#name, open_##name##_async, "fake-async", adaptor_keeps | (more), NULL,          \
                  adaptor_records),                                                                \
      ADAPTOR_ROW(#name, open_##name##_cuda, "cuda-async", adaptor_gpu | (more) | (paging),        \
                  "gpu 0", NULL),                                                                  \
      ADAPTOR_ROW(#name, open_##name##_gpu, "cuda", adaptor_gpu | (more) | (paging), "gpu 0",      \
                  NULL),                                                                           \
      ADAPTOR_ROW(#name, open_##name##_pinned, "cuda-host", adaptor_gpu | (more), "pinned", NULL), \
      ADAPTOR_ROW(#name, open_##name##_managed, "cuda-managed", adaptor_gpu | (more), "managed",   \
                  NULL)

/* It knows its blocks wherever they are; freed ones are not upstream's at once. */
enum {
  debug_plain = adaptor_plain | backendChecksFrees,
  debug_keeps = debug_plain | backendKeepsRecords,
  debug_gpu = debug_plain | backendMayLack
};
#define DEBUG_ROW(over, opener, traits, memory)                                                    \
  { "debug(" over ")", opener, close_adaptor, traits, memory, debug_records, NULL }
#define DEBUG_ROWS                                                                                 \
  DEBUG_ROW("host", open_debug_host, debug_plain, "host"),                                         \
      DEBUG_ROW("file-scratch", open_debug_file, debug_keeps, NULL),                               \
      DEBUG_ROW("mmap-scratch", open_debug_mmap, debug_keeps, NULL),                               \
      DEBUG_ROW("fake", open_debug_fake, debug_keeps, NULL),                                       \
      DEBUG_ROW("fake-async", open_debug_async, debug_keeps, NULL),                                \
      DEBUG_ROW("cuda-async", open_debug_cuda, debug_gpu, "gpu 0"),                                \
      DEBUG_ROW("cuda", open_debug_gpu, debug_gpu, "gpu 0"),                                       \
      DEBUG_ROW("cuda-host", open_debug_pinned, debug_gpu, "pinned"),                              \
      DEBUG_ROW("cuda-managed", open_debug_managed, debug_gpu, "managed"),                         \
      DEBUG_ROW("pool(host)", open_debug_pool, debug_plain, "host"),                               \
      DEBUG_ROW("pool(cuda)", open_debug_pool_cuda, debug_gpu, "gpu 0")

/* Over RAM it knows its blocks, and where they end. */
#define GUARDED_ROWS                                                                               \
  ADAPTOR_ROW("guarded", open_guarded_host, "host", adaptor_keeps, NULL, NULL),                    \
      ADAPTOR_ROW("guarded", open_guarded_file, "file-scratch", adaptor_keeps, NULL, NULL),        \
      ADAPTOR_ROW("guarded", open_guarded_fake, "fake", adaptor_keeps, NULL, adaptor_records),     \
      ADAPTOR_ROW("guarded", open_guarded_async, "fake-async", adaptor_keeps, NULL,                \
                  adaptor_records),                                                                \
      ADAPTOR_ROW("guarded", open_guarded_cuda, "cuda-async", adaptor_gpu, "gpu 0", NULL),         \
      ADAPTOR_ROW("guarded", open_guarded_gpu, "cuda", adaptor_gpu, "gpu 0", NULL),                \
      ADAPTOR_ROW("guarded", open_guarded_pinned, "cuda-host", adaptor_gpu, "pinned", NULL),       \
      ADAPTOR_ROW("guarded", open_guarded_managed, "cuda-managed", adaptor_gpu, "managed", NULL)

/* What goes over managed memory only. */
#define ADAPTOR_ROW_PREFETCH                                                                       \
  ADAPTOR_ROW("prefetch", open_prefetch, "cuda-managed", adaptor_gpu, "managed", NULL)

#endif
