/* cudart_memory.c - the CUDA double: blocks of device, managed, pinned and registered memory. */
#include "cudart_state.h"

#include <inttypes.h>
#include <string.h>

/* Addresses that no CPU has, also where it ignores the top byte: those of device d begin at
 * (d + 1) * apart. */
static uintptr_t const apart = (uintptr_t)1 << 52;

enum { device_alignment = 256, host_alignment = 4096 };

static bool is_of_device(uintptr_t adr) { return adr >= apart; }

/* ---- the table of blocks ---- */

/* The number of blocks that begin at or before adr. */
static size_t blocks_before(uintptr_t adr) {
  size_t low = 0, high = cudart_state.block_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (cudart_state.blocks[middle].start <= adr)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Block *cudart_block_at(uintptr_t adr) {
  size_t before = blocks_before(adr);
  Block *block = before ? &cudart_state.blocks[before - 1] : NULL;
  return block && adr - block->start < block->size ? block : NULL;
}

bool cudart_is_touched(uintptr_t adr, size_t nbytes) {
  size_t after = blocks_before(adr);
  bool begins = after < cudart_state.block_count && cudart_state.blocks[after].start - adr < nbytes;
  return begins || cudart_block_at(adr);
}

bool cudart_block_add(Block const *block) {
  CudartState *state = &cudart_state;
  if (state->block_count == state->block_room) {
    size_t room = state->block_room ? 2 * state->block_room : 64;
    Block *blocks = realloc(state->blocks, room * sizeof *blocks);
    if (!blocks) return false;
    state->blocks = blocks;
    state->block_room = room;
  }
  size_t at = blocks_before(block->start);
  memmove(state->blocks + at + 1, state->blocks + at,
          (state->block_count - at) * sizeof *state->blocks);
  state->blocks[at] = *block;
  state->block_count++;
  return true;
}

void cudart_block_remove(Block *block) {
  CudartState *state = &cudart_state;
  if (block->resident) cudart_populate(block, block->start, block->size, false);
  free(block->resident);
  if (block->range) {
    cudart_range_end(block);
  } else if (!block->registered) {
    bool on_device = block->kind == umemCudaDeviceMemory;
    FakeStore *store = on_device ? state->device[block->device].store : state->real;
    FakeBlock taken = fake_store_take(store, block->start);
    fake_block_release(&taken);
    if (on_device && !block->pool && !block->opened)
      state->device[block->device].plain -= block->size;
    cudart_shared_end(block->shared);
  }
  size_t at = (size_t)(block - state->blocks);
  memmove(block, block + 1, (state->block_count - at - 1) * sizeof *block);
  state->block_count--;
}

/* ---- ranges ---- */

int cudart_side(Side *side, void const *adr, size_t nbytes) {
  uintptr_t start = (uintptr_t)adr;
  Block const *block = cudart_block_at(start);
  *side = (Side){.adr = start, .nbytes = nbytes, .kind = umemCudaUnregistered, .device = -1};
  char const *wrong = NULL;
  if (block && block->freed)
    wrong = "in a freed block";
  else if (block && nbytes > block->size - (start - block->start))
    wrong = "past the end of a block";
  else if (!block && is_of_device(start))
    wrong = "in no live block";
  else if (!block && (!start || nbytes > UINTPTR_MAX - start || cudart_is_touched(start, nbytes)))
    wrong = "partly in a block";
  else if (block && block->range)
    wrong = cudart_range_wrong(block, start, nbytes, &side->device);
  if (wrong) {
    cudart_misuse("%zu bytes at 0x%" PRIxPTR " are %s", nbytes, start, wrong);
    return umemCudaInvalidValue;
  }
  if (!block) return umemCudaSuccess;
  side->kind = block->kind;
  if (block->kind == umemCudaPinned) return umemCudaSuccess;
  if (!block->range) side->device = block->device;
  cudart_note_device(side->device);
  return cudart_state.device[side->device].broken;
}

unsigned char *cudart_side_bytes(Side const *side) {
  if (side->kind == umemCudaUnregistered) return (unsigned char *)side->adr;
  Block *block = cudart_block_at(side->adr);
  bool live = block && block->kind == side->kind &&
              side->nbytes <= block->size - (side->adr - block->start);
  int device = -1;
  if (live && block->range) live = !cudart_range_wrong(block, side->adr, side->nbytes, &device);
  if (live && block->resident) cudart_populate(block, side->adr, side->nbytes, true);
  if (live && block->ready) return block->bytes + (side->adr - block->start);
  cudart_misuse("queued work uses %zu bytes at 0x%" PRIxPTR " %s", side->nbytes, side->adr,
                live ? "before their allocation" : "after they were freed");
  return NULL;
}

void *fake_cudart_at(uintptr_t adr, size_t nbytes) {
  LOCKED(cudart_mutex());
  Block const *block = cudart_block_at(adr);
  size_t offset = block ? adr - block->start : 0;
  int device = -1;
  bool inside = block && nbytes <= block->size - offset;
  if (inside && block->range) inside = !cudart_range_wrong(block, adr, nbytes, &device);
  return inside ? block->bytes + offset : NULL;
}

bool fake_cudart_peek(uintptr_t adr, void *bytes, size_t nbytes) {
  LOCKED(cudart_mutex());
  void const *at = fake_cudart_at(adr, nbytes);
  if (at) memcpy(bytes, at, nbytes);
  return at;
}

bool fake_cudart_poke(uintptr_t adr, void const *bytes, size_t nbytes) {
  LOCKED(cudart_mutex());
  void *at = fake_cudart_at(adr, nbytes);
  if (at) memcpy(at, bytes, nbytes);
  return at;
}

int cudart_pointer(void const *adr, umemCudaMemory *kind, int *device) {
  Block const *block = cudart_block_at((uintptr_t)adr);
  if (block && block->freed) block = NULL;
  *device = block ? block->device : -1;
  if (block && block->range && cudart_range_wrong(block, (uintptr_t)adr, 1, device)) block = NULL;
  *kind = block ? block->kind : umemCudaUnregistered;
  return umemCudaSuccess;
}

/* ---- device memory ---- */

uint64_t cudart_available(Device const *device) {
  uint64_t capacity = cudart_state.machine.device[device->ordinal].capacity;
  uint64_t used = device->plain + device->managed;
  for (Pool const *p = cudart_state.pools; p; p = p->next)
    if (p->device == device->ordinal) used += p->reserved;
  return used < capacity ? capacity - used : 0;
}

Block *cudart_device_block(Device *device, size_t nbytes) {
  uintptr_t first = (uintptr_t)(device->ordinal + 1) * apart;
  if (!device->store) device->store = fake_store_create(first, UINT64_MAX / 2);
  if (!device->store) return NULL;
  uintptr_t adr = fake_store_alloc(device->store, nbytes, device_alignment);
  if (adr == FAKE_NOWHERE) return NULL;
  Block block = {.start = adr,
                 .size = nbytes,
                 .bytes = fake_store_at(device->store, adr, nbytes),
                 .kind = umemCudaDeviceMemory,
                 .device = device->ordinal,
                 .ready = true};
  if (cudart_block_add(&block)) return cudart_block_at(adr);
  FakeBlock taken = fake_store_take(device->store, adr);
  fake_block_release(&taken);
  return NULL;
}

int cudart_malloc(void **adr, size_t nbytes) {
  Device *device = cudart_here();
  *adr = NULL;
  if (!nbytes) return umemCudaSuccess;
  Block const *block =
      nbytes <= cudart_available(device) ? cudart_device_block(device, nbytes) : NULL;
  if (!block) return umemCudaOutOfMemory;
  device->plain += nbytes;
  *adr = (void *)block->start;
  return umemCudaSuccess;
}

/* The live block that begins at adr and is of kind; NULL, and a misuse. */
static Block *block_to_free(void const *adr, umemCudaMemory kind, umemCudaMemory or_kind) {
  Block *block = cudart_block_at((uintptr_t)adr);
  bool is_one = block && block->start == (uintptr_t)adr && !block->freed && !block->registered &&
                !block->range && (block->kind == kind || block->kind == or_kind);
  if (is_one) return block;
  cudart_misuse("0x%" PRIxPTR " is not the start of a live block of this kind", (uintptr_t)adr);
  return NULL;
}

/* Waits for all work of the device. But the memory of pools goes at once: who frees it here has to
 * know that its work is done. */
static int device_free(Block *block) {
  cudart_note_device(block->device);
  if (block->pool) {
    cudart_pool_leave(block->pool, block->size, NULL);
  } else {
    uintptr_t adr = block->start;
    cudart_demand_device(block->device);
    block = cudart_block_at(adr); /* the table may have changed */
  }
  cudart_block_remove(block);
  return umemCudaSuccess;
}

int cudart_free(void *adr) {
  Block *block = adr ? block_to_free(adr, umemCudaDeviceMemory, umemCudaManagedMemory) : NULL;
  int error = block ? cudart_state.device[block->device].broken
              : adr ? umemCudaInvalidValue
                    : umemCudaSuccess;
  return block && !error ? device_free(block) : error;
}
