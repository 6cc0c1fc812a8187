/* mpi.c - a context over the part of one rank in a window of MPI: see mpi_state.h for the other
 * files. */
#include "mpi_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct umemVtbl const mpi_vtbl; /* below */

bool mpi_is(umemVirtual const *ctx) { return ctx->vptr == &mpi_vtbl; }

bool mpi_fail_ended(umemVirtual *ctx) {
  umemVirtual_fail(ctx, umemRuntimeError, "the window of rank %d has ended (umemMpi_stop)",
                   mpi_of(ctx)->rank);
  return false;
}

/* ---- addresses ---- */

bool mpi_fail_bounds(umemVirtual *ctx, char const *what, uintptr_t adr, size_t nbytes) {
  Mpi const *mpi = mpi_of(ctx);
  umemVirtual_fail(ctx, umemIndexError,
                   "%s of %zu bytes at %" PRIuPTR " past the end of rank %d's part of the window "
                   "(%" PRIu64 " bytes)",
                   what, nbytes, adr, mpi->rank, mpi->capacity);
  return false;
}

bool mpi_sync_by_mpi(umemVirtual *ctx) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST); /* neighbours use the memory; not each MPI has it here */
  int error = MPI_Win_sync(mpi_of(ctx)->window->data);
  return error == MPI_SUCCESS || mpi_fail(ctx, error, "MPI_Win_sync");
}

/* After the CPU has written through a window. */
static void end_writing(umemVirtual *ctx, umemWindow *window) {
  (void)ctx, (void)window;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Pointers are the same as offsets, but valid without MPI. */
static bool mpi_window(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                       umemWindow *window) {
  Mpi const *mpi = mpi_of(ctx);
  if (adr > mpi->capacity || nbytes > mpi->capacity - adr) return false;
  if (!__atomic_load_n(&mpi->window->open, __ATOMIC_ACQUIRE)) return false;
  window->bytes = mpi_here(mpi, adr);
  window->release = access == umemWritable ? end_writing : NULL;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return window->bytes != NULL;
}

/* ---- blocks ---- */

/* Records what went wrong; whether nothing has. */
static bool check(umemVirtual *ctx, MpiUnitsResult result, uintptr_t adr, size_t nbytes) {
  Mpi const *mpi = mpi_of(ctx);
  switch (result) {
  case mpiUnitsDone:
    return true;
  case mpiUnitsFull:
    umemVirtual_fail(ctx, umemMemoryError,
                     "no room for %zu bytes in rank %d's part of the window (%" PRIu64 " bytes)",
                     nbytes, mpi->rank, mpi->capacity);
    return false;
  case mpiUnitsNoBlock:
    umemVirtual_fail(ctx, umemValueError, "%" PRIuPTR " is not a live block of rank %d", adr,
                     mpi->rank);
    return false;
  case mpiUnitsFailed:
    break;
  }
  return mpi_fail(ctx, mpi->units.error, "the records of the blocks");
}

/* How many units nbytes are. */
static uint64_t units_for(Mpi const *mpi, size_t nbytes) {
  uint64_t const unit = mpi->units.unit;
  return nbytes / unit + (nbytes % unit != 0);
}

static uintptr_t mpi_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  Mpi *mpi = mpi_of(ctx);
  uint64_t const unit = mpi->units.unit;
  uint64_t first = 0, multiple = alignment > unit ? alignment / unit : 1;
  if (!mpi_is_open(ctx)) return umem_null(ctx);
  pthread_mutex_lock(&mpi->units.lock);
  MpiUnitsResult result = mpi_units_alloc(&mpi->units, units_for(mpi, size), multiple, &first);
  bool good = check(ctx, result, 0, size);
  pthread_mutex_unlock(&mpi->units.lock);
  return good ? (uintptr_t)(first * unit) : umem_null(ctx);
}

static uintptr_t mpi_alloc(umemVirtual *ctx, size_t nbytes) {
  return mpi_aligned_alloc(ctx, 1, nbytes);
}

static void mpi_free(umemVirtual *ctx, uintptr_t adr) {
  Mpi *mpi = mpi_of(ctx);
  uint64_t const unit = mpi->units.unit;
  if (!__atomic_load_n(&mpi->window->open, __ATOMIC_ACQUIRE)) return; /* it has freed all blocks */
  pthread_mutex_lock(&mpi->units.lock);
  MpiUnitsResult result = adr % unit ? mpiUnitsNoBlock : mpi_units_free(&mpi->units, adr / unit);
  check(ctx, result, adr, 0);
  pthread_mutex_unlock(&mpi->units.lock);
}

/* The bytes of the live block at adr, in whole units; 0 with a status where there is none. */
static uint64_t size_of(umemVirtual *ctx, uintptr_t adr) {
  Mpi *mpi = mpi_of(ctx);
  uint64_t const unit = mpi->units.unit;
  uint64_t count = 0;
  if (!mpi_is_open(ctx)) return 0;
  pthread_mutex_lock(&mpi->units.lock);
  MpiUnitsResult result =
      adr % unit ? mpiUnitsNoBlock : mpi_units_length(&mpi->units, adr / unit, &count);
  bool good = check(ctx, result, adr, 0);
  pthread_mutex_unlock(&mpi->units.lock);
  return good ? count * unit : 0;
}

static uintptr_t mpi_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return size_of(ctx, adr) ? adr : umem_null(ctx);
}

/* The block stays if the new size needs more than half of its units. */
static uintptr_t mpi_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  uint64_t const size = size_of(ctx, adr);
  if (!size) return umem_null(ctx);
  if (old_size > size) {
    umemVirtual_fail(ctx, umemValueError,
                     "the block at %" PRIuPTR " of rank %d has %" PRIu64 " bytes, not %zu", adr,
                     mpi_of(ctx)->rank, size, old_size);
    return umem_null(ctx);
  }
  if (new_size <= size && new_size > size / 2) return adr;
  uint64_t const before = umem_thread_failures();
  uintptr_t moved = mpi_alloc(ctx, new_size);
  if (moved == umem_null(ctx)) return moved;
  umem_copy_to(ctx, adr, ctx, moved, old_size < new_size ? old_size : new_size);
  bool copied = umem_thread_failures() == before;
  mpi_free(ctx, copied ? adr : moved);
  return copied ? moved : umem_null(ctx);
}

/* Asks the rank, if the memory is not shared. umem_find leaves out offsets, so that no lock of the
 * library is held here. */
static umemSearch mpi_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  Mpi *mpi = mpi_of(ctx);
  uint64_t const unit = mpi->units.unit;
  uint64_t first = 0, count = 0;
  if (!__atomic_load_n(&mpi->window->open, __ATOMIC_ACQUIRE)) return umemSearchNone;
  if (pthread_mutex_trylock(&mpi->units.lock) != 0) return umemSearchBusy;
  MpiUnitsResult result = mpi_units_find(&mpi->units, adr / unit, &first, &count);
  pthread_mutex_unlock(&mpi->units.lock);
  if (result != mpiUnitsDone) return umemSearchNone;
  found->adr = (uintptr_t)(first * unit);
  found->nbytes = (size_t)(count * unit);
  return umemSearchFound;
}

static void mpi_info(umemVirtual *ctx, umemInfo *info) {
  Mpi *mpi = mpi_of(ctx);
  uint64_t count = 0;
  info->capacity = mpi->capacity;
  info->page_size = mpi->units.unit;
  info->ordinal = mpi->rank;
  snprintf(info->name, sizeof info->name, "rank %d of %d", mpi->rank, mpi->window->ranks);
  if (!mpi_is_open(ctx)) return;
  pthread_mutex_lock(&mpi->units.lock);
  MpiUnitsResult result = mpi_units_available(&mpi->units, &count);
  if (check(ctx, result, 0, 0)) info->available = count * mpi->units.unit;
  pthread_mutex_unlock(&mpi->units.lock);
}

/* ---- construction and end ---- */

static void mpi_dtor(umemVirtual *ctx) {
  Mpi *mpi = mpi_of(ctx);
  umemVirtual_dtor(ctx); /* before the host, which the base borrows */
  umem_dtor(&mpi->host);
  mpi_units_close(&mpi->units);
  mpi_release_window(mpi->window);
  free(mpi->run);
  free(mpi);
}

static struct umemVtbl const mpi_vtbl = {
    .dtor = mpi_dtor,
    .alloc = mpi_alloc,
    .free = mpi_free,
    .aligned_alloc = mpi_aligned_alloc,
    .aligned_origin = mpi_aligned_origin,
    .aligned_free = mpi_free,
    .set = mpi_set,
    .copy_to = mpi_copy_to,
    .copy_from = mpi_copy_from,
    .plan_copy = mpi_plan_copy,
    .copy_direct = mpi_copy_direct,
    .copy_runs = mpi_copy_runs,
    .info = mpi_info,
    .realloc = mpi_realloc,
    .window = mpi_window,
    .find = mpi_find,
};

/* Makes what ctx owns; NULL and a status after a failure. */
static Mpi *make(umemVirtual *ctx, MPI_Comm comm, int rank) {
  MpiWindow *window = mpi_window_of(ctx, comm);
  if (!window) return NULL;
  if (rank < 0 || rank >= window->ranks) {
    umemVirtual_fail(ctx, umemValueError, "there is no rank %d: the communicator has %d", rank,
                     window->ranks);
    mpi_release_window(window);
    return NULL;
  }
  Mpi *mpi = calloc(1, sizeof *mpi);
  if (mpi && mpi_units_open(&mpi->units, window, rank)) {
    mpi->window = window;
    mpi->rank = rank;
    mpi->capacity = window->capacities[rank];
    mpi->part = window->parts[rank];
    mpi->fenced = mpi->part && (window->records || rank != window->rank);
    return mpi;
  }
  free(mpi);
  mpi_release_window(window);
  umemVirtual_fail(ctx, umemMemoryError, "no memory for the context of rank %d", rank);
  return NULL;
}

umemStatusType umemMpi_ctor(umemMpi *ctx, MPI_Comm comm, int rank) {
  MPI_DEFER_CANCEL();
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "umemMpi_ctor: the context is NULL");
  umemVirtual *super = &ctx->super;
  memset(ctx, 0, sizeof *ctx);
  umemVirtual_ctor(super, NULL);
  super->type = umemUserDevice;
  super->name = "Mpi";
  super->capabilities = umemReadable | umemWritable | umemOffsets | umemShared;
  Mpi *mpi = make(super, comm, rank);
  if (!mpi) return umem_get_status(super);
  umemHost_ctor(&mpi->host);
  super->host = &mpi->host;
  super->alignment = mpi->units.unit;
  super->space[0] = (uintptr_t)mpi->window;
  super->space[1] = (uint64_t)rank;
  if (mpi->window->threads) super->capabilities |= umemConcurrent;
  if (mpi->units.shared)
    super->capabilities |= umemConcurrent | umemPrompt; /* no method calls MPI */
  ctx->impl = mpi;
  super->vptr = &mpi_vtbl;
  return umemOK;
}

/* ---- by name: "mpi:3", "mpi:3?size=64M&memory=create" ---- */

enum { capacityOption, unitOption, memoryOption, progressOption, commOption };

static umemOption const place = {.name = "rank",
                                 .kind = umemDeviceOption,
                                 .required = true,
                                 .help = "of the communicator; default: MPI_COMM_WORLD"};

static umemOption const options[] = {
    {.name = "size",
     .kind = umemSizeOption,
     .help = "of this rank's part, if the window is yet to be started, by all ranks"},
    {.name = "unit", .kind = umemSizeOption, .help = "bytes in which memory is allocated"},
    {.name = "memory",
     .kind = umemWordOption,
     .words = "auto shared allocate create",
     .help = "by MPI_Win_allocate_shared, _allocate or _create; default: auto"},
    {.name = "progress",
     .kind = umemWordOption,
     .words = "auto none thread",
     .help = "whether a thread lets MPI work; default: auto"},
    {.name = "comm",
     .kind = umemNumberOption,
     .help = "another communicator, by its number (umemMpi_number)"},
};

static umemStatusType open_mpi(void *ctx, void *upstream, umemOptionValue const *rank,
                               umemOptionValue const *given, void *user) {
  (void)upstream, (void)user;
  if (!mpi_is_running(NULL, "mpi:")) return umemRuntimeError;
  umemMpiOptions wish = UMEM_MPI_OPTIONS_INIT;
  wish.capacity = (size_t)given[capacityOption].number;
  wish.unit = (size_t)given[unitOption].number;
  wish.memory = (umemMpiMemory)given[memoryOption].number;
  wish.progress = (umemMpiProgress)given[progressOption].number;
  MPI_Comm comm = MPI_COMM_WORLD;
  if (given[commOption].given) comm = umemMpi_communicator((uint32_t)given[commOption].number);
  if (given[capacityOption].given && !mpi_has_window(comm)) {
    umemStatusType status = umemMpi_start(comm, &wish);
    if (status != umemOK) return status;
  }
  return umemMpi_ctor(ctx, comm, (int)rank->number);
}

static umemScheme const scheme = {
    .size = sizeof(umemScheme),
    .name = "mpi",
    .context_size = sizeof(umemMpi),
    .place = &place,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .construct = open_mpi,
    .help = "memory of a rank of MPI",
    .vtbl = &mpi_vtbl,
};

static pthread_once_t registration = PTHREAD_ONCE_INIT;
static umemStatusType registered; /* what came of it */

static void register_scheme(void) { registered = umem_register_scheme(&scheme); }

umemStatusType umemMpi_register(void) {
  pthread_once(&registration, register_scheme);
  return registered;
}

/* ---- functions for this kind alone ---- */

/* ctx as a constructed context of this kind; else NULL and a status. */
static Mpi *known(umemMpi *ctx, char const *function) {
  if (ctx && ctx->super.self == ctx && mpi_is(&ctx->super)) return ctx->impl;
  umemVirtual_fail(NULL, umemTypeError, "%s: this is no context of MPI", function);
  return NULL;
}

int umemMpi_rank(umemMpi *ctx, int *ranks) {
  Mpi const *mpi = known(ctx, "umemMpi_rank");
  if (mpi && ranks) *ranks = mpi->window->ranks;
  return mpi ? mpi->rank : -1;
}

void *umemMpi_pointer(umemMpi *ctx, uintptr_t adr) {
  Mpi const *mpi = known(ctx, "umemMpi_pointer");
  if (!mpi || !mpi_is_open(&ctx->super) || !mpi_has(&ctx->super, "umemMpi_pointer", adr, 0))
    return NULL;
  void *pointer = mpi_here(mpi, adr);
  if (!pointer)
    umemVirtual_fail(ctx, umemNotSupportedError,
                     mpi->rank == mpi->window->rank
                         ? "umemMpi_pointer: MPI's memory model is separate"
                         : "umemMpi_pointer: rank %d has this memory, and does not share it",
                     mpi->rank);
  return pointer;
}

umemStatusType umemMpi_sync(umemMpi *ctx) {
  MPI_DEFER_CANCEL();
  if (!known(ctx, "umemMpi_sync")) return umemTypeError;
  if (!mpi_is_open(&ctx->super)) return umemRuntimeError;
  return mpi_sync(&ctx->super) ? umemOK : umem_get_status(ctx);
}
