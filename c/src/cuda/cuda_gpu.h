/* cuda_gpu.h - what the CUDA contexts share: a GPU, the way into its context and back, errors,
 * and what the impl of each of them begins with. */
#ifndef UMEM_CUDA_GPU_H
#define UMEM_CUDA_GPU_H

#include <umem/cuda.h>
#include <umem/host.h>

#include "core/kind.h"
#include "cuda/cuda_rt.h"
#include "base/lock.h"
#include "base/table.h"

/* ---- a GPU ---- */

enum {
  umemCudaMostDevices = 64,
  umemCudaIdleEvents = 8,
  umemCudaCaptureTries = 8 /* how often what a capture has come between is done again */
};

/* One GPU of this process: one struct for each, which stays in its place while a context of umem uses it,
 * so that pointers to it can be compared. */
typedef struct umemCudaGpu {
  umemCudaRt const *rt;
  int device;
  void *context;                    /* its primary context, retained */
  void *events[umemCudaIdleEvents]; /* that nobody is using; NULL: none; atomic */
  unsigned lineage;                 /* umem_fork_count() when it was opened */
  uint64_t peers;    /* bit d: copies reach the memory of device d directly; atomic */
  uint64_t no_peers; /* bit d: they do not; atomic. Neither bit: not asked yet */
  uint64_t managed;  /* bytes of live managed memory of all contexts; atomic */
  bool has_pools, has_managed, concurrent_managed, pageable_access;
  char name[128];
} umemCudaGpu;

/* The GPU device, for one more user; NULL, with a status on ctx, when there is none. */
umemCudaGpu *umemCudaGpu_open(umemVirtual *ctx, int device);

/* One user less. When the last user of the last GPU goes, what the process kept for them is released. */
void umemCudaGpu_close(umemCudaGpu *gpu);

/* Whether this process is a child of fork of the one that opened gpu: CUDA is of no use in it. */
bool umemCudaGpu_is_inherited(umemCudaGpu const *gpu);

/* Whether copies of gpu reach the memory of device peer directly; enables that the first time it is
 * asked. Called in gpu's scope. */
bool umemCudaGpu_reaches(umemCudaGpu *gpu, int peer);

/* An event of gpu for the caller alone: nobody else records it, also not in a capture. NULL, with a status on
 * ctx, when there is none. Called in gpu's scope. */
void *umemCudaGpu_take_event(umemCudaGpu *gpu, umemVirtual *ctx);

/* Takes it back: who waits for it has been told. In the scope of any GPU. */
void umemCudaGpu_give_event(umemCudaGpu *gpu, void *event);

/* Returns when all is done that precedes the end of the legacy stream of gpu: what is queued on it, and on the
 * streams that it waits for. False, with a status on ctx, when that fails. Called in gpu's scope. */
bool umemCudaGpu_settle(umemCudaGpu *gpu, umemVirtual *ctx);

/* Orders later work of stream, of whatever GPU, after what is queued on the legacy stream of gpu. False,
 * with a status on ctx, when that fails. Called in the scope of stream's GPU. */
bool umemCudaGpu_precedes(umemCudaGpu *gpu, umemVirtual *ctx, void *stream);

/* ---- being in a GPU's context ---- */

/* The way back to where the caller was. */
typedef struct umemCudaScope {
  umemVirtual *ctx; /* that failures belong to */
  umemCudaGpu *gpu;
  bool pushed;
  int capture_mode; /* the caller's */
} umemCudaScope;

/* Makes gpu's context current for the calling thread, and lets it make calls that a graph capture of the
 * program would forbid and break at though they have nothing to do with it: allocations, waiting.
 * False, with a status on ctx and nothing to leave, when that fails, and in a child of fork. */
bool umemCudaScope_enter(umemCudaScope *scope, umemVirtual *ctx, umemCudaGpu *gpu);

/* All is as the caller had it. Records a failure if that fails. */
void umemCudaScope_leave(umemCudaScope *scope);

/* ---- errors ---- */

/* True when error is success. Otherwise records what failed, in the words of printf, and why, in the
 * runtime's words; where memory is out, how much there is; forgets the runtime's last error; false. To be
 * called in the thread that got the error, in gpu's scope. */
bool umemCuda_check(umemVirtual *ctx, umemCudaGpu *gpu, int error, char const *what, ...)
    UMEM_PRINTF(4, 5);

/* The status that an error is told as. */
umemStatusType umemCuda_status_of(int error);

/* Whether error is what using an event gives that was recorded in a capture into a graph, be it over: then it
 * can be recorded anew. */
static inline bool umemCuda_is_of_captured_event(int error) {
  return error == umemCudaInvalidValue || error == umemCudaCaptureIsolation ||
         error == umemCudaCapturedEvent;
}

/* Whether nothing works any more in this process after error. */
bool umemCuda_is_fatal(int error);

/* ---- what the contexts have in common ---- */

struct umemCudaPlace;

/* How a context gets nbytes of its memory, and gives them back. Return the runtime's error. Called in a
 * scope of the place's GPU. */
typedef struct umemCudaSource {
  int (*get)(struct umemCudaPlace *place, void **adr, size_t nbytes);
  int (*give)(struct umemCudaPlace *place, void *adr, size_t nbytes);
  /* Whether blocks can be had and given back just now; false with a status on ctx. NULL: always. */
  bool (*allows)(umemVirtual *ctx);
} umemCudaSource;

/* What impl of the four points to, or begins with. */
typedef struct umemCudaPlace {
  umemCudaGpu *gpu;
  umemCudaSource const *source;
  void *stream;               /* that its work is ordered on; NULL: the legacy default stream */
  umemHost buffers;           /* for intermediate buffers: RAM that is pinned where it pays */
  umemLock lock;              /* guards blocks */
  umemTable blocks;           /* live: address to bytes */
  struct umemCudaPlace *next; /* of managed memory (cuda_room.c) */
} umemCudaPlace;

/* The place of a constructed CUDA context; NULL for all other contexts. */
umemCudaPlace *umemCuda_place_of(umemVirtual const *ctx);

/* Constructs *ctx, of one of the four types, as a context of this kind on device, with impl of the kind's
 * impl_size, zero but for the umemCudaPlace that it begins with, which is returned. NULL, with a
 * status on ctx, which then is none, when that fails. source: its blocks have the kind's alignment. */
void *umemCuda_construct(umemVirtual *ctx, umemKind const *kind, umemCudaSource const *source,
                         int device);

/* The place of a name that begins with "cuda": the number of the GPU. */
extern umemOption const umem_cuda_device;

/* The rest of a constructor that has failed after umemCuda_construct. Returns the recorded status. */
umemStatusType umemCuda_construct_failed(umemVirtual *ctx);

/* Gives all blocks back that are left: none is afterwards, whatever failed. For destructors that then close
 * what blocks need. In a scope. */
void umemCuda_give_back(umemVirtual *ctx);

/* Methods. The destructor gives back the blocks that are left, and frees impl. */
void umemCuda_dtor(umemVirtual *ctx);
uintptr_t umemCuda_alloc(umemVirtual *ctx, size_t nbytes);
void umemCuda_free(umemVirtual *ctx, uintptr_t adr);
uintptr_t umemCuda_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);
bool umemCuda_is_same_device(umemVirtual *ctx, umemVirtual *other);

/* The tables of the four, by which the family knows its own. */
extern struct umemVtbl const umemCuda_vtbl, umemCudaHost_vtbl, umemCudaManaged_vtbl,
    umemCudaAsync_vtbl;

/* Whether the stream of place is being captured into a graph: work on it is recorded, and waiting for it
 * would break the capture. */
bool umemCudaPlace_is_captured(umemCudaPlace const *place);

/* Returns when the work on the stream of place is done, and the runtime's error. Called in a scope. */
int umemCudaPlace_finish(umemCudaPlace const *place);

/* The same where another thread may begin a capture of the stream at any time: then
 * umemCudaCaptureUnsupported, and the capture is whole. ctx: whose failure it is that there is no event. */
int umemCudaPlace_finish_apart(umemCudaPlace const *place, umemVirtual *ctx);

/* Whether the stream of ctx is being captured; then umemNotSupportedError is recorded with this advice. In a
 * scope. */
bool umemCuda_refuse_capture(umemVirtual *ctx, char const *advice);

/* ---- methods that several of them have (cuda_copy.c, cuda_direct.c) ---- */

void umemCuda_synchronize(umemVirtual *ctx);
void umemCuda_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
void umemCuda_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes);
void umemCuda_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes);
bool umemCuda_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                          uintptr_t dst_adr, umemLayout const *layout);
void umemCuda_info(umemVirtual *ctx, umemInfo *info);

/* What the tables of contexts that GPUs copy have in common. */
#define UMEM_CUDA_METHODS                                                                          \
  .is_same_device = umemCuda_is_same_device, .alloc = umemCuda_alloc, .free = umemCuda_free,       \
  .set = umemCuda_set, .copy_to = umemCuda_copy_to, .copy_from = umemCuda_copy_from,               \
  .copy_direct = umemCuda_copy_direct, .realloc = umemCuda_realloc

/* Lets device use the blocks of ctx, if it is a umemCudaAsync: those of pools need it said. */
void umemCudaAsync_allow(umemVirtual *ctx, int device);

/* ---- room for managed memory (cuda_room.c) ---- */

/* From enter on, until leave, the blocks of place, which is of managed memory, may be looked at: they leave
 * its table before they are freed. */
void umemCudaRoom_enter(umemCudaPlace *place);
void umemCudaRoom_leave(umemCudaPlace *place);

/* Counts nbytes more, for a block of managed memory that is about to be allocated. Returns the runtime's error:
 * umemCudaOutOfMemory when the live blocks of the process would not all fit on gpu together. Prefetches live
 * blocks where it takes that to know. Called in gpu's scope. */
int umemCudaRoom_take(umemCudaGpu *gpu, size_t nbytes);

/* Counts nbytes less. */
void umemCudaRoom_give(umemCudaGpu *gpu, size_t nbytes);

/* ---- moving pageable memory (cuda_stage.c, cuda_lane.c, ...) ---- */

/* Copies nbytes between device memory and host memory that is not pinned, through pinned chunks and by
 * several threads, after the work queued on place's stream and before what is queued on it later.
 * Complete on return. False, with nothing touched or recorded, when there is no room for it, or it
 * would not pay: the caller copies in one call. kind: umemCudaToDevice or umemCudaToHost. Called in
 * gpu's scope. */
bool umemCuda_stage(umemVirtual *ctx, umemCudaPlace *place, uintptr_t device_adr, void *host_adr,
                    size_t nbytes, umemCudaKind kind);

/* Makes place->buffers a umemHost that lends pinned chunks of place->gpu, and plain memory where none is
 * left or the request is too small or too large for one. Its blocks go before place is closed. */
void umemCuda_buffers_ctor(umemCudaPlace *place);

/* Releases the idle chunks, streams and events that were made in gpu's context. Called in no scope and
 * without the global lock, when no umem context uses gpu any more and before its context is released.
 * In a child of fork it only forgets them. */
void umemCuda_release_staging(umemCudaGpu *gpu);

/* ---- pinned memory the fast way (cuda_pin.c) ---- */

/* nbytes of page-locked host memory: pages are taken from the system in large pieces, touched by
 * several threads, then registered; small blocks and write-combined ones come from the runtime.
 * Returns the runtime's error. In a scope. flags: umemCudaPortable and so on. */
int umemCuda_pin(umemCudaRt const *rt, void **adr, size_t nbytes, unsigned flags);
int umemCuda_unpin(umemCudaRt const *rt, void *adr, size_t nbytes, unsigned flags);

#endif
