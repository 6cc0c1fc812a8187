/* strided.c - umem/copy.h: umem_copy_strided, against a loop over the items. */
#include "contract.h"

/* A layout with room for its arrays. A side without strides is in C order. */
typedef struct Section {
  size_t item_size;
  int rank;
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t src[UMEM_MAX_RANK], dst[UMEM_MAX_RANK];
  bool src_dense, dst_dense;
} Section;

static umemLayout layout_of(Section const *section) {
  return (umemLayout){.size = sizeof(umemLayout),
                      .item_size = section->item_size,
                      .rank = section->rank,
                      .extents = section->rank ? section->extents : NULL,
                      .src_strides = section->src_dense ? NULL : section->src,
                      .dst_strides = section->dst_dense ? NULL : section->dst};
}

static void make_dense(Section const *section, ptrdiff_t *strides) {
  ptrdiff_t stride = (ptrdiff_t)section->item_size;
  for (int k = section->rank - 1; k >= 0; k--) {
    strides[k] = stride;
    stride *= (ptrdiff_t)section->extents[k];
  }
}

/* ---- the naive loop ---- */

/* The first and one past the last byte that strides reach from the first item on. */
static void reach_of(Section const *section, ptrdiff_t const *strides, ptrdiff_t *low,
                     ptrdiff_t *high) {
  *low = 0;
  *high = (ptrdiff_t)section->item_size;
  for (int k = 0; k < section->rank; k++) {
    ptrdiff_t reach = section->extents[k] ? strides[k] * ((ptrdiff_t)section->extents[k] - 1) : 0;
    *(reach < 0 ? low : high) += reach;
  }
}

static void copy_items(Section const *section, unsigned char const *src, unsigned char *dst,
                       int axis) {
  if (axis == section->rank) {
    memcpy(dst, src, section->item_size);
    return;
  }
  for (size_t i = 0; i < section->extents[axis]; i++)
    copy_items(section, src + (ptrdiff_t)i * section->src[axis],
               dst + (ptrdiff_t)i * section->dst[axis], axis + 1);
}

/* ---- one section ---- */

enum { margin = 70 }; /* bytes of each block before and after those of the section */

/* A block that serves for section after section, and the same bytes in the test. */
typedef struct Side {
  umemVirtual *ctx;
  uintptr_t adr;
  unsigned char *bytes;
  size_t room;        /* bytes of the block */
  size_t used, first; /* bytes for this section, and where among them its first item is */
} Side;

typedef struct Sides {
  Side src, dst;
} Sides;

static void close_side(Side *side) {
  if (side->room) umem_free(side->ctx, side->adr);
  free(side->bytes);
}

/* A test of sections between two places: SECTIONS(name) { ... } has sides, src and dst. */
#define SECTIONS(name)                                                                             \
  static void name##_of(Sides *sides, Place const *src, Place const *dst);                         \
  PAIR(name) {                                                                                     \
    Sides sides = {{.ctx = src->ctx}, {.ctx = dst->ctx}};                                          \
    name##_of(&sides, src, dst);                                                                   \
    close_side(&sides.src);                                                                        \
    close_side(&sides.dst);                                                                        \
  }                                                                                                \
  static void name##_of(Sides *sides UNUSED, Place const *src UNUSED, Place const *dst UNUSED)

/* Makes room for a section and fills it with the bytes of seed. */
static void fill_side(Side *side, Section const *section, ptrdiff_t const *strides, uint64_t seed) {
  ptrdiff_t low, high;
  reach_of(section, strides, &low, &high);
  side->used = (size_t)(high - low) + 2 * margin;
  side->first = (size_t)(margin - low);
  if (side->used > side->room) {
    close_side(side);
    side->room = side->used + side->used / 4;
    side->adr = new_block(side->ctx, side->room);
    side->bytes = malloc(side->room);
    assert_non_null(side->bytes);
  }
  fill_bytes(side->bytes, side->used, seed);
  put(side->ctx, side->adr, side->bytes, side->used);
}

static void check_section(Sides *sides, Section const *wanted) {
  Section section = *wanted;
  Side *src = &sides->src, *dst = &sides->dst;
  if (section.src_dense) make_dense(&section, section.src);
  if (section.dst_dense) make_dense(&section, section.dst);
  fill_side(src, &section, section.src, 1);
  fill_side(dst, &section, section.dst, 2);
  umemLayout layout = layout_of(&section);
  assert_ok(
      umem_copy_strided(src->ctx, src->adr + src->first, dst->ctx, dst->adr + dst->first, &layout));
  settle(src->ctx, dst->ctx);
  copy_items(&section, src->bytes + src->first, dst->bytes + dst->first, 0);
  assert_holds(src->ctx, src->adr, src->bytes, src->used);
  assert_holds(dst->ctx, dst->adr, dst->bytes, dst->used);
}

/* ---- named sections ---- */

SECTIONS(copies_plain_runs) {
  for (size_t size = 1; size < 5000; size = 3 * size + 1)
    check_section(sides, &(Section){.item_size = size});
}

/* A 3D array of 6 x 7 x 8 items on both sides: its rows, columns and faces. */
SECTIONS(copies_rows_columns_and_faces) {
  size_t const items[] = {1, 2, 4, 8, 16, 3, 12, 7};
  for (size_t i = 0; i < sizeof items / sizeof *items; i += test_is_small() ? 3 : 1) {
    ptrdiff_t z = (ptrdiff_t)items[i], y = 8 * z, x = 7 * y;
    Section const sections[] = {
        {items[i], 1, {8}, {z}, {z}, 0, 0},
        {items[i], 1, {7}, {y}, {y}, 0, 0},
        {items[i], 1, {6}, {x}, {x}, 0, 0},
        {items[i], 2, {7, 8}, {y, z}, {y, z}, 0, 0},
        {items[i], 2, {6, 8}, {x, z}, {x, z}, 0, 0},
        {items[i], 2, {6, 7}, {x, y}, {x, y}, 0, 0},
        {items[i], 3, {4, 5, 6}, {x, y, z}, {x, y, z}, 0, 0}, /* the inside, without ghost cells */
        {items[i], 2, {6, 7}, {x, y}, {0}, 0, 1},             /* a face, packed */
        {items[i], 2, {6, 7}, {0}, {x, y}, 1, 0},             /* and unpacked */
        {items[i], 3, {6, 7, 8}, {0}, {0}, 1, 1},
    };
    for (size_t k = 0; k < sizeof sections / sizeof *sections; k++)
      check_section(sides, &sections[k]);
  }
}

SECTIONS(transposes) {
  size_t const items[] = {1, 2, 4, 8, 16, 5};
  for (size_t i = 0; i < sizeof items / sizeof *items; i += test_is_small() ? 3 : 1) {
    ptrdiff_t item = (ptrdiff_t)items[i];
    check_section(sides, &(Section){items[i], 2, {13, 9}, {item, 13 * item}, {0}, 0, 1});
    check_section(sides,
                  &(Section){items[i], 3, {4, 5, 6}, {0}, {item, 4 * item, 20 * item}, 1, 0});
  }
}

/* Each combination of signs on each side, and a third of all pairs of these: arrays walked
 * backwards. A short case has each sign on each side. */
SECTIONS(strides_have_any_sign) {
  for (int signs = 0; signs < 64; signs += test_is_small() ? 7 : 3) {
    Section section = {4, 3, {3, 4, 5}, {100, 24, 4}, {120, 30, 6}, 0, 0};
    for (int k = 0; k < 3; k++) {
      if (signs >> k & 1) section.src[k] = -section.src[k];
      if (signs >> (3 + k) & 1) section.dst[k] = -section.dst[k];
    }
    check_section(sides, &section);
  }
}

/* The source may be read more than once. */
SECTIONS(one_item_may_go_to_many) {
  check_section(sides, &(Section){8, 1, {20}, {0}, {0}, 0, 1});
  check_section(sides, &(Section){4, 2, {5, 6}, {0, 4}, {40, 4}, 0, 0});
  check_section(sides, &(Section){4, 2, {5, 6}, {4, 0}, {0}, 0, 1});
  check_section(sides, &(Section){4, 2, {9, 6}, {4, 4}, {0}, 0, 1}); /* windows */
}

SECTIONS(dimensions_of_one_do_not_count) {
  Section section = {2, 5, {1, 3, 1, 4, 1}, {-9999, 40, 12345, 6, 77}, {1 << 20, 50, 3, -8, -1},
                     0, 0};
  check_section(sides, &section);
  check_section(sides, &(Section){3, 2, {1, 1}, {5, 6}, {7, 8}, 0, 0});
}

SECTIONS(takes_the_largest_rank) {
  Section section = {.item_size = 3, .rank = UMEM_MAX_RANK, .dst_dense = true};
  for (int k = 0; k < UMEM_MAX_RANK; k++) {
    section.extents[k] = k % 4 == 0 ? 2 : 1; /* eight dimensions of two */
    section.src[k] = 5 << k / 4;
  }
  check_section(sides, &section);
}

/* More bytes than any internal buffer, in short and in long runs, with small and with large gaps.
 * The lengths of its names choose two for each pair. */
SECTIONS(copies_large_sections) {
  size_t n = test_large_size() / 8192;
  size_t half = test_large_size() * 3 / 8;
  Section const sections[] = {
      {1000, 2, {n, 3}, {3500, 1100}, {3300, 1100}, 0, 0},
      {8, 3, {n, 8, 32}, {8, (ptrdiff_t)(8 * n), (ptrdiff_t)(64 * n)}, {0}, 0, 1},
      {20000, 1, {n / 16 + 2}, {30001}, {25000}, 0, 0},
      {1, 1, {half}, {2}, {-1}, 0, 0},
      {half + 3, 1, {2}, {(ptrdiff_t)half + 3}, {(ptrdiff_t)half + 9}, 0, 0},
      {16, 2, {5, 7}, {100000, 10000}, {70000, 10000}, 0, 0},
  };
  size_t chosen = (strlen(src->row->name) + strlen(dst->row->name)) % 3;
  for (size_t k = chosen; k < sizeof sections / sizeof *sections; k += 3)
    check_section(sides, &sections[k]);
}

/* ---- random sections ---- */

static uint64_t random_state;

static size_t random_below(size_t n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
  return (size_t)(random_state >> 33) % n;
}

/* Strides of any sign and order under which no two items overlap. */
static void random_strides(Section const *section, ptrdiff_t *strides) {
  int order[UMEM_MAX_RANK];
  for (int k = 0; k < section->rank; k++) {
    int other = (int)random_below((size_t)k + 1);
    order[k] = order[other];
    order[other] = k;
  }
  ptrdiff_t stride = (ptrdiff_t)section->item_size;
  for (int k = 0; k < section->rank; k++) {
    if (random_below(3) == 0) stride += (ptrdiff_t)random_below(20);
    strides[order[k]] = random_below(3) == 0 ? -stride : stride;
    stride *= (ptrdiff_t)section->extents[order[k]];
  }
}

static Section random_section(void) {
  static size_t const items[] = {1, 2, 4, 8, 16, 3, 24, 100};
  Section section = {.item_size = items[random_below(8)], .rank = (int)random_below(6)};
  for (int k = 0; k < section.rank; k++) section.extents[k] = 1 + random_below(5);
  random_strides(&section, section.src);
  random_strides(&section, section.dst);
  section.src_dense = random_below(4) == 0;
  section.dst_dense = random_below(4) == 0;
  return section;
}

SECTIONS(copies_random_sections) {
  random_state = 1;
  for (int i = 0; i < (test_is_small() ? 15 : 30); i++) {
    Section section = random_section();
    check_section(sides, &section);
  }
}

/* ---- sides that overlap ---- */

/* What a copy within bytes does that reads all items before it writes the first. */
static void move_items(Section const *section, unsigned char *bytes, size_t from, size_t to) {
  Section gather = *section, scatter = *section;
  size_t count = 1;
  for (int k = 0; k < section->rank; k++) count *= section->extents[k];
  SCOPED_BYTES(unsigned char, between, count * section->item_size);
  make_dense(section, gather.dst);
  make_dense(section, scatter.src);
  copy_items(&gather, bytes + from, between, 0);
  copy_items(&scatter, between, bytes + to, 0);
}

/* A block of a context, and the same bytes in the test. */
typedef struct Block {
  umemVirtual *ctx;
  uintptr_t adr;
  unsigned char *bytes;
  size_t room;
} Block;

static Block open_block(Place const *place, size_t room) {
  return (Block){place->ctx, new_filled_block(place->ctx, room, 5), new_bytes(room, 5), room};
}

static void close_block(Block *block) {
  umem_free(block->ctx, block->adr);
  free(block->bytes);
}

/* Where in the block the first item of a side can be. */
static size_t random_first(Block const *block, Section const *section, ptrdiff_t const *strides) {
  ptrdiff_t low, high;
  reach_of(section, strides, &low, &high);
  return (size_t)-low + random_below(block->room - (size_t)(high - low) + 1);
}

static void check_move(Block *block, Section const *section, size_t from, size_t to) {
  umemLayout layout = layout_of(section);
  if (section->rank)
    assert_ok(
        umem_copy_strided(block->ctx, block->adr + from, block->ctx, block->adr + to, &layout));
  else
    assert_ok(umem_copy_to(block->ctx, block->adr + from, block->ctx, block->adr + to,
                           section->item_size));
  settle(block->ctx, block->ctx);
  move_items(section, block->bytes, from, to);
  assert_holds(block->ctx, block->adr, block->bytes, block->room);
}

/* A matrix and its transpose, in one place. */
static Section square_section(void) {
  Section section = {.item_size = 1 + random_below(9), .rank = 2};
  ptrdiff_t item = (ptrdiff_t)section.item_size, row;
  section.extents[0] = section.extents[1] = 2 + random_below(12);
  row = (ptrdiff_t)section.extents[0] * item;
  section.src[0] = section.dst[1] = row;
  section.src[1] = section.dst[0] = item;
  return section;
}

SINGLE(overlapping_sides_are_read_first) {
  Block block = open_block(place, 3000);
  random_state = 7;
  for (int i = 0; i < (test_is_small() ? 40 : 200);) {
    Section section = i % 5 == 4 ? square_section() : random_section();
    ptrdiff_t low, high;
    section.src_dense = section.dst_dense = false;
    if (i % 5 == 2) section.rank = 0, section.item_size = 1 + random_below(2000);
    if (i % 5 == 1 || i % 5 == 3)
      for (int k = 0; k < section.rank; k++)
        section.src[k] = i % 5 == 1 ? section.dst[k] : -section.dst[k];
    if (i % 10 == 5 && section.rank) section.src[section.rank - 1] = 0; /* one item to many */
    reach_of(&section, section.src, &low, &high);
    if ((size_t)(high - low) > block.room) continue;
    reach_of(&section, section.dst, &low, &high);
    if ((size_t)(high - low) > block.room) continue;
    size_t from = random_first(&block, &section, section.src);
    check_move(&block, &section, from, random_first(&block, &section, section.dst));
    i++;
  }
  close_block(&block);
}

/* More bytes than the buffers of umem, up and down. */
SINGLE(large_overlaps_are_moved_in_pieces) {
  size_t const n = 5 * test_large_size() / 4, rows = n / 1700;
  Block block = open_block(place, n + (256 << 10));
  Section run = {.item_size = n};
  Section part = {8, 2, {rows, 200}, {1700, 8}, {1700, 8}, 0, 0};
  size_t const shifts[] = {1, 1700, 100000};
  for (size_t k = 0; k < 3; k++) {
    check_move(&block, &run, 0, shifts[k]);
    check_move(&block, &run, shifts[k], 0);
    check_move(&block, &part, 0, shifts[k]);
    check_move(&block, &part, shifts[k], 0);
  }
  close_block(&block);
}

/* ---- order ---- */

/* Work that was queued before still reads and writes the host's bytes. */
SINGLE(comes_behind_earlier_work) {
  enum { count = 1000, item = 4 };
  SCOPED(free_bytes)
  unsigned char *wanted = new_bytes(count * item, 1), *between = new_bytes(count * item, 2);
  uintptr_t from = own_filled_block(ctx, count * item, 1), to = own_block(ctx, count * item);
  uintptr_t gapped = own_filled_block(ctx, count * 2 * item, 3), host = (uintptr_t)between;
  Section scatter = {item, 1, {count}, {0}, {2 * item}, 1, 0};
  Section gather = {item, 1, {count}, {2 * item}, {0}, 0, 1};
  umemLayout out = layout_of(&scatter), back = layout_of(&gather);

  assert_ok(umem_copy_to(ctx, from, &test_host, host, count * item));
  assert_ok(umem_copy_strided(&test_host, host, ctx, gapped, &out));
  assert_ok(umem_copy_from(ctx, to, &test_host, host, count * item));
  assert_ok(umem_set(ctx, from, 0, count * item));
  assert_ok(umem_copy_strided(ctx, gapped, &test_host, host, &back));
  assert_ok(umem_synchronize(ctx));
  assert_memory_equal(between, wanted, count * item);
  assert_holds(ctx, to, wanted, count * item);
}

/* ---- nothing to do, and what cannot be done ---- */

PAIR(empty_sections_are_no_ops) {
  BackendRecords src_before = records_of(src), dst_before = records_of(dst);
  Section const sections[] = {
      {8, 1, {0}, {8}, {8}, 0, 0},
      {8, 3, {5, 0, SIZE_MAX}, {PTRDIFF_MAX, 8, 8}, {PTRDIFF_MIN, 8, 8}, 0, 0},
      {8, 2, {SIZE_MAX, 0}, {0}, {0}, 1, 1},
      {0, 0, {0}, {0}, {0}, 0, 0},
      {0, 1, {5}, {8}, {8}, 0, 0},
  };
  uintptr_t const wild[] = {0, 12345, UINTPTR_MAX};
  for (size_t k = 0; k < sizeof sections / sizeof *sections; k++)
    for (size_t i = 0; i < 3; i++) {
      umemLayout layout = layout_of(&sections[k]);
      assert_ok(umem_copy_strided(src->ctx, wild[i], dst->ctx, wild[2 - i], &layout));
    }
  assert_int_equal(records_of(src).moves, src_before.moves);
  assert_int_equal(records_of(dst).moves, dst_before.moves);
}

/* One of the two has the status. */
static void expect_value_error(umemVirtual *src, umemVirtual *dst) {
  expect_failure(umem_is_ok(src) ? dst : src, umemValueError);
  assert_true(umem_is_ok(src) && umem_is_ok(dst));
}

PAIR(senseless_layouts_are_value_errors) {
  uintptr_t from = own_filled_block(src->ctx, 100, 1), to = own_filled_block(dst->ctx, 100, 2);
  Section good = {4, 2, {2, 2}, {8, 4}, {8, 4}, 0, 0};
  umemLayout const right = layout_of(&good);
  umemLayout wrong[5];
  for (int i = 0; i < 5; i++) wrong[i] = right;
  wrong[0].rank = -1;
  wrong[1].rank = UMEM_MAX_RANK + 1;
  wrong[2].extents = NULL;
  wrong[3].rank = 1 << 20;
  wrong[4].size = 0;
  assert_int_equal(umem_copy_strided(src->ctx, from, dst->ctx, to, NULL), umemValueError);
  expect_value_error(src->ctx, dst->ctx);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(umem_copy_strided(src->ctx, from, dst->ctx, to, &wrong[i]), umemValueError);
    expect_value_error(src->ctx, dst->ctx);
  }
  assert_filled(dst->ctx, to, 100, 2);
}

PAIR(sections_beyond_all_addresses_are_value_errors) {
  uintptr_t from = own_filled_block(src->ctx, 100, 1), to = own_filled_block(dst->ctx, 100, 2);
  ptrdiff_t const half = PTRDIFF_MAX;
  Section const sections[] = {
      {1, 1, {3}, {half}, {1}, 0, 0},
      {1, 1, {3}, {1}, {half}, 0, 0},
      {1, 1, {3}, {PTRDIFF_MIN}, {1}, 0, 0},
      {1, 1, {3}, {1}, {PTRDIFF_MIN}, 0, 0},
      {8, 2, {SIZE_MAX, SIZE_MAX}, {0}, {0}, 1, 1},
      {SIZE_MAX, 1, {2}, {0}, {0}, 1, 1},
      {8, 1, {SIZE_MAX}, {1}, {1}, 0, 0},
      {1, 3, {2, 2, 2}, {half / 2, half / 2, half / 2}, {1, 2, 4}, 0, 0},
  };
  for (size_t k = 0; k < sizeof sections / sizeof *sections; k++) {
    umemLayout layout = layout_of(&sections[k]);
    assert_int_equal(umem_copy_strided(src->ctx, from, dst->ctx, to, &layout), umemValueError);
    expect_value_error(src->ctx, dst->ctx);
  }
  assert_filled(dst->ctx, to, 100, 2);
}

PAIR(null_has_no_items) {
  uintptr_t from = own_filled_block(src->ctx, 100, 1), to = own_filled_block(dst->ctx, 100, 2);
  Section section = {4, 2, {2, 2}, {16, 4}, {-16, -4}, 0, 0};
  umemLayout layout = layout_of(&section);
  uintptr_t last = to + 20;
  expect_status(src->ctx, umem_copy_strided(src->ctx, umem_null(src->ctx), dst->ctx, last, &layout),
                umemValueError);
  expect_status(dst->ctx, umem_copy_strided(src->ctx, from, dst->ctx, umem_null(dst->ctx), &layout),
                umemValueError);
}

/* Parts of the section may be written before that is found; other blocks keep their bytes. */
PAIR(items_outside_of_a_block_are_index_errors) {
  Section section = {4, 1, {3}, {4}, {(ptrdiff_t)1 << 40}, 0, 0};
  umemLayout layout = layout_of(&section);
  uintptr_t from = own_filled_block(src->ctx, 100, 1), to = own_block(dst->ctx, 100);
  uintptr_t other = own_filled_block(dst->ctx, 100, 3);
  if (dst->row->traits & backendKeepsRecords) {
    assert_int_equal(umem_copy_strided(src->ctx, from, dst->ctx, to, &layout), umemIndexError);
    expect_failure(dst->ctx, umemIndexError);
  }
  settle(src->ctx, dst->ctx);
  assert_filled(dst->ctx, other, 100, 3);
}

SUITE(strided)
