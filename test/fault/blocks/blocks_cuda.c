/* blocks_cuda.c - umem/blocks.h on a GPU, of which the n-th call of the runtime fails, for every n
 * that a passage reaches. On a double of the runtime. */

#include "cuda_double.h"

enum {
  count = 40,
  width = 64,
  rows = 8,
  queues = 3,
  long_count = 40,
  long_width = 16 << 10,
  chunk = 128 << 10
};

typedef struct Gpu {
  umemHost host;
  umemCudaHost pinned;
  umemCudaAsync place, queue[queues];
  unsigned char source[count * width], destination[count * width];
  unsigned char long_source[long_count * long_width];
} Gpu;

static Gpu gpu;

static void open_gpu(void) {
  begin_double();
  assert_int_equal(umemHost_ctor(&gpu.host), umemOK);
  assert_int_equal(umemCudaHost_ctor(&gpu.pinned, 0), umemOK);
  assert_int_equal(umemCudaAsync_ctor(&gpu.place, 0, UMEM_STREAM_NEW), umemOK);
  for (int i = 0; i < queues; i++)
    assert_int_equal(umemCudaAsync_ctor(&gpu.queue[i], 0, UMEM_STREAM_NEW), umemOK);
  for (size_t i = 0; i < sizeof gpu.source; i++) gpu.source[i] = (unsigned char)(i * 11 + 1);
  for (size_t i = 0; i < sizeof gpu.long_source; i++) gpu.long_source[i] = (unsigned char)(i % 253);
  memset(gpu.destination, 0, sizeof gpu.destination);
}

/* A call that fails may leave what it should have ended, but no memory of the GPU. */
static void close_gpu(void) {
  umem_dtor(&gpu.place);
  for (int i = 0; i < queues; i++) umem_dtor(&gpu.queue[i]);
  DESTRUCT(&gpu.pinned, &gpu.host);
  assert_int_equal(fake_cudart_live().blocks, 0);
  abandon_double();
  umem_thread_clear();
}

/* The program adds 1 to each byte: a copy to pinned memory, and back. The first failure of these
 * calls goes to *own. */
static void work(umemBlock const *block, uintptr_t pinned, umemStatusType *own) {
  size_t n = block->rows * width;
  uint64_t before = umem_thread_failures();
  umem_copy_to(&gpu.place, block->adr, &gpu.pinned, pinned, n);
  if (umem_synchronize(&gpu.place) == umemOK) /* else the copy may still come */
    for (size_t i = 0; i < n; i++) ((unsigned char *)pinned)[i]++;
  umem_copy_from(&gpu.place, block->out, &gpu.pinned, pinned, n);
  if (umem_thread_failures() != before && *own == umemOK) *own = umem_thread_status();
}

static umemStatusType pass(bool with_queues, uintptr_t pinned, umemStatusType *own) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  void *given[queues];
  for (int i = 0; i < queues; i++) given[i] = &gpu.queue[i];
  options.source = (umemRows){&gpu.host, (uintptr_t)gpu.source, width, 0};
  options.destination = (umemRows){&gpu.host, (uintptr_t)gpu.destination, width, 0};
  options.count = count;
  options.place = &gpu.place;
  options.queues = with_queues ? given : NULL;
  options.queue_count = with_queues ? queues : 0;
  options.rows = rows;
  options.depth = queues;
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  umemBlocks_ctor(&blocks, &options);
  while (umemBlocks_next(&blocks, &block)) work(&block, pinned + block.number * rows * width, own);
  umemStatusType status = umemBlocks_end(&blocks);
  umem_synchronize(&gpu.place);
  return status;
}

static bool all_is_right(void) {
  for (size_t i = 0; i < sizeof gpu.source; i++)
    if (gpu.destination[i] != (unsigned char)(gpu.source[i] + 1)) return false;
  return true;
}

/* Whether the fault was met. */
static bool fails_at(unsigned long nth, int error, bool with_queues) {
  open_gpu();
  uintptr_t pinned = umem_alloc(&gpu.pinned, sizeof gpu.source);
  unsigned long before = fake_cudart_calls();
  fake_cudart_fail(nth, error);
  umemStatusType own = umemOK, status = pass(with_queues, pinned, &own);
  bool met = fake_cudart_calls() - before >= nth;
  fake_cudart_fail(0, 0);
  if (status == umemOK && own == umemOK) assert_true(all_is_right());
  if (!met) assert_true(status == umemOK && own == umemOK);
  if (status != umemOK) assert_int_not_equal(umem_thread_status(), umemOK);
  umem_free(&gpu.pinned, pinned);
  close_gpu();
  return met;
}

static void every_call_may_fail(bool with_queues) {
  static int const errors[] = {umemCudaOutOfMemory, umemCudaIllegalAddress};
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    unsigned long nth = 1;
    while (fails_at(nth, errors[i], with_queues)) nth++;
    assert_true(nth > 50);
  }
}

TEST_CASE(every_call_of_a_stream_may_fail) { every_call_may_fail(false); }

TEST_CASE(every_call_of_streams_may_fail) { every_call_may_fail(true); }

/* ---- blocks in pieces ---- */

static bool is_there(umemBlock const *block) {
  void const *bytes = fake_cudart_at(block->adr, block->rows * long_width);
  return bytes &&
         !memcmp(bytes, gpu.long_source + block->first * long_width, block->rows * long_width);
}

/* Whether the fault was met. Blocks that the program gets are right, whatever fails. */
static bool pieces_fail_at(unsigned long nth, int error, unsigned threads) {
  open_gpu();
  assert_int_equal(umem_set_threads(threads), umemOK);
  assert_int_equal(umemCuda_set_staging(chunk, 0), umemOK);
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){&gpu.host, (uintptr_t)gpu.long_source, long_width, 0};
  options.count = long_count;
  options.place = &gpu.place;
  options.rows = 2 * rows; /* 256 KiB */
  options.depth = 2;
  unsigned long before = fake_cudart_calls();
  fake_cudart_fail(nth, error);
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  umemBlocks_ctor(&blocks, &options);
  while (umemBlocks_next(&blocks, &block)) assert_true(is_there(&block));
  umemStatusType status = umemBlocks_end(&blocks);
  bool met = fake_cudart_calls() - before >= nth;
  fake_cudart_fail(0, 0);
  if (!met) assert_int_equal(status, umemOK);
  if (status != umemOK) assert_int_not_equal(umem_thread_status(), umemOK);
  close_gpu();
  umemCuda_set_staging(0, 0);
  umem_set_threads(0);
  return met;
}

TEST_CASE(every_call_of_pieces_may_fail) {
  int const errors[] = {[1] = umemCudaOutOfMemory, [3] = umemCudaIllegalAddress};
  for (unsigned threads = 1; threads <= 3; threads += 2) {
    unsigned long nth = 1;
    while (pieces_fail_at(nth, errors[threads], threads)) nth++;
    assert_true(nth > 50);
  }
}

/* ---- copies through buffers ---- */

static void *stream_of_place(void) { return (void *)info_of(&gpu.place).stream; }

/* Whether the fault was met. umem frees its buffers when the copy returns: nothing that uses them
 * may be queued then. */
static bool buffers_fail_at(unsigned long nth, umemFile *file, size_t stride) {
  open_gpu();
  fake_cudart_machine()->late_pageable = true;
  void *stream = stream_of_place();
  size_t rows_in_all = count;
  ptrdiff_t src_stride = (ptrdiff_t)stride, dst_stride = width;
  umemLayout layout = {sizeof layout, width, 1, &rows_in_all, &src_stride, &dst_stride};
  uintptr_t from = umem_alloc(&gpu.place, count * stride), to = umem_alloc(file, count * width);
  assert_int_equal(umem_synchronize(&gpu.place), umemOK);
  unsigned long before = fake_cudart_calls();
  fake_cudart_fail(nth, umemCudaOutOfMemory);
  umemStatusType status = umem_copy_strided(&gpu.place, from, file, to, &layout);
  bool met = fake_cudart_calls() - before >= nth;
  fake_cudart_fail(0, 0);
  if (!met) assert_int_equal(status, umemOK);
  assert_false(fake_cudart_is_late(stream));
  umem_free(file, to);
  umem_free(&gpu.place, from);
  close_gpu();
  return met;
}

TEST_CASE(every_call_of_copies_through_buffers_may_fail) {
  CONTEXT(umemFile, file, NULL, "w+");
  for (size_t stride = width; stride <= 3 * width; stride += 2 * width) { /* one run, and rows */
    unsigned long nth = 1;
    while (buffers_fail_at(nth, &file, stride)) nth++;
    assert_true(nth > 5);
  }
}

/* From a block on, nothing works. */
TEST_CASE(a_device_fails_for_good) {
  open_gpu();
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){&gpu.host, (uintptr_t)gpu.source, width, 0};
  options.count = count;
  options.place = &gpu.place;
  options.rows = rows;
  options.depth = 1;
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  assert_int_equal(umemBlocks_ctor(&blocks, &options), umemOK);
  assert_true(umemBlocks_next(&blocks, &block));
  assert_true(umemBlocks_next(&blocks, &block));
  fake_cudart_break(0, umemCudaIllegalAddress);
  assert_false(umemBlocks_next(&blocks, &block));
  assert_int_equal(umem_thread_status(), umemRuntimeError);
  assert_non_null(
      strstr(umem_thread_message(), "umemBlocks_next: reading block 2 of 5 (rows 16 to 23)"));
  assert_int_equal(umemBlocks_end(&blocks), umemRuntimeError);
  umem_dtor(&gpu.place);
  for (int i = 0; i < queues; i++) umem_dtor(&gpu.queue[i]);
  DESTRUCT(&gpu.pinned, &gpu.host);
  abandon_double();
}
