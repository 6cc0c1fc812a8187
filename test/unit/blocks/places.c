/* places.c - umem/blocks.h on every context of the table: as source, as destination, as both, and
 * as the place where the program works; and on queues beside the place. */
#include "blocks_help.h"

#include "unit/each_backend.h"
#include "fake/doubles.h"
#include "fake/fake.h"

enum { count = 50, width = 24, rows = 8, nbytes = count * width };

static umemHost host;
static unsigned char array[nbytes], results[nbytes], found[nbytes];

static int open_all(void **state) {
  doubles_use();
  return set_up(state) || umemHost_ctor(&host) != umemOK;
}
static int close_all(void **state) {
  umem_dtor(&host);
  char const *complaint = doubles_complaint();
  if (complaint) fail_msg("%s", complaint);
  return tear_down(state);
}

static unsigned char value(size_t i) { return (unsigned char)(i * 31 + i / 256); }
static unsigned char changed(unsigned char byte) { return (unsigned char)(3 * byte + 1); }

/* What the program does with a block on any context. Its last step may only be queued: the results
 * live on. */
static void work(umemVirtual *place, umemBlock const *block) {
  size_t at = block->first * width, n = block->rows * width;
  unsigned char here[rows * width];
  assert_ok(umem_copy_to(place, block->adr, &host, (uintptr_t)here, n));
  assert_ok(umem_synchronize(place));
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(here[i], value(at + i));
    results[at + i] = changed(here[i]);
  }
  assert_ok(umem_copy_from(place, block->out, &host, (uintptr_t)(results + at), n));
}

static void pass(umemVirtual *place, umemBlocksOptions *options) {
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  options->count = count;
  options->place = place;
  options->rows = rows;
  assert_ok(umemBlocks_ctor(&blocks, options));
  size_t number = 0;
  for (; umemBlocks_next(&blocks, &block); number++) work(place, &block);
  assert_ok(umemBlocks_end(&blocks));
  assert_int_equal(number, (count + rows - 1) / rows);
}

static void expect_results(umemVirtual *ctx, uintptr_t adr) {
  assert_ok(umem_copy_to(ctx, adr, &host, (uintptr_t)found, nbytes));
  assert_ok(umem_synchronize(ctx));
  for (size_t i = 0; i < nbytes; i++) assert_int_equal(found[i], changed(value(i)));
}

static uintptr_t filled_block(umemVirtual *ctx) {
  uintptr_t adr = umem_alloc(ctx, nbytes);
  for (size_t i = 0; i < nbytes; i++) array[i] = value(i);
  assert_true(adr != umem_null(ctx));
  assert_ok(umem_copy_from(ctx, adr, &host, (uintptr_t)array, nbytes));
  assert_ok(umem_synchronize(ctx));
  return adr;
}

/* ---- every context, in each part ---- */

static void reads_from(umemVirtual *ctx) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  uintptr_t adr = filled_block(ctx);
  unsigned char *to = calloc(nbytes, 1);
  options.source = (umemRows){ctx, adr, width, 0};
  options.destination = (umemRows){&host, (uintptr_t)to, width, 0};
  pass(&host.super, &options);
  expect_results(&host.super, (uintptr_t)to);
  free(to);
  umem_free(ctx, adr);
}

static void writes_to(umemVirtual *ctx) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  uintptr_t adr = umem_calloc(ctx, nbytes, 1), from = filled_block(&host.super);
  options.source = (umemRows){&host, from, width, 0};
  options.destination = (umemRows){ctx, adr, width, 0};
  options.apart = true;
  pass(&host.super, &options);
  expect_results(ctx, adr);
  umem_free(ctx, adr);
  umem_free(&host, from);
}

/* And columns of its rows alone, which nothing beside them may notice. */
static void replaces_in(umemVirtual *ctx) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  uintptr_t adr = filled_block(ctx);
  options.source = options.destination = (umemRows){ctx, adr, width, 0};
  options.before = 3;
  pass(&host.super, &options);
  expect_results(ctx, adr);
  umem_free(ctx, adr);
}

static void works_on(umemVirtual *ctx) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  uintptr_t from = filled_block(&host.super);
  unsigned char *to = calloc(nbytes, 1);
  options.source = (umemRows){&host, from, width, 0};
  options.destination = (umemRows){&host, (uintptr_t)to, width, 0};
  pass(ctx, &options);
  expect_results(&host.super, (uintptr_t)to);
  free(to);
  umem_free(&host, from);
}

static void is_everything(umemVirtual *ctx) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  uintptr_t adr = filled_block(ctx);
  options.source = options.destination = (umemRows){ctx, adr, width, 0};
  options.apart = true;
  pass(ctx, &options);
  expect_results(ctx, adr);
  umem_free(ctx, adr);
}

static void (*test_of_context)(umemVirtual *ctx);

static void test_context(Backend const *row, umemVirtual *ctx) {
  (void)row;
  test_of_context(ctx);
}

static void for_each_context(void (*test)(umemVirtual *ctx)) {
  test_of_context = test;
  assert_true(for_each_backend(test_context) > 10);
}

static void any_context_is_a_source(void **state) {
  (void)state;
  for_each_context(reads_from);
}
static void any_context_is_a_destination(void **state) {
  (void)state;
  for_each_context(writes_to);
}
static void any_context_is_both(void **state) {
  (void)state;
  for_each_context(replaces_in);
}
static void any_context_is_a_place(void **state) {
  (void)state;
  for_each_context(works_on);
}
static void any_context_is_everything(void **state) {
  (void)state;
  for_each_context(is_everything);
}

/* ---- queues ---- */

/* Through a place with queues beside it, as many as blocks in memory or fewer. The double of a
 * device does queued work as late as it may: without the right order the results are junk. */
static void passes_queues(umemVirtual *place, umemVirtual *const *queues, size_t queue_count) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  uintptr_t adr = filled_block(&host.super);
  void *given[4];
  for (size_t i = 0; i < queue_count; i++) given[i] = queues[i];
  options.source = options.destination = (umemRows){&host, adr, width, 0};
  options.queues = given;
  options.queue_count = queue_count;
  options.apart = true;
  pass(place, &options);
  expect_results(&host.super, adr);
  umem_free(&host, adr);
}

static void queues_are_ordered_after_the_work(void **state) {
  (void)state;
  FakeAsync place, queues[4];
  umemVirtual *given[4];
  assert_ok(fake_async_ctor(&place));
  for (int i = 0; i < 4; i++) {
    assert_ok(fake_async_ctor_on(&queues[i], &place));
    given[i] = &queues[i].super.super;
  }
  for (size_t n = 1; n <= 4; n++) passes_queues(&place.super.super, given, n);
  for (int i = 0; i < 4; i++) umem_dtor(&queues[i]);
  umem_dtor(&place);
}

static void streams_are_ordered_after_the_work(void **state) {
  (void)state;
  umemCuda plain;
  umemCudaAsync place, queues[4];
  umemVirtual *given[4];
  if (umemCuda_ctor(&plain, 0) != umemOK) {
    umem_thread_clear();
    skip();
  }
  assert_ok(umemCudaAsync_ctor(&place, 0, UMEM_STREAM_NEW));
  for (int i = 0; i < 4; i++) {
    assert_ok(umemCudaAsync_ctor(&queues[i], 0, UMEM_STREAM_NEW));
    given[i] = &queues[i].super;
  }
  for (size_t n = 1; n <= 4; n++) {
    passes_queues(&place.super, given, n);
    passes_queues(&plain.super, given, n);
  }
  for (int i = 0; i < 4; i++) umem_dtor(&queues[i]);
  umem_dtor(&place);
  umem_dtor(&plain);
}

/* Work that a device could not do is a failure of the block. */
static void queued_work_that_fails_is_reported(void **state) {
  (void)state;
  FakeAsync place;
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  assert_ok(fake_async_ctor(&place));
  uintptr_t adr = filled_block(&host.super);
  options.source = options.destination = (umemRows){&host, adr, width, 0};
  options.count = count;
  options.place = &place;
  options.rows = rows;
  options.depth = 1; /* each block is written before the next one is read */
  assert_ok(umemBlocks_ctor(&blocks, &options));
  assert_true(umemBlocks_next(&blocks, &block));
  fake_async_fail_next(&place, umemRuntimeError);
  assert_ok(umem_set(&place, block.adr, 0, 10));
  assert_false(umemBlocks_next(&blocks, &block));
  assert_int_equal(umem_get_status(&place), umemRuntimeError);
  assert_int_equal(umemBlocks_end(&blocks), umemRuntimeError);
  umem_thread_clear();
  umem_free(&host, adr);
  umem_dtor(&place);
}

#define PLACE_TEST(test)                                                                           \
  cmocka_unit_test_setup_teardown(test, open_all, close_all), {                                    \
#test " (one_thread)", test, open_all, close_all, (void *)one_thread                           \
  }

int main(void) {
  struct CMUnitTest const tests[] = {
      PLACE_TEST(any_context_is_a_source),
      PLACE_TEST(any_context_is_a_destination),
      PLACE_TEST(any_context_is_both),
      PLACE_TEST(any_context_is_a_place),
      PLACE_TEST(any_context_is_everything),
      PLACE_TEST(queues_are_ordered_after_the_work),
      PLACE_TEST(streams_are_ordered_after_the_work),
      PLACE_TEST(queued_work_that_fails_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
