/* cuda_prefetch.c - umem/cuda.h: umemCudaPrefetch. */
#include "cuda_help.h"

static umemCudaManaged managed;
static umemCudaPrefetch ctx;

static void open_prefetch(void **state) {
  cuda_set_up(state);
  expect_ok(umemCudaManaged_ctor(&managed, 0, 0));
  expect_ok(umemCudaPrefetch_ctor(&ctx, &managed));
}

static void close_prefetch(void **state) {
  DESTRUCT(&ctx, &managed);
  cuda_tear_down(state);
}

#define PREFETCH_TEST(name) TEST_CASE_WITH(name, open_prefetch, close_prefetch)

/* The last range that was prefetched, and whereto. */
static struct {
  uintptr_t adr;
  size_t nbytes;
  int device;
} seen;

static int see(void const *adr, size_t nbytes, int device, void *stream) {
  seen.adr = (uintptr_t)adr;
  seen.nbytes = nbytes;
  seen.device = device;
  return fake_cudart()->prefetch(adr, nbytes, device, stream);
}

#define assert_seen(block, bytes)                                                                  \
  do {                                                                                             \
    assert_true(seen.adr == (block));                                                              \
    assert_int_equal(seen.nbytes, bytes);                                                          \
  } while (0)

CUDA_TEST(every_new_block_is_prefetched) {
  static umemCudaRt table;
  table = *fake_cudart();
  table.prefetch = see;
  umemCudaRt_replace(&table);
  void *over = opened("cuda-prefetch+cuda-managed:0"), *host = opened("host:");
  uintptr_t one = block_of(over, 100);
  assert_seen(one, 100);
  assert_int_equal(seen.device, 0);
  uintptr_t other = umem_calloc(over, 20, 10);
  assert_seen(other, 200);
  uintptr_t aligned = umem_aligned_alloc(over, 4096, 300);
  assert_true(aligned % 4096 == 0);
  assert_seen(aligned, 300);
  other = umem_realloc(over, other, 200, 5000);
  assert_seen(other, 5000);
  assert_int_equal(fake_cudart_calls_of("prefetch"), 4);
  unsigned char bytes[200];
  expect_ok(umem_copy_to(over, other, host, (uintptr_t)bytes, 200));
  for (int i = 0; i < 200; i++) assert_int_equal(bytes[i], 0);
  FREE(over, one, other);
  umem_aligned_free(over, aligned);
  expect_ok(umem_get_status(over));
  assert_int_equal(fake_cudart_live().managed, 0);
}

CUDA_TEST(layers_may_lie_between) {
  void *one = opened("cuda-prefetch+limit+cuda-managed:0?limit=1000");
  umem_free(one, block_of(one, 100));
  umem_free(one, block_of(one, 100));
  assert_int_equal(fake_cudart_calls_of("prefetch"), 2);
  expect_report(umem_alloc(one, 1001), umemMemoryError, "1001 more bytes");
  assert_int_equal(fake_cudart_calls_of("prefetch"), 2);
}

PREFETCH_TEST(a_refused_hint_leaves_no_block) {
  fake_cudart_fail_in("prefetch", 1, umemCudaInvalidValue);
  expect_report(umem_alloc(&ctx, 100), umemValueError,
                "umem_alloc: cannot prefetch 100 bytes at 0x");
  fake_cudart_fail_in("prefetch", 1, umemCudaInvalidValue);
  expect_report(umem_aligned_alloc(&ctx, 1024, 100), umemValueError, "cannot prefetch");
  assert_int_equal(umem_get_status(&ctx), umemValueError);
  umem_clear_status(&ctx);
  assert_int_equal(umem_get_status(&managed), umemOK);
  assert_int_equal(fake_cudart_live().managed, 0);
  uintptr_t adr = block_of(&ctx, 100);
  fake_cudart_fail_in("prefetch", 1, umemCudaInvalidValue);
  adr = umem_realloc(&ctx, adr, 100, 200);
  assert_true(adr != 0); /* the bytes have moved already */
  expect_ok(umem_thread_status());
  expect_ok(umem_get_status(&ctx));
  umem_free(&ctx, adr);
}

CUDA_TEST(does_without_where_there_is_no_such_hint) {
  fake_cudart_machine()->device[0].no_concurrent_managed = true;
  void *one = opened("cuda-prefetch+cuda-managed:0");
  umem_free(one, block_of(one, 100));
  assert_int_equal(fake_cudart_calls_of("prefetch"), 0);
}

CUDA_TEST(other_memory_is_refused) {
  umemCuda device;
  void *host = opened("host:");
  expect_ok(umemCuda_ctor(&device, 0));
  expect_failure(umemCudaPrefetch_ctor(&ctx, host), umemTypeError, "below is Host memory");
  expect_failure(umemCudaPrefetch_adopt(&ctx, &device), umemTypeError, "below is Cuda memory");
  expect_failure(umemCudaPrefetch_ctor(&ctx, NULL), umemValueError, "the upstream is NULL");
  umem_dtor(&device);
  expect_ok(umemCudaManaged_ctor(&managed, 0, 0));
  expect_ok(umemCudaPrefetch_adopt(&ctx, &managed));
  umem_dtor(&ctx);
  assert_null(managed.super.vptr);
}
