/* places.c - umem/blocks.h on every context of the table: as source, as destination, as both, and
 * as the place where the program works; and on queues beside the place. */
#include "passage.h"

#include "unit/each_backend.h"
#include "fake/doubles.h"
#include "fake/fake.h"

enum { count = 50, width = 24, rows = 8, nbytes = count * width };

static umemHost host;
static unsigned char array[nbytes], results[nbytes], found[nbytes];

static void open_all(void **state) {
  doubles_use();
  set_up(state);
  assert_ok(umemHost_ctor(&host));
}
static void close_all(void **state) {
  umem_dtor(&host);
  char const *complaint = doubles_complaint();
  if (complaint) fail_msg("%s", complaint);
  tear_down(state);
}

#define OPEN open_all
#define CLOSE close_all

/* Run with one thread, too. */
#define PLACE_TEST(name)                                                                           \
  static void name(void **state);                                                                  \
  TEST_AGAIN(one_thread, name)                                                                     \
  TEST(name)

static unsigned char value(size_t i) { return (unsigned char)(i * 31 + i / 256); }
static unsigned char changed(unsigned char byte) { return (unsigned char)(3 * byte + 1); }

static umemVirtual *working; /* where the program works */

/* What the program does with a block on any context. Its last step may only be queued: the results
 * live on. */
static void work(size_t number UNUSED) {
  size_t at = block.first * width, n = block.rows * width;
  unsigned char here[rows * width];
  assert_ok(umem_copy_to(working, block.adr, &host, (uintptr_t)here, n));
  assert_ok(umem_synchronize(working));
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(here[i], value(at + i));
    results[at + i] = changed(here[i]);
  }
  assert_ok(umem_copy_from(working, block.out, &host, (uintptr_t)(results + at), n));
}

static void pass(umemVirtual *place, umemBlocksOptions *options) {
  working = place;
  options->count = count;
  options->place = place;
  options->rows = rows;
  pass_all(options, work, (count + rows - 1) / rows);
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

/* What a context takes part in; the rest is in RAM. */
typedef struct Part {
  bool reads, writes, works; /* it is the source, the destination, the place */
  bool replaces, apart; /* the results go where the rows were, away from the rows in the place */
  size_t before;
} Part;

static Part part;

static void take_part(Backend const *row UNUSED, umemVirtual *ctx) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  umemVirtual *from = part.reads ? ctx : &host.super, *to = part.writes ? ctx : &host.super;
  uintptr_t adr = filled_block(from);
  uintptr_t there = part.replaces ? adr : umem_calloc(to, nbytes, 1);
  options.source = (umemRows){from, adr, width, 0};
  options.destination = (umemRows){to, there, width, 0};
  options.apart = part.apart;
  options.before = part.before;
  pass(part.works ? ctx : &host.super, &options);
  expect_results(to, there);
  if (there != adr) umem_free(to, there);
  umem_free(from, adr);
}

static void let_each(Part wanted) {
  part = wanted;
  assert_true(for_each_backend(take_part) > 10);
}

PLACE_TEST(any_context_is_a_source) { let_each((Part){.reads = true}); }
PLACE_TEST(any_context_is_a_destination) { let_each((Part){.writes = true, .apart = true}); }
PLACE_TEST(any_context_is_both) {
  let_each((Part){.reads = true, .writes = true, .replaces = true, .before = 3});
}
PLACE_TEST(any_context_is_a_place) { let_each((Part){.works = true}); }
PLACE_TEST(any_context_is_everything) {
  let_each((Part){true, true, true, .replaces = true, .apart = true});
}

/* ---- queues ---- */

/* Through a place with queues beside it, as many as blocks in memory or fewer. The double of a
 * device does queued work as late as it may: without the right order the results are junk. */
static void passes_queues(umemVirtual *place, void *const *queues, size_t queue_count) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  uintptr_t adr = filled_block(&host.super);
  options.source = options.destination = (umemRows){&host, adr, width, 0};
  options.queues = queues;
  options.queue_count = queue_count;
  options.apart = true;
  pass(place, &options);
  expect_results(&host.super, adr);
  umem_free(&host, adr);
}

PLACE_TEST(queues_are_ordered_after_the_work) {
  FakeAsync place, queues[4];
  void *given[4];
  assert_ok(fake_async_ctor(&place));
  for (int i = 0; i < 4; i++) {
    assert_ok(fake_async_ctor_on(&queues[i], &place));
    given[i] = &queues[i];
  }
  for (size_t n = 1; n <= 4; n++) passes_queues(&place.super.super, given, n);
  for (int i = 0; i < 4; i++) umem_dtor(&queues[i]);
  umem_dtor(&place);
}

PLACE_TEST(streams_are_ordered_after_the_work) {
  umemCuda plain;
  umemCudaAsync place, queues[4];
  void *given[4];
  if (umemCuda_ctor(&plain, 0) != umemOK) {
    umem_thread_clear();
    skip();
  }
  assert_ok(umemCudaAsync_ctor(&place, 0, UMEM_STREAM_NEW));
  for (int i = 0; i < 4; i++) {
    assert_ok(umemCudaAsync_ctor(&queues[i], 0, UMEM_STREAM_NEW));
    given[i] = &queues[i];
  }
  for (size_t n = 1; n <= 4; n++) {
    passes_queues(&place.super, given, n);
    passes_queues(&plain.super, given, n);
  }
  for (int i = 0; i < 4; i++) umem_dtor(&queues[i]);
  DESTRUCT(&place, &plain);
}

/* Work that a device could not do is a failure of the block. */
PLACE_TEST(queued_work_that_fails_is_reported) {
  SCOPED(umem_dtor) FakeAsync place;
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  assert_ok(fake_async_ctor(&place));
  uintptr_t adr = filled_block(&host.super);
  options.source = options.destination = (umemRows){&host, adr, width, 0};
  options.count = count;
  options.place = &place;
  options.rows = rows;
  options.depth = 1; /* each block is written before the next one is read */
  begin(&options);
  assert_true(next());
  fake_async_fail_next(&place, umemRuntimeError);
  assert_ok(umem_set(&place, block.adr, 0, 10));
  assert_false(next());
  assert_int_equal(umem_get_status(&place), umemRuntimeError);
  assert_int_equal(end(), umemRuntimeError);
  umem_thread_clear();
  umem_free(&host, adr);
}
