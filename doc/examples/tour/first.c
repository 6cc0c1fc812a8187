/* One array, three places to keep it. */
#include <stdio.h>
#include <umem.h>

/* Writes the squares of 0 to n - 1 to a new array in any place, and returns its address there. */
static uintptr_t squares(void *place, size_t n, umemHost *ram) {
  size_t nbytes = n * sizeof(double);
  uintptr_t array = umem_calloc(place, n, sizeof(double));

  uintptr_t paired = umem_connect(place, array, nbytes, ram, 0); /* its address in RAM */
  double *x = (double *)paired;
  for (size_t i = 0; x && i < n; i++) x[i] = (double)(i * i);
  umem_sync_from(place, array, ram, paired, nbytes); /* copy the elements back */
  umem_disconnect(place, array, ram, paired, 0);
  return array;
}

int main(void) {
  umemHost ram;
  umemFile file;
  umemMMap map;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, "squares.bin", "w+");
  umemMMap_ctor(&map, "mapped.bin", "w+"); /* from here on no line names a place */

  void *places[] = {&ram, &file, &map};
  int failures = 0;
  for (int i = 0; i < 3; i++) {
    uintptr_t array = squares(places[i], 1000, &ram);
    double last = 0;
    umem_copy_to(places[i], array + 999 * sizeof last, &ram, (uintptr_t)&last, sizeof last);
    printf("%s: %g\n", umem_get_device_name(places[i]), last);
    umem_free(places[i], array);

    if (!umem_is_ok(places[i])) {
      fprintf(stderr, "%s\n", umem_get_message(places[i]));
      failures++;
    }
  }

  umem_dtor(&map);
  umem_dtor(&file);
  umem_dtor(&ram);
  return failures != 0;
}
