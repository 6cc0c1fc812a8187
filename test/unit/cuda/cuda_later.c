/* cuda_later.c - a copy on a stream, between its memory and memory that belongs to none, comes
 * before what uses the latter later: on the legacy stream, which its context, and kernels beside
 * it, are in the order of. On a double of the runtime that does nothing before it is demanded. */
#include "cuda_help.h"

#include "core/copy.h"
#include "cuda/cuda_pinned.h"

enum { n = 5000 };

static void *stream, *host;
static unsigned char bytes[n];

static void later_set_up(void **state) {
  cuda_set_up(state);
  stream = opened("cuda-async:0");
  host = opened("host:");
}

static bool is_late(void) { return fake_cudart_is_late((void *)umemCudaAsync_stream(stream)); }

static void expect_bytes(void *ctx, uintptr_t adr, int value, char const *what) {
  expect_ok(umem_copy_to(ctx, adr, host, (uintptr_t)bytes, n));
  for (size_t i = 0; i < n; i++)
    if (bytes[i] != value) fail_msg("%s: byte %zu is %d, not %d", what, i, bytes[i], value);
}

/* ctx: a umemCuda or umemCudaManaged, of the GPU of the stream or of another one. */
static void expect_order(void *ctx, char const *what) {
  uintptr_t there = block_of(ctx, n), mine = block_of(stream, n);
  expect_ok(umem_set(ctx, there, 1, n));
  expect_ok(umem_copy_to(ctx, there, stream, mine, n));
  assert_true(is_late()); /* it is queued, nobody has waited */
  expect_ok(umem_set(ctx, there, 2, n));
  expect_ok(umem_synchronize(stream));
  expect_bytes(stream, mine, 1, what);

  expect_ok(umem_set(stream, mine, 3, n));
  expect_ok(umem_copy_to(stream, mine, ctx, there, n));
  expect_ok(umem_set(ctx, there, 4, n));
  expect_ok(umem_synchronize(stream));
  expect_bytes(ctx, there, 4, what);

  expect_ok(umem_set(stream, mine, 5, n));
  expect_ok(umem_copy_to(stream, mine, ctx, there, n));
  expect_bytes(ctx, there, 5, what); /* a copy on the legacy stream waits for it */
  expect_ok(umem_synchronize(stream));
}

#define LATER_TEST(name) TEST_CASE_WITH(name, later_set_up, cuda_tear_down)

static void fill_with_ones(void *adr) {
  memset(fake_cudart_at((uintptr_t)adr, umemStagingChunk), 1, umemStagingChunk);
}

/* It goes beside the legacy stream, as those of other threads, after the work that is there. */
LATER_TEST(a_chunk_comes_after_the_legacy_stream) {
  size_t const sizes[] = {umemStagingChunk, umemStagingChunk - 1, 512 << 10};
  umemVirtual *ctx = opened("cuda:0");
  umemHost *buffers = ctx->host;
  uintptr_t there = block_of(ctx, umemStagingChunk), chunk = umem_alloc(buffers, umemStagingChunk);
  memset((void *)chunk, 7, umemStagingChunk);
  for (size_t i = 0; i < 3; i++) {
    unsigned long before = fake_cudart_calls_of("memcpy");
    enter(0);
    ok(fake_cudart_launch(FAKE_STREAM_LEGACY, fill_with_ones, (void *)there));
    leave(0);
    umem_write_run(ctx, there, &buffers->super, (void const *)chunk, sizes[i]);
    assert_int_equal(fake_cudart_calls_of("memcpy") - before, i == 2);
    unsigned char const *at = fake_cudart_at(there, umemStagingChunk);
    assert_true(*at == 7 && at[sizes[i] - 1] == 7); /* on return */
    expect_ok(umem_synchronize(ctx));
    assert_true(*at == 7 && at[sizes[i] - 1] == 7);
  }
  umem_free(buffers, chunk);
}

LATER_TEST(what_uses_the_memory_later_comes_later) {
  for (int device = 0; device < 2; device++) {
    expect_order(opened("cuda:%d", device), "Cuda");
    fake_cudart_machine()->device[device].no_concurrent_managed = true; /* it is as device memory */
    expect_order(opened("cuda-managed:%d", device), "CudaManaged");
  }
}

/* Whichever call of the runtime fails: the order holds, or the copy has failed and is not under
 * way, since the program may give its blocks away then. */
static void expect_order_after_failures(void *ctx) {
  static char const *const functions[] = {"event_create", "event_record", "stream_wait",
                                          "context_push", "exchange_capture_mode"};
  uintptr_t there = block_of(ctx, n), mine = block_of(stream, n);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    for (unsigned long nth = 1; nth < 12; nth++) {
      expect_ok(umem_set(ctx, there, 1, n));
      expect_ok(umem_set(stream, mine, 9, n));
      expect_ok(umem_synchronize(ctx));
      expect_ok(umem_synchronize(stream));
      fake_cudart_fail_in(functions[i], nth, umemCudaNotSupported);
      umemStatusType status = umem_copy_to(ctx, there, stream, mine, n);
      fake_cudart_fail_in(functions[i], 0, 0);
      FORGET(stream, ctx);
      expect_ok(umem_set(ctx, there, 2, n));
      expect_ok(umem_synchronize(ctx));
      expect_ok(umem_synchronize(stream));
      int const found = *(unsigned char const *)fake_cudart_at(mine, n);
      if (found != 1 && (status == umemOK || found != 9))
        fail_msg("%s, call %lu: %d, the copy was still under way", functions[i], nth, found);
    }
}

LATER_TEST(failures_keep_the_order) {
  for (int device = 0; device < 2; device++) {
    expect_order_after_failures(opened("cuda:%d", device));
    expect_order_after_failures(opened("cuda-async:%d", device));
  }
}

/* A copy that is recorded is not done before the graph is launched: nobody waits for it. */
LATER_TEST(a_recorded_copy_makes_nothing_wait) {
  void *graph = NULL;
  void *cuda = opened("cuda:0");
  uintptr_t there = block_of(cuda, n), mine = block_of(stream, n);
  expect_ok(umem_set(cuda, there, 1, n));
  void *captured = (void *)umemCudaAsync_stream(stream);
  ok(fake_cudart_begin_capture(captured));
  expect_ok(umem_copy_to(cuda, there, stream, mine, n));
  expect_ok(umem_set(cuda, there, 2, n));
  ok(fake_cudart_end_capture(captured, &graph));
  ok(fake_cudart_launch_graph(graph, captured));
  expect_ok(umem_synchronize(stream));
  expect_bytes(stream, mine, 2, "the graph");
}
