/* pieces.c - umem/blocks.h: blocks for a GPU are read in pieces, which several threads send through
 * pinned memory. On a double of the runtime, which does nothing that is queued before somebody
 * waits for it. */
#include "blocks_help.h"

#include <stdio.h>

#include "cuda/cuda_rt.h"
#include "fake/cudart.h"

enum {
  row = 32 << 10,
  rows = 10,        /* of a block: 320 KiB */
  count = 64,       /* the last block is shorter */
  chunk = 64 << 10, /* of pinned memory: the longest piece */
  per_block = rows * row / chunk,
  nbytes = count * row,
  queues_most = 3
};

typedef struct Gpu {
  umemHost host;
  umemCuda plain;
  umemCudaAsync async, queue[queues_most];
  void *given[queues_most];
} Gpu;

static Gpu gpu;
static unsigned char array[nbytes];

static int open_gpu(void **state) {
  fake_cudart_reset();
  umemCudaRt_replace(fake_cudart());
  if (set_up(state)) return -1;
  assert_ok(umemHost_ctor(&gpu.host));
  assert_ok(umemCuda_ctor(&gpu.plain, 0));
  assert_ok(umemCudaAsync_ctor(&gpu.async, 0, UMEM_STREAM_NEW));
  for (int i = 0; i < queues_most; i++) {
    assert_ok(umemCudaAsync_ctor(&gpu.queue[i], 0, UMEM_STREAM_NEW));
    gpu.given[i] = &gpu.queue[i];
  }
  assert_ok(umemCuda_set_staging(chunk, 0));
  for (size_t i = 0; i < nbytes; i++) array[i] = (unsigned char)(i / row * 3 + i % 251);
  return 0;
}

static int close_gpu(void **state) {
  for (int i = 0; i < queues_most; i++) umem_dtor(&gpu.queue[i]);
  umem_dtor(&gpu.async);
  umem_dtor(&gpu.plain);
  umem_dtor(&gpu.host);
  assert_ok(umemCuda_set_staging(0, 0));
  assert_true(fake_cudart_is_clean());
  if (fake_cudart_misuse()) fail_msg("%s", fake_cudart_misuse());
  umemCudaRt_replace(NULL);
  fake_cudart_reset();
  return tear_down(state);
}

static umemBlocksOptions options_for(void *source, uintptr_t adr, void *place) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){source, adr, row, 0};
  options.count = count;
  options.rows = rows;
  options.depth = 3;
  options.place = place;
  return options;
}

static void *stream_of_place(void) {
  umemInfo info = UMEM_INFO_INIT;
  assert_ok(umem_get_info(&gpu.async, &info));
  return (void *)info.stream;
}

/* ---- bytes, and order ---- */

/* What a kernel of the program finds when the GPU has come to it. */
typedef struct Kernel {
  umemBlock block;
  bool ran, right;
} Kernel;

static size_t row_of(umemBlock const *block, ptrdiff_t at) {
  ptrdiff_t number = (ptrdiff_t)block->first + at;
  return number < 0 ? 0 : number >= count ? count - 1 : (size_t)number;
}

static void check_rows(void *argument) {
  Kernel *kernel = argument;
  umemBlock const *block = &kernel->block;
  kernel->ran = kernel->right = true;
  for (ptrdiff_t i = -(ptrdiff_t)block->before; i < (ptrdiff_t)(block->rows + block->after); i++) {
    void const *bytes = fake_cudart_at(block->adr + (uintptr_t)i * row, row);
    kernel->right &= bytes && !memcmp(bytes, array + row_of(block, i) * row, row);
  }
}

/* Each block is looked at in the order of the place, long after the program has given it back. */
static void pass(umemBlocksOptions const *options, void *stream) {
  Kernel kernels[count / rows + 1];
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  size_t number = 0;
  memset(kernels, 0, sizeof kernels);
  assert_ok(umemBlocks_ctor(&blocks, options));
  for (; umemBlocks_next(&blocks, &block); number++) {
    kernels[number].block = block;
    check_rows(&kernels[number]); /* it is there */
    assert_true(kernels[number].right);
    kernels[number].ran = false;
    umemCudaEntry entry;
    assert_ok(umemCuda_enter(&entry, 0));
    assert_int_equal(fake_cudart_launch(stream, check_rows, &kernels[number]), 0);
    assert_ok(umemCuda_leave(&entry));
  }
  assert_ok(umemBlocks_end(&blocks));
  assert_ok(umem_synchronize(options->place));
  assert_int_equal(number, count / rows + 1);
  for (size_t i = 0; i < number; i++) assert_true(kernels[i].ran && kernels[i].right);
}

/* With and without ghost rows, on one queue and several. */
static void pass_all(void *source, uintptr_t adr) {
  void *const stream = stream_of_place();
  for (size_t queues = 0; queues <= queues_most; queues += queues_most)
    for (size_t ghosts = 0; ghosts <= 2; ghosts++)
      for (size_t depth = 1; depth <= 4; depth++) {
        umemBlocksOptions options = options_for(source, adr, &gpu.async);
        options.queues = queues ? gpu.given : NULL;
        options.queue_count = queues;
        options.before = ghosts;
        options.after = 2 * ghosts;
        options.ghosts = ghosts == 2 ? umemGhostsClamped : umemGhostsLeftOut;
        options.depth = depth;
        pass(&options, stream);
      }
  umemBlocksOptions options = options_for(source, adr, &gpu.plain);
  pass(&options, FAKE_STREAM_LEGACY);
}

static void from_ram(void **state) {
  (void)state;
  pass_all(&gpu.host, (uintptr_t)array);
}

static void from_a_file(void **state) {
  (void)state;
  umemFile file;
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  uintptr_t adr = umem_alloc(&file, nbytes);
  assert_ok(umem_copy_from(&file, adr, &gpu.host, (uintptr_t)array, nbytes));
  pass_all(&file, adr);
  umem_dtor(&file);
}

/* Rows of a wider array: no run, and so no pieces. */
static void from_rows_with_gaps(void **state) {
  (void)state;
  unsigned char *wide = calloc(2, nbytes);
  assert_non_null(wide);
  for (size_t i = 0; i < count; i++) memcpy(wide + 2 * i * row, array + i * row, row);
  umemBlocksOptions options = options_for(&gpu.host, (uintptr_t)wide, &gpu.async);
  options.source.stride = 2 * row;
  pass(&options, stream_of_place());
  free(wide);
}

/* Two chunks make a channel. Without any, each piece is a copy of its own. */
static void without_pinned_memory(void **state) {
  (void)state;
  assert_ok(umemCuda_set_staging(chunk, 1));
  umemBlocksOptions options = options_for(&gpu.host, (uintptr_t)array, &gpu.async);
  pass(&options, stream_of_place());
}

/* ---- threads ---- */

static Gate gate;

static uintptr_t open_gate(void) {
  gate_ctor(&gate);
  uintptr_t adr = umem_alloc(&gate, nbytes);
  memcpy((void *)adr, array, nbytes);
  return adr;
}

static void close_gate(uintptr_t adr) {
  umem_free(&gate, adr);
  umem_dtor(&gate);
}

/* Pieces that are read before the program has a block. */
static void expect_reads(void *place, unsigned threads, unsigned long reads) {
  uintptr_t adr = open_gate();
  umemBlocksOptions options = options_for(&gate, adr, place);
  umemBlocks blocks;
  assert_ok(umem_set_threads(threads));
  gate_open(&gate, 0, 0);
  assert_ok(umemBlocks_ctor(&blocks, &options));
  assert_true(gate_await(&gate, reads, 0));
  usleep(20000);
  assert_int_equal(gate_reads(&gate), reads);
  gate_open(&gate, SIZE_MAX, 0);
  assert_ok(umemBlocks_end(&blocks));
  close_gate(adr);
}

static void one_thread_is_the_programs(void **state) {
  (void)state;
  expect_reads(&gpu.async, 2, 1);
  expect_reads(&gpu.async, 3, 2);
  expect_reads(&gpu.async, 4, 3); /* 960 KiB are worth no more */
  expect_reads(&gpu.host, 4, 2);  /* the program may work with the others */
}

/* How many pieces are read when a thread first waits for the GPU. */
static unsigned long read_by_then;

static void count_reads(void *argument) {
  (void)argument;
  read_by_then = gate_reads(&gate);
}

/* So the link to the GPU and the source are busy at the same time, with one thread as well. */
static void a_piece_is_read_while_another_is_sent(void **state) {
  (void)state;
  uintptr_t adr = open_gate();
  umemBlocksOptions options = options_for(&gate, adr, &gpu.async);
  read_by_then = 0;
  fake_cudart_before("event_synchronize", 1, count_reads, NULL);
  pass(&options, stream_of_place());
  fake_cudart_before("event_synchronize", 0, NULL, NULL);
  assert_int_equal(read_by_then, 2);
  close_gate(adr);
}

/* ---- failures ---- */

/* Whichever piece fails: the program gets all blocks before. */
static void a_piece_that_fails_fails_its_block(void **state) {
  (void)state;
  for (unsigned long failing = 1; failing <= 32; failing++) {
    uintptr_t adr = open_gate();
    umemBlocksOptions options = options_for(&gate, adr, &gpu.async);
    umemBlocks blocks;
    umemBlock block = UMEM_BLOCK_INIT;
    char words[80];
    size_t number = 0;
    gate.fail_read = failing;
    assert_ok(umemBlocks_ctor(&blocks, &options));
    while (umemBlocks_next(&blocks, &block)) number++;
    snprintf(words, sizeof words, "umemBlocks_next: reading block %zu of 7", number);
    expect_failure(umemIOError, words);
    assert_true(number * 5 <= failing + 1 && failing <= number * 5 + 16); /* they may overtake */
    assert_int_equal(umemBlocks_end(&blocks), umemIOError);
    assert_ok(umem_thread_status());
    close_gate(adr);
  }
}

/* The rest of the block is not read. */
static void a_passage_is_cancelled_within_a_block(void **state) {
  (void)state;
  uintptr_t adr = open_gate();
  umemBlocksOptions options = options_for(&gate, adr, &gpu.async);
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  gate_open(&gate, 0, 0);
  assert_ok(umemBlocks_ctor(&blocks, &options));
  assert_true(gate_await(&gate, 3, 0));
  umemBlocks_cancel(&blocks);
  gate_open(&gate, SIZE_MAX, 0);
  assert_false(umemBlocks_next(&blocks, &block));
  expect_failure(umemCancelledError, "cancelled after 0 of 64 rows");
  assert_int_equal(gate_reads(&gate), 3);
  assert_int_equal(umemBlocks_end(&blocks), umemCancelledError);
  close_gate(adr);
}

/* With queues, and without. */
static void a_captured_stream_takes_no_block(void **state) {
  (void)state;
  void *const stream = stream_of_place();
  for (size_t queues = 0; queues <= queues_most; queues += queues_most) {
    umemBlocksOptions options = options_for(&gpu.host, (uintptr_t)array, &gpu.async);
    umemBlocks blocks;
    umemBlock block = UMEM_BLOCK_INIT;
    void *graph = NULL;
    options.depth = 1;
    options.queues = queues ? gpu.given : NULL;
    options.queue_count = queues;
    assert_ok(umemBlocks_ctor(&blocks, &options));
    assert_true(umemBlocks_next(&blocks, &block));
    assert_int_equal(fake_cudart_begin_capture_in(stream, 2), 0);
    assert_false(umemBlocks_next(&blocks, &block));
    expect_failure(umemNotSupportedError, queues ? "umemBlocks_next: ordering block 0 of 7"
                                                 : "umemBlocks_next: reading block 1 of 7");
    fake_cudart_end_capture(stream, &graph);
    assert_non_null(graph); /* nothing of umem's broke it */
    assert_int_equal(umemBlocks_end(&blocks), umemNotSupportedError);
  }
}

/* The memory cannot be freed then; the context of the place frees it (close_gpu looks). */
static void an_end_in_a_capture_breaks_nothing(void **state) {
  (void)state;
  void *const stream = stream_of_place();
  for (size_t queues = 0; queues <= queues_most; queues += queues_most) {
    umemBlocksOptions options = options_for(&gpu.host, (uintptr_t)array, &gpu.async);
    umemBlocks blocks;
    umemBlock block = UMEM_BLOCK_INIT;
    void *graph = NULL;
    options.queues = queues ? gpu.given : NULL;
    options.queue_count = queues;
    assert_ok(umemBlocks_ctor(&blocks, &options));
    assert_true(umemBlocks_next(&blocks, &block));
    assert_int_equal(fake_cudart_begin_capture_in(stream, 2), 0);
    assert_int_equal(umemBlocks_end(&blocks), umemNotSupportedError);
    expect_failure(umemNotSupportedError, "umemBlocks_end: the stream is being captured");
    fake_cudart_end_capture(stream, &graph);
    assert_non_null(graph);
  }
}

/* The GPU still has a piece of block 0 when the copy of block 1 is refused: the failure is one of
 * block 1, also in the ledger. */
static void a_capture_that_begins_between_blocks_refuses_the_next(void **state) {
  (void)state;
  void *const stream = stream_of_place();
  uintptr_t adr = open_gate();
  umemBlocksOptions options = options_for(&gate, adr, &gpu.async);
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  void *graph = NULL;
  umem_ledger_clear();
  assert_ok(umem_ledger_start());
  gate_open(&gate, per_block, 0);
  assert_ok(umemBlocks_ctor(&blocks, &options));
  assert_true(gate_await(&gate, per_block + 1, 0));
  assert_int_equal(fake_cudart_begin_capture_in(stream, 2), 0);
  gate_open(&gate, SIZE_MAX, 0);
  assert_true(umemBlocks_next(&blocks, &block));
  assert_false(umemBlocks_next(&blocks, &block));
  expect_failure(umemNotSupportedError, "umemBlocks_next: reading block 1 of 7");
  fake_cudart_end_capture(stream, &graph);
  assert_non_null(graph);
  assert_int_equal(umemBlocks_end(&blocks), umemNotSupportedError);
  umem_ledger_stop();
  umem_ledger_clear();
  close_gate(adr);
}

/* ---- the ledger ---- */

static void a_block_is_one_copy(void **state) {
  (void)state;
  umemLedgerRecord records[4];
  size_t length = 4;
  umemBlocksOptions options = options_for(&gpu.host, (uintptr_t)array, &gpu.async);
  records[0].size = sizeof *records;
  umem_ledger_clear();
  assert_ok(umem_ledger_start());
  pass(&options, stream_of_place());
  umem_ledger_stop();
  assert_ok(umem_ledger_read(records, &length));
  assert_int_equal(length, 1);
  assert_string_equal(records[0].src.kind, "host");
  assert_string_equal(records[0].dst.kind, "cuda-async");
  assert_int_equal(records[0].dst.ordinal, 0);
  assert_int_equal(records[0].calls, count / rows + 1);
  assert_int_equal(records[0].failed, 0);
  assert_int_equal(records[0].bytes, nbytes);
  umem_ledger_clear();
}

#define GPU_TEST_WITH(threads, test)                                                               \
  { #test " (" #threads ")", test, open_gpu, close_gpu, (void *)threads }
#define GPU_TEST(test) cmocka_unit_test_setup_teardown(test, open_gpu, close_gpu)

int main(void) {
  struct CMUnitTest const tests[] = {
      GPU_TEST(from_ram),
      GPU_TEST_WITH(one_thread, from_ram),
      GPU_TEST_WITH(two_threads, from_ram),
      GPU_TEST(from_a_file),
      GPU_TEST(from_rows_with_gaps),
      GPU_TEST(without_pinned_memory),
      GPU_TEST(one_thread_is_the_programs),
      GPU_TEST_WITH(two_threads, a_piece_is_read_while_another_is_sent),
      GPU_TEST(a_piece_that_fails_fails_its_block),
      GPU_TEST(a_passage_is_cancelled_within_a_block),
      GPU_TEST(a_captured_stream_takes_no_block),
      GPU_TEST(an_end_in_a_capture_breaks_nothing),
      GPU_TEST_WITH(two_threads, a_capture_that_begins_between_blocks_refuses_the_next),
      GPU_TEST(a_block_is_one_copy),
      GPU_TEST_WITH(one_thread, a_block_is_one_copy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
