/* cuda.c - device memory of one GPU: from cudaMalloc, or mapped page by page into ranges of
 * addresses. Calls finish before they return, in the order of CUDA's legacy default stream.
 *
 * Each page is an allocation of the driver's own, because the driver maps and unmaps allocations
 * only as a whole. The driver keeps the records: umem releases a page as soon as it is mapped, so
 * that the page ends when it is unmapped, and gets it from the driver again to move it.
 *
 * The driver needs about as long to map or to move an allocation of 32 MiB as one of 2 MiB (50 to
 * 60 us on an H100, driver 580; 30 of these to allow the GPU to use it). So there are larger pages,
 * of 2, 4, 8 and 16 others.
 *
 * The access that cudaDeviceEnablePeerAccess gives does not include such memory. So all GPUs that
 * can reach the memory of this one may use each page, as if a program had enabled that access.
 * CUDA's older handles for other processes (cudaIpcGetMemHandle) do not accept such memory. */
#include "core/status.h"
#include "cuda/cuda_methods.h"

#include <string.h>
#include <umem/cuda.h>

/* ==== pages ==== */

enum { asked_from = 64 << 20 };

/* ---- in the scope ---- */

static void *at(uintptr_t adr) { return (void *)adr; }

static int map_one(umemCudaState *state, uintptr_t adr, size_t size) {
  umemCudaRt const *rt = state->gpu->rt;
  uint64_t page;
  int error = rt->page_create(&page, size, state->gpu->device, state->pages_for_bus);
  if (error) return error;
  error = rt->page_map(at(adr), size, page);
  UMEM_CUDA_TRY_TWICE(rt, page_release(page));
  return error;
}

/* Maps the page of from at to, too. */
static int map_twice(umemCudaState *state, uintptr_t from, uintptr_t to, size_t size) {
  umemCudaRt const *rt = state->gpu->rt;
  uint64_t page;
  int error = rt->page_retain(&page, at(from));
  if (error) return error;
  error = rt->page_map(at(to), size, page);
  UMEM_CUDA_TRY_TWICE(rt, page_release(page));
  return error;
}

/* Unmaps pages that were never used. */
static void unmap_new(umemCudaState *state, uintptr_t adr, size_t nbytes, size_t size) {
  umemCudaRt const *rt = state->gpu->rt;
  for (size_t done = 0; done < nbytes; done += size)
    UMEM_CUDA_TRY_TWICE(rt, page_unmap(at(adr + done), size));
}

/* Returns the bytes that may be used then: done, or 0 after a failure. */
static size_t allow(umemVirtual *ctx, umemCudaState *state, uintptr_t adr, size_t done,
                    size_t size) {
  if (!done) return 0;
  int error = state->gpu->rt->page_allow(at(adr), done, state->page_users);
  if (umemCuda_check(ctx, state->gpu, error, "cannot use %zu bytes at 0x%jx", done, (uintmax_t)adr))
    return done;
  unmap_new(state, adr, done, size);
  return 0;
}

/* To map page after page until none is left takes seconds, in which other programs find no memory.
 * So many pages are first compared with what is free, which takes less time than to map one. */
static int check_room(umemCudaState *state, size_t nbytes) {
  size_t available = 0, capacity;
  if (nbytes < asked_from) return 0;
  int error = state->gpu->rt->memory_info(&available, &capacity);
  return error || nbytes <= available ? error : umemCudaOutOfMemory;
}

/* size: of one page. */
static size_t map_pages(umemVirtual *ctx, uintptr_t adr, size_t nbytes, size_t size) {
  umemCudaState *state = umemCuda_state_of(ctx);
  size_t done = 0;
  int error = check_room(state, nbytes);
  while (!error && done < nbytes) {
    error = map_one(state, adr + done, size);
    if (!error) done += size;
  }
  umemCuda_check(ctx, state->gpu, error, "cannot map %zu bytes at 0x%jx", nbytes, (uintmax_t)adr);
  return allow(ctx, state, adr, done, size);
}

static size_t unmap_pages(umemVirtual *ctx, uintptr_t adr, size_t nbytes, size_t size) {
  umemCudaState *state = umemCuda_state_of(ctx);
  size_t done = 0;
  int error = 0;
  while (!error && done < nbytes) {
    error = state->gpu->rt->page_unmap(at(adr + done), size);
    if (!error) done += size;
  }
  umemCuda_check(ctx, state->gpu, error, "cannot unmap %zu bytes at 0x%jx", nbytes, (uintmax_t)adr);
  return done;
}

/* Pages are in both places before they leave the first one: no failure can lose them. */
static size_t move_pages(umemVirtual *ctx, uintptr_t from, uintptr_t to, size_t nbytes,
                         size_t size) {
  umemCudaState *state = umemCuda_state_of(ctx);
  size_t both = 0;
  int error = 0;
  while (!error && both < nbytes) {
    error = map_twice(state, from + both, to + both, size);
    if (!error) both += size;
  }
  umemCuda_check(ctx, state->gpu, error, "cannot move %zu bytes from 0x%jx to 0x%jx", nbytes,
                 (uintmax_t)from, (uintmax_t)to);
  both = allow(ctx, state, to, both, size);
  size_t done = both ? unmap_pages(ctx, from, both, size) : 0;
  unmap_new(state, to + done, both - done, size);
  return done;
}

/* ---- methods ---- */

static uintptr_t pages_reserve(umemVirtual *ctx, size_t nbytes) {
  umemCudaState *state = umemCuda_state_of(ctx);
  void *adr = NULL;
  UMEM_CUDA_SCOPE(ctx, state->gpu, 0);
  int error = state->gpu->rt->range_reserve(&adr, nbytes, state->pages->page_size);
  return umemCuda_check(ctx, state->gpu, error, "cannot reserve %zu bytes of addresses", nbytes)
             ? (uintptr_t)adr
             : 0;
}

static bool pages_release(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  umemCudaState *state = umemCuda_state_of(ctx);
  UMEM_CUDA_SCOPE(ctx, state->gpu, false);
  int error = state->gpu->rt->range_free(at(adr), nbytes);
  return umemCuda_check(ctx, state->gpu, error, "cannot release %zu bytes of addresses at 0x%jx",
                        nbytes, (uintmax_t)adr);
}

static size_t in_scope(umemVirtual *ctx, uintptr_t adr, size_t nbytes, unsigned order,
                       size_t (*work)(umemVirtual *, uintptr_t, size_t, size_t)) {
  umemCudaState *state = umemCuda_state_of(ctx);
  UMEM_CUDA_SCOPE(ctx, state->gpu, 0);
  return work(ctx, adr, nbytes, state->pages[order].page_size);
}

static size_t move_in_scope(umemVirtual *ctx, uintptr_t from, uintptr_t to, size_t nbytes,
                            unsigned order) {
  umemCudaState *state = umemCuda_state_of(ctx);
  UMEM_CUDA_SCOPE(ctx, state->gpu, 0);
  return move_pages(ctx, from, to, nbytes, state->pages[order].page_size);
}

/* The methods for pages of 1 << order others. */
#define METHODS_OF(order)                                                                          \
  static size_t map_##order(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {                      \
    return in_scope(ctx, adr, nbytes, order, map_pages);                                           \
  }                                                                                                \
  static size_t unmap_##order(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {                    \
    return in_scope(ctx, adr, nbytes, order, unmap_pages);                                         \
  }                                                                                                \
  static size_t move_##order(umemVirtual *ctx, uintptr_t from, uintptr_t to, size_t nbytes) {      \
    return move_in_scope(ctx, from, to, nbytes, order);                                            \
  }
METHODS_OF(0)
METHODS_OF(1)
METHODS_OF(2)
METHODS_OF(3)
METHODS_OF(4)

/* ---- the first question ---- */

/* The GPUs that can reach the memory of gpu, as bits; 0 after a failure. None of these questions
 * makes a context. */
static uint64_t users_of(umemCudaGpu *gpu) {
  uint64_t users = (uint64_t)1 << gpu->device;
  for (int device = 0; device < gpu->devices; device++) {
    int can = 0;
    if (device == gpu->device) continue;
    if (gpu->rt->can_access_peer(&can, device, gpu->device)) {
      gpu->rt->last_error();
      return 0;
    }
    if (can) users |= (uint64_t)1 << device;
  }
  return users;
}

/* Under the lock. What fails is tried again at the next question. */
static void learn(umemCudaState *state) {
  static umemPages const methods[umemCudaPageSizes] = {
      {0, pages_reserve, pages_release, map_0, unmap_0, move_0},
      {.map = map_1, .unmap = unmap_1, .move = move_1},
      {.map = map_2, .unmap = unmap_2, .move = move_2},
      {.map = map_3, .unmap = unmap_3, .move = move_3},
      {.map = map_4, .unmap = unmap_4, .move = move_4}};
  umemCudaGpu *gpu = state->gpu;
  int for_bus = 0;
  uint64_t users = users_of(gpu);
  if (gpu->rt->attribute(&for_bus, umemCudaBusReachesPages, gpu->device)) {
    gpu->rt->last_error();
    users = 0;
  }
  if (!users) return;
  state->page_users = users;
  state->pages_for_bus = for_bus;
  for (int order = 0; order < umemCudaPageSizes; order++) {
    state->pages[order] = methods[order];
    state->pages[order].page_size = gpu->page_size << order;
  }
}

umemPages const *umemCuda_pages(umemVirtual *ctx) {
  umemCudaState *state = umemCuda_state_of(ctx);
  if (!state->gpu->page_size || umemCudaGpu_is_inherited(state->gpu)) return NULL;
  UMEM_LOCKED(&state->lock);
  if (!state->pages->page_size) learn(state);
  return state->pages->page_size ? state->pages : NULL;
}

umemPages const *umemCuda_large_pages(umemVirtual *ctx) {
  return umemCuda_pages(ctx) ? &umemCuda_state_of(ctx)->pages[umemCudaPageSizes - 1] : NULL;
}

umemPages const *umemCuda_sized_pages(umemVirtual *ctx, size_t page_size) {
  umemPages const *pages = umemCuda_pages(ctx);
  for (int order = 0; pages && order < umemCudaPageSizes; order++)
    if (pages[order].page_size == page_size) return &pages[order];
  return NULL;
}

/* ==== the kind ==== */

enum { cuda_alignment = 256 }; /* at least: CUDA C++ Programming Guide, "Device Memory Accesses" */

static int cuda_get(umemCudaState *state, void **adr, size_t nbytes) {
  return state->gpu->rt->malloc(adr, nbytes);
}

static int cuda_give(umemCudaState *state, void *adr, size_t nbytes) {
  (void)nbytes;
  return state->gpu->rt->free(adr);
}

bool umemCuda_describe(umemVirtual *ctx, uintptr_t base, umemHandle *handle, int *fd) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaIpc memory;
  (void)fd;
  if (!umemCuda_check(ctx, state->gpu, state->gpu->rt->ipc_memory(&memory, (void *)base),
                      "cannot share the block at 0x%jx", (uintmax_t)base))
    return false;
  handle->kind = umemHandleCuda;
  memcpy(handle->memory, &memory, sizeof memory);
  return true;
}

static struct umemVtbl const cuda_vtbl = {
    UMEM_CUDA_METHODS,
    UMEM_CUDA_DEVICE_METHODS,
    .dtor = umemCuda_dtor,
    .info = umemCuda_info,
    .pages = umemCuda_pages,
    .large_pages = umemCuda_large_pages,
    .sized_pages = umemCuda_sized_pages,
};

/* "cuda:0" */
static umemStatusType open_cuda(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *options, void *user) {
  (void)upstream, (void)options, (void)user;
  return umemCuda_ctor(ctx, (int)place->number);
}

umemKind const umem_cuda_kind = {
    .scheme = {UMEM_CUDA_KIND(umemCuda, "cuda", &cuda_vtbl), .place = &umem_cuda_device,
               .construct = open_cuda, .help = "memory of a GPU"},
    .label = "Cuda",
    .type = umemCudaDevice,
    .capabilities =
        umemDeviceAccessible | umemReadable | umemWritable | umemConcurrent | umemDeviceShared,
    .alignment = cuda_alignment,
    .impl_size = sizeof(umemCudaState),
};

umemStatusType umemCuda_ctor(umemCuda *ctx, int device) {
  UMEM_ENTER();
  static umemCudaSource const source = {
      .get = cuda_get, .give = cuda_give, .describe = umemCuda_describe};
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  bool good = umemCuda_construct(&ctx->super, &umem_cuda_kind, &source, device);
  return good ? umemCuda_list(&ctx->super) : umem_thread.last;
}
