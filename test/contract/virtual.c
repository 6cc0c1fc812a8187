/* virtual.c - umem/virtual.h: what those who write contexts are promised. */
#include "contract.h"

#include "fake/wrapped.h"
#include "fake/fake.h"

/* ---- a context that has no method at all ---- */

static void bare_ctor(umemVirtual *ctx) {
  static struct umemVtbl const no_methods;
  umemVirtual_ctor(ctx, NULL);
  ctx->vptr = &no_methods;
}

ONCE(a_new_base_is_plain) {
  umemVirtual ctx;
  memset(&ctx, 0xAA, sizeof ctx);
  umemHost host;
  umemHost_ctor(&host);
  umemVirtual_ctor(&ctx, &host);
  assert_null(ctx.vptr);
  assert_true(umem_is_ok(&ctx));
  assert_string_equal(umem_get_message(&ctx), "");
  assert_ptr_equal(ctx.host, &host);
  assert_int_equal(ctx.capabilities, umemReadable | umemWritable);
  assert_int_equal(ctx.alignment, 1);
  assert_int_equal(ctx.vtbl_size, sizeof(struct umemVtbl));
  (umemVirtual_ctor)(&ctx, &host);
  assert_int_equal(ctx.vtbl_size, 11 * sizeof(void (*)(void)));
  umemVirtual_dtor(&ctx);
  umemVirtual_dtor(&ctx);
  umemVirtual_ctor(NULL, NULL);
  expect_failure(NULL, umemValueError);
}

ONCE(missing_methods_are_reported) {
  SCOPED(umem_dtor) umemVirtual ctx;
  bare_ctor(&ctx);
  unsigned char bytes[8] = {0};
  uintptr_t host = (uintptr_t)bytes;
  umemStatusType const lacking = umemNotImplementedError;
  assert_string_equal(umem_get_device_name(&ctx), "User");
  expect_no_block(&ctx, umem_alloc(&ctx, 1), lacking);
  expect_no_block(&ctx, umem_calloc(&ctx, 1, 1), lacking);
  expect_no_block(&ctx, umem_aligned_alloc(&ctx, 64, 1), lacking);
  expect_no_block(&ctx, umem_realloc(&ctx, 4096, 1, 2), lacking);
  umem_free(&ctx, 4096);
  expect_failure(&ctx, lacking);
  umem_aligned_free(&ctx, 4096);
  expect_failure(&ctx, lacking);
  expect_status(&ctx, umem_set(&ctx, 4096, 0, 8), lacking);
  expect_status(&ctx, umem_copy_to(&ctx, 4096, &test_host, host, 8), lacking);
  expect_status(&ctx, umem_copy_from(&ctx, 4096, &test_host, host, 8), lacking);
  expect_status(&ctx, umem_copy_to(&ctx, 4096, &ctx, 8192, 8), lacking);
  assert_true(umem_is_ok(&test_host));
}

ONCE(the_other_methods_have_defaults) {
  umemVirtual ctx, other;
  bare_ctor(&ctx);
  bare_ctor(&other);
  assert_ok(umem_synchronize(&ctx));
  assert_ok(umem_wait(&ctx, &other));
  assert_ok(umem_flush(&ctx));
  assert_ok(umem_trim(&ctx, 0));
  umemInfo info = info_of(&ctx);
  assert_true(info.capacity == UMEM_UNKNOWN && info.available == UMEM_UNKNOWN);
  assert_true(info.page_size == UMEM_UNKNOWN && info.ordinal == -1);
  assert_string_equal(info.name, "");
  assert_true(umem_is_same_device(&ctx, &ctx));
  assert_false(umem_is_same_device(&ctx, &other));
  other.space[0] = ctx.space[0];
  other.space[1] = ctx.space[1];
  assert_true(umem_is_same_device(&ctx, &other));
  DESTRUCT(&ctx, &other);
}

/* ---- adaptors ---- */

ONCE(adaptors_are_looked_through) {
  Fake fake, other;
  Wrapped one, two;
  assert_ok(fake_ctor(&fake));
  assert_ok(fake_ctor(&other));
  assert_ok(wrapped_ctor(&one, &fake.super));
  assert_ok(wrapped_ctor(&two, &one.super));
  assert_true(umem_is_same_device(&two, &fake));
  assert_true(umem_is_same_device(&fake, &two));
  assert_true(umem_is_same_device(&one, &two));
  assert_false(umem_is_same_device(&two, &other));
  uintptr_t adr = new_filled_block(&two.super, 100, 1);
  assert_true(umem_connect(&two, adr, 100, &fake, 1) == adr);
  assert_ok(umem_disconnect(&two, adr, &fake, adr, 1));
  assert_filled(&fake.super, adr, 100, 1);
  umemInfo info = info_of(&two);
  assert_string_equal(info.name, "fake"); /* asked of the upstream's upstream */
  umem_free(&one, adr);
  DESTRUCT(&two, &one, &other, &fake);
}

/* Each has the failure of fake, which is the thread's; forgets it. */
static void expect_failure_of_all(Fake *fake, Wrapped *one, Wrapped *two) {
  char const *message = umem_get_message(fake);
  assert_true(*message);
  assert_string_equal(umem_get_message(one), message);
  assert_string_equal(umem_get_message(two), message);
  assert_ok(umem_clear_status(fake));
  assert_ok(umem_clear_status(one));
  expect_failure(&two->super, umemMemoryError);
}

ONCE(adaptors_adopt_failures) {
  Fake fake;
  Wrapped one, two;
  assert_ok(fake_ctor(&fake));
  assert_ok(wrapped_ctor(&one, &fake.super));
  assert_ok(wrapped_ctor(&two, &one.super));
  uint64_t before = umem_thread_failures();
  assert_true(umem_alloc(&two, SIZE_MAX) == 0);
  assert_true(umem_thread_failures() == before + 1);
  expect_failure_of_all(&fake, &one, &two);

  assert_int_equal(umemVirtual_adopt(&two.super, umem_thread_failures()), umemOK);
  assert_true(umem_is_ok(&two));
  DESTRUCT(&two, &one, &fake);
}

/* As above, where the failure is first held, by two attempts, one in the other. */
ONCE(adaptors_adopt_held_failures) {
  Fake fake;
  Wrapped one, two;
  umemAttempt inner, outer;
  assert_ok(fake_ctor(&fake));
  assert_ok(wrapped_ctor(&one, &fake.super));
  assert_ok(wrapped_ctor(&two, &one.super));
  umemAttempt_begin(&outer);
  umemAttempt_begin(&inner);
  assert_true(umem_alloc(&two, SIZE_MAX) == 0);
  umemAttempt_end(&inner);
  umemAttempt_record(&inner);
  umemAttempt_end(&outer);
  assert_true(umem_is_ok(&fake) && umem_is_ok(&one) && umem_is_ok(&two));

  assert_int_equal(umemAttempt_record(&outer), umemMemoryError);
  expect_failure_of_all(&fake, &one, &two);
  DESTRUCT(&two, &one, &fake);
}

/* Two wrapped sides, one inside the other's copy. */
ONCE(wrapped_sides_meet) {
  Fake fake, other;
  Wrapped one, two;
  assert_ok(fake_ctor(&fake));
  assert_ok(fake_offset_ctor(&other));
  assert_ok(wrapped_ctor(&one, &fake.super));
  assert_ok(wrapped_ctor(&two, &other.super));
  uintptr_t from = new_filled_block(&one.super, 3000, 1),
            to = new_filled_block(&two.super, 3000, 2);
  assert_ok(umem_copy_to(&one, from, &two, to, 3000));
  assert_filled(&other.super, to, 3000, 1);
  assert_ok(umem_copy_to(&two, to, &two, to, 0));
  umem_free(&one, from);
  umem_free(&two, to);
  DESTRUCT(&two, &one, &other, &fake);
}

SUITE(virtual)
