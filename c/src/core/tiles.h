/* tiles.h - copies items between memory that the CPU can address. */
#ifndef UMEM_TILES_H
#define UMEM_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <umem/copy.h>

#include "base/faultable.h"

/* Copies a layout in normal form in the calling thread. Only reads and writes memory: no lock, no
 * allocation, no system call. */
void umem_copy_tiles(char *dst, char const *src, umemLayout const *layout);

/* Copies a layout in normal form of rank > 0, by several threads if it is long. With ranges, of
 * dst and src, returns false when an access to one of these ranges raised SIGBUS, or when there
 * can be no guard: some of the items are copied then. */
bool umem_copy_pointers(char *dst, char const *src, umemLayout const *layout,
                        umemFaultableRange const ranges[2]);

/* How many threads umem_copy_pointers uses for layout. */
unsigned umem_pointer_workers(umemLayout const *layout);

#endif
