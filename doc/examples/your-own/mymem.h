/* mymem.h - an example of a context of your own: memory inside one private arena. */
#ifndef MYMEM_H
#define MYMEM_H

#include <umem.h>

typedef struct umemMyMem {
  umemVirtual super; /* always the first member */
  umemHost host;     /* where intermediate buffers come from */

  /* What this storage needs: */
  unsigned char *bytes; /* owned: the arena */
  size_t capacity;
  struct MyMemBlock *blocks; /* owned: [count], by rising address */
  size_t count, room;
} umemMyMem;

/* Constructs *ctx with an arena of capacity bytes. Returns umemOK or umemMemoryError. */
umemStatusType umemMyMem_ctor(umemMyMem *ctx, size_t capacity);

#endif
