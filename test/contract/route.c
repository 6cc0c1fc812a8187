/* route.c - umem/copy.h: every copy names its route, and the bytes of its legs. */
#include "contract.h"

static bool is_same_place(umemRoutePlace const *one, umemRoutePlace const *other) {
  return one->ordinal == other->ordinal && !strcmp(one->kind, other->kind);
}

/* From the first place to the last there is a way, and all bytes have passed each place; more where
 * reading may be cheaper with the gaps. */
static void check_route(umemRoute const *route, uint64_t nbytes, bool more) {
  assert_true(route->leg_count > 0);
  assert_int_equal(route->left_out, 0);
  assert_true(route->bytes == nbytes);
  assert_true(route->seconds > 0);
  uint64_t passed = 0;
  for (uint32_t i = 0; i < route->leg_count; i++) {
    umemRouteLeg const *leg = &route->legs[i];
    assert_true(*leg->src.kind && *leg->dst.kind && *leg->way);
    assert_true(leg->workers > 0 && leg->calls > 0 && leg->seconds >= 0);
    bool goes_beside =
        i && is_same_place(&leg->src, &leg[-1].src) && is_same_place(&leg->dst, &leg[-1].dst);
    if (i && !goes_beside) {
      assert_true(more ? passed >= nbytes : passed == nbytes);
      assert_true(is_same_place(&leg->src, &leg[-1].dst));
      passed = 0;
    }
    passed += leg->bytes;
  }
  assert_true(more ? passed >= nbytes : passed == nbytes);
  assert_true(umemRoute_text(route, NULL, 0) > 0);
}

static void copy(umemVirtual *src, uintptr_t from, umemVirtual *dst, uintptr_t to, size_t nbytes,
                 umemRoute *route) {
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  *route = (umemRoute)UMEM_ROUTE_INIT;
  options.route = route;
  assert_ok(umem_copy_to_with(src, from, dst, to, nbytes, &options));
  settle(src, dst);
}

static void copy_and_check(Place const *src, Place const *dst, size_t nbytes) {
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1);
  uintptr_t from = new_block(src->ctx, nbytes), to = new_block(dst->ctx, nbytes);
  umemRoute route;
  put(src->ctx, from, bytes, nbytes);
  copy(src->ctx, from, dst->ctx, to, nbytes, &route);
  check_route(&route, nbytes, false);
  assert_holds(dst->ctx, to, bytes, nbytes);
  umem_free(src->ctx, from);
  umem_free(dst->ctx, to);
}

PAIR(every_copy_names_its_route) { copy_and_check(src, dst, 1000); }

PAIR(long_copies_too) { copy_and_check(src, dst, test_large_size() + 1); }

/* Equal legs move the bytes for a context and for the one below it. */
SINGLE(a_layer_adds_no_leg) {
  umemVirtual *upstream = umem_get_upstream(ctx);
  size_t const nbytes = 1000;
  if (!upstream) return;
  umemRoute above, below;
  char one[300], other[300];
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1);
  uintptr_t block = own_block(ctx, nbytes);
  put(ctx, block, bytes, nbytes);
  copy(ctx, block, &test_host.super, (uintptr_t)bytes, nbytes, &above);
  copy(upstream, block, &test_host.super, (uintptr_t)bytes, nbytes, &below);
  umemRoute_text(&above, one, sizeof one);
  umemRoute_text(&below, other, sizeof other);
  assert_string_equal(one, other);
  assert_true(above.legs[0].bytes == below.legs[0].bytes);
}

/* The transpose of a table, which has other runs on either side. */
PAIR(strided_copies_too) {
  enum { tall = 24, wide = 40, item = 4 };
  size_t const nbytes = (size_t)tall * wide * item, extents[] = {wide, tall};
  ptrdiff_t const columns[] = {item, wide * item};
  umemLayout layout = {.size = sizeof layout, .item_size = item, .rank = 2, .extents = extents};
  layout.src_strides = columns;
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1), *turned = new_bytes(nbytes, 2);
  uintptr_t from = own_block(src->ctx, nbytes), to = own_block(dst->ctx, nbytes);
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = {.size = sizeof options, .route = &route};
  put(src->ctx, from, bytes, nbytes);
  assert_ok(umem_copy_strided_with(src->ctx, from, dst->ctx, to, &layout, &options));
  settle(src->ctx, dst->ctx);
  check_route(&route, nbytes, true);
  for (size_t i = 0; i < wide; i++)
    for (size_t k = 0; k < tall; k++)
      memcpy(turned + (i * tall + k) * item, bytes + (k * wide + i) * item, item);
  assert_holds(dst->ctx, to, turned, nbytes);
}

PAIR(the_ledger_counts_each_copy_once) {
  size_t const nbytes = 1000;
  umemLedgerRecord record = UMEM_LEDGER_RECORD_INIT;
  size_t count = 1;
  uintptr_t from = own_block(src->ctx, nbytes), to = own_block(dst->ctx, nbytes);
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1);
  put(src->ctx, from, bytes, nbytes);
  umemRoute route;
  char text[300];
  copy(src->ctx, from, dst->ctx, to, nbytes, &route);
  umemRoute_text(&route, text, sizeof text);
  umem_ledger_clear();
  assert_ok(umem_ledger_start());
  umemStatusType status = umem_copy_to(src->ctx, from, dst->ctx, to, nbytes);
  umem_ledger_stop();
  assert_ok(status);
  settle(src->ctx, dst->ctx);
  assert_ok(umem_ledger_read(&record, &count));
  assert_int_equal(count, 1);
  assert_true(record.calls == 1 && record.failed == 0 && record.bytes == nbytes);
  assert_string_equal(record.route, text);
  assert_true(is_same_place(&record.src, &route.legs[0].src));
  assert_true(is_same_place(&record.dst, &route.legs[route.leg_count - 1].dst));
  umem_ledger_clear();
}

SUITE(route)
