/* failing_use.h - a context without memory for its records: each allocation of the library fails in
 * turn.
 *
 * Linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#pragma once

#include "unit/adaptors/adaptor_help.h"
#include "failing_memory.h"

enum { most_blocks = 600 };

typedef struct FailingUse {
  char const *name;
  umemStatusType (*construct)(void *ctx, void *upstream);
  void (*destruct)(void *ctx);
  size_t blocks, alignment;    /* so many that all tables grow; of every fourth */
  unsigned (*after)(unsigned); /* which allocation fails after the n-th */
} FailingUse;

/* Allocates in every form; frees what there is. Whether nothing was refused. */
static inline bool use(void *ctx, size_t blocks, size_t alignment) {
  static uintptr_t adr[most_blocks];
  bool good = true;
  for (size_t i = 0; i < blocks; i++) {
    adr[i] = i % 4 == 0   ? umem_aligned_alloc(ctx, alignment, 10 + i)
             : i % 4 == 1 ? umem_calloc(ctx, 10 + i, 1)
                          : umem_alloc(ctx, 10 + i);
    bool there = adr[i] != umem_null(ctx);
    good = good && there;
    if (i % 4 == 3 && there) {
      uintptr_t moved = umem_realloc(ctx, adr[i], 10 + i, 500);
      good = good && moved != umem_null(ctx);
      if (moved != umem_null(ctx)) adr[i] = moved;
    }
  }
  for (size_t i = 0; i < blocks; i++) (i % 4 ? umem_free : umem_aligned_free)(ctx, adr[i]);
  return good;
}

/* Whichever allocation fails: it is a memory error of that call, frees succeed, and nothing is
 * lost. A table that cannot grow may be only slower, so a failure may go unnoticed. ctx: memory for
 * the context. Returns how many uses were refused. */
static inline unsigned survive_every_failure(FailingUse const *it, void *ctx, size_t size) {
  unsigned refused = 0;
  bool fired = true;
  for (unsigned n = 0; fired; n = it->after(n)) {
    memset(ctx, 0, size);
    fail_memory(n, 1);
    umemStatusType status = it->construct(ctx, &offsets);
    if (status == umemOK) {
      bool good = use(ctx, it->blocks, it->alignment);
      fired = end_failing();
      refused += !good;
      if (good != umem_is_ok(ctx)) fail_msg("%s: %u: %s", it->name, n, umem_get_message(ctx));
      if (!good) assert_int_equal(umem_get_status(ctx), umemMemoryError);
      umem_clear_status(ctx);
      assert_true(use(ctx, it->blocks, it->alignment)); /* all is well again */
      assert_true(umem_is_ok(ctx));
      it->destruct(ctx); /* leaks would be a failure */
      assert_true(umem_is_ok(ctx));
    } else {
      assert_int_equal(status, umemMemoryError);
      assert_int_equal(umem_get_status(ctx), umemMemoryError);
      it->destruct(ctx);
    }
    end_failing();
    assert_int_equal(blocks_in(&offsets), 0);
    FORGET(&offsets);
    assert_true(n < 10000);
  }
  return refused;
}
