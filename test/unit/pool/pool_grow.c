/* pool_grow.c - many threads, and an upstream that takes its time: none may fail while memory is on
 * its way, and none asks for what another one is asking for. */
#include "pool_help.h"

static umemHost host;

/* ---- an upstream that answers when the test lets it ---- */

typedef struct Gate {
  umemVirtual super;
  umemVirtual *upstream;
  bool open;        /* atomic */
  unsigned asked;   /* atomic: how often */
  umemPool *helper; /* what it allocates from while it is asked; NULL: nothing */
  unsigned *helped; /* atomic: how many gates have been asked, so that they do it at once */
} Gate;

static uintptr_t gate_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  Gate *gate = (Gate *)ctx;
  bool first = __atomic_fetch_add(&gate->asked, 1, __ATOMIC_ACQ_REL) == 0;
  while (!__atomic_load_n(&gate->open, __ATOMIC_ACQUIRE)) sched_yield();
  if (gate->helper && first) {
    __atomic_add_fetch(gate->helped, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(gate->helped, __ATOMIC_ACQUIRE) < 2) sched_yield();
    uintptr_t adr = umem_alloc(gate->helper, 100);
    assert_true(adr != 0);
    umem_free(gate->helper, adr);
  }
  uint64_t before = umem_thread_failures();
  uintptr_t adr = umem_aligned_alloc(gate->upstream, alignment, size);
  umemVirtual_adopt(ctx, before);
  return adr;
}

static uintptr_t gate_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  (void)ctx;
  return adr;
}

static void gate_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  umem_aligned_free(((Gate *)ctx)->upstream, adr);
}

static uintptr_t gate_alloc(umemVirtual *ctx, size_t nbytes) {
  return gate_aligned_alloc(ctx, 16, nbytes);
}

static struct umemVtbl const gate_vtbl = {.alloc = gate_alloc,
                                          .free = gate_aligned_free,
                                          .aligned_alloc = gate_aligned_alloc,
                                          .aligned_origin = gate_aligned_origin,
                                          .aligned_free = gate_aligned_free};

static void open_gate(Gate *gate, void *upstream) {
  memset(gate, 0, sizeof *gate);
  umemVirtual_ctor(&gate->super, &host);
  gate->super.vptr = &gate_vtbl;
  gate->super.type = umemUserDevice;
  gate->super.name = "Gate";
  gate->super.capabilities |= umemConcurrent;
  gate->super.alignment = 16;
  gate->upstream = upstream;
}

static void await_asked(Gate *gate, unsigned count) {
  while (__atomic_load_n(&gate->asked, __ATOMIC_ACQUIRE) < count) sched_yield();
}

/* ---- threads that each take one block ---- */

typedef struct Taker {
  umemPool *pool;
  size_t nbytes;
  unsigned *begun; /* atomic */
  uintptr_t adr;
  pthread_t thread;
} Taker;

static void *take(void *argument) {
  Taker *self = argument;
  if (self->begun) __atomic_add_fetch(self->begun, 1, __ATOMIC_ACQ_REL);
  self->adr = umem_alloc(self->pool, self->nbytes);
  return NULL;
}

static void start(Taker *taker, umemPool *pool, size_t nbytes, unsigned *begun) {
  *taker = (Taker){.pool = pool, .nbytes = nbytes, .begun = begun};
  assert_int_equal(pthread_create(&taker->thread, NULL, take, taker), 0);
}

/* So long that threads which have begun come to where they wait; none of the tests needs that they
 * do. */
static void let_them_come(unsigned const *begun, unsigned count) {
  while (__atomic_load_n(begun, __ATOMIC_ACQUIRE) < count) sched_yield();
  usleep(20000);
}

/* They begin while the first of them is waiting for the gate, and all get their block. */
static void expect_all_served(Gate *gate, umemPool *pool, unsigned count, size_t nbytes) {
  enum { most = 16 };
  Taker takers[most];
  unsigned begun = 0;
  start(&takers[0], pool, nbytes, &begun);
  await_asked(gate, 1);
  for (unsigned i = 1; i < count; i++) start(&takers[i], pool, nbytes, &begun);
  let_them_come(&begun, count);
  __atomic_store_n(&gate->open, true, __ATOMIC_RELEASE);
  for (unsigned i = 0; i < count; i++) pthread_join(takers[i].thread, NULL);
  for (unsigned i = 0; i < count; i++) assert_true(takers[i].adr != 0);
  for (unsigned i = 0; i < count; i++) umem_free(pool, takers[i].adr);
  assert_true(umem_is_ok(pool));
}

TEST_CASE(one_chunk_is_for_all) {
  size_t const maxima[] = {0, mebi};
  for (size_t k = 0; k < 2; k++) {
    Gate gate;
    umemPool pool;
    open_gate(&gate, &host);
    open_pool(&pool, &gate, 0, 0, maxima[k]);
    expect_all_served(&gate, &pool, 16, 100);
    assert_int_equal(gate.asked, 1);
    assert_true(stats_of(&pool).reserved_peak == mebi);
    expect_nothing_left(&pool);
    umem_dtor(&pool);
    umem_dtor(&gate);
  }
}

/* A chunk has room for three of these blocks, and there is room for two chunks. */
TEST_CASE(the_maximum_is_no_reason_while_memory_comes) {
  Gate gate;
  umemPool pool;
  open_gate(&gate, &host);
  open_pool(&pool, &gate, 0, 0, 2 * mebi);
  expect_all_served(&gate, &pool, 6, 300 * kibi);
  assert_true(stats_of(&pool).reserved_peak == 2 * mebi);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
  umem_dtor(&gate);
}

/* The whole chunk is the first one's block: the other one fails when that has come, not before. */
TEST_CASE(waits_for_what_will_not_suffice) {
  Gate gate;
  umemPool pool;
  Taker takers[2];
  unsigned begun = 0;
  open_gate(&gate, &host);
  open_pool(&pool, &gate, 0, 0, mebi);
  start(&takers[0], &pool, mebi, &begun);
  await_asked(&gate, 1);
  start(&takers[1], &pool, 100, &begun);
  let_them_come(&begun, 2);
  __atomic_store_n(&gate.open, true, __ATOMIC_RELEASE);
  for (int i = 0; i < 2; i++) pthread_join(takers[i].thread, NULL);
  assert_true(takers[0].adr != 0 && takers[1].adr == 0);
  assert_int_equal(umem_get_status(&pool), umemMemoryError);
  assert_non_null(strstr(umem_get_message(&pool), "the pool holds 1048576 of at most 1048576"));
  umem_clear_status(&pool);
  umem_free(&pool, takers[0].adr);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
  umem_dtor(&gate);
}

TEST_CASE(a_limit_below_is_no_reason_either) {
  Gate gate;
  umemLimit limit;
  umemPool pool;
  open_gate(&gate, &host);
  assert_ok(umemLimit_ctor(&limit, &gate, mebi));
  open_pool(&pool, &limit, 0, 0, 0);
  expect_all_served(&gate, &pool, 16, 100);
  assert_true(umem_is_ok(&limit));
  assert_int_equal(gate.asked, 1);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
  umem_dtor(&limit);
  umem_dtor(&gate);
}

/* Each pool's upstream uses the other pool, at once: one of them waits for the other one at
 * most. */
TEST_CASE(upstreams_may_use_each_others_pools) {
  Gate gates[2];
  umemPool pools[2];
  Taker takers[2];
  unsigned helped = 0;
  for (int i = 0; i < 2; i++) {
    open_gate(&gates[i], &host);
    gates[i].open = true;
    gates[i].helper = &pools[1 - i];
    gates[i].helped = &helped;
    assert_ok(umemPool_ctor(&pools[i], &gates[i], NULL));
  }
  for (int i = 0; i < 2; i++) start(&takers[i], &pools[i], 100, NULL);
  for (int i = 0; i < 2; i++) pthread_join(takers[i].thread, NULL);
  for (int i = 0; i < 2; i++) {
    assert_true(takers[i].adr != 0);
    umem_free(&pools[i], takers[i].adr);
    expect_nothing_left(&pools[i]);
  }
  for (int i = 0; i < 2; i++) umem_dtor(&pools[i]);
  for (int i = 0; i < 2; i++) umem_dtor(&gates[i]);
}

/* ---- fork ---- */

/* What is on its way comes to the parent alone, and only there somebody waits for it. The blocks
 * are so large that no thread keeps any: then the records end with the pool. */
static bool works_in_child(Gate *gate, umemPool *pool) {
  gate->open = true;
  uintptr_t adr = umem_alloc(pool, 100 * kibi);
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  if (!adr || umemPool_stats(pool, &stats) != umemOK) return false;
  if (stats.reserved != mebi || stats.reserved_peak != mebi || stats.chunks != 1) return false;
  umem_free(pool, adr);
  if (umem_trim(pool, 0) != umemOK || umemPool_stats(pool, &stats) != umemOK) return false;
  umem_dtor(pool);
  return stats.reserved == 0;
}

TEST_CASE(a_child_does_not_wait) {
  Gate gate;
  umemPool pool;
  Taker takers[4];
  unsigned begun = 0;
  int status = -1;
  open_gate(&gate, &host);
  open_pool(&pool, &gate, 0, 0, mebi);
  start(&takers[0], &pool, 100 * kibi, &begun);
  await_asked(&gate, 1);
  for (int i = 1; i < 4; i++) start(&takers[i], &pool, 100 * kibi, &begun);
  let_them_come(&begun, 4);
  pid_t child = fork();
  if (child == 0) _exit(works_in_child(&gate, &pool) ? 0 : 1);
  bool right = child > 0 && waitpid(child, &status, 0) == child && status == 0;
  __atomic_store_n(&gate.open, true, __ATOMIC_RELEASE);
  for (int i = 0; i < 4; i++) pthread_join(takers[i].thread, NULL);
  assert_true(right);
  for (int i = 0; i < 4; i++) {
    assert_true(takers[i].adr != 0);
    umem_free(&pool, takers[i].adr);
  }
  expect_nothing_left(&pool);
  umem_dtor(&pool);
  umem_dtor(&gate);
}

int main(void) {
  umemHost_ctor(&host);
  return run_cases(NULL, NULL);
}
