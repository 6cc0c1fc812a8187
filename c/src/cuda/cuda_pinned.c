/* cuda_pinned.c - allocates page-locked host memory, and keeps chunks and channels of it for
 * copies.
 *
 * The runtime gets its pages from the system one by one, in one thread. For blocks of 256 KiB and
 * more, umem maps huge pages, touches them with several threads, and then registers them with the
 * runtime: allocating and freeing 1 GiB takes 82 ms instead of 511 ms (H200, 16 cores). */
#include "cuda/cuda_pinned.h"
#include "core/context.h"
#include "core/ram.h"
#include "core/threads.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <umem/cuda.h>
#include <unistd.h>

/* ==== blocks ==== */

/* umem maps blocks of at least this size: 0.13 ms instead of 0.59 ms for this size. Smaller blocks
 * share pages that the runtime has already. */
static size_t const map_from = 256 << 10;

/* A thread touches at least so many bytes: an integer number of huge pages. With less it is
 * slower. */
static size_t const least_slice = 4 << 20;

/* For blocks of at least this size umem first checks whether the machine has enough free memory. */
static size_t const ask_from = 64 << 20;

static size_t const huge_page = 2 << 20;

static bool is_mapped(size_t nbytes, unsigned flags) {
  return nbytes >= map_from && !(flags & umemCudaWriteCombined);
}

/* ---- memory from the system ---- */

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* nbytes in whole pages; there must be room for the sum. */
static size_t in_pages(size_t nbytes) { return (nbytes + page_size() - 1) & ~(page_size() - 1); }

/* Maps length bytes at a multiple of huge_page; NULL without room for them. */
static char *map_pages(size_t length) {
  char *start =
      mmap(NULL, length + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return NULL;
  size_t before = -(uintptr_t)start & (huge_page - 1);
  if (before) munmap(start, before); /* parts of a mapping of our own: cannot fail, but cost room */
  munmap(start + before + length, huge_page - before);
  madvise(start + before, length, MADV_HUGEPAGE); /* advice only */
  return start + before;
}

/* Pages being touched by several threads. */
typedef struct Touch {
  char *start;
  size_t length, slice;
} Touch;

/* (MADV_POPULATE_WRITE, by several threads, takes twice as long.) */
static void touch_slice(void *job, unsigned piece) {
  Touch *touch = job;
  size_t page = page_size();
  size_t at = piece * touch->slice;
  size_t end = touch->length - at < touch->slice ? touch->length : at + touch->slice;
  for (; at < end; at += page) *(char volatile *)(touch->start + at) = 0;
}

static void touch_pages(char *start, size_t length) {
  unsigned pieces = umem_parallel_pieces(length, least_slice, umemParallelMost);
  size_t slice = (length / pieces + huge_page) & ~(huge_page - 1);
  Touch touch = {.start = start, .length = length, .slice = slice};
  umem_parallel((unsigned)((length + slice - 1) / slice), touch_slice, &touch);
}

/* ---- the two functions ---- */

int umemCuda_pin(umemCudaRt const *rt, void **adr, size_t nbytes, unsigned flags) {
  /* Pinned memory is never swapped. Whatever a program touches beyond that, the system ends a
   * process. */
  if (nbytes > SIZE_MAX / 2 || (nbytes >= ask_from && nbytes > umemMemory_available()))
    return umemCudaOutOfMemory;
  if (!is_mapped(nbytes, flags)) return rt->host_alloc(adr, nbytes, flags);
  size_t length = in_pages(nbytes);
  char *start = map_pages(length);
  if (!start) return umemCudaOutOfMemory;
  touch_pages(start, length);
  int error = rt->host_register(start, length, flags);
  if (error)
    munmap(start, length);
  else
    *adr = start;
  return error;
}

/* A block that the runtime could not unregister remains mapped: the driver may still use it. */
int umemCuda_unpin(umemCudaRt const *rt, void *adr, size_t nbytes, unsigned flags) {
  if (!is_mapped(nbytes, flags)) return rt->host_free(adr);
  int error = rt->host_unregister(adr);
  if (!error) munmap(adr, in_pages(nbytes));
  return error;
}

/* ==== chunks ==== */

/* Protects the chunks. Made when the library is loaded, so that it is older than every lock under
 * which a chunk may be wanted. It is held while a chunk is released: no thread must close the GPU,
 * whose context that needs, meanwhile. */
static umemLock lock;

static umemLock channels_lock; /* protects the lists of channels; as old */

static umemCudaChunk *first; /* those returned last come first: they may still be in a cache */
static unsigned count;       /* of chunks, those that are being pinned included */
static size_t size_now = umemStagingChunk;
static unsigned most = umemStagingChunks;

__attribute__((constructor(101))) static void make_locks(void) {
  umemLock_init(&lock);
  umemLock_init(&channels_lock);
}

/* ---- the list; the lock is held ---- */

static void insert(umemCudaChunk *chunk) {
  chunk->next = first;
  first = chunk;
}

static void unlink_chunk(umemCudaChunk *chunk) {
  umemCudaChunk **link = &first;
  while (*link != chunk) link = &(*link)->next;
  *link = chunk->next;
}

/* Unpins a chunk and forgets it. What fails is not recorded: no copy needs the chunk any more,
 * and an error that matters will meet the next call. In a child of fork the pages are left to the
 * end of the process. */
static void release(umemCudaChunk *chunk) {
  unlink_chunk(chunk);
  count--;
  umemCudaGpu *gpu = chunk->gpu;
  UMEM_FORGETTING();
  umemCudaScope scope;
  if (umemCudaScope_enter(&scope, NULL, gpu) &&
      umemCuda_unpin(gpu->rt, chunk->memory, chunk->nbytes, umemCudaPortable))
    gpu->rt->last_error();
  umemCudaScope_leave(&scope);
  free(chunk);
}

static bool is_welcome(umemCudaChunk const *chunk) {
  return chunk->nbytes == size_now && count <= most;
}

/* Releases the idle chunks of another size or beyond the bound. */
static void tidy(void) {
  umemCudaChunk *next;
  for (umemCudaChunk *chunk = first; chunk; chunk = next) {
    next = chunk->next;
    if (!chunk->lent && !is_welcome(chunk)) release(chunk);
  }
}

/* An idle chunk of gpu, or, with others, of any GPU but this one. */
static umemCudaChunk *find_idle(umemCudaGpu *gpu, bool others) {
  umemCudaChunk *chunk = first;
  while (chunk && (chunk->lent || (chunk->gpu == gpu) == others)) chunk = chunk->next;
  return chunk;
}

/* Makes room for one more chunk, if need be at the cost of another GPU's. */
static bool reserve(umemCudaGpu *gpu) {
  umemCudaChunk *other = count < most ? NULL : find_idle(gpu, true);
  if (other) release(other);
  if (count >= most) return false;
  count++;
  return true;
}

/* ---- lending ---- */

/* A new chunk in the room that was reserved for it. */
static umemCudaChunk *pin_chunk(umemCudaGpu *gpu, size_t nbytes) {
  umemCudaChunk *chunk = calloc(1, sizeof *chunk);
  void *memory = NULL;
  if (!chunk) return NULL;
  if (umemCuda_pin(gpu->rt, &memory, nbytes, umemCudaPortable)) {
    gpu->rt->last_error();
    free(chunk);
    return NULL;
  }
  *chunk = (umemCudaChunk){.gpu = gpu, .memory = memory, .nbytes = nbytes, .lent = true};
  return chunk;
}

umemCudaChunk *umemCudaChunk_take(umemCudaGpu *gpu) {
  umemLock_acquire(&lock);
  umemCudaChunk *chunk = find_idle(gpu, false);
  if (chunk) chunk->lent = true;
  bool reserved = !chunk && reserve(gpu);
  size_t nbytes = size_now;
  umemLock_release(&lock);
  if (!reserved) return chunk;

  chunk = pin_chunk(gpu, nbytes); /* takes its time: others need not wait */
  umemLock_acquire(&lock);
  if (chunk)
    insert(chunk);
  else
    count--;
  umemLock_release(&lock);
  return chunk;
}

/* The lent chunk of gpu that begins at adr; NULL when there is none. */
static umemCudaChunk *chunk_at(umemCudaGpu *gpu, void const *adr) {
  UMEM_LOCKED(&lock);
  umemCudaChunk *chunk = first;
  while (chunk && !(chunk->lent && chunk->memory == adr && chunk->gpu == gpu)) chunk = chunk->next;
  return chunk;
}

void umemCudaChunk_give(umemCudaChunk *chunk) {
  UMEM_LOCKED(&lock);
  if (is_welcome(chunk)) {
    unlink_chunk(chunk);
    insert(chunk);
    chunk->lent = false;
  } else {
    release(chunk);
  }
}

/* Bytes that a chunk holds from now on. */
static size_t chunk_size(void) {
  UMEM_LOCKED(&lock);
  return size_now;
}

/* Releases the chunks of gpu. */
static void release_chunks(umemCudaGpu *gpu) {
  UMEM_LOCKED(&lock);
  umemCudaChunk *next;
  for (umemCudaChunk *chunk = first; chunk; chunk = next) {
    next = chunk->next;
    if (chunk->gpu == gpu) release(chunk);
  }
}

/* ---- tuning ---- */

static size_t const least_chunk = 64 << 10, largest_chunk = 64 << 20, chunk_step = 4096;
static unsigned const most_chunks = 256;

umemStatusType umemCuda_set_staging(size_t chunk_bytes, unsigned chunks) {
  UMEM_ENTER();
  if (!chunk_bytes) chunk_bytes = umemStagingChunk;
  if (!chunks) chunks = umemStagingChunks;
  if (chunk_bytes < least_chunk || chunk_bytes > largest_chunk || chunk_bytes % chunk_step)
    return umemVirtual_fail(NULL, umemValueError,
                            "chunks of %zu bytes: must be a multiple of %zu from %zu to %zu",
                            chunk_bytes, chunk_step, least_chunk, largest_chunk);
  if (chunks > most_chunks)
    return umemVirtual_fail(NULL, umemValueError, "%u chunks: at most %u are possible", chunks,
                            most_chunks);
  umem_defer_cancel();
  UMEM_LOCKED(&lock);
  size_now = chunk_bytes;
  most = chunks;
  tidy();
  return umemOK;
}

/* ==== channels ==== */

static umemCudaChannel *idle;
static unsigned idle_count;
static umemCudaChannel *lost; /* with transfers that could not be waited for */
static unsigned lost_count;   /* atomic */

/* ---- streams and events ---- */

static void ignore(umemCudaGpu *gpu, int error) {
  if (error) gpu->rt->last_error();
}

/* Members that are NULL were never made. In the channel's scope. */
static void destroy(umemCudaChannel *channel) {
  umemCudaGpu *gpu = channel->gpu;
  for (unsigned b = 0; b < umemChannelChunks; b++)
    if (channel->events[b]) ignore(gpu, gpu->rt->event_destroy(channel->events[b]));
  if (channel->stream) ignore(gpu, gpu->rt->stream_destroy(channel->stream));
  free(channel);
}

static umemCudaChannel *create(umemCudaGpu *gpu) {
  umemCudaChannel *channel = calloc(1, sizeof *channel);
  if (!channel) return NULL;
  channel->gpu = gpu;
  int error = gpu->rt->stream_create(&channel->stream);
  for (unsigned b = 0; b < umemChannelChunks && !error; b++)
    error = gpu->rt->event_create(&channel->events[b]);
  if (!error) return channel;
  gpu->rt->last_error();
  destroy(channel);
  return NULL;
}

/* ---- channels that are not in use ---- */

/* Takes a channel of gpu out of a list; NULL when there is none. */
static umemCudaChannel *take(umemCudaChannel **list, umemCudaGpu *gpu) {
  UMEM_LOCKED(&channels_lock);
  umemCudaChannel **link = list;
  while (*link && (*link)->gpu != gpu) link = &(*link)->next;
  umemCudaChannel *channel = *link;
  if (channel) *link = channel->next;
  if (channel && list == &idle) idle_count--;
  if (channel && list == &lost) __atomic_sub_fetch(&lost_count, 1, __ATOMIC_RELAXED);
  return channel;
}

/* Whether there was room for channel among those idle. */
static bool keep_idle(umemCudaChannel *channel) {
  UMEM_LOCKED(&channels_lock);
  bool room = idle_count < umemStagingIdleChannels;
  if (room) {
    channel->next = idle;
    idle = channel;
    idle_count++;
  }
  return room;
}

static void keep_lost(umemCudaChannel *channel) {
  UMEM_LOCKED(&channels_lock);
  channel->next = lost;
  lost = channel;
  __atomic_add_fetch(&lost_count, 1, __ATOMIC_RELAXED);
}

/* ---- taking and giving ---- */

static bool is_in_flight(umemCudaChannel const *channel) {
  bool any = false;
  for (unsigned b = 0; b < umemChannelChunks; b++) any |= channel->in_flight[b];
  return any;
}

static bool borrow_chunks(umemCudaChannel *channel) {
  for (unsigned b = 0; b < umemChannelChunks; b++) {
    channel->chunks[b] = umemCudaChunk_take(channel->gpu);
    if (!channel->chunks[b]) return false;
  }
  return true;
}

static void return_chunks(umemCudaChannel *channel) {
  for (unsigned b = 0; b < umemChannelChunks; b++) {
    if (channel->chunks[b]) umemCudaChunk_give(channel->chunks[b]);
    channel->chunks[b] = NULL;
  }
  for (umemCudaChunk *chunk; (chunk = channel->kept);) {
    channel->kept = chunk->kept;
    umemCudaChunk_give(chunk);
  }
}

umemCudaChannel *umemCudaChannel_take_stream(umemCudaGpu *gpu) {
  umemCuda_end_lost(gpu);
  umemCudaChannel *channel = take(&idle, gpu);
  return channel ? channel : create(gpu);
}

umemCudaChannel *umemCudaChannel_take(umemCudaGpu *gpu) {
  umemCudaChannel *channel = umemCudaChannel_take_stream(gpu);
  if (!channel || borrow_chunks(channel)) return channel;
  umemCudaChannel_give(channel);
  return NULL;
}

void umemCudaChannel_give(umemCudaChannel *channel) {
  if (is_in_flight(channel)) {
    keep_lost(channel);
    return;
  }
  return_chunks(channel);
  if (channel->broken || !keep_idle(channel)) destroy(channel);
}

void umemCudaChannel_keep(umemCudaChannel *channel, umemCudaChunk *chunk) {
  chunk->kept = channel->kept;
  channel->kept = chunk;
}

void umemCuda_end_lost(umemCudaGpu *gpu) {
  umemCudaChannel *channel, *mine = NULL;
  if (!__atomic_load_n(&lost_count, __ATOMIC_RELAXED)) return;
  while ((channel = take(&lost, gpu))) {
    channel->next = mine;
    mine = channel;
  }
  while ((channel = mine)) {
    mine = channel->next;
    ignore(gpu, umemCudaChannel_finish(channel));
    umemCudaChannel_give(channel);
  }
}

void umemCudaChannel_close(umemVirtual *ctx, umemCudaChannel *channel) {
  umemCudaScope scope;
  UMEM_FORGETTING();
  if (!umemCudaScope_enter(&scope, ctx, channel->gpu))
    channel->in_flight[0] = true;
  else
    ignore(channel->gpu, umemCudaChannel_finish(channel));
  umemCudaChannel_give(channel);
  umemCudaScope_leave(&scope);
}

size_t umemCudaChannel_room(umemCudaChannel const *channel) {
  size_t room = SIZE_MAX;
  for (unsigned b = 0; b < umemChannelChunks; b++)
    if (channel->chunks[b]->nbytes < room) room = channel->chunks[b]->nbytes;
  return room;
}

/* What fails here is not recorded: no copy needs any of it. Chunks that channels still have go
 * with the others. */
void umemCuda_release_staging(umemCudaGpu *gpu) {
  UMEM_FORGETTING();
  umemCudaScope scope;
  bool entered = umemCudaScope_enter(&scope, NULL, gpu);
  umemCudaChannel *channel;
  while ((channel = take(&lost, gpu)) || (channel = take(&idle, gpu))) {
    if (entered) ignore(gpu, umemCudaChannel_finish(channel));
    if (entered)
      destroy(channel);
    else
      free(channel);
  }
  umemCudaScope_leave(&scope);
  release_chunks(gpu);
}

/* ---- transfers ---- */

int umemCudaBatch_start(umemCudaRt const *rt, umemCudaBatch *batch, umemCudaDirection direction,
                        void *stream, bool together) {
  size_t copies = batch->count;
  batch->count = 0;
  int error = umemCudaNotSupported;
  if (together && copies > 1)
    error = rt->memcpy_batch_async(batch->dst, batch->src, batch->nbytes, copies, stream);
  if (error != umemCudaNotSupported) return error;
  error = umemCudaSuccess;
  for (size_t i = 0; i < copies && !error; i++)
    error = rt->memcpy_async(batch->dst[i], batch->src[i], batch->nbytes[i], direction, stream);
  return error;
}

int umemCudaChannel_add(umemCudaChannel *channel, unsigned b, umemCudaBatch *parts,
                        umemCudaDirection direction) {
  channel->in_flight[b] = true;
  int error = umemCudaBatch_start(channel->gpu->rt, parts, direction, channel->stream, true);
  if (error) channel->broken = true;
  return error;
}

int umemCudaChannel_end(umemCudaChannel *channel, unsigned b) {
  int error = channel->gpu->rt->event_record(channel->events[b], channel->stream);
  if (error) channel->broken = true;
  return error;
}

int umemCudaChannel_start(umemCudaChannel *channel, unsigned b, void *adr, size_t nbytes,
                          umemCudaDirection direction) {
  umemCudaRt const *rt = channel->gpu->rt;
  void *chunk = channel->chunks[b]->memory;
  bool out = direction == umemCudaToDevice;
  int error =
      rt->memcpy_async(out ? adr : chunk, out ? chunk : adr, nbytes, direction, channel->stream);
  channel->in_flight[b] = true;
  if (!error) return umemCudaChannel_end(channel, b);
  channel->broken = true;
  return error;
}

int umemCudaChannel_settle(umemCudaChannel *channel, unsigned b) {
  if (!channel->in_flight[b]) return umemCudaSuccess;
  int error = channel->gpu->rt->event_synchronize(channel->events[b]);
  if (error)
    channel->broken = true;
  else
    channel->in_flight[b] = false;
  return error;
}

/* Tried twice: an error may be about the call and not about the transfers. */
int umemCudaChannel_finish(umemCudaChannel *channel) {
  if (!is_in_flight(channel)) return umemCudaSuccess;
  umemCudaRt const *rt = channel->gpu->rt;
  int error = rt->stream_synchronize(channel->stream), again = error;
  if (error) {
    channel->broken = true;
    rt->last_error();
    again = rt->stream_synchronize(channel->stream);
  }
  for (unsigned b = 0; b < umemChannelChunks && !again; b++) channel->in_flight[b] = false;
  return error;
}

/* ==== buffers ==== */

enum { buffers_alignment = 16 };

static umemCudaGpu *gpu_of(umemVirtual *ctx) { return ((umemCudaBuffers *)ctx)->gpu; }

static bool buffers_is_same_device(umemVirtual *ctx, umemVirtual *other) {
  (void)ctx;
  return umem_is_plain_host(other);
}

/* Pinned memory, or 0, as in a child of fork. Nothing is recorded: malloc serves instead. */
static uintptr_t lend_chunk(umemCudaGpu *gpu, size_t nbytes) {
  if (nbytes < umemStagingBufferFrom || nbytes > chunk_size()) return 0;
  UMEM_FORGETTING();
  UMEM_CUDA_SCOPE(NULL, gpu, 0);
  umemCudaChunk *chunk = umemCudaChunk_take(gpu);
  if (!chunk || chunk->nbytes >= nbytes) return chunk ? (uintptr_t)chunk->memory : 0;
  umemCudaChunk_give(chunk); /* the size was changed meanwhile */
  return 0;
}

static uintptr_t buffers_alloc(umemVirtual *ctx, size_t nbytes) {
  uintptr_t adr = lend_chunk(gpu_of(ctx), nbytes);
  return adr ? adr : (uintptr_t)malloc(nbytes);
}

static void buffers_free(umemVirtual *ctx, uintptr_t adr) {
  umemCudaChunk *chunk = chunk_at(gpu_of(ctx), (void *)adr);
  if (chunk)
    umemCudaChunk_give(chunk);
  else
    free((void *)adr);
}

static struct umemVtbl const buffers_vtbl = {
    .is_same_device = buffers_is_same_device,
    .alloc = buffers_alloc,
    .free = buffers_free,
    UMEM_RAM_BYTES,
};

/* No kind that a program meets: it stands for a umemHost in copies. */
static umemKind const buffers_kind = {
    .scheme = {.vtbl = &buffers_vtbl},
    .label = "Host",
    .type = umemHostDevice,
    .capabilities = umemCpuReadable | umemCpuWritable | umemDeviceAccessible | umemReadable |
                    umemWritable | umemConcurrent | umemSilent,
    .alignment = buffers_alignment,
};

void umemCudaBuffers_ctor(umemCudaBuffers *buffers, umemCudaGpu *gpu) {
  umem_construct(&buffers->host.super, &buffers_kind, &buffers->host);
  buffers->gpu = gpu;
}
