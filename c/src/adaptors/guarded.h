/* guarded.h - what the files of umemGuarded share.
 *
 *   guarded.c         the methods, construction
 *   guarded_report.c  the handler of SIGSEGV
 *   guarded_blocks.c  the blocks and their pages */
#ifndef UMEM_GUARDED_PRIVATE_H
#define UMEM_GUARDED_PRIVATE_H

#include "adaptors/guarded_blocks.h"
#include "core/adaptor.h"
#include "base/lock.h"

typedef struct umemGuardedImpl {
  umemAdaptor adaptor;
  umemVirtual *ctx;
  bool has_pages; /* upstream is RAM; else the blocks are its own, and the rest is unused */
  umemLock lock;  /* of blocks */
  umemGuardedBlocks blocks;
  struct umemGuardedImpl *newer, *older; /* in the list of guarded_report.c */
} umemGuardedImpl;

static inline umemGuardedImpl *umemGuarded_impl(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* Whether the handler of SIGSEGV looks at the blocks of impl. After the first call, and before the second one, impl is
 * complete. */
void umemGuarded_list(umemGuardedImpl *impl);
void umemGuarded_unlist(umemGuardedImpl *impl);

#endif
