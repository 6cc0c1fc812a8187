/* vector_add.c - see processing.h. */
#include "processing.h"

/* [loop] */
static void add(double *sum, double const *x, int64_t count) {
  for (int64_t i = 0; i < count; i++) sum[i] += x[i];
}
/* [/loop] */

/* [function] */
/* array as doubles in RAM, in C order. */
static umemArray *to_doubles(umemHost *ram, umemArray *array, umemStatusType *status) {
  umemArray *doubles = umemArray_create(ram, umemDouble, umemArray_rank(array),
                                        umemArray_shape(array), NULL, status);
  umemArray_convert(doubles, array, 0, 0, umemArray_elements(array), status);
  return doubles;
}

void vector_add(umemArray *out, umemArray *one, umemArray *other, umemStatusType *status) {
  umemArray_check_writeable(out, status);
  umemArray_check_same_shape(one, out, status);
  umemArray_check_same_shape(other, out, status);
  if (*status != umemOK) return;

  umemHost ram;
  *status = umemHost_ctor(&ram);
  umemArray *sum = to_doubles(&ram, one, status);
  umemArray *second = to_doubles(&ram, other, status);
  double *x = umemArray_host_pointer(sum, true, status);
  double const *y = umemArray_host_pointer(second, false, status);
  if (*status == umemOK) add(x, y, umemArray_elements(out));
  umemArray_convert(out, sum, 0, 0, umemArray_elements(sum), status);
  umemArray_release(second);
  umemArray_release(sum);
  umem_dtor(&ram);
}
/* [/function] */
