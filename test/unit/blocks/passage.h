/* passage.h - the passage of an array of ints out of one gate, through RAM, into another gate. */
#ifndef UMEM_TEST_PASSAGE_H
#define UMEM_TEST_PASSAGE_H

#include "blocks_help.h"

enum { count = 40, rows = 4, blocks_in_all = count / rows };

/* An array in a gate, another for results, and blocks of ints in RAM. */
typedef struct Bench {
  Gate from, to;
  umemHost host;
  umemBlocksOptions options;
  umemBlocks blocks;
  umemBlock block;
  int *source, *destination;
} Bench;

static Bench bench;

static inline void open_bench(bool writes) {
  gate_ctor(&bench.from);
  gate_ctor(&bench.to);
  assert_ok(umemHost_ctor(&bench.host));
  bench.source = (int *)umem_alloc(&bench.from, count * sizeof(int));
  bench.destination = (int *)umem_alloc(&bench.to, count * sizeof(int));
  for (int i = 0; i < count; i++) bench.source[i] = 100 + i;
  memset(bench.destination, 0, count * sizeof(int));
  bench.options = (umemBlocksOptions)UMEM_BLOCKS_OPTIONS_INIT;
  bench.options.source = (umemRows){&bench.from, (uintptr_t)bench.source, sizeof(int), 0};
  if (writes)
    bench.options.destination = (umemRows){&bench.to, (uintptr_t)bench.destination, sizeof(int), 0};
  bench.options.count = count;
  bench.options.place = &bench.host;
  bench.options.rows = rows;
  bench.block = (umemBlock)UMEM_BLOCK_INIT;
}

static inline void close_bench(void) {
  umem_free(&bench.from, (uintptr_t)bench.source);
  umem_free(&bench.to, (uintptr_t)bench.destination);
  umem_dtor(&bench.from);
  umem_dtor(&bench.to);
  umem_dtor(&bench.host);
}

static inline void begin(void) { assert_ok(umemBlocks_ctor(&bench.blocks, &bench.options)); }
static inline bool next(void) { return umemBlocks_next(&bench.blocks, &bench.block); }
static inline umemStatusType end(void) { return umemBlocks_end(&bench.blocks); }

/* What the program does with a block: checks it, and makes each element its negative. */
static inline void work(size_t number) {
  int *at = (int *)bench.block.adr;
  assert_int_equal(bench.block.number, number);
  assert_int_equal(bench.block.first, number * rows);
  assert_int_equal(bench.block.rows, rows);
  assert_true(bench.block.out == bench.block.adr);
  for (int i = 0; i < rows; i++) {
    assert_int_equal(at[i], 100 + (int)number * rows + i);
    at[i] = -at[i];
  }
}

/* That the destination has the results of the blocks before end, and of no other. */
static inline void expect_written(size_t last) {
  for (int i = 0; i < count; i++)
    assert_int_equal(bench.destination[i], (size_t)i < last * rows ? -100 - i : 0);
}

#endif
