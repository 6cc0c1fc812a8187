/* persist.c - arrays that the next run of the program finds again.
 *
 *     persist write    computes two arrays and keeps them in persist.bin
 *     persist read     finds them there
 *
 * Both make the same allocations in the same order, so they get the same addresses in the file.
 * Only the mode of the constructor differs, and whether the program fills the arrays. */
#include <stdio.h>
#include <string.h>
#include <umem.h>

enum { N = 1000 };

/* Numbers, and their square roots by Newton's method. */
static void compute(int numbers[N], double roots[N]) {
  for (int i = 0; i < N; ++i) {
    double root = 1 + i;
    for (int step = 0; step < 50; ++step) root = (root + i / root) / 2;
    numbers[i] = i;
    roots[i] = root;
  }
}

static void keep(umemFile *file, int writing) {
  int numbers[N];
  double roots[N];
  umemHost ram;
  umemHost_ctor(&ram);

  uintptr_t numbers_adr = umem_alloc(file, sizeof numbers);
  uintptr_t roots_adr = umem_alloc(file, sizeof roots);
  if (writing) {
    compute(numbers, roots);
    umem_copy_from(file, numbers_adr, &ram, (uintptr_t)numbers, sizeof numbers);
    umem_copy_from(file, roots_adr, &ram, (uintptr_t)roots, sizeof roots);
    umem_flush(file); /* now they survive a power cut */
  } else {
    umem_copy_to(file, numbers_adr, &ram, (uintptr_t)numbers, sizeof numbers);
    umem_copy_to(file, roots_adr, &ram, (uintptr_t)roots, sizeof roots);
  }
  if (umem_is_ok(file)) printf("the square root of %d is %.10g\n", numbers[2], roots[2]);
  umem_dtor(&ram);
}

int main(int argc, char **argv) {
  int writing = argc == 2 && !strcmp(argv[1], "write");
  if (argc != 2 || (!writing && strcmp(argv[1], "read"))) {
    fputs("usage: persist write | read\n", stderr);
    return 2;
  }

  umemFile file;
  if (umemFile_ctor(&file, "persist.bin", writing ? "w+" : "r") == umemOK) keep(&file, writing);

  /* Closing a file can fail, too, so check after it. The arrays stay in the file; their bytes would
   * stay even if the program freed them. */
  umem_dtor(&file);
  if (umem_get_status(&file) == umemOK) return 0;
  fprintf(stderr, "persist: %s\n", umem_get_message(&file));
  return 1;
}
