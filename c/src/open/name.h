/* name.h - the names of umem_open, taken apart. */
#ifndef UMEM_NAME_H
#define UMEM_NAME_H

#include "open/registry.h"

#include <umem/open.h>

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
