/* two_units.h - what the two units of test two_units call of each other. */
#ifndef UMEM_TEST_TWO_UNITS_H
#define UMEM_TEST_TWO_UNITS_H

#include <umem.h>

/* Fills n bytes of ctx, defined in the second unit, and returns whether that worked. */
bool fill(umemVirtual *ctx, uintptr_t adr, size_t n);

#endif
