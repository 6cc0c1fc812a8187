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

static void get(umemVirtual *ctx, uintptr_t src_adr, unsigned char *dst, size_t nbytes) {
  Mpi const *mpi = mpi_of(ctx);
  int error = MPI_SUCCESS;
  for (size_t done = 0; done < nbytes && error == MPI_SUCCESS; done += piece) {
    int const n = (int)lesser(nbytes - done, piece);
    error = MPI_Get(dst + done, n, MPI_BYTE, mpi->rank, (MPI_Aint)(src_adr + done), n, MPI_BYTE,
                    mpi->window->data);
  }
  complete(ctx, error, "MPI_Get");
}

static void put(umemVirtual *ctx, uintptr_t dst_adr, unsigned char const *src, size_t nbytes) {
  Mpi const *mpi = mpi_of(ctx);
  int error = MPI_SUCCESS;
  for (size_t done = 0; done < nbytes && error == MPI_SUCCESS; done += piece) {
    int const n = (int)lesser(nbytes - done, piece);
    error = MPI_Put(src + done, n, MPI_BYTE, mpi->rank, (MPI_Aint)(dst_adr + done), n, MPI_BYTE,
                    mpi->window->data);
  }
  complete(ctx, error, "MPI_Put");
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
