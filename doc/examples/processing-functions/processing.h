/* processing.h - processing functions: C functions that take arrays. */
#ifndef PROCESSING_H
#define PROCESSING_H

#include <umem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* [declaration] */
/* out = one + other, element by element. The three arrays have one shape, any strides, and each any
 * real type; the sums are made of doubles, and are rounded to the type of out. They may be on any
 * contexts. */
void vector_add(umemArray *out, umemArray *one, umemArray *other, umemStatusType *status);
/* [/declaration] */

#ifdef __cplusplus
}
#endif

#endif
