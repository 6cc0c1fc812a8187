/* find.c - umem/find.h: whose address is it, and labels, on every context. */
#include "contract.h"

#include "core/context.h"

/* Whether a layer keeps records of its blocks. */
static bool keeps_records(umemVirtual *ctx) {
  for (; ctx; ctx = umem_below(ctx))
    if (UMEM_SLOT(ctx, find)) return true;
  return false;
}

/* Whether all layers are contexts of the library. */
static bool is_of_library(umemVirtual *ctx) {
  for (; ctx; ctx = umem_below(ctx))
    if (ctx->type >= umemUserDevice || !strcmp(umem_get_device_name(ctx), "User")) return false;
  return true;
}

/* Whether every byte of its blocks must be found. */
static bool finds_all(Place const *place) {
  return place->row->traits & backendChecksFrees && is_of_library(place->ctx);
}

static void expect_block(umemFound const *found, uintptr_t adr, size_t nbytes) {
  assert_non_null(found->ctx);
  assert_string_equal(found->name, umem_get_device_name(found->ctx));
  assert_true(found->adr <= adr);
  assert_true(adr - found->adr + nbytes <= found->nbytes);
}

SINGLE(each_byte_of_a_block_is_found) {
  size_t const sizes[] = {1, 100, 5000, 100000};
  bool keeps = keeps_records(ctx);
  assert_true(keeps || !finds_all(place));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t nbytes = sizes[i], at[] = {nbytes / 2, nbytes - 1};
    uintptr_t adr = new_block(ctx, nbytes);
    umemFound found = UMEM_FOUND_INIT;
    assert_int_equal(umem_find_in(ctx, adr, &found), keeps);
    if (keeps) {
      expect_block(&found, adr, nbytes);
      assert_true(found.adr == adr);
      assert_string_equal(found.label, "");
      assert_string_equal(found.block_label, "");
    }
    for (int j = 0; finds_all(place) && j < 2; j++) {
      umemFound inside = UMEM_FOUND_INIT;
      assert_true(umem_find_in(ctx, adr + at[j], &inside));
      assert_memory_equal(&inside, &found, sizeof found);
    }
    umem_free(ctx, adr);
    assert_false(umem_find_in(ctx, adr, NULL));
    assert_false(umem_find_in(ctx, adr + nbytes - 1, NULL));
  }
}

SINGLE(the_byte_behind_a_block_is_not_in_it) {
  umemFound found = UMEM_FOUND_INIT, behind = UMEM_FOUND_INIT;
  uintptr_t adr = own_block(ctx, 100), other = own_block(ctx, 100);
  if (umem_find_in(ctx, adr, &found) && umem_find_in(ctx, found.adr + found.nbytes, &behind))
    assert_true(behind.adr == other);
}

SINGLE(an_aligned_block_is_found) {
  umemFound found = UMEM_FOUND_INIT;
  for (size_t alignment = 64; alignment <= 8192; alignment *= 128) {
    uintptr_t adr = umem_aligned_alloc(ctx, alignment, 777);
    assert_block(ctx, adr);
    if (finds_all(place)) {
      assert_true(umem_find_in(ctx, adr, &found));
      expect_block(&found, adr, 777);
    }
    umem_aligned_free(ctx, adr);
    assert_false(umem_find_in(ctx, adr, NULL));
  }
}

/* Other contexts of programs may have the same memory, and in it a block at offset 0. */
SINGLE(no_block_is_at_null_nor_at_odd_addresses) {
  uintptr_t const adrs[] = {umem_null(ctx), UINTPTR_MAX, UINTPTR_MAX - 1, UINTPTR_MAX / 2, 0, 1};
  bool may_have_zero = ctx->capabilities & umemOffsets && !is_of_library(ctx);
  size_t const count = sizeof adrs / sizeof *adrs - (may_have_zero ? 2 : 0);
  for (size_t i = 0; i < count; i++) assert_false(umem_find_in(ctx, adrs[i], NULL));
}

SINGLE(pointers_are_found_in_the_whole_process) {
  umemFound here = UMEM_FOUND_INIT, all = UMEM_FOUND_INIT;
  uintptr_t adr = own_block(ctx, 3000);
  bool offsets = ctx->capabilities & umemOffsets;
  if (offsets)
    assert_true(!umem_find(adr, &all) || all.ctx != ctx);
  else if (finds_all(place)) {
    assert_true(umem_find_in(ctx, adr + 10, &here));
    assert_true(umem_find(adr + 10, &all));
    assert_true(all.adr == here.adr);
    assert_int_equal(all.nbytes, here.nbytes);
  }
}

SINGLE(a_context_has_a_label) {
  char label[UMEM_LABEL_SIZE + 1];
  assert_string_equal(umem_get_label(ctx), "");
  strcpy(label, "temperature");
  assert_ok(umem_set_label(ctx, label));
  strcpy(label, "overwritten");
  assert_string_equal(umem_get_label(ctx), "temperature");
  memset(label, 'x', UMEM_LABEL_SIZE);
  label[UMEM_LABEL_SIZE] = 0;
  expect_status(ctx, umem_set_label(ctx, label), umemValueError);
  assert_string_equal(umem_get_label(ctx), "temperature");
  label[UMEM_LABEL_SIZE - 1] = 0;
  assert_ok(umem_set_label(ctx, label));
  assert_string_equal(umem_get_label(ctx), label);
  uintptr_t adr = new_block(ctx, 10);
  umemFound found = UMEM_FOUND_INIT;
  if (umem_find_in(ctx, adr, &found) && found.ctx == ctx) assert_string_equal(found.label, label);
  umem_free(ctx, adr);
  uintptr_t aligned = umem_aligned_alloc(ctx, 4096, 10); /* what is kept beside a label stays */
  assert_ok(umem_set_label(ctx, NULL));
  assert_string_equal(umem_get_label(ctx), "");
  umem_aligned_free(ctx, aligned);
}

/* On a context that keeps none: refused. Otherwise the label comes and goes with the block. */
SINGLE(a_block_has_a_label_where_a_layer_keeps_it) {
  uintptr_t adr = new_block(ctx, 100), null = umem_null(ctx);
  if (umem_set_block_label(ctx, adr, "pressure") != umemOK) {
    assert_true(expect_some_failure(ctx) == umemNotSupportedError);
    assert_string_equal(umem_get_block_label(ctx, adr), "");
    umem_free(ctx, adr);
    return;
  }
  assert_string_equal(umem_get_block_label(ctx, adr + 99), "pressure");
  expect_status(ctx, umem_set_block_label(ctx, adr + 1, "inside"), umemValueError);
  uintptr_t moved = umem_realloc(ctx, adr, 100, 9000);
  assert_true(moved != null);
  assert_string_equal(umem_get_block_label(ctx, moved + 8999), "pressure");
  assert_ok(umem_set_block_label(ctx, moved, NULL));
  assert_string_equal(umem_get_block_label(ctx, moved), "");
  assert_ok(umem_set_block_label(ctx, moved, "again"));
  umem_free(ctx, moved);
  assert_string_equal(umem_get_block_label(ctx, moved), "");
  assert_true(umem_set_block_label(ctx, moved, "late") != umemOK);
  expect_some_failure(ctx);
}

ONCE(wrong_arguments_are_refused) {
  umemFound small = UMEM_FOUND_INIT;
  umemVirtual zeros;
  memset(&zeros, 0, sizeof zeros);
  small.size = 8;
  assert_false(umem_find(4096, &small));
  expect_failure(NULL, umemValueError);
  assert_false(umem_find_in(NULL, 4096, NULL));
  expect_failure(NULL, umemValueError);
  assert_false(umem_find_in(&zeros, 4096, NULL));
  expect_failure(NULL, umemValueError);
  expect_status(NULL, umem_set_label(NULL, "x"), umemValueError);
  assert_string_equal(umem_get_label(NULL), "");
  assert_string_equal(umem_get_label(&zeros), "");
  expect_status(NULL, umem_set_block_label(NULL, 4096, "x"), umemValueError);
  assert_string_equal(umem_get_block_label(NULL, 4096), "");
  expect_failure(NULL, umemValueError);
}

/* A program that was compiled with a shorter struct gets what fits. */
SINGLE(a_shorter_struct_is_filled_as_far_as_it_goes) {
  umemFound found = UMEM_FOUND_INIT, full = UMEM_FOUND_INIT;
  uintptr_t adr = own_block(ctx, 10);
  found.size = offsetof(umemFound, name);
  found.name = "untouched";
  if (umem_find_in(ctx, adr, &found)) {
    assert_true(umem_find_in(ctx, adr, &full));
    assert_true(found.adr == full.adr && found.ctx == full.ctx);
    assert_string_equal(found.name, "untouched");
  }
}

SUITE(find)
