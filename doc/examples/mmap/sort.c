/* Sorts an array in a file, in place. */
#include <stdio.h>
#include <stdlib.h>
#include <umem.h>

enum { n = 6 };

static int compare(void const *a, void const *b) {
  double x = *(double const *)a, y = *(double const *)b;
  return (x > y) - (x < y);
}

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);

  double const unsorted[n] = {3, 1, 4, 1.5, 9, 2.6};
  umemFile file;
  umemFile_ctor(&file, "numbers.bin", "w");
  uintptr_t offset = umem_alloc(&file, sizeof unsorted);
  umem_copy_from(&file, offset, &ram, (uintptr_t)unsorted, sizeof unsorted);
  umem_dtor(&file);

  /* [map] */
  umemMMap map;
  umemMMap_ctor(&map, "numbers.bin", "r+");
  uintptr_t array = umem_alloc(&map, n * sizeof(double)); /* the block is the bytes of the file */
  double *x = (double *)array;
  if (x) qsort(x, n, sizeof *x, compare);
  /* [/map] */

  for (int i = 0; x && i < n; i++) printf("%g\n", x[i]);

  int failed = !umem_is_ok(&map);
  if (failed) fprintf(stderr, "%s\n", umem_get_message(&map));
  umem_dtor(&map);
  umem_dtor(&ram);
  return failed;
}
