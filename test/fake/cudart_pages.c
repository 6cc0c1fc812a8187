/* cudart_pages.c - the CUDA double: ranges of addresses, and pages of device memory that are mapped
 * there.
 *
 * A range is a block. Its bytes are in one piece of host memory, so that pages beside one another
 * are, too. A page that is mapped anew is full of junk, also where the driver would keep its
 * contents. */
#include "cudart_state.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

enum { granule_size = 2 << 20, junk_size = 64 << 10 };

/* What is mapped at a granule. */
typedef struct Mapping {
  uint64_t page; /* 0: nothing */
  size_t first;  /* the granule where its page begins */
  unsigned allowed;
} Mapping;

struct Range {
  Mapping *mappings; /* owned; [granule] */
};

typedef struct Page {
  size_t size;
  int device;
  unsigned handles, mappings; /* neither: it has ended */
} Page;

/* Behind all addresses of devices. */
static uintptr_t const first_address = (uintptr_t)1 << 56;

/* ---- pages ---- */

/* NULL, and a misuse, where there is none. */
static Page *page_of(uint64_t handle) {
  Page *page = handle && handle <= cudart_state.page_count ? &cudart_state.pages[handle - 1] : NULL;
  if (page && page->handles) return page;
  cudart_misuse("%" PRIu64 " is no page, or was released", handle);
  return NULL;
}

static void end_if_unused(Page *page) {
  if (!page->handles && !page->mappings) cudart_state.device[page->device].plain -= page->size;
}

size_t cudart_pages_live(int device) {
  size_t count = 0;
  for (size_t i = 0; i < cudart_state.page_count; i++) {
    Page const *page = &cudart_state.pages[i];
    count += (page->handles || page->mappings) && (device < 0 || page->device == device);
  }
  return count;
}

int cudart_page_size(size_t *nbytes, int device) {
  if (!cudart_device_of(device)) return umemCudaInvalidOrdinal;
  *nbytes = granule_size;
  return umemCudaSuccess;
}

static int create(uint64_t *handle, size_t nbytes, Device *device) {
  if (nbytes > cudart_available(device)) return umemCudaOutOfMemory;
  if (cudart_state.page_count == cudart_state.page_room) {
    size_t room = cudart_state.page_room ? 2 * cudart_state.page_room : 64;
    Page *pages = realloc(cudart_state.pages, room * sizeof *pages);
    if (!pages) return umemCudaOutOfMemory;
    cudart_state.pages = pages;
    cudart_state.page_room = room;
  }
  cudart_state.pages[cudart_state.page_count++] = (Page){nbytes, device->ordinal, 1, 0};
  device->plain += nbytes;
  *handle = cudart_state.page_count;
  return umemCudaSuccess;
}

int cudart_page_create(uint64_t *page, size_t nbytes, int device, bool for_bus) {
  Device *one = cudart_device_of(device);
  if (!one) return umemCudaInvalidOrdinal;
  FakeCudartDevice const *settings = &cudart_state.machine.device[device];
  if (one->broken) return one->broken;
  if (settings->no_pages) return umemCudaNotSupported;
  if (!nbytes || nbytes % granule_size || (for_bus && settings->no_bus))
    return umemCudaInvalidValue;
  return create(page, nbytes, one);
}

int cudart_page_release(uint64_t page) {
  Page *one = page_of(page);
  if (!one) return umemCudaInvalidValue;
  one->handles--;
  end_if_unused(one);
  return umemCudaSuccess;
}

/* ---- ranges ---- */

/* The range that begins at or before adr and has nbytes there, at granules; NULL, and a misuse,
 * where there is none. */
static Block *range_at(void const *adr, size_t nbytes) {
  Block *block = cudart_block_at((uintptr_t)adr);
  bool inside = block && block->range && nbytes && nbytes <= block->size &&
                (uintptr_t)adr - block->start <= block->size - nbytes &&
                !((uintptr_t)adr % granule_size) && !(nbytes % granule_size);
  if (inside) return block;
  cudart_misuse("%zu bytes at %p are not in a reserved range", nbytes, adr);
  return NULL;
}

static Mapping *mapping_at(Block const *block, uintptr_t adr) {
  return &block->range->mappings[(adr - block->start) / granule_size];
}

void cudart_range_end(Block *block) {
  munmap(block->bytes, block->size);
  free(block->range->mappings);
  free(block->range);
}

/* NULL without memory. */
static struct Range *new_range(size_t nbytes, unsigned char **bytes) {
  int const flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  struct Range *range = malloc(sizeof *range);
  Mapping *mappings = calloc(nbytes / granule_size, sizeof *mappings);
  void *mapped = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (range && mappings && mapped != MAP_FAILED) {
    range->mappings = mappings;
    *bytes = mapped;
    return range;
  }
  if (mapped != MAP_FAILED) munmap(mapped, nbytes);
  free(mappings);
  free(range);
  return NULL;
}

static int reserve(void **adr, size_t nbytes) {
  CudartState *state = &cudart_state;
  Block block = {.size = nbytes, .kind = umemCudaDeviceMemory, .device = -1, .ready = true};
  if (!state->next_range) state->next_range = first_address;
  if (nbytes > ((uintptr_t)1 << 47)) return umemCudaOutOfMemory; /* of addresses */
  block.start = state->next_range;
  block.range = new_range(nbytes, &block.bytes);
  if (!block.range) return umemCudaOutOfMemory;
  if (!cudart_block_add(&block)) {
    cudart_range_end(&block);
    return umemCudaOutOfMemory;
  }
  state->next_range += nbytes + granule_size;
  *adr = (void *)block.start;
  return umemCudaSuccess;
}

int cudart_range_reserve(void **adr, size_t nbytes, size_t alignment) {
  bool good = nbytes && !(nbytes % granule_size) && alignment <= granule_size;
  return good ? reserve(adr, nbytes) : umemCudaInvalidValue;
}

static bool is_empty(Block const *block) {
  for (size_t i = 0; i < block->size / granule_size; i++)
    if (block->range->mappings[i].page) return false;
  return true;
}

int cudart_range_free(void *adr, size_t nbytes) {
  Block *block = range_at(adr, nbytes);
  if (!block) return umemCudaInvalidValue;
  bool whole = block->start == (uintptr_t)adr && block->size == nbytes;
  if (whole && is_empty(block)) {
    cudart_block_remove(block);
    return umemCudaSuccess;
  }
  cudart_misuse("%zu bytes at %p are %s", nbytes, adr,
                whole ? "freed with pages in them" : "no whole range");
  return umemCudaInvalidValue;
}

/* ---- mappings ---- */

static int map(Block *block, uintptr_t adr, size_t nbytes, uint64_t handle) {
  Page *page = page_of(handle);
  Mapping *mappings = mapping_at(block, adr);
  if (!page) return umemCudaInvalidValue;
  if (page->size != nbytes) {
    cudart_misuse("%zu bytes of a page of %zu", nbytes, page->size);
    return umemCudaInvalidValue;
  }
  for (size_t i = 0; i < nbytes / granule_size; i++)
    if (mappings[i].page) {
      cudart_misuse("a page is mapped at 0x%" PRIxPTR " already", adr + i * granule_size);
      return umemCudaInvalidValue;
    }
  for (size_t i = 0; i < nbytes / granule_size; i++)
    mappings[i] = (Mapping){handle, (adr - block->start) / granule_size, 0};
  page->mappings++;
  memset(block->bytes + (adr - block->start), 0xA5, junk_size);
  return umemCudaSuccess;
}

int cudart_page_map(void *adr, size_t nbytes, uint64_t page) {
  Block *block = range_at(adr, nbytes);
  return block ? map(block, (uintptr_t)adr, nbytes, page) : umemCudaInvalidValue;
}

static int unmap(Block *block, uintptr_t adr, size_t nbytes) {
  Mapping *mappings = mapping_at(block, adr);
  size_t first = (adr - block->start) / granule_size;
  Page *page = mappings->page ? &cudart_state.pages[mappings->page - 1] : NULL;
  if (!page || mappings->first != first || page->size != nbytes) {
    cudart_misuse("%zu bytes at 0x%" PRIxPTR " are not a page that is mapped", nbytes, adr);
    return umemCudaInvalidValue;
  }
  memset(mappings, 0, nbytes / granule_size * sizeof *mappings);
  madvise(block->bytes + (adr - block->start), nbytes, MADV_DONTNEED);
  page->mappings--;
  end_if_unused(page);
  return umemCudaSuccess;
}

int cudart_page_unmap(void *adr, size_t nbytes) {
  Block *block = range_at(adr, nbytes);
  return block ? unmap(block, (uintptr_t)adr, nbytes) : umemCudaInvalidValue;
}

int cudart_page_retain(uint64_t *page, void *adr) {
  Block *block = range_at(adr, granule_size);
  Mapping const *mapping = block ? mapping_at(block, (uintptr_t)adr) : NULL;
  if (!mapping || !mapping->page) {
    cudart_misuse("there is no page at %p", adr);
    return umemCudaInvalidValue;
  }
  *page = mapping->page;
  cudart_state.pages[mapping->page - 1].handles++;
  return umemCudaSuccess;
}

/* ---- who may use them ---- */

static int allow(Block *block, uintptr_t adr, size_t nbytes, uint64_t devices) {
  Mapping *mappings = mapping_at(block, adr);
  for (size_t i = 0; i < nbytes / granule_size; i++) {
    if (!mappings[i].page) {
      cudart_misuse("access of 0x%" PRIxPTR ", where no page is mapped", adr + i * granule_size);
      return umemCudaInvalidValue;
    }
    int owner = cudart_state.pages[mappings[i].page - 1].device;
    for (int d = 0; d < 64; d++)
      if (devices >> d & 1 && d != owner &&
          (d >= cudart_state.machine.devices || !cudart_are_peers(d, owner)))
        return umemCudaInvalidOrdinal;
  }
  for (size_t i = 0; i < nbytes / granule_size; i++) mappings[i].allowed |= (unsigned)devices;
  return umemCudaSuccess;
}

int cudart_page_allow(void *adr, size_t nbytes, uint64_t devices) {
  Block *block = range_at(adr, nbytes);
  return block ? allow(block, (uintptr_t)adr, nbytes, devices) : umemCudaInvalidValue;
}

char const *cudart_range_wrong(Block const *block, uintptr_t adr, size_t nbytes, int *device) {
  for (uintptr_t end = adr + nbytes, here = adr; here < end;
       here = (here / granule_size + 1) * granule_size) {
    Mapping const *mapping = mapping_at(block, here);
    if (!mapping->page) return "in a range where no page is mapped";
    int owner = cudart_state.pages[mapping->page - 1].device;
    if (!(mapping->allowed & 1U << owner)) return "in a page that nobody may use";
    if (here == adr) *device = owner;
    if (*device != owner) return "in pages of several devices";
  }
  return NULL;
}

bool cudart_range_allows(Block const *block, uintptr_t adr, size_t nbytes, int device) {
  for (uintptr_t end = adr + nbytes, here = adr; here < end;
       here = (here / granule_size + 1) * granule_size)
    if (!(mapping_at(block, here)->allowed & 1U << device)) return false;
  return true;
}
