/* buffers.c - the umemHost that CUDA contexts have for intermediate buffers, on a double of the
 * runtime; and what fork leaves of staging. */
#include "cuda_help.h"

#include "core/context.h"
#include "cuda/cuda_methods.h"
#include "cuda/cuda_pinned.h"

static umemCudaRt table; /* the double */

/* ---- the buffers of a GPU ---- */

static umemHost ctx; /* that failures are recorded on */
static umemCudaGpu *gpu;
static umemCudaBuffers buffers;

static void open_buffers(void **state) {
  cuda_set_up(state);
  table = *fake_cudart();
  umemCudaRt_replace(&table);
  umemHost_ctor(&ctx);
  gpu = umemCudaGpu_open(&ctx.super, 0);
  assert_non_null(gpu);
  umemCudaBuffers_ctor(&buffers, gpu);
}

static void end_buffers(void) {
  umem_dtor(&buffers);
  umemCudaGpu_close(gpu);
}

static void close_buffers(void **state) {
  end_buffers();
  umem_dtor(&ctx);
  assert_int_equal(umem_thread_status(), umemOK);
  cuda_tear_down(state);
}

static bool is_pinned(uintptr_t adr) {
  umemCudaMemory kind = umemCudaUnregistered;
  int device;
  return !rt->pointer((void *)adr, &kind, &device) && kind == umemCudaPinned;
}

#define BUFFER_TEST(name) TEST_CASE_WITH(name, open_buffers, close_buffers)

/* ---- blocks ---- */

BUFFER_TEST(it_is_a_plain_host) {
  CONTEXT(umemHost, other);
  assert_true(umem_is_plain_host(&buffers.host.super));
  assert_string_equal(umem_get_device_name(&buffers), "Host");
  assert_true(umem_is_same_device(&buffers, &other));
}

BUFFER_TEST(sizes_that_chunks_serve) {
  size_t const sizes[] = {1, umemStagingBufferFrom - 1, umemStagingBufferFrom, umemStagingChunk,
                          umemStagingChunk + 1};
  bool const pinned[] = {false, false, true, true, false};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    uintptr_t adr = umem_alloc(&buffers, sizes[i]);
    assert_int_not_equal(adr, 0);
    assert_int_equal(adr % buffers.host.super.alignment, 0);
    assert_int_equal(is_pinned(adr), pinned[i]);
    assert_int_equal(umem_set(&buffers, adr, 1, sizes[i]), umemOK);
    umem_free(&buffers, adr);
  }
}

BUFFER_TEST(all_ways_to_allocate) {
  size_t nbytes = umemStagingChunk / 2;
  uintptr_t adr = umem_alloc(&buffers, nbytes);
  umem_set(&buffers, adr, 1, nbytes);
  umem_free(&buffers, adr);
  adr = umem_calloc(&buffers, nbytes, 1);
  for (size_t i = 0; i < nbytes; i++) assert_int_equal(((char *)adr)[i], 0);
  ((char *)adr)[77] = 7;
  adr = umem_realloc(&buffers, adr, nbytes, 4 * nbytes);
  assert_int_equal(((char *)adr)[77], 7);
  umem_free(&buffers, adr);
  adr = umem_aligned_alloc(&buffers, 4096, nbytes);
  assert_int_equal(adr % 4096, 0);
  assert_int_equal(umem_set(&buffers, adr, 1, nbytes), umemOK);
  umem_aligned_free(&buffers, adr);
}

BUFFER_TEST(beyond_the_bound_memory_is_plain) {
  assert_int_equal(umemCuda_set_staging(64 << 10, 2), umemOK);
  uintptr_t adr[4];
  for (int i = 0; i < 4; i++) {
    adr[i] = umem_alloc(&buffers, 64 << 10);
    assert_int_equal(is_pinned(adr[i]), i < 2);
    memset((void *)adr[i], i, 64 << 10);
  }
  umem_free(&buffers, adr[1]);
  uintptr_t again = umem_alloc(&buffers, 64 << 10);
  assert_int_equal(again, adr[1]);
  umem_free(&buffers, again);
  for (int i = 0; i < 4; i++)
    if (i != 1) umem_free(&buffers, adr[i]);
}

BUFFER_TEST(where_nothing_can_be_pinned_memory_is_plain) {
  assert_int_equal(umemCuda_set_staging(64 << 10, 0), umemOK);
  char const *const functions[] = {"host_alloc", "context_push", "context_current"};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    fake_cudart_fail_in(functions[i], 1, umemCudaNotPermitted);
    uintptr_t adr = umem_alloc(&buffers, 64 << 10);
    fake_cudart_fail(0, 0);
    assert_int_not_equal(adr, 0);
    assert_false(is_pinned(adr));
    umem_free(&buffers, adr);
    assert_int_equal(umem_thread_status(), umemOK);
    assert_int_equal(umem_get_status(&buffers), umemOK);
  }
  assert_int_equal(rt->last_error(), 0);
}

/* ---- threads ---- */

static void *use_buffers(void *argument) {
  unsigned char value = *(unsigned char *)argument;
  for (unsigned i = 0; i < 200; i++) {
    size_t nbytes = (size_t)(1 + i % 5) << 16;
    unsigned char *bytes = (unsigned char *)umem_alloc(&buffers, nbytes);
    if (!bytes) return argument;
    bytes[0] = bytes[nbytes - 1] = value;
    if (i % 16 == 0) umem_aligned_free(&buffers, umem_aligned_alloc(&buffers, 64, nbytes));
    bool kept = bytes[0] == value && bytes[nbytes - 1] == value;
    umem_free(&buffers, (uintptr_t)bytes);
    if (!kept) return argument;
  }
  return NULL;
}

BUFFER_TEST(threads_use_them) {
  unsigned char values[] = {0, 1, 2, 3, 4, 5, 6, 7};
  assert_int_equal(umemCuda_set_staging(256 << 10, sizeof values / 2), umemOK);
  run_at_once(sizeof values, use_buffers, values, 1);
}

/* ---- fork ---- */

static int use_in_child(uintptr_t inherited) {
  size_t nbytes = umemStagingChunk;
  uintptr_t adr = umem_alloc(&buffers, nbytes);
  if (!adr || adr == inherited) return 1;
  memset((void *)adr, 1, nbytes);
  FREE(&buffers, adr, inherited);
  if (umemCuda_set_staging(64 << 10, 0) != umemOK) return 2;
  end_buffers();
  return 0;
}

BUFFER_TEST(a_child_of_fork_calls_nothing) {
  uintptr_t idle = umem_alloc(&buffers, umemStagingChunk);
  uintptr_t lent = umem_alloc(&buffers, umemStagingChunk);
  umem_free(&buffers, idle);
  IN_CHILD {
    memset(&table, 0, sizeof table); /* whatever is called there ends it */
    EXPECT(use_in_child(lent) == 0);
  }
  assert_true(is_pinned(lent));
  umem_free(&buffers, lent);
}
