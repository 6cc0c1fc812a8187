/* syncs.c - umem/blocks.h on a GPU: how often a passage waits, and what is queued meanwhile, on a
 * double of the runtime. */
#include "passage.h"

#include "backends.h"
#include "cuda_double.h"

enum { count = 8, row = 1 << 20, depth = 3 };

typedef struct Gpu {
  umemHost host;
  umemCudaHost pinned;
  umemCudaAsync place, queues[depth];
  void *given[depth];
  umemBlocksOptions options;
  unsigned char *source;
} Gpu;

static Gpu gpu;

#define OPEN open_gpu
#define CLOSE close_gpu

static void open_gpu(void **state) {
  begin_double();
  set_up(state);
  assert_ok(umemHost_ctor(&gpu.host));
  assert_ok(umemCudaHost_ctor(&gpu.pinned, 0));
  assert_ok(umemCudaAsync_ctor(&gpu.place, 0, UMEM_STREAM_NEW));
  for (int i = 0; i < depth; i++) {
    assert_ok(umemCudaAsync_ctor(&gpu.queues[i], 0, UMEM_STREAM_NEW));
    gpu.given[i] = &gpu.queues[i];
  }
  gpu.source = (unsigned char *)umem_alloc(&gpu.pinned, (size_t)count * row);
  for (size_t i = 0; i < count; i++) memset(gpu.source + i * row, (int)i + 1, row);
  gpu.options = (umemBlocksOptions)UMEM_BLOCKS_OPTIONS_INIT;
  gpu.options.source = (umemRows){&gpu.pinned, (uintptr_t)gpu.source, row, 0};
  gpu.options.count = count;
  gpu.options.rows = 1;
  gpu.options.depth = depth;
  gpu.options.place = &gpu.place;
  gpu.options.queues = gpu.given;
  gpu.options.queue_count = depth;
}

static void close_gpu(void **state) {
  umem_free(&gpu.pinned, (uintptr_t)gpu.source);
  for (int i = 0; i < depth; i++) umem_dtor(&gpu.queues[i]);
  DESTRUCT(&gpu.place, &gpu.pinned, &gpu.host);
  end_double();
  tear_down(state);
}

/* A block, with a kernel of the program's on it: a set of its first bytes. */
static void check_block(size_t number) {
  unsigned char bytes[64];
  assert_true(fake_cudart_peek(block.adr + row - sizeof bytes, bytes, sizeof bytes)); /* is there */
  for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], number + 1);
  assert_ok(umem_set(&gpu.place, block.adr, 0xEE, sizeof bytes));
}

/* One wait for each block, in a thread of umem. The program's thread only queues: its work is
 * ordered by events, one for each block, and for each queue at the beginning and the end. */
TEST(waits_once_for_each_block) {
  unsigned long waits = fake_cudart_calls_of("stream_synchronize");
  unsigned long others = fake_cudart_calls_of("event_synchronize");
  unsigned long orders = fake_cudart_calls_of("stream_wait");
  unsigned long copies = fake_cudart_calls_of("memcpy_async");
  pass_all(&gpu.options, check_block, count);
  assert_int_equal(fake_cudart_calls_of("memcpy_async") - copies, count);
  assert_int_equal(fake_cudart_calls_of("stream_synchronize") - waits, count);
  assert_int_equal(fake_cudart_calls_of("event_synchronize") - others, 0);
  assert_int_equal(fake_cudart_calls_of("stream_wait") - orders, count + 2 * depth);
}
TEST_AGAIN(one_thread, waits_once_for_each_block)

/* Whether two copies were queued before the first of them was waited for; -1: nobody has waited. */
static int both_queued = -1;

static void await_second_copy(void *argument UNUSED) {
  for (int i = 0; i < seconds * 1000 && fake_cudart_calls_of("memcpy_async") < 2; i++) usleep(1000);
  both_queued = fake_cudart_calls_of("memcpy_async") >= 2;
}

/* So the link to the GPU is never idle between two blocks. */
TEST(the_next_copy_is_queued_before_one_is_waited_for) {
  both_queued = -1;
  fake_cudart_before("stream_synchronize", 1, await_second_copy, NULL);
  pass_all(&gpu.options, check_block, count);
  fake_cudart_before("stream_synchronize", 0, NULL, NULL);
  assert_int_equal(both_queued, 1);
}
