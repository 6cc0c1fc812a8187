/* named.h - the rows of backends.c for contexts that umem_open makes. */
#ifndef UMEM_TEST_NAMED_H
#define UMEM_TEST_NAMED_H

#include "backends.h"

umemVirtual *open_named_pool(void), *open_named_limit(void), *open_named_many(void),
    *open_named_cuda(void);

void close_named(umemVirtual *ctx);

enum {
  named_plain = backendDecorated | backendTestOnly,
  named_checks = named_plain | backendChecksFrees
};

#define NAMED_ROWS                                                                                 \
  {"pool+host:", open_named_pool, close_named, named_checks, "host", NULL, NULL},                  \
      {"limit+file:", open_named_limit, close_named, named_checks | backendKeepsBooks, NULL, NULL, \
       NULL},                                                                                      \
      {"stats+limit+pool+mmap:", open_named_many, close_named, named_checks, NULL, NULL, NULL}, {  \
    "pool+cuda-async:", open_named_cuda, close_named, named_checks | backendMayLack, "gpu 0",      \
        NULL, NULL                                                                                 \
  }

#endif
