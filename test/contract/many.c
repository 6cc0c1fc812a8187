/* many.c - umem/copy.h: umem_copy_many; umem/transfer.h: umem_start_many. */
#include "contract.h"

/* Copies a list by the call that waits, or as a transfer, which needs the list no longer than the
 * start. */
static umemStatusType copy_list(bool starts, umemCopyItem const *items, size_t count,
                                umemCopyManyOptions const *options) {
  if (!starts) return umem_copy_many(items, count, options);
  umemTransfer *transfer = (umemTransfer *)items;
  umemCopyItem *copy = calloc(count + 1, sizeof *copy);
  assert_non_null(copy);
  for (size_t i = 0; items && i < count; i++) copy[i] = items[i];
  umemStatusType status = umem_start_many(items ? copy : NULL, count, options, &transfer);
  assert_int_equal(status == umemOK, transfer != NULL);
  free(copy);
  if (transfer) {
    uint64_t done, total;
    status = umemTransfer_wait(transfer);
    assert_ok(umemTransfer_progress(transfer, &done, &total));
    assert_true(done <= total && (status != umemOK || done == total));
    assert_int_equal(umemTransfer_release(transfer), umemOK);
  }
  return status;
}

/* Pieces of random lengths between two blocks, in random order, with gaps and neighbours, and what
 * the target holds before and after. */
typedef struct Pieces {
  umemVirtual *src, *dst;
  size_t nbytes, count;
  uintptr_t from, to;
  unsigned char *source, *expected;
  umemCopyItem *items;
  uint64_t state;
} Pieces;

static size_t random_below(Pieces *it, size_t most) {
  it->state = it->state * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(it->state >> 33) % most;
}

static void swap(Pieces *it, size_t i, size_t k) {
  umemCopyItem item = it->items[i];
  it->items[i] = it->items[k];
  it->items[k] = item;
}

/* Sets the pieces of the target, some times in their order, to those of the source that a random
 * order gives them. */
static void cut(Pieces *it, size_t longest) {
  size_t at = 0;
  for (it->count = 0; at < it->nbytes; it->count++) {
    size_t length = random_below(it, longest + 1);
    if (length > it->nbytes - at) length = it->nbytes - at;
    it->items[it->count] = (umemCopyItem){it->src, it->from + at, it->dst, it->to + at, length};
    at += length + (random_below(it, 3) ? 0 : random_below(it, 50));
  }
  bool rising = it->state >> 40 & 1;
  for (size_t i = it->count; i > 1 && !rising; i--) swap(it, i - 1, random_below(it, i));
  for (size_t i = 0; i + 1 < it->count; i += 2) { /* some targets change their sources */
    umemCopyItem *one = &it->items[i], *other = &it->items[i + 1];
    if (one->nbytes != other->nbytes && random_below(it, 2)) continue;
    if (one->nbytes > other->nbytes) one->nbytes = other->nbytes;
    other->nbytes = one->nbytes;
    uintptr_t adr = one->src_adr;
    one->src_adr = other->src_adr;
    other->src_adr = adr;
  }
  for (size_t i = 0; i < it->count; i++)
    memcpy(it->expected + (it->items[i].dst_adr - it->to),
           it->source + (it->items[i].src_adr - it->from), it->items[i].nbytes);
}

static Pieces new_pieces(umemVirtual *src, umemVirtual *dst, size_t nbytes, size_t longest,
                         uint64_t seed) {
  Pieces it = {.src = src, .dst = dst, .nbytes = nbytes, .state = seed};
  it.source = new_bytes(nbytes, seed);
  it.expected = new_bytes(nbytes, seed + 1);
  it.from = new_block(src, nbytes);
  it.to = new_block(dst, nbytes);
  it.items = calloc(nbytes + 1, sizeof *it.items);
  assert_non_null(it.items);
  put(src, it.from, it.source, nbytes);
  put(dst, it.to, it.expected, nbytes);
  cut(&it, longest);
  return it;
}

static void end_pieces(Pieces *it) {
  assert_holds(it->dst, it->to, it->expected, it->nbytes);
  assert_holds(it->src, it->from, it->source, it->nbytes);
  umem_free(it->src, it->from);
  umem_free(it->dst, it->to);
  free(it->items);
  free(it->source);
  free(it->expected);
}

static bool has_bit(uint8_t const *done, size_t i) { return done[i / 8] >> i % 8 & 1; }

/* The lists of the seeds from first on, before end. */
static void copy_pieces(Place const *src, Place const *dst, size_t nbytes, size_t longest,
                        uint64_t first, uint64_t end) {
  for (uint64_t seed = first; seed < end; seed++) {
    Pieces it = new_pieces(src->ctx, dst->ctx, nbytes, longest, seed);
    uint8_t *done = calloc(it.count / 8 + 1, 1);
    size_t failed = 77;
    umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
    assert_non_null(done);
    options.done = done;
    options.failed = &failed;
    assert_ok(copy_list(seed % 2 == 0, it.items, it.count, &options));
    assert_int_equal(failed, it.count);
    for (size_t i = 0; i < it.count; i++) assert_true(has_bit(done, i));
    settle(src->ctx, dst->ctx);
    free(done);
    end_pieces(&it);
  }
}

PAIR(copies_short_pieces) { copy_pieces(src, dst, 3000, 40, 1, 4); }

PAIR(copies_pieces_of_pages) { copy_pieces(src, dst, test_large_size() / 2, 10000, 1, 4); }

/* Those of two parts of one array, plane by plane: every second row of the first one, and the
 * columns 1, 4, ... of the other. The rest of the target is as before. */
PAIR(copies_rows_of_parts) {
  enum { planes = 4, rows = 10, width = 60, size = 2 * planes * rows * width };
  for (int starts = 0; starts < 2; starts++) {
    unsigned char *source = new_bytes(size, 1), *expected = new_bytes(size, 2);
    uintptr_t from = new_filled_block(src->ctx, size, 1), to = new_filled_block(dst->ctx, size, 2);
    umemCopyItem items[planes * rows / 2 + planes * rows * width / 3];
    size_t count = 0;
    for (size_t i = 0; i < planes * rows; i += 2)
      items[count++] = (umemCopyItem){src->ctx, from + i * width, dst->ctx, to + i * width, 20};
    for (size_t i = 1 + size / 2; i < size; i += 3)
      items[count++] = (umemCopyItem){src->ctx, from + i, dst->ctx, to + i, 1};
    for (size_t i = 0; i < count; i++)
      memcpy(expected + (items[i].dst_adr - to), source + (items[i].src_adr - from),
             items[i].nbytes);
    assert_ok(copy_list(starts, items, count, NULL));
    settle(src->ctx, dst->ctx);
    assert_holds(dst->ctx, to, expected, size);
    umem_free(src->ctx, from);
    umem_free(dst->ctx, to);
    free(source);
    free(expected);
  }
}

/* They take long: each pair has one of the three lists. */
PAIR(copies_long_pieces) {
  uint64_t seed = 1 + (strlen(src->row->name) + strlen(dst->row->name)) % 3;
  copy_pieces(src, dst, test_large_size() * 3, test_large_size(), seed, seed + 1);
}

/* Both ways at once, and within each of the two. */
PAIR(contexts_differ_from_item_to_item) {
  enum { size = 500 };
  umemVirtual *places[] = {src->ctx, dst->ctx};
  for (uint64_t way = 0; way < 8; way++) {
    umemVirtual *one = places[way & 1], *other = places[way >> 1 & 1];
    uintptr_t a = new_filled_block(one, size, 1), b = new_filled_block(other, size, 2);
    uintptr_t c = new_block(one, size), d = new_block(other, size), e = new_block(other, size);
    umemCopyItem const items[] = {
        {one, a, other, d, size}, {other, b, one, c, size}, {other, b, other, e, size}};
    assert_ok(copy_list(way >> 2, items, 3, NULL));
    settle(one, other);
    assert_filled(other, d, size, 1);
    assert_filled(one, c, size, 2);
    assert_filled(other, e, size, 2);
    umem_free(one, a), umem_free(one, c);
    umem_free(other, b), umem_free(other, d), umem_free(other, e);
  }
}

/* Blocks may follow one another at once on both sides, and belong to different items: no call may
 * write, or copy on a GPU, bytes of two of them. */
PAIR(neighbours_in_several_blocks) {
  enum { count = 4, most = 4096 };
  static size_t const sizes[] = {16, 64, 512,
                                 most}; /* blocks without a gap, on one place or another */
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    umemCopyItem items[count];
    for (size_t i = 0; i < count; i++)
      items[i] =
          (umemCopyItem){src->ctx, new_filled_block(src->ctx, sizes[k], i), dst->ctx, 0, sizes[k]};
    for (size_t i = 0; i < count; i++) items[i].dst_adr = new_block(dst->ctx, sizes[k]);
    for (int starts = 0; starts < 2; starts++) {
      for (size_t i = 0; i < count; i++)
        assert_ok(umem_set(dst->ctx, items[i].dst_adr, 0, sizes[k]));
      assert_ok(copy_list(starts, items, count, NULL));
      settle(src->ctx, dst->ctx);
      for (size_t i = 0; i < count; i++) {
        assert_filled(dst->ctx, items[i].dst_adr, sizes[k], i);
      }
    }
    for (size_t i = 0; i < count; i++) {
      umem_free(src->ctx, items[i].src_adr);
      umem_free(dst->ctx, items[i].dst_adr);
    }
  }
}

/* The test waits for nothing between these, but for transfers that are in no queue. */
static void keep_order(Place const *src, Place const *dst, bool starts) {
  enum { nbytes = 3000, half = nbytes / 2 };
  SCOPED(free_bytes) unsigned char *first = new_bytes(nbytes, 1), *second = new_bytes(nbytes, 2);
  uintptr_t a = new_block(src->ctx, nbytes), b = new_block(dst->ctx, nbytes);
  uintptr_t c = new_block(src->ctx, nbytes);
  umemCopyItem const there[] = {{src->ctx, a + half, dst->ctx, b + half, nbytes - half},
                                {src->ctx, a, dst->ctx, b, half - 10},
                                {src->ctx, a + half - 10, dst->ctx, b + half - 10, 10}};
  umemCopyItem const back[] = {{dst->ctx, b, src->ctx, c + half, half},
                               {dst->ctx, b + half, src->ctx, c, half}};
  umemTransfer *transfers[2] = {NULL, NULL};
  bool queued = (src->ctx->capabilities | dst->ctx->capabilities) & umemOrdered;
  assert_ok(umem_copy_to(&test_host, (uintptr_t)first, src->ctx, a, nbytes));
  if (starts)
    assert_ok(umem_start_many(there, 3, NULL, &transfers[0]));
  else
    assert_ok(umem_copy_many(there, 3, NULL));
  if (starts && !queued) assert_ok(umemTransfer_wait(transfers[0]));
  assert_ok(umem_wait(src->ctx, dst->ctx)); /* a may still be read */
  assert_ok(umem_copy_to(&test_host, (uintptr_t)second, src->ctx, a, nbytes));
  if (starts)
    assert_ok(umem_start_many(back, 2, NULL, &transfers[1]));
  else
    assert_ok(umem_copy_many(back, 2, NULL));
  if (starts && !queued) assert_ok(umemTransfer_wait(transfers[1]));
  assert_ok(umem_wait(dst->ctx, src->ctx)); /* b may still be read, or written */
  assert_ok(umem_set(dst->ctx, b, 0, nbytes));
  umem_free(dst->ctx, b);
  for (size_t k = 0; k < 2; k++) assert_ok(umemTransfer_release(transfers[k]));
  settle(src->ctx, dst->ctx);
  assert_holds(src->ctx, a, second, nbytes);
  assert_holds(src->ctx, c, first + half, half);
  assert_holds(src->ctx, c + half, first, half);
  FREE(src->ctx, a, c);
}

PAIR(a_list_keeps_the_order_of_queues) {
  keep_order(src, dst, false);
  keep_order(src, dst, true);
}

ONCE(no_items_are_a_no_op) {
  for (int starts = 0; starts < 2; starts++) {
    size_t failed = 77;
    umemCopyManyOptions options = {.size = sizeof options, .failed = &failed};
    assert_ok(copy_list(starts, NULL, 0, &options));
    assert_int_equal(failed, 0);
  }
}

PAIR(items_of_no_bytes_are_done) {
  umemCopyItem items[9];
  for (size_t i = 0; i < 9; i++)
    items[i] = (umemCopyItem){src->ctx, umem_null(src->ctx), dst->ctx, 0, 0};
  for (int starts = 0; starts < 2; starts++) {
    uint8_t done[2] = {0x55, 0x55};
    umemCopyManyOptions options = {.size = sizeof options, .done = done};
    BackendRecords before = records_of(dst);
    assert_ok(copy_list(starts, items, 9, &options));
    assert_int_equal(done[0], 0xff);
    assert_int_equal(done[1], 1);
    assert_int_equal(records_of(dst).moves, before.moves);
  }
}

/* Also where the memory is that of a rank of MPI that has died. */
SINGLE(lists_go_there_and_back) {
  SCOPED(end_pieces) Pieces there = new_pieces(&test_host.super, ctx, 3000, 100, 8);
  SCOPED(end_pieces) Pieces back = new_pieces(ctx, &test_host.super, 3000, 100, 9);
  for (int starts = 0; starts < 2; starts++) {
    assert_ok(copy_list(starts, there.items, there.count, NULL));
    assert_ok(copy_list(starts, back.items, back.count, NULL));
  }
  settle(ctx, ctx);
}

/* ---- refused lists: nothing has changed ---- */

enum { refused_size = 100 };

/* The list, whose other items are good, is refused for item 1. */
static void expect_refused(umemCopyItem const *items, size_t count, umemVirtual *at_fault,
                           umemStatusType type) {
  for (int starts = 0; starts < 2; starts++) {
    uint8_t done[1] = {0xff};
    size_t failed = 77;
    umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
    assert_int_equal(copy_list(starts, items, count, &options), type);
    assert_non_null(strstr(umem_thread_message(),
                           starts ? "umem_start_many: item 1: " : "umem_copy_many: item 1: "));
    expect_failure(at_fault, type);
    assert_int_equal(failed, 1);
    assert_int_equal(done[0], 0);
  }
}

PAIR(bad_addresses_refuse_the_list) {
  uintptr_t from = own_filled_block(src->ctx, refused_size, 1);
  uintptr_t to = own_filled_block(dst->ctx, refused_size, 2);
  umemCopyItem items[] = {{src->ctx, from, dst->ctx, to, 10},
                          {src->ctx, from + 10, dst->ctx, to + 10, 10},
                          {src->ctx, from + 20, dst->ctx, to + 20, 10}};
  umemCopyItem const good = items[1];
  items[1].src_adr = umem_null(src->ctx);
  expect_refused(items, 3, src->ctx, umemValueError);
  items[1] = good;
  items[1].dst_adr = umem_null(dst->ctx);
  expect_refused(items, 3, dst->ctx, umemValueError);
  items[1] = good;
  items[1].src_adr = UINTPTR_MAX - 5;
  expect_refused(items, 3, src->ctx, umemValueError);
  items[1] = good;
  items[1].nbytes = SIZE_MAX - 5;
  expect_refused(items, 3, src->ctx, umemValueError);
  items[1] = good;
  items[1].dst = NULL;
  expect_refused(items, 3, NULL, umemValueError);
  assert_filled(dst->ctx, to, refused_size, 2);
}

PAIR(targets_that_overlap_refuse_the_list) {
  uintptr_t from = own_filled_block(src->ctx, refused_size, 1);
  uintptr_t to = own_filled_block(dst->ctx, refused_size, 2);
  umemCopyItem items[] = {{src->ctx, from, dst->ctx, to + 20, 10},
                          {src->ctx, from + 50, dst->ctx, to + 29, 10}};
  expect_refused(items, 2, dst->ctx, umemValueError);
  items[1].dst_adr = to + 11;
  expect_refused(items, 2, dst->ctx, umemValueError);
  items[1].dst_adr = to;
  items[1].nbytes = 50;
  expect_refused(items, 2, dst->ctx, umemValueError);
  assert_filled(dst->ctx, to, refused_size, 2);
  items[1].nbytes = 20; /* up to the first byte of the other */
  assert_ok(umem_copy_many(items, 2, NULL));
  settle(src->ctx, dst->ctx);
}

SINGLE(sources_that_others_overwrite_refuse_the_list) {
  uintptr_t adr = own_filled_block(ctx, refused_size, 1);
  umemCopyItem items[] = {{ctx, adr, ctx, adr + 50, 10}, {ctx, adr + 59, ctx, adr + 80, 10}};
  expect_refused(items, 2, ctx, umemValueError);
  items[1].src_adr = adr + 41;
  expect_refused(items, 2, ctx, umemValueError);
  items[1] = (umemCopyItem){ctx, adr + 40, ctx, adr, 30};
  items[0].src_adr = adr + 90;
  expect_refused(items, 2, ctx, umemValueError);
  assert_filled(ctx, adr, refused_size, 1);
}

SINGLE(an_item_may_overlap_itself) {
  unsigned char bytes[refused_size];
  uintptr_t adr = own_filled_block(ctx, refused_size, 1);
  umemCopyItem const items[] = {{ctx, adr + 50, ctx, adr + 53, 20},
                                {ctx, adr + 10, ctx, adr + 3, 20},
                                {ctx, adr + 80, ctx, adr + 80, 20}};
  assert_ok(umem_copy_many(items, 3, NULL));
  assert_ok(umem_synchronize(ctx));
  fill_bytes(bytes, refused_size, 1);
  memmove(bytes + 53, bytes + 50, 20);
  memmove(bytes + 3, bytes + 10, 20);
  assert_holds(ctx, adr, bytes, refused_size);
}

/* What fails only when it is copied: the bitmap is true of all others. */
static void fail_at_item(Place const *src, Place const *dst, bool starts) {
  enum { count = 20, size = 10 };
  if (!(src->row->traits & backendKeepsRecords)) return;
  uintptr_t from = new_filled_block(src->ctx, count * size, 1);
  uintptr_t to = new_filled_block(dst->ctx, count * size, 2);
  umemCopyItem items[count];
  uint8_t done[3] = {0};
  size_t failed = 77;
  unsigned char bytes[count * size], expected[count * size];
  umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
  for (size_t i = 0; i < count; i++)
    items[i] =
        (umemCopyItem){src->ctx, from + i * size, dst->ctx, to + (count - 1 - i) * size, size};
  items[7].src_adr = from + ((uintptr_t)1 << 40);
  assert_int_equal(copy_list(starts, items, count, &options), umemIndexError);
  assert_non_null(strstr(umem_thread_message(),
                         starts ? "umem_start_many: item 7: " : "umem_copy_many: item 7: "));
  expect_failure(src->ctx, umemIndexError);
  settle(src->ctx, dst->ctx);
  assert_int_equal(failed, 7);
  fill_bytes(bytes, sizeof bytes, 1);
  fill_bytes(expected, sizeof expected, 2);
  for (size_t i = 0; i < count; i++)
    if (has_bit(done, i)) {
      assert_int_not_equal(i, 7);
      assert_holds(dst->ctx, items[i].dst_adr, bytes + i * size, size);
    }
  assert_holds(dst->ctx, items[7].dst_adr, expected + (count - 8) * size, size);
  umem_free(src->ctx, from);
  umem_free(dst->ctx, to);
}

PAIR(a_failure_names_the_item) {
  fail_at_item(src, dst, false);
  fail_at_item(src, dst, true);
}

/* Neighbours are one run; the failure is that of one of them. */
PAIR(a_failure_among_neighbours_names_the_item) {
  enum { count = 9, size = 8, whole = count * size };
  if (!(dst->row->traits & backendKeepsRecords)) return;
  uintptr_t from = own_filled_block(src->ctx, whole, 1);
  uintptr_t to = own_block(dst->ctx, 6 * size);
  umemCopyItem items[count];
  uint8_t done[2] = {0};
  size_t failed = 77;
  unsigned char bytes[whole];
  umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
  for (size_t i = 0; i < count; i++)
    items[i] = (umemCopyItem){src->ctx, from + i * size, dst->ctx, to + i * size, size};
  assert_int_equal(umem_copy_many(items, count, &options), umemIndexError);
  expect_failure(dst->ctx, umemIndexError);
  settle(src->ctx, dst->ctx);
  assert_true(failed >= 6 && failed < count);
  fill_bytes(bytes, whole, 1);
  for (size_t i = 0; i < failed; i++) assert_true(has_bit(done, i));
  assert_holds(dst->ctx, to, bytes, 6 * size);
}

PAIR(a_list_names_its_route) {
  enum { size = 1000 };
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyManyOptions options = {.size = sizeof options, .route = &route};
  uintptr_t from = own_filled_block(src->ctx, size, 1), to = own_block(dst->ctx, size);
  umemCopyItem const items[] = {{src->ctx, from, dst->ctx, to + 500, 300},
                                {src->ctx, from + 600, dst->ctx, to, 400}};
  for (int starts = 0; starts < 2; starts++) {
    route.leg_count = 0;
    assert_ok(copy_list(starts, items, 2, &options));
    settle(src->ctx, dst->ctx);
    assert_true(route.leg_count > 0);
    assert_true(route.bytes == 700);
    assert_true(route.legs[0].bytes == 700);
    assert_true(umemRoute_text(&route, NULL, 0) > 0);
  }
}

/* ---- progress ---- */

typedef struct Steps {
  Pieces *pieces;
  uint8_t *done;
  uint64_t total, last, cancel_at;
  bool waits; /* for a server: while that is silent, the last call is repeated */
  bool right; /* all so far: cmocka must not jump out of a callback */
} Steps;

/* What the bits say is there already, also where a context is ordered. */
static bool look_at_items(void *user, uint64_t done, uint64_t total) {
  Steps *steps = user;
  Pieces *it = steps->pieces;
  uint64_t there = 0;
  bool right = total == steps->total && done + (steps->waits || !done) > steps->last;
  for (size_t i = 0; i < it->count && right; i++) {
    umemCopyItem const *item = &it->items[i];
    if (!has_bit(steps->done, i) || !item->nbytes) continue;
    there += item->nbytes;
    right = holds(it->dst, item->dst_adr, it->source + (item->src_adr - it->from), item->nbytes);
  }
  steps->right = steps->right && right && there <= total;
  steps->last = done;
  return done < steps->cancel_at;
}

PAIR(a_list_reports_how_far_it_is) {
  for (int cancels = 0; cancels < 2; cancels++) {
    Pieces it = new_pieces(src->ctx, dst->ctx, 3000, 300, 5);
    uint8_t *done = calloc(it.count / 8 + 1, 1);
    Steps steps = {.pieces = &it, .done = done, .cancel_at = UINT64_MAX, .right = true};
    steps.waits = (src->row->traits | dst->row->traits) & backendWaits;
    for (size_t i = 0; i < it.count; i++) steps.total += it.items[i].nbytes;
    if (cancels) steps.cancel_at = 1000;
    umemCopyManyOptions options = {.size = sizeof options,
                                   .done = done,
                                   .progress = look_at_items,
                                   .user = &steps,
                                   .step = 500};
    assert_int_equal(umem_copy_many(it.items, it.count, &options),
                     cancels ? umemCancelledError : umemOK);
    if (cancels) expect_failure(dst->ctx, umemCancelledError);
    assert_true(steps.right);
    assert_int_equal(steps.last, cancels ? 1000 : steps.total);
    if (cancels) { /* the others, which were not copied */
      size_t rest = 0;
      for (size_t i = 0; i < it.count; i++)
        if (!has_bit(done, i)) it.items[rest++] = it.items[i];
      assert_true(rest > 0 && rest < it.count);
      assert_ok(umem_copy_many(it.items, rest, NULL));
      settle(src->ctx, dst->ctx);
    }
    free(done);
    end_pieces(&it);
  }
}

ONCE(arguments_that_make_no_sense_are_refused) {
  umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
  assert_int_equal(umem_copy_many(NULL, 1, NULL), umemValueError);
  expect_failure(NULL, umemValueError);
  options.size = 3;
  for (int starts = 0; starts < 2; starts++) {
    assert_int_equal(copy_list(starts, NULL, 0, &options), umemValueError);
    expect_failure(NULL, umemValueError);
  }
  expect_status(NULL, umem_start_many(NULL, 0, NULL, NULL), umemValueError);
  options = (umemCopyManyOptions)UMEM_COPY_MANY_OPTIONS_INIT;
  options.progress = look_at_items;
  expect_status(NULL, copy_list(true, NULL, 0, &options), umemValueError);
}

/* What the bits say of a list that was cancelled is there, and the others can be copied then. */
PAIR(a_list_that_was_cancelled_says_what_is_done) {
  SCOPED(end_pieces) Pieces it = new_pieces(src->ctx, dst->ctx, test_large_size() / 2, 10000, 6);
  SCOPED(free_bytes) uint8_t *done = calloc(it.count / 8 + 1, 1);
  umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
  umemTransfer *transfer;
  uint64_t bytes, there = 0;
  assert_non_null(done);
  options.done = done;
  assert_ok(umem_start_many(it.items, it.count, &options, &transfer));
  umemTransfer_cancel(transfer);
  umemStatusType status = umemTransfer_wait(transfer);
  assert_true(status == umemOK || status == umemCancelledError);
  if (status == umemCancelledError) expect_failure(dst->ctx, umemCancelledError);
  assert_ok(umemTransfer_progress(transfer, &bytes, NULL));
  assert_ok(umemTransfer_release(transfer));
  size_t rest = 0;
  for (size_t i = 0; i < it.count; i++)
    if (has_bit(done, i))
      there += it.items[i].nbytes;
    else
      it.items[rest++] = it.items[i];
  assert_true(there <= bytes && (rest == 0) == (status == umemOK));
  assert_ok(umem_copy_many(it.items, rest, NULL));
  settle(src->ctx, dst->ctx);
}

SUITE(many)
