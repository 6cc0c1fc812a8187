/* named.c - contexts that umem_open makes. */
#include "named.h"

umemVirtual *open_named_pool(void) { return umem_open("pool+host:?initial=64K&growth=1M"); }
umemVirtual *open_named_limit(void) { return umem_open("limit+file:?limit=1T"); }
umemVirtual *open_named_many(void) { return umem_open("stats+limit+pool+mmap:?limit.limit=1T"); }
umemVirtual *open_named_cuda(void) { return umem_open("pool+cuda-async:0?stream=new"); }

void close_named(umemVirtual *ctx) { umem_close(ctx); }
