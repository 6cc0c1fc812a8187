/* kind.h - what the library knows of one kind of context.
 *
 * One constant umemKind beside its methods describes each kind. Its constructors make contexts
 * from it, umem_open reads options by it, functions for this kind alone check their context with
 * it, and umem_find_layer finds layers by it. The list of all kinds is c/include/umem.h. The
 * functions of this header are in context.c. */
#ifndef UMEM_KIND_H
#define UMEM_KIND_H

#include <stddef.h>
#include <umem/base.h>

typedef struct umemKind {
  /* The name, the method table, the size of the public struct, and what umem_open needs. Without
   * construct umem_open cannot make the kind: its constructor takes what no text can hold. */
  umemScheme scheme;

  /* "Pool": what umem_get_device_name returns. The public struct is then umemPool, and its
   * constructor umemPool_ctor. */
  char const *label;

  /* Of a new context; an adaptor has those of its upstream. */
  umemDeviceType type;
  uint32_t capabilities;
  size_t alignment;

  size_t impl_size; /* bytes of what impl points to, where a family allocates it for its kinds */

  /* The struct of options. options_type: its name, where it is public and begins with its size;
   * NULL where it is the kind's own, or there is none. defaults: NULL for zeros. */
  char const *options_type;
  size_t options_size;
  void const *defaults;

  /* The method table of its contexts that were constructed with options, where that is another
   * one; else NULL. */
  struct umemVtbl const *variant;

  /* Of adaptors: the blocks are those of another context, which umem_find returns in its place. */
  bool is_view;

  /* Of adaptors and stores: adds what this kind alone needs; see umemAdaptor_construct and
   * umemStore_construct, which hands no options. NULL: nothing to do. */
  bool (*start)(umemVirtual *ctx, void const *options);
} umemKind;

/* Whether ctx is a context of this kind. */
static inline bool umemKind_has(umemKind const *kind, umemVirtual const *ctx) {
  return ctx->vptr == kind->scheme.vtbl || (kind->variant && ctx->vptr == kind->variant);
}

/* ctx as a constructed context of this kind; else NULL and a status: umemTypeError for another
 * kind. The first step of functions for this kind alone. */
umemVirtual *umemKind_check(void *ctx, umemKind const *kind);

/* ---- methods ---- */

/* The method in slot of a constructed ctx, or NULL where its table is too short or has none. */
#define UMEM_SLOT(ctx, slot)                                                                       \
  (offsetof(struct umemVtbl, slot) < (ctx)->vtbl_size ? (ctx)->vptr->slot : NULL)

/* The upstream of ctx; NULL where it has none, or is not constructed. Records nothing. */
static inline umemVirtual *umem_below(umemVirtual *ctx) {
  umemVirtual *(*upstream)(umemVirtual *) = ctx->vptr ? UMEM_SLOT(ctx, upstream) : NULL;
  return upstream ? upstream(ctx) : NULL;
}

/* ---- options of names ---- */

/* An option whose value goes to a member of the struct of options; reserved says to which. A
 * number that the member cannot hold becomes the largest that it can. */
#define UMEM_OPTION(type, member, text, what, description)                                         \
  UMEM_OPTION_OR_0(type, member, text, what, description, false)
/* UMEM_OPTION for a member whose 0 means the default: a name must not give 0. */
#define UMEM_OPTION_NOT_0(type, member, text, what, description)                                   \
  UMEM_OPTION_OR_0(type, member, text, what, description, true)
#define UMEM_OPTION_OR_0(type, member, text, what, description, not_zero)                          \
  {                                                                                                \
    .name = text, .kind = what, .help = description, .reserved = {                                 \
      offsetof(type, member),                                                                      \
      sizeof(((type *)0)->member),                                                                 \
      not_zero                                                                                     \
    }                                                                                              \
  }

/* One word of a list, for a member that gets its index. */
#define UMEM_OPTION_WORD(type, member, text, list, description)                                    \
  {                                                                                                \
    .name = text, .kind = umemWordOption, .words = list, .help = description, .reserved = {        \
      offsetof(type, member),                                                                      \
      sizeof(((type *)0)->member)                                                                  \
    }                                                                                              \
  }

/* An option that the construct of its kind reads itself. list: of words, or NULL. */
#define UMEM_OPTION_OWN(text, what, list, description)                                             \
  { .name = text, .kind = what, .words = list, .help = description }

/* The members of a umemKind whose struct of options is public. values: of this type. */
#define UMEM_KIND_OPTIONS(type, values)                                                            \
  .options_type = #type, .options_size = sizeof(type), .defaults = &(values)

#define UMEM_OPTIONS(table) .options = (table), .option_count = sizeof(table) / sizeof *(table)

/* Room for the struct of options of any kind. */
typedef union umemKindOptions {
  max_align_t aligned;
  char bytes[256];
} umemKindOptions;

/* Puts the defaults of kind, and over them the values that a name gives, into the struct of
 * options. False with a status of the thread for a 0 that is not allowed. */
bool umemKind_read(umemKind const *kind, umemOptionValue const *given, void *options);

#endif
