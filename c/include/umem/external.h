/* umem/external.h - a context whose blocks come from an allocator of the program or of another
 * library.
 *
 *     static void *get(void *user, size_t nbytes, size_t alignment, uintptr_t stream);
 *     static void give(void *user, void *block, size_t nbytes, size_t alignment, uintptr_t stream);
 *
 *     umemExternalOptions options = UMEM_EXTERNAL_OPTIONS_INIT;
 *     options.allocate = get;
 *     options.deallocate = give;
 *     options.user = &pool_of_the_application;
 *     umemExternal_ctor(&ctx, &cuda, &options);
 *
 * See doc/contexts/external.rst. */
#ifndef UMEM_EXTERNAL_H
#define UMEM_EXTERNAL_H

#include <umem/base.h>

/* The stream of a block that belongs to no stream (see umemExternalOptions). */
#define UMEM_EXTERNAL_NO_STREAM UINTPTR_MAX

/* An allocator of others, as a table of functions. umem calls them in the thread that uses the
 * context, and holds no lock but that of `serial`. They may use other contexts of umem. No
 * exception may leave them, and pthread_cancel does not end the thread in them.
 *
 * A failure that a function records (umem_set_status with NULL, or a call of umem that fails)
 * becomes a failure of the context. */
typedef struct umemExternalOptions {
  size_t size; /* sizeof(umemExternalOptions) as the caller was compiled */

  /* Returns a new block of nbytes > 0 at a multiple of alignment, a power of two; NULL if there is
   * none. stream: a cudaStream_t, 0 being CUDA's legacy default stream: only work that is queued
   * there later uses the block. UMEM_EXTERNAL_NO_STREAM: the CPU and all streams may use the block
   * at once. */
  void *(*allocate)(void *user, size_t nbytes, size_t alignment, uintptr_t stream);

  /* Takes a block back, with what allocate was called with. stream: work that is queued there may
   * still use the block. UMEM_EXTERNAL_NO_STREAM: no work of this context does. Any thread may free
   * a block, not only the one that has allocated it. */
  void (*deallocate)(void *user, void *block, size_t nbytes, size_t alignment, uintptr_t stream);

  /* Called once, when the context has freed its blocks and ends. NULL: nothing to do. */
  void (*release)(void *user);

  void *user;            /* the first argument of each function; borrowed */
  size_t alignment;      /* of every block; 0: that of the upstream */
  uint32_t no_alignment; /* 1: allocate knows no larger alignment than this one: umem aligns larger
                             ones itself, in more bytes */
  uint32_t serial;       /* 1: at most one thread at a time may be in allocate and deallocate */
} umemExternalOptions;

/* What options start as: no functions. */
#define UMEM_EXTERNAL_OPTIONS_INIT                                                                 \
  { sizeof(umemExternalOptions), NULL, NULL, NULL, NULL, 0, 0, 0 }

/* A umemExternal allocates and frees by the functions of options, and passes copies, sets and waits
 * on to its upstream, a context for the same memory that takes any address of it: a umemHost for
 * RAM; a umemCuda, umemCudaHost or umemCudaManaged for the memory of these calls of CUDA; a
 * umemCudaAsync to allocate in the order of its stream. The upstream allocates nothing.
 *
 * A block is live for ctx from allocate to deallocate. ctx records its address and sizes, so that
 * umem_find finds it. A free of an address where no block begins is umemValueError, and calls
 * nothing. umem_dtor frees the blocks that are still live; this is not an error.
 *
 *   stream     If the upstream queues work on a stream, allocate and deallocate get this stream.
 *              If it is ordered and has no stream, a free waits for its queue first.
 *   refusals   If allocate returns NULL, the request fails with umemMemoryError, or as what
 *              allocate has recorded. A block at a wrong multiple goes back, and the request fails
 *              with umemRuntimeError. So does one that overlaps a live block, which does not go
 *              back.
 *   fork       A child may use ctx if the CPU reads and writes its memory. If a GPU has the memory,
 *              a child gets umemNotSupportedError, and umem_dtor calls no function of options.
 *
 * Threads: as many as upstream allows. */
typedef struct umemExternal {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemExternal;

/* upstream: borrowed, it must live longer than ctx. options: borrowed for the call. After a failure
 * release is not called. Errors: umemValueError for NULL, for functions that are NULL and for an
 * alignment that is not a power of two; umemNotSupportedError for an upstream whose addresses are
 * offsets; umemMemoryError; the status of an upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemExternal_ctor(umemExternal *ctx, void *upstream,
                                             umemExternalOptions const *options);

/* Constructs ctx as umemExternal_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. The
 * caller still owns the memory of the struct. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemExternal_adopt(umemExternal *ctx, void *upstream,
                                              umemExternalOptions const *options);

#endif
