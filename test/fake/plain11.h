/* plain11.h - the example context as a binary that knows eleven methods would have it. */
#pragma once

#include "mymem.h"

umemStatusType plain11_ctor(umemMyMem *ctx, size_t capacity);
