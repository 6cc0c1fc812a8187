/* umem/retry.h - a context that calls the program when it is out of memory, and tries again. */
#ifndef UMEM_RETRY_H
#define UMEM_RETRY_H

#include <umem/base.h>

/* umem calls it when upstream has failed with umemMemoryError to allocate nbytes at a multiple of
 * alignment. attempt counts these calls for one request, from 1. The callback makes memory free: it frees
 * blocks of its own, trims a pool, waits for another thread. It returns true to try again, and false to give
 * up.
 *
 * It runs in the thread that allocates, without a lock of umem's. It may use ctx, the umemRetry, as any
 * thread may; an allocation in it that fails calls it again. What fails in it is recorded on contexts and
 * thread as everywhere, but is no failure of the request. user is that of the constructor. No exception may
 * leave it, and pthread_cancel does not end the thread in it (see doc/concepts/callbacks.rst). */
typedef bool umemRetryCallback(void *user, void *ctx, size_t nbytes, size_t alignment,
                               unsigned attempt);

/* Passes every call on to another context, upstream. When upstream is out of memory it calls the callback,
 * and asks upstream again as long as the callback returns true. A request that succeeds in the end leaves no
 * trace of the failures before: no status on upstream, ctx or the thread, and no call of the hook for
 * failures. When the callback gives up, the last failure is recorded; a block that was to be resized is as
 * before. Other failures than umemMemoryError are recorded at once.
 *
 * Threads: as many as upstream allows; the callback is then called by several at once. */
typedef struct umemRetry {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemRetry;

/* upstream: any context; borrowed, it must live longer than ctx. user: passed to the callback.
 * Errors: umemValueError for an upstream or a callback that is NULL, umemMemoryError; the status of
 * an upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemRetry_ctor(umemRetry *ctx, void *upstream,
                                          umemRetryCallback *callback, void *user);

/* The same, but ctx owns upstream and destroys it in umem_dtor (the memory of the struct stays the
 * caller's). After a failure upstream is still the caller's. */
UMEM_EXTERN umemStatusType umemRetry_adopt(umemRetry *ctx, void *upstream,
                                           umemRetryCallback *callback, void *user);

#endif
