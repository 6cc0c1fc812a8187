/* umem/scheme.h - gives a kind of context a name that umem_open understands.
 *
 *     static umemOption const options[] = {
 *         {.name = "size", .kind = umemSizeOption, .required = true, .help = "bytes"}};
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
 *     umem_register_scheme(&arena);   // from now on: umem_open("pool+arena:?size=1G") */
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
  umemSizeOption,     /* bytes: a whole number, then K, M, G or T of 1024, or none of them; or
                         1% to 100% of what is free in the context below */
  umemShareOption,    /* a number from 0 to 1, such as 0.25 */
  umemWordOption,     /* one of words */
  umemWordsOption,    /* some of words, joined by "," */
  umemDeviceOption,   /* the number of a device, from 0 */
  umemPathOption, /* the path of a file: umem_open_with checks that it is in an allowed folder */
  /* the rest of a URL, of a place only: all up to "#", behind which the options follow. Nothing of
   * it is decoded. umem_open_with refuses it if no host is allowed; the scheme checks the host */
  umemUrlOption
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

/* The value of one option in a name. */
typedef struct umemOptionValue {
  bool given;       /* otherwise the rest is zero */
  char const *text; /* decoded; borrowed for the call */
  /* Of numbers, sizes (at most SIZE_MAX) and devices (at most INT_MAX); the index of a word; of
   * words the bits, 1 << 0 for the first. */
  uint64_t number;
  double share;
  uintptr_t reserved[4];
} umemOptionValue;

/* Constructs a context at ctx, which is context_size zero bytes. upstream: the context below,
 * borrowed; it outlives ctx. NULL for schemes that go over no other context. options: the values in
 * the order of the scheme's options. Returns umemOK; or undoes its work, and returns the type of a
 * failure that it has recorded. umem may call it from any thread, and from several at once. A C++
 * exception may leave it: umem_open then destructs the context at ctx, if it is constructed, and
 * the layers below it, and passes the exception on (see doc/concepts/callbacks.rst).
 *
 * It may allocate from upstream. A file below changes only when all layers are constructed
 * (commit): until then do not access its blocks through pointers. Copies and sets of umem are
 * allowed, but they empty the file and make it longer at once, even if a layer above fails
 * later. */
typedef umemStatusType umemSchemeConstruct(void *ctx, void *upstream, umemOptionValue const *place,
                                           umemOptionValue const *options, void *user);

/* Makes the changes outside of the process that construct has put off, because they could not be
 * undone if a layer above failed. umem_open calls it when all layers are constructed, outermost
 * first. Returns umemOK; or changes nothing, and returns the type of a failure that it has
 * recorded. umem_open then fails and destructs all layers. The commit of a layer below may fail
 * after this one; the destructor must then undo what can be undone. Changes that cannot be undone,
 * and that cannot fail, belong into complete. */
typedef umemStatusType umemSchemeCommit(void *ctx, void *user);

/* The last step, which cannot fail. umem_open calls it when the commits of all layers have
 * succeeded, outermost first. A failure that it records does not make umem_open fail. */
typedef void umemSchemeComplete(void *ctx, void *user);

/* The most options of a scheme. */
#define UMEM_SCHEME_OPTIONS 16

struct umemVtbl;

/* A kind of context that has a name. */
typedef struct umemScheme {
  size_t size;         /* sizeof(umemScheme) as the caller was compiled */
  char const *name;    /* a small letter, then small letters, digits and "-"; at most 31 in all */
  size_t context_size; /* bytes of its struct, which begins with a umemVirtual */
  bool decorates;      /* it is an adaptor: it goes over another context, and takes no place */
  umemOption const *place;   /* what stands after ":"; NULL: nothing */
  umemOption const *options; /* of distinct names; may be NULL when there are none */
  size_t option_count;
  umemSchemeConstruct *construct;
  void *user;                   /* an argument of construct, commit and complete */
  char const *help;             /* what it is, for people; NULL: nothing */
  umemSchemeCommit *commit;     /* NULL: construct has done everything that may fail */
  umemSchemeComplete *complete; /* NULL: nothing is left to do */
  /* The method table of its contexts, by which umem_find_layer knows them, however they were
   * constructed. NULL: it does not find them. */
  struct umemVtbl const *vtbl;
} umemScheme;

/* Registers scheme for umem_open, for the rest of the process. umem borrows the scheme and
 * everything to which it points; they must not change. If the struct has fewer bytes, because the
 * program was compiled against an older umem, umem copies it.
 *
 * Errors: umemValueError for a name that is taken or malformed, and for an invalid scheme;
 * umemMemoryError.
 *
 * Threads: any, at any time. */
UMEM_EXTERN umemStatusType umem_register_scheme(umemScheme const *scheme);

/* Returns the scheme with this index: first those of the library, then registered ones in their
 * order. NULL past the last. The index of a scheme never changes. */
UMEM_EXTERN umemScheme const *umem_scheme(size_t index);

#endif
