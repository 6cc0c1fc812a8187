/* pointers.h - a context as the guide "Write your own context" says, whose addresses are
 * pointers. */
#pragma once

#include <umem.h>

/* Knows where its blocks begin, so that a wrong free is refused, and nothing of their sizes: its
 * copies trust the caller. All methods but those that the guide asks for are defaults. */
typedef struct Pointers {
  umemVirtual super;
  umemHost host;
  void **blocks; /* owned */
  size_t count, room;
} Pointers;

umemStatusType pointers_ctor(Pointers *ctx);
