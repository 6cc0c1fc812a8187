/* two_units.h - what the two units of test two_units call of each other. */
#pragma once

#include <umem.h>

/* Fills n bytes of ctx, defined in the second unit, and returns whether that worked. */
bool fill(umemVirtual *ctx, uintptr_t adr, size_t n);
