/* realloc.c - dispatch of realloc, and its default. */
#include "core/memory.h"
#include "core/status.h"
#include "base/thread.h"
#include "base/number.h"
#include "core/context.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

bool umem_has_size(umemVirtual *ctx, uintptr_t adr, uint64_t size, size_t old_size) {
  if (old_size <= size) return true;
  return UMEM_FAIL(ctx, umemValueError,
                   "old_size is %zu, but the block at %ju of %s has at most %ju bytes", old_size,
                   (uintmax_t)adr, umem_get_device_name(ctx), (uintmax_t)size);
}

/* With probe the last of the old_size bytes is read first, where the copy does not reach that far:
 * contexts that know their blocks refuse it. */
static uintptr_t move(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size,
                      bool probe) {
  uintptr_t moved = umem_alloc(ctx, new_size);
  if (moved == umem_null_of(ctx)) return moved;
  size_t kept = old_size < new_size ? old_size : new_size;
  uint64_t before = umem_thread.failures;
  bool read = !probe || kept == old_size ||
              umem_copy_to(ctx, adr + (old_size - 1), ctx, moved, 1) == umemOK;
  if (read && umem_copy_to(ctx, adr, ctx, moved, kept) == umemOK) umem_free(ctx, adr);
  if (umem_thread.failures == before) return moved;
  umem_free(ctx, moved); /* the old block is as it was */
  return umem_null_of(ctx);
}

uintptr_t umem_move_block(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  return move(ctx, adr, old_size, new_size, false);
}

/* Whether all pages of these bytes are mapped: reading where none is ends the program. (So does
 * reading a page that is mapped and not readable; this does not check that.) mincore fails where
 * there is a gap, and touches no page. */
static bool is_mapped(uintptr_t adr, size_t nbytes) {
  enum { pages = 256 };
  unsigned char ignored[pages];
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = adr & ~(page - 1), end = adr + nbytes;
  for (;; at += pages * page) {
    size_t length = umem_lesser(end - at, pages * page);
    if (mincore((void *)at, length, ignored) != 0 && errno == ENOMEM) return false;
    if (end - at <= pages * page) return true;
  }
}

/* umem knows of the block only what free and the copies of ctx report. It checks as much as it can
 * before it reads: the copy must neither read a block that ctx refuses nor read past its end. */
uintptr_t umem_move_unknown(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  uintptr_t moved = umem_null_of(ctx);
  if (adr > UINTPTR_MAX - old_size ||
      (umem_can(ctx, umemCpuReadable) && !is_mapped(adr, old_size))) {
    umem_has_size(ctx, adr, 0, old_size);
    return moved;
  }
  umemAttempt held;
  umemAttempt_begin(&held);
  moved = move(ctx, adr, old_size, new_size, true);
  umemAttempt_end(&held);
  if (!umemAttempt_failed(&held)) return moved;
  if (held.type == umemIndexError)
    umem_has_size(ctx, adr, 0, old_size);
  else
    umemAttempt_record(&held);
  return umem_null_of(ctx);
}

uintptr_t umem_realloc(void *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self) return umem_null(ctx);
  if (adr == umem_null_of(self)) return umem_alloc(self, new_size);
  uintptr_t (*slot)(umemVirtual *, uintptr_t, size_t, size_t) = UMEM_SLOT(self, realloc);
  uintptr_t moved =
      (slot ? slot : umem_move_unknown)(self, adr, old_size + !old_size, new_size + !new_size);
  return moved != umem_null_of(self) ? moved : umem_refused(self, before, new_size);
}
