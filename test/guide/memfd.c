/* memfd.c - memory that other processes can map, from memfd_create: a file without a name or a
 * disk.
 *
 * The engine for files does the work. Its UMEM_STORE_METHODS are the whole table of methods, and
 * because the kind is umemFaultable, the engine maps the memory, so that addresses are pointers. */
#include "core/context.h"
#include "core/status.h"
#include "stores/store.h"

#include <errno.h>
#include <sys/mman.h>
#include <umem/memfd.h>
#include <unistd.h>

static struct umemVtbl const memfd_vtbl = {UMEM_STORE_METHODS};

/* ---- by name: "memfd:?reserve=none" ---- */

static umemOption const options[] = {
    {.name = "reserve",
     .kind = umemWordOption,
     .words = "auto none",
     .help = "memory when a block is allocated, or when it is written; default: auto",
     .reserved = {offsetof(umemFileOptions, reserve), sizeof(umemReserve)}},
};

static umemStatusType open_memfd(void *ctx, void *upstream, umemOptionValue const *place,
                                 umemOptionValue const *given, void *user) {
  (void)upstream, (void)place;
  umemFileOptions wish;
  if (!umemKind_read(user, given, &wish)) return umemValueError;
  return umemMemfd_ctor_with(ctx, &wish);
}

umemKind const umem_memfd_kind = {
    .scheme = {.size = sizeof(umemScheme),
               .name = "memfd",
               .context_size = sizeof(umemMemfd),
               .vtbl = &memfd_vtbl,
               UMEM_OPTIONS(options),
               .construct = open_memfd,
               .user = (void *)&umem_memfd_kind,
               .help = "memory that other processes can map"},
    .label = "Memfd",
    .type = umemVirtualDevice,
    .capabilities = umemFaultable | umemCpuReadable,
    .alignment = umemStoreGranule,
    UMEM_STORE_OPTIONS,
};

/* ---- construction ---- */

static umemStatusType fail(umemMemfd *ctx, int error) {
  char words[128];
  umem_construct(&ctx->super, &umem_memfd_kind, NULL);
  umemVirtual_fail(&ctx->super, umemMemoryError, "cannot make shared memory: %s",
                   umem_system_words(error, words, sizeof words));
  umem_construct_failed(&ctx->super);
  return umemMemoryError;
}

umemStatusType umemMemfd_ctor_with(umemMemfd *ctx, umemFileOptions const *given) {
  UMEM_ENTER();
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  int fd = memfd_create("umem", MFD_CLOEXEC);
  if (fd < 0) return fail(ctx, errno);
  umemStoreWish wish = {.source = umemStoreTakesOver, .fd = fd, .options = given};
  umemStatusType status = umemStore_construct(ctx, &umem_memfd_kind, &wish);
  if (status != umemOK) close(fd);
  return status;
}

umemStatusType umemMemfd_ctor(umemMemfd *ctx) {
  UMEM_ENTER();
  return umemMemfd_ctor_with(ctx, NULL);
}

int umemMemfd_descriptor(umemMemfd *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_memfd_kind);
  return self ? ((umemStore *)ctx->impl)->fd : -1;
}
