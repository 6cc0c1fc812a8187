/* pages.c - umem/virtual.h: umemPages, memory that is mapped page by page. Contexts without it have nothing to do. */
#include "contract.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/slot.h"

enum { room = 6 }; /* pages of a range */

/* A range of a context that has pages. */
typedef struct Range {
  umemVirtual *ctx;
  umemPages const *pages; /* NULL: it has none */
  uintptr_t adr;
  size_t page;
} Range;

static bool begin_range(Range *range, umemVirtual *ctx) {
  umemPages const *(*slot)(umemVirtual *) = UMEM_SLOT(ctx, pages);
  *range = (Range){ctx, slot ? slot(ctx) : NULL, 0, 0};
  if (!range->pages) return false;
  range->page = range->pages->page_size;
  range->adr = range->pages->reserve(ctx, room * range->page);
  assert_true(range->adr != umem_null(ctx));
  assert_int_equal(range->adr % range->page, 0);
  return true;
}

static void end_range(Range *range) {
  assert_true(range->pages->release(range->ctx, range->adr, room * range->page));
}

static uintptr_t page(Range const *range, size_t i) { return range->adr + i * range->page; }

static void map(Range *range, size_t first, size_t count) {
  size_t nbytes = count * range->page;
  assert_int_equal(range->pages->map(range->ctx, page(range, first), nbytes), nbytes);
}
static void unmap(Range *range, size_t first, size_t count) {
  size_t nbytes = count * range->page;
  assert_ok(umem_synchronize(range->ctx));
  assert_int_equal(range->pages->unmap(range->ctx, page(range, first), nbytes), nbytes);
}
static void move(Range *range, size_t from, size_t to, size_t count) {
  size_t nbytes = count * range->page;
  assert_ok(umem_synchronize(range->ctx));
  assert_int_equal(range->pages->move(range->ctx, page(range, from), page(range, to), nbytes),
                   nbytes);
}

/* That count pages are one piece of memory: with pieces of bytes at its ends and over its borders. */
static void expect_one_piece(Range *range, size_t first, size_t count, uint64_t seed) {
  enum { piece = 6000 };
  umemVirtual *ctx = range->ctx;
  uintptr_t adr = page(range, first);
  assert_ok(umem_set(ctx, adr, 7, count * range->page));
  for (size_t i = 0; i <= count; i++) {
    uintptr_t begin = adr + i * range->page - (i ? piece / 2 : 0);
    size_t n = i == 0 || i == count ? piece / 2 : piece;
    unsigned char *bytes = new_bytes(n, seed + i);
    put(ctx, begin, bytes, n);
    assert_holds(ctx, begin, bytes, n);
    free(bytes);
  }
  unsigned char one = 0;
  get(ctx, adr + piece, &one, 1);
  assert_int_equal(one, 7);
  get(ctx, adr + count * range->page - piece, &one, 1);
  assert_int_equal(one, 7);
}

static void describes_its_pages(Place const *place) {
  Range range;
  if (!begin_range(&range, place->ctx)) return;
  assert_true(range.page >= 64 << 10 && !(range.page & (range.page - 1)));
  assert_ptr_equal(place->ctx->vptr->pages(place->ctx), range.pages);
  end_range(&range);
}

static void ranges_take_no_memory(Place const *place) {
  Range range;
  if (!begin_range(&range, place->ctx)) return;
  size_t const large = (size_t)1 << 36; /* addresses that cost nothing */
  uintptr_t one = range.pages->reserve(place->ctx, large);
  uintptr_t other = range.pages->reserve(place->ctx, large);
  assert_true(one != umem_null(place->ctx) && other != umem_null(place->ctx));
  assert_true(one + large <= other || other + large <= one);
  assert_true(range.pages->release(place->ctx, one, large));
  assert_true(range.pages->release(place->ctx, other, large));
  end_range(&range);
}

static void too_large_ranges_fail(Place const *place) {
  Range range;
  if (!begin_range(&range, place->ctx)) return;
  assert_true(range.pages->reserve(place->ctx, (size_t) - (intptr_t)range.page) ==
              umem_null(place->ctx));
  expect_some_failure(place->ctx);
  end_range(&range);
}

static void pages_are_one_piece_of_memory(Place const *place) {
  Range range;
  if (!begin_range(&range, place->ctx)) return;
  map(&range, 0, 2);
  expect_one_piece(&range, 0, 2, 1);
  map(&range, 3, 1);
  map(&range, 2, 1);
  expect_one_piece(&range, 0, 4, 2);
  unmap(&range, 0, 4);
  end_range(&range);
}

static void pages_go_and_come_in_any_order(Place const *place) {
  Range range;
  if (!begin_range(&range, place->ctx)) return;
  map(&range, 0, room);
  unmap(&range, 1, 1);
  unmap(&range, 3, 2);
  expect_one_piece(&range, 2, 1, 3);
  expect_one_piece(&range, 5, 1, 4);
  map(&range, 1, 1);
  expect_one_piece(&range, 0, 3, 5);
  map(&range, 3, 2);
  expect_one_piece(&range, 0, room, 6);
  unmap(&range, 0, room);
  end_range(&range);
}

static void pages_move(Place const *place) {
  Range range;
  if (!begin_range(&range, place->ctx)) return;
  map(&range, 0, 1);
  map(&range, 1, 1);
  expect_one_piece(&range, 0, 2, 7);
  move(&range, 0, 3, 2);
  expect_one_piece(&range, 3, 2, 8);
  map(&range, 0, 1);
  move(&range, 4, 1, 1); /* of a piece that has moved before */
  expect_one_piece(&range, 0, 2, 9);
  move(&range, 0, 4, 2); /* pages of different origin */
  expect_one_piece(&range, 3, 3, 10);
  map(&range, 0, 3);
  expect_one_piece(&range, 0, room, 11);
  unmap(&range, 0, room);
  end_range(&range);
}

/* Their neighbours keep what they hold. */
static void others_keep_their_bytes(Place const *place) {
  enum { n = 100000 };
  Range range;
  if (!begin_range(&range, place->ctx)) return;
  unsigned char *bytes = new_bytes(n, 12);
  map(&range, 0, 3);
  put(place->ctx, page(&range, 2) - n, bytes, n);
  move(&range, 0, 3, 1);
  move(&range, 2, 5, 1);
  map(&range, 0, 1);
  assert_holds(place->ctx, page(&range, 2) - n, bytes, n);
  unmap(&range, 0, 1);
  unmap(&range, 3, 1);
  unmap(&range, 5, 1);
  assert_holds(place->ctx, page(&range, 2) - n, bytes, n);
  unmap(&range, 1, 1);
  free(bytes);
  end_range(&range);
}

static void pages_are_copied_like_blocks(Place const *src, Place const *dst) {
  enum { n = 50000 };
  Range range;
  if (!begin_range(&range, src->ctx)) return;
  unsigned char *bytes = new_bytes(n, 13);
  map(&range, 0, 1);
  map(&range, 1, 1);
  uintptr_t adr = page(&range, 1) - n / 2, block = new_block(dst->ctx, n);
  put(src->ctx, adr, bytes, n);
  assert_ok(umem_copy_to(src->ctx, adr, dst->ctx, block, n));
  settle(src->ctx, dst->ctx);
  assert_holds(dst->ctx, block, bytes, n);
  assert_ok(umem_set(src->ctx, adr, 0, n));
  assert_ok(umem_synchronize(src->ctx));
  assert_ok(umem_copy_to(dst->ctx, block, src->ctx, adr, n));
  settle(src->ctx, dst->ctx);
  assert_holds(src->ctx, adr, bytes, n);
  umem_free(dst->ctx, block);
  unmap(&range, 0, 2);
  free(bytes);
  end_range(&range);
}

/* ---- threads ---- */

typedef struct Part {
  Range *range;
  size_t first;
  bool good;
} Part;

static void *work_in_part(void *argument) {
  Part *part = argument;
  Range *range = part->range;
  umemPages const *pages = range->pages;
  size_t n = range->page;
  uintptr_t adr = page(range, part->first);
  part->good = true;
  for (int i = 0; i < 20 && part->good; i++)
    part->good =
        pages->map(range->ctx, adr, n) == n && umem_set(range->ctx, adr, i, 1000) == umemOK &&
        umem_synchronize(range->ctx) == umemOK && pages->move(range->ctx, adr, adr + n, n) == n &&
        umem_set(range->ctx, adr + n, i, 1000) == umemOK &&
        umem_synchronize(range->ctx) == umemOK && pages->unmap(range->ctx, adr + n, n) == n;
  return NULL;
}

static void threads_map_pages_of_one_range(Place const *place) {
  Range range;
  pthread_t threads[3];
  Part parts[3];
  if (!begin_range(&range, place->ctx)) return;
  for (size_t i = 0; i < 3; i++) {
    parts[i] = (Part){&range, 2 * i, false};
    assert_int_equal(pthread_create(&threads[i], NULL, work_in_part, &parts[i]), 0);
  }
  for (size_t i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < 3; i++) assert_true(parts[i].good);
  end_range(&range);
}

ContractTest const pages_tests[] = {
    SINGLE(describes_its_pages),
    SINGLE(ranges_take_no_memory),
    SINGLE(too_large_ranges_fail),
    SINGLE(pages_are_one_piece_of_memory),
    SINGLE(pages_go_and_come_in_any_order),
    SINGLE(pages_move),
    SINGLE(others_keep_their_bytes),
    PAIR_IF(pages_are_copied_like_blocks, umemReadable | umemWritable),
    SINGLE_IF(threads_map_pages_of_one_range, umemConcurrent),
    {0},
};
