/* cuda_methods.h - the methods that the kinds of this room share, and what their files call of each
 * other. */
#ifndef UMEM_CUDA_METHODS_H
#define UMEM_CUDA_METHODS_H

#include "cuda/cuda_state.h"
#include "watch/watch.h"

/* ---- cuda_copy.c: runs of bytes, waiting, and direct routes ---- */

void umemCuda_synchronize(umemVirtual *ctx);
void umemCuda_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
void umemCuda_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes);
void umemCuda_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes);
void umemCuda_info(umemVirtual *ctx, umemInfo *info);
int umemCuda_dlpack_device(umemVirtual *ctx, int *id); /* of device memory */

bool umemCuda_plan_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                        uintptr_t dst_adr, umemLayout const *layout);
bool umemCuda_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                          uintptr_t dst_adr, umemLayout const *layout);

bool umemCuda_copy_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst, umemCopyRun *runs,
                        size_t count);

/* ---- cuda_boxes.c: strided copies by the copy engines ---- */

/* Where a copy runs, and between which memories. */
typedef struct umemCudaWay {
  umemCudaRt const *rt;
  void *stream;
  umemCudaDirection direction;
  int src_device, dst_device; /* equal but for a copy between two GPUs */
} umemCudaWay;

/* How a layout is cut: the last `inner` of its dimensions are those of one box. */
typedef struct umemCudaBoxes {
  int inner;
  umemCudaBox box; /* of the first one, without addresses */
  size_t count;
} umemCudaBoxes;

/* Cuts a layout in normal form, of rank > 0. Returns false when the copy engines cannot do it, or
 * not well. */
bool umemCuda_cut_boxes(umemCudaBoxes *boxes, umemLayout const *layout);

/* Whether a copy through host memory takes longer than these boxes, if it moves no other bytes, and
 * each side in a few transfers. */
bool umemCuda_boxes_pay(umemCudaBoxes const *boxes, umemLayout const *layout);

/* Starts the copies of all boxes of the dimensions from k on. Returns the runtime's error. In the
 * scope of the stream's GPU. */
int umemCuda_copy_boxes(umemCudaWay const *way, umemCudaBoxes const *boxes,
                        umemLayout const *layout, int k, uintptr_t src_adr, uintptr_t dst_adr);

/* Starts the copy of a layout that can be cut into boxes by way of a packed block on the device,
 * and stores the runtime's error in *error. ctx: the context of the device memory, on whose stream
 * way is. Returns false, with nothing started, where rows are wide or few, the host's bytes are not
 * packed, the stream is captured, or there is no memory for the block. Called in a scope of the
 * stream's GPU. */
bool umemCuda_copy_narrow(umemVirtual *ctx, umemCudaWay const *way, umemLayout const *layout,
                          uintptr_t src_adr, uintptr_t dst_adr, int *error);

/* ---- cuda_feed.c: to device memory, piece by piece ---- */

bool umemCuda_copy_pieces(umemVirtual *ctx, umemVirtual *src, umemFeed *feed);

/* ---- cuda.c: device memory that is mapped page by page ---- */

umemPages const *umemCuda_pages(umemVirtual *ctx);
umemPages const *umemCuda_large_pages(umemVirtual *ctx);
umemPages const *umemCuda_sized_pages(umemVirtual *ctx, size_t page_size);

/* ---- cuda_stage.c: copies through pinned chunks, in several threads ---- */

/* Copies nbytes between device memory and bytes that no GPU can reach, through pinned chunks and in
 * several threads, after the work queued on state's stream and before what is queued on it later.
 * Complete on return. other: NULL, for host memory that is not pinned, or a concurrent context that
 * is not ordered and whose methods move its bytes to and from host memory, such as a file. They run
 * outside of gpu's scope, and what they record becomes the caller's failure. direction:
 * umemCudaToDevice or umemCudaToHost. Returns false, with nothing touched or recorded, when there
 * is no room for it, it would not pay, or the stream is being captured. Called in no scope. Takes
 * the meter of the copy, if it has one (core/threads.h). */
bool umemCuda_stage(umemVirtual *ctx, umemCudaState *state, uintptr_t device_adr,
                    umemVirtual *other, uintptr_t other_adr, size_t nbytes,
                    umemCudaDirection direction);

/* Makes channels wait for what is queued on the stream of ctx, by an event. Waits see it as it was
 * recorded last before them, so that one of the channels' own will do. False, with nothing
 * recorded, if the stream is being captured, also by another thread since this copy began: the
 * channels must not be drawn into that. *error: of the runtime. In the scope. */
bool umemCuda_follow(umemVirtual *ctx, umemCudaState const *state, umemCudaChannel *const *channels,
                     unsigned count, void *event, int *error);

/* Runs that are copied as if they followed one another. */
typedef struct umemCudaRuns {
  umemCopyRun const *runs;
  size_t const *ends; /* of each: its bytes and those of all before it */
  size_t count;       /* greater than 0 */
} umemCudaRuns;

/* umemCuda_stage for several runs, of any length. Writes to *count how many are copied: all, or
 * those before umem_thread.until, one at least. */
bool umemCuda_stage_runs(umemVirtual *ctx, umemCudaState *state, umemVirtual *other,
                         umemCudaRuns const *runs, umemCudaDirection direction, size_t *count);

/* ---- cuda_gds.c: copies between files and GPUs by cuFile, without host memory ---- */

/* Returns cuFile's functions if its driver is open and all its paths are real, and NULL otherwise.
 * Records nothing. The first call in the process opens the driver, which stays open; it costs
 * milliseconds where nvidia-fs is loaded. The primary context of gpu stays for the life of the
 * process then, because cuFile has memory in it. In no scope. */
umemCufileRt const *umemCudaGds_open(umemCudaGpu *gpu);

/* For tests: closes the driver, releases the contexts, and lets the next call ask again. No copy
 * may run. */
void umemCudaGds_end(void);

/* Bytes of the shortest copy, of which the registration of the file is a small part. */
enum { umemCudaGdsFrom = 8 << 20 };

/* Copies nbytes between device memory of ctx and other by cuFile, after the work that is queued on
 * ctx's stream and before what is queued on it later. Complete on return. direction:
 * umemCudaToDevice or umemCudaToHost. Returns true: done, or failed with a status on the context
 * that has failed. Returns false, with nothing recorded, where cuFile has no direct path between
 * the two, other lends no file, the stream is being captured, or cuFile stops: bytes of the
 * destination may be written then. In no scope. */
bool umemCudaGds_copy(umemVirtual *ctx, uintptr_t device_adr, umemVirtual *other,
                      uintptr_t other_adr, size_t nbytes, umemCudaDirection direction);

/* ---- cuda_share.c: memory of GPUs in several processes ---- */

bool umemCuda_share(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle, int *fd);
bool umemCuda_attach(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr);
bool umemCuda_detach(umemVirtual *ctx, uintptr_t adr);

/* Notes a transfer between device memory of ctx and other; NULL: host memory of the leg. */
static inline void umemCuda_note(umemVirtual *ctx, umemRoutePlace const *other, bool to_device,
                                 umemWay way, size_t nbytes, unsigned threads, uint64_t begin) {
  umemRoutePlace device = umem_device_place(ctx, umemCuda_state_of(ctx)->gpu->device);
  umem_note_between(to_device ? other : &device, to_device ? &device : other, way, nbytes, threads,
                    begin);
}

/* What the tables of all of them have in common. */

#define UMEM_CUDA_METHODS                                                                          \
  .is_same_device = umemCuda_is_same_device, .alloc = umemCuda_alloc, .free = umemCuda_free,       \
  .set = umemCuda_set, .copy_to = umemCuda_copy_to, .copy_from = umemCuda_copy_from,               \
  .plan_copy = umemCuda_plan_copy, .copy_direct = umemCuda_copy_direct,                            \
  .copy_runs = umemCuda_copy_runs, .realloc = umemCuda_realloc,                                    \
  .stream_wait = umemCuda_stream_wait, .event_wait = umemCuda_event_wait, .find = umemCuda_find,   \
  .usage = umemCuda_usage

/* And those of device memory. */
#define UMEM_CUDA_DEVICE_METHODS                                                                   \
  .synchronize = umemCuda_synchronize, .copy_pieces = umemCuda_copy_pieces,                        \
  .dlpack_device = umemCuda_dlpack_device, .share = umemCuda_share, .attach = umemCuda_attach,     \
  .detach = umemCuda_detach

#endif
