/* mmap.c - arrays in a file, addressed by pointers.
 *
 * Copies of runs, and sets, go through the descriptor and cannot fault, whatever others do to the
 * file; copies of single items and of lists are fault-tolerant (base/faultable.h). */
#include "core/context.h"
#include "stores/store.h"

#include <inttypes.h>
#include <umem/mmap.h>

static struct umemVtbl const mmap_vtbl = {UMEM_STORE_METHODS};

umemKind const umem_mmap_kind = {
    .scheme = {.size = sizeof(umemScheme),
               .name = "mmap",
               .context_size = sizeof(umemMMap),
               .vtbl = &mmap_vtbl,
               UMEM_STORE_SCHEME(umem_mmap_kind),
               .help = "a file, mapped into memory"},
    .label = "MMap",
    .type = umemMMapDevice,
    .capabilities = umemFaultable | umemCpuReadable,
    .alignment = umemStoreGranule,
    UMEM_STORE_OPTIONS,
};

/* ---- constructors ---- */

UMEM_STORE_CTORS(umemMMap, umem_mmap_kind)

/* ---- offsets in the file ---- */

uintptr_t umemMMap_offset(umemMMap *ctx, uintptr_t adr) {
  UMEM_ENTER();
  if (!umemKind_check(ctx, &umem_mmap_kind)) return UINTPTR_MAX;
  umemStore *store = ctx->impl;
  return umemStore_maps(store, adr, umemIndexError) ? umemStore_offset(store, adr) : UINTPTR_MAX;
}

uintptr_t umemMMap_address(umemMMap *ctx, uintptr_t offset) {
  UMEM_ENTER();
  uint64_t length;
  if (!umemKind_check(ctx, &umem_mmap_kind) || !umemStore_ensure_committed(ctx->impl)) return 0;
  if (!umemStore_measure(ctx->impl, &length)) return 0;
  umemStore *store = ctx->impl;
  if (offset < length && offset < store->limit) return umemStore_address(store, offset);
  return UMEM_FAIL_AS(0, ctx, umemIndexError,
                      "offset %" PRIuPTR " is past the end of %s (%" PRIu64 " bytes)", offset,
                      store->label, length);
}
