/* umem/retry.h - a context that calls a function of the program when it is out of memory, and tries
 * again. */
#ifndef UMEM_RETRY_H
#define UMEM_RETRY_H

#include <umem/base.h>

/* umem calls this function when upstream could not allocate nbytes at a multiple of alignment
 * (umemMemoryError). attempt counts the calls for one request, from 1. The function should free
 * memory: for example blocks of its own, or by umem_trim of a pool. It returns true to try again,
 * and false to give up.
 *
 * It runs in the thread that allocates, without a lock of umem. It may use ctx, the umemRetry, as
 * any thread may; if an allocation in it fails, umem calls it again. Its own failures are recorded
 * on contexts and the thread as usual, but they are not failures of the request. user is the
 * argument of the constructor. No exception may leave it, and pthread_cancel does not end the
 * thread in it (see doc/concepts/threads.rst). */
typedef bool umemRetryCallback(void *user, void *ctx, size_t nbytes, size_t alignment,
                               unsigned attempt);

/* A umemRetry passes every call on to another context, upstream. If upstream is out of memory, it
 * calls the callback, and repeats the request as long as the callback returns true. If the request
 * succeeds in the end, umem records none of the failures before: not on upstream, ctx or the
 * thread, and it does not call the failure hook. If the callback gives up, umem records the last
 * failure, and a block that was to be resized is as before. umem records other failures than
 * umemMemoryError at once.
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

/* Constructs ctx as umemRetry_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. The
 * caller still owns the memory of the struct. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemRetry_adopt(umemRetry *ctx, void *upstream,
                                           umemRetryCallback *callback, void *user);

#endif
