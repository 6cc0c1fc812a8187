/* umem/cuda.h - memory of NVIDIA GPUs, and host memory that they use.
 *
 * The types are always declared. In a build without CUDA, without a driver or without a GPU the
 * constructors fail with umemNotSupportedError, and the message contains the reason. Each call on
 * the context then returns this status.
 *
 * What holds for all four kinds of contexts:
 *
 *   addresses  are those of CUDA. Kernels use them as pointers. The CPU can use those of
 *              umemCudaHost, and those of umemCudaManaged if the hardware allows it. Copies and
 *              sets also accept memory that umem did not allocate (cudaMalloc).
 *   current    After every call the caller's current device and CUDA context are the same as
 *              before. A thread that had no CUDA context has that of GPU 0 after a call for GPU 0,
 *              as after the first call of CUDA's runtime. Only the GPUs that the program names get
 *              a CUDA context.
 *   failures   The message contains the text of CUDA. umemMemoryError: out of memory; the message
 *              contains the free and the total bytes. umemValueError: an address, a device or a
 *              stream that CUDA refuses, and a free of an address that is not a live block.
 *              umemRuntimeError: all else. When a kernel has crashed, CUDA does not work any more
 *              in this process; the message says so. umem clears CUDA's last error.
 *   threads    All functions except constructors and destructors may be called from many threads at
 *              once.
 *   fork       CUDA does not work in a child of a process that has used it. There, calls that need
 *              CUDA fail with umemNotSupportedError, and a destructor frees no memory of GPUs.
 *
 * umem copies long arrays between a GPU and host memory that is not pinned through pinned chunks,
 * which several threads fill or empty. The copy has the same order on the context's stream as one
 * cudaMemcpy. */
#ifndef UMEM_CUDA_H
#define UMEM_CUDA_H

#include <umem/base.h>

/* ---- device memory ---- */

/* Device memory of one GPU, in the order of CUDA's legacy default stream. Its blocks come from
 * cudaMalloc, at multiples of 256 bytes. The work of a call is done when it returns, except for two
 * kinds of copies:
 *
 * - Copies from and to a umemCudaAsync are queued on its stream. Later work on the legacy stream
 *   comes after them.
 * - Short copies from host memory that is not pinned may arrive on the GPU just after the call, as
 *   with cudaMemcpy. Later work on the legacy stream, and all copies and sets of umem between
 *   device memories, come after them. Before you launch a kernel on a stream that does not wait for
 *   the legacy stream, call umem_synchronize, or let a umemCudaAsync of that stream wait for ctx
 *   (umem_wait). */
typedef struct umemCuda {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCuda;

/* device: the number of the GPU, from 0. Errors: umemValueError if there is no such GPU. */
UMEM_EXTERN umemStatusType umemCuda_ctor(umemCuda *ctx, int device);

/* ---- pinned host memory ---- */

/* Page-locked (pinned) host memory. All GPUs can address it, and copy it at the speed of the link.
 * For the CPU it is RAM: sets, and copies from and to RAM and files, do not wait for kernels or
 * queued copies. For blocks of 256 KiB and more umem maps huge pages, touches them with several
 * threads, and registers them with CUDA: 1 GiB takes 82 ms and not 511 ms as with cudaMallocHost
 * (H200, 16 cores; with the free). */
typedef struct umemCudaHost {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaHost;

/* A flag of umemCudaHost_ctor: memory that bypasses the caches of the CPU. Write it in order of the
 * addresses; reads by the CPU are very slow. */
#define UMEM_WRITE_COMBINED 1u

/* flags: 0 or UMEM_WRITE_COMBINED. Uses the CUDA context of the caller's current GPU, or of GPU 0
 * if the caller has chosen none. */
UMEM_EXTERN umemStatusType umemCudaHost_ctor(umemCudaHost *ctx, unsigned flags);

/* ---- managed memory ---- */

/* Managed memory: one address for the CPU and all GPUs. The driver moves pages to where they are
 * used. If the hardware lets the CPU use the memory while kernels run, the context is
 * umemCpuReadable and umemCpuWritable. Copies and sets are in the order of the legacy default
 * stream of the GPU, also if the CPU does them. If kernels may be running, call umem_synchronize
 * before you use a pointer.
 *
 * The live blocks of all contexts of the process that name one GPU may together have as many bytes
 * as this GPU has memory. An allocation beyond that fails with umemMemoryError, unless the context
 * has UMEM_OVERSUBSCRIBE. */
typedef struct umemCudaManaged {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaManaged;

/* Flags of umemCudaManaged_ctor. The first four are hints for every block (cudaMemAdvise,
 * cudaMemPrefetchAsync). They have no effect if the hardware cannot share pages between the CPU and
 * running kernels. */
#define UMEM_PREFER_DEVICE 1u /* pages stay on the GPU if they can */
#define UMEM_READ_MOSTLY 2u   /* the CPU and each GPU may have a copy of a page, until a write */
#define UMEM_ACCESSED_BY_DEVICE 4u /* the GPU accesses pages in RAM without moving them */
#define UMEM_PREFETCH 8u           /* new blocks are prefetched to the GPU */
#define UMEM_OVERSUBSCRIBE 16u     /* live blocks may have more bytes than the GPU */

/* device: the number of the GPU for which the hints and the limit are. flags: or-ed.
 * Errors: umemValueError for unknown flags. */
UMEM_EXTERN umemStatusType umemCudaManaged_ctor(umemCudaManaged *ctx, int device, unsigned flags);

/* ---- managed memory that begins on the GPU ---- */

/* An adaptor over managed memory, or over a stack whose innermost context is managed memory. It
 * prefetches each new or resized block to the GPU, so that the first kernel that uses the block has
 * no page faults. A pool allocates the same pages again and again: UMEM_PREFETCH of umemCudaManaged
 * acts once for each chunk of the pool, this adaptor once for each block. It has no effect if the
 * hardware cannot share pages between the CPU and running kernels. If the prefetch fails, the
 * allocation fails. A resize is done before the prefetch and does not fail. */
typedef struct umemCudaPrefetch {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaPrefetch;

/* upstream: borrowed, it must live longer than ctx.
 * Errors: umemTypeError if the innermost context is not a umemCudaManaged; umemValueError for NULL,
 * umemMemoryError; the status of an upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemCudaPrefetch_ctor(umemCudaPrefetch *ctx, void *upstream);

/* Constructs ctx as umemCudaPrefetch_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it.
 * The caller still owns the memory of the struct. After a failure the caller still owns
 * upstream. */
UMEM_EXTERN umemStatusType umemCudaPrefetch_adopt(umemCudaPrefetch *ctx, void *upstream);

/* ---- device memory in the order of a stream ---- */

/* Device memory of one GPU. Allocations, frees, sets and copies are in the order of a stream.
 * Blocks come from a memory pool of the driver that belongs to the context, or from cudaMalloc if
 * the driver has no pools. A copy from or to a file, or host memory that is not pinned, is done for
 * the host when the call returns. All other work may only be queued; umem_synchronize waits for it.
 * For a second stream construct a second context, and order one after the other with umem_wait.
 *
 * While the stream is captured into a graph, CUDA records copies and sets. Allocations, frees and
 * umem_synchronize fail with umemNotSupportedError and leave the capture valid. Begin and end the
 * capture while no other thread is in a call that touches the stream: a call on this context, or
 * one that names it.
 *
 * With the option share other processes can attach its blocks: see umem/handle.h. The driver must
 * support this (umemNotSupportedError).
 *
 * umem_trim gives unused memory of the pool back to the driver. */
typedef struct umemCudaAsync {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaAsync;

/* An argument of umemCudaAsync_ctor: the context makes a new stream, which does not wait for the
 * legacy stream. */
#define UMEM_STREAM_NEW UINTPTR_MAX

/* Options of umemCudaAsync_ctor_with. */
typedef struct umemCudaAsyncOptions {
  size_t size;         /* sizeof(umemCudaAsyncOptions) as the caller was compiled */
  size_t maximum_size; /* bytes that the pool may hold; 0: no bound */
  /* unused bytes that the driver keeps when the stream is synchronised */
  uint64_t release_threshold;
  uint32_t share; /* 1: other processes can attach blocks (umem/handle.h) */
  uint32_t zero;  /* 0 */
} umemCudaAsyncOptions;

/* The defaults: no bound, and the driver keeps all unused bytes. */
#define UMEM_CUDA_ASYNC_OPTIONS_INIT                                                               \
  { sizeof(umemCudaAsyncOptions), 0, UINT64_MAX, 0, 0 }

/* stream: a cudaStream_t of the same GPU, borrowed; 0, CUDA's legacy default stream; or
 * UMEM_STREAM_NEW. umemValueError for a stream of another GPU; umemNotSupportedError for
 * cudaStreamPerThread. */
UMEM_EXTERN umemStatusType umemCudaAsync_ctor(umemCudaAsync *ctx, int device, uintptr_t stream);

/* Does what umemCudaAsync_ctor does, with options (borrowed for the call; NULL: the defaults). */
UMEM_EXTERN umemStatusType umemCudaAsync_ctor_with(umemCudaAsync *ctx, int device, uintptr_t stream,
                                                   umemCudaAsyncOptions const *options);

/* Returns the cudaStream_t on which the work of ctx is queued, for kernels and libraries. ctx owns
 * the stream if it has made it. For an adaptor, returns the stream of the innermost context.
 * Returns 0, the legacy default stream, for the other contexts of this header. Returns 0, and
 * records umemTypeError, for all other contexts. umem_get_info returns the stream of any
 * context. */
UMEM_EXTERN uintptr_t umemCudaAsync_stream(void *ctx);

/* ---- a pool of streams ---- */

/* Streams of one GPU, which a program hands out in turn: to contexts (umemCudaAsync_ctor), kernels
 * and libraries. The legacy default stream does not wait for them. Threads: any may call next, at
 * and count; open and close while no other thread uses the struct. */
typedef struct umemCudaStreams {
  void *impl; /* owned; NULL: not constructed */
  uintptr_t reserved[3];
} umemCudaStreams;

/* Creates count streams on a GPU. streams: written; the caller owns the struct. Errors, recorded
 * for the thread: umemValueError for NULL, for 0 streams and for a GPU that does not exist;
 * umemMemoryError; umemNotSupportedError as umemCuda_ctor. Then nothing was created. */
UMEM_EXTERN umemStatusType umemCudaStreams_open(umemCudaStreams *streams, int device,
                                                unsigned count);

/* Returns the next stream in turn, a cudaStream_t; after the last one the first. streams owns it.
 * Returns 0, and records umemValueError, if streams is not constructed. */
UMEM_EXTERN uintptr_t umemCudaStreams_next(umemCudaStreams *streams);

/* Returns the stream with this index, from 0. Returns 0, and records a status: umemIndexError if
 * there is none, umemValueError if streams is not constructed. */
UMEM_EXTERN uintptr_t umemCudaStreams_at(umemCudaStreams *streams, unsigned index);

/* Returns how many streams there are; 0 if streams is not constructed. */
UMEM_EXTERN unsigned umemCudaStreams_count(umemCudaStreams const *streams);

/* Destroys the streams, whose queued work still runs to its end. End contexts of these streams
 * before. In a child of fork it only frees the struct's memory. Does nothing if streams is all zero
 * or has ended. */
UMEM_EXTERN void umemCudaStreams_close(umemCudaStreams *streams);

/* ---- your own kernels ---- */

/* What umemCuda_enter saves for umemCuda_leave. The caller owns it and must not copy it. */
typedef struct umemCudaEntry {
  uintptr_t reserved[8];
} umemCudaEntry;

/* Makes the primary CUDA context of a GPU the current one of this thread, as cudaSetDevice would.
 * Until umemCuda_leave the thread can launch kernels on this GPU and call CUDA. No other GPU gets a
 * CUDA context. umemCuda_leave restores the CUDA context that was current before, or none.
 *
 * device: the number of the GPU; or -1 for the caller's current CUDA context, or if it has none,
 * that of its current GPU. entry: written. Calls may nest: leave each entry once, in the same
 * thread, the last one first. Between the two calls the thread may make calls that a capture into a
 * graph would forbid (allocations, waiting), as with cudaStreamCaptureModeRelaxed.
 *
 * umem retains the primary context only until umemCuda_leave. If the program leaves memory or
 * queued work there, a umem context of the GPU, or CUDA's runtime, must retain it. Errors: as
 * umemCuda_ctor, recorded for the thread. umemCuda_leave then does nothing. */
UMEM_EXTERN umemStatusType umemCuda_enter(umemCudaEntry *entry, int device);

/* Restores the CUDA context that was current before umemCuda_enter. Does nothing for an entry that
 * is all zero or was left already. */
UMEM_EXTERN umemStatusType umemCuda_leave(umemCudaEntry *entry);

/* ---- the pinned chunks of the process ---- */

/* Sets the size and the largest number of the pinned chunks through which umem copies pageable
 * memory; 0 for either means the default (2 MiB, 96 chunks). chunk_bytes: 64 KiB to 64 MiB, a
 * multiple of 4096. chunks: 1 to 256. umem pins a chunk when it first uses it, and releases it when
 * the last umem context of its GPU ends. umem_set_threads sets how many threads use the chunks.
 * Errors: umemValueError for other numbers. */
UMEM_EXTERN umemStatusType umemCuda_set_staging(size_t chunk_bytes, unsigned chunks);

#endif
