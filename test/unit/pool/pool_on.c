/* pool_on.c - views of a pool: what they are, what they share, and what they leave. */
#include "pool_on_help.h"

/* ---- construction ---- */

TEST_OF_BOTH(a_view_is_a_context_of_its_queue) {
  open_shared(is_ordered, 0);
  assert_string_equal(umem_get_device_name(&s.a), "PoolOn");
  assert_true(s.a.super.capabilities & umemOrdered);
  assert_true(s.a.super.capabilities & umemConcurrent);
  assert_int_equal(s.a.super.alignment, clockGrain);
  assert_ptr_equal(queue_under(&s.a), &s.queue[0]);
  assert_true(umem_is_same_device(&s.a, &s.b) && umem_is_same_device(&s.pool, &s.a));
  assert_int_equal(clocks_allocated(s.clocks), 0); /* and it costs nothing */
  assert_int_equal(clocks_waits(s.clocks), 0);
  umemInfo info = info_of(&s.a);
  assert_int_equal(info.alignment, clockGrain);
  assert_ok(umem_set(&s.a, umem_alloc(&s.a, 100), 0, 100)); /* by its own queue */
}

TEST_OF_VIEWS(what_cannot_be_constructed) {
  umemPoolOn view;
  open_shared(true, 0);
  assert_int_equal(umemPoolOn_ctor(NULL, &s.pool, &s.queue[0]), umemValueError);
  expect_status(&view, umemPoolOn_ctor(&view, NULL, &s.queue[0]), umemValueError,
                "umemPoolOn_ctor: the pool is NULL");
  expect_status(&view, umemPoolOn_ctor(&view, &s.pool, NULL), umemValueError, "umemPoolOn_ctor: ");
  expect_status(&view, umemPoolOn_ctor(&view, (umemPool *)(void *)&s.a, &s.queue[0]), umemTypeError,
                "umemPoolOn_ctor: this PoolOn is no pool");
  expect_status(
      &view, umemPoolOn_ctor(&view, &s.pool, &host), umemValueError,
      "umemPoolOn_ctor: this Host is not in the memory of the pool, which stands on ClockQueue");
  assert_true(umem_alloc(&view, 1) == 0);
  umem_dtor(&view);
  assert_int_equal(umemPoolOn_ctor((umemPoolOn *)(void *)&s.pool, &s.pool, &host), umemValueError);
  open_pool(&pool, &s.base, 0, 0, 0);
  umem_dtor(&pool);
  expect_status(&view, umemPoolOn_ctor(&view, &pool, &s.queue[0]), umemValueError,
                "the pool is not constructed");
  umem_thread_clear();
  assert_true(umem_is_ok(&s.pool));
}

TEST_OF_PAGES(a_queue_need_not_be_ordered) {
  umemHost other;
  assert_ok(umemHost_ctor(&other));
  CONTEXT(umemPoolOn, view, &pool, &other);
  assert_false(view.super.capabilities & umemOrdered);
  for (size_t i = 0; i < some; i++) {
    uintptr_t adr = umem_calloc(&view, 1, some_sizes[i]);
    assert_true(adr);
    assert_true(*(char *)adr == 0);
    memset((void *)adr, 7, some_sizes[i]);
    adr = umem_realloc(&view, adr, some_sizes[i], 2 * some_sizes[i]);
    assert_true(*(char *)adr == 7);
    umem_free(&pool, adr);
  }
  assert_true(umem_is_ok(&view) && umem_is_ok(&pool));
}

/* ---- live blocks ---- */

TEST_OF_VIEWS(live_blocks_belong_to_the_pool) {
  open_shared(true, 0);
  for (size_t i = 0; i < some; i++) {
    uintptr_t adr = new_used(&s.a, some_sizes[i]);
    assert_true(umem_aligned_origin(&s.b, adr) == adr);
    assert_int_equal(stats_of(&s.pool).blocks, 1);
    umem_free(&s.c, adr + 8);
    expect_failure(&s.c, umemValueError, "is not a live block of the pool");
    free_elsewhere(&s.a, &s.b, adr, some_sizes[i]);
    umem_free(&s.a, adr);
    expect_failure(&s.a, umemValueError, "is not a live block of the pool");
    expect_no_block(&s.c, umem_aligned_origin(&s.c, adr), umemValueError,
                    "is not a live block of the pool");
    assert_int_equal(stats_of(&s.pool).blocks, 0);
  }
  DESTRUCT(&s.a, &s.b, &s.c);
  expect_nothing_left(&s.pool);
}

/* ---- sharing ---- */

TEST_OF_VIEWS(a_view_that_has_enough_waits_for_nobody) {
  open_shared(true, 0);
  for (int round = 0; round < 100; round++) {
    for (size_t i = 0; i < some; i++) umem_free(&s.a, new_used(&s.a, some_sizes[i]));
    if (round == 2) {
      unsigned long waits = clocks_waits(s.clocks);
      for (size_t i = 0; i < some; i++) umem_free(&s.a, new_used(&s.a, some_sizes[i]));
      assert_int_equal(clocks_waits(s.clocks), waits);
    }
  }
  assert_true(clocks_waits(s.clocks) <= 4); /* one for each chunk, for the upstream */
}

/* What one frees another gets, with one wait, and no second chunk. */
TEST_OF_VIEWS(one_wait_is_enough) {
  for (size_t i = 0; i < some; i++) {
    open_shared(false, 0);
    umem_free(&s.a, new_used(&s.a, 4 * mebi));
    umem_free(&s.a, new_used(&s.a, some_sizes[i]));
    for (size_t k = 0; k < 20 && (k + 1) * some_sizes[i] < mebi; k++)
      umem_free(&s.b, new_used(&s.b, some_sizes[i]));
    assert_int_equal(clocks_waits(s.clocks), some_sizes[i] < mebi ? 1 : 0);
    assert_int_equal(stats_of(&s.pool).chunks, 1);
    close_shared();
  }
}

/* With a maximum: as many blocks as the first, whoever had them before and in whatever sizes. */
TEST_OF_BOTH(nobody_hoards) {
  enum { most = 4000 };
  static uintptr_t adr[most];
  open_shared(is_ordered, 4 * mebi);
  void *views[] = {&s.a, &s.b, &s.c, &s.pool};
  size_t const sizes[] = {256, 5000, 300, 60000, 100000, mebi, 4 * mebi, 2000};
  for (size_t i = 0; i < 32; i++) {
    void *view = views[i % 4];
    size_t size = sizes[(i * 3) % 8], n = 0;
    while (n < most && (adr[n] = umem_alloc(view, size)) != 0) {
      clock_use(queue_under(view), adr[n], size);
      n++;
    }
    if (n < most) expect_failure(view, umemMemoryError, "at most 4194304");
    assert_true(n == most || n * size > 3000 * kibi);
    if (!is_ordered && view == &s.pool) assert_true(umem_is_ok(&s.pool));
    while (n) umem_free(view, adr[--n]);
  }
}

/* Of large blocks that wait for the next of their size each has few, but all together have many. */
TEST_OF_VIEWS(little_waits_in_many_views) {
  umemPoolOn views[5];
  open_shared(false, 0);
  open_pool(&pool, &s.base, 0, mebi, 0);
  for (int i = 0; i < 5; i++) assert_ok(umemPoolOn_ctor(&views[i], &pool, &s.queue[i]));
  uintptr_t live = new_used(&views[4], 40 * mebi), adr[8];
  for (int i = 0; i < 8; i++) adr[i] = new_used(&views[i / 2], mebi);
  assert_int_equal(stats_of(&pool).chunks, 9);
  for (int i = 0; i < 8; i++) umem_free(&views[i / 2], adr[i]);
  umem_free(&views[4], new_used(&views[4], mebi / 2));
  assert_int_equal(stats_of(&pool).chunks, 9);
  umem_free(&views[4], live);
  for (int i = 0; i < 5; i++) umem_dtor(&views[i]);
  umem_dtor(&pool);
}

/* A span from which two have taken, and to which two have freed. */
TEST_OF_BOTH(mixed_spans_are_waited_for) {
  enum { size = 4096, count = 16 }; /* a span of one page */
  uintptr_t adr[count];
  open_shared(is_ordered, 64 * kibi);
  for (int i = 0; i < count; i++) adr[i] = new_used(&s.a, size);
  for (int i = 0; i < 8; i++) umem_free(&s.a, adr[i]);
  empty_caches(&s.a);
  for (int i = 8; i < 14; i++) free_elsewhere(&s.a, &s.b, adr[i], size);
  empty_caches(&s.b);
  unsigned long waits = clocks_waits(s.clocks);
  for (int i = 0; i < 14; i++) adr[i] = new_used(&s.c, size);
  assert_int_equal(clocks_waits(s.clocks), waits + 2);
  expect_no_block(&s.b, umem_alloc(&s.b, size), umemMemoryError, "no room for 4096 bytes");
  for (int i = 0; i < 14; i++) umem_free(&s.c, adr[i]);
  FREE(&s.a, adr[14], adr[15]);
  empty_caches(&s.c);
  empty_caches(&s.a); /* all of it is free, of a and of c */
  assert_ok(umem_trim(&s.pool, 0));
  assert_int_equal(stats_of(&s.pool).reserved, 0);
}

/* The large block of one, too large to have a descriptor of its own, freed by another. */
TEST_OF_VIEWS(a_range_goes_to_whom_it_is_freed_by) {
  open_shared(true, 6 * mebi);
  uintptr_t adr = new_used(&s.a, 5 * mebi);
  free_elsewhere(&s.a, &s.b, adr, 5 * mebi);
  umem_free(&s.c, adr);
  expect_failure(&s.c, umemValueError, "is not a live block");
  unsigned long waits = clocks_waits(s.clocks);
  umem_free(&s.b, new_used(&s.b, 5 * mebi)); /* for nothing */
  assert_int_equal(clocks_waits(s.clocks), waits);
  umem_free(&s.a, new_used(&s.a, 5 * mebi)); /* after b */
  assert_int_equal(clocks_waits(s.clocks), waits + 1);
}

/* ---- ends ---- */

TEST_OF_BOTH(a_view_leaves_its_memory_to_the_pool) {
  uintptr_t live[some];
  open_shared(is_ordered, 4 * mebi);
  for (size_t i = 0; i < some; i++) {
    uintptr_t adr = new_used(&s.a, some_sizes[i]);
    live[i] = new_used(&s.a, some_sizes[i]);
    umem_free(&s.a, adr);
  }
  DESTRUCT(&s.a, &s.queue[0]);
  assert_int_equal(stats_of(&s.pool).blocks, some);
  for (size_t i = 0; i < some; i++) { /* for the next ones */
    uintptr_t adr = umem_alloc(&s.pool, some_sizes[i]);
    clock_use(&s.base, adr, some_sizes[i]);
    umem_free(&s.pool, adr);
    umem_free(&s.b, new_used(&s.b, some_sizes[i]));
  }
  for (size_t i = 0; i < some; i++) umem_free(&s.pool, live[i]);
  assert_ok(umem_trim(&s.pool, 0));
  assert_int_equal(stats_of(&s.pool).reserved, 0);
}

/* Another view gets the name of one that has ended, but not its order. */
TEST_OF_VIEWS(the_dead_are_waited_for) {
  enum { size = 4096, count = 16 };
  uintptr_t adr[count];
  open_shared(true, 64 * kibi);
  for (int i = 0; i < count; i++) adr[i] = new_used(&s.a, size);
  umem_free(&s.a, adr[0]);
  empty_caches(&s.a);
  free_elsewhere(&s.a, &s.b, adr[1], size);
  umem_dtor(&s.b); /* to a span that is mixed by that */
  CONTEXT(umemPoolOn, next, &s.pool, &s.queue[3]);
  new_used(&s.c, size);
  new_used(&s.c, size);
}

TEST_OF_VIEWS(many_views_come_and_go) {
  enum { count = 150 };
  static umemPoolOn views[count];
  static uintptr_t adr[count];
  open_shared(true, 0);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < count; i++)
      assert_ok(umemPoolOn_ctor(&views[i], &s.pool, &s.queue[(i + round) % 5]));
    for (int i = 0; i < count; i++) adr[i] = new_used(&views[i], 3000);
    for (int i = 0; i < count; i++)
      free_elsewhere(&views[i], &views[(i * 7 + 1) % count], adr[i], 3000);
    for (int i = 0; i < count; i++) empty_caches(&views[i]);
    for (int i = 0; i < count; i++) adr[i] = new_used(&views[count - 1 - i], 3000);
    for (int i = 0; i < count; i++) umem_free(&views[count - 1 - i], adr[i]);
    for (int i = 0; i < count; i++) umem_dtor(&views[i]);
    assert_true(stats_of(&s.pool).reserved <= 4 * mebi);
  }
}

TEST_OF_VIEWS(a_view_may_outlive_its_pool) {
  open_shared(true, 0);
  char const *words = "the pool of this view was destructed before it";
  uintptr_t small = new_used(&s.a, 100), large = new_used(&s.a, mebi);
  umem_free(&s.a, new_used(&s.a, 100));
  assert_ok(umem_wait(&s.base, &s.queue[0]));
  umem_dtor(&s.pool);
  expect_no_block(&s.a, umem_alloc(&s.a, 100), umemValueError, words);
  expect_no_block(&s.a, umem_alloc(&s.a, mebi), umemValueError, words);
  umem_free(&s.a, small);
  expect_failure(&s.a, umemValueError, words);
  umem_free(&s.b, large);
  expect_failure(&s.b, umemValueError, words);
  expect_no_block(&s.a, umem_realloc(&s.a, small, 100, 50), umemValueError, "is not a live block");
  expect_status(&s.a, umem_trim(&s.a, 0), umemValueError, words);
  umemInfo info = UMEM_INFO_INIT;
  expect_status(&s.a, umem_get_info(&s.a, &info), umemValueError, words);
}

/* What waits with another view, too little to be looked for before the pool would grow, is had when
 * it may not; though no chunk can go back. */
TEST_OF_VIEWS(the_last_of_others_is_had_at_the_maximum) {
  open_shared(true, 4 * mebi);
  uintptr_t waits = new_used(&s.a, 200 * kibi), stays = new_used(&s.a, 100 * kibi);
  uintptr_t large = new_used(&s.b, 3 * mebi), rest = new_used(&s.b, 724 * kibi);
  assert_true(stats_of(&s.pool).reserved == 4 * mebi);
  umem_free(&s.a, waits);
  uintptr_t again = new_used(&s.b, 200 * kibi);
  assert_true(again == waits && umem_is_ok(&s.pool));
  FREE(&s.b, again, rest, large);
  umem_free(&s.a, stays);
}
