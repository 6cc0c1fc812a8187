/* trace_help.h - what the tests of routes and of the ledger share: three contexts, and copies with
 * a route. */
#pragma once

#include "workers.h"

static umemHost host;
static uintptr_t blocks[32]; /* of host, until its end */
static size_t block_count;
static umemFile file, other;

static inline void open_contexts(void **state UNUSED) {
  assert_ok(umemHost_ctor(&host));
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  assert_ok(umemFile_ctor(&other, NULL, "w+"));
}

static inline void close_contexts(void **state UNUSED) {
  while (block_count) umem_free(&host, blocks[--block_count]);
  DESTRUCT(&other, &file, &host);
}

static inline umemStatusType copy(void *src, uintptr_t from, void *dst, uintptr_t to, size_t nbytes,
                                  umemRoute *route) {
  umemCopyOptions options = {.size = sizeof options, .route = route};
  *route = (umemRoute)UMEM_ROUTE_INIT;
  return umem_copy_to_with(src, from, dst, to, nbytes, &options);
}

/* A copy of so many bytes in RAM, 256 at most. */
static inline umemStatusType copy_bytes(size_t nbytes, umemCopyOptions const *options) {
  static _Thread_local char from[256] = "abc", to[256];
  return umem_copy_to_with(&host, (uintptr_t)from, &host, (uintptr_t)to, nbytes, options);
}

static inline void assert_text(umemRoute const *route, char const *expected) {
  char text[200];
  size_t length = umemRoute_text(route, text, sizeof text);
  assert_string_equal(text, expected);
  assert_int_equal(length, strlen(expected));
}

static inline uintptr_t block_of(void *ctx, size_t nbytes) {
  uintptr_t block = umem_calloc(ctx, nbytes, 1);
  assert_true(block != umem_null(ctx));
  if (ctx == &host) {
    assert_true(block_count < sizeof blocks / sizeof *blocks);
    blocks[block_count++] = block;
  }
  return block;
}
