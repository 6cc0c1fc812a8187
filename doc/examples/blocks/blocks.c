/* A matrix in a file passes through memory that holds a hundredth of it. */
#include <stdio.h>
#include <umem.h>

enum { rows = 10000, columns = 128 };
typedef double Row[columns];

/* [ghosts] */
/* The mean of each row and its neighbours; the first and the last row are their own neighbours. */
static void smooth(umemBlock const *block) {
  Row const *in = (Row const *)block->adr; /* in[-1] and in[block->rows] are ghost rows */
  Row *out = (Row *)block->out;
  for (size_t i = 0; i < block->rows; i++)
    for (int j = 0; j < columns; j++) out[i][j] = (in[i][j] + (in - 1)[i][j] + (in + 1)[i][j]) / 3;
}

static umemStatusType smooth_all(umemRows matrix, void *ram) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = matrix;
  options.destination = matrix; /* ghost rows have the old values all the same */
  options.count = rows;
  options.place = ram;
  options.budget = sizeof(Row) * rows / 100;
  options.before = options.after = 1;
  options.ghosts = umemGhostsClamped;
  options.apart = true;
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  umemBlocks_ctor(&blocks, &options);
  while (umemBlocks_next(&blocks, &block)) smooth(&block);
  return umemBlocks_end(&blocks);
}
/* [/ghosts] */

/* [fill] */
static int fill(void *data, umemBlock const *block) {
  (void)data;
  for (size_t i = 0; i < block->rows; i++)
    for (int j = 0; j < columns; j++) ((Row *)block->adr)[i][j] = (block->first + i) % 3 == 0;
  return 0;
}
/* [/fill] */

/* [find] */
/* Stops at the first row after row 0 that is not 1/3. */
static int find(void *row, umemBlock const *block) {
  Row const *in = (Row const *)block->adr;
  for (size_t i = 0; i < block->rows; i++)
    if (block->first + i > 0 && (in[i][0] < 0.333 || in[i][0] > 0.334)) {
      *(size_t *)row = block->first + i;
      return 1;
    }
  return 0;
}
/* [/find] */

int main(void) {
  umemFile file;
  umemHost ram;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, NULL, "w+");
  umemRows matrix = {&file, umem_alloc(&file, sizeof(Row) * rows), sizeof(Row), 0};

  /* [run] */
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = options.destination = matrix;
  options.count = rows;
  options.place = &ram;
  options.rows = 100;
  umemStatusType status = umemBlocks_run(&options, fill, NULL, NULL);
  /* [/run] */
  if (status == umemOK) status = smooth_all(matrix, &ram);

  /* [stop] */
  size_t row = 0;
  int code = 0;
  options.destination.ctx = NULL;
  if (status == umemOK) status = umemBlocks_run(&options, find, &row, &code);
  if (code) printf("row %zu is another one\n", row);
  /* [/stop] */

  umem_free(&file, matrix.adr);
  umem_dtor(&file);
  umem_dtor(&ram);
  if (status == umemOK) return 0;
  fprintf(stderr, "%s\n", umem_thread_message());
  return 1;
}
