/* fixed.c - umem/fixed.h. */
#include "fixed_help.h"

/* That this free is refused, and changes nothing. */
static void expect_refused_free(umemFixed *ctx, uintptr_t adr) {
  uint64_t blocks = stats_of(ctx).blocks, failures = umem_thread_failures();
  umem_free(ctx, adr);
  assert_true(umem_thread_failures() == failures + 1);
  expect_failure(ctx, umemValueError, "umem_free: ");
  assert_true(stats_of(ctx).blocks == blocks);
}

/* ---- blocks ---- */

FIXED_TEST(gives_blocks_of_one_size) {
  open_fixed(&fake, 100, 64, 0, 10 * 128, 0);
  assert_string_equal(umem_get_device_name(&fixed), "Fixed");
  assert_int_equal(fixed.super.alignment, 64);
  uintptr_t adr[25];
  for (size_t i = 0; i < 25; i++) {
    adr[i] = umem_alloc(&fixed, i * 5); /* 0 ... 120 */
    assert_true(adr[i] && adr[i] % 64 == 0);
    for (size_t k = 0; k < i; k++) assert_true(adr[i] >= adr[k] + 128 || adr[k] >= adr[i] + 128);
  }
  umemFixedStats stats = stats_of(&fixed);
  assert_int_equal(stats.block_size, 128);
  assert_int_equal(stats.blocks, 25);
  assert_int_equal(stats.blocks_held, 30);
  assert_int_equal(stats.reserved, 30 * 128);
  assert_int_equal(stats.chunks, 3);
  assert_int_equal(blocks_in(&fake), 3);
  for (size_t i = 0; i < 25; i++) umem_free(&fixed, adr[i]);
  assert_int_equal(stats_of(&fixed).blocks, 0);
  assert_int_equal(blocks_in(&fake), 3);
  assert_true(umem_alloc(&fixed, 1) == adr[24]); /* the one freed last */
}

FIXED_TEST(larger_requests_are_refused) {
  assert_ok(umemFixed_ctor(&fixed, &offsets, 1000, NULL));
  size_t most = (size_t)stats_of(&fixed).block_size;
  expect_no_block(&fixed, umem_alloc(&fixed, most + 1), umemMemoryError, "umem_alloc: ");
  expect_no_block(&fixed, umem_alloc(&fixed, SIZE_MAX), umemMemoryError, "exceed a block");
  expect_no_block(&fixed, umem_calloc(&fixed, most, 2), umemMemoryError, "umem_calloc: ");
  assert_int_equal(blocks_in(&offsets), 0); /* was never asked */
  assert_true(umem_is_ok(&offsets));
  umem_free(&fixed, umem_alloc(&fixed, most));
}

FIXED_TEST(resizes_in_place) {
  assert_ok(umemFixed_ctor(&fixed, &fake, 4096, NULL));
  uintptr_t adr = umem_alloc(&fixed, 10);
  assert_true(umem_realloc(&fixed, adr, 10, 4096) == adr);
  assert_true(umem_realloc(&fixed, adr, 4096, 1) == adr);
  expect_no_block(&fixed, umem_realloc(&fixed, adr, 1, 4097), umemMemoryError,
                  "umem_realloc: 4097 bytes exceed a block, which has 4096");
  expect_no_block(&fixed, umem_realloc(&fixed, adr + 1, 1, 2), umemValueError,
                  "is not a live block");
  umem_free(&fixed, adr);
  expect_no_block(&fixed, umem_realloc(&fixed, adr, 1, 2), umemValueError, "is not a live block");
}

FIXED_TEST(aligns_as_far_as_blocks_go) {
  umemFixedOptions options = {.size = sizeof options, .alignment = 256};
  assert_ok(umemFixed_ctor(&fixed, &offsets, 1280, &options));
  uintptr_t natural = umem_aligned_alloc(&fixed, 256, 1280);
  uintptr_t inner = umem_aligned_alloc(&fixed, 512, 1280 - 256);
  assert_true(natural != UINTPTR_MAX && inner != UINTPTR_MAX && inner % 512 == 0);
  expect_no_block(&fixed, umem_aligned_alloc(&fixed, 512, 1280 - 255), umemMemoryError,
                  "1281 bytes exceed a block");
  umem_aligned_free(&fixed, natural);
  umem_aligned_free(&fixed, inner);
  assert_int_equal(stats_of(&fixed).blocks, 0);
  end(&fixed);

  options.alignment = 0; /* blocks that are pages: all of them are aligned */
  assert_ok(umemFixed_ctor(&fixed, &offsets, 4096, &options));
  for (int i = 0; i < 20; i++) assert_true(umem_aligned_alloc(&fixed, 4096, 4096) % 4096 == 0);
  end(&fixed);

  options.alignment = 1 << 20; /* more than the pages of chunks */
  assert_ok(umemFixed_ctor(&fixed, &fake, 3 << 20, &options));
  for (int i = 0; i < 3; i++) assert_true(umem_alloc(&fixed, 1) % (1 << 20) == 0);
  end(&fixed);

  options.alignment = 1; /* less than the upstream's */
  assert_ok(umemFixed_ctor(&fixed, &fake, 3, &options));
  uintptr_t one = umem_alloc(&fixed, 3), other = umem_alloc(&fixed, 3);
  assert_int_equal(other - one, 3);
}

/* Each is live at the address that was given out, and nowhere else. */
FIXED_TEST(aligned_blocks_are_blocks) {
  enum { count = 12, room = 3 * 64 };
  uintptr_t adr[count];
  unsigned moved = 0;
  open_fixed(&offsets, room, 64, 0, 0, count * room);
  for (int i = 0; i < count; i++) {
    adr[i] = umem_aligned_alloc(&fixed, 128, i ? room - 64 : 0);
    assert_true(adr[i] != UINTPTR_MAX && adr[i] % 128 == 0);
    for (int k = 0; k < i; k++) assert_true(adr[i] != adr[k]);
  }
  assert_int_equal(stats_of(&fixed).blocks, count);
  expect_no_block(&fixed, umem_aligned_alloc(&fixed, 128, 1), umemMemoryError,
                  "umem_aligned_alloc: no block is free of the 12");
  for (int i = 0; i < count; i++) {
    uintptr_t start = umem_aligned_origin(&fixed, adr[i]);
    assert_true(start == adr[i] || start + 64 == adr[i]);
    assert_true(umem_realloc(&fixed, adr[i], 1, room - (adr[i] - start)) == adr[i]);
    expect_no_block(&fixed, umem_realloc(&fixed, adr[i], 1, room - (adr[i] - start) + 1),
                    umemMemoryError, "193 bytes exceed a block");
    expect_no_block(&fixed, umem_realloc(&fixed, adr[i], 1, SIZE_MAX), umemMemoryError,
                    "exceed a block");
    if (start == adr[i]) continue;
    expect_refused_free(&fixed, start);
    expect_no_block(&fixed, umem_aligned_origin(&fixed, start), umemValueError,
                    "is not a live block");
    moved++;
  }
  assert_int_equal(moved, count / 2);
  for (int i = 0; i < count; i++) {
    expect_refused_free(&fixed, adr[i] + 64);
    (i % 2 ? umem_free : umem_aligned_free)(&fixed, adr[i]);
    expect_refused_free(&fixed, adr[i]);
  }
  assert_ok(umem_trim(&fixed, 0));
  assert_int_equal(stats_of(&fixed).reserved, 0);
}

FIXED_TEST(wrong_frees_are_refused) {
  assert_ok(umemFixed_ctor(&fixed, &offsets, 64, NULL));
  CLEAN_CONTEXT(umemFixed, sibling, &offsets, 64, NULL);
  uintptr_t adr = umem_alloc(&fixed, 64), foreign = umem_alloc(&sibling, 64);
  uintptr_t bare = umem_alloc(&offsets, 64);
  expect_refused_free(&fixed, adr + 1);
  expect_refused_free(&fixed, adr + 32);
  expect_refused_free(&fixed, adr + 64);        /* begins a block that is free */
  expect_refused_free(&fixed, adr + (1 << 20)); /* behind the chunk */
  expect_refused_free(&fixed, adr - 64);
  expect_refused_free(&fixed, foreign);
  expect_refused_free(&fixed, bare);
  expect_refused_free(&fixed, 12345678901);
  umem_free(&fixed, adr);
  expect_refused_free(&fixed, adr);
  umem_free(&fixed, UINTPTR_MAX); /* null */
  assert_ok(umem_trim(&fixed, 0));
  expect_refused_free(&fixed, adr); /* its chunk is gone */
  umem_free(&offsets, bare);
  umem_free(&sibling, foreign);
}

/* Behind the last block of a chunk, on the same page. */
FIXED_TEST(frees_behind_a_chunk_are_refused) {
  uintptr_t adr[10];
  open_fixed(&offsets, 64, 16, 0, 10 * 64, 0);
  for (int i = 0; i < 10; i++) adr[i] = umem_alloc(&fixed, 64);
  for (int i = 1; i < 50; i++) expect_refused_free(&fixed, adr[9] + (uintptr_t)i * 64);
  expect_no_block(&fixed, umem_realloc(&fixed, adr[9] + 64, 1, 2), umemValueError,
                  "is not a live block");
}

/* ---- chunks ---- */

FIXED_TEST(trims_to_what_is_kept) {
  uintptr_t adr[80];
  open_fixed(&fake, 1024, 0, 0, 8 * 1024, 0);
  for (int i = 0; i < 80; i++) adr[i] = umem_alloc(&fixed, 1);
  assert_int_equal(stats_of(&fixed).chunks, 10);
  assert_ok(umem_trim(&fixed, 0));
  assert_int_equal(stats_of(&fixed).chunks, 10); /* all in use */
  for (int i = 0; i < 80; i++)
    if (i != 20) umem_free(&fixed, adr[i]);
  assert_ok(umem_trim(&fixed, 3 * 8 * 1024 + 1));
  assert_int_equal(stats_of(&fixed).chunks, 4);
  assert_ok(umem_trim(&fixed, 0));
  assert_int_equal(stats_of(&fixed).chunks, 1); /* that of the survivor */
  assert_int_equal(blocks_in(&fake), 1);
  assert_int_equal(stats_of(&fixed).blocks_held, 8);
  for (int i = 0; i < 7; i++) assert_true(umem_alloc(&fixed, 1)); /* the rest of that chunk */
  assert_int_equal(stats_of(&fixed).chunks, 1);
  assert_true(umem_alloc(&fixed, 1));
  assert_int_equal(stats_of(&fixed).chunks, 2);
  assert_int_equal(stats_of(&fixed).reserved_peak, 80 * 1024);
}

FIXED_TEST(takes_initial_bytes_and_no_more_than_the_maximum) {
  umemFixedOptions options = {sizeof options, 128, 2500, 1024, 4000};
  assert_ok(umemFixed_ctor(&fixed, &fake, 256, &options));
  assert_int_equal(stats_of(&fixed).reserved, 10 * 256); /* in whole blocks */
  assert_int_equal(stats_of(&fixed).chunks, 1);
  uintptr_t adr[16];
  for (int i = 0; i < 15; i++) assert_true((adr[i] = umem_alloc(&fixed, 200)));
  assert_int_equal(stats_of(&fixed).reserved, 15 * 256); /* as much as fits */
  expect_no_block(&fixed, umem_alloc(&fixed, 200), umemMemoryError,
                  "no block is free of the 15 that 4000 bytes hold");
  umemInfo info = info_of(&fixed);
  assert_int_equal(info.capacity, 15 * 256);
  assert_int_equal(info.available, 0);
  assert_int_equal(info.alignment, 128);
  umem_free(&fixed, adr[7]);
  assert_ok(umem_get_info(&fixed, &info));
  assert_int_equal(info.available, 256);
  assert_true(umem_alloc(&fixed, 200) == adr[7]);
  end(&fixed);

  options.initial = options.maximum; /* a part of a block less */
  assert_ok(umemFixed_ctor(&fixed, &fake, 256, &options));
  assert_int_equal(stats_of(&fixed).reserved, 15 * 256);
}

/* What the upstream says; then all goes on. */
FIXED_TEST(upstream_runs_out) {
  umemFixedOptions options = {sizeof options, 64, 0, 1024, 0};
  uintptr_t adr[16] = {0}, count = 0;
  CLEAN_CONTEXT(umemLimit, limit, &offsets, 1024 + 3 * 128);
  assert_ok(umemFixed_ctor(&fixed, &limit, 128, &options));
  while (umem_is_ok(&fixed) && count < 16) adr[count++] = umem_alloc(&fixed, 1);
  expect_both(&fixed, &limit, umemMemoryError,
              "umem_alloc: no room for 128 more bytes: 1408 of the 1408");
  assert_int_equal(count, 8 + 3 + 1); /* a whole chunk, then blocks alone */
  assert_true(adr[11] == UINTPTR_MAX);
  umem_free(&fixed, adr[4]);
  assert_true(umem_alloc(&fixed, 1) == adr[4]);
  for (int i = 0; i < 11; i++) umem_free(&fixed, adr[i]);
  assert_ok(umem_trim(&fixed, 0));
  assert_int_equal(umemLimit_used(&limit), 0);
  end(&fixed);

  options.initial = 2048;
  assert_int_equal(umemFixed_ctor(&fixed, &limit, 128, &options), umemMemoryError);
  expect_both(&fixed, &limit, umemMemoryError, "umemFixed_ctor: no room for 2048 more bytes");
  assert_int_equal(umemLimit_used(&limit), 0);
  umem_dtor(&fixed);
}

/* A trim and an end that the upstream refuses. What was not given back stays in use. */
static void refuse_free(umemVirtual *ctx, uintptr_t adr) {
  umemVirtual_fail(ctx, umemIOError, "not now: %zu", (size_t)adr);
}

TEST(failing_frees_are_reported) {
  struct umemVtbl const *methods = fake.super.vptr;
  struct umemVtbl stubborn = *methods;
  stubborn.aligned_free = refuse_free;
  assert_ok(umemFixed_ctor(&fixed, &fake, 100, NULL));
  uintptr_t adr = umem_alloc(&fixed, 1);
  umem_free(&fixed, adr);
  fake.super.vptr = &stubborn;
  assert_int_equal(umem_trim(&fixed, 0), umemIOError);
  expect_both(&fixed, &fake, umemIOError, "umem_trim: not now");
  assert_int_equal(stats_of(&fixed).chunks, 1);
  assert_int_equal(blocks_in(&fake), 1);
  assert_true(umem_alloc(&fixed, 1) == adr);
  umem_free(&fixed, adr);
  expect_refused_free(&fixed, adr);
  fake.super.vptr = methods;
  assert_ok(umem_trim(&fixed, 0));
  assert_int_equal(stats_of(&fixed).chunks, 0);
  assert_int_equal(blocks_in(&fake), 0);
  assert_true(umem_alloc(&fixed, 1));
  fake.super.vptr = &stubborn;
  umem_dtor(&fixed);
  expect_both(&fixed, &fake, umemIOError, "umem_dtor: not now");
  fake.super.vptr = methods;
}

/* ---- construction ---- */

FIXED_TEST(options_that_cannot_be) {
  struct {
    size_t block;
    umemFixedOptions options;
    char const *words;
  } const wrong[] = {
      {0, UMEM_FIXED_OPTIONS_INIT, "blocks cannot have 0 bytes"},
      {SIZE_MAX, UMEM_FIXED_OPTIONS_INIT, "blocks cannot have"},
      {1, {3, 0, 0, 0, 0}, "size in the umemFixedOptions is 3"},
      {1, {sizeof(umemFixedOptions), 48, 0, 0, 0}, "alignment 48"},
      {1, {sizeof(umemFixedOptions), (size_t)1 << 63, 0, 0, 0}, "or too large"},
      {1, {sizeof(umemFixedOptions), 0, 1001, 0, 1000}, "initial bytes (1001)"},
      {1001, {sizeof(umemFixedOptions), 1, 0, 0, 1000}, "is less than a block (1001)"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    umemStatusType status = umemFixed_adopt(&fixed, &fake, wrong[i].block, &wrong[i].options);
    expect_status(&fixed, status, umemValueError, wrong[i].words);
    assert_int_equal(umem_alloc(&fixed, 1), 0);
    umem_dtor(&fixed);
    assert_true(umem_is_ok(&fake));
  }
  expect_status(&fixed, umemFixed_ctor(&fixed, NULL, 1, NULL), umemValueError,
                "the upstream is NULL");
  umemFixedOptions part = {offsetof(umemFixedOptions, initial), 32, 1, 1, 1}; /* an older one */
  assert_ok(umemFixed_ctor(&fixed, &fake, 100, &part));
  assert_int_equal(fixed.super.alignment, 32);
}

FIXED_TEST(an_adopted_upstream_ends_too) {
  Fake mine;
  assert_ok(fake_ctor(&mine));
  assert_ok(umemFixed_adopt(&fixed, &mine, 100, NULL));
  assert_true(umem_alloc(&fixed, 1));
  end(&fixed);
  assert_null(mine.super.vptr);
}

FIXED_TEST(stats_are_checked) {
  umemFixedStats stats = {.size = 3};
  assert_ok(umemFixed_ctor(&fixed, &fake, 100, NULL));
  expect_status(&fixed, umemFixed_stats(&fixed, NULL), umemValueError, "stats is NULL");
  expect_status(&fixed, umemFixed_stats(&fixed, &stats), umemValueError, "stats->size is 3");
  expect_status(&fake, umemFixed_stats((umemFixed *)&fake, &stats), umemTypeError,
                "this Fake is no umemFixed");
  stats = (umemFixedStats){.size = offsetof(umemFixedStats, chunks), .chunks = 77};
  assert_true(umem_alloc(&fixed, 1));
  assert_ok(umemFixed_stats(&fixed, &stats));
  assert_true(stats.blocks == 1 && stats.chunks == 77);
}

/* ---- against a naive model ---- */

enum { most_live = 300, size = 40 };

typedef struct Model {
  umemFixed fixed;
  uintptr_t adr[most_live];
  unsigned char byte[most_live];
  size_t count;
  uint64_t random;
} Model;

static void fill(Model *model, size_t at) {
  assert_ok(umem_set(&model->fixed, model->adr[at], model->byte[at], size));
}

static void check(Model *model, size_t at) {
  unsigned char bytes[size];
  assert_ok(umem_copy_to(&model->fixed, model->adr[at], &host, (uintptr_t)bytes, size));
  for (size_t i = 0; i < size; i++) assert_int_equal(bytes[i], model->byte[at]);
}

static void take(Model *model) {
  uintptr_t adr = below(&model->random, 4) ? umem_alloc(&model->fixed, size)
                                           : umem_aligned_alloc(&model->fixed, 8, size);
  if (adr == umem_null(&model->fixed)) {
    assert_true(model->count >= 200);
    expect_failure(&model->fixed, umemMemoryError, "no block is free");
    return;
  }
  for (size_t i = 0; i < model->count; i++) assert_true(model->adr[i] != adr);
  model->adr[model->count] = adr;
  model->byte[model->count] = (unsigned char)random64(&model->random);
  fill(model, model->count++);
}

static void give(Model *model) {
  size_t at = below(&model->random, model->count);
  uintptr_t adr = model->adr[at];
  check(model, at);
  umem_free(&model->fixed, adr);
  if (below(&model->random, 10) == 0) expect_refused_free(&model->fixed, adr);
  model->count--;
  model->adr[at] = model->adr[model->count];
  model->byte[at] = model->byte[model->count];
}

TEST(agrees_with_a_model) {
  Fake *grounds[] = {&fake, &offsets};
  for (uint64_t seed = 0; seed < (setting_small() ? 4 : 20); seed++) {
    static Model model;
    umemFixedOptions options = {sizeof options, 8, 0, 25 * size, 200 * size};
    model.count = 0;
    model.random = seed;
    assert_ok(umemFixed_ctor(&model.fixed, grounds[seed % 2], size, &options));
    for (int i = 0; i < (setting_small() ? 2000 : 20000); i++) {
      size_t wanted = (size_t)(i / 500 % 3) * 110; /* tides: 0, 110, 220 */
      if (below(&model.random, 200) == 0)
        assert_ok(umem_trim(&model.fixed, below(&model.random, 3) * 2000));
      else if (model.count && (model.count > wanted || below(&model.random, 3) == 0))
        give(&model);
      else
        take(&model);
      assert_int_equal(stats_of(&model.fixed).blocks, model.count);
    }
    while (model.count) give(&model);
    assert_ok(umem_trim(&model.fixed, 0));
    assert_int_equal(stats_of(&model.fixed).reserved, 0);
    assert_int_equal(blocks_in(grounds[seed % 2]), 0);
    end(&model.fixed);
  }
}

/* More descriptors than the first table has room for. */
FIXED_TEST(holds_many_chunks) {
  enum { count = 200 };
  uintptr_t adr[count];
  open_fixed(&offsets, 100000, 0, 0, 1, 0);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < count; i++) adr[i] = umem_alloc(&fixed, 100000);
    assert_int_equal(stats_of(&fixed).chunks, count);
    for (int i = 0; i < count; i++) umem_free(&fixed, adr[i * 7 % count]);
    assert_ok(umem_trim(&fixed, 0));
    assert_int_equal(blocks_in(&offsets), 0);
  }
}
