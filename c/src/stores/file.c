/* file.c - arrays in a file, read and written by calls.
 *
 * Addresses are the offsets of the engine in store.h, whose UMEM_STORE_NONE is the null of a
 * context with umemOffsets. The methods here only translate the calls. */
#include "stores/store_blocks.h"
#include "stores/store_context.h"
#include "stores/store_io.h"
#include "stores/store_lend.h"
#include "stores/store_pair.h"
#include "stores/store_read.h"
#include "stores/store_share.h"
#include "stores/store_space.h"
#include "stores/store_window.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"
#include "core/run.h"
#include "stores/store_replace.h"

#include <string.h>
#include <umem/file.h>

_Static_assert(UMEM_STORE_NONE == UINTPTR_MAX, "the engine's null is that of offsets");

static umemStore *store_of(umemVirtual *ctx) { return ((umemFile *)ctx)->impl; }

static uintptr_t file_alloc(umemVirtual *ctx, size_t nbytes) {
  return umemStore_alloc(store_of(ctx), nbytes, umemStoreGranule, false);
}

static uintptr_t file_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  return umemStore_alloc(store_of(ctx), nmemb * size, umemStoreGranule, true);
}

static void file_free(umemVirtual *ctx, uintptr_t adr) { umemStore_free(store_of(ctx), adr); }

static uintptr_t file_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  return umemStore_alloc(store_of(ctx), size, alignment, false);
}

static uintptr_t file_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return umemStore_begins(store_of(ctx), adr) ? adr : UMEM_STORE_NONE;
}

static void file_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  umemStore_set(store_of(ctx), adr, c, nbytes);
}

static void file_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                         size_t nbytes) {
  (void)that;
  umemStore_read(store_of(ctx), src_adr, (void *)dst_adr, nbytes);
}

static void file_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                           uintptr_t src_adr, size_t nbytes) {
  (void)that;
  umemStore_write(store_of(ctx), dst_adr, (void const *)src_adr, nbytes);
}

static void file_flush(umemVirtual *ctx) { umemStore_flush(store_of(ctx)); }

static void file_trim(umemVirtual *ctx, size_t keep) { umemStore_trim(store_of(ctx), keep); }

static void file_info(umemVirtual *ctx, umemInfo *info) { umemStore_info(store_of(ctx), info); }

static uintptr_t file_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  return umemStore_realloc(store_of(ctx), adr, old_size, new_size);
}

static bool file_window(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                        umemWindow *window) {
  return umemStore_window(store_of(ctx), adr, nbytes, access, window);
}

static bool file_direct_file(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                             umemDirectFile *file) {
  return umemStore_lend(store_of(ctx), adr, nbytes, access, file);
}

static bool file_share(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle,
                       int *fd) {
  return umemStore_describe(store_of(ctx), adr, nbytes, handle, fd);
}

static bool file_attach(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr) {
  (void)fd;
  *adr = (uintptr_t)handle->offset;
  return umemStore_has(store_of(ctx), handle);
}

static umemSearch file_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  return umemStore_search(store_of(ctx), adr, found);
}

static bool file_locate(umemVirtual *ctx, uintptr_t adr, uint64_t where[3]) {
  memcpy(where, ctx->space, sizeof ctx->space);
  where[2] = adr;
  return true;
}

static struct umemVtbl const file_vtbl = {
    .dtor = umemStore_dtor,
    .alloc = file_alloc,
    .calloc = file_calloc,
    .free = file_free,
    .aligned_alloc = file_aligned_alloc,
    .aligned_origin = file_aligned_origin,
    .aligned_free = file_free,
    .set = file_set,
    .copy_to = file_copy_to,
    .copy_from = file_copy_from,
    .flush = file_flush,
    .trim = file_trim,
    .info = file_info,
    .realloc = file_realloc,
    .window = file_window,
    .direct_file = file_direct_file,
    .share = file_share,
    .attach = file_attach,
    .find = file_find,
    .usage = umemStore_usage,
    .locate = file_locate,
};

/* ---- construction ---- */

static bool file_start(umemVirtual *ctx, void const *options) {
  (void)options;
  umem_stage_ask(umemStore_copy_pair);
  return umemStore_identify(store_of(ctx), ctx->space);
}

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
    .start = file_start,
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
