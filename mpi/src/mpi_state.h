/* mpi_state.h - what the parts of the component share.
 *
 *   mpi.c            the context
 *   mpi_copy.c       its copies and sets
 *   mpi_strided.c    strided copies, and copies between ranks
 *   mpi_units.c      which memory is in use: the records in the control window
 *   mpi_start.c      makes and ends windows
 *   mpi_find.c       which window a communicator has
 *   mpi_progress.c   the thread that lets MPI work
 *   mpi_error.c      failures of MPI */
#ifndef UMEM_MPI_STATE_H
#define UMEM_MPI_STATE_H

#include <pthread.h>
#include <umem/host.h>
#include <umem/mpi.h>

/* ---- cancellation ---- */

static inline int mpi_defer_cancel(void) {
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}
static inline void mpi_end_deferral(int const *before) {
  int ignored;
  pthread_setcancelstate(*before, &ignored);
}
/* Until the end of the block pthread_cancel does not end the thread: it may hold locks, and MPI may
 * be at work. For public functions; umem does this itself around methods of a context that is not
 * umemPrompt. */
#define MPI_DEFER_CANCEL()                                                                         \
  __attribute__((cleanup(mpi_end_deferral), unused)) int const before_ = mpi_defer_cancel()

/* ---- windows ---- */

/* A window of a communicator. Counted: each context of it, and the communicator. */
typedef struct MpiWindow {
  MPI_Comm user;         /* which has it; borrowed */
  MPI_Comm comm;         /* owned: a duplicate */
  MPI_Comm machine;      /* owned: the ranks of this machine */
  MPI_Win data;          /* the memory of all ranks, bytes */
  MPI_Win control;       /* the records of the blocks (mpi_units.h), words of 64 bits */
  MPI_Win neighbours;    /* the memory in data of the ranks of this machine, if data has more */
  int rank, ranks, here; /* of the calling process; all; those of this machine */
  uint64_t *capacities;  /* owned: [ranks], bytes of each part */
  uint64_t unit;         /* as the options say; 0: of each part its own */
  unsigned char **parts; /* owned: [ranks], the memory of each, or NULL if the CPU cannot use it */
  uint64_t **records;    /* owned: [ranks], if all ranks share memory; else NULL */
  void *memory;          /* owned: with umemMpiMemoryCreate, both parts */
  size_t memory_size;
  bool threads;                 /* MPI_THREAD_MULTIPLE */
  bool open;                    /* atomic: MPI's windows exist */
  bool cuda_aware;              /* MPI takes addresses of GPUs */
  size_t holders;               /* atomic */
  struct MpiProgress *progress; /* owned; NULL without a thread */
  struct MpiWindow *next;       /* in the list of all, in the order of their making */
} MpiWindow;

/* The window of comm, for a new holder. NULL, and a status on ctx (which may be NULL), if there is
 * none. */
MpiWindow *mpi_window_of(void *ctx, MPI_Comm comm);

/* Whether comm has a window. Records nothing. */
bool mpi_has_window(MPI_Comm comm);

/* Gives comm its window. Returns an error code of MPI. */
int mpi_attach_window(MPI_Comm comm, MpiWindow *window);

/* Takes comm's window away, which ends it. Returns an error code of MPI. */
int mpi_detach_window(MPI_Comm comm);

/* Ends the window: collective. Returns an error code of MPI. */
int mpi_end_window(MpiWindow *window);

/* One holder less. */
void mpi_release_window(MpiWindow *window);

/* Whether MPI runs; else a status on ctx, which may be NULL. */
bool mpi_is_running(void *ctx, char const *function);

/* ---- progress ---- */

/* Starts the thread; NULL without one, and *error says why. */
struct MpiProgress *mpi_progress_start(MPI_Comm comm, int *error);
void mpi_progress_stop(struct MpiProgress *progress);

/* ---- failures ---- */

/* Records what MPI has returned. ctx may be NULL. Always false. */
bool mpi_fail(void *ctx, int error, char const *what);

/* ---- GPUs ---- */

/* Whether MPI takes addresses of CUDA's GPUs. */
bool mpi_takes_gpu_addresses(void);

#endif
