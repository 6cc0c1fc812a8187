/* Doubles each number of an array in a file with the memory for an eighth of it. */
#include <stdio.h>
#include <umem.h>

enum { rows = 4096, columns = 256, row = columns * sizeof(double) };

/* What is done with each block; it returns 0 to go on. */
static int fill(void *user, umemBlock const *block) {
  (void)user;
  for (size_t i = 0; i < block->rows * columns; i++) ((double *)block->adr)[i] = 1;
  return 0;
}
static int twice(void *sum, umemBlock const *block) {
  double *x = (double *)block->adr;
  for (size_t i = 0; i < block->rows * columns; i++) *(double *)sum += x[i] *= 2;
  return 0;
}

int main(void) {
  umemHost ram;
  umemFile file;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, "array.bin", "w+");
  umemRows array = {&file, umem_alloc(&file, rows * row), row, 0};

  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = options.destination = array; /* in place */
  options.count = rows;
  options.place = &ram;
  options.budget = rows * row / 8; /* bytes for all blocks together */
  double sum = 0;
  umemStatusType status = umemBlocks_run(&options, fill, NULL, NULL);
  if (status == umemOK) status = umemBlocks_run(&options, twice, &sum, NULL);
  if (status == umemOK)
    printf("the sum of %d numbers is %.0f\n", rows * columns, sum);
  else
    puts(umem_thread_message());

  umem_dtor(&file);
  umem_dtor(&ram);
  return status != umemOK;
}
