/* umem/scheme.h - how a kind of context gets a name that umem_open understands.
 *
 *     static umemOption const options[] = {
 *         {.name = "size", .kind = umemSizeOption, .required = true, .help = "bytes of the arena"}};
 *
 *     static umemStatusType open_arena(void *ctx, void *upstream, umemOptionValue const *place,
 *                                      umemOptionValue const *options, void *user) {
 *       return umemArena_ctor(ctx, options[0].number);
 *     }
 *
 *     static umemScheme const arena = {.size = sizeof(umemScheme), .name = "arena",
 *         .context_size = sizeof(umemArena), .options = options, .option_count = 1,
 *         .construct = open_arena, .help = "one piece of RAM"};
 *
 *     umem_register_scheme(&arena);   // from now on: umem_open("pool+arena:?size=1G")
 */
#ifndef UMEM_SCHEME_H
#define UMEM_SCHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <umem/config.h>
#include <umem/status.h>

/* What the value of an option, or a place, may be. Decimal digits throughout. */
typedef enum umemOptionKind {
  umemTextOption = 0, /* any text but an empty one */
  umemNumberOption,   /* a whole number from 0 */
  umemSizeOption,     /* bytes: a whole number, then K, M, G or T of 1024, or none of them */
  umemShareOption,    /* a number from 0 to 1, such as 0.25 */
  umemWordOption,     /* one of words */
  umemWordsOption,    /* some of words, joined by "," */
  umemDeviceOption,   /* the number of a device, from 0 */
  umemPathOption      /* the path of a file: a text that umem_open_with keeps to its folders */
} umemOptionKind;

/* An option, or a place, that a scheme knows. */
typedef struct umemOption {
  char const *name; /* as in "name=value": a small letter, then small letters, digits and "-"; a
                          place is called so in messages */
  umemOptionKind kind;
  bool required;         /* a name without it is refused */
  char const *words;     /* of the kinds with words: at most 64, separated by spaces; else NULL */
  char const *help;      /* what it does, for people; NULL: nothing */
  uintptr_t reserved[4]; /* zero */
} umemOption;

/* What a name says of one option. */
typedef struct umemOptionValue {
  bool given;       /* otherwise the rest is zero */
  char const *text; /* decoded; borrowed for the call */
  /* Of numbers, sizes (at most SIZE_MAX) and devices (at most INT_MAX); the index of a word; of words
   * the bits, 1 << 0 for the first. */
  uint64_t number;
  double share;
  uintptr_t reserved[4];
} umemOptionValue;

/* Constructs a context at ctx, context_size bytes that are zero, over upstream (NULL for schemes that
 * go over nothing), which is borrowed: it outlives ctx. options: the values in the order of the
 * scheme's options. Returns umemOK; or a type that it has recorded, and then has undone its work.
 * Called from any thread, by several at once. A C++ exception may leave it: umem_open then destructs the
 * context at ctx, if it is constructed, and the layers below it, and lets the exception pass (see
 * doc/concepts/callbacks.rst).
 *
 * It may allocate from upstream. A file below changes only when all layers are constructed (commit): until
 * then do not access blocks of it through pointers. Copies and sets of umem are allowed, but they empty the
 * file and make it longer at once, also if a layer above refuses later. */
typedef umemStatusType umemSchemeConstruct(void *ctx, void *upstream, umemOptionValue const *place,
                                           umemOptionValue const *options, void *user);

/* Carries out what construct has held back on ctx: changes outside of the process that could not be undone
 * if a layer above refused. umem_open calls it when all layers are constructed, outermost first. Returns
 * umemOK; or a type that it has recorded, and then must have changed nothing: umem_open fails and destructs
 * all layers. The commit of a layer further in may fail after this one: the destructor then undoes what can be
 * undone, and what cannot be belongs to complete, if it cannot fail. */
typedef umemStatusType umemSchemeCommit(void *ctx, void *user);

/* The last step, which cannot fail. umem_open calls it when the commits of all layers have succeeded, outermost
 * first. A failure that it records does not make umem_open fail. */
typedef void umemSchemeComplete(void *ctx, void *user);

/* The most options of a scheme. */
#define UMEM_SCHEME_OPTIONS 16

struct umemVtbl;

/* A kind of context that has a name. */
typedef struct umemScheme {
  size_t size;         /* sizeof(umemScheme) as the caller was compiled */
  char const *name;    /* a small letter, then small letters, digits and "-"; at most 31 in all */
  size_t context_size; /* bytes of its struct, which begins with a umemVirtual */
  bool decorates;      /* it goes over another context, and takes no place */
  umemOption const *place;   /* what stands after ":"; NULL: nothing */
  umemOption const *options; /* of distinct names; may be NULL when there are none */
  size_t option_count;
  umemSchemeConstruct *construct;
  void *user;                   /* handed to construct, commit and complete */
  char const *help;             /* what it is, for people; NULL: nothing */
  umemSchemeCommit *commit;     /* NULL: construct has done everything that may fail */
  umemSchemeComplete *complete; /* NULL: nothing is left to do */
  /* The method table of its contexts, by which umem_find_layer knows them, however they were constructed.
   * NULL: it does not find them. */
  struct umemVtbl const *vtbl;
} umemScheme;

/* Makes scheme known to umem_open, for the rest of the process. It is borrowed, with all it points to,
 * and must stay as it is; one of fewer bytes, of a program that was compiled against an older umem, is
 * copied.
 *
 * Errors: umemValueError for a name that is taken or malformed, and for a scheme that cannot be right;
 * umemMemoryError.
 *
 * Threads: any, at any time. */
UMEM_EXTERN umemStatusType umem_register_scheme(umemScheme const *scheme);

/* The index-th scheme, those of the library first, then others in the order in which they came; NULL
 * past the last. Each index keeps its scheme. */
UMEM_EXTERN umemScheme const *umem_scheme(size_t index);

#endif
