/* store.h - the engine for kinds of contexts over one file: their methods, construction and names.
 *
 * A kind of store has a public struct of {umemVirtual super; void *impl; ...}, a table of methods
 * that is UMEM_STORE_METHODS, a umemKind, and constructors: UMEM_STORE_CTORS, or others that call
 * umemStore_construct. With umemOffsets in the capabilities of the kind, addresses are offsets in
 * the file. With umemFaultable they are pointers, and the engine maps the file. */
#ifndef UMEM_STORE_H
#define UMEM_STORE_H

#include "core/status.h"
#include "stores/store_file.h"

/* Where the bytes of a new context come from. */
typedef struct umemStoreWish {
  enum {
    umemStoreOpens = 0, /* filename in mode; NULL: a scratch file */
    umemStoreReplaces,  /* a new file that is to take the place of filename */
    /* the descriptor fd. It may have duplicates, whose contexts have other tables of blocks: so
     * neither a free nor a trim gives space back before the end */
    umemStoreTakesOver
  } source;
  char const *filename, *mode;
  umemFileOptions const *options; /* NULL: the defaults */
  int fd;
  bool waits; /* the caller commits later, when the adaptors over the context are constructed */
} umemStoreWish;

/* Makes *ctx a context of this kind, whose impl is the umemStore. kind->start, if there is one,
 * adds what the kind alone needs, before the file is locked. The caller keeps a descriptor when
 * this fails. */
umemStatusType umemStore_construct(void *ctx, umemKind const *kind, umemStoreWish const *wish);

/* Defines the four constructors of a kind: by the name of a file, and by a descriptor that it takes
 * over; each also with options. */
#define UMEM_STORE_CTORS(type, kind)                                                               \
  umemStatusType type##_ctor_with(type *ctx, char const *filename, char const *mode,               \
                                  umemFileOptions const *options) {                                \
    UMEM_ENTER();                                                                                  \
    umemStoreWish wish = {.filename = filename, .mode = mode, .options = options};                 \
    return umemStore_construct(ctx, &(kind), &wish);                                               \
  }                                                                                                \
  umemStatusType type##_adopt_with(type *ctx, int fd, umemFileOptions const *options) {            \
    UMEM_ENTER();                                                                                  \
    umemStoreWish wish = {.source = umemStoreTakesOver, .fd = fd, .options = options};             \
    return umemStore_construct(ctx, &(kind), &wish);                                               \
  }                                                                                                \
  umemStatusType type##_ctor(type *ctx, char const *filename, char const *mode) {                  \
    UMEM_ENTER();                                                                                  \
    return type##_ctor_with(ctx, filename, mode, NULL);                                            \
  }                                                                                                \
  umemStatusType type##_adopt(type *ctx, int fd) {                                                 \
    UMEM_ENTER();                                                                                  \
    return type##_adopt_with(ctx, fd, NULL);                                                       \
  }

/* ---- addresses ---- */

/* The address of offset; null for UMEM_STORE_NONE. */
static inline uintptr_t umemStore_address(umemStore const *store, uint64_t offset) {
  return offset != UMEM_STORE_NONE ? (uintptr_t)store->base + offset
         : store->base             ? 0
                                   : UINTPTR_MAX;
}

/* Whether adr is in the mapping, if there is one; else records `otherwise`. */
bool umemStore_maps(umemStore const *store, uintptr_t adr, umemStatusType otherwise);

/* ---- methods: see umem/virtual.h ---- */

void umemStoreContext_dtor(umemVirtual *ctx);
uintptr_t umemStoreContext_alloc(umemVirtual *ctx, size_t nbytes);
uintptr_t umemStoreContext_calloc(umemVirtual *ctx, size_t nmemb, size_t size);
void umemStoreContext_free(umemVirtual *ctx, uintptr_t adr);
uintptr_t umemStoreContext_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size);
uintptr_t umemStoreContext_aligned_origin(umemVirtual *ctx, uintptr_t adr);
void umemStoreContext_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
void umemStoreContext_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *host,
                              uintptr_t dst_adr, size_t nbytes);
void umemStoreContext_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *host,
                                uintptr_t src_adr, size_t nbytes);
bool umemStoreContext_plan_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                                umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout);
bool umemStoreContext_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                                  umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout);
bool umemStoreContext_copy_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst,
                                umemCopyRun *runs, size_t count);
void umemStoreContext_flush(umemVirtual *ctx);
void umemStoreContext_trim(umemVirtual *ctx, size_t keep);
void umemStoreContext_info(umemVirtual *ctx, umemInfo *info);
uintptr_t umemStoreContext_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size,
                                   size_t new_size);
bool umemStoreContext_window(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                             umemWindow *window);
bool umemStoreContext_direct_file(umemVirtual *ctx, uintptr_t adr, size_t nbytes,
                                  umemCapability access, umemDirectFile *file);
bool umemStoreContext_share(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle,
                            int *fd);
bool umemStoreContext_attach(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr);
umemSearch umemStoreContext_find(umemVirtual *ctx, uintptr_t adr, umemFound *found);
bool umemStoreContext_usage(umemVirtual *ctx, umemUsage *usage);
void umemStoreContext_advise(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice,
                             int device);
bool umemStoreContext_locate(umemVirtual *ctx, uintptr_t adr, uint64_t where[3]);

#define UMEM_STORE_METHODS                                                                         \
  .dtor = umemStoreContext_dtor, .alloc = umemStoreContext_alloc,                                  \
  .calloc = umemStoreContext_calloc, .free = umemStoreContext_free,                                \
  .aligned_alloc = umemStoreContext_aligned_alloc,                                                 \
  .aligned_origin = umemStoreContext_aligned_origin, .aligned_free = umemStoreContext_free,        \
  .set = umemStoreContext_set, .copy_to = umemStoreContext_copy_to,                                \
  .copy_from = umemStoreContext_copy_from, .plan_copy = umemStoreContext_plan_copy,                \
  .copy_direct = umemStoreContext_copy_direct, .copy_runs = umemStoreContext_copy_runs,            \
  .flush = umemStoreContext_flush, .trim = umemStoreContext_trim, .info = umemStoreContext_info,   \
  .realloc = umemStoreContext_realloc, .window = umemStoreContext_window,                          \
  .direct_file = umemStoreContext_direct_file, .share = umemStoreContext_share,                    \
  .attach = umemStoreContext_attach, .find = umemStoreContext_find,                                \
  .usage = umemStoreContext_usage, .locate = umemStoreContext_locate,                              \
  .advise = umemStoreContext_advise

/* ---- by name ---- */

/* The options of kinds whose names have the path of a file: "file:", "mmap:". */
enum { umemStoreOptionCount = 4 };
extern umemOption const umem_store_path, umem_store_options[umemStoreOptionCount];
extern umemFileOptions const umem_store_defaults;
umemStatusType umemStore_construct_named(void *ctx, void *upstream, umemOptionValue const *place,
                                         umemOptionValue const *given, void *user);
umemStatusType umemStore_commit_named(void *ctx, void *user);
#define UMEM_STORE_SCHEME(kind)                                                                    \
  .place = &umem_store_path, UMEM_OPTIONS(umem_store_options),                                     \
  .construct = umemStore_construct_named, .commit = umemStore_commit_named,                        \
  .user = (void *)&(kind)
#define UMEM_STORE_OPTIONS .options_size = sizeof(umemFileOptions), .defaults = &umem_store_defaults

#endif
