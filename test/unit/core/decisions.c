/* decisions.c - the decision hook of umem/status.h. */
#include "backends.h"
#include "cuda_double.h"
#include "failures.h"

enum { most_lines = 200 };

typedef struct Seen {
  size_t count;
  umemDecision level[most_lines];
  void *ctx[most_lines];
  char text[most_lines][200];
} Seen;

static Seen seen;

static void note(void *ctx, umemDecision level, char const *message, void *data) {
  Seen *self = data;
  if (self->count == most_lines) return;
  self->level[self->count] = level;
  self->ctx[self->count] = ctx;
  snprintf(self->text[self->count++], sizeof *self->text, "%s", message);
}

static size_t lines_with(char const *text) {
  size_t count = 0;
  for (size_t i = 0; i < seen.count; i++) count += strstr(seen.text[i], text) != NULL;
  return count;
}

static void set_up(void **state UNUSED) {
  memset(&seen, 0, sizeof seen);
  begin_double();
}

static void tear_down(void **state UNUSED) {
  assert_ok(umem_set_decision_hook(umemDecisionNone, NULL, NULL));
  end_double();
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

/* A pool that takes a chunk and gives it back; a copy from a file. */
static void work(void) {
  void *pool = umem_open("pool+host:?memory=chunks");
  void *file = umem_open("file:");
  assert_true(pool && file);
  uintptr_t adr = umem_alloc(pool, 10 << 20), from = umem_calloc(file, 1, 1000);
  assert_ok(umem_copy_to(file, from, pool, adr, 1000));
  umem_free(pool, adr);
  assert_ok(umem_trim(pool, 0));
  assert_ok(umem_close(pool));
  assert_ok(umem_close(file));
}

TEST(nothing_is_seen_unless_it_is_asked_for) {
  work();
  assert_ok(umem_set_decision_hook(umemDecisionNone, note, &seen));
  work();
  assert_ok(umem_set_decision_hook(umemDecisionCopies, NULL, &seen));
  work();
  assert_int_equal(seen.count, 0);
}

TEST(each_level_has_those_before_it) {
  assert_ok(umem_set_decision_hook(umemDecisionMemory, note, &seen));
  work();
  assert_int_equal(lines_with("a pool over Host takes a chunk of "), 1);
  assert_int_equal(lines_with("a pool over Host gives "), 1);
  assert_int_equal(lines_with("from File to"), 0);
  for (size_t i = 0; i < seen.count; i++) assert_true(seen.level[i] <= umemDecisionMemory);
  seen.count = 0;
  assert_ok(umem_set_decision_hook(umemDecisionCopies, note, &seen));
  work();
  assert_int_equal(lines_with("takes a chunk"), 1);
  assert_true(lines_with("1000 bytes from File to Host: the source writes to memory") >= 1);
  expect_status(NULL, umem_set_decision_hook((umemDecision)4, note, &seen), umemValueError,
                "there is no level 4");
}

TEST(pages_of_pools_are_seen) {
  CONTEXT(umemHost, ram);
  assert_ok(umem_set_decision_hook(umemDecisionMemory, note, &seen));
  CONTEXT(umemPool, pool, &ram, NULL);
  umem_free(&pool, umem_alloc(&pool, 10 << 20));
  assert_true(lines_with("bytes of pages") >= 1);
}

TEST(fallbacks_have_a_reason) {
  umemCudaAsync async;
  assert_ok(umem_set_decision_hook(umemDecisionFallbacks, note, &seen));
  fake_cudart_machine()->device[0].no_pools = true;
  assert_ok(umemCudaAsync_ctor(&async, 0, UMEM_STREAM_NEW));
  assert_int_equal(lines_with("the driver has no memory pools for GPU 0"), 1);
  assert_ptr_equal(seen.ctx[0], &async);
  umem_dtor(&async);
  fake_cudart_machine()->device[0].no_pools = false;
}

static bool give_up(void *user, void *ctx, size_t nbytes, size_t alignment, unsigned attempt) {
  (void)user, (void)ctx, (void)nbytes, (void)alignment;
  return attempt < 2;
}

/* What umem recovers from is no failure, but a decision. */
TEST(attempts_of_a_retry_are_seen) {
  assert_ok(umem_set_decision_hook(umemDecisionMemory, note, &seen));
  CONTEXT(umemHost, ram);
  CONTEXT(umemLimit, limit, &ram, 100);
  CONTEXT(umemRetry, retry, &limit, give_up, NULL);
  assert_int_equal(umem_alloc(&retry, 200), 0);
  assert_int_equal(lines_with("no memory for 200 bytes, attempt"), 2);
}
