/* umem/mpi.h - memory of the ranks of an MPI program, by one-sided communication (MPI-3). Part of
 * the library umem-mpi, which is built for one MPI; the library umem does not know MPI.
 *
 *     umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
 *     options.capacity = 1 << 30;                       // of this rank
 *     umemMpi_start(MPI_COMM_WORLD, &options);          // all ranks, once
 *
 *     umemMpi three;                                    // any rank, at any time
 *     umemMpi_ctor(&three, MPI_COMM_WORLD, 3);
 *     uintptr_t adr = umem_alloc(&three, 800);          // rank 3 does nothing
 *     umem_copy_to(&host, (uintptr_t)u, &three, adr, 800);
 *     ...
 *     umem_dtor(&three);
 *     umemMpi_stop(MPI_COMM_WORLD);                     // all ranks, once */
#ifndef UMEM_MPI_H
#define UMEM_MPI_H

#include <mpi.h>
#include <umem/base.h>

/* A context for the memory of one rank of a communicator. Each rank has a part in a window of MPI,
 * which umemMpi_start allocates. Addresses are offsets in the part of that rank (umemOffsets).
 * Concurrent if MPI provides MPI_THREAD_MULTIPLE, or if all ranks share memory; not ordered: each
 * call is complete when it returns, also at the other rank.
 *
 * - Any rank allocates and frees at any time, also blocks of other ranks. The rank that has the
 *   memory does nothing.
 * - The records of blocks are in a second window: two bits for each unit of memory. An allocation
 *   or a free of a block in one word of 32 units is one atomic operation; larger blocks take a few.
 *   There is no lock, so that a rank that ends or stops in a call stops no other one; it leaves at
 *   most the block of that call.
 * - A block takes whole units. For many small blocks put a pool over the context: it takes large
 *   blocks, and divides them without communication. Natural alignment is the unit.
 * - Blocks of a rank that has ended stay live, and umem_dtor frees no blocks, because other ranks
 *   may use them. umemMpi_stop ends them all; a free after it does nothing.
 * - Copies and sets outside of the part fail with umemIndexError, before MPI is called. umem does
 *   not check that they are inside of one block.
 * - umem_find_in finds the block of any byte, which any rank has allocated; its size is that in
 *   whole units. Unless all ranks share memory, it reads the records of the rank by MPI. It finds
 *   nothing if MPI fails, or after umemMpi_stop.
 * - If another rank writes a block while this one reads it, the bytes read are undefined:
 *   synchronise with MPI.
 * - Failures of MPI become a status (umemIOError; umemMemoryError for MPI_ERR_NO_MEM). What MPI
 *   does when a rank dies is up to MPI: unless the program asks otherwise, it ends all ranks.
 * - A child of fork must not use these contexts. */
typedef struct umemMpi {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemMpi;

/* How the memory of a window is allocated. */
typedef enum umemMpiMemory {
  umemMpiMemoryAuto = 0, /* umemMpiMemoryAllocate if each rank is on a machine of its own, else
                            umemMpiMemoryShared */
  umemMpiMemoryShared,   /* by MPI_Win_allocate_shared on each machine, whose ranks copy by the CPU,
                            without MPI. Of several machines MPI_Win_create makes one window */
  umemMpiMemoryAllocate, /* by MPI_Win_allocate */
  umemMpiMemoryCreate    /* by umem, for MPI_Win_create; if MPI_Win_allocate does not work: see
                            doc/contexts/mpi.rst */
} umemMpiMemory;

/* Whether a thread of umem in each rank calls MPI again and again, so that other ranks need not
 * wait until the program does. It needs MPI_THREAD_MULTIPLE. */
typedef enum umemMpiProgress {
  umemMpiProgressAuto = 0, /* unless all ranks share memory; if MPI provides MPI_THREAD_MULTIPLE */
  umemMpiProgressNone,
  umemMpiProgressThread
} umemMpiProgress;

/* How a window is made. */
typedef struct umemMpiOptions {
  size_t size;     /* sizeof(umemMpiOptions) as the caller was compiled */
  size_t capacity; /* bytes of this rank, rounded up to whole units; ranks may differ; may be 0 */
  size_t unit;     /* bytes in which memory is allocated, a power of two from 64, the same in all
                      ranks. 0: so that a part has at most 65536 units */
  umemMpiMemory memory;     /* the same in all ranks */
  umemMpiProgress progress; /* the same in all ranks */
} umemMpiOptions;

/* What options start as: their size, and zeros. */
#define UMEM_MPI_OPTIONS_INIT                                                                      \
  { sizeof(umemMpiOptions), 0, 0, umemMpiMemoryAuto, umemMpiProgressAuto }

/* Makes the window of comm, and registers the scheme "mpi" (umemMpi_register). Collective: all
 * ranks of comm call it. The window belongs to comm, but not to its duplicates, until umemMpi_stop,
 * MPI_Comm_free or MPI_Finalize, which then end it. If it fails, it fails in all ranks, and comm
 * has no window. Errors: umemValueError for bad options, an intercommunicator, and a comm that has
 * a window; umemMemoryError; umemNotSupportedError for umemMpiProgressThread without
 * MPI_THREAD_MULTIPLE; umemRuntimeError if MPI is not running; umemIOError for failures of MPI. */
UMEM_EXTERN umemStatusType umemMpi_start(MPI_Comm comm, umemMpiOptions const *options);

/* Ends the window of comm, with all blocks. Collective. Contexts that are still constructed stay
 * valid, and their calls, but for frees, which do nothing, fail with umemRuntimeError. No thread
 * may be in a call on one of them. Call it before MPI_Finalize if umem has a thread for progress:
 * MPI allows MPI_Finalize only while no other thread is in a call of MPI. MPICH aborts otherwise at
 * times ("pthread_mutex_destroy: Device or resource busy"; doc/contexts/mpi.rst). Errors:
 * umemValueError if comm has no window; umemIOError if MPI fails: the window has ended
 * nevertheless. */
UMEM_EXTERN umemStatusType umemMpi_stop(MPI_Comm comm);

/* Constructs ctx for the part of rank in the window of comm. Not collective. Errors: umemValueError
 * for a rank that comm has not, and if comm has no window; umemMemoryError. */
UMEM_EXTERN umemStatusType umemMpi_ctor(umemMpi *ctx, MPI_Comm comm, int rank);

/* Registers the scheme "mpi" of umem_open: "mpi:3" is rank 3 of MPI_COMM_WORLD. With the option
 * size, "mpi:3?size=64M", umem_open also starts the window if there is none: then all ranks must
 * open their first context of it at the same time. Other options: unit, memory (auto, shared,
 * allocate or create), progress (auto, none or thread), comm: another communicator, by its number
 * (umemMpi_number). */
UMEM_EXTERN umemStatusType umemMpi_register(void);

/* The number of a communicator: the bits of its handle of Fortran (MPI_Comm_c2f), or of
 * MPI_Comm_toint since MPI 5, whose ABI does not know Fortran. */
UMEM_EXTERN uint32_t umemMpi_number(MPI_Comm comm);

/* Returns the communicator that has the number. number: of umemMpi_number, in this process; MPI
 * does not always notice another one. */
UMEM_EXTERN MPI_Comm umemMpi_communicator(uint32_t number);

/* Returns the rank, and writes the number of ranks to *ranks unless that is NULL. Returns -1, and
 * records umemTypeError, for another kind of context. */
UMEM_EXTERN int umemMpi_rank(umemMpi *ctx, int *ranks);

/* Returns a pointer to the byte at adr if the CPU can address it: ctx is for the calling rank, or
 * for one that shares memory with it. The pointer is valid until the window ends. Before the CPU
 * reads what other ranks have written, and after it has written what others will read, call
 * umemMpi_sync. Returns NULL, and records umemNotSupportedError, if the memory is on another
 * machine or not shared, or MPI's memory model is separate; umemIndexError outside of the part. */
UMEM_EXTERN void *umemMpi_pointer(umemMpi *ctx, uintptr_t adr);

/* Orders the accesses of the CPU to the window, before and after the call, by a fence of the CPU.
 * Unless all ranks share memory, it also calls MPI_Win_sync, if ctx is for the calling rank or for
 * one on another machine. */
UMEM_EXTERN umemStatusType umemMpi_sync(umemMpi *ctx);

#endif
