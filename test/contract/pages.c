/* pages.c - umem/virtual.h: umemPages, memory that is mapped page by page. */
#include "contract.h"

#include "core/context.h"
#include "workers.h"

enum { room = 6 }; /* pages of a range */

/* A range of a context that has pages. */
typedef struct Range {
  umemVirtual *ctx;
  umemPages const *ranges, *pages; /* the methods for ranges, and for pages of one size */
  uintptr_t adr;
  size_t page;
} Range;

enum { orders = 7 }; /* a page takes the place of up to 64 others */

/* Those that take the place of 1 << order others. */
static umemPages const *larger_pages(umemVirtual *ctx, umemPages const *pages, unsigned order) {
  umemPages const *(*large_slot)(umemVirtual *) = UMEM_SLOT(ctx, large_pages);
  umemPages const *(*sized_slot)(umemVirtual *, size_t) = UMEM_SLOT(ctx, sized_pages);
  umemPages const *large = large_slot ? large_slot(ctx) : NULL;
  size_t const size = pages->page_size << order;
  if (!order || !large || size >= large->page_size)
    return order ? large && size == large->page_size ? large : NULL : pages;
  return sized_slot ? sized_slot(ctx, size) : NULL;
}

/* Of pages of this order. False where there are none. */
static bool begin_range(Range *range, umemVirtual *ctx, unsigned order) {
  umemPages const *(*slot)(umemVirtual *) = UMEM_SLOT(ctx, pages);
  *range = (Range){.ctx = ctx, .ranges = slot ? slot(ctx) : NULL};
  range->pages = range->ranges ? larger_pages(ctx, range->ranges, order) : NULL;
  if (!range->pages) return false;
  range->page = range->pages->page_size;
  range->adr = range->ranges->reserve(ctx, room * range->page);
  assert_true(range->adr != umem_null(ctx));
  assert_int_equal(range->adr % range->ranges->page_size, 0);
  return true;
}

static void end_range(Range *range) {
  assert_true(range->ranges->release(range->ctx, range->adr, room * range->page));
}

/* A test of a range of pages of each size. */
static void with_each_size(Place const *place, void (*test)(Range *)) {
  Range range;
  for (unsigned order = 0; order < orders; order++)
    if (begin_range(&range, place->ctx, order)) {
      test(&range);
      end_range(&range);
    }
}
#define EACH_SIZE(name)                                                                            \
  static void name##_in(Range *range);                                                             \
  SINGLE_WITH(name, backendHasPages) { with_each_size(place, name##_in); }                         \
  static void name##_in(Range *range)

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

/* That count pages are one piece of memory: with pieces of bytes at its ends and over its
 * borders. */
static void expect_one_piece(Range *range, size_t first, size_t count, uint64_t seed) {
  enum { piece = 6000 };
  umemVirtual *ctx = range->ctx;
  uintptr_t adr = page(range, first);
  for (size_t i = 0; i <= count; i++) { /* all of large pages would take long */
    uintptr_t begin = adr + i * range->page - (i ? 2 * piece : 0);
    assert_ok(umem_set(ctx, begin, 7, i == 0 || i == count ? 2 * piece : 4 * piece));
  }
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

SINGLE_WITH(describes_its_pages, backendHasPages) {
  Range range;
  if (!begin_range(&range, ctx, 0)) return;
  assert_true(range.page >= 64 << 10 && !(range.page & (range.page - 1)));
  assert_ptr_equal(ctx->vptr->pages(ctx), range.pages);
  end_range(&range);
}

/* A large page takes the place of 2 to 64 others. */
SINGLE_WITH(describes_its_large_pages, backendHasPages) {
  umemPages const *(*large_slot)(umemVirtual *) = UMEM_SLOT(ctx, large_pages);
  umemPages const *pages = ctx->vptr->pages(ctx), *large = large_slot ? large_slot(ctx) : NULL;
  if (!large) return;
  size_t const page = pages->page_size, group = large->page_size / page;
  assert_true(large->page_size % page == 0 && group >= 2 && group <= 64 && !(group & (group - 1)));
  assert_ptr_equal(large_slot(ctx), large);
  for (unsigned order = 1; order < orders; order++) {
    umemPages const *others = larger_pages(ctx, pages, order);
    assert_true(!others || others->page_size == page << order);
    assert_ptr_equal(larger_pages(ctx, pages, order), others);
  }
}

/* Small pages beside a large one, which moves between them. */
EACH_SIZE(large_pages_stand_between_others) {
  umemVirtual *ctx = range->ctx;
  umemPages const *large = range->pages, *small = range->ranges;
  size_t const n = small->page_size;
  uintptr_t const below = page(range, 1) - n, moved = page(range, 3), above = page(range, 2);
  assert_int_equal(small->map(ctx, below, n), n);
  map(range, 1, 1);
  assert_int_equal(small->map(ctx, above, n), n);
  assert_ok(umem_set(ctx, below, 5, n));
  assert_ok(umem_set(ctx, above, 6, n));
  assert_ok(umem_set(ctx, page(range, 1) - 100, 7, range->page + 200)); /* all three */
  move(range, 1, 3, 1);
  assert_ok(umem_set(ctx, moved, 8, 1000));
  assert_ok(umem_synchronize(ctx));
  unsigned char bytes[2] = {0};
  get(ctx, page(range, 1) - 101, bytes, 2);
  assert_true(bytes[0] == 5 && bytes[1] == 7);
  get(ctx, above + 99, bytes, 2);
  assert_true(bytes[0] == 7 && bytes[1] == 6);
  assert_int_equal(small->unmap(ctx, below, n) + small->unmap(ctx, above, n), 2 * n);
  assert_int_equal(large->unmap(ctx, moved, range->page), range->page);
}

SINGLE_WITH(ranges_take_no_memory, backendHasPages) {
  Range range;
  if (!begin_range(&range, ctx, 0)) return;
  size_t const large = (size_t)4 << 30; /* addresses that cost nothing */
  uintptr_t one = range.pages->reserve(ctx, large);
  uintptr_t other = range.pages->reserve(ctx, large);
  assert_true(one != umem_null(ctx) && other != umem_null(ctx));
  assert_true(one + large <= other || other + large <= one);
  assert_true(range.pages->release(ctx, one, large));
  assert_true(range.pages->release(ctx, other, large));
  end_range(&range);
}

SINGLE_WITH(too_large_ranges_fail, backendHasPages) {
  Range range;
  if (!begin_range(&range, ctx, 0)) return;
  assert_true(range.pages->reserve(ctx, (size_t) - (intptr_t)range.page) == umem_null(ctx));
  expect_some_failure(ctx);
  end_range(&range);
}

EACH_SIZE(pages_are_one_piece_of_memory) {
  map(range, 0, 2);
  expect_one_piece(range, 0, 2, 1);
  map(range, 3, 1);
  map(range, 2, 1);
  expect_one_piece(range, 0, 4, 2);
  unmap(range, 0, 4);
}

EACH_SIZE(pages_go_and_come_in_any_order) {
  map(range, 0, room);
  unmap(range, 1, 1);
  unmap(range, 3, 2);
  expect_one_piece(range, 2, 1, 3);
  expect_one_piece(range, 5, 1, 4);
  map(range, 1, 1);
  expect_one_piece(range, 0, 3, 5);
  map(range, 3, 2);
  expect_one_piece(range, 0, room, 6);
  unmap(range, 0, room);
}

EACH_SIZE(pages_move) {
  map(range, 0, 1);
  map(range, 1, 1);
  expect_one_piece(range, 0, 2, 7);
  move(range, 0, 3, 2);
  expect_one_piece(range, 3, 2, 8);
  map(range, 0, 1);
  move(range, 4, 1, 1); /* of a piece that has moved before */
  expect_one_piece(range, 0, 2, 9);
  move(range, 0, 4, 2); /* pages of different origin */
  expect_one_piece(range, 3, 3, 10);
  map(range, 0, 3);
  expect_one_piece(range, 0, room, 11);
  unmap(range, 0, room);
}

/* From one range to another. */
EACH_SIZE(pages_move_far) {
  size_t const n = range->page;
  uintptr_t far = range->ranges->reserve(range->ctx, 2 * n);
  assert_true(far != umem_null(range->ctx));
  map(range, 1, 2);
  assert_int_equal(range->pages->move(range->ctx, page(range, 1), far, 2 * n), 2 * n);
  Range there = *range;
  there.adr = far;
  expect_one_piece(&there, 0, 2, 14);
  unmap(&there, 0, 2);
  assert_true(range->ranges->release(range->ctx, far, 2 * n));
}

/* Their neighbours keep what they hold. */
EACH_SIZE(others_keep_their_bytes) {
  enum { n = 100000 };
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(n, 12);
  map(range, 0, 3);
  put(range->ctx, page(range, 2) - n, bytes, n);
  move(range, 0, 3, 1);
  move(range, 2, 5, 1);
  map(range, 0, 1);
  assert_holds(range->ctx, page(range, 2) - n, bytes, n);
  unmap(range, 0, 1);
  unmap(range, 3, 1);
  unmap(range, 5, 1);
  assert_holds(range->ctx, page(range, 2) - n, bytes, n);
  unmap(range, 1, 1);
}

static void expect_zeros(Range const *range, size_t first, size_t count) {
  umemVirtual *ctx = range->ctx;
  size_t const nbytes = count * range->page;
  SCOPED_BYTES(unsigned char, bytes, nbytes);
  get(ctx, page(range, first), bytes, nbytes);
  assert_true(bytes[0] == 0 && !memcmp(bytes, bytes + 1, nbytes - 1));
}

/* Also pages that have been mapped before; the others keep their bytes. */
SINGLE_WITH(pages_that_are_promised_as_zeros_are_zero, backendHasPages) {
  Range range;
  umemVirtual *layer = UMEM_LAYER_WITH(ctx, zero_pages);
  if (!layer || !begin_range(&range, ctx, false)) return;
  map(&range, 0, 4);
  expect_zeros(&range, 0, 4);
  assert_ok(umem_set(ctx, page(&range, 0), 7, 4 * range.page));
  unmap(&range, 3, 1);
  map(&range, 3, 1);
  expect_zeros(&range, 3, 1);
  assert_true(layer->vptr->zero_pages(layer, page(&range, 1), 2 * range.page));
  expect_zeros(&range, 1, 3);
  unsigned char last = 0;
  get(ctx, page(&range, 1) - 1, &last, 1);
  assert_int_equal(last, 7);
  assert_ok(umem_set(ctx, page(&range, 1), 8, 2 * range.page));
  unmap(&range, 0, 4);
  end_range(&range);
}

PAIR_WITH(pages_are_copied_like_blocks, backendHasPages) {
  enum { n = 50000 };
  Range range;
  if (!begin_range(&range, src->ctx, 0)) return;
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(n, 13);
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
  return part->good ? NULL : part;
}

EACH_SIZE(threads_map_pages_of_one_range) {
  Part parts[] = {{range, 0, false}, {range, 2, false}, {range, 4, false}};
  run_at_once(3, work_in_part, parts, sizeof *parts);
}

/* Adaptors, for example, would not see the pages of their upstream. */
SINGLE(only_those_contexts_have_pages) {
  umemPages const *(*slot)(umemVirtual *) = UMEM_SLOT(ctx, pages);
  umemPages const *(*large_slot)(umemVirtual *) = UMEM_SLOT(ctx, large_pages);
  if (place->row->traits & backendHasPages) return;
  assert_true(!slot || !slot(ctx));
  assert_true(!large_slot || !large_slot(ctx));
}

SUITE(pages)
