/* pieces.c - umem/blocks.h: blocks for a GPU are read in pieces, which several threads send through
 * pinned memory. On a double of the runtime, which does nothing that is queued before somebody
 * waits for it. */
#include "passage.h"

#include "cuda_double.h"

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

#define OPEN open_gpu
#define CLOSE close_gpu

static Gate gate;
static uintptr_t in_gate; /* a copy of the array */
static unsigned char array[nbytes];

static void open_gpu(void **state) {
  begin_double();
  set_up(state);
  assert_ok(umemHost_ctor(&gpu.host));
  assert_ok(umemCuda_ctor(&gpu.plain, 0));
  assert_ok(umemCudaAsync_ctor(&gpu.async, 0, UMEM_STREAM_NEW));
  for (int i = 0; i < queues_most; i++) {
    assert_ok(umemCudaAsync_ctor(&gpu.queue[i], 0, UMEM_STREAM_NEW));
    gpu.given[i] = &gpu.queue[i];
  }
  assert_ok(umemCuda_set_staging(chunk, 0));
  for (size_t i = 0; i < nbytes; i++) array[i] = (unsigned char)(i / row * 3 + i % 251);
  gate_ctor(&gate);
  in_gate = umem_alloc(&gate, nbytes);
  memcpy((void *)in_gate, array, nbytes);
}

static void close_gpu(void **state) {
  umem_free(&gate, in_gate);
  umem_dtor(&gate);
  for (int i = 0; i < queues_most; i++) umem_dtor(&gpu.queue[i]);
  DESTRUCT(&gpu.async, &gpu.plain, &gpu.host);
  assert_ok(umemCuda_set_staging(0, 0));
  end_double();
  tear_down(state);
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

static umemBlocksOptions from_array(void) {
  return options_for(&gpu.host, (uintptr_t)array, &gpu.async);
}

static void *stream_of_place(void) { return (void *)info_of(&gpu.async).stream; }

/* ---- bytes, and order ---- */

/* What a kernel of the program finds when the GPU has come to it. */
typedef struct Kernel {
  umemBlock block;
  bool ran, right;
} Kernel;

static size_t row_of(umemBlock const *given, ptrdiff_t at) {
  ptrdiff_t number = (ptrdiff_t)given->first + at;
  return number < 0 ? 0 : number >= count ? count - 1 : (size_t)number;
}

static void check_rows(void *argument) {
  Kernel *kernel = argument;
  umemBlock const *given = &kernel->block;
  kernel->ran = kernel->right = true;
  for (ptrdiff_t i = -(ptrdiff_t)given->before; i < (ptrdiff_t)(given->rows + given->after); i++) {
    void const *bytes = fake_cudart_at(given->adr + (uintptr_t)i * row, row);
    kernel->right &= bytes && !memcmp(bytes, array + row_of(given, i) * row, row);
  }
}

/* Each block is looked at in the order of the place, long after the program has given it back. */
static void pass(umemBlocksOptions const *options, void *stream) {
  Kernel kernels[count / rows + 1];
  size_t number = 0;
  memset(kernels, 0, sizeof kernels);
  begin(options);
  for (; next(); number++) {
    kernels[number].block = block;
    check_rows(&kernels[number]); /* it is there */
    assert_true(kernels[number].right);
    kernels[number].ran = false;
    umemCudaEntry entry;
    assert_ok(umemCuda_enter(&entry, 0));
    assert_int_equal(fake_cudart_launch(stream, check_rows, &kernels[number]), 0);
    assert_ok(umemCuda_leave(&entry));
  }
  assert_ok(end());
  assert_ok(umem_synchronize(options->place));
  assert_int_equal(number, count / rows + 1);
  for (size_t i = 0; i < number; i++) assert_true(kernels[i].ran && kernels[i].right);
}

/* With and without ghost rows, on one queue and several. */
static void pass_everywhere(void *source, uintptr_t adr) {
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

TEST(from_ram) { pass_everywhere(&gpu.host, (uintptr_t)array); }
TEST_AGAIN(one_thread, from_ram)
TEST_AGAIN(two_threads, from_ram)

TEST(from_a_file) {
  CONTEXT(umemFile, file, NULL, "w+");
  uintptr_t adr = umem_alloc(&file, nbytes);
  assert_ok(umem_copy_from(&file, adr, &gpu.host, (uintptr_t)array, nbytes));
  pass_everywhere(&file, adr);
}

/* Rows of a wider array: no run, and so no pieces. */
TEST(from_rows_with_gaps) {
  SCOPED_BYTES(unsigned char, wide, 2 * nbytes);
  for (size_t i = 0; i < count; i++) memcpy(wide + 2 * i * row, array + i * row, row);
  umemBlocksOptions options = options_for(&gpu.host, (uintptr_t)wide, &gpu.async);
  options.source.stride = 2 * row;
  pass(&options, stream_of_place());
}

/* Two chunks make a channel. Without any, each piece is a copy of its own. */
TEST(without_pinned_memory) {
  assert_ok(umemCuda_set_staging(chunk, 1));
  umemBlocksOptions options = from_array();
  pass(&options, stream_of_place());
}

/* ---- threads ---- */

/* Pieces that are read before the program has a block. */
static void expect_reads(void *place, unsigned threads, unsigned long reads) {
  gate_reset(&gate);
  umemBlocksOptions options = options_for(&gate, in_gate, place);
  assert_ok(umem_set_threads(threads));
  gate_open(&gate, 0, 0);
  begin(&options);
  assert_true(gate_await(&gate, reads, 0));
  usleep(20000);
  assert_int_equal(gate_reads(&gate), reads);
  gate_open(&gate, SIZE_MAX, 0);
  assert_ok(end());
}

TEST(one_thread_is_the_programs) {
  expect_reads(&gpu.async, 2, 1);
  expect_reads(&gpu.async, 3, 2);
  expect_reads(&gpu.async, 4, 3); /* 960 KiB are worth no more */
  expect_reads(&gpu.host, 4, 2);  /* the program may work with the others */
}

/* How many pieces are read when a thread first waits for the GPU. */
static unsigned long read_by_then;

static void count_reads(void *argument UNUSED) { read_by_then = gate_reads(&gate); }

/* So the link to the GPU and the source are busy at the same time, with one thread as well. */
TEST_ON(two_threads, a_piece_is_read_while_another_is_sent) {
  umemBlocksOptions options = options_for(&gate, in_gate, &gpu.async);
  read_by_then = 0;
  fake_cudart_before("event_synchronize", 1, count_reads, NULL);
  pass(&options, stream_of_place());
  fake_cudart_before("event_synchronize", 0, NULL, NULL);
  assert_true(read_by_then >= 2);
}

/* ---- failures ---- */

/* Whichever piece fails: the program gets all blocks before. */
TEST(a_piece_that_fails_fails_its_block) {
  for (unsigned long failing = 1; failing <= 32; failing++) {
    gate_reset(&gate);
    umemBlocksOptions options = options_for(&gate, in_gate, &gpu.async);
    char words[80];
    size_t number = 0;
    gate.fail_read = failing;
    begin(&options);
    while (next()) number++;
    snprintf(words, sizeof words, "umemBlocks_next: reading block %zu of 7", number);
    expect_failure(umemIOError, words);
    assert_true(number * 5 <= failing + 1 && failing <= number * 5 + 16); /* they may overtake */
    assert_int_equal(end(), umemIOError);
    assert_ok(umem_thread_status());
  }
}

/* The rest of the block is not read. */
TEST(a_passage_is_cancelled_within_a_block) {
  umemBlocksOptions options = options_for(&gate, in_gate, &gpu.async);
  gate_open(&gate, 0, 0);
  begin(&options);
  assert_true(gate_await(&gate, 3, 0));
  umemBlocks_cancel(&blocks);
  gate_open(&gate, SIZE_MAX, 0);
  assert_false(next());
  expect_failure(umemCancelledError, "cancelled after 0 of 64 rows");
  assert_int_equal(gate_reads(&gate), 3);
  assert_int_equal(end(), umemCancelledError);
}

/* Begins a passage with so many queues, whose first block is there when a capture begins. Returns
 * the stream. */
static void *begin_before_capture(size_t depth, size_t queues) {
  void *const stream = stream_of_place();
  umemBlocksOptions options = from_array();
  options.depth = depth;
  options.queues = queues ? gpu.given : NULL;
  options.queue_count = queues;
  begin(&options);
  assert_true(next());
  assert_int_equal(fake_cudart_begin_capture_in(stream, 2), 0);
  return stream;
}

/* Nothing of umem's has broken it. */
static void end_whole_capture(void *stream) {
  void *graph = NULL;
  fake_cudart_end_capture(stream, &graph);
  assert_non_null(graph);
}

/* With queues, and without. */
TEST(a_captured_stream_takes_no_block) {
  for (size_t queues = 0; queues <= queues_most; queues += queues_most) {
    void *const stream = begin_before_capture(1, queues);
    assert_false(next());
    expect_failure(umemNotSupportedError, queues ? "umemBlocks_next: ordering block 0 of 7"
                                                 : "umemBlocks_next: reading block 1 of 7");
    end_whole_capture(stream);
    assert_int_equal(end(), umemNotSupportedError);
  }
}

/* The memory cannot be freed then; the context of the place frees it (close_gpu looks). */
TEST(an_end_in_a_capture_breaks_nothing) {
  for (size_t queues = 0; queues <= queues_most; queues += queues_most) {
    void *const stream = begin_before_capture(0, queues);
    assert_int_equal(end(), umemNotSupportedError);
    expect_failure(umemNotSupportedError, "umemBlocks_end: the stream is being captured");
    end_whole_capture(stream);
  }
}

/* The GPU still has a piece of block 0 when the copy of block 1 is refused: the failure is one of
 * block 1, also in the ledger. */
TEST_ON(two_threads, a_capture_that_begins_between_blocks_refuses_the_next) {
  void *const stream = stream_of_place();
  umemBlocksOptions options = options_for(&gate, in_gate, &gpu.async);
  start_ledger();
  gate_open(&gate, per_block, 0);
  begin(&options);
  assert_true(gate_await(&gate, per_block + 1, 0));
  assert_int_equal(fake_cudart_begin_capture_in(stream, 2), 0);
  gate_open(&gate, SIZE_MAX, 0);
  assert_true(next());
  assert_false(next());
  expect_failure(umemNotSupportedError, "umemBlocks_next: reading block 1 of 7");
  end_whole_capture(stream);
  assert_int_equal(end(), umemNotSupportedError);
  umem_ledger_stop();
  umem_ledger_clear();
}

/* ---- the ledger ---- */

TEST(a_block_is_one_copy) {
  umemLedgerRecord records[4];
  umemBlocksOptions options = from_array();
  start_ledger();
  pass(&options, stream_of_place());
  assert_int_equal(stop_ledger(records, 4), 1);
  assert_string_equal(records[0].src.kind, "host");
  assert_string_equal(records[0].dst.kind, "cuda-async");
  assert_int_equal(records[0].dst.ordinal, 0);
  assert_int_equal(records[0].calls, count / rows + 1);
  assert_int_equal(records[0].failed, 0);
  assert_int_equal(records[0].bytes, nbytes);
}
TEST_AGAIN(one_thread, a_block_is_one_copy)
