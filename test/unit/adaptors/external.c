/* external.c - umem/external.h: what allocators of others are asked, and what they do wrong. */
#include "adaptor_help.h"

#include "cuda_double.h"

/* An allocator that cuts blocks from an arena, and writes down what it is asked for. */
typedef struct Arena {
  _Alignas(65536) unsigned char bytes[1 << 17];
  size_t used, live, released;
  size_t nbytes, alignment; /* of the last call */
  uintptr_t stream;
  void *next; /* is returned instead, once */
  bool is_empty;
  umemStatusType failure;  /* is recorded by the next call */
  int inside, most_inside; /* atomic: threads in a function */
} Arena;

static Arena arena;

static void enter_arena(Arena *self, size_t nbytes, size_t alignment, uintptr_t stream) {
  int inside = __atomic_add_fetch(&self->inside, 1, __ATOMIC_SEQ_CST);
  if (inside > __atomic_load_n(&self->most_inside, __ATOMIC_SEQ_CST))
    __atomic_store_n(&self->most_inside, inside, __ATOMIC_SEQ_CST);
  self->nbytes = nbytes;
  self->alignment = alignment;
  self->stream = stream;
  if (self->failure != umemOK) umem_set_status(NULL, self->failure, "the arena is on fire");
  self->failure = umemOK;
}

static void *arena_get(void *user, size_t nbytes, size_t alignment, uintptr_t stream) {
  Arena *self = user;
  enter_arena(self, nbytes, alignment, stream);
  size_t begin = (self->used + alignment - 1) & ~(alignment - 1);
  void *block = self->bytes + begin;
  if (self->next) {
    block = self->next;
    self->next = NULL;
    self->live++;
  } else if (self->is_empty || begin > sizeof self->bytes || nbytes > sizeof self->bytes - begin) {
    block = NULL;
  } else {
    self->used = begin + nbytes;
    self->live++;
  }
  __atomic_sub_fetch(&self->inside, 1, __ATOMIC_SEQ_CST);
  return block;
}

static void arena_give(void *user, void *block, size_t nbytes, size_t alignment, uintptr_t stream) {
  Arena *self = user;
  enter_arena(self, nbytes, alignment, stream);
  assert_non_null(block);
  self->live--;
  __atomic_sub_fetch(&self->inside, 1, __ATOMIC_SEQ_CST);
}

static void arena_release(void *user) { ((Arena *)user)->released++; }

static umemExternalOptions arena_options(void) {
  umemExternalOptions options = UMEM_EXTERNAL_OPTIONS_INIT;
  memset(&arena, 0, sizeof arena);
  options.allocate = arena_get;
  options.deallocate = arena_give;
  options.release = arena_release;
  options.user = &arena;
  return options;
}

static umemExternal external;

static void open_arena(void) {
  umemExternalOptions options = arena_options();
  assert_ok(umemExternal_ctor(&external, &host, &options));
}

static void close_arena(void) {
  umem_clear_status(&external);
  umem_dtor(&external);
  assert_int_equal(arena.live, 0);
  assert_int_equal(arena.released, 1);
  umem_thread_clear();
}

/* ---- what it gets to see ---- */

TEST(sizes_and_alignments_are_those_of_the_request) {
  open_arena();
  uintptr_t adr = umem_alloc(&external, 100), more = umem_aligned_alloc(&external, 4096, 7);
  assert_int_equal(arena.nbytes, 7);
  assert_int_equal(arena.alignment, 4096);
  assert_true(arena.stream == UMEM_EXTERNAL_NO_STREAM);
  umem_free(&external, adr);
  assert_int_equal(arena.nbytes, 100);
  assert_int_equal(arena.alignment, host.super.alignment);
  umem_aligned_free(&external, more);
  assert_int_equal(arena.nbytes, 7);
  assert_int_equal(arena.alignment, 4096);
  close_arena();
}

TEST(an_allocator_that_does_not_align_gets_larger_requests) {
  umemExternalOptions options = arena_options();
  options.alignment = 8;
  options.no_alignment = 1;
  assert_ok(umemExternal_ctor(&external, &host, &options));
  assert_int_equal(external.super.alignment, 8);
  uintptr_t adr = umem_aligned_alloc(&external, 1024, 100);
  assert_int_equal(adr % 1024, 0);
  assert_int_equal(arena.alignment, 8);
  assert_int_equal(arena.nbytes, 100 + 1023);
  umem_aligned_free(&external, adr);
  close_arena();
}

TEST(blocks_are_found_and_counted) {
  open_arena();
  umemFound found = UMEM_FOUND_INIT;
  umem_set_label(&external, "arena");
  uintptr_t adr = umem_alloc(&external, 100);
  assert_true(umem_find(adr + 99, &found));
  assert_ptr_equal(found.ctx, &external);
  assert_true(found.adr == adr && found.nbytes == 100);
  assert_false(umem_find(adr + 100, &found));
  char text[1000];
  umem_describe_contexts(text, sizeof text);
  assert_non_null(strstr(text, "arena"));
  umem_free(&external, adr);
  assert_false(umem_find(adr, &found));
  close_arena();
}

TEST(live_blocks_are_freed_at_the_end) {
  open_arena();
  for (size_t i = 1; i < 100; i++) assert_true(umem_alloc(&external, i) != 0);
  assert_int_equal(arena.live, 99);
  close_arena();
}

TEST(a_block_that_its_owner_leaves_is_not_freed) {
  open_arena();
  uintptr_t adr = umem_alloc(&external, 100);
  umemVirtual_leave(&external.super, adr, false);
  umem_dtor(&external);
  assert_int_equal(arena.live, 1);
}

TEST(adaptors_and_pools_go_over_it) {
  umemLimit limit;
  umemStats stats;
  umemPool pool;
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.initial = options.growth = 4096;
  open_arena();
  assert_ok(umemStats_ctor(&stats, &external));
  assert_ok(umemLimit_ctor(&limit, &stats, 30000));
  assert_ok(umemPool_ctor(&pool, &limit, &options));
  uintptr_t adr = umem_alloc(&pool, 100);
  assert_true(adr >= (uintptr_t)arena.bytes && adr < (uintptr_t)(arena.bytes + sizeof arena.bytes));
  assert_int_equal(umem_alloc(&pool, 40000), 0);
  assert_non_null(strstr(umem_thread_message(), "30000"));
  umem_clear_status(&limit), umem_clear_status(&pool);
  assert_ok(umemStats_get(&stats, &figures));
  assert_true(figures.current_bytes >= 4096);
  umem_dtor(&pool), umem_dtor(&limit), umem_dtor(&stats);
  close_arena();
}

/* ---- what it may do wrong ---- */

TEST(no_block_is_out_of_memory) {
  open_arena();
  arena.is_empty = true;
  assert_int_equal(umem_alloc(&external, 100), 0);
  expect_failure(&external, umemMemoryError,
                 "umem_alloc: the allocator has no block of 100 bytes at a multiple of");
  close_arena();
}

TEST(what_it_records_is_the_failure_of_the_request) {
  open_arena();
  arena.failure = umemIOError;
  assert_int_equal(umem_alloc(&external, 100), 0);
  expect_failure(&external, umemIOError, "the arena is on fire");
  assert_int_equal(arena.live, 0); /* it had returned a block */
  umem_clear_status(&external), umem_thread_clear();
  uintptr_t adr = umem_alloc(&external, 100);
  uint64_t before = umem_thread_failures();
  arena.failure = umemRuntimeError;
  umem_free(&external, adr);
  assert_true(umem_thread_failures() == before + 1);
  assert_int_equal(umem_get_status(&external), umemRuntimeError);
  close_arena();
}

TEST(a_wrong_multiple_goes_back) {
  open_arena();
  arena.next = arena.bytes + 3;
  assert_int_equal(umem_aligned_alloc(&external, 64, 10), 0);
  expect_failure(&external, umemRuntimeError, "which is not a multiple of 64");
  assert_int_equal(arena.live, 0);
  close_arena();
}

TEST(a_block_that_is_live_is_refused) {
  open_arena();
  uintptr_t adr = umem_alloc(&external, 100);
  static const ptrdiff_t shifts[] = {-64, 0, 64};
  for (size_t i = 0; i < 3; i++) {
    arena.next = (void *)(adr + (uintptr_t)shifts[i]);
    assert_int_equal(umem_alloc(&external, 100), 0);
    expect_failure(&external, umemRuntimeError, "which overlap the live block of 100");
    arena.live--; /* it never had this one */
    umem_clear_status(&external), umem_thread_clear();
  }
  umem_free(&external, adr);
  assert_true(umem_is_ok(&external));
  close_arena();
}

TEST(a_free_of_what_is_no_block_reaches_no_allocator) {
  open_arena();
  uintptr_t adr = umem_alloc(&external, 100);
  umem_free(&external, adr + 1);
  expect_failure(&external, umemValueError, "is no live block");
  umem_free(&external, adr);
  umem_clear_status(&external), umem_thread_clear();
  umem_free(&external, adr);
  expect_failure(&external, umemValueError, "it is free already");
  assert_int_equal(arena.live, 0);
  assert_int_equal(umem_realloc(&external, adr, 100, 200), 0);
  expect_failure(&external, umemValueError, "is no live block");
  close_arena();
}

TEST(options_that_cannot_be_are_refused) {
  umemExternalOptions options = arena_options();
  options.deallocate = NULL;
  expect_status(&external, umemExternal_ctor(&external, &host, &options), umemValueError,
                "deallocate");
  options = arena_options();
  options.alignment = 24;
  expect_status(&external, umemExternal_ctor(&external, &host, &options), umemValueError, "24");
  options = arena_options();
  expect_status(&external, umemExternal_ctor(&external, &offsets, &options), umemNotSupportedError,
                "offsets");
  expect_status(&external, umemExternal_ctor(&external, &host, NULL), umemValueError, "allocate");
  assert_int_equal(arena.released, 0);
}

/* ---- threads and children ---- */

static void *allocate_often(void *unused UNUSED) {
  for (int i = 0; i < 500; i++) {
    uintptr_t adr = umem_alloc(&external, 16);
    if (!adr) return (void *)1;
    umem_free(&external, adr);
  }
  return NULL;
}

TEST(a_serial_allocator_has_one_thread_inside) {
  umemExternalOptions options = arena_options();
  options.serial = 1;
  options.alignment = 16;
  assert_ok(umemExternal_ctor(&external, &host, &options));
  run_at_once(4, allocate_often, NULL, 0);
  assert_int_equal(arena.most_inside, 1);
  close_arena();
}

static void *free_there(void *adr) {
  umem_free(&external, (uintptr_t)adr);
  return umem_thread_status() == umemOK ? NULL : adr;
}

TEST(another_thread_may_free) {
  open_arena();
  run_at_once(1, free_there, (void *)umem_alloc(&external, 100), 0);
  assert_int_equal(arena.live, 0);
  close_arena();
}

/* ---- on a GPU ---- */

TEST(the_stream_of_the_upstream_is_passed_through) {
  umemCudaAsync queue;
  umemCuda plain;
  umemExternalOptions options = arena_options();
  begin_double();
  assert_ok(umemCudaAsync_ctor(&queue, 0, UMEM_STREAM_NEW));
  assert_ok(umemExternal_ctor(&external, &queue, &options));
  uintptr_t adr = umem_alloc(&external, 256);
  assert_true(arena.stream == umemCudaAsync_stream(&queue));
  arena.stream = 0;
  umem_free(&external, adr);
  assert_true(arena.stream == umemCudaAsync_stream(&queue));
  close_arena();
  umem_dtor(&queue);

  assert_ok(umemCuda_ctor(&plain, 0));
  options = arena_options();
  assert_ok(umemExternal_ctor(&external, &plain, &options));
  adr = umem_alloc(&external, 256);
  assert_true(arena.stream == UMEM_EXTERNAL_NO_STREAM);
  umem_free(&external, adr);
  close_arena();
  umem_dtor(&plain);
  end_double();
}

static bool child_allocates(umemStatusType expected) {
  uintptr_t adr = umem_alloc(&external, 100);
  bool right = expected == umemOK ? adr != 0 : !adr && umem_thread_status() == expected;
  umem_thread_clear();
  umem_dtor(&external);
  return right;
}

static void expect_child(umemStatusType expected, size_t released) {
  IN_CHILD EXPECT(child_allocates(expected) && arena.released == released);
}

TEST(a_child_may_use_ram_and_no_gpu) {
  umemCuda gpu;
  open_arena();
  umem_alloc(&external, 100);
  expect_child(umemOK, 1);
  close_arena();

  umemExternalOptions options = arena_options();
  begin_double();
  assert_ok(umemCuda_ctor(&gpu, 0));
  assert_ok(umemExternal_ctor(&external, &gpu, &options));
  uintptr_t adr = umem_alloc(&external, 256);
  expect_child(umemNotSupportedError, 0);
  umem_free(&external, adr);
  close_arena();
  umem_dtor(&gpu);
  end_double();
}
