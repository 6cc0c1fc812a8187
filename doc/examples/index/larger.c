/* Fills and sums an array of 32 MB in a file, with 4 MB of memory. */
#include <stdio.h>
#include <umem.h>

static int fill(void *unused, umemBlock const *block) {
  (void)unused;
  double *x = (double *)block->adr;
  for (size_t i = 0; i < block->rows; i++) x[i] = (double)(block->first + i);
  return 0;
}

static int add(void *total, umemBlock const *block) {
  double const *x = (double const *)block->adr;
  for (size_t i = 0; i < block->rows; i++) *(double *)total += x[i];
  return 0;
}

int main(void) {
  size_t const count = 4000000;
  umemFile file;
  umemHost ram;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, "numbers.bin", "w+");

  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){&file, umem_calloc(&file, count, sizeof(double)), sizeof(double), 0};
  options.destination = options.source;
  options.count = count;
  options.place = &ram;
  options.budget = 4 << 20; /* bytes */
  umemStatusType status = umemBlocks_run(&options, fill, NULL, NULL);

  double total = 0;
  options.destination.ctx = NULL; /* the second time it only reads */
  if (status == umemOK) status = umemBlocks_run(&options, add, &total, NULL);
  if (status == umemOK) printf("the mean is %.1f\n", total / (double)count);

  umem_dtor(&file);
  umem_dtor(&ram);
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  return status != umemOK;
}
