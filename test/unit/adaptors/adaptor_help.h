/* adaptor_help.h - what the tests of adaptors share: upstreams, and failures. */
#pragma once

#include "fake/fake.h"
#include "failures.h"
#include "workers.h"

/* RAM; a device that refuses what is no live block, with pointers and with offsets for
 * addresses. */
static umemHost host;
static Fake fake, offsets;

static inline void set_up(void **state UNUSED) {
  assert_ok(umemHost_ctor(&host));
  assert_ok(fake_ctor(&fake));
  assert_ok(fake_offset_ctor(&offsets));
}

static inline void tear_down(void **state UNUSED) { DESTRUCT(&host, &fake, &offsets); }

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

/* Ends a context on which nothing failed, or was cleared. */
static inline void end(void *ctx) {
  if (!umem_is_ok(ctx)) fail_msg("%s", umem_get_message(ctx));
  umem_dtor(ctx);
  if (!umem_is_ok(ctx)) fail_msg("%s", umem_get_message(ctx));
}

/* CONTEXT, of one on which nothing fails that the test does not clear. */
#define CLEAN_CONTEXT(type, name, ...)                                                             \
  SCOPED(end) type name;                                                                           \
  assert_ok(type##_ctor(&name, ##__VA_ARGS__))

static inline size_t blocks_in(Fake *ctx) { return fake_store_blocks(ctx->store); }
