/* methods.c - when the methods of a context are called, and what is made of them where they are
 * missing or fail: umem/virtual.h. */

#include "core/context.h"
#include "cases.h"

/* ---- a context that counts its calls ---- */

typedef struct Counted {
  umemVirtual super;
  umemHost host;
  umemVirtual *upstream; /* or NULL */
  int live;              /* blocks */
  int dtors, synchronized, waited, flushed, trimmed;
  size_t last_alloc, last_keep;
  bool alloc_is_mute; /* returns null without a status */
  bool set_fails;
  bool dtor_fails;
  bool captured;
} Counted;

static Counted *counted_of(umemVirtual *ctx) { return (Counted *)ctx; }

static uintptr_t counted_alloc(umemVirtual *ctx, size_t nbytes) {
  Counted *self = counted_of(ctx);
  if (self->alloc_is_mute) return 0;
  self->live++;
  self->last_alloc = nbytes;
  return (uintptr_t)malloc(nbytes);
}

static void counted_free(umemVirtual *ctx, uintptr_t adr) {
  counted_of(ctx)->live--;
  free((void *)adr);
}

static void counted_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  if (counted_of(ctx)->set_fails)
    umemVirtual_fail(ctx, umemIOError, "cannot set");
  else
    memset((void *)adr, c, nbytes);
}

static void counted_copy_to(umemVirtual *ctx UNUSED, uintptr_t src_adr, umemVirtual *that UNUSED,
                            uintptr_t dst_adr, size_t nbytes) {
  memcpy((void *)dst_adr, (void *)src_adr, nbytes);
}

static void counted_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                              uintptr_t src_adr, size_t nbytes) {
  counted_copy_to(ctx, src_adr, that, dst_adr, nbytes);
}

static void counted_synchronize(umemVirtual *ctx) { counted_of(ctx)->synchronized++; }

static void counted_wait(umemVirtual *ctx, umemVirtual *other UNUSED) { counted_of(ctx)->waited++; }

static void counted_flush(umemVirtual *ctx) { counted_of(ctx)->flushed++; }

static void counted_trim(umemVirtual *ctx, size_t keep) {
  counted_of(ctx)->trimmed++;
  counted_of(ctx)->last_keep = keep;
}

static void counted_dtor(umemVirtual *ctx) {
  counted_of(ctx)->dtors++;
  if (counted_of(ctx)->dtor_fails) umemVirtual_fail(ctx, umemIOError, "cannot close");
}

static bool counted_is_captured(umemVirtual *ctx) { return counted_of(ctx)->captured; }

static umemVirtual *counted_upstream(umemVirtual *ctx) { return counted_of(ctx)->upstream; }

static void construct(Counted *self, struct umemVtbl const *vtbl, umemVirtual *upstream) {
  memset(self, 0, sizeof *self);
  umem_thread_clear();
  umemHost_ctor(&self->host);
  umemVirtual_ctor(&self->super, &self->host);
  self->super.vptr = vtbl;
  self->upstream = upstream;
}

static void open_counted(Counted *self) {
  static struct umemVtbl const vtbl = {
      .dtor = counted_dtor,
      .alloc = counted_alloc,
      .free = counted_free,
      .set = counted_set,
      .copy_to = counted_copy_to,
      .copy_from = counted_copy_from,
      .synchronize = counted_synchronize,
      .wait = counted_wait,
      .flush = counted_flush,
      .trim = counted_trim,
  };
  construct(self, &vtbl, NULL);
}

/* Has no method but upstream. */
static void open_adaptor_of(Counted *self, umemVirtual *upstream) {
  static struct umemVtbl const vtbl = {.upstream = counted_upstream};
  construct(self, &vtbl, upstream);
}

/* Three contexts in a stack, and another one. */
static Counted ctx, middle, outer, other;

static void open_all(void **state UNUSED) {
  open_counted(&ctx);
  open_counted(&other);
  open_adaptor_of(&middle, &ctx.super);
  open_adaptor_of(&outer, &middle.super);
}

static void close_all(void **state) {
  Counted *const all[] = {&outer, &middle, &other, &ctx};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) umem_dtor(all[i]);
}

/* Gives ctx these methods. */
static void reconstruct(struct umemVtbl const *vtbl) {
  umem_dtor(&ctx);
  construct(&ctx, vtbl, NULL);
}

#define METHOD_TEST(name) TEST_CASE_WITH(name, open_all, close_all)

/* ---- allocation ---- */

METHOD_TEST(a_null_without_a_status_gets_one) {
  ctx.alloc_is_mute = true;
  assert_true(umem_alloc(&ctx, 100) == 0);
  assert_int_equal(umem_get_status(&ctx), umemMemoryError);
  umem_clear_status(&ctx);
  assert_true(umem_calloc(&ctx, 10, 10) == 0);
  assert_int_equal(umem_get_status(&ctx), umemMemoryError);
  umem_clear_status(&ctx);
  assert_true(umem_aligned_alloc(&ctx, 4096, 10) == 0);
  assert_int_equal(umem_get_status(&ctx), umemMemoryError);
}

METHOD_TEST(a_failed_calloc_leaves_no_block) {
  ctx.set_fails = true;
  assert_true(umem_calloc(&ctx, 10, 10) == 0);
  assert_int_equal(umem_get_status(&ctx), umemIOError);
  assert_int_equal(ctx.live, 0);
}

METHOD_TEST(methods_never_see_zero_bytes) {
  uintptr_t adr = umem_alloc(&ctx, 0);
  assert_int_equal(ctx.last_alloc, 1);
  adr = umem_realloc(&ctx, adr, 0, 0);
  assert_int_equal(ctx.last_alloc, 1);
  umem_free(&ctx, adr);
  adr = umem_calloc(&ctx, 0, 5);
  assert_int_equal(ctx.last_alloc, 1);
  umem_free(&ctx, adr);
  assert_int_equal(ctx.live, 0);
}

METHOD_TEST(default_alignment_costs_no_more_than_it_must) {
  ctx.super.alignment = 16;
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    uintptr_t adr = umem_aligned_alloc(&ctx, alignment, 100);
    assert_true(adr % alignment == 0);
    assert_int_equal(ctx.last_alloc, alignment <= 16 ? 100 : 100 + alignment - 1);
    uintptr_t origin = umem_aligned_origin(&ctx, adr);
    assert_true(origin <= adr && adr + 100 <= origin + ctx.last_alloc);
    umem_aligned_free(&ctx, adr);
  }
  assert_int_equal(ctx.live, 0);
  assert_true(umem_is_ok(&ctx));
}

METHOD_TEST(a_failed_move_leaves_the_block) {
  uintptr_t adr = umem_alloc(&ctx, 100);
  umem_set(&ctx, adr, 7, 100);
  ctx.alloc_is_mute = true;
  assert_true(umem_realloc(&ctx, adr, 100, 200) == 0);
  assert_int_equal(umem_get_status(&ctx), umemMemoryError);
  assert_int_equal(ctx.live, 1);
  assert_int_equal(((unsigned char *)adr)[99], 7);
  umem_free(&ctx, adr);
}

/* ---- order ---- */

METHOD_TEST(only_ordered_contexts_are_waited_for) {
  assert_int_equal(umem_wait(&ctx, &other), umemOK);
  assert_int_equal(ctx.waited, 0);
  assert_int_equal(other.synchronized, 0);
  other.super.capabilities |= umemOrdered;
  assert_int_equal(umem_wait(&ctx, &other), umemOK);
  assert_int_equal(ctx.waited, 1);
}

METHOD_TEST(by_default_waiting_synchronises) {
  CONTEXT(umemHost, host);
  other.super.capabilities |= umemOrdered;
  assert_int_equal(umem_wait(&host, &other), umemOK);
  assert_int_equal(other.synchronized, 1);
}

/* Two queues of work on one memory. */
METHOD_TEST(a_sync_that_moves_nothing_keeps_the_order) {
  memcpy(other.super.space, ctx.super.space, sizeof ctx.super.space);
  ctx.super.capabilities |= umemOrdered;
  other.super.capabilities |= umemOrdered;
  uintptr_t adr = umem_alloc(&ctx, 10);
  assert_int_equal(umem_sync_to(&ctx, adr, &other, adr, 10), umemOK);
  assert_int_equal(ctx.waited, 0);
  assert_int_equal(other.waited, 1);
  assert_int_equal(umem_sync_from(&ctx, adr, &other, adr, 10), umemOK);
  assert_int_equal(ctx.waited, 1);
  assert_int_equal(ctx.synchronized + other.synchronized, 0);
  umem_free(&ctx, adr);
}

/* ... is refused all the same where a copy would be. */
METHOD_TEST(a_sync_that_moves_nothing_needs_the_right) {
  uintptr_t adr = umem_alloc(&ctx, 10);
  ctx.super.capabilities &= ~(uint32_t)umemWritable;
  assert_int_equal(umem_sync_to(&ctx, adr, &ctx, adr, 10), umemNotSupportedError);
  umem_free(&ctx, adr);
}

/* A buffer of the default set may be read until the context is synchronised. */
METHOD_TEST(default_set_waits_for_ordered_contexts) {
  static struct umemVtbl const vtbl = {
      .alloc = counted_alloc,
      .free = counted_free,
      .copy_from = counted_copy_from,
      .synchronize = counted_synchronize,
  };
  reconstruct(&vtbl);
  ctx.super.capabilities |= umemOrdered;
  uintptr_t adr = umem_alloc(&ctx, 3000000);
  assert_int_equal(umem_set(&ctx, adr, 7, 3000000), umemOK);
  assert_true(ctx.synchronized > 0);
  for (size_t i = 0; i < 3000000; i++) assert_true(((char *)adr)[i] == 7);
  umem_free(&ctx, adr);
}

/* ---- adaptors ---- */

METHOD_TEST(what_an_adaptor_lacks_is_asked_of_its_upstream) {
  assert_int_equal(umem_synchronize(&outer), umemOK);
  assert_int_equal(umem_flush(&outer), umemOK);
  assert_int_equal(umem_trim(&outer, 123), umemOK);
  assert_int_equal(ctx.synchronized, 1);
  assert_int_equal(ctx.flushed, 1);
  assert_int_equal(ctx.trimmed, 1);
  assert_int_equal(ctx.last_keep, 123);
  DESTRUCT(&outer, &middle);
  assert_int_equal(ctx.dtors, 0); /* the end of an adaptor is not that of its upstream */
}

/* Only umemOrdered contexts are asked: nothing else has a queue. */
METHOD_TEST(whether_work_is_recorded_is_asked_of_the_innermost) {
  static struct umemVtbl const vtbl = {.is_captured = counted_is_captured};
  reconstruct(&vtbl);
  umemVirtual *const layers[] = {&ctx.super, &middle.super, &outer.super};
  for (int round = 0; round < 4; round++) {
    ctx.captured = round & 1;
    for (int i = 0; i < 3; i++) {
      if (round & 2) layers[i]->capabilities |= umemOrdered;
      assert_true(umem_is_captured(layers[i]) == (round == 3));
    }
  }
  ctx.super.vtbl_size = offsetof(struct umemVtbl, is_captured); /* compiled against an older umem */
  for (int i = 0; i < 3; i++) assert_false(umem_is_captured(layers[i]));
}

static bool fail_is_captured(umemVirtual *self) {
  umemVirtual_fail(self, umemIOError, "cannot tell");
  return true;
}

/* What the method records is no failure of the call that asks. */
METHOD_TEST(asking_whether_work_is_recorded_fails_nowhere) {
  static struct umemVtbl const vtbl = {.is_captured = fail_is_captured};
  reconstruct(&vtbl);
  ctx.super.capabilities |= umemOrdered;
  uint64_t before = umem_thread_failures();
  assert_true(umem_is_captured(&ctx.super));
  assert_true(umem_thread_failures() == before);
  assert_int_equal(umem_get_status(&ctx), umemOK);
}

/* Whoever connects waits for the queues of both sides, through all layers. */
METHOD_TEST(connections_wait_for_both_sides) {
  uintptr_t adr = umem_alloc(&ctx, 100);
  uintptr_t there = umem_connect(&ctx, adr, 100, &other, 0);
  assert_true(there != 0 && there != adr);
  assert_true(ctx.synchronized >= 1 && other.synchronized >= 1);
  ctx.synchronized = other.synchronized = 0;
  assert_int_equal(umem_disconnect(&outer, adr, &other, there, 0), umemOK);
  assert_true(ctx.synchronized == 1 && other.synchronized == 1);
  umem_free(&ctx, adr);
}

/* The upstream must outlive its adaptors; a call reports one that does not. */
METHOD_TEST(a_dead_upstream_is_a_failure) {
  umemInfo info = UMEM_INFO_INIT;
  other.super.capabilities |= umemOrdered;
  umem_dtor(&ctx);
  assert_int_equal(umem_synchronize(&outer), umemValueError);
  assert_int_equal(umem_get_status(&outer), umemValueError);
  assert_int_equal(umem_flush(&outer), umemValueError);
  assert_int_equal(umem_trim(&outer, 0), umemValueError);
  assert_int_equal(umem_get_info(&outer, &info), umemValueError);
  assert_int_equal(umem_wait(&outer, &other), umemValueError);
  uint64_t before = umem_thread_failures();
  assert_false(umem_is_same_device(&outer, &other));
  assert_false(umem_is_same_device(&other, &outer));
  assert_true(umem_thread_failures() == before + 2);
}

/* ---- the end ---- */

METHOD_TEST(the_end_is_called_once) {
  DESTRUCT(&ctx, &ctx);
  assert_int_equal(ctx.dtors, 1);
  assert_true(umem_is_ok(&ctx));
}

METHOD_TEST(failures_of_the_end_can_be_read) {
  ctx.dtor_fails = true;
  umem_dtor(&ctx);
  assert_int_equal(umem_get_status(&ctx), umemIOError);
  assert_string_equal(umem_get_message(&ctx), "umem_dtor: cannot close");
  assert_int_equal(umem_thread_status(), umemIOError);
  umem_dtor(&ctx);
  assert_int_equal(ctx.dtors, 1);
}
