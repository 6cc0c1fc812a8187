/* adaptor.c - what holds for every adaptor: what it takes over, whose its upstream is, how it
 * fails. */
#include "adaptor_kinds.h"

/* ---- tests ---- */

TEST(takes_over_what_upstream_is) {
  FakeAsync ordered;
  umemPool pool;
  assert_ok(fake_async_ctor(&ordered));
  assert_ok(umemPool_ctor(&pool, &fake, NULL));
  assert_true(pool.super.capabilities & umemPromptBlocks);
  umemVirtual *const below[] = {&host.super, &fake.super, &offsets.super, &ordered.super.super,
                                &pool.super};
  FOR_EACH_KIND for (size_t i = 0; i < 5; i++) {
    Any any;
    umemVirtual *ctx = &any.super;
    memset(&any, 0xA5, sizeof any);
    assert_ok(kinds[kind].borrows(ctx, below[i]));
    assert_string_equal(umem_get_device_name(ctx), kinds[kind].name);
    unsigned own = umemSilent | umemPrompt; /* what an adaptor may lack */
    /* Its methods are not those of a pool below. Those of a log are a few stores. */
    assert_true(!(ctx->capabilities & umemPromptBlocks) == (strcmp(kinds[kind].name, "Log") != 0));
    own |= umemPromptBlocks;
    bool guards = strcmp(kinds[kind].name, "Guarded") == 0, apart = guards && i == 0; /* over RAM */
    if (guards) assert_true(ctx->capabilities & umemSeparate);
    own |= (guards ? umemSeparate : 0u) | (apart ? umemFaultable : 0u);
    assert_int_equal(ctx->capabilities & ~own, below[i]->capabilities & ~own);
    assert_false(ctx->capabilities & (umemSilent | umemPrompt) & ~below[i]->capabilities);
    assert_int_equal(ctx->alignment, below[i]->alignment);
    assert_int_equal(ctx->type, below[i]->type);
    assert_ptr_equal(ctx->host, below[i]->host);
    assert_true(umem_null(ctx) == umem_null(below[i]));
    assert_int_equal(umem_is_same_device(ctx, below[i]), !apart);
    assert_ptr_equal(umem_get_upstream(ctx), below[i]);
    assert_int_equal(memcmp(ctx->space, below[i]->space, sizeof ctx->space) == 0, !apart);
    end(ctx);
    assert_non_null(below[i]->vptr); /* borrowed */
  }
  DESTRUCT(&pool, &ordered);
}

/* Functions of one kind, given a context of another. */
TEST(each_kind_knows_its_own) {
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  FOR_EACH_KIND {
    Any any;
    char const *name = kinds[kind].name;
    assert_ok(kinds[kind].borrows(&any, &host));
    for (int k = 0; k < 2; k++) {
      void *ctx = k ? (void *)&any : &host;
      umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
      if (!k || strcmp(name, "Limit") != 0) {
        assert_int_equal(umemLimit_used(ctx), 0);
        expect_failure(ctx, umemTypeError, "is no umemLimit");
      }
      if (!k || strcmp(name, "Stats") != 0) {
        assert_int_equal(umemStats_get(ctx, &figures), umemTypeError);
        assert_int_equal(umemStats_push(ctx), umemTypeError);
        assert_int_equal(umemStats_pop(ctx, &figures), umemTypeError);
        expect_status(ctx, umemStats_reset(ctx), umemTypeError, "is no umemStats");
      }
      if (!k || strcmp(name, "Track") != 0) {
        assert_false(umemTrack_find(ctx, 0, &block));
        expect_failure(ctx, umemTypeError, "is no umemTrack");
        assert_false(umemTrack_next(ctx, 0, &block));
        expect_failure(ctx, umemTypeError, "is no umemTrack");
        assert_int_equal(umemTrack_count(ctx, NULL), 0);
        expect_failure(ctx, umemTypeError, "is no umemTrack");
      }
      if (!k || strcmp(name, "Fault") != 0) {
        assert_int_equal(umemFault_set_plan(ctx, NULL), umemTypeError);
        assert_int_equal(umemFault_count(ctx, umemFaultAll), 0);
        assert_int_equal(umemFault_failures(ctx), 0);
        expect_failure(ctx, umemTypeError, "is no umemFault");
      }
      if (!k || strcmp(name, "Log") != 0) {
        assert_int_equal(umemLog_number(ctx), 0);
        expect_failure(ctx, umemTypeError, "is no umemLog");
      }
      if (k) continue;
      assert_true(umemMMap_offset(ctx, 4096) == UINTPTR_MAX);
      assert_true(umemMMap_address(ctx, 0) == 0);
      expect_failure(ctx, umemTypeError, "this Host is no umemMMap");
    }
    end(&any);
  }
}

static int ends;
static void count_end(umemVirtual *ctx) {
  ends++;
  umemVirtual_fail(ctx, umemIOError, "cannot close");
}

/* An upstream that its adaptor owns ends once, after the adaptor, which reports what failed
 * there. */
TEST(an_adopted_upstream_ends_too) {
  static struct umemVtbl const methods = {.dtor = count_end};
  FOR_EACH_KIND {
    Any any;
    umemVirtual upstream;
    umemVirtual_ctor(&upstream, &host);
    upstream.vptr = &methods;
    ends = 0;
    assert_ok(kinds[kind].adopts(&any, &upstream));
    DESTRUCT(&any, &any);
    assert_int_equal(ends, 1);
    assert_null(upstream.vptr);
    expect_both(&any, &upstream, umemIOError, "umem_dtor: cannot close");
  }
}

TEST(a_failed_constructor_leaves_upstream) {
  umemFile missing;
  umemVirtual zeros;
  memset(&zeros, 0, sizeof zeros);
  assert_int_equal(umemFile_ctor(&missing, "/nonexistent/file", "r"), umemIOError);
  FOR_EACH_KIND for (int i = 0; i < 2; i++) {
    Construct *construct = i ? kinds[kind].adopts : kinds[kind].borrows;
    Any any;
    assert_int_equal(construct(NULL, &host), umemValueError);
    assert_int_equal(construct(&host, &host), umemValueError);
    assert_non_null(host.super.vptr);
    expect_status(&any, construct(&any, NULL), umemValueError, "the upstream is NULL");
    umem_dtor(&any);
    expect_status(&any, construct(&any, &zeros), umemValueError, "the context is not constructed");
    assert_int_equal(construct(&any, &missing), umemIOError); /* with the whole story */
    assert_true(umem_null(&any) == UINTPTR_MAX);
    expect_failure(&any, umemIOError, "cannot open \"/nonexistent/file\"");
    umem_clear_status(&zeros);
  }
}

TEST(failures_are_noted_on_all_layers) {
  FOR_EACH_KIND {
    Any one, two;
    assert_ok(kinds[kind].borrows(&one, &fake));
    assert_ok(kinds[kind].borrows(&two, &one));
    assert_true(umem_alloc(&two, SIZE_MAX / 2) == 0);
    assert_int_equal(umem_get_status(&one), umemMemoryError);
    umem_clear_status(&one);
    expect_both(&two, &fake, umemMemoryError, "umem_alloc: no room for");
    assert_int_equal(umem_set(&two, 4096, 0, 8), umemIndexError);
    umem_clear_status(&one);
    expect_both(&two, &fake, umemIndexError, "umem_set: ");
    umem_free(&two, 4096);
    umem_clear_status(&one);
    umemStatusType type = umem_thread_status(); /* who keeps records refuses */
    assert_int_equal(type, umemValueError);
    umem_clear_status(&fake);
    expect_failure(&two, umemValueError, "umem_free: ");
    umem_aligned_free(&two, 4096);
    umem_clear_status(&one);
    umem_clear_status(&fake);
    expect_failure(&two, umemValueError, "umem_aligned_free: ");
    end(&two);
    end(&one);
  }
}

static int direct_copies;
static struct umemVtbl const *fake_methods;

static bool count_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                         uintptr_t dst_adr, umemLayout const *layout) {
  (void)src_adr, (void)dst_adr, (void)layout;
  bool bare = src->vptr == ctx->vptr && dst->vptr == ctx->vptr;
  direct_copies += bare;
  return bare;
}

/* However many layers there are on either side, the innermost meet. */
static void fail_info(umemVirtual *ctx, umemInfo *info) {
  (void)info;
  umemVirtual_fail(ctx, umemIOError, "cannot tell");
}
static void fail_order(umemVirtual *ctx) { umemVirtual_fail(ctx, umemIOError, "cannot order"); }
static void fail_trim(umemVirtual *ctx, size_t keep) {
  umemVirtual_fail(ctx, umemIOError, "cannot give back %zu", keep);
}
static umemStatusType get_info(void *ctx) {
  umemInfo info = UMEM_INFO_INIT;
  return umem_get_info(ctx, &info);
}
static umemStatusType trim(void *ctx) { return umem_trim(ctx, 5); }

/* What no layer has a method for goes to the one that has, and comes back through all. */
TEST(failures_of_what_is_inherited_are_noted_on_all_layers) {
  static struct umemVtbl const methods = {
      .info = fail_info, .synchronize = fail_order, .flush = fail_order, .trim = fail_trim};
  typedef umemStatusType Call(void *ctx);
  Call *const calls[] = {get_info, umem_synchronize, umem_flush, trim};
  char const *const words[] = {"tell", "order", "order", "give back 5"};
  FOR_EACH_KIND {
    umemVirtual device;
    Any one, two, three;
    umemVirtual_ctor(&device, &host);
    device.vptr = &methods;
    assert_ok(kinds[kind].borrows(&one, &device));
    assert_ok(kinds[(kind + 1) % kind_count].borrows(&two, &one));
    assert_ok(kinds[kind].borrows(&three, &two));
    for (int i = 0; i < 8; i++) {
      umemAttempt attempt;
      if (i % 2) umemAttempt_begin(&attempt);
      assert_int_equal(calls[i / 2](&three), umemIOError);
      if (i % 2) umemAttempt_end(&attempt), umemAttempt_record(&attempt);
      assert_non_null(strstr(umem_get_message(&one), words[i / 2]));
      assert_string_equal(umem_get_message(&one), umem_get_message(&device));
      assert_string_equal(umem_get_message(&two), umem_get_message(&one));
      assert_int_equal(umem_get_status(&one), umemIOError);
      expect_both(&three, &two, umemIOError, words[i / 2]);
      umem_clear_status(&one), umem_clear_status(&device);
    }
    end(&three), end(&two), end(&one), end(&device);
  }
}

/* So is what fails because a layer below is gone. */
TEST(an_ended_upstream_is_noted_on_all_layers) {
  umemHost gone;
  umemLimit one, two;
  assert_ok(umemHost_ctor(&gone));
  assert_ok(umemLimit_ctor(&one, &gone, 1000));
  assert_ok(umemLimit_ctor(&two, &one, 1000));
  umem_dtor(&gone);
  assert_int_equal(umem_flush(&two), umemValueError);
  expect_both(&two, &one, umemValueError, "the context is not constructed");
  umem_clear_status(&gone);
  end(&two), end(&one);
}

TEST(bare_contexts_keep_their_routes) {
  fake_methods = fake.super.vptr;
  struct umemVtbl direct = *fake_methods;
  direct.copy_direct = count_direct;
  FOR_EACH_KIND {
    Any one, two, side;
    assert_ok(kinds[kind].borrows(&one, &fake));
    assert_ok(kinds[kind].borrows(&two, &one));
    assert_ok(kinds[kind].borrows(&side, &fake));
    uintptr_t from = umem_alloc(&two, 100), to = umem_alloc(&side, 100);
    fake.super.vptr = &direct;
    direct_copies = 0;
    assert_ok(umem_copy_to(&two, from, &side, to, 100));
    assert_ok(umem_copy_from(&two, from, &side, to, 100));
    assert_ok(umem_copy_to(&two, from, &two, from + 50, 50));
    size_t const extents[] = {2, 3};
    ptrdiff_t const strides[] = {50, 10};
    umemLayout layout = {sizeof layout, 4, 2, extents, strides, strides};
    assert_ok(umem_copy_strided(&side, to, &two, from, &layout));
    assert_int_equal(direct_copies, 4);
    fake.super.vptr = fake_methods;
    umem_free(&two, from);
    umem_free(&side, to);
    end(&side);
    end(&two);
    end(&one);
  }
}

/* ---- fork ---- */

/* The heap of this sanitizer is not safe to fork beside threads that use it. */
#ifdef __has_feature
#define HEAP_FORKS !__has_feature(address_sanitizer)
#elif defined __SANITIZE_ADDRESS__
#define HEAP_FORKS 0
#else
#define HEAP_FORKS 1
#endif
enum { busy_count = HEAP_FORKS ? 2 : 0 };

static Any in_use;
static bool stop; /* atomic */

static void *keep_busy(void *unused) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) umem_free(&in_use, umem_alloc(&in_use, 10));
  return unused;
}

/* 0 when all went well. */
static int use_in_child(void) {
  alarm(60); /* instead of waiting for ever for a lock that nobody holds any more */
  for (int i = 0; i < 100; i++) {
    uintptr_t adr = umem_calloc(&in_use, 10, 1);
    adr = umem_realloc(&in_use, adr, 10, 20);
    umem_free(&in_use, adr);
  }
  return umem_is_ok(&in_use) ? 0 : 1;
}

/* While other threads are in the middle of it. */
TEST(a_child_of_fork_goes_on) {
  FOR_EACH_KIND {
    pthread_t busy[busy_count + 1];
    assert_ok(kinds[kind].borrows(&in_use, &host));
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
    for (int i = 0; i < busy_count; i++)
      assert_int_equal(pthread_create(&busy[i], NULL, keep_busy, NULL), 0);
    for (int i = 0; i < 20; i++) IN_CHILD EXPECT(use_in_child() == 0);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < busy_count; i++) pthread_join(busy[i], NULL);
    end(&in_use);
  }
}

/* ---- ended and moved ---- */

/* Nobody can say any more whether both are one memory: the address may be the source's own. */
TEST(an_ended_upstream_frees_nothing) {
  umemHost below;
  umemStats src, dst;
  assert_ok(umemHost_ctor(&below));
  CONTEXT(umemHost, other);
  assert_ok(umemStats_ctor(&src, &below));
  assert_ok(umemStats_ctor(&dst, &other));
  uintptr_t adr = umem_calloc(&other, 1, 5000);
  assert_true(umem_connect(&src, adr, 5000, &dst, 0) == adr);
  umem_dtor(&below);
  umemFault counting;
  assert_ok(umemFault_ctor(&counting, &dst, NULL));
  assert_int_equal(umem_disconnect(&src, adr, &counting, adr, 0), umemValueError);
  assert_int_equal(umem_thread_status(), umemValueError);
  umem_thread_clear();
  assert_true(umemFault_count(&counting, umemFaultAll) == 0);
  assert_true(umem_connect(&src, adr, 5000, &counting, 0) == 0);
  assert_int_equal(umem_thread_status(), umemValueError);
  umem_thread_clear();
  assert_true(umemFault_count(&counting, umemFaultAllocations) == 0);
  DESTRUCT(&counting, &dst, &src);
  umem_free(&other, adr);
}

/* As in a struct of the program that is returned by value: neither it nor its members are good. */
TEST(a_moved_member_is_no_context) {
  struct {
    umemHost host;
    umemLimit limit;
  } one, copied;
  assert_ok(umemHost_ctor(&one.host));
  assert_ok(umemLimit_ctor(&one.limit, &one.host, 1000));
  memcpy(&copied, &one, sizeof copied);
  assert_true(umem_alloc(&copied.host, 10) == 0);
  expect_failure(&copied.host, umemValueError, "must not be copied or moved");
  assert_true(umem_alloc(&copied.limit, 10) == 0);
  expect_failure(&copied.limit, umemValueError, "must not be copied or moved");
  assert_true(umemLimit_used(&copied.limit) == 0);
  expect_failure(&copied.limit, umemValueError, "must not be copied or moved");
  DESTRUCT(&one.limit, &one.host);
}
