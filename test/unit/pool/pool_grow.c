/* pool_grow.c - many threads, and an upstream that takes its time: none may fail while memory is on
 * its way, and none asks for what another one is asking for. */
#include "pool_help.h"

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

static uintptr_t gate_aligned_origin(umemVirtual *ctx UNUSED, uintptr_t adr) { return adr; }

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

/* ---- threads that each take one block ---- */

typedef struct Taker {
  umemPool *pool;
  size_t nbytes;
  uintptr_t adr;
  pthread_t thread;
} Taker;

static Gate gate; /* of most tests */
static Taker takers[16];
static unsigned begun; /* atomic: takers */

static void *take(void *argument) {
  Taker *self = argument;
  __atomic_add_fetch(&begun, 1, __ATOMIC_ACQ_REL);
  self->adr = umem_alloc(self->pool, self->nbytes);
  return NULL;
}

static void start(unsigned i, umemPool *of, size_t nbytes) {
  takers[i] = (Taker){.pool = of, .nbytes = nbytes};
  takers[i].thread = start_thread(take, &takers[i]);
}

/* One takes `first` bytes of the pool. While it waits for the gate, the others come. They have so
 * long that they come to where they wait; none of the tests needs that they do. */
static void start_all(unsigned count, size_t first, size_t nbytes) {
  begun = 0;
  start(0, &pool, first);
  while (!__atomic_load_n(&gate.asked, __ATOMIC_ACQUIRE)) sched_yield();
  for (unsigned i = 1; i < count; i++) start(i, &pool, nbytes);
  while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) < count) sched_yield();
  usleep(20000);
}

static void let_in(unsigned count) {
  __atomic_store_n(&gate.open, true, __ATOMIC_RELEASE);
  for (unsigned i = 0; i < count; i++) join_thread(takers[i].thread);
}

/* All have a block, which is freed. */
static void free_all(unsigned count) {
  for (unsigned i = 0; i < count; i++) assert_true(takers[i].adr != 0);
  for (unsigned i = 0; i < count; i++) umem_free(takers[i].pool, takers[i].adr);
  for (unsigned i = 0; i < count; i++) assert_true(umem_is_ok(takers[i].pool));
}

static void open_behind_gate(size_t maximum) {
  open_gate(&gate, &host);
  open_pool(&pool, &gate, 0, 0, maximum);
}

static void close_both(void) {
  close_pool(&pool);
  umem_dtor(&gate);
}

static void expect_all_served(unsigned count, size_t nbytes, uint64_t peak) {
  start_all(count, nbytes, nbytes);
  let_in(count);
  free_all(count);
  assert_int_equal(stats_of(&pool).reserved_peak, peak);
}

TEST(one_chunk_is_for_all) {
  size_t const maxima[] = {0, mebi};
  for (size_t k = 0; k < 2; k++) {
    open_behind_gate(maxima[k]);
    expect_all_served(16, 100, mebi);
    assert_int_equal(gate.asked, 1);
    close_both();
  }
}

/* A chunk has room for three of these blocks, and there is room for two chunks. */
TEST(the_maximum_is_no_reason_while_memory_comes) {
  open_behind_gate(2 * mebi);
  expect_all_served(6, 300 * kibi, 2 * mebi);
  close_both();
}

/* The whole chunk is the first one's block: the other one fails when that has come, not before. */
TEST(waits_for_what_will_not_suffice) {
  open_behind_gate(mebi);
  start_all(2, mebi, 100);
  let_in(2);
  assert_true(takers[0].adr != 0 && takers[1].adr == 0);
  assert_int_equal(umem_get_status(&pool), umemMemoryError);
  assert_non_null(strstr(umem_get_message(&pool), "the pool holds 1048576 of at most 1048576"));
  umem_clear_status(&pool);
  free_all(1);
  close_both();
}

TEST(a_limit_below_is_no_reason_either) {
  umemLimit limit;
  open_gate(&gate, &host);
  assert_ok(umemLimit_ctor(&limit, &gate, mebi));
  open_pool(&pool, &limit, 0, 0, 0);
  expect_all_served(16, 100, mebi);
  assert_true(umem_is_ok(&limit));
  assert_int_equal(gate.asked, 1);
  close_pool(&pool);
  DESTRUCT(&limit, &gate);
}

/* Each pool's upstream uses the other pool, at once: one of them waits for the other one at
 * most. */
TEST(upstreams_may_use_each_others_pools) {
  Gate gates[2];
  umemPool pools[2];
  unsigned helped = 0;
  for (int i = 0; i < 2; i++) {
    open_gate(&gates[i], &host);
    gates[i].open = true;
    gates[i].helper = &pools[1 - i];
    gates[i].helped = &helped;
    assert_ok(umemPool_ctor(&pools[i], &gates[i], NULL));
  }
  for (unsigned i = 0; i < 2; i++) start(i, &pools[i], 100);
  let_in(2);
  free_all(2);
  for (int i = 0; i < 2; i++) close_pool(&pools[i]);
  for (int i = 0; i < 2; i++) umem_dtor(&gates[i]);
}

/* ---- fork ---- */

/* What is on its way comes to the parent alone, and only there somebody waits for it. The blocks
 * are so large that no thread keeps any: then the records end with the pool. */
static bool works_in_child(void) {
  gate.open = true;
  uintptr_t adr = umem_alloc(&pool, 100 * kibi);
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  if (!adr || umemPool_stats(&pool, &stats) != umemOK) return false;
  if (stats.reserved != mebi || stats.reserved_peak != mebi || stats.chunks != 1) return false;
  umem_free(&pool, adr);
  if (umem_trim(&pool, 0) != umemOK || umemPool_stats(&pool, &stats) != umemOK) return false;
  umem_dtor(&pool);
  return stats.reserved == 0;
}

TEST(a_child_does_not_wait) {
  open_behind_gate(mebi);
  start_all(4, 100 * kibi, 100 * kibi);
  pid_t child = fork();
  if (child == 0) _exit(works_in_child() ? 0 : 1);
  int status = child_wait(child);
  let_in(4);
  assert_int_equal(status, 0);
  free_all(4);
  close_both();
}
