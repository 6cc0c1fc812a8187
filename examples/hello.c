/* hello.c - one array, two places to keep it.
 *
 * keep_squares() fills an array, changes it and reads it back. It does not know where the array is:
 * only the constructors in main() name a place. You can add a third one there. */
#include <stdio.h>
#include <umem.h>

enum { N = 10 };

/* Keeps the first squares in any place, and prints them. */
static void keep_squares(void *place) {
  double squares[N], back[N];
  for (int i = 0; i < N; ++i) squares[i] = i * i;

  /* The variables of this function are in RAM, which is a place, too. */
  umemHost ram;
  umemHost_ctor(&ram);

  uintptr_t array = umem_alloc(place, sizeof squares);
  umem_copy_from(place, array, &ram, (uintptr_t)squares, sizeof squares);

  /* Addresses and sizes count bytes: this sets the last two elements to zero. */
  umem_set(place, array + 8 * sizeof(double), 0, 2 * sizeof(double));

  umem_copy_to(place, array, &ram, (uintptr_t)back, sizeof back);
  umem_free(place, array);
  umem_dtor(&ram);

  if (!umem_is_ok(place)) return;
  printf("%s:", umem_get_device_name(place));
  for (int i = 0; i < N; ++i) printf(" %g", back[i]);
  putchar('\n');
}

/* The context records failures, so one check at the end is enough. Returns 0 if there was none. */
static int leave(void *place) {
  umem_dtor(place);
  if (umem_get_status(place) == umemOK) return 0;
  fprintf(stderr, "hello: %s\n", umem_get_message(place));
  return 1;
}

int main(void) {
  umemHost host;
  if (umemHost_ctor(&host) == umemOK) keep_squares(&host);
  int failures = leave(&host);

  umemFile file;
  if (umemFile_ctor(&file, "hello.bin", "w+") == umemOK) keep_squares(&file);
  failures += leave(&file);

  /* hello.bin now holds the array and nothing else: numpy.fromfile("hello.bin") reads it. */
  return failures ? 1 : 0;
}
