/* An array in a file outlives the program: the same calls find it again. */
#include <stdio.h>
#include <umem.h>

enum { n = 5 };

/* [write] */
static umemStatusType write_array(umemHost *ram) {
  double x[n] = {1, 2, 3, 4, 5};
  umemFile file;
  umemFile_ctor(&file, "kept.bin", "w");
  uintptr_t array = umem_alloc(&file, sizeof x);
  umem_copy_from(&file, array, ram, (uintptr_t)x, sizeof x);
  umem_flush(&file); /* now the array survives a power cut */
  umemStatusType status = umem_get_status(&file);
  umem_dtor(&file); /* closes the file; the bytes stay */
  return status;
}
/* [/write] */

/* [read] */
static umemStatusType read_array(umemHost *ram, double x[n]) {
  umemFile file;
  umemFile_ctor(&file, "kept.bin", "r");
  uintptr_t array =
      umem_alloc(&file, n * sizeof *x); /* has the same offset as when it was written */
  umem_copy_to(&file, array, ram, (uintptr_t)x, n * sizeof *x);
  umemStatusType status = umem_get_status(&file);
  umem_dtor(&file);
  return status;
}
/* [/read] */

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);
  double x[n] = {0};
  if (write_array(&ram) != umemOK || read_array(&ram, x) != umemOK) {
    fprintf(stderr, "%s\n", umem_thread_message());
    return 1;
  }
  for (int i = 0; i < n; i++) printf("%g\n", x[i]);
  umem_dtor(&ram);
  return 0;
}
