/* mpi_context.h - the context, for its methods. */
#ifndef UMEM_MPI_CONTEXT_H
#define UMEM_MPI_CONTEXT_H

#include "mpi_units.h"

typedef struct Mpi {
  MpiWindow *window; /* a holder of it */
  int rank;
  uint64_t capacity;
  unsigned char
      *part;   /* the memory, if the CPU can use it; else NULL. Valid while the window is open */
  bool fenced; /* fences of the CPU order accesses to part, without MPI */
  MpiUnits units;
  umemHost host;      /* for intermediate buffers */
  unsigned char *run; /* owned, atomic: a buffer of mpi_strided.c, or NULL */
} Mpi;

static inline Mpi *mpi_of(umemVirtual *ctx) { return ((umemMpi *)ctx)->impl; }

/* Whether ctx is a context of this component. */
bool mpi_is(umemVirtual const *ctx);

/* Record the status of the next two functions. Always false. */
bool mpi_fail_ended(umemVirtual *ctx);
bool mpi_fail_bounds(umemVirtual *ctx, char const *what, uintptr_t adr, size_t nbytes);

/* Whether the window still exists; else a status. */
static inline bool mpi_is_open(umemVirtual *ctx) {
  return __atomic_load_n(&mpi_of(ctx)->window->open, __ATOMIC_ACQUIRE) || mpi_fail_ended(ctx);
}

/* Whether nbytes at adr are in the part of the rank; else a status. what: "read" or "write". */
static inline bool mpi_has(umemVirtual *ctx, char const *what, uintptr_t adr, size_t nbytes) {
  uint64_t const capacity = mpi_of(ctx)->capacity;
  return (adr <= capacity && nbytes <= capacity - adr) || mpi_fail_bounds(ctx, what, adr, nbytes);
}

/* The pointer to adr, if the CPU can use it while the window is open. NULL otherwise. */
static inline unsigned char *mpi_here(Mpi const *mpi, uintptr_t adr) {
  return mpi->part ? mpi->part + adr : NULL;
}

/* A fence of the CPU and MPI_Win_sync, in which MPI may complete operations of other ranks on this
 * one; a status if it fails. */
bool mpi_sync_by_mpi(umemVirtual *ctx);

/* After accesses of the CPU to the window, which others then see. A status if it fails. */
static inline bool mpi_sync(umemVirtual *ctx) {
  if (!mpi_of(ctx)->fenced) return mpi_sync_by_mpi(ctx);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return true;
}

/* Before the CPU reads the window: it then sees what others have written and completed. Among ranks
 * of one machine, who writes has the fence for both. */
static inline bool mpi_sync_to_read(umemVirtual *ctx) {
  if (!mpi_of(ctx)->fenced) return mpi_sync(ctx);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return true;
}

/* ---- the methods of mpi_copy.c and mpi_strided.c ---- */

void mpi_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                 size_t nbytes);
void mpi_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                   size_t nbytes);
bool mpi_copy_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst, umemCopyRun *runs,
                   size_t count);
void mpi_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
bool mpi_plan_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                   uintptr_t dst_adr, umemLayout const *layout);
bool mpi_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                     uintptr_t dst_adr, umemLayout const *layout);

#endif
