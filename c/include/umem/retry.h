/* umem/retry.h - a context that asks the program for help when memory is out, and tries again. */
#ifndef UMEM_RETRY_H
#define UMEM_RETRY_H

#include <umem/base.h>

/* Called when upstream has refused nbytes at a multiple of alignment with umemMemoryError, for the
 * attempt-th time, from 1. Returns true to try again, after it has given something back: freed
 * blocks of its own, trimmed a pool, waited for another thread. false gives up.
 *
 * It runs in the thread that allocates, without a lock of umem's. It may use ctx, the umemRetry, as
 * any thread may; an allocation in it that fails calls it again. What fails in it is told as ever,
 * on contexts and thread, but is no failure of the request. user is that of the constructor. No exception
 * may leave it, and pthread_cancel does not end the thread in it (see doc/concepts/callbacks.rst). */
typedef bool umemRetryCallback(void *user, void *ctx, size_t nbytes, size_t alignment,
                               unsigned attempt);

/* Everything is that of the context below, upstream, but that a request for memory which it refuses
 * is tried again for as long as the callback says so. A refusal that is made good leaves no trace:
 * no status on upstream, ctx or the thread, and no call of the hook for failures. The last one is
 * recorded, and the request is as if it had been the first: a block that is resized stays as it
 * was. Other failures than umemMemoryError are told at once.
 *
 * Threads: as many as upstream allows; the callback is then called by several at once. */
typedef struct umemRetry {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemRetry;

/* upstream: any context; borrowed, it must live longer than ctx. user: handed to the callback.
 * Errors: umemValueError for an upstream or a callback that is NULL, umemMemoryError; the status of
 * an upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemRetry_ctor(umemRetry *ctx, void *upstream,
                                          umemRetryCallback *callback, void *user);

/* The same, but ctx owns upstream from now on: its end is upstream's, by umem_dtor (the struct
 * stays the caller's). After a failure upstream is still the caller's. */
UMEM_EXTERN umemStatusType umemRetry_adopt(umemRetry *ctx, void *upstream,
                                           umemRetryCallback *callback, void *user);

#endif
