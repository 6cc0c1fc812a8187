/* Transposes a matrix on the GPU if there is one, and in RAM otherwise. */
#include <stdio.h>
#include <umem.h>

/* [place] */
typedef union Place {
  umemCuda gpu;
  umemHost ram;
} Place;

/* No other function knows which place it is. */
static void open_place(Place *place) {
  if (umemCuda_ctor(&place->gpu, 0) == umemOK) return;
  fprintf(stderr, "in RAM: %s\n", umem_get_message(place));
  umemHost_ctor(&place->ram);
}
/* [/place] */

enum { rows = 2, columns = 3, item = sizeof(double) };

/* [transpose] */
static umemStatusType transpose(void *place, umemHost *ram, double a[rows][columns],
                                double b[columns][rows]) {
  size_t const nbytes = rows * columns * item;
  uintptr_t from = umem_alloc(place, nbytes), to = umem_alloc(place, nbytes);
  umem_copy_from(place, from, ram, (uintptr_t)a, nbytes);
  umem_copy_strided(place, from, place, to,
                    &(umemLayout){sizeof(umemLayout), item, 2, (size_t[]){rows, columns},
                                  (ptrdiff_t[]){columns * item, item},
                                  (ptrdiff_t[]){item, rows * item}});
  umem_copy_to(place, to, ram, (uintptr_t)b, nbytes);
  umem_free(place, to);
  umem_free(place, from);
  return umem_get_status(place);
}
/* [/transpose] */

int main(void) {
  double a[rows][columns] = {{1, 2, 3}, {4, 5, 6}}, b[columns][rows] = {{0}};
  Place place;
  umemHost ram;
  open_place(&place);
  umemHost_ctor(&ram);
  umemStatusType status = transpose(&place, &ram, a, b);
  if (status != umemOK) fprintf(stderr, "%s\n", umem_get_message(&place));
  for (int i = 0; i < columns; i++) printf("%g %g\n", b[i][0], b[i][1]);
  umem_dtor(&ram);
  umem_dtor(&place);
  return status != umemOK;
}
