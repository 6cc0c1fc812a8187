/* cudart_host.c - the CUDA double: memory that the CPU reaches, managed and pinned. */
#include "cudart_state.h"

#include <inttypes.h>

enum { page = 4096 };

static uint64_t const most = UINT64_C(16) << 30;

/* The pages of a block of managed memory; the last one may be short. */
static size_t pages_of(size_t nbytes) { return (nbytes + page - 1) / page; }

/* New memory at real addresses. */
static int real_alloc(void **adr, size_t nbytes, umemCudaMemory kind, int device) {
  CudartState *state = &cudart_state;
  if (!state->real) state->real = fake_store_create(FAKE_REAL_POINTERS, most);
  uintptr_t start = state->real ? fake_store_alloc(state->real, nbytes, page) : FAKE_NOWHERE;
  if (start == FAKE_NOWHERE) return umemCudaOutOfMemory;
  bool managed = kind == umemCudaManagedMemory;
  Block block = {.start = start,
                 .size = nbytes,
                 .bytes = (unsigned char *)start,
                 .kind = kind,
                 .device = device,
                 .ready = true,
                 .resident = managed ? calloc(pages_of(nbytes), sizeof(bool)) : NULL};
  *adr = (void *)start;
  if ((block.resident || !managed) && cudart_block_add(&block)) return umemCudaSuccess;
  free(block.resident);
  FakeBlock taken = fake_store_take(state->real, start);
  fake_block_release(&taken);
  return umemCudaOutOfMemory;
}

/* ---- managed memory ---- */

void cudart_populate(Block *block, uintptr_t adr, size_t nbytes, bool on_device) {
  Device *device = &cudart_state.device[block->device];
  size_t first = (adr - block->start) / page, last = (adr - block->start + nbytes - 1) / page;
  for (size_t i = first; i <= last; i++) {
    size_t size = block->size - i * page < page ? block->size - i * page : page;
    if (block->resident[i] == on_device) continue;
    if (on_device && size > cudart_available(device)) continue;
    block->resident[i] = on_device;
    device->managed = on_device ? device->managed + size : device->managed - size;
  }
}

uint64_t fake_cudart_resident(int device) {
  LOCKED(cudart_mutex());
  return cudart_state.device[device].managed;
}

int cudart_malloc_managed(void **adr, size_t nbytes) {
  Device const *device = cudart_here();
  if (cudart_state.machine.device[device->ordinal].no_managed) return umemCudaNotSupported;
  if (!nbytes) return umemCudaInvalidValue;
  return real_alloc(adr, nbytes, umemCudaManagedMemory, device->ordinal);
}

/* Whether device, or -1 for the CPU, can get advice about managed memory at a range. */
static int advisable(void const *adr, size_t nbytes, int device) {
  FakeCudartMachine const *machine = &cudart_state.machine;
  if (device < -1 || device >= machine->devices) return umemCudaInvalidOrdinal;
  FakeCudartDevice const *settings = device < 0 ? NULL : &machine->device[device];
  if (settings && (settings->no_managed || settings->no_concurrent_managed))
    return umemCudaInvalidOrdinal;
  Side side;
  int error = cudart_side(&side, adr, nbytes);
  if (error) return error;
  bool suits = side.kind == umemCudaManagedMemory ||
               (side.kind == umemCudaUnregistered && settings && settings->pageable_access);
  if (!suits) cudart_misuse("0x%" PRIxPTR " is not managed memory", side.adr);
  return suits ? umemCudaSuccess : umemCudaInvalidValue;
}

int cudart_prefetch(void const *adr, size_t nbytes, int device, void *stream) {
  int error = umemCudaSuccess;
  Stream *on = cudart_stream(stream, &error);
  if (on) error = advisable(adr, nbytes, device);
  Work work = {.kind = workPrefetch, .value = device};
  if (!error) error = cudart_side(&work.to, adr, nbytes);
  return error ? error : cudart_push(on, &work);
}

int cudart_advise(void const *adr, size_t nbytes, umemCudaAdvice advice, int device) {
  if (advice < umemCudaPreferDevice || advice > umemCudaAccessedByDevice)
    return umemCudaInvalidValue;
  return advisable(adr, nbytes, device);
}

/* ---- pinned memory ---- */

static unsigned const known_flags = umemCudaPortable | umemCudaMapped | umemCudaWriteCombined;

int cudart_host_alloc(void **adr, size_t nbytes, unsigned flags) {
  if (flags & ~known_flags) return umemCudaInvalidValue;
  *adr = NULL;
  return nbytes ? real_alloc(adr, nbytes, umemCudaPinned, cudart_here()->ordinal) : umemCudaSuccess;
}

/* Waits for nothing: what uses the memory later is found then. */
static int pinned_end(void const *adr, bool registered, int otherwise) {
  Block *block = cudart_block_at((uintptr_t)adr);
  bool is_one = block && block->start == (uintptr_t)adr && block->kind == umemCudaPinned &&
                block->registered == registered;
  if (!is_one) {
    cudart_misuse("0x%" PRIxPTR " is not the start of such pinned memory", (uintptr_t)adr);
    return otherwise;
  }
  cudart_note_device(block->device);
  cudart_block_remove(block);
  return umemCudaSuccess;
}

int cudart_host_free(void *adr) {
  return adr ? pinned_end(adr, false, umemCudaInvalidValue) : umemCudaSuccess;
}

int cudart_host_register(void *adr, size_t nbytes, unsigned flags) {
  uintptr_t start = (uintptr_t)adr;
  if (!start || !nbytes || nbytes > UINTPTR_MAX - start) return umemCudaInvalidValue;
  if (flags & ~(unsigned)(umemCudaPortable | umemCudaMapped)) return umemCudaInvalidValue;
  if (cudart_is_touched(start, nbytes)) return umemCudaAlreadyRegistered;
  Block block = {.start = start,
                 .size = nbytes,
                 .bytes = adr,
                 .kind = umemCudaPinned,
                 .device = cudart_here()->ordinal,
                 .registered = true,
                 .ready = true};
  return cudart_block_add(&block) ? umemCudaSuccess : umemCudaOutOfMemory;
}

int cudart_host_unregister(void *adr) { return pinned_end(adr, true, umemCudaNotRegistered); }
