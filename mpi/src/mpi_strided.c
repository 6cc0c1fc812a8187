/* mpi_strided.c - copies that need no buffer of umem: strided ones between RAM and the window by
 * datatypes of MPI, and those between the windows of two ranks. */
#include "mpi_context.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
  most_bytes = 1 << 30, /* of one operation */
  long_item = 512,      /* as fast by a datatype as in a run */
  run_bytes = 1 << 20,
  pass_piece = 1 << 20 /* of a buffer between two ranks */
};

/* ---- memory that MPI takes by its pointer ---- */

/* The pointer by which MPI can use the memory of other at adr for a copy; NULL: none. */
static unsigned char *pointer_of(Mpi const *mpi, umemVirtual *other, uintptr_t adr,
                                 umemCapability access) {
  uint32_t const capabilities = other->capabilities;
  if (mpi_is(other)) return mpi_here(mpi_of(other), adr);
  if (capabilities & umemFaultable || !other->vptr) return NULL;
  if (capabilities & umemDeviceAccessible && mpi->window->cuda_aware) return (unsigned char *)adr;
  bool waits = capabilities & (umemOrdered | umemDeviceShared);
  return capabilities & access && !waits ? (unsigned char *)adr : NULL;
}

/* Waits for work that is queued on memory of a GPU. */
static bool is_settled(umemVirtual *other) {
  if (!(other->capabilities & (umemOrdered | umemDeviceShared))) return true;
  return umem_synchronize(other) == umemOK;
}

/* ---- strided copies ---- */

/* A strided copy between the window of ctx and memory. */
typedef struct Strided {
  umemVirtual *ctx;
  bool get;    /* from the window */
  bool by_cpu; /* the CPU can use bytes, too */
  uintptr_t adr;
  unsigned char *bytes;
  size_t item_size;
  int rank;
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t here[UMEM_MAX_RANK], there[UMEM_MAX_RANK]; /* strides of the memory, of the window */
} Strided;

/* The bytes from the first to the last one in the window; SIZE_MAX if they overflow. */
static size_t reach(Strided const *copy) {
  size_t sum = copy->item_size;
  for (int k = 0; k < copy->rank; k++) {
    size_t step;
    if (__builtin_mul_overflow(copy->extents[k] - 1, (size_t)copy->there[k], &step) ||
        __builtin_add_overflow(sum, step, &sum))
      return SIZE_MAX;
  }
  return sum;
}

/* The bytes of the items of the dimensions from k on. */
static size_t bytes_from(Strided const *copy, int k) {
  size_t bytes = copy->item_size;
  for (; k < copy->rank; k++) bytes *= copy->extents[k];
  return bytes;
}

/* Whether MPI can count what there is. Datatypes of Open MPI 4.1 with negative strides lead to
 * bytes of others. */
static bool fits_datatypes(Strided const *copy) {
  if (copy->item_size > most_bytes) return false;
  for (int k = 0; k < copy->rank; k++)
    if (copy->extents[k] > INT_MAX || copy->here[k] < 0 || copy->there[k] < 0) return false;
  return bytes_from(copy, 1) <= most_bytes;
}

/* ---- items without gaps in the window ---- */

/* The dimension of the window with the largest stride if its items lie there without gaps, maybe in
 * another order than in memory; -1 otherwise. */
static int outermost_without_gaps(Strided const *copy) {
  size_t bytes = copy->item_size;
  int outermost = -1;
  for (int found = 0; found < copy->rank; found++) {
    int k = 0;
    while (k < copy->rank && (size_t)copy->there[k] != bytes) k++;
    if (k == copy->rank) return -1;
    bytes *= copy->extents[k];
    outermost = k;
  }
  return outermost;
}

/* Memory for a run, which the context keeps for the next one: fresh pages cost more than the copy.
 * NULL without memory. */
static unsigned char *take_run(Mpi *mpi) {
  unsigned char *run = __atomic_exchange_n(&mpi->run, NULL, __ATOMIC_ACQ_REL);
  return run ? run : malloc(run_bytes);
}

static void give_run(Mpi *mpi, unsigned char *run) {
  free(__atomic_exchange_n(&mpi->run, run, __ATOMIC_ACQ_REL));
}

/* Indices [first, first + count) of the outermost dimension, whose items are sorted in run by the
 * CPU. */
static void move_run(Strided const *copy, int outermost, size_t first, size_t count,
                     unsigned char *run) {
  umemHost *cpu = &mpi_of(copy->ctx)->host;
  size_t extents[UMEM_MAX_RANK], slab = (size_t)copy->there[outermost];
  ptrdiff_t const *here = copy->here, *there = copy->there;
  unsigned char *bytes = copy->bytes + (ptrdiff_t)first * here[outermost];
  uintptr_t const adr = copy->adr + first * slab;
  memcpy(extents, copy->extents, sizeof extents);
  extents[outermost] = count;
  umemLayout const layout = {sizeof layout, copy->item_size,          copy->rank,
                             extents,       copy->get ? there : here, copy->get ? here : there};
  if (copy->get) {
    uint64_t const before = umem_thread_failures();
    mpi_copy_to(copy->ctx, adr, NULL, (uintptr_t)run, count * slab);
    if (umem_thread_failures() == before)
      umem_copy_strided(cpu, (uintptr_t)run, cpu, (uintptr_t)bytes, &layout);
  } else {
    umem_copy_strided(cpu, (uintptr_t)bytes, cpu, (uintptr_t)run, &layout);
    mpi_copy_from(copy->ctx, adr, NULL, (uintptr_t)run, count * slab);
  }
}

static void move_runs(Strided const *copy, unsigned char *run);

/* Each index of the outermost dimension by itself. */
static void move_slabs(Strided const *copy, int outermost, unsigned char *run) {
  Strided slab = *copy;
  slab.rank--;
  for (int k = outermost; k < slab.rank; k++) {
    slab.extents[k] = slab.extents[k + 1];
    slab.here[k] = slab.here[k + 1];
    slab.there[k] = slab.there[k + 1];
  }
  uint64_t const before = umem_thread_failures();
  for (size_t i = 0; i < copy->extents[outermost] && umem_thread_failures() == before; i++) {
    move_runs(&slab, run);
    slab.bytes += copy->here[outermost];
    slab.adr += (size_t)copy->there[outermost];
  }
}

static void move_runs(Strided const *copy, unsigned char *run) {
  int const k = outermost_without_gaps(copy);
  if (copy->there[k] > run_bytes) {
    move_slabs(copy, k, run);
    return;
  }
  uint64_t const before = umem_thread_failures();
  size_t const most = run_bytes / (size_t)copy->there[k], all = copy->extents[k];
  for (size_t first = 0, count; first < all && umem_thread_failures() == before; first += count) {
    count = all - first < most ? all - first : most;
    move_run(copy, k, first, count, run);
  }
}

/* Moves the items as runs of the window, which takes a half to a tenth of what MPI needs to walk
 * through a datatype. False, and nothing is done, if they have gaps there, are so long that MPI is
 * as fast, or are on a GPU. */
static bool move_as_runs(Strided const *copy) {
  if (!copy->by_cpu || copy->item_size >= long_item || outermost_without_gaps(copy) < 0)
    return false;
  unsigned char *run = take_run(mpi_of(copy->ctx));
  if (!run) return false;
  move_runs(copy, run);
  give_run(mpi_of(copy->ctx), run);
  return true;
}

/* ---- items with gaps: datatypes ---- */

/* The datatype of count indices of the first dimension. */
static int make_type(Strided const *copy, size_t count, ptrdiff_t const *strides,
                     MPI_Datatype *type) {
  int length = (int)copy->item_size, error = MPI_SUCCESS;
  MPI_Datatype inner = MPI_BYTE;
  for (int k = copy->rank - 1; k >= 0 && error == MPI_SUCCESS; k--) {
    int const extent = (int)(k ? copy->extents[k] : count);
    MPI_Datatype outer;
    error = MPI_Type_create_hvector(extent, length, (MPI_Aint)strides[k], inner, &outer);
    if (inner != MPI_BYTE) MPI_Type_free(&inner);
    if (error == MPI_SUCCESS) inner = outer;
    length = 1;
  }
  if (error == MPI_SUCCESS) error = MPI_Type_commit(&inner);
  *type = inner == MPI_DATATYPE_NULL ? MPI_BYTE : inner; /* which the caller does not free */
  return error;
}

/* Indices [first, first + count) of the first dimension. */
static int move_some(Strided const *copy, size_t first, size_t count) {
  Mpi const *mpi = mpi_of(copy->ctx);
  MPI_Datatype here = MPI_BYTE, there = MPI_BYTE;
  unsigned char *bytes = copy->bytes + (ptrdiff_t)first * copy->here[0];
  MPI_Aint const adr = (MPI_Aint)copy->adr + (MPI_Aint)first * copy->there[0];
  int error = make_type(copy, count, copy->here, &here);
  if (error == MPI_SUCCESS) error = make_type(copy, count, copy->there, &there);
  if (error == MPI_SUCCESS && copy->get)
    error = MPI_Get(bytes, 1, here, mpi->rank, adr, 1, there, mpi->window->data);
  else if (error == MPI_SUCCESS)
    error = MPI_Put(bytes, 1, here, mpi->rank, adr, 1, there, mpi->window->data);
  if (here != MPI_BYTE) MPI_Type_free(&here);
  if (there != MPI_BYTE) MPI_Type_free(&there);
  return error;
}

static void move_items(Strided const *copy) {
  Mpi const *mpi = mpi_of(copy->ctx);
  size_t const most = most_bytes / bytes_from(copy, 1), all = copy->extents[0];
  int error = MPI_SUCCESS;
  for (size_t first = 0, count; first < all && error == MPI_SUCCESS; first += count) {
    count = all - first < most ? all - first : most;
    error = move_some(copy, first, count);
  }
  int flushed = MPI_Win_flush(mpi->rank, mpi->window->data);
  if (error == MPI_SUCCESS) error = flushed;
  if (error != MPI_SUCCESS) mpi_fail(copy->ctx, error, "a strided copy");
}

/* The side whose window a copy goes through, and the other one. */
typedef struct Sides {
  umemVirtual *one, *other;
  bool is_get; /* from the window */
  uintptr_t adr, other_adr;
} Sides;

static Sides sides_of(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                      uintptr_t dst_adr) {
  bool const is_get = ctx == src && !(mpi_is(dst) && mpi_here(mpi_of(src), src_adr));
  return is_get ? (Sides){src, dst, true, src_adr, dst_adr}
                : (Sides){dst, src, false, dst_adr, src_adr};
}

/* Whether datatypes of MPI can copy the items, between a window that is elsewhere and memory that
 * MPI takes by its pointer. Fills in *copy. */
static bool describe(Strided *copy, Sides const *sides, umemLayout const *layout) {
  Mpi const *mpi = mpi_of(sides->one);
  umemVirtual *other = sides->other;
  if (mpi_here(mpi, sides->adr)) return false; /* umem copies by the method window */
  *copy = (Strided){
      .ctx = sides->one, .get = sides->is_get, .adr = sides->adr, .item_size = layout->item_size};
  umemCapability const access = sides->is_get ? umemCpuWritable : umemCpuReadable;
  copy->bytes = pointer_of(mpi, other, sides->other_adr, access);
  copy->by_cpu = mpi_is(other) || other->capabilities & access;
  if (!copy->bytes) return false;
  copy->rank = layout->rank;
  for (int k = 0; k < layout->rank; k++) {
    copy->extents[k] = layout->extents[k];
    copy->here[k] = sides->is_get ? layout->dst_strides[k] : layout->src_strides[k];
    copy->there[k] = sides->is_get ? layout->src_strides[k] : layout->dst_strides[k];
  }
  return fits_datatypes(copy);
}

static void copy_strided(Sides const *sides, umemLayout const *layout) {
  Strided copy;
  umemVirtual *ctx = sides->one, *other = sides->other;
  if (!describe(&copy, sides, layout) || !mpi_is_open(ctx) ||
      !mpi_has(ctx, copy.get ? "read" : "write", copy.adr, reach(&copy)))
    return;
  if (mpi_is(other) && (!mpi_is_open(other) || !mpi_sync(other))) return;
  if (is_settled(other) && !move_as_runs(&copy)) move_items(&copy);
  if (mpi_is(other)) mpi_sync(other);
}

/* ---- between two ranks ---- */

/* Two buffers: one is written to dst while the next one is read from src. */
static int pass(Mpi const *src, uintptr_t src_adr, Mpi const *dst, uintptr_t dst_adr, size_t nbytes,
                unsigned char *buffers) {
  MPI_Request writing[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int error = MPI_SUCCESS;
  for (size_t done = 0, turn = 0; done < nbytes && error == MPI_SUCCESS; turn = !turn) {
    int const n = (int)(nbytes - done < pass_piece ? nbytes - done : pass_piece);
    unsigned char *bytes = buffers + turn * pass_piece;
    MPI_Request reading;
    error = MPI_Wait(&writing[turn], MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS)
      error = MPI_Rget(bytes, n, MPI_BYTE, src->rank, (MPI_Aint)(src_adr + done), n, MPI_BYTE,
                       src->window->data, &reading);
    if (error == MPI_SUCCESS) error = MPI_Wait(&reading, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS)
      error = MPI_Rput(bytes, n, MPI_BYTE, dst->rank, (MPI_Aint)(dst_adr + done), n, MPI_BYTE,
                       dst->window->data, &writing[turn]);
    done += (size_t)n;
  }
  for (int i = 0; i < 2; i++) {
    int waited = MPI_Wait(&writing[i], MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS) error = waited;
  }
  int flushed = MPI_Win_flush(dst->rank, dst->window->data);
  return error == MPI_SUCCESS ? flushed : error;
}

static void copy_between(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                         size_t nbytes) {
  size_t const room = nbytes < pass_piece ? pass_piece : 2 * (size_t)pass_piece;
  unsigned char *buffers = malloc(room);
  if (!buffers) {
    umemVirtual_fail(dst, umemMemoryError, "no memory for a buffer of %zu bytes", room);
    return;
  }
  int error = pass(mpi_of(src), src_adr, mpi_of(dst), dst_adr, nbytes, buffers);
  free(buffers);
  if (error != MPI_SUCCESS) mpi_fail(dst, error, "a copy between two ranks");
}

/* A run of bytes of two windows: one of them in this process, or both elsewhere. */
static void copy_windows(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                         size_t nbytes) {
  if (!mpi_is_open(src) || !mpi_is_open(dst) || !mpi_has(src, "read", src_adr, nbytes) ||
      !mpi_has(dst, "write", dst_adr, nbytes))
    return;
  unsigned char *from = mpi_here(mpi_of(src), src_adr), *to = mpi_here(mpi_of(dst), dst_adr);
  if (from && !mpi_sync(src)) return;
  if (from)
    mpi_copy_from(dst, dst_adr, NULL, (uintptr_t)from, nbytes);
  else if (to)
    mpi_copy_to(src, src_adr, NULL, (uintptr_t)to, nbytes);
  else
    copy_between(src, src_adr, dst, dst_adr, nbytes);
  if (to) mpi_sync(dst);
}

/* ---- the plan ---- */

/* Whether MPI takes the addresses of a GPU for a run of bytes between it and a window that is
 * elsewhere: CUDA copies to and from one here. */
static bool takes_gpu(Sides const *sides) {
  Mpi const *mpi = mpi_of(sides->one);
  uint32_t const capabilities = sides->other->capabilities;
  return mpi->window->cuda_aware && capabilities & umemDeviceAccessible &&
         !(capabilities & (umemCpuReadable | umemCpuWritable)) && !mpi_here(mpi, sides->adr);
}

static void copy_gpu(Sides const *sides, size_t nbytes) {
  if (!is_settled(sides->other)) return;
  if (sides->is_get)
    mpi_copy_to(sides->one, sides->adr, NULL, sides->other_adr, nbytes);
  else
    mpi_copy_from(sides->one, sides->adr, NULL, sides->other_adr, nbytes);
}

/* What a run between RAM and the window does not come to: it must not pay for the registers that
 * this function saves. */
static __attribute__((noinline)) bool plan_in_full(umemVirtual *ctx, umemVirtual *src,
                                                   uintptr_t src_adr, umemVirtual *dst,
                                                   uintptr_t dst_adr, umemLayout const *layout) {
  Sides const sides = sides_of(ctx, src, src_adr, dst, dst_adr);
  Strided copy;
  if (!mpi_is(sides.one)) return false;
  if (layout->rank) return describe(&copy, &sides, layout);
  return (mpi_is(src) && mpi_is(dst)) || takes_gpu(&sides);
}

bool mpi_plan_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                   uintptr_t dst_adr, umemLayout const *layout) {
  if (!layout->rank && !mpi_of(ctx)->window->cuda_aware && !(mpi_is(src) && mpi_is(dst)))
    return false;
  return plan_in_full(ctx, src, src_adr, dst, dst_adr, layout);
}

/* Looks at the plan again for a umem before 0.3, which does not know the method plan_copy. */
bool mpi_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                     uintptr_t dst_adr, umemLayout const *layout) {
  if (!mpi_plan_copy(ctx, src, src_adr, dst, dst_adr, layout)) return false;
  Sides const sides = sides_of(ctx, src, src_adr, dst, dst_adr);
  if (layout->rank)
    copy_strided(&sides, layout);
  else if (mpi_is(src) && mpi_is(dst))
    copy_windows(src, src_adr, dst, dst_adr, layout->item_size);
  else
    copy_gpu(&sides, layout->item_size);
  return true;
}
