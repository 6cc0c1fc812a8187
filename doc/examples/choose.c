/* Takes the GPU where there is one, and RAM elsewhere. */
#include <stdio.h>
#include <umem.h>

/* [choose] */
typedef union Place {
  umemCuda gpu;
  umemHost ram;
} Place;

static void open_place(Place *place) {
  if (umemCuda_ctor(&place->gpu, 0) == umemOK) return;
  fprintf(stderr, "no GPU: %s\n", umem_get_message(place));
  umemHost_ctor(&place->ram);
}
/* [/choose] */

int main(void) {
  Place place;
  open_place(&place);
  uintptr_t array = umem_calloc(&place, 100, sizeof(float));
  printf("100 floats in %s\n", umem_get_device_name(&place));
  umem_free(&place, array);
  int failed = !umem_is_ok(&place);
  umem_dtor(&place);
  return failed;
}
