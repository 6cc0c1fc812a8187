/* open.h - the kinds of contexts by name, those of the library and the schemes that programs have
 * registered, and the names of umem_open, taken apart: name.c, for open.c.
 *
 * The library's own kinds stand in a table, which the build makes of the list in c/include/umem.h.
 * A constructor function for each file would not do: a static library leaves out files that nothing
 * refers to, and says nothing of the order of the rest. */
#ifndef UMEM_OPEN_PRIVATE_H
#define UMEM_OPEN_PRIVATE_H

#include "core/kind.h"

#include <umem/base.h>
#include <umem/open.h>

/* ==== kinds and schemes by name ==== */

/* The kinds of the library, in the order of the list. */
extern umemKind const *const umem_kinds[];
extern size_t const umem_kind_count;

/* The kind of the library of this name, whether umem_open can construct it or not; or NULL. */
umemKind const *umem_find_kind(char const *name);

/* Whether scheme is the library's. */
bool umem_is_own_scheme(umemScheme const *scheme);

/* A list of names for a message. */
typedef struct umemNames {
  char text[400];
  size_t used;
} umemNames;

/* Appends the names of all kinds, also of those that umem_open cannot construct, each after ", ".
 * What has no room is cut. */
void umemNames_add_kinds(umemNames *names);

/* ==== names ==== */

enum { umemNameLayers = 16 };

/* Bytes for the name of a layer in messages. */
#define UMEM_LAYER_NAME 64

typedef struct umemNameLayer {
  umemScheme const *scheme;
  umemOptionValue place;
  umemOptionValue options[UMEM_SCHEME_OPTIONS]; /* in the order of the scheme's */
} umemNameLayer;

typedef struct umemName {
  size_t count;
  umemNameLayer layers[umemNameLayers]; /* outermost first; the last one is no adaptor */
  char text[UMEM_NAME_SIZE];            /* cut into the texts of the values */
} umemName;

/* Takes text apart, and checks all options against their schemes; it calls no constructor. False
 * with a status of the thread if something is wrong. */
bool umemName_parse(umemName *name, char const *text);

/* Writes the name by which options mean the layer at index: "pool"; of several layers of one
 * scheme, "pool.2" for the second one. text: UMEM_LAYER_NAME bytes. Returns text. */
char const *umemName_layer(umemName const *name, size_t index, char *text);

/* The index of a word, text of length bytes, in words, which are separated by spaces; -1 if it is
 * not there. */
int umem_word_index(char const *words, char const *text, size_t length);

#endif
