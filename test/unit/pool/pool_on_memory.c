/* pool_on_memory.c - views of a pool without memory for the records, at each place and for a while:
 * what could not pass from one to another stays where it was, in its order, and passes later.
 *
 * Linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#include "pool_on_help.h"
#include "failing_memory.h"

/* ---- malloc ---- */

static bool failing;
static unsigned passes, fails;

static bool fail_now(void) {
  if (!failing || passes) {
    passes -= failing;
    return false;
  }
  if (!fails) return false;
  fails--;
  return true;
}

/* ---- what fails ---- */

enum { count = 120 };

static uintptr_t blocks[count];
static size_t sizes[count];

/* The views that could be constructed: ended and replaced, they may be fewer. */
typedef struct Views {
  Shared *shared;
  umemPoolOn view[3];
  bool open[3];
} Views;

static void forgive(Views *self, void *ctx) {
  if (umem_thread_status() != umemOK) assert_int_equal(umem_thread_status(), umemMemoryError);
  umem_clear_status(ctx);
  umem_clear_status(&self->shared->pool);
  umem_thread_clear();
}

static void reopen(Views *self, int i, int queue) {
  if (self->open[i]) umem_dtor(&self->view[i]);
  forgive(self, &self->view[i]);
  self->open[i] =
      umemPoolOn_ctor(&self->view[i], &self->shared->pool, &self->shared->queue[queue]) == umemOK;
  forgive(self, &self->view[i]);
}

static void fill_up(Views *self, int shift) {
  for (int i = 0; i < count; i++) {
    int k = (i / 8 + shift) % 3;
    if (blocks[i] || !self->open[k]) continue;
    sizes[i] = i % 17 == 0 ? 5 * mebi : some_sizes[i % some];
    blocks[i] = umem_alloc(&self->view[k], sizes[i]);
    if (blocks[i]) clock_use(queue_under(&self->view[k]), blocks[i], sizes[i]);
    forgive(self, &self->view[k]);
  }
}

/* Through another view, when all queues are complete. A free that fails leaves the block live. */
static void free_some(Views *self, int shift, int step) {
  for (int i = 0; i < 5; i++) assert_ok(umem_synchronize(&self->shared->queue[i]));
  for (int i = 0; i < count; i += step) {
    int k = (i / 8 + shift) % 3;
    if (!blocks[i] || !self->open[k]) continue;
    clock_use(queue_under(&self->view[k]), blocks[i], sizes[i]);
    uint64_t before = umem_thread_failures();
    umem_free(&self->view[k], blocks[i]);
    if (umem_thread_failures() == before) blocks[i] = 0;
    forgive(self, &self->view[k]);
  }
}

static void use_all(Views *self) {
  for (int i = 0; i < 3; i++) reopen(self, i, i);
  fill_up(self, 0);
  free_some(self, 1, 2);
  for (int i = 0; i < 3; i++)
    if (self->open[i]) umem_trim(&self->view[i], i ? SIZE_MAX : 0);
  fill_up(self, 2);
  reopen(self, 1, 3);
  free_some(self, 0, 3);
  fill_up(self, 1);
  free_some(self, 2, 1);
  reopen(self, 0, 4);
  umem_trim(&self->shared->pool, 0);
  forgive(self, &self->shared->pool);
  fill_up(self, 0);
}

static bool run(bool ordered, size_t maximum, unsigned pass, unsigned fail) {
  Shared s;
  Views views = {.shared = &s};
  open_shared(&s, ordered, maximum);
  failing = true;
  passes = pass;
  fails = fail;
  use_all(&views);
  bool reached = fails < fail;
  failing = false;
  fill_up(&views, 0); /* which works again */
  for (int i = 0; i < 3; i++) reopen(&views, i, i);
  for (int shift = 0; shift < 3; shift++) free_some(&views, shift, 1);
  for (int i = 0; i < 3; i++) umem_dtor(&views.view[i]);
  assert_int_equal(stats_of(&s.pool).blocks, 0);
  assert_ok(umem_trim(&s.pool, 0));
  assert_int_equal(stats_of(&s.pool).reserved, 0);
  assert_int_equal(clocks_allocated(s.clocks), 0);
  close_shared(&s);
  return reached;
}

/* Which call fails after this one; where time is short fewer do. */
static unsigned after(unsigned pass, unsigned usual) {
  return pass + (setting_small() ? 8 * usual : usual);
}

TEST_CASE(one_failure_anywhere) {
  for (int k = 0; k < 4; k++)
    for (unsigned pass = 0; run(k & 1, k & 2 ? 24 * mebi : 0, pass, 1); pass = after(pass, 1)) {
    }
}

TEST_CASE(failures_for_a_while) {
  for (int k = 0; k < 4; k++)
    for (unsigned pass = 0; run(k & 1, k & 2 ? 24 * mebi : 0, pass, 40); pass = after(pass, 3)) {
    }
}

int main(void) { return run_cases(NULL, NULL); }
