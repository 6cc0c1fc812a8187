/* umem/cuda.h - memory of NVIDIA GPUs, and host memory that they use.
 *
 * The types are always declared. Without CUDA in the build, without a driver or without a GPU the
 * constructors record umemNotSupportedError with the reason, and return it; each call on the context then
 * returns that status.
 *
 * What holds for all four:
 *
 *   addresses  are CUDA's: kernels use them, and those of umemCudaHost and umemCudaManaged can be
 *              dereferenced by the CPU. Memory of other origin (cudaMalloc) may be copied and set too.
 *   the caller's current device and context are the same after every call, and no GPU but the one
 *              named gets a context.
 *   failures   have CUDA's words in the message: umemMemoryError when memory is out, with how much there is;
 *              umemValueError for addresses, devices and streams that CUDA refuses and for a free of
 *              an address that is no live block; umemRuntimeError for all else. When a kernel has crashed, CUDA
 *              does not work any more in this process; the message says so. umem clears CUDA's last error.
 *   threads    all calls but constructor and destructor may come from many threads.
 *   fork       CUDA does not work in a child of a process that has used it: calls that need it return
 *              umemNotSupportedError there, and destructing a context frees no memory of GPUs.
 *
 * Copies to and from host memory that is not pinned go through pinned chunks, filled or drained by
 * several threads, in the order that cudaMemcpy would give relative to the context's stream.
 */
#ifndef UMEM_CUDA_H
#define UMEM_CUDA_H

#include <umem/base.h>

/* ---- device memory ---- */

/* Device memory of one GPU, in the order of CUDA's legacy default stream. Its blocks come from
 * cudaMalloc, at multiples of 256 bytes. Calls finish before they return, except copies from and to a
 * umemCudaAsync, which are queued on its stream; later work on the legacy stream comes after them.
 *
 * One thing is as with cudaMemcpy: bytes of host memory that is not pinned may arrive on the GPU just
 * after the call. What follows on the legacy stream comes after them, and all copies and sets of umem
 * between device memories do. Before kernels on streams that do not wait for it, call umem_synchronize, or
 * let a umemCudaAsync of that stream wait for ctx (umem_wait). */
typedef struct umemCuda {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCuda;

/* device: the ordinal of the GPU, from 0. umemValueError when there is no such one. */
UMEM_EXTERN umemStatusType umemCuda_ctor(umemCuda *ctx, int device);

/* ---- pinned host memory ---- */

/* Page-locked (pinned) host memory, which all GPUs copy at the speed of the link and can address. For the
 * CPU it is RAM: sets, and copies from and to RAM and files, wait for no kernel and no queued copy. Large
 * blocks are made of huge pages, touched by several threads and then registered, which is several
 * times faster than cudaMallocHost. */
typedef struct umemCudaHost {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaHost;

/* A flag of umemCudaHost_ctor: memory that the CPU only writes, in order; it reads it very slowly. */
#define UMEM_WRITE_COMBINED 1u

/* flags: 0 or UMEM_WRITE_COMBINED. Uses the context of the caller's current GPU, the first one if it has
 * chosen none. */
UMEM_EXTERN umemStatusType umemCudaHost_ctor(umemCudaHost *ctx, unsigned flags);

/* ---- managed memory ---- */

/* Managed memory: one address for the CPU and all GPUs, moved on demand. Where the hardware lets the CPU
 * use it while kernels run, it is umemCpuReadable and umemCpuWritable. Copies and sets are in the order of
 * the legacy default stream of the GPU, also where the CPU does them. If kernels may be running, call
 * umem_synchronize before you follow a pointer.
 *
 * All live blocks of the process together fit on the GPU, beside what other memory of any program takes
 * there; else umemMemoryError. To know that, an allocation may prefetch live blocks to the GPU. */
typedef struct umemCudaManaged {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaManaged;

/* Flags of umemCudaManaged_ctor, hints for every block (cudaMemAdvise, cudaMemPrefetchAsync); without
 * effect where the driver knows none. */
#define UMEM_PREFER_DEVICE 1u      /* pages stay on the GPU when they can */
#define UMEM_READ_MOSTLY 2u        /* read much more than written: each processor gets a copy */
#define UMEM_ACCESSED_BY_DEVICE 4u /* the GPU has pages mapped wherever they are */
#define UMEM_PREFETCH 8u           /* new blocks begin on the GPU */

/* device: the GPU that the hints name. flags: or-ed; unknown ones are umemValueError. */
UMEM_EXTERN umemStatusType umemCudaManaged_ctor(umemCudaManaged *ctx, int device, unsigned flags);

/* ---- managed memory that begins on the GPU ---- */

/* An adaptor over managed memory, also with others between. It prefetches each new or resized block to the GPU,
 * so a kernel that is the first to use it has no page faults. A pool hands out the same pages again and again:
 * UMEM_PREFETCH of umemCudaManaged acts only once for a chunk of the pool, this adaptor for each block. It has
 * no effect where the driver knows no such hint. If CUDA refuses the hint, an allocation fails; a resize, which
 * is done by then, does not. */
typedef struct umemCudaPrefetch {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaPrefetch;

/* upstream: borrowed, it must live longer than ctx.
 * Errors: umemTypeError when the innermost context is no umemCudaManaged; umemValueError for NULL,
 * umemMemoryError; the status of an upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemCudaPrefetch_ctor(umemCudaPrefetch *ctx, void *upstream);

/* The same, but ctx owns upstream from now on: the end of ctx calls umem_dtor for it (the caller still owns the
 * memory of the struct). After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemCudaPrefetch_adopt(umemCudaPrefetch *ctx, void *upstream);

/* ---- device memory in the order of a stream ---- */

/* Device memory whose allocations, frees, sets and copies are ordered on a stream, from a memory pool
 * that belongs to the context (from cudaMalloc where the driver has none). A copy is complete on
 * return when host memory takes part that is not pinned; all else may be queued, until
 * umem_synchronize. Further streams are further contexts; umem_wait orders one after another.
 *
 * While the stream is being captured into a graph, copies and sets are recorded; allocations, frees
 * and umem_synchronize return umemNotSupportedError and leave the capture valid. Begin and end it while
 * no other thread is in a call that touches the stream: a call on this context, or one that names it.
 *
 * umem_trim returns to the driver what the pool has in reserve. */
typedef struct umemCudaAsync {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaAsync;

/* Asks umemCudaAsync_ctor for a stream of its own, one that does not wait for the legacy stream. */
#define UMEM_STREAM_NEW UINTPTR_MAX

/* Options of umemCudaAsync_ctor_with. */
typedef struct umemCudaAsyncOptions {
  size_t size;                /* sizeof(umemCudaAsyncOptions) as the caller was compiled */
  size_t maximum_size;        /* bytes that the pool may hold; 0: as many as there are */
  uint64_t release_threshold; /* bytes that it keeps at a synchronisation; the rest goes back */
} umemCudaAsyncOptions;

/* What umemCudaAsyncOptions start as, and umemCudaAsync_ctor uses: no bound, everything is kept. */
#define UMEM_CUDA_ASYNC_OPTIONS_INIT                                                               \
  { sizeof(umemCudaAsyncOptions), 0, UINT64_MAX }

/* stream: a cudaStream_t of the same GPU, borrowed; 0, CUDA's legacy default stream; or UMEM_STREAM_NEW.
 * umemValueError for a stream of another GPU; umemNotSupportedError for cudaStreamPerThread. */
UMEM_EXTERN umemStatusType umemCudaAsync_ctor(umemCudaAsync *ctx, int device, uintptr_t stream);

/* The same with options (borrowed for the call; NULL: the defaults). */
UMEM_EXTERN umemStatusType umemCudaAsync_ctor_with(umemCudaAsync *ctx, int device, uintptr_t stream,
                                                   umemCudaAsyncOptions const *options);

/* The cudaStream_t that the work of ctx is ordered on, for kernels and libraries; owned by ctx if it made
 * it. For an adaptor, the stream of the innermost context; for the other contexts of CUDA 0, the legacy default
 * stream. 0 with umemTypeError for contexts that are none of CUDA's. umemInfo has the stream of any context. */
UMEM_EXTERN uintptr_t umemCudaAsync_stream(void *ctx);

/* ---- your own kernels ---- */

/* What umemCuda_enter saves for umemCuda_leave. The caller owns it and must not copy it. */
typedef struct umemCudaEntry {
  uintptr_t reserved[8];
} umemCudaEntry;

/* Makes the primary context of a GPU the current one of this thread until umemCuda_leave, as
 * cudaSetDevice would, so that the program can launch kernels there and call CUDA. It makes no context on
 * another GPU. umemCuda_leave restores the context that was current before, or none.
 *
 * device: the ordinal of the GPU; -1 for the caller's current context, or if it has none, that of its
 * current GPU. entry: written. Calls may nest: leave each entry once, in the thread that entered, the last
 * one first. Between the two the thread may make calls that a capture into a graph would forbid (allocations,
 * waiting), as with cudaStreamCaptureModeRelaxed.
 *
 * umem holds the primary context only until umemCuda_leave. If memory or queued work stays there, a umem
 * context of the GPU, or CUDA's runtime, must hold it.
 * Errors: as umemCuda_ctor, recorded for the thread; then nothing is entered, and umemCuda_leave does
 * nothing. */
UMEM_EXTERN umemStatusType umemCuda_enter(umemCudaEntry *entry, int device);

/* Restores what was current before umemCuda_enter. Does nothing for an entry that is all zero or was left
 * already. */
UMEM_EXTERN umemStatusType umemCuda_leave(umemCudaEntry *entry);

/* ---- the pinned chunks of the process ---- */

/* Sets how large the pinned chunks are that copies of pageable memory go through, and how many of them
 * there may be at once; 0 for either means the default. chunk_bytes: 64 KiB to 64 MiB, a multiple of
 * 4096; chunks: 1 to 256; umemValueError otherwise. They are pinned when first used, and released
 * with the last CUDA context. How many threads use them: umem_set_threads. */
UMEM_EXTERN umemStatusType umemCuda_set_staging(size_t chunk_bytes, unsigned chunks);

#endif
