/* cuda_blocks.c - the table of live blocks of a CUDA context, for whose cells there is no memory.
 * On a double of the runtime.
 *
 * Linked with -Wl,--wrap=calloc. */
#include "cuda_help.h"

#include "base/table.h"

static bool no_cells; /* no table of blocks can grow */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
  if (no_cells && size == sizeof(umemTableCell)) return NULL;
  return __real_calloc(count, size);
}

static void refuse_block(umemVirtual *ctx) {
  no_cells = true;
  uintptr_t adr = umem_alloc(ctx, 100);
  no_cells = false;
  assert_int_equal(adr, 0);
  expect_failure(umem_thread_status(), umemMemoryError, "no memory to remember a block");
  umem_clear_status(ctx);
}

CUDA_TEST(a_block_that_cannot_be_remembered_goes_back) {
  for (int kind = 0; kind < kinds; kind++) {
    void *any = opened_kind(kind, 0);
    refuse_block(any);
    expect_ok(umem_synchronize(any));
    FakeCudartLive live = fake_cudart_live();
    assert_int_equal(live.blocks + live.managed + live.pinned + live.registered, 0);
  }
}

/* The program must not get the error of a call that it did not make. */
CUDA_TEST(what_fails_then_is_no_error_of_the_program) {
  umemCuda ctx;
  expect_ok(umemCuda_ctor(&ctx, 0));
  fake_cudart_fail_in("free", 1, umemCudaInvalidValue);
  refuse_block(&ctx.super);
  enter(0);
  assert_int_equal(rt->last_error(), umemCudaSuccess);
  leave(0);
  umem_dtor(&ctx);
  forget_all();
}

enum { full = 32 }; /* blocks that fill the first cells of a table */

static void fill_table(void *ctx) {
  block_of(ctx, 100);
  no_cells = true;
}

CUDA_TEST(a_block_that_could_not_be_freed_remains_live) {
  uintptr_t adr[full];
  void *ctx = opened("cuda:0");
  for (int i = 0; i < full; i++) adr[i] = block_of(ctx, 100);
  fake_cudart_before("free", 1, fill_table, ctx); /* as another thread may */
  fake_cudart_fail_in("free", 1, umemCudaInvalidValue);
  umem_free(ctx, adr[0]);
  no_cells = false;
  expect_failure(umem_thread_status(), umemValueError, "cannot free the block");
  umem_clear_status(ctx);
  umem_free(ctx, adr[0]);
  expect_ok(umem_thread_status());
  assert_int_equal(fake_cudart_live().blocks, full);
}
