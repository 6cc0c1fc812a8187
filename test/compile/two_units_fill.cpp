// two_units_fill.cpp - see two_units_main.cpp.
#include "two_units.h"

bool fill(umemVirtual *ctx, uintptr_t adr, size_t n) { return umem_set(ctx, adr, 7, n) == umemOK; }
