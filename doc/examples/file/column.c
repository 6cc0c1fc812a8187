/* Copies one column of a matrix in a file, without reading the matrix into RAM first. */
#include <stdio.h>
#include <umem.h>

enum { rows = 4, columns = 3 };

int main(void) {
  umemHost ram;
  umemFile file;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, NULL, "w+"); /* a scratch file: it ends with the context */

  double const matrix[rows][columns] = {{11, 12, 13}, {21, 22, 23}, {31, 32, 33}, {41, 42, 43}};
  uintptr_t there = umem_alloc(&file, sizeof matrix);
  umem_copy_from(&file, there, &ram, (uintptr_t)matrix, sizeof matrix);

  /* [column] */
  double column[rows] = {0};
  size_t extents[] = {rows};
  ptrdiff_t src_strides[] = {columns * sizeof(double)}; /* bytes from one row to the next */
  umemLayout layout = {
      .size = sizeof layout,
      .item_size = sizeof(double),
      .rank = 1,
      .extents = extents,
      .src_strides = src_strides,
      .dst_strides = NULL, /* without gaps */
  };
  uintptr_t second = there + 1 * sizeof(double); /* the second column begins here */
  umem_copy_strided(&file, second, &ram, (uintptr_t)column, &layout);
  /* [/column] */

  for (int i = 0; i < rows; i++) printf("%g\n", column[i]);

  int failed = !umem_is_ok(&file);
  if (failed) fprintf(stderr, "%s\n", umem_get_message(&file));
  umem_dtor(&file);
  umem_dtor(&ram);
  return failed;
}
