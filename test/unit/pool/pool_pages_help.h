/* pool_pages_help.h - what the tests of pools with pages share: a pool over the context of
 * test/fake/paged.h. */
#pragma once

#include "pool_help.h"

#include "fake/paged.h"

static Paged paged;
enum { page = pagedSize };

static inline void set_up(void **state UNUSED) {
  pool.super.vptr = NULL;
  assert_ok(paged_ctor(&paged));
}

/* No block of the pool may be left, unless the test has ended it. */
static inline void tear_down(void **state UNUSED) {
  if (pool.super.vptr) close_pool(&pool);
  if (!paged_is_clean(&paged))
    fail_msg("%zu pages and %zu blocks are left; %s", paged.pages, paged.blocks, paged.misuse);
  umem_dtor(&paged);
  assert_string_equal(umem_thread_message(), "");
}

static inline void open_plain(size_t maximum) { open_pool(&pool, &paged, 0, 0, maximum); }

static inline uint64_t reserved(void) { return stats_of(&pool).reserved; }

static inline void fill(uintptr_t adr, size_t nbytes, unsigned char c) {
  memset((void *)adr, c, nbytes);
}
static inline bool is_filled(uintptr_t adr, size_t nbytes, unsigned char c) {
  unsigned char const *bytes = (unsigned char const *)adr;
  return bytes[0] == c && !memcmp(bytes, bytes + 1, nbytes - 1);
}

static inline uintptr_t filled_block(size_t nbytes, unsigned char c) {
  uintptr_t adr = new_block(&pool, nbytes);
  fill(adr, nbytes, c);
  return adr;
}

/* A block that all bytes of are c. */
typedef struct Block {
  uintptr_t adr; /* 0: there is none */
  size_t size;
  unsigned char c;
} Block;

static inline Block try_block(size_t size, unsigned char c) {
  Block block = {umem_alloc(&pool, size), size, c};
  if (block.adr) fill(block.adr, size, c);
  return block;
}

static inline bool is_whole(Block const *block) {
  return is_filled(block->adr, block->size, block->c);
}

static inline void forget_failures(void) { FORGET(&pool, &paged); }

#define PAGES_TEST(name) TEST_CASE_WITH(name, set_up, tear_down)
