/* registry.h - the kinds of contexts by name: those of the library, and the schemes that programs
 * have registered.
 *
 * The library's own stand in a table, which the build makes of the list in c/include/umem.h. A
 * constructor function for each file would not do: a static library leaves out files that nothing
 * refers to, and says nothing of the order of the rest. */
#ifndef UMEM_REGISTRY_H
#define UMEM_REGISTRY_H

#include "core/kind.h"

#include <umem/base.h>

/* The kinds of the library, in the order of the list. */
extern umemKind const *const umem_kinds[];
extern size_t const umem_kind_count;

/* The scheme of this name; NULL where there is none, or umem_open cannot construct its contexts. */
umemScheme const *umem_find_scheme(char const *name);

/* The kind of the library of this name, whether umem_open can construct it or not; or NULL. */
umemKind const *umem_find_kind(char const *name);

/* Whether scheme is the library's. */
bool umem_is_own_scheme(umemScheme const *scheme);

/* A list of names for a message. */
typedef struct umemNames {
  char text[400];
  size_t used;
} umemNames;

/* Appends one more, after ", ". What has no room is cut. */
void umemNames_add(umemNames *names, char const *format, ...) UMEM_PRINTF(2, 3);

/* Appends the names of all schemes; of all kinds, also those that umem_open cannot construct. */
void umemNames_add_schemes(umemNames *names);
void umemNames_add_kinds(umemNames *names);

#endif
