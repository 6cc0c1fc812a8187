/* store_context.h - what the contexts over a store have in common. */
#ifndef UMEM_STORE_CONTEXT_H
#define UMEM_STORE_CONTEXT_H

#include "core/kind.h"
#include "stores/store.h"

/* Where the bytes of a new context come from. */
typedef struct umemStoreWish {
  enum {
    umemStoreOpens = 0, /* filename in mode; NULL: a scratch file */
    umemStoreReplaces,  /* a new file that is to take the place of filename */
    umemStoreTakesOver  /* the descriptor fd */
  } source;
  char const *filename, *mode;
  umemFileOptions const *options; /* NULL: the defaults */
  int fd;
  bool
      waits; /* somebody else calls umemStore_commit, when what goes over the context is constructed */
} umemStoreWish;

/* Makes *ctx a context of this kind, whose impl is the umemStore. kind->start adds what the kind alone needs,
 * before the file is locked. A descriptor stays the caller's when this fails. */
umemStatusType umemStore_construct(void *ctx, umemKind const *kind, umemStoreWish const *wish);
void umemStore_dtor(umemVirtual *ctx);
bool umemStore_usage(umemVirtual *ctx, umemUsage *usage);

/* What the schemes have in common; user is the umemKind. */
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
