/* cuda_scope.h - what every call on a GPU needs: the GPU, its context made current for a while,
 * CUDA's errors as failures of umem, and events. */
#ifndef UMEM_CUDA_SCOPE_H
#define UMEM_CUDA_SCOPE_H

#include "base/system.h"
#include "core/hook.h"
#include "cuda/cuda_rt.h"

#include <umem/base.h>

/* ==== GPUs ==== */

enum {
  umemCudaMostDevices = 64,
  umemCudaIdleEvents = 256, /* kept, as many as a stream has transfers under way */
  umemCudaCaptureTries = 8  /* how often umem repeats what a capture has disturbed */
};

/* One GPU of this process. There is one struct for each GPU; it does not move while a context of
 * umem uses it, so pointers to it can be compared. */
typedef struct umemCudaGpu {
  umemCudaRt const *rt;
  int device;
  int devices;                      /* how many GPUs there are; at most umemCudaMostDevices */
  void *context;                    /* its primary context, retained */
  void *events[umemCudaIdleEvents]; /* that are idle; NULL: none; atomic */
  unsigned lineage;                 /* umem_fork_count() when it was opened */
  uint64_t peers;    /* bit d: copies reach the memory of device d directly; atomic */
  uint64_t no_peers; /* bit d: they do not; atomic. Neither bit: not asked yet */
  uint64_t managed;  /* bytes of live managed memory of all contexts; atomic */
  bool has_pools, has_managed, concurrent_managed;
  size_t page_size; /* of memory that is mapped page by page; 0: there is none */
  bool has_near;    /* some processors are nearer than others: */
  cpu_set_t near;
  char name[128];
} umemCudaGpu;

/* Whether this process is a child of fork of the one that opened gpu: CUDA does not work in it. */
static inline bool umemCudaGpu_is_inherited(umemCudaGpu const *gpu) {
  return gpu->lineage != umem_fork_count();
}

/* ---- cuda_gpus.c: the GPUs of this process, while contexts use them ---- */

/* Returns the GPU device, for one more user; NULL, with a status on ctx, when there is none. */
umemCudaGpu *umemCudaGpu_open(umemVirtual *ctx, int device);

/* Ends one use. When the last user of the last GPU goes, umem releases what the process kept for
 * them. */
void umemCudaGpu_close(umemCudaGpu *gpu);

/* Whether copies of gpu reach the memory of device peer directly; the first call enables that.
 * Called in gpu's scope. */
bool umemCudaGpu_reaches(umemCudaGpu *gpu, int peer);

/* A umemFindForeign. False while no context for GPUs lives. */
bool umemCuda_find_foreign(uintptr_t adr, umemFound *found);

/* ==== errors ==== */

/* Returns true if error is success. Otherwise it records a failure, clears the runtime's last
 * error, and returns false. The message contains what, formatted as by printf, and the text of the
 * runtime; if the GPU is out of memory, also its free and total bytes. Called in the thread that
 * got the error, in gpu's scope. */
bool umemCuda_check(umemVirtual *ctx, umemCudaGpu *gpu, int error, char const *what, ...)
    UMEM_PRINTF(4, 5);

/* As umemCuda_check, where the call takes as long as a call of CUDA: nothing is done after a
 * success. error is evaluated twice. */
#define UMEM_CUDA_CHECK(ctx, gpu, error, ...)                                                      \
  (__builtin_expect(!(error), 1) || umemCuda_check((ctx), (gpu), (error), __VA_ARGS__))

/* Whether error is what using an event gives that was recorded in a capture into a graph, also one
 * that is over: then the event can be recorded anew. */
static inline bool umemCuda_is_of_captured_event(int error) {
  return error == umemCudaInvalidValue || error == umemCudaCaptureIsolation ||
         error == umemCudaCapturedEvent;
}

/* Makes a call of the table that gives something back, and makes it again if it fails: the error
 * may be about work before. What fails twice remains until the process ends. */
#define UMEM_CUDA_TRY_TWICE(rt, call)                                                              \
  do {                                                                                             \
    if ((rt)->call && (rt)->call) (rt)->last_error();                                              \
  } while (0)

/* ==== scopes ==== */

/* What umemCudaScope_leave restores. */
typedef struct umemCudaScope {
  umemVirtual *ctx; /* that failures belong to */
  umemCudaGpu *gpu; /* NULL: it was not entered */
  bool pushed;
  bool remains; /* is not popped: the caller had no context, and this is a call of ctx on GPU 0 */
  int capture_mode; /* the caller's */
} umemCudaScope;

/* Makes gpu's context current for the calling thread. Also sets the thread's capture mode to
 * relaxed: otherwise CUDA would refuse allocations and waits while the program captures any stream,
 * and would invalidate the capture. Returns false, and records a status on ctx, if that fails, and
 * in a child of fork. Then there is nothing to leave. */
bool umemCudaScope_enter(umemCudaScope *scope, umemVirtual *ctx, umemCudaGpu *gpu);

/* Restores what the caller had, unless the context remains. Records a failure if that fails. Does
 * nothing for what umemCudaScope_enter has not entered. */
void umemCudaScope_leave(umemCudaScope *scope);

/* In the scope of gpu from here to the end of the block of code. If it cannot be entered, the
 * function returns, with the value that follows. A failure of leaving comes after the value that
 * the block returns. */
#define UMEM_CUDA_SCOPE(ctx, gpu, ...)                                                             \
  __attribute__((cleanup(umemCudaScope_leave))) umemCudaScope umem_scope_;                         \
  if (!umemCudaScope_enter(&umem_scope_, (ctx), (gpu))) return __VA_ARGS__

/* ==== events, and the order of the legacy stream ==== */

/* Returns an event of gpu for the caller alone: no other records it, also not in a capture. NULL,
 * with a status on ctx, when there is none. Called in gpu's scope. */
void *umemCudaGpu_take_event(umemCudaGpu *gpu, umemVirtual *ctx);

/* Takes the event back, if there is room for one that is idle; whatever waits for it goes on
 * waiting. Calls nothing of CUDA. */
bool umemCudaGpu_keep_event(umemCudaGpu *gpu, void *event);

/* Takes the event back, or destroys it. In the scope of any GPU. NULL is ignored. */
void umemCudaGpu_give_event(umemCudaGpu *gpu, void *event);

/* Destroys the events of gpu that are idle: before its context ends. In no scope. */
void umemCudaGpu_destroy_events(umemCudaGpu *gpu);

/* Returns when all work is done that precedes the end of the legacy stream of gpu: what is queued
 * on it, and on the streams that it waits for. Returns false, with a status on ctx, when that
 * fails. Called in gpu's scope. */
bool umemCudaGpu_settle(umemCudaGpu *gpu, umemVirtual *ctx);

/* Orders later work of stream, of any GPU, after what is queued on the legacy stream of gpu.
 * Returns false, with a status on ctx, when that fails. Called in the scope of stream's GPU. */
bool umemCudaGpu_precedes(umemCudaGpu *gpu, umemVirtual *ctx, void *stream);

#endif
