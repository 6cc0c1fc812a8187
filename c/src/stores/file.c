/* file.c - arrays in a file, read and written by calls. Addresses are offsets in the file. */
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"
#include "stores/store.h"
#include "stores/store_open.h"

#include <umem/file.h>

static struct umemVtbl const file_vtbl = {UMEM_STORE_METHODS};

umemKind const umem_file_kind = {
    .scheme = {.size = sizeof(umemScheme),
               .name = "file",
               .context_size = sizeof(umemFile),
               .vtbl = &file_vtbl,
               UMEM_STORE_SCHEME(umem_file_kind),
               .help = "a file, read and written by calls"},
    .label = "File",
    .type = umemFileDevice,
    .capabilities = umemOffsets,
    .alignment = umemStoreGranule,
    UMEM_STORE_OPTIONS,
};

umemStatusType umemFile_ctor(umemFile *ctx, char const *filename, char const *mode) {
  UMEM_ENTER();
  return umemFile_ctor_with(ctx, filename, mode, NULL);
}

umemStatusType umemFile_ctor_with(umemFile *ctx, char const *filename, char const *mode,
                                  umemFileOptions const *options) {
  UMEM_ENTER();
  umemStoreWish wish = {.filename = filename, .mode = mode, .options = options};
  return umemStore_construct(ctx, &umem_file_kind, &wish);
}

umemStatusType umemFile_adopt(umemFile *ctx, int fd) {
  UMEM_ENTER();
  return umemFile_adopt_with(ctx, fd, NULL);
}

umemStatusType umemFile_adopt_with(umemFile *ctx, int fd, umemFileOptions const *options) {
  UMEM_ENTER();
  umemStoreWish wish = {.source = umemStoreTakesOver, .fd = fd, .options = options};
  return umemStore_construct(ctx, &umem_file_kind, &wish);
}

umemStatusType umemFile_replace(umemFile *ctx, char const *filename) {
  UMEM_ENTER();
  return umemFile_replace_with(ctx, filename, NULL);
}

umemStatusType umemFile_replace_with(umemFile *ctx, char const *filename,
                                     umemFileOptions const *options) {
  UMEM_ENTER();
  umemStoreWish wish = {.source = umemStoreReplaces, .filename = filename, .options = options};
  return umemStore_construct(ctx, &umem_file_kind, &wish);
}

umemStatusType umemFile_draft(umemFile *ctx, char *path, size_t size) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  if (umemKind_check(ctx, &umem_file_kind)) umemReplace_show(ctx->impl, path, size);
  return umem_result(before);
}

umemStatusType umemFile_commit(umemFile *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  if (umemKind_check(ctx, &umem_file_kind)) umemReplace_commit(ctx->impl);
  return umem_result(before);
}
