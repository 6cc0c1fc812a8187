/* mpi_context.h - the context, for its methods. */
#ifndef UMEM_MPI_CONTEXT_H
#define UMEM_MPI_CONTEXT_H

#include "mpi_units.h"

typedef struct Mpi {
  MpiWindow *window; /* a holder of it */
  int rank;
  uint64_t capacity;
  unsigned char
      *part; /* the memory, if the CPU can use it; else NULL. Valid while the window is open */
  MpiUnits units;
  umemHost host;      /* for intermediate buffers */
  unsigned char *run; /* owned, atomic: a buffer of mpi_strided.c, or NULL */
} Mpi;

static inline Mpi *mpi_of(umemVirtual *ctx) { return ((umemMpi *)ctx)->impl; }

/* Whether ctx is a context of this component. */
bool mpi_is(umemVirtual const *ctx);

/* Whether the window still exists; else a status. */
bool mpi_is_open(umemVirtual *ctx);

/* Whether nbytes at adr are in the part of the rank; else a status. what: "read" or "write". */
bool mpi_has(umemVirtual *ctx, char const *what, uintptr_t adr, size_t nbytes);

/* The pointer to adr, if the CPU can use it while the window is open. NULL otherwise. */
static inline unsigned char *mpi_here(Mpi const *mpi, uintptr_t adr) {
  return mpi->part ? mpi->part + adr : NULL;
}

/* Around accesses of the CPU to the window: a status if it fails. */
bool mpi_sync(umemVirtual *ctx);

/* ---- the methods of mpi_copy.c and mpi_strided.c ---- */

void mpi_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                 size_t nbytes);
void mpi_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                   size_t nbytes);
void mpi_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
bool mpi_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                     uintptr_t dst_adr, umemLayout const *layout);

#endif
