/* tiles.c - core/ram.h: whatever order the tiles take, the items are those of a plain loop. */
#include "core/ram.h"
#include "base/system.h"
#include "core/layout.h"
#include "cases.h"
#include "random.h"
#include "temporary.h"

static uint64_t random_state = 1;

static size_t random_below(size_t n) { return below(&random_state, n); }

/* A layout with its arrays, and bytes for both sides. */
typedef struct Case {
  size_t item, extents[5];
  int rank;
  ptrdiff_t src[5], dst[5];
} Case;

/* Strides of an array whose dimensions follow each other in this order, the outermost first, with
 * gaps. */
static size_t lay_out(Case const *c, int const *order, size_t gap, ptrdiff_t *strides) {
  size_t stride = c->item;
  for (int i = c->rank - 1; i >= 0; i--) {
    stride += i == c->rank - 1 ? gap : 0;
    strides[order[i]] = (ptrdiff_t)stride;
    stride *= c->extents[order[i]];
  }
  return stride;
}

static void copy_plainly(Case const *c, char *dst, char const *src, int k) {
  if (k == c->rank) {
    memcpy(dst, src, c->item);
    return;
  }
  for (size_t i = 0; i < c->extents[k]; i++)
    copy_plainly(c, dst + (ptrdiff_t)i * c->dst[k], src + (ptrdiff_t)i * c->src[k], k + 1);
}

/* Copies a case in both ways; the bytes between the items must stay. shift moves the source from
 * its boundary. */
/* CMocka compares byte by byte. */
static void expect_same(char const *found, char const *wanted, size_t size) {
  if (memcmp(found, wanted, size) != 0) assert_memory_equal(found, wanted, size);
}

static void check(Case *c, int const *src_order, size_t src_gap, size_t dst_gap, size_t shift) {
  int in_order[5] = {0, 1, 2, 3, 4};
  size_t src_size = lay_out(c, src_order, src_gap, c->src);
  size_t dst_size = lay_out(c, in_order, dst_gap, c->dst);
  SCOPED(free_bytes)
  char *src = malloc(src_size + shift), *found = malloc(dst_size), *wanted = malloc(dst_size);
  assert_true(src && found && wanted);
  for (size_t i = 0; i < src_size; i++) src[shift + i] = (char)(i * 2654435761u >> 13);
  memset(found, 0x5A, dst_size);
  memset(wanted, 0x5A, dst_size);
  umemLayout const given = {sizeof given, c->item, c->rank, c->extents, c->src, c->dst};
  umemNormalLayout n;
  uintptr_t from = (uintptr_t)src + shift, to = (uintptr_t)found;
  umem_normalise(&n, &given, &from, &to);
  umem_copy_tiles((char *)to, (char const *)from, &n.layout);
  copy_plainly(c, wanted, src + shift, 0);
  expect_same(found, wanted, dst_size);
  memset(found, 0x5A, dst_size);
  if (n.layout.rank)
    assert_true(umem_copy_pointers((char *)to, (char const *)from, &n.layout, NULL));
  else
    memcpy((void *)to, (void const *)from, n.layout.item_size);
  expect_same(found, wanted, dst_size);
}

TEST_CASE(transposes_of_all_sizes) {
  size_t const items[] = {1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 64, 100, 300};
  size_t const edges[] = {2, 63, 64, 65, 100, 513};
  int const across[] = {1, 0};
  for (size_t i = 0; i < sizeof items / sizeof *items; i++)
    for (size_t k = 0; k < sizeof edges / sizeof *edges; k++) {
      Case c = {.item = items[i], .extents = {edges[k], edges[(k + i) % 6]}, .rank = 2};
      check(&c, across, 0, 0, 0);
      check(&c, across, 5, 0, i);
      check(&c, across, 0, 7, 16);
    }
}

/* More than a block of tiles, and enough for several threads. */
TEST_CASE(large_permutations) {
  int const orders[][4] = {{3, 2, 1, 0}, {2, 0, 3, 1}, {0, 3, 2, 1}, {1, 0, 3, 2}};
  for (int i = 0; i < 4; i++) {
    Case c = {.item = 8, .extents = {30, 31, 32, 29}, .rank = 4};
    check(&c, orders[i], 0, 0, 0);
    Case thin = {.item = 4, .extents = {3, 700, 2, 501}, .rank = 4};
    check(&thin, orders[i], 0, 4, 4);
  }
  int const across[] = {1, 0};
  Case square = {.item = 8, .extents = {1024, 1024}, .rank = 2};
  check(&square, across, 0, 0, 0);
}

/* Tiles of few rows, whose dimensions change places, and a last tile of one row. */
TEST_CASE(short_rows_in_tiles) {
  int const orders[][3] = {{1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
  size_t const items[] = {16, 8, 24, 40};
  for (size_t i = 0; i < sizeof items / sizeof *items; i++)
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
      Case c = {.item = items[i], .extents = {6, 123, 69}, .rank = 3};
      check(&c, orders[k], 0, 0, 0);
      Case turned = {.item = items[i], .extents = {123, 69, 6}, .rank = 3};
      check(&turned, orders[k], 0, 0, 0);
      Case odd = {.item = items[i], .extents = {129, 3, 65}, .rank = 3};
      check(&odd, orders[k], 0, 0, 0);
    }
}

TEST_CASE(random_permutations) {
  static size_t const items[] = {1, 2, 4, 8, 16, 3, 24, 40};
  for (int round = 0; round < 60; round++) {
    Case c = {.item = items[random_below(8)], .rank = 2 + (int)random_below(4)};
    int order[5];
    for (int k = 0; k < c.rank; k++) {
      int other = (int)random_below((size_t)k + 1);
      order[k] = order[other];
      order[other] = k;
      c.extents[k] = 1 + random_below(c.rank == 2 ? 400 : c.rank == 3 ? 60 : 14);
    }
    check(&c, order, random_below(3) ? 0 : random_below(40), random_below(2) ? 0 : random_below(9),
          random_below(64));
  }
}

/* Runs that begin just behind their source, modulo a page, are copied in parts by some
 * processors. */
TEST_CASE(runs_at_all_offsets) {
  umem_all_are_slow = !umem_all_are_slow; /* the test runs twice */
  enum { room = 20000 };
  static _Alignas(4096) char src[room], dst[room + 4096];
  for (size_t i = 0; i < room; i++) src[i] = (char)(i * 2654435761u >> 13);
  size_t const sizes[] = {1, 1000, 1024, 1025, 3000, 9999};
  for (size_t ahead = 0; ahead < 70; ahead++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      umemLayout const layout = {.size = sizeof layout, .item_size = sizes[i]};
      memset(dst, 0x5A, sizeof dst);
      umem_copy_tiles(dst + ahead, src, &layout);
      assert_memory_equal(dst + ahead, src, sizes[i]);
      assert_true((!ahead || dst[ahead - 1] == 0x5A) && dst[ahead + sizes[i]] == 0x5A);
    }
}
TEST_CASE_AGAIN(runs_at_all_offsets, otherwise, NULL, NULL, NULL)

/* Of a file that ends in the middle of its mapping. By one thread, and by several. */
TEST_CASE(a_page_that_is_gone_ends_the_copy) {
  size_t const sizes[] = {1 << 20, 32 << 20};
  for (int i = 0; i < 2; i++) {
    size_t const size = sizes[i], extents[] = {size / 16};
    ptrdiff_t const gaps[] = {16}, none[] = {8};
    umemLayout const in = {sizeof in, 8, 1, extents, none, gaps},
                     out = {sizeof out, 8, 1, extents, gaps, none};
    char path[256];
    int fd = temporary_file(path, sizeof path);
    char *packed = calloc(size / 2, 1);
    assert_true(fd >= 0 && packed && unlink(path) == 0 && ftruncate(fd, (off_t)size) == 0);
    char *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(mapped != MAP_FAILED);
    umemFaultableRange const there = {(uintptr_t)mapped, size}, nowhere = {0, 0};
    umemFaultableRange const of_dst[] = {there, nowhere}, of_src[] = {nowhere, there};
    assert_true(umem_copy_pointers(mapped, packed, &in, of_dst));
    assert_true(umem_copy_pointers(packed, mapped, &out, of_src));
    assert_int_equal(ftruncate(fd, (off_t)(size / 8 * 7)), 0);
    assert_false(umem_copy_pointers(mapped, packed, &in, of_dst));
    assert_false(umem_copy_pointers(packed, mapped, &out, of_src));
    munmap(mapped, size);
    close(fd);
    free(packed);
  }
}
