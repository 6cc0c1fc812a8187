/* plain11.h - the example context as a binary that knows eleven methods would have it. */
#ifndef UMEM_TEST_PLAIN11_H
#define UMEM_TEST_PLAIN11_H

#include "mymem.h"

umemStatusType plain11_ctor(umemMyMem *ctx, size_t capacity);

#endif
