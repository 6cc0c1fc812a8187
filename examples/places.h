/* places.h - every place of this machine where umem can keep an array.
 *
 * Only the table in places.c names them. To add a place, add its constructor there. */
#ifndef PLACES_H
#define PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <umem.h>

/* Room for any context. */
typedef union Storage {
  umemVirtual base;
  umemHost host;
  umemFile file;
  umemMMap mmap;
  umemCuda cuda;
  umemCudaHost cuda_host;
  umemCudaManaged cuda_managed;
  umemCudaAsync cuda_async;
} Storage;

typedef struct Place {
  char const *name; /* for people */
  bool optional;    /* not every machine has it */
  /* Constructs the context. Files that need a name have one that begins with prefix while this
   * works, and none afterwards. */
  umemStatusType (*open)(Storage *storage, char const *prefix);
} Place;

extern Place const places[];
extern size_t const place_count;

#endif
