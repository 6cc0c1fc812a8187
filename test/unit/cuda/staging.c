/* staging.c - copies of pageable memory through pinned chunks: content, order, how many chunks
 * there are, and several GPUs, on a double of the runtime. */
#include "staging_help.h"

/* ---- content ---- */

BENCH_TEST(all_bytes_arrive) {
  size_t const sizes[] = {from, from + 1, from + 4095, from + 12345, 2 * from, 3 * from - 1};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    there_and_back(&bench, sizes[i], i * 5 % 7, i * 3 % 11, (unsigned)i);
}

BENCH_TEST(all_bytes_arrive_through_small_chunks) {
  assert_int_equal(umemCuda_set_staging(64 << 10, 7), umemOK);
  there_and_back(&bench, from + 777, 1, 3, 5);
  there_and_back(&bench, 2 * from + 1, 0, 1, 6);
  assert_int_equal(live_chunks(), 7); /* of which three channels use six */
}

BENCH_TEST(all_bytes_arrive_through_large_chunks) {
  assert_int_equal(umemCuda_set_staging(16 << 20, 0), umemOK);
  there_and_back(&bench, from, 3, 1, 1);
  there_and_back(&bench, from + 9, 2, 2, 2);
}

BENCH_TEST(short_copies_are_declined) {
  Block block = block_make(from);
  unsigned long before = fake_cudart_calls();
  assert_false(stage(&bench, block.adr, block.bytes, from - 1, umemCudaToDevice));
  assert_int_equal(fake_cudart_calls(), before);
  assert_int_equal(umem_get_status(&bench.ctx), umemOK);
  block_release(&block);
}

/* ---- order ---- */

typedef struct Kernel {
  Block *block;
  unsigned char *seen; /* what the block held when the kernel ran */
  int value;           /* what it was set to then; -1: it was not */
} Kernel;

static void run_kernel(void *argument) {
  Kernel *kernel = argument;
  Block *block = kernel->block;
  fake_cudart_peek(block->adr, kernel->seen, block->nbytes);
  if (kernel->value < 0) return;
  memset(block->bytes, kernel->value, block->nbytes);
  fake_cudart_poke(block->adr, block->bytes, block->nbytes);
}

static void check_order(void *stream) {
  size_t nbytes = 2 * from;
  Block block = block_make(nbytes);
  unsigned char *host = malloc(nbytes), *seen = malloc(nbytes);
  assert_non_null(host);
  assert_non_null(seen);
  memset(block.bytes, 1, nbytes + 2 * margin);
  block_poke(&block);
  bench.state.stream = stream;
  uintptr_t device = block.adr;

  Kernel before = {&block, seen, 2};
  ok(fake_cudart_launch(stream, run_kernel, &before));
  assert_true(fake_cudart_is_late(stream));
  assert_true(stage(&bench, device, host, nbytes, umemCudaToHost));
  assert_true(is_all(seen, nbytes, 1));
  assert_true(is_all(host, nbytes, 2));

  before.value = 3;
  memset(host, 4, nbytes);
  ok(fake_cudart_launch(stream, run_kernel, &before));
  assert_true(stage(&bench, device, host, nbytes, umemCudaToDevice));
  assert_true(is_all(seen, nbytes, 2));
  Kernel after = {&block, seen, -1};
  ok(fake_cudart_launch(stream, run_kernel, &after));
  ok(rt->stream_synchronize(stream));
  assert_true(is_all(seen, nbytes, 4));

  bench.state.stream = NULL;
  free(host);
  free(seen);
  block_release(&block);
}

BENCH_TEST(order_on_a_stream) {
  void *stream;
  ok(rt->stream_create(&stream));
  check_order(stream);
  ok(rt->stream_destroy(stream));
}

BENCH_TEST(order_on_the_legacy_stream) { check_order(NULL); }

/* A program may capture a graph in another stream meanwhile. */
BENCH_TEST(captures_of_others_go_on) {
  void *captured, *graph;
  ok(rt->stream_create(&captured));
  ok(rt->stream_create(&bench.state.stream));
  size_t nbytes = 2 * from;
  Block block = block_make(nbytes);
  memset(block.bytes, 5, nbytes);
  ok(fake_cudart_begin_capture(captured));
  assert_true(stage(&bench, block.adr, block.bytes, nbytes, umemCudaToDevice));
  ok(fake_cudart_end_capture(captured, &graph));
  assert_int_equal(umem_get_status(&bench.ctx), umemOK);
  block_release(&block);
  ok(rt->stream_destroy(captured));
  ok(rt->stream_destroy(bench.state.stream));
  bench.state.stream = NULL;
}

/* ---- the set of chunks ---- */

BENCH_TEST(chunks_and_channels_are_used_again) {
  there_and_back(&bench, 4 * from, 0, 0, 1);
  FakeCudartLive first = fake_cudart_live();
  size_t chunks = live_chunks();
  unsigned long created = fake_cudart_calls_of("stream_create");
  assert_true(chunks <= 2 * threads);
  there_and_back(&bench, 4 * from, 0, 0, 2);
  assert_int_equal(live_chunks(), chunks);
  assert_int_equal(fake_cudart_live().streams, first.streams);
  assert_int_equal(fake_cudart_live().events, first.events);
  assert_int_equal(fake_cudart_calls_of("stream_create"), created);
}

BENCH_TEST(without_chunks_copies_are_declined) {
  assert_int_equal(umemCuda_set_staging(0, 1), umemOK);
  Block block = block_make(from);
  umemCudaDirection const directions[] = {umemCudaToDevice, umemCudaToHost};
  memset(block.bytes, 3, from + 2 * margin);
  block_poke(&block);
  for (int i = 0; i < 2; i++)
    assert_false(stage(&bench, block.adr, block.bytes, from, directions[i]));
  assert_int_equal(umem_get_status(&bench.ctx), umemOK);
  assert_int_equal(live_chunks(), 1);
  block_release(&block);
}

BENCH_TEST(the_size_can_be_set) {
  there_and_back(&bench, 4 * from, 0, 0, 1);
  assert_true(live_chunks() > 0);
  assert_int_equal(umemCuda_set_staging(128 << 10, 0), umemOK);
  assert_int_equal(live_chunks(), 0); /* idle ones of the other size */
  there_and_back(&bench, 4 * from, 0, 0, 2);
  assert_int_equal(live_chunks(), 2 * threads);
  assert_int_equal(umemCuda_set_staging(128 << 10, 3), umemOK);
  assert_int_equal(live_chunks(), 3);
}

BENCH_TEST(a_lent_chunk_of_another_size_goes_when_it_comes_back) {
  umemCudaChunk *chunk = umemCudaChunk_take(bench.state.gpu);
  assert_non_null(chunk);
  assert_int_equal(umemCuda_set_staging(64 << 10, 0), umemOK);
  assert_int_equal(live_chunks(), 1);
  memset(chunk->memory, 1, chunk->nbytes);
  umemCudaChunk_give(chunk);
  assert_int_equal(live_chunks(), 0);
}

BENCH_TEST(impossible_settings) {
  assert_int_equal(umemCuda_set_staging(4096, 0), umemValueError);
  assert_int_equal(umemCuda_set_staging((64 << 10) + 1, 0), umemValueError);
  assert_int_equal(umemCuda_set_staging((64 << 20) + 4096, 0), umemValueError);
  assert_int_equal(umemCuda_set_staging(0, 257), umemValueError);
  assert_non_null(strstr(umem_thread_message(), "umemCuda_set_staging"));
  umem_thread_clear();
  assert_int_equal(umemCuda_set_staging(64 << 20, 256), umemOK);
}

/* ---- several GPUs ---- */

BENCH_TEST(each_gpu_releases_its_own) {
  there_and_back(&bench, 4 * from, 0, 0, 1);
  FakeCudartLive first = fake_cudart_live();
  Bench second;
  bench_open(&second, 1);
  there_and_back(&second, 4 * from, 0, 0, 2);
  assert_true(fake_cudart_live().streams > first.streams);
  bench_close(&second);
  FakeCudartLive last = fake_cudart_live();
  assert_int_equal(last.streams, first.streams);
  assert_int_equal(last.events, first.events);
  assert_int_equal(last.pinned + last.registered, first.pinned + first.registered);
  assert_int_equal(fake_cudart_done().foreign, 0);
  there_and_back(&bench, 4 * from, 0, 0, 3);
}

BENCH_TEST(a_gpu_takes_idle_chunks_of_another) {
  assert_int_equal(umemCuda_set_staging(0, 2 * threads), umemOK);
  there_and_back(&bench, 4 * from, 0, 0, 1);
  assert_int_equal(live_chunks(), 2 * threads);
  Bench second;
  bench_open(&second, 1);
  there_and_back(&second, 4 * from, 0, 0, 2);
  assert_int_equal(live_chunks(), 2 * threads);
  umemCudaChunk *chunk = umemCudaChunk_take(second.state.gpu);
  assert_ptr_equal(chunk->gpu, second.state.gpu); /* whose context it lives in */
  umemCudaChunk_give(chunk);
  there_and_back(&bench, 4 * from, 0, 0, 3);
  assert_int_equal(live_chunks(), 2 * threads);
  bench_close(&second);
}
