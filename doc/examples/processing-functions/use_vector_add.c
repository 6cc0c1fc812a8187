/* A program in C that calls a processing function. */
#include "processing.h"

#include <stdio.h>
#include <string.h>

int main(void) {
  umemHost ram;
  umemFile file;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, NULL, "w+"); /* a scratch file */

  /* [call] */
  umemStatusType status = umemOK;
  int64_t const shape[] = {2, 3}, turned[] = {3, 2};
  int16_t numbers[] = {1, 2, 3, 4, 5, 6};
  float const half = 0.5F;
  umemArray *a = umemArray_borrow(&ram, (uintptr_t)numbers, umemInt16, 2, shape, NULL, &status);
  umemArray *b = umemArray_full(&file, umemFloat, 2, turned, NULL, &half, &status);
  umemArray *t = umemArray_permute(b, NULL, &status); /* of shape (2, 3), in the file */
  vector_add(t, a, t, &status);
  /* [/call] */

  umemArray *sum = umemArray_copy(t, &ram, umemOrderC, &status);
  float const *x = umemArray_host_pointer(sum, false, &status);
  for (int i = 0; x && i < 6; i++) printf("%g%c", x[i], i % 3 == 2 ? '\n' : ' ');

  /* [fails] */
  vector_add(b, a, a, &status); /* of another shape */
  /* [/fails] */
  printf("vector_add: %s\n", strstr(umem_thread_message(), "one has"));

  umemArray *all[] = {sum, t, b, a};
  for (int i = 0; i < 4; i++) umemArray_release(all[i]);
  umem_dtor(&file);
  umem_dtor(&ram);
  return 0;
}
