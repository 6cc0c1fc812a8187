/* url.h - makes contexts over an object behind a URL. */
#ifndef UMEM_URL_H_
#define UMEM_URL_H_

#include "core/kind.h"
#include "url/url_fetch.h"

/* What a new context stands for. */
typedef struct umemUrlWish {
  char const *url;   /* that requests go to */
  char const *label; /* its name in messages; NULL: the URL without user, password and query */
  umemUrlOptions const *options; /* NULL: the defaults */
  umemFetchSigner signer;        /* the context's from now on, also after a failure */
} umemUrlWish;

/* Makes *ctx a context of this kind, whose struct begins as umemUrl. */
umemStatusType umemUrl_construct(void *ctx, umemKind const *kind, umemUrlWish const *wish);

/* The requests of ctx, a context that umemUrl_construct has made. */
umemFetch *umemUrl_fetch_of(umemVirtual *ctx);

/* Whether the options can be used. Otherwise a status on ctx. */
bool umemUrl_check_options(umemVirtual *ctx, umemUrlOptions const *options);

/* ---- methods: see umem/virtual.h ---- */

void umemUrlContext_dtor(umemVirtual *ctx);
uintptr_t umemUrlContext_alloc(umemVirtual *ctx, size_t nbytes);
uintptr_t umemUrlContext_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size);
uintptr_t umemUrlContext_aligned_origin(umemVirtual *ctx, uintptr_t adr);
void umemUrlContext_free(umemVirtual *ctx, uintptr_t adr);
uintptr_t umemUrlContext_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);
void umemUrlContext_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *host,
                            uintptr_t dst_adr, size_t nbytes);
bool umemUrlContext_plan_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                              umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout);
bool umemUrlContext_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                                umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout);
bool umemUrlContext_copy_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst,
                              umemCopyRun *runs, size_t count);
void umemUrlContext_info(umemVirtual *ctx, umemInfo *info);
umemSearch umemUrlContext_find(umemVirtual *ctx, uintptr_t adr, umemFound *found);
bool umemUrlContext_usage(umemVirtual *ctx, umemUsage *usage);

#define UMEM_URL_METHODS                                                                           \
  .dtor = umemUrlContext_dtor, .alloc = umemUrlContext_alloc, .free = umemUrlContext_free,         \
  .aligned_alloc = umemUrlContext_aligned_alloc, .aligned_origin = umemUrlContext_aligned_origin,  \
  .aligned_free = umemUrlContext_free, .realloc = umemUrlContext_realloc,                          \
  .copy_to = umemUrlContext_copy_to, .plan_copy = umemUrlContext_plan_copy,                        \
  .copy_direct = umemUrlContext_copy_direct, .copy_runs = umemUrlContext_copy_runs,                \
  .info = umemUrlContext_info, .find = umemUrlContext_find, .usage = umemUrlContext_usage

/* ---- by name ---- */

enum { umemUrlHeaders = 14, umemUrlOptionCount };
extern umemOption const umem_url_place, umem_url_options[umemUrlOptionCount];
extern umemUrlOptions const umem_url_defaults;

/* What a kind of such contexts has in common with the others. */
#define UMEM_URL_KIND                                                                              \
  .type = umemUrlDevice, .capabilities = umemReadable | umemConcurrent | umemOffsets,              \
  .alignment = umemUrlGranule, .options_type = "umemUrlOptions",                                   \
  .options_size = sizeof(umemUrlOptions), .defaults = &umem_url_defaults

enum { umemUrlGranule = 16 }; /* bytes: that of files */

#endif
