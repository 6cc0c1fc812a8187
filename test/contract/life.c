/* life.c - umem/context.h: a context from its constructor to its end, and what it says about
 * itself.
 *
 * Whoever opened a context closes it too: umem_dtor is then called for a second time. */
#include "contract.h"

SINGLE(a_new_context_is_ok) {
  assert_true(umem_is_ok(ctx));
  assert_int_equal(umem_get_status(ctx), umemOK);
  assert_string_equal(umem_get_message(ctx), "");
  assert_true(ctx->alignment >= 1);
  assert_true(umem_is_same_device(ctx, ctx));
}

SINGLE(null_follows_the_kind_of_address) {
  bool offsets = ctx->capabilities & umemOffsets;
  assert_true(umem_null(ctx) == (offsets ? UINTPTR_MAX : 0));
}

SINGLE(a_context_has_a_name) {
  char const *name = umem_get_device_name(ctx);
  assert_non_null(name);
  assert_string_not_equal(name, "");
  assert_string_not_equal(name, "None");
}

SINGLE(the_end_comes_once) {
  uintptr_t null = umem_null(ctx);
  DESTRUCT(ctx, ctx);
  assert_true(umem_null(ctx) == null);
}

SINGLE_WITH(blocks_end_with_their_context, backendChecksFrees) {
  new_filled_block(ctx, 100, 1);
  assert_true(umem_aligned_alloc(ctx, 4096, 5000) != umem_null(ctx));
  assert_true(umem_calloc(ctx, 10, 10) != umem_null(ctx));
  umem_dtor(ctx);
  if (place->row->traits & backendReportsLeaks) expect_failure(ctx, umemRuntimeError);
  if (!lasts(place)) expect_failure(ctx, umemIOError); /* bytes were not written */
}

/* Of no bytes, or zero as they are: a file and an object in a bucket are made as they are. */
SINGLE(blocks_that_need_no_bytes_end_with_their_context) {
  uintptr_t blocks[] = {new_block(ctx, 0), umem_calloc(ctx, 0, 8), umem_calloc(ctx, 100, 10)};
  uintptr_t aligned = umem_aligned_alloc(ctx, 64, 0);
  assert_block(ctx, aligned);
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) umem_free(ctx, blocks[i]);
  umem_aligned_free(ctx, aligned);
  DESTRUCT(ctx, ctx);
}

PAIR(one_memory_is_one_device) {
  char const *a = src->row->memory, *b = dst->row->memory;
  assert_int_equal(umem_is_same_device(src->ctx, dst->ctx), a && b && !strcmp(a, b));
}

PAIR(two_contexts_of_a_kind_do_not_touch) {
  uintptr_t a = new_filled_block(src->ctx, 100, 1), b = new_filled_block(dst->ctx, 100, 2);
  assert_filled(src->ctx, a, 100, 1);
  assert_filled(dst->ctx, b, 100, 2);
  umem_set_status(src->ctx, umemIOError, "only here");
  assert_true(umem_is_ok(dst->ctx));
  expect_failure(src->ctx, umemIOError);
  umem_free(src->ctx, a);
  umem_free(dst->ctx, b);
}

/* ---- umem_get_upstream ---- */

/* An adaptor has a context below it, of the same memory, unless it keeps its blocks apart; the
 * innermost has none. */
SINGLE(layers_end_at_the_innermost) {
  umemVirtual *upstream;
  uint64_t before = umem_thread_failures();
  bool wrapped = place->row->traits & backendWrapped;
  assert_true((umem_get_upstream(ctx) != NULL) == wrapped);
  for (int i = 0; (upstream = umem_get_upstream(ctx)) != NULL; i++) {
    assert_true(upstream != ctx && i < 16);
    bool apart =
        (ctx->capabilities & (umemSeparate | umemFaultable)) == (umemSeparate | umemFaultable);
    assert_int_equal(umem_is_same_device(place->ctx, upstream), !apart);
    assert_true(umem_null(upstream) == umem_null(ctx));
    ctx = upstream;
  }
  assert_true(umem_thread_failures() == before);
}

SINGLE(the_upstream_of_none_is_refused) {
  assert_null(umem_get_upstream(NULL));
  expect_failure(NULL, umemValueError);
  umem_dtor(ctx);
  assert_null(umem_get_upstream(ctx));
  expect_failure(ctx, umemValueError);
}

/* ---- umem_get_info ---- */

SINGLE(info_tells_what_is_known) {
  umemInfo info = UMEM_INFO_INIT;
  info.alignment = 12345, info.ordinal = 77, info.capacity = 0;
  memset(info.name, 'x', sizeof info.name);
  assert_ok(umem_get_info(ctx, &info));
  assert_true(info.size == sizeof info);
  assert_true(info.alignment == ctx->alignment);
  assert_true(info.ordinal >= -1 && info.ordinal != 77);
  assert_non_null(memchr(info.name, 0, sizeof info.name));
  assert_true(info.capacity != 0 && info.page_size != 0);
  if (info.capacity != UMEM_UNKNOWN && info.available != UMEM_UNKNOWN)
    assert_true(info.available <= info.capacity);
}

/* Layers queue their work where the context that they go over does. */
SINGLE(info_names_the_stream) {
  umemInfo info = UMEM_INFO_INIT, below = UMEM_INFO_INIT;
  info.stream = below.stream = 77;
  assert_ok(umem_get_info(ctx, &info));
  bool ordered = ctx->capabilities & umemOrdered;
  assert_true(ordered ? info.stream != 77 : info.stream == UMEM_UNKNOWN);
  void *upstream = umem_get_upstream(ctx);
  if (!upstream) return;
  assert_ok(umem_get_info(upstream, &below));
  assert_true(info.stream == below.stream);
}

SINGLE(info_writes_no_more_than_its_size) {
  umemInfo info;
  memset(&info, 0xAA, sizeof info);
  info.size = offsetof(umemInfo, alignment);
  assert_ok(umem_get_info(ctx, &info));
  unsigned char const *bytes = (unsigned char const *)&info;
  for (size_t i = offsetof(umemInfo, alignment); i < sizeof info; i++)
    assert_int_equal(bytes[i], 0xAA);
  assert_true(info.capacity != 0xAAAAAAAAAAAAAAAAu);
}

/* A program compiled with a later header, whose struct is longer. */
SINGLE(info_serves_longer_structs) {
  struct {
    umemInfo info;
    unsigned char later[64];
  } longer;
  memset(&longer, 0xAA, sizeof longer);
  longer.info.size = sizeof longer;
  assert_ok(umem_get_info(ctx, &longer.info));
  for (size_t i = 0; i < sizeof longer.later; i++) assert_int_equal(longer.later[i], 0xAA);
  assert_true(longer.info.alignment == ctx->alignment);
}

SINGLE(info_refuses_wrong_arguments) {
  expect_status(ctx, umem_get_info(ctx, NULL), umemValueError);
  umemInfo info = UMEM_INFO_INIT;
  info.size = 3;
  info.ordinal = 77;
  expect_status(ctx, umem_get_info(ctx, &info), umemValueError);
  assert_true(info.ordinal == 77);
}

SUITE(life)
