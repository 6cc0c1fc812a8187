/* pool_on_memory.c - views of a pool without memory for the records, at each place and for a while:
 * what could not pass from one to another stays where it was, in its order, and passes later.
 *
 * Linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#include "pool_on_help.h"
#include "failing_memory.h"

/* ---- what fails ---- */

enum { count = 120 };

static uintptr_t blocks[count];
static size_t sizes[count];

/* The views that could be constructed: ended and replaced, they may be fewer. */
static umemPoolOn views[3];
static bool is_open[3];

static void forgive(void *ctx) {
  if (umem_thread_status() != umemOK) assert_int_equal(umem_thread_status(), umemMemoryError);
  FORGET(ctx, &s.pool);
}

static void reopen(int i, int queue) {
  if (is_open[i]) umem_dtor(&views[i]);
  forgive(&views[i]);
  is_open[i] = umemPoolOn_ctor(&views[i], &s.pool, &s.queue[queue]) == umemOK;
  forgive(&views[i]);
}

static void fill_up(int shift) {
  for (int i = 0; i < count; i++) {
    int k = (i / 8 + shift) % 3;
    if (blocks[i] || !is_open[k]) continue;
    sizes[i] = i % 17 == 0 ? 5 * mebi : some_sizes[i % some];
    blocks[i] = umem_alloc(&views[k], sizes[i]);
    if (blocks[i]) clock_use(queue_under(&views[k]), blocks[i], sizes[i]);
    forgive(&views[k]);
  }
}

/* Through another view, when all queues are complete. A free that fails leaves the block live. */
static void free_some(int shift, int step) {
  for (int i = 0; i < 5; i++) assert_ok(umem_synchronize(&s.queue[i]));
  for (int i = 0; i < count; i += step) {
    int k = (i / 8 + shift) % 3;
    if (!blocks[i] || !is_open[k]) continue;
    clock_use(queue_under(&views[k]), blocks[i], sizes[i]);
    uint64_t before = umem_thread_failures();
    umem_free(&views[k], blocks[i]);
    if (umem_thread_failures() == before) blocks[i] = 0;
    forgive(&views[k]);
  }
}

static void use_all(void) {
  for (int i = 0; i < 3; i++) reopen(i, i);
  fill_up(0);
  free_some(1, 2);
  for (int i = 0; i < 3; i++)
    if (is_open[i]) umem_trim(&views[i], i ? SIZE_MAX : 0);
  fill_up(2);
  reopen(1, 3);
  free_some(0, 3);
  fill_up(1);
  free_some(2, 1);
  reopen(0, 4);
  umem_trim(&s.pool, 0);
  forgive(&s.pool);
  fill_up(0);
}

static bool run(bool ordered, size_t maximum, unsigned pass, unsigned fail) {
  open_shared(ordered, maximum);
  memset(is_open, 0, sizeof is_open);
  fail_memory(pass, fail);
  use_all();
  bool reached = end_failing();
  fill_up(0); /* which works again */
  for (int i = 0; i < 3; i++) reopen(i, i);
  for (int shift = 0; shift < 3; shift++) free_some(shift, 1);
  for (int i = 0; i < 3; i++) umem_dtor(&views[i]);
  expect_nothing_left(&s.pool);
  close_shared();
  return reached;
}

/* Which call fails after this one; where time is short fewer do. */
static unsigned after(unsigned pass, unsigned usual) {
  return pass + (setting_small() ? 8 * usual : usual);
}

TEST_OF_VIEWS(one_failure_anywhere) {
  for (int k = 0; k < 4; k++)
    for (unsigned pass = 0; run(k & 1, k & 2 ? 24 * mebi : 0, pass, 1); pass = after(pass, 1)) {
    }
}

TEST_OF_VIEWS(failures_for_a_while) {
  for (int k = 0; k < 4; k++)
    for (unsigned pass = 0; run(k & 1, k & 2 ? 24 * mebi : 0, pass, 40); pass = after(pass, 3)) {
    }
}
