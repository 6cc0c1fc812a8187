/* track.c - umem/track.h. */
#include "adaptor_help.h"

static umemTrackBlock block_at(umemTrack *ctx, uintptr_t adr) {
  umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
  assert_true(umemTrack_find(ctx, adr, &block));
  assert_ptr_equal(block.ctx, ctx);
  return block;
}

/* ---- who owns an address ---- */

TEST(knows_the_block_of_inner_addresses) {
  size_t nbytes;
  CLEAN_CONTEXT(umemTrack, track, &offsets, NULL);
  uintptr_t one = umem_alloc(&track, 100), other = umem_calloc(&track, 10, 30);
  uintptr_t aligned = umem_aligned_alloc(&track, 4096, 50);
  assert_int_equal(one, 0); /* a good address where addresses are offsets */
  umemTrackBlock block = block_at(&track, one + 99);
  assert_true(block.adr == one && block.nbytes == 100 && block.number == 1 && !block.frames);
  block = block_at(&track, other + 299);
  assert_true(block.adr == other && block.nbytes == 300 && block.number == 2);
  block = block_at(&track, aligned);
  assert_true(block.adr == aligned && block.nbytes == 50 && block.number == 3);
  assert_true(umemTrack_find(&track, other + 1, NULL));
  assert_false(umemTrack_find(&track, one + 100, &block));
  assert_false(umemTrack_find(&track, other + 300, NULL));
  assert_false(umemTrack_find(&track, UINTPTR_MAX, NULL));
  assert_int_equal(umemTrack_count(&track, &nbytes), 3);
  assert_int_equal(nbytes, 450);

  other = umem_realloc(&track, other, 300, 1000);
  block = block_at(&track, other + 999);
  assert_true(block.adr == other && block.nbytes == 1000 && block.number == 4);
  assert_int_equal(umemTrack_count(&track, NULL), 3);
  umem_free(&track, one);
  assert_false(umemTrack_find(&track, one, NULL));
  umem_free(&track, other);
  umem_aligned_free(&track, aligned);
  assert_int_equal(umemTrack_count(&track, &nbytes), 0);
  assert_int_equal(nbytes, 0);
  assert_true(umem_is_ok(&track) && umem_thread_status() == umemOK);
}

TEST(walks_in_order_of_address) {
  enum { count = 1000 };
  static uintptr_t adr[count];
  CLEAN_CONTEXT(umemTrack, track, &host, NULL);
  for (size_t i = 0; i < count; i++) adr[i] = umem_alloc(&track, i + 1);
  for (size_t i = 0; i < count; i += 3) umem_free(&track, adr[i]), adr[i] = 0;
  umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
  uintptr_t from = 0;
  size_t seen = 0;
  for (; umemTrack_next(&track, from, &block); from = block.adr + 1, seen++) {
    assert_true(block.adr >= from);
    assert_true(block.adr == adr[block.number - 1] && block.nbytes == block.number);
    adr[block.number - 1] = 0;
    umem_free(&track, block.adr); /* what is gone disturbs no walk */
  }
  assert_int_equal(seen, count - (count + 2) / 3);
  for (size_t i = 0; i < count; i++) assert_true(adr[i] == 0);
}

TEST(the_process_knows_who_owns_an_address) {
  umemTrack ram, device, above, numbers;
  umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
  assert_ok(umemTrack_ctor(&ram, &host, NULL));
  assert_ok(umemTrack_ctor(&device, &fake, NULL));
  assert_ok(umemTrack_ctor(&numbers, &offsets, NULL));
  uintptr_t one = umem_alloc(&ram, 100), other = umem_alloc(&device, 200);
  uintptr_t offset = umem_alloc(&numbers, 300);
  assert_true(umemTrack_owner(one + 50, &block));
  assert_true(block.ctx == &ram && block.adr == one && block.nbytes == 100);
  assert_true(umemTrack_owner(other + 199, &block));
  assert_true(block.ctx == &device && block.adr == other && block.nbytes == 200);
  assert_true(umemTrack_owner(one, NULL));
  assert_false(umemTrack_owner(offset, NULL)); /* no address of the process */
  assert_false(umemTrack_owner((uintptr_t)&block, &block));
  assert_true(block.ctx == &device); /* untouched */

  assert_ok(umemTrack_ctor(&above, &ram, NULL));
  uintptr_t top = umem_alloc(&above, 10);
  assert_true(umemTrack_owner(top, &block) && block.ctx == &above);
  umem_free(&above, top);
  end(&above);
  umem_free(&ram, one);
  umem_free(&device, other);
  umem_free(&numbers, offset);
  assert_false(umemTrack_owner(one, NULL));
  end(&ram);
  assert_false(umemTrack_owner(one, NULL));
  end(&numbers);
  end(&device);
}

/* ---- wrong calls ---- */

/* Over libc, which would crash. */
TEST(wrong_frees_reach_nobody) {
  CLEAN_CONTEXT(umemTrack, track, &host, NULL);
  uintptr_t adr = umem_alloc(&track, 100), aligned = umem_aligned_alloc(&track, 64, 100);
  char words[100];
  snprintf(words, sizeof words, "is 1 bytes inside the block of 100 bytes at 0x%jx",
           (uintmax_t)adr);
  umem_free(&track, adr + 1);
  expect_failure(&track, umemValueError, words);
  umem_free(&track, (uintptr_t)words);
  expect_failure(&track, umemValueError, "is no live block");
  umem_aligned_free(&track, adr);
  expect_failure(&track, umemValueError, "is not of umem_aligned_alloc: free it with umem_free");
  umem_free(&track, aligned);
  expect_failure(&track, umemValueError, "umem_free: the block at 0x");
  umem_free(&track, aligned);
  expect_failure(&track, umemValueError, "of umem_aligned_alloc: free it with umem_aligned_free");
  assert_true(umem_realloc(&track, adr + 8, 92, 200) == 0);
  expect_failure(&track, umemValueError, "umem_realloc: 0x");
  assert_true(umem_realloc(&track, adr, 99, 200) == 0);
  expect_failure(&track, umemValueError, "has 100 bytes, not 99");
  assert_true(umem_realloc(&track, aligned, 100, 200) == 0);
  expect_failure(&track, umemValueError, "of umem_aligned_alloc");
  assert_int_equal(umemTrack_count(&track, NULL), 2);
  FREE(&track, adr, adr);
  expect_failure(&track, umemValueError, "is free already");
  umem_aligned_free(&track, aligned);
  umem_aligned_free(&track, aligned);
  expect_failure(&track, umemValueError, "is free already");
  assert_true(umem_is_ok(&host));
}

TEST(failures_change_nothing) {
  size_t nbytes;
  size_t const huge = SIZE_MAX / 2;
  struct umemVtbl const *methods = fake.super.vptr;
  struct umemVtbl stubborn = *methods;
  stubborn.free = NULL; /* answers umemNotImplementedError */
  umemTrackOptions options = UMEM_TRACK_OPTIONS_INIT;
  options.frames = 4; /* which must not be left behind either */
  CLEAN_CONTEXT(umemTrack, track, &fake, &options);
  uintptr_t adr = umem_alloc(&track, 100);
  for (int i = 0; i < 100; i++) { /* more than any reserve */
    assert_true(umem_alloc(&track, huge) == 0);
    assert_true(umem_calloc(&track, huge, 1) == 0);
    assert_true(umem_aligned_alloc(&track, 64, huge) == 0);
    assert_true(umem_realloc(&track, adr, 100, huge) == 0);
  }
  expect_both(&track, &fake, umemMemoryError, "no room for");
  fake.super.vptr = &stubborn;
  umem_free(&track, adr);
  fake.super.vptr = methods;
  expect_both(&track, &fake, umemNotImplementedError, "has no method free");
  assert_int_equal(umemTrack_count(&track, &nbytes), 1);
  assert_int_equal(nbytes, 100);
  assert_true(block_at(&track, adr + 5).number == 1);
  umem_free(&track, adr);
  assert_int_equal(blocks_in(&fake), 0);
}

/* What came from upstream is not ours; what went there behind our back makes way. */
TEST(other_blocks_make_way) {
  size_t nbytes;
  CLEAN_CONTEXT(umemFile, file, NULL, "w+");
  CLEAN_CONTEXT(umemTrack, track, &file, NULL);
  assert_true(umem_alloc(&track, 1000) == 0);
  assert_true(umem_alloc(&track, 50) == 1008);
  FREE(&file, 0, 1008);
  uintptr_t own = umem_alloc(&file, 16); /* at 0: not ours */
  assert_int_equal(own, 0);
  uintptr_t over = umem_alloc(&track, 5000); /* over both */
  assert_true(over < 1008);
  umem_free(&file, own);
  uintptr_t low = umem_alloc(&track, 10);
  umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
  size_t seen = 0;
  for (uintptr_t at = 0; umemTrack_next(&track, at, &block); at = block.adr + 1) seen++;
  assert_int_equal(seen, 2);
  assert_int_equal(umemTrack_count(&track, &nbytes), 2);
  assert_int_equal(nbytes, 5010);
  FREE(&track, over, low);
}

/* ---- what happens while upstream is at work ---- */

static umemTrack meeting;
static struct umemVtbl const *file_methods;
static uintptr_t taken;

/* Frees, and before it returns somebody else frees the same block and allocates: the address comes
 * back. */
static void free_meets_others(umemVirtual *ctx, uintptr_t adr) {
  uint64_t before = umem_thread_failures();
  ctx->vptr = file_methods;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  umem_free(&meeting, adr);
  bool found = umemTrack_find(&meeting, adr, NULL);
  umemAttempt_end(&attempt);
  assert_int_equal(attempt.type, umemValueError); /* it is on its way already */
  assert_false(found);
  umem_free(ctx, adr);
  taken = umem_alloc(&meeting, 70);
  assert_true(umem_thread_failures() == before);
}

TEST(an_address_that_comes_back_at_once_is_another_block) {
  CLEAN_CONTEXT(umemFile, file, NULL, "w+");
  file_methods = file.super.vptr;
  struct umemVtbl meets = *file_methods;
  meets.free = meets.aligned_free = free_meets_others;
  assert_ok(umemTrack_ctor(&meeting, &file, NULL));
  uintptr_t adr = umem_alloc(&meeting, 100);
  file.super.vptr = &meets;
  umem_free(&meeting, adr);
  assert_true(taken == adr);
  umemTrackBlock block = block_at(&meeting, adr + 69);
  assert_true(block.adr == adr && block.nbytes == 70 && block.number == 2);
  assert_int_equal(umemTrack_count(&meeting, NULL), 1);
  umem_free(&meeting, taken);
  assert_int_equal(umemTrack_count(&meeting, NULL), 0);
  end(&meeting);
}

/* ---- leaks and call sites ---- */

uintptr_t allocate_here(void *ctx, size_t nbytes);
__attribute__((noinline)) uintptr_t allocate_here(void *ctx, size_t nbytes) {
  uintptr_t volatile adr = umem_alloc(ctx, nbytes);
  return adr;
}

TEST(leaks_are_a_failure_at_the_end) {
  umemTrack track;
  char words[200];
  assert_ok(umemTrack_ctor(&track, &fake, NULL));
  uintptr_t gone = umem_alloc(&track, 5), one = umem_alloc(&track, 100);
  umem_free(&track, gone);
  umem_dtor(&track);
  snprintf(words, sizeof words, "umem_dtor: 1 block, 100 bytes in all, was not freed: 100 at 0x%jx",
           (uintmax_t)one);
  expect_failure(&track, umemRuntimeError, words);
  assert_true(umem_is_ok(&fake));
  umem_free(&fake, one); /* is still there */

  uintptr_t adr[5];
  assert_ok(umemTrack_ctor(&track, &fake, NULL));
  for (size_t i = 0; i < 5; i++) adr[i] = umem_alloc(&track, i + 1);
  umem_dtor(&track);
  snprintf(words, sizeof words,
           "5 blocks, 15 bytes in all, were not freed: 1 at 0x%jx, 2 at 0x%jx, 3 at 0x%jx, ...",
           (uintmax_t)adr[0], (uintmax_t)adr[1], (uintmax_t)adr[2]);
  expect_failure(&track, umemRuntimeError, words);
  for (size_t i = 0; i < 5; i++) umem_free(&fake, adr[i]);
}

TEST(call_sites_are_kept_when_asked_for) {
  umemTrack track;
  umemTrackOptions options = {.size = sizeof options, .frames = 12};
  assert_ok(umemTrack_ctor(&track, &host, &options));
  uintptr_t adr = allocate_here(&track, 100);
  umemTrackBlock block = block_at(&track, adr);
  assert_true(block.frames >= 2 && block.frames <= 12);
  bool here = false;
  for (unsigned i = 0; i < block.frames; i++) {
    uintptr_t at = (uintptr_t)block.trace[i], start = (uintptr_t)allocate_here;
    here = here || (at > start && at < start + 1000); /* long with sanitizers */
  }
  assert_true(here);
  umem_dtor(&track);
  expect_failure(&track, umemRuntimeError, " by allocate_here+0x");
  umem_free(&host, adr);
}

__attribute__((noinline)) static uintptr_t allocate_as(void *ctx, int way) {
  uintptr_t volatile adr = umem_null(ctx);
  if (way == 0) adr = umem_alloc(ctx, 100);
  if (way == 1) adr = umem_calloc(ctx, 10, 10);
  if (way == 2) adr = umem_aligned_alloc(ctx, 64, 100);
  if (way == 3) adr = umem_realloc(ctx, adr, 0, 100);
  return adr;
}

static bool returns_into(void const *at, uintptr_t function) {
  return (uintptr_t)at > function && (uintptr_t)at < function + 1000; /* sanitizers make it long */
}

/* umem's own do not count, however many layers there are: one frame shows who has called. */
TEST(call_sites_are_the_programs) {
  umemTrack track;
  enum { layer_count = 12 };
  umemStats layers[layer_count];
  umemTrackOptions options = UMEM_TRACK_OPTIONS_INIT;
  for (options.frames = 1; options.frames <= 3; options.frames++) {
    assert_ok(umemTrack_ctor(&track, &host, &options));
    for (int i = 0; i <= layer_count; i++) {
      void *top = i ? (void *)&layers[i - 1] : &track;
      for (int way = 0; way < 4; way++) {
        uintptr_t adr = allocate_as(top, way);
        umemTrackBlock block = block_at(&track, adr);
        assert_int_equal(block.frames, options.frames);
        assert_true(returns_into(block.trace[0], (uintptr_t)allocate_as));
        (way == 2 ? umem_aligned_free : umem_free)(top, adr);
      }
      if (i < layer_count) assert_ok(umemStats_ctor(&layers[i], top));
    }
    for (int i = layer_count; i-- > 0;) end(&layers[i]);
    end(&track);
  }
}

/* Long sites are cut, and the rest of the message is still there. */
TEST(deep_call_sites_fit_the_message) {
  umemTrack track;
  umemTrackOptions options = {.size = sizeof options, .frames = UMEM_TRACK_FRAMES};
  assert_ok(umemTrack_ctor(&track, &host, &options));
  uintptr_t adr[20];
  for (size_t i = 0; i < 20; i++) adr[i] = allocate_here(&track, 10);
  umem_dtor(&track);
  assert_true(strlen(umem_get_message(&track)) < UMEM_MESSAGE_SIZE);
  expect_failure(&track, umemRuntimeError, "20 blocks, 200 bytes in all, were not freed: 10 at 0x");
  for (size_t i = 0; i < 20; i++) umem_free(&host, adr[i]);
}

TEST(options_are_checked) {
  umemTrack track;
  umemTrackOptions options = {.size = sizeof options, .frames = UMEM_TRACK_FRAMES + 1};
  assert_int_equal(umemTrack_ctor(&track, &fake, &options), umemValueError);
  expect_failure(&track, umemValueError, "33 frames are more than 32");
  options.size = offsetof(umemTrackOptions, frames); /* an older one */
  assert_ok(umemTrack_ctor(&track, &fake, &options));
  end(&track);
  options.size = 7;
  expect_status(&track, umemTrack_adopt(&track, &fake, &options), umemValueError, "too small");
  assert_non_null(fake.super.vptr);
}

TEST(structs_may_be_older) {
  umemTrack track;
  umemTrackBlock block;
  assert_ok(umemTrack_ctor(&track, &host, NULL));
  uintptr_t adr = umem_alloc(&track, 100);
  memset(&block, 0xAA, sizeof block);
  block.size = offsetof(umemTrackBlock, frames);
  assert_true(umemTrack_find(&track, adr, &block));
  assert_int_equal(block.nbytes, 100);
  assert_int_equal(block.frames, 0xAAAAAAAAu);
  block.size = 4;
  assert_false(umemTrack_find(&track, adr, &block));
  expect_failure(&track, umemValueError, "umemTrack_find: block->size is 4");
  assert_false(umemTrack_next(&track, adr, &block));
  expect_failure(&track, umemValueError, "umemTrack_next: block->size is 4");
  assert_false(umemTrack_owner(adr, &block));
  assert_int_equal(umem_thread_status(), umemValueError);
  umem_thread_clear();
  umem_free(&track, adr);
  end(&track);
  block.size = sizeof block;
  assert_false(umemTrack_find(&track, adr, &block));
  assert_false(umemTrack_next(&track, adr, &block));
  assert_int_equal(umemTrack_count(&track, NULL), 0);
  expect_failure(&track, umemValueError, "not constructed");
}

/* ---- threads ---- */

static umemTrack shared;
enum { rounds = 2000 };

/* libc hands an address that one thread has freed to another at once. */
static void *churn(void *number) {
  uintptr_t adr[8];
  size_t size = 40 + (uintptr_t)number;
  for (int i = 0; i < rounds; i++) {
    for (size_t k = 0; k < 8; k++) {
      adr[k] = umem_alloc(&shared, size);
      umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
      if (!umemTrack_owner(adr[k] + 20, &block)) abort();
      if (block.adr != adr[k] || block.nbytes != size) abort();
    }
    adr[0] = umem_realloc(&shared, adr[0], size, 3 * size);
    for (size_t k = 0; k < 8; k++) umem_free(&shared, adr[k]);
  }
  return number;
}

TEST(threads_share_the_records) {
  assert_ok(umemTrack_ctor(&shared, &host, NULL));
  in_threads(churn);
  assert_int_equal(umemTrack_count(&shared, NULL), 0);
  end(&shared);
}
