/* name.h - the names of umem_open, taken apart.
 *
 *   name.c        layers and options, and what is said of those that are wrong
 *   name_value.c  the values of places and options
 */
#ifndef UMEM_NAME_H
#define UMEM_NAME_H

#include "open/kinds.h"

#include <umem/open.h>

enum { umemNameLayers = 16 };

/* Bytes of what a layer is called in messages. */
#define UMEM_LAYER_NAME 64

typedef struct umemNameLayer {
  umemScheme const *scheme;
  umemOptionValue place;
  umemOptionValue options[UMEM_SCHEME_OPTIONS]; /* in the order of the scheme's */
} umemNameLayer;

typedef struct umemName {
  size_t count;
  umemNameLayer layers[umemNameLayers]; /* outermost first; the last one goes over nothing */
  char text[UMEM_NAME_SIZE];            /* cut into the texts of the values */
} umemName;

/* Takes text apart; the schemes' options are all checked, but by no constructor. False with a status
 * of the thread when something is wrong. */
bool umemName_parse(umemName *name, char const *text);

/* What the layer at index is called where its options are named: "pool"; where there are several of its
 * scheme, "pool.2" for the second one. Into text, of UMEM_LAYER_NAME bytes. */
char const *umemName_layer(umemName const *name, size_t index, char *text);

/* Sets *value to what text says, which is decoded in place. label names the option in messages. */
bool umemName_value(umemOption const *option, char const *label, char *text,
                    umemOptionValue *value);

/* What would be right for option, in words; into buffer, of UMEM_MESSAGE_SIZE bytes. */
char const *umemName_right(umemOption const *option, char *buffer);

#endif
