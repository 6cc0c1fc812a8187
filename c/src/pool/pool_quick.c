/* pool_quick.c - the quick functions of pools and their views: a small block from the calling
 * thread's cache, and back to it.
 *
 * All else goes to umem_alloc_in_full and umem_free_in_full: the methods of pool_block.c do the
 * same, and more. Each function calls nothing before its end, so it has few registers to save: see
 * c/CMakeLists.txt for the thread variable. */
#include "pool/pool_cache.h"

static inline umemPoolCore const *core_of(umemVirtual const *ctx) {
  return (umemPoolCore const *)ctx->reserved[umemQuickOwnAt];
}

static inline uint64_t serial_of(umemVirtual const *ctx) {
  return ctx->reserved[umemQuickOwnAt + 1];
}

static uintptr_t quick_alloc(umemVirtual *ctx, size_t nbytes, void const *caller) {
  umemPoolCache *cache = umemPoolCache_last();
  umemPoolEntry entry;
  if (__builtin_expect(nbytes > umemPoolSmall, 0)) return umem_alloc_in_full(ctx, nbytes, caller);
  size_t class = core_of(ctx)->class_of[(nbytes + umemPoolGrain - 1) / umemPoolGrain];
  if (__builtin_expect(!umemPoolCache_take(cache, serial_of(ctx), class, &entry), 0))
    return umem_alloc_in_full(ctx, nbytes, caller);
  __atomic_store_n(entry.live, 1, __ATOMIC_RELAXED);
  return entry.adr;
}

/* Notes the part of the page map for adr in the cache. False when it knew that, or the map has
 * none. */
static bool get_to_know(umemPoolCache *cache, umemPoolCore const *core, uint64_t region) {
  umemPoolKnown *known = &cache->known[region % umemPoolKnownCount];
  umemPageLeaf const *leaf = umemPageMap_leaf(&core->map, region);
  if (!leaf || (known->leaf == leaf && known->region == region)) return false;
  *known = (umemPoolKnown){region, leaf};
  return true;
}

static umemQuickFree quick_free;

static __attribute__((noinline)) void free_slowly(umemVirtual *ctx, uintptr_t adr,
                                                  void const *caller) {
  umemPoolCache *cache = umemPoolCache_last();
  bool mine = umemPoolCache_enter(cache, serial_of(ctx));
  bool learns = mine && get_to_know(cache, core_of(ctx), (uint64_t)adr >> umemPageRegionShift);
  if (mine) umemPoolCache_leave(cache);
  if (learns)
    quick_free(ctx, adr, caller);
  else
    umem_free_in_full(ctx, adr, caller);
}

/* Where the block at adr, of this word of the page map and this slot, has its byte; NULL where no
 * block begins at adr. */
static inline unsigned char *byte_of(uintptr_t word, umemPoolSlot const *slot, uintptr_t adr) {
  umemPoolSpan *span = umemPoolSpan_of(word);
  uint64_t offset = umemPoolSpan_offset(word, adr), index = offset * slot->magic >> 40;
  bool begins = span && index < slot->blocks && index * slot->size == offset;
  return begins ? &span->live[offset >> slot->shift] : NULL;
}

static void quick_free(umemVirtual *ctx, uintptr_t adr, void const *caller) {
  umemPoolCache *cache = umemPoolCache_last();
  uint64_t region = (uint64_t)adr >> umemPageRegionShift;
  umemPoolKnown const *known = &cache->known[region % umemPoolKnownCount];
  if (__builtin_expect(!umemPoolCache_enter(cache, serial_of(ctx)), 0)) {
    umem_free_in_full(ctx, adr, caller);
    return;
  }
  if (__builtin_expect(known->region != region, 0)) {
    umemPoolCache_leave(cache);
    free_slowly(ctx, adr, caller);
    return;
  }
  uintptr_t const *where = umemPageLeaf_word(known->leaf, adr);
  umemPoolLocation location = {where, __atomic_load_n(where, __ATOMIC_ACQUIRE), NULL};
  size_t class = location.word & umemPoolClassMask;
  umemPoolSlot *slot = umemPoolCache_slot(cache, class);
  location.live = byte_of(location.word, slot, adr);
  if (__builtin_expect(!location.live || !umemPoolBlock_claim(core_of(ctx), adr, &location), 0)) {
    umemPoolCache_leave(cache);
    umem_free_in_full(ctx, adr, caller);
    return;
  }
  umemPoolEntry entry = {adr, location.live};
  bool kept = umemPoolSlot_push(slot, entry);
  umemPoolCache_leave(cache);
  if (__builtin_expect(!kept, 0))
    umemPoolBlock_make_room(umemPoolImpl_of(ctx)->list, (unsigned)class, entry);
}

void umemPoolQuick_set(umemVirtual *ctx) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  if (umem_can(ctx, umemOffsets)) return;
  ctx->reserved[umemQuickOwnAt] = (uintptr_t)impl->core;
  ctx->reserved[umemQuickOwnAt + 1] = impl->serial;
  umemQuick_set(ctx, quick_alloc, quick_free);
}
