/* mpi_copy.c - copies between the window and RAM, and sets. */
#include "mpi_context.h"

#include <stdlib.h>
#include <string.h>

enum {
  piece = 1 << 30, /* the most bytes of one operation: MPI counts in int */
  set_piece = 1 << 20
};

static size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

/* Waits until what was begun is done, at both sides; also after an error. */
static bool complete(umemVirtual *ctx, int error, char const *what) {
  Mpi const *mpi = mpi_of(ctx);
  int flushed = MPI_Win_flush(mpi->rank, mpi->window->data);
  if (error != MPI_SUCCESS) return mpi_fail(ctx, error, what);
  return flushed == MPI_SUCCESS || mpi_fail(ctx, flushed, "MPI_Win_flush");
}

/* Begin to get and to put. Return MPI's error. */
static int begin_get(Mpi const *mpi, uintptr_t src_adr, unsigned char *dst, size_t nbytes) {
  int error = MPI_SUCCESS;
  for (size_t done = 0; done < nbytes && error == MPI_SUCCESS; done += piece) {
    int const n = (int)lesser(nbytes - done, piece);
    error = MPI_Get(dst + done, n, MPI_BYTE, mpi->rank, (MPI_Aint)(src_adr + done), n, MPI_BYTE,
                    mpi->window->data);
  }
  return error;
}

static int begin_put(Mpi const *mpi, uintptr_t dst_adr, unsigned char const *src, size_t nbytes) {
  int error = MPI_SUCCESS;
  for (size_t done = 0; done < nbytes && error == MPI_SUCCESS; done += piece) {
    int const n = (int)lesser(nbytes - done, piece);
    error = MPI_Put(src + done, n, MPI_BYTE, mpi->rank, (MPI_Aint)(dst_adr + done), n, MPI_BYTE,
                    mpi->window->data);
  }
  return error;
}

static void get(umemVirtual *ctx, uintptr_t src_adr, unsigned char *dst, size_t nbytes) {
  complete(ctx, begin_get(mpi_of(ctx), src_adr, dst, nbytes), "MPI_Get");
}

static void put(umemVirtual *ctx, uintptr_t dst_adr, unsigned char const *src, size_t nbytes) {
  complete(ctx, begin_put(mpi_of(ctx), dst_adr, src, nbytes), "MPI_Put");
}

void mpi_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                 size_t nbytes) {
  (void)that;
  if (!mpi_is_open(ctx) || !mpi_has(ctx, "read", src_adr, nbytes)) return;
  unsigned char const *here = mpi_here(mpi_of(ctx), src_adr);
  if (!here)
    get(ctx, src_adr, (unsigned char *)dst_adr, nbytes);
  else if (mpi_sync_to_read(ctx))
    memmove((void *)dst_adr, here, nbytes);
}

void mpi_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                   size_t nbytes) {
  (void)that;
  if (!mpi_is_open(ctx) || !mpi_has(ctx, "write", dst_adr, nbytes)) return;
  unsigned char *here = mpi_here(mpi_of(ctx), dst_adr);
  if (!here) {
    put(ctx, dst_adr, (unsigned char const *)src_adr, nbytes);
  } else {
    memmove(here, (void const *)src_adr, nbytes);
    mpi_sync(ctx);
  }
}

/* Whether MPI can read (puts), or write, memory of other by its addresses, and nothing is queued
 * there. */
static bool is_memory(umemVirtual const *other, bool puts) {
  unsigned const access = puts ? umemCpuReadable : umemCpuWritable;
  unsigned const never = umemFaultable | umemOrdered | umemDeviceShared | umemOffsets;
  return (other->capabilities & (access | never)) == access &&
         !umem_get_upstream((void *)(uintptr_t)other);
}

/* Gets or puts all runs, and waits for them once. */
bool mpi_copy_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst, umemCopyRun *runs,
                   size_t count) {
  bool puts = ctx == dst;
  Mpi const *mpi = mpi_of(ctx);
  int error = MPI_SUCCESS;
  size_t begun = 0;
  if (!is_memory(puts ? src : dst, puts) || mpi_here(mpi, puts ? runs->dst_adr : runs->src_adr))
    return false;
  if (!mpi_is_open(ctx)) return true;
  for (; begun < count && error == MPI_SUCCESS; begun++) {
    umemCopyRun *run = &runs[begun];
    uintptr_t there = puts ? run->dst_adr : run->src_adr;
    if (run->state != umemRunWaits) continue;
    if (!mpi_has(ctx, puts ? "write" : "read", there, run->nbytes)) break;
    error = puts ? begin_put(mpi, there, (unsigned char const *)run->src_adr, run->nbytes)
                 : begin_get(mpi, there, (unsigned char *)run->dst_adr, run->nbytes);
  }
  if (begun < count && error == MPI_SUCCESS) runs[begun].state = umemRunFailed;
  if (!complete(ctx, error, puts ? "MPI_Put" : "MPI_Get")) return true;
  for (size_t i = 0; i < begun; i++) runs[i].state = umemRunDone;
  return true;
}

/* One buffer of the value, again and again. */
static void set_remote(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  Mpi const *mpi = mpi_of(ctx);
  size_t const step = lesser(nbytes, set_piece);
  unsigned char small[256], *bytes = step > sizeof small ? malloc(step) : small;
  int error = MPI_SUCCESS;
  if (!bytes) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a buffer of %zu bytes", step);
    return;
  }
  memset(bytes, c, step);
  for (size_t done = 0; done < nbytes && error == MPI_SUCCESS; done += step) {
    int const n = (int)lesser(nbytes - done, step);
    error = MPI_Put(bytes, n, MPI_BYTE, mpi->rank, (MPI_Aint)(adr + done), n, MPI_BYTE,
                    mpi->window->data);
  }
  complete(ctx, error, "MPI_Put");
  if (bytes != small) free(bytes);
}

void mpi_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  if (!mpi_is_open(ctx) || !mpi_has(ctx, "set", adr, nbytes)) return;
  unsigned char *here = mpi_here(mpi_of(ctx), adr);
  if (!here) {
    set_remote(ctx, adr, c, nbytes);
  } else {
    memset(here, c, nbytes);
    mpi_sync(ctx);
  }
}
