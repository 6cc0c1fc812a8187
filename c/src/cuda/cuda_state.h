/* cuda_state.h - what the CUDA contexts have in common: their private state, their blocks, their
 * stream, their end. */
#ifndef UMEM_CUDA_STATE_H
#define UMEM_CUDA_STATE_H

#include "core/kind.h"
#include "core/live.h"
#include "cuda/cuda_pinned.h"

#include <umem/cuda.h>
#include <umem/handle.h>
#include <umem/host.h>

struct umemCudaState;

/* How a context gets nbytes of its memory, and gives them back. get and give return the runtime's
 * error. Called in a scope of the state's GPU. */
typedef struct umemCudaSource {
  int (*get)(struct umemCudaState *state, void **adr, size_t nbytes);
  int (*give)(struct umemCudaState *state, void *adr, size_t nbytes);
  /* Called before get, and with nbytes 0 before give: whether that may be done just now; false with
   * a status on ctx. NULL: always. */
  bool (*allows)(umemVirtual *ctx, size_t nbytes);
  /* Lets device use the blocks. NULL: nothing to do. */
  void (*open_to)(struct umemCudaState *state, int device);
  /* Why the blocks that are left cannot be given back when the context ends, as an error of the
   * runtime. NULL: they always can. */
  int (*bar)(struct umemCudaState *state);
  /* Describes the block that begins at base for other processes: sets kind and memory, and for a
   * pool identity[3] and *fd. False after a failure. NULL for contexts without the method share. */
  bool (*describe)(umemVirtual *ctx, uintptr_t base, umemHandle *handle, int *fd);
} umemCudaSource;

enum { umemCudaPageSizes = 5 };

/* The impl of a CUDA context points to one, or to a struct that begins with one. */
typedef struct umemCudaState {
  umemCudaGpu *gpu;
  umemLive live;
  umemCudaSource const *source;
  void *stream;            /* that its work is ordered on; NULL: the legacy default stream */
  umemCudaBuffers buffers; /* for intermediate buffers: RAM that is pinned where it pays */
  umemLock lock;           /* protects blocks */
  umemTable blocks;        /* live: address to bytes */
  /* [order]: of 1 << order of the smallest; page_size is 0 before they were asked for (cuda.c) */
  umemPages pages[umemCudaPageSizes];
  uint64_t page_users; /* bit d: device d may use them */
  bool pages_for_bus;  /* the bus reaches them */
  bool shares;         /* some blocks have been shared (cuda_share.c); atomic */
  void *event;         /* owned; NULL: nothing has been shared yet */
  umemCudaIpc event_handle;
} umemCudaState;

bool umemCuda_is_same_device(umemVirtual *ctx, umemVirtual *other);

/* The state of a constructed CUDA context; NULL for all other contexts. The four types have this
 * method in common, which no other context has. */
static inline umemCudaState *umemCuda_state_of(umemVirtual const *ctx) {
  struct umemVtbl const *vptr = ctx->vptr;
  bool ours = vptr && vptr->is_same_device == umemCuda_is_same_device;
  return ours ? ((umemCuda const *)ctx)->impl : NULL;
}

/* Constructs *ctx, of one of the four types, as a context of this kind on device, with impl of the
 * kind's impl_size, zero but for the umemCudaState that it begins with. Returns impl; NULL, with a
 * status on ctx, which then is no context, when that fails. source: its blocks have the kind's
 * alignment. */
void *umemCuda_construct(umemVirtual *ctx, umemKind const *kind, umemCudaSource const *source,
                         int device);

extern umemKind const umem_cuda_managed_kind; /* cuda_managed.c */

/* The place of a name such as "cuda:0": the number of the GPU. */
extern umemOption const umem_cuda_device;

/* What the schemes of the four types have in common. */
#define UMEM_CUDA_KIND(type, text, table)                                                          \
  .size = sizeof(umemScheme), .name = (text), .context_size = sizeof(type), .vtbl = (table)

/* The last step of a constructor that has succeeded, and the first step of dtor. Returns umemOK. */
umemStatusType umemCuda_list(umemVirtual *ctx);
void umemCuda_unlist(umemVirtual *ctx);

/* The rest of a constructor that has failed after umemCuda_construct. Returns the recorded
 * status. */
umemStatusType umemCuda_construct_failed(umemVirtual *ctx);

/* Frees all blocks that are left, and forgets them, whatever failed. For destructors that then
 * close what blocks need. In a scope. */
void umemCuda_give_back(umemVirtual *ctx);

/* Describes a block of cudaMalloc. */
bool umemCuda_describe(umemVirtual *ctx, uintptr_t base, umemHandle *handle, int *fd);

/* Methods. The destructor frees the blocks that are left, and impl. */
void umemCuda_dtor(umemVirtual *ctx);
uintptr_t umemCuda_alloc(umemVirtual *ctx, size_t nbytes);
void umemCuda_free(umemVirtual *ctx, uintptr_t adr);
umemSearch umemCuda_find(umemVirtual *ctx, uintptr_t adr, umemFound *found);
bool umemCuda_usage(umemVirtual *ctx, umemUsage *usage);
uintptr_t umemCuda_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);

/* ==== streams and captures ==== */

/* Whether the stream of state is being captured into a graph: work on it is recorded, and waiting
 * for it would invalidate the capture. In a scope. */
bool umemCudaState_is_captured(umemCudaState const *state);

/* Returns when the work on the stream of state is done, with the runtime's error. In a scope. */
int umemCudaState_finish(umemCudaState const *state);

/* As umemCudaState_finish, where another thread may begin a capture of the stream at any time: then
 * it returns umemCudaCaptureUnsupported and leaves the capture whole. Records on ctx that there is
 * no event. */
int umemCudaState_finish_uncaptured(umemCudaState const *state, umemVirtual *ctx);

/* Whether the stream of ctx is being captured; then records umemNotSupportedError with this advice.
 * In a scope. */
bool umemCuda_refuse_capture(umemVirtual *ctx, char const *advice);

/* What CUDA calls cudaStreamLegacy and cudaStreamPerThread. */
enum { umemCudaLegacyHandle = 1, umemCudaPerThreadHandle = 2 };

/* For contexts of a stream. */
void umemCuda_wait(umemVirtual *ctx, umemVirtual *other);
bool umemCuda_mark(umemVirtual *ctx, umemMark *out);

void umemCuda_stream_wait(umemVirtual *ctx, uintptr_t stream);
void umemCuda_event_wait(umemVirtual *ctx, uintptr_t event);

/* ==== blocks that this process has shared with others ====
 *
 * Threads: any. One lock protects the list, and the blocks of others in cuda_share.c. It is held
 * while CUDA is called. */

typedef struct umemCudaShared {
  struct umemCudaShared *next;
  struct umemCudaState *state; /* that has the block */
  umemCudaGpu const *gpu;
  uintptr_t base;
  size_t nbytes;
  uint64_t number;
  size_t attached; /* how often, in this process */
} umemCudaShared;

/* The number of the block, which is in the list from now on; 0 without memory. */
uint64_t umemCudaShared_enter(struct umemCudaState *state, umemCudaGpu const *gpu, uintptr_t base,
                              size_t nbytes);

/* The block of state at base, or all of them for 0, leave the list: they are about to be freed. */
void umemCudaShared_forget(struct umemCudaState const *state, uintptr_t base);

/* ---- numbers ---- */

/* A number that nothing else of this process has. */
uint64_t umemCudaShared_number(void);

/* Two numbers that no other process has. */
void umemCudaShared_process(uint64_t numbers[2]);

/* ---- under the lock ---- */

void umemCudaShared_lock(void);
void umemCudaShared_unlock(void);

/* The block with this number; the one that contains adr, and is attached in this process. NULL if
 * there is none. */
umemCudaShared *umemCudaShared_find(uint64_t number);
umemCudaShared *umemCudaShared_at(umemCudaGpu const *gpu, uintptr_t adr);

#endif
