/* safe.c - umem/copy.h and umem/connect.h: the functions that check bounds. */
#include "contract.h"

typedef umemStatusType ToFunction(void *src, uintptr_t src_adr, size_t src_size, void *dst,
                                  uintptr_t dst_adr, size_t dst_size, size_t nbytes);

/* The four in one form: source first. */
static umemStatusType copy_from_turned(void *src, uintptr_t src_adr, size_t src_size, void *dst,
                                       uintptr_t dst_adr, size_t dst_size, size_t nbytes) {
  return umem_copy_from_safe(dst, dst_adr, dst_size, src, src_adr, src_size, nbytes);
}
static umemStatusType sync_from_turned(void *src, uintptr_t src_adr, size_t src_size, void *dst,
                                       uintptr_t dst_adr, size_t dst_size, size_t nbytes) {
  return umem_sync_from_safe(dst, dst_adr, dst_size, src, src_adr, src_size, nbytes);
}
static ToFunction *const functions[] = {umem_copy_to_safe, copy_from_turned, umem_sync_to_safe,
                                        sync_from_turned};
enum { function_count = sizeof functions / sizeof *functions, block_size = 100 };

typedef struct Blocks {
  umemVirtual *src, *dst;
  uintptr_t from, to;
} Blocks;

static Blocks open_blocks(Place const *src, Place const *dst) {
  return (Blocks){src->ctx, dst->ctx, new_filled_block(src->ctx, block_size, 1),
                  new_filled_block(dst->ctx, block_size, 2)};
}

static void close_blocks(Blocks const *it) {
  umem_free(it->src, it->from);
  umem_free(it->dst, it->to);
}

static umemStatusType call(size_t function, Blocks const *it, size_t src_size, size_t dst_size,
                           size_t nbytes) {
  return functions[function](it->src, it->from, src_size, it->dst, it->to, dst_size, nbytes);
}

PAIR(what_fits_is_copied) {
  SCOPED(close_blocks) Blocks it = open_blocks(src, dst);
  for (size_t i = 0; i < function_count; i++) {
    unsigned char source[block_size], expected[block_size];
    fill_bytes(source, block_size, 10 + i);
    fill_bytes(expected, block_size, 20 + i);
    put(it.src, it.from, source, block_size);
    put(it.dst, it.to, expected, block_size);
    assert_ok(call(i, &it, 60, 60, 60));
    settle(it.src, it.dst);
    memcpy(expected, source, 60);
    assert_holds(it.dst, it.to, expected, block_size);
    assert_ok(call(i, &it, 100, 60, 30));
    assert_ok(call(i, &it, 0, 0, 0));
    settle(it.src, it.dst);
  }
}

static void expect_index_error(umemVirtual *ctx, bool at_fault) {
  assert_int_equal(umem_get_status(ctx), at_fault ? umemIndexError : umemOK);
  assert_ok(umem_clear_status(ctx));
}

PAIR(what_does_not_fit_is_an_index_error) {
  SCOPED(close_blocks) Blocks it = open_blocks(src, dst);
  size_t const sizes[][3] = {{59, 100, 60}, {100, 59, 60}, {59, 59, 60},
                             {0, 100, 1},   {100, 0, 1},   {100, SIZE_MAX, SIZE_MAX}};
  unsigned char source[block_size], target[block_size];
  fill_bytes(source, block_size, 1);
  fill_bytes(target, block_size, 2);
  for (size_t i = 0; i < function_count; i++)
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      size_t nbytes = sizes[k][2];
      assert_int_equal(call(i, &it, sizes[k][0], sizes[k][1], nbytes), umemIndexError);
      assert_int_equal(umem_thread_status(), umemIndexError);
      umem_thread_clear();
      expect_index_error(it.src, sizes[k][0] < nbytes);
      expect_index_error(it.dst, sizes[k][1] < nbytes);
    }
  assert_holds(it.src, it.from, source, block_size);
  assert_holds(it.dst, it.to, target, block_size);
}

/* The other checks are still made. */
PAIR(null_is_still_refused) {
  Blocks it = open_blocks(src, dst);
  Blocks null_src = it, null_dst = it;
  null_src.from = umem_null(it.src);
  null_dst.to = umem_null(it.dst);
  for (size_t i = 0; i < function_count; i++) {
    expect_status(it.src, call(i, &null_src, 100, 100, 10), umemValueError);
    expect_status(it.dst, call(i, &null_dst, 100, 100, 10), umemValueError);
  }
  close_blocks(&it);
}

SUITE(safe)
