/* store_context.c - what the contexts over a store have in common: construction, names, the end. */
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"
#include "stores/store_commit.h"
#include "stores/store_context.h"
#include "stores/store_open.h"
#include "stores/store_replace.h"

#include <string.h>

/* ---- construction ---- */

/* Both types are {super, impl, ...}. */
static umemStore **impl_of(umemVirtual *ctx) { return (umemStore **)(void *)(ctx + 1); }

static umemStore *open_store(umemVirtual *ctx, umemKind const *kind, umemStoreWish const *wish) {
  bool mapped = kind->capabilities & umemFaultable;
  if (wish->source == umemStoreReplaces)
    return umemStore_replace(ctx, wish->filename, wish->options);
  if (wish->source == umemStoreTakesOver)
    return umemStore_take_over(ctx, wish->fd, wish->options, mapped);
  return umemStore_open(ctx, wish->filename, wish->mode, wish->options, mapped);
}

umemStatusType umemStore_construct(void *ctx, umemKind const *kind, umemStoreWish const *wish) {
  umemVirtual *self = ctx;
  uint64_t before = umem_thread.failures;
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  memset(ctx, 0, kind->scheme.context_size);
  umem_construct(self, kind, NULL);
  umemStore *store = *impl_of(self) = open_store(self, kind, wish);
  if (store && kind->start(self, NULL) && umemStore_start(store) &&
      (wish->waits || umemStore_commit(store))) {
    self->capabilities |= umemStore_capabilities(store);
    self->host = &store->host;
    umemLive_add(&store->live, self);
    return umemOK;
  }
  umemStore_close(store);
  *impl_of(self) = NULL;
  umem_construct_failed(self);
  return umem_result(before);
}

void umemStore_dtor(umemVirtual *ctx) {
  umemLive_remove(&(*impl_of(ctx))->live);
  umemStore_close(*impl_of(ctx));
}

bool umemStore_usage(umemVirtual *ctx, umemUsage *usage) {
  umemStore *store = *impl_of(ctx);
  if (!umemLock_try(&store->lock)) return false;
  usage->nbytes = umemRange_totals(store->range).live_bytes;
  umemLock_release(&store->lock);
  return true;
}

/* ---- by name: "file:scratch.bin?mode=w+", "mmap:array.bin?mode=r" ---- */

umemOption const umem_store_path = {.name = "path",
                                    .kind = umemPathOption,
                                    .help = "of the file; without one it is a scratch file"};

static char const *const modes[] = {"r", "r+", "w", "w+", "a", "a+"};

_Static_assert(umemReserveAuto == 0 && umemReserveNone == 1, "the indices of the words of reserve");
_Static_assert(umemReuseAuto == 0 && umemReuseNo == 2, "those of reuse");
_Static_assert(umemDirectAuto == 0 && umemDirectOn == 1 && umemDirectOff == 2, "those of direct");

umemOption const umem_store_options[umemStoreOptionCount] = {
    {.name = "mode",
     .kind = umemWordOption,
     .words = "r r+ w w+ a a+",
     .help = "as of umemFile_ctor; default: r+, for a scratch file w+"},
    {.name = "reserve",
     .kind = umemWordOption,
     .words = "auto none",
     .help = "disk space when a block is allocated, or when it is written; default: auto",
     .reserved = {offsetof(umemFileOptions, reserve), sizeof(umemReserve)}},
    {.name = "direct",
     .kind = umemWordOption,
     .words = "auto on off",
     .help = "long transfers around the page cache; default: auto",
     .reserved = {offsetof(umemFileOptions, direct), sizeof(umemDirect)}},
    {.name = "reuse",
     .kind = umemWordOption,
     .words = "auto yes no",
     .help = "bytes of an array of a named file that has ended, while it is open; auto: C reuses",
     .reserved = {offsetof(umemFileOptions, reuse), sizeof(umemReuse)}},
};

umemFileOptions const umem_store_defaults = UMEM_FILE_OPTIONS_INIT;

static char const *mode_of(umemOptionValue const *place, umemOptionValue const *given) {
  if (given[0].given) return modes[given[0].number];
  return place->given ? "r+" : "w+";
}

umemStatusType umemStore_construct_named(void *ctx, void *upstream, umemOptionValue const *place,
                                         umemOptionValue const *given, void *user) {
  (void)upstream;
  umemFileOptions options;
  if (!umemKind_read(user, given, &options)) return umemValueError;
  umemStoreWish wish = {
      .filename = place->text, .mode = mode_of(place, given), .options = &options, .waits = true};
  return umemStore_construct(ctx, user, &wish);
}

umemStatusType umemStore_commit_named(void *ctx, void *user) {
  (void)user;
  uint64_t before = umem_thread.failures;
  umemStore_commit(*impl_of(ctx));
  return umem_result(before);
}
