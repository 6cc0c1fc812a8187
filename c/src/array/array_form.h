/* array_form.h - a shape with its strides: checks, spans, order. */
#ifndef UMEM_ARRAY_FORM_H
#define UMEM_ARRAY_FORM_H

#include <umem/array.h>

/* A shape with its strides, checked. */
typedef struct umemArrayForm {
  umemElementType type;
  size_t item_size;
  int rank;
  int64_t elements;
  int64_t low,
      high; /* bytes that the elements span, relative to index (0, ..., 0); 0 without elements */
  int64_t shape[UMEM_MAX_RANK];
  int64_t strides[UMEM_MAX_RANK];
} umemArrayForm;

/* Fills in the form; false, and a status, for what umemArray_create refuses. strides NULL is C order. */
bool umem_array_form(umemArrayForm *form, umemElementType type, int rank, int64_t const *shape,
                     int64_t const *strides);

/* Writes "(3, 4)", cut at the end if it is long; returns text. */
enum { umemArrayShapeText = 200 };
char const *umem_array_write_shape(char text[umemArrayShapeText], int rank, int64_t const *shape);

#endif
