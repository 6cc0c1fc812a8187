/* bench.h - the passage of an array of ints out of one gate, through RAM, into another gate. */
#pragma once

#include "passage.h"

enum { count = 40, rows = 4, blocks_in_all = count / rows };

/* An array in a gate, another for results, and blocks of ints in RAM. */
typedef struct Bench {
  Gate from, to;
  umemHost host;
  umemBlocksOptions options;
  int *source, *destination;
} Bench;

static Bench bench;

static inline void open_bench(void **state) {
  set_up(state);
  gate_ctor(&bench.from);
  gate_ctor(&bench.to);
  assert_ok(umemHost_ctor(&bench.host));
  bench.source = (int *)umem_alloc(&bench.from, count * sizeof(int));
  bench.destination =
      (int *)umem_alloc(&bench.to, count * sizeof(int)); /* a set would be a write */
  memset(bench.destination, 0, count * sizeof(int));
  for (int i = 0; i < count; i++) bench.source[i] = 100 + i;
  bench.options = (umemBlocksOptions)UMEM_BLOCKS_OPTIONS_INIT;
  bench.options.source = (umemRows){&bench.from, (uintptr_t)bench.source, sizeof(int), 0};
  bench.options.destination = (umemRows){&bench.to, (uintptr_t)bench.destination, sizeof(int), 0};
  bench.options.count = count;
  bench.options.place = &bench.host;
  bench.options.rows = rows;
}

static inline void close_bench(void **state) {
  umem_free(&bench.from, (uintptr_t)bench.source);
  umem_free(&bench.to, (uintptr_t)bench.destination);
  DESTRUCT(&bench.from, &bench.to, &bench.host);
  tear_down(state);
}

#define OPEN open_bench
#define CLOSE close_bench

/* As at first, with as many threads as a test has without a state. */
static inline void reopen_bench(void) {
  void *state = NULL;
  close_bench(&state);
  open_bench(&state);
}

/* So that nothing is written. */
static inline void only_read(void) { bench.options.destination = (umemRows){0}; }

/* What the program does with a block: checks it, and makes each element its negative. */
static inline void work(size_t number) {
  int *at = (int *)block.adr;
  assert_int_equal(block.number, number);
  assert_int_equal(block.first, number * rows);
  assert_int_equal(block.rows, rows);
  assert_true(block.out == block.adr);
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

/* Begins, and has so many blocks. */
static inline void begin_and_work(size_t number_of_blocks) {
  begin(&bench.options);
  for (size_t number = 0; number < number_of_blocks; number++) {
    assert_true(next());
    work(number);
  }
}

/* Has all others; ends. */
static inline void finish_from(size_t first) {
  pass_from(first, work);
  assert_ok(end());
  expect_written(blocks_in_all);
}
