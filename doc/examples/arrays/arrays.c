/* A processing function that takes arrays: it checks them, and works where they are. */
#include <stdio.h>
#include <string.h>
#include <umem.h>

/* [function] */
/* out = one + other, element by element. The arrays are in C order, in memory that the CPU can use. */
static void vector_add(umemArray *out, umemArray *one, umemArray *other, umemStatusType *status) {
  umemArray_check_writeable(out, status);
  umemArray_check_location(out, umemCpuReadable | umemCpuWritable, status);
  umemArray_check_type(out, umemDouble, status);
  umemArray_check_same_type(one, out, status);
  umemArray_check_same_type(other, out, status);
  umemArray_check_same_shape(one, out, status);
  umemArray_check_same_shape(other, out, status);
  umemArray_check_c_contiguity(out, status);
  umemArray_check_c_contiguity(one, status);
  umemArray_check_c_contiguity(other, status);
  double *sum = umemArray_host_pointer(out, true, status);
  double const *x = umemArray_host_pointer(one, false, status);
  double const *y = umemArray_host_pointer(other, false, status);
  if (*status != umemOK) return; /* whatever has failed */
  for (int64_t i = 0; i < umemArray_elements(out); i++) sum[i] = x[i] + y[i];
}
/* [/function] */

int main(void) {
  umemHost ram;
  umemFile file;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, NULL, "w+"); /* a scratch file */

  /* [make] */
  umemStatusType status = umemOK;
  int64_t const shape[] = {3, 4};
  double const half = 0.5;
  umemArray *a = umemArray_full(&ram, umemDouble, 2, shape, NULL, &half, &status);
  umemArray *sum = umemArray_zeros(&ram, umemDouble, 2, shape, NULL, &status);
  vector_add(sum, a, a, &status);
  /* [/make] */

  /* [views] */
  umemArray *row = umemArray_select(sum, 0, 1, &status);       /* row 1 */
  umemArray *even = umemArray_slice(sum, 1, 0, 2, 2, &status); /* columns 0 and 2 */
  umemArray *flipped = umemArray_permute(even, NULL, &status); /* of shape (2, 3) */
  umemArray_fill(row, &half, &status);                         /* sum has it, too */
  /* [/views] */

  /* [copy] */
  umemArray *kept = umemArray_copy(flipped, &file, umemOrderC, &status); /* in a file, in C order */
  umemArray *back = umemArray_copy(kept, &ram, umemOrderC, &status);
  /* [/copy] */
  double const *x = umemArray_host_pointer(back, false, &status);
  for (int i = 0; x && i < 6; i++) printf("%g%c", x[i], i % 3 == 2 ? '\n' : ' ');

  /* [convert] */
  umemArray *whole = umemArray_create(&ram, umemInt8, 2, shape, NULL, &status);
  umemArray_random_uniform(a, -200, 200, 42, &status); /* seed 42: the same numbers everywhere */
  umemArray_convert(whole, a, 0, 0, umemArray_elements(a),
                    &status); /* at most 127, at least -128 */
  /* [/convert] */
  int8_t const *n = umemArray_host_pointer(whole, false, &status);
  for (int i = 0; n && i < 12; i++) printf("%d%c", n[i], i % 4 == 3 ? '\n' : ' ');

  /* [fails] */
  vector_add(back, a, a, &status); /* of another shape */
  umemArray_clear(a, &status);     /* does nothing: the sequence has failed */
  /* [/fails] */
  printf("%s\n", umem_get_status_name(status));
  printf("vector_add: %s\n", strstr(umem_thread_message(), "one has"));

  /* [release] */
  umemArray *all[] = {whole, back, kept, flipped, even, row, sum, a};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) umemArray_release(all[i]);
  umem_dtor(&file);
  umem_dtor(&ram);
  /* [/release] */
  return 0;
}
