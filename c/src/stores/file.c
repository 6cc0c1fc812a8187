/* file.c - arrays in a file, read and written by calls. Addresses are offsets in the file. */
#include "core/context.h"
#include "stores/store.h"

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

UMEM_STORE_CTORS(umemFile, umem_file_kind)

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
  if (umemKind_check(ctx, &umem_file_kind)) umemReplace_show(ctx->impl, path, size);
  return UMEM_RESULT();
}

umemStatusType umemFile_commit(umemFile *ctx) {
  UMEM_ENTER();
  if (umemKind_check(ctx, &umem_file_kind)) umemReplace_commit(ctx->impl);
  return UMEM_RESULT();
}
