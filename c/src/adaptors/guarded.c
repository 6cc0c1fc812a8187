/* guarded.c - memory that traps accesses at a wrong time. */
#include "adaptors/guarded_blocks.h"
#include "core/adaptor.h"
#include "core/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Guarded {
  umemAdaptor adaptor;
  bool has_pages; /* upstream is RAM; else the blocks are its own, and the rest is unused */
  umemGuardedBlocks blocks;
} Guarded;

static Guarded *impl_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* ---- failures; without the lock, because they call the program's hook ---- */

static void refuse_change(umemVirtual *ctx, char const *what, uintptr_t adr, int error) {
  umemVirtual_fail(ctx, umemMemoryError, "cannot %s the pages of the block at 0x%" PRIxPTR ": %s",
                   what, adr, UMEM_WORDS(error));
}

static uintptr_t refuse_unknown(umemVirtual *ctx, uintptr_t adr) {
  return UMEM_FAIL_AS(0, ctx, umemValueError, "no live block begins at 0x%" PRIxPTR, adr);
}

/* ---- allocation ---- */

static uintptr_t take(umemVirtual *ctx, size_t nbytes, size_t alignment) {
  Guarded *impl = impl_of(ctx);
  size_t total, origin_alignment;
  if (!umemGuardedBlocks_plan(&impl->blocks, nbytes, alignment, &total, &origin_alignment))
    return UMEM_FAIL_AS(0, ctx, umemMemoryError,
                        "%zu bytes and their pages exceed the address space", nbytes);
  if (!umemRecords_reserve(&impl->blocks.records))
    return UMEM_FAIL_AS(0, ctx, umemMemoryError, "no memory to remember a block");
  umemRequest request = {umemByAligned, total, origin_alignment, 0, 0};
  uintptr_t origin = umemAdaptor_allocate(ctx, &request);
  if (!origin) {
    umemRecords_release(&impl->blocks.records);
    return 0;
  }
  umemLock_acquire(&impl->blocks.records.lock);
  umemGuardedBlock *block = umemGuardedBlocks_enter(&impl->blocks, origin, nbytes, alignment);
  uintptr_t adr = block ? block->adr : 0;
  int error = errno;
  umemLock_release(&impl->blocks.records.lock);
  if (adr) return adr;
  umemAdaptor_give_back(ctx, origin, true);
  return UMEM_FAIL_AS(0, ctx, umemMemoryError,
                      "cannot close the pages around a block of %zu bytes: %s", nbytes,
                      UMEM_WORDS(error));
}

/* Exchanges *label and that of the block at adr. False if no live block begins there. */
static bool exchange_label(Guarded *impl, uintptr_t adr, char **label) {
  UMEM_LOCKED(&impl->blocks.records.lock);
  umemGuardedBlock *block = umemGuardedBlocks_at(&impl->blocks, adr);
  if (block) {
    char *old = block->label;
    block->label = *label;
    *label = old;
  }
  return block != NULL;
}

static uintptr_t resize(umemVirtual *ctx, umemRequest const *request) {
  Guarded *impl = impl_of(ctx);
  umemLock_acquire(&impl->blocks.records.lock);
  umemGuardedBlock const *block = umemGuardedBlocks_at(&impl->blocks, request->adr);
  size_t nbytes = block ? block->nbytes : 0;
  umemLock_release(&impl->blocks.records.lock);
  if (!block) return refuse_unknown(ctx, request->adr);
  if (!umem_has_size(ctx, request->adr, nbytes, request->old_size)) return 0;
  char *label = NULL;
  exchange_label(impl, request->adr, &label);
  uintptr_t moved = umem_move_block(ctx, request->adr, request->old_size, request->nbytes);
  exchange_label(impl, moved ? moved : request->adr, &label);
  free(label);
  return moved;
}

static uintptr_t guarded_allocate(umemVirtual *ctx, umemRequest const *request) {
  if (!impl_of(ctx)->has_pages) return umemAdaptor_allocate(ctx, request);
  if (request->how == umemByRealloc) return resize(ctx, request);
  bool aligned = request->how == umemByAligned && request->alignment > ctx->alignment;
  uintptr_t adr = take(ctx, request->nbytes, aligned ? request->alignment : ctx->alignment);
  if (adr && request->how == umemByCalloc) memset((void *)adr, 0, request->nbytes);
  return adr;
}
UMEM_ADAPTOR_ALLOCATES(guarded_allocate)

/* Opens the pages of the block at adr, and removes it from the records. *origin: of the block; 0
 * where none begins at adr. *error: why its pages cannot be opened. */
static bool remove_block(Guarded *impl, uintptr_t adr, uintptr_t *origin, int *error) {
  UMEM_LOCKED(&impl->blocks.records.lock);
  umemGuardedBlock *block = umemGuardedBlocks_at(&impl->blocks, adr);
  *origin = block ? block->origin : 0;
  bool removed = block && umemGuardedBlocks_remove(&impl->blocks, block);
  *error = errno;
  return removed;
}

static void guarded_free(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  Guarded *impl = impl_of(ctx);
  if (!impl->has_pages) {
    umemAdaptor_give_back(ctx, adr, aligned);
    return;
  }
  uintptr_t origin;
  int error;
  if (remove_block(impl, adr, &origin, &error))
    umemAdaptor_give_back(ctx, origin, true);
  else if (origin)
    refuse_change(ctx, "open", adr, error);
  else
    refuse_unknown(ctx, adr);
}
UMEM_ADAPTOR_FREES(guarded_free)

/* What cannot be opened remains in the records, and closed. */
static void guarded_leave(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  (void)aligned;
  uintptr_t origin;
  int error;
  if (remove_block(impl_of(ctx), adr, &origin, &error))
    umemVirtual_leave(umemAdaptor_upstream(ctx), origin, true);
}

static uintptr_t guarded_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return impl_of(ctx)->has_pages ? adr : umemAdaptor_aligned_origin(ctx, adr);
}

/* ---- umem's own accesses ---- */

typedef enum Use { use_read, use_write } Use;

/* Opens the pages of nbytes at adr for a call. Returns false, and records a status, if they are
 * not in one block, or if the system refuses. *name: for close_pages. */
static bool open_pages(umemVirtual *ctx, uintptr_t adr, size_t nbytes, Use use,
                       umemRecordName *name) {
  Guarded *impl = impl_of(ctx);
  umemLock_acquire(&impl->blocks.records.lock);
  umemGuardedBlock *block = umemGuardedBlocks_find(&impl->blocks, adr);
  bool inside = block && nbytes <= block->nbytes - (adr - block->adr), opened = false;
  if (inside) {
    unsigned *users = use == use_write ? &block->writers : &block->readers;
    ++*users;
    opened = umemGuardedBlock_apply(block);
    if (!opened) --*users;
    *name = block->name;
  }
  uintptr_t first = block ? block->adr : 0;
  int error = errno;
  umemLock_release(&impl->blocks.records.lock);
  if (!inside)
    umemVirtual_fail(ctx, umemIndexError,
                     "the %zu bytes at 0x%" PRIxPTR " are not inside a live block", nbytes, adr);
  else if (!opened)
    refuse_change(ctx, "open", first, error);
  return opened;
}

/* Ends the access of a call to the bytes at adr. */
static void close_pages(umemVirtual *ctx, uintptr_t adr, Use use, umemRecordName name) {
  Guarded *impl = impl_of(ctx);
  umemLock_acquire(&impl->blocks.records.lock);
  umemGuardedBlock *block = umemGuardedBlocks_named(&impl->blocks, name);
  if (block) --*(use == use_write ? &block->writers : &block->readers);
  bool closed = !block || umemGuardedBlock_apply(block);
  int error = errno;
  umemLock_release(&impl->blocks.records.lock);
  if (!closed) refuse_change(ctx, "close", adr, error);
}

static void guarded_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  bool has_pages = impl_of(ctx)->has_pages;
  umemRecordName name;
  if (has_pages && !open_pages(ctx, adr, nbytes, use_write, &name)) return;
  umemAdaptor_set(ctx, adr, c, nbytes);
  if (has_pages) close_pages(ctx, adr, use_write, name);
}

static bool guarded_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                                umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  bool has_pages = impl_of(ctx)->has_pages, reads = has_pages && src == ctx,
       writes = has_pages && dst == ctx;
  umemRecordName of_read, of_written;
  uintptr_t read = src_adr, written = dst_adr;
  size_t read_size = umem_touched(&read, layout, layout->src_strides),
         written_size = umem_touched(&written, layout, layout->dst_strides);
  if (reads && !open_pages(ctx, read, read_size, use_read, &of_read)) return true;
  if (!writes || open_pages(ctx, written, written_size, use_write, &of_written)) {
    umemAdaptor_copy_direct(ctx, src, src_adr, dst, dst_adr, layout);
    if (reads || writes) umem_finish(src == ctx ? dst : src); /* before the pages are closed */
    if (writes) close_pages(ctx, written, use_write, of_written);
  }
  if (reads) close_pages(ctx, read, use_read, of_read);
  return true;
}

/* ---- finding, labels: only of those that have pages ---- */

static umemSearch guarded_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  Guarded *impl = impl_of(ctx);
  if (!umemLock_try(&impl->blocks.records.lock)) return umemSearchBusy;
  umemGuardedBlock const *block = umemGuardedBlocks_find(&impl->blocks, adr);
  if (block) {
    found->adr = block->adr;
    found->nbytes = block->nbytes;
    if (block->label) strcpy(found->block_label, block->label);
  }
  umemLock_release(&impl->blocks.records.lock);
  return block ? umemSearchFound : umemSearchNone;
}

static bool guarded_usage(umemVirtual *ctx, umemUsage *usage) {
  return umemRecords_usage(&impl_of(ctx)->blocks.records, &usage->nbytes, &usage->peak);
}

static void guarded_set_block_label(umemVirtual *ctx, uintptr_t adr, char const *label) {
  Guarded *impl = impl_of(ctx);
  char *copy = *label ? strdup(label) : NULL;
  if (*label && !copy) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a label");
    return;
  }
  if (!exchange_label(impl, adr, &copy)) refuse_unknown(ctx, adr);
  free(copy);
}

/* ---- construction and end ---- */

static void free_all(umemVirtual *ctx) {
  Guarded *impl = impl_of(ctx);
  umemGuardedBlock *block;
  while ((block = umemGuardedBlocks_any(&impl->blocks)) != NULL) {
    uintptr_t adr = block->adr, origin = block->origin;
    if (!umemGuardedBlocks_remove(&impl->blocks, block)) {
      refuse_change(ctx, "open", adr, errno); /* what is closed must not go back: it remains */
      umemRecords_remove(&impl->blocks.records, block->name.slot);
      continue;
    }
    if (!umem_is_of_parent(ctx, impl->adaptor.generation)) umemAdaptor_give_back(ctx, origin, true);
  }
}

static void guarded_dtor(umemVirtual *ctx) {
  Guarded *impl = impl_of(ctx);
  umemAdaptor_unlist(ctx);
  if (impl->has_pages) {
    umemGuardedBlocks_unlist(&impl->blocks);
    free_all(ctx);
    umemRecords_fini(&impl->blocks.records);
  }
  umemAdaptor_dtor(ctx);
}

/* Whether each of its blocks is RAM that only the CPU uses, and that may have pages of its own. */
static bool is_ram(umemVirtual const *upstream) {
  uint32_t const needed = umemCpuReadable | umemCpuWritable | umemReadable | umemWritable;
  uint32_t const excluded =
      umemDeviceAccessible | umemOrdered | umemOffsets | umemFaultable | umemDeviceShared;
  return (upstream->capabilities & (needed | excluded)) == needed;
}

static bool guarded_start(umemVirtual *ctx, void const *options) {
  (void)options;
  Guarded *impl = impl_of(ctx);
  impl->has_pages = is_ram(umemAdaptor_upstream(ctx));
  ctx->capabilities |= umemSeparate;
  if (!impl->has_pages) {
    ctx->vtbl_size = offsetof(struct umemVtbl, find); /* that and what follows is upstream's */
    return true;
  }
  ctx->capabilities |= umemFaultable; /* umem's own copies use the methods above */
  ctx->space[0] = (uintptr_t)ctx;     /* no other context has its blocks */
  ctx->space[1] = 0;
  if (umemGuardedBlocks_init(&impl->blocks, ctx)) return true;
  return UMEM_FAIL(ctx, umemMemoryError, "no memory for a context");
}

static struct umemVtbl const guarded_vtbl = {
    .dtor = guarded_dtor,
    .find = guarded_find,
    .usage = guarded_usage,
    .set_block_label = guarded_set_block_label,
    .leave = guarded_leave,
    UMEM_ADAPTOR_ALLOCATION_BY(guarded_allocate),
    UMEM_ADAPTOR_FREE_BY(guarded_free),
    .aligned_origin = guarded_aligned_origin,
    .set = guarded_set,
    UMEM_ADAPTOR_COPIES_BY(guarded_copy_direct),
    .upstream = umemAdaptor_upstream_method,
    UMEM_ADAPTOR_ORDER,
};

umemKind const umem_guarded_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemGuarded, "guarded", &guarded_vtbl),
               UMEM_ADAPTOR_OPENS(umem_guarded_kind),
               .help = "traps accesses of the CPU to closed memory; stands for a GPU in tests"},
    .label = "Guarded",
    .impl_size = sizeof(Guarded),
    .start = guarded_start,
};

UMEM_ADAPTOR_CTORS(umemGuarded, umem_guarded_kind, NULL, void *upstream)

/* ---- access ---- */

/* The umemGuarded in the stack of ctx, the one with pages if there are several; NULL with a
 * status where there is none. */
static umemVirtual *layer_of(void *ctx) {
  umemVirtual *self = umem_check(ctx), *found = NULL;
  if (!self) return NULL;
  uint64_t before = umem_thread.failures;
  for (umemVirtual *layer = self; layer; layer = umem_upstream_of(layer)) {
    if (layer->vptr != &guarded_vtbl) continue;
    found = layer;
    if (impl_of(layer)->has_pages) break;
  }
  if (found) return found;
  if (umem_thread.failures == before)
    umemVirtual_fail(self, umemTypeError, "no layer of this %s is a umemGuarded",
                     umem_get_device_name(self));
  return NULL;
}

umemStatusType umemGuarded_protect(void *ctx, uintptr_t adr, size_t nbytes,
                                   umemGuardedAccess access) {
  UMEM_ENTER();
  umemVirtual *self = layer_of(ctx);
  if (!self) return UMEM_RESULT();
  if ((unsigned)access > umemGuardedWrite)
    return umemVirtual_fail(self, umemValueError, "%d is no access", (int)access);
  Guarded *impl = impl_of(self);
  if (!impl->has_pages) return umemOK;
  umemLock_acquire(&impl->blocks.records.lock);
  umemGuardedBlock *block = umemGuardedBlocks_at(&impl->blocks, adr);
  size_t size = block ? block->nbytes : 0;
  bool known = block && size == nbytes + !nbytes, changed = false;
  if (known) {
    umemGuardedAccess old = block->access;
    block->access = access;
    changed = umemGuardedBlock_apply(block);
    if (!changed) block->access = old;
  }
  int error = errno;
  umemLock_release(&impl->blocks.records.lock);
  if (!block)
    refuse_unknown(self, adr);
  else if (!known)
    umemVirtual_fail(self, umemValueError, "the block at 0x%" PRIxPTR " has %zu bytes, not %zu",
                     adr, size, nbytes);
  else if (!changed)
    refuse_change(self, access == umemGuardedClosed ? "close" : "open", adr, error);
  return UMEM_RESULT();
}

umemGuardedAccess umemGuarded_access(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = layer_of(ctx);
  if (!self) return umemGuardedClosed;
  Guarded *impl = impl_of(self);
  if (!impl->has_pages) return umemGuardedWrite;
  umemLock_acquire(&impl->blocks.records.lock);
  umemGuardedBlock const *block = umemGuardedBlocks_at(&impl->blocks, adr);
  umemGuardedAccess access = block ? block->access : umemGuardedClosed;
  umemLock_release(&impl->blocks.records.lock);
  if (!block) refuse_unknown(self, adr);
  return access;
}
