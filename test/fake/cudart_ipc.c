/* cudart_ipc.c - the CUDA double: memory, pools and events of which other processes know.
 *
 * What a process shares moves into a file in memory, which other processes open below /proc by the
 * number of the process and the descriptor. It is gone when the process has freed the memory, or
 * has ended. An event is a page with two counts: how often it was recorded, and how many of these
 * the stream has reached. A stream of another process that waits for it looks at the page when its
 * turn comes. */
#include "cudart_state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { header_size = 4096, patience = 20 /* seconds */ };

typedef enum { memoryFile = 0x6d656d, eventFile, poolFile } FileKind;

/* What each file begins with. */
typedef struct Header {
  uint64_t kind, number, nbytes, device;
  uint64_t recorded, done; /* of an event; atomic */
} Header;

struct Shared {
  Header *header;
  size_t nbytes; /* behind the header */
  int fd;        /* -1: another process has made it */
  unsigned opened;
  umemCudaIpc handle; /* by which it was opened */
};

/* The words of a handle. */
enum { pidWord, fdWord, numberWord, poolWord };

static uint64_t next_number(void) {
  static uint64_t last;
  return (uint64_t)getpid() << 24 | ++last;
}

static unsigned char *bytes_of(Shared const *shared) {
  return (unsigned char *)shared->header + header_size;
}

static Shared *map(int fd, size_t nbytes) {
  Shared *shared = calloc(1, sizeof *shared);
  void *at = mmap(NULL, header_size + nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (!shared || at == MAP_FAILED) {
    free(shared);
    if (at != MAP_FAILED) munmap(at, header_size + nbytes);
    return NULL;
  }
  *shared = (Shared){.header = at, .nbytes = nbytes, .fd = -1, .opened = 1};
  return shared;
}

static Shared *make(FileKind kind, size_t nbytes, int device) {
  int fd = memfd_create("fake GPU", MFD_CLOEXEC);
  Shared *shared = NULL;
  if (fd >= 0 && !ftruncate(fd, (off_t)(header_size + nbytes))) shared = map(fd, nbytes);
  if (!shared) {
    if (fd >= 0) close(fd);
    return NULL;
  }
  *shared->header =
      (Header){.kind = kind, .number = next_number(), .nbytes = nbytes, .device = (uint64_t)device};
  shared->fd = fd;
  shared->handle = (umemCudaIpc){{(uint64_t)getpid(), (uint64_t)fd, shared->header->number}};
  return shared;
}

/* The file that fd is, if it is of kind. */
static Shared *open_file(int fd, FileKind kind) {
  Header header;
  bool good = pread(fd, &header, sizeof header, 0) == sizeof header && header.kind == kind;
  return good ? map(fd, (size_t)header.nbytes) : NULL;
}

static Shared *open_handle(umemCudaIpc const *handle, FileKind kind) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%" PRIu64 "/fd/%" PRIu64, handle->words[pidWord],
           handle->words[fdWord]);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  Shared *shared = open_file(fd, kind);
  close(fd);
  if (shared && shared->header->number != handle->words[numberWord]) {
    cudart_shared_end(shared);
    return NULL;
  }
  if (shared) shared->handle = *handle;
  return shared;
}

void cudart_shared_end(Shared *shared) {
  if (!shared) return;
  munmap(shared->header, header_size + shared->nbytes);
  if (shared->fd >= 0) close(shared->fd);
  free(shared);
}

/* A process may not open its own handles. */
static bool is_refused(umemCudaIpc const *handle) {
  bool own = handle->words[pidWord] == (uint64_t)getpid();
  return own && !cudart_state.machine.shares_with_itself;
}

/* ---- memory ---- */

/* Moves the bytes of a block to where others can map them. */
static int share_block(Block *block) {
  if (block->shared) return umemCudaSuccess;
  block->shared = make(memoryFile, block->size, block->device);
  if (!block->shared) return umemCudaOutOfMemory;
  memcpy(bytes_of(block->shared), block->bytes, block->size);
  block->bytes = bytes_of(block->shared);
  return umemCudaSuccess;
}

static Block *block_to_share(void const *adr, bool of_pool) {
  Block *block = cudart_block_at((uintptr_t)adr);
  bool fits = block && block->start == (uintptr_t)adr && !block->freed && !block->opened &&
              block->kind == umemCudaDeviceMemory && !block->range;
  return fits && (block->pool != NULL) == of_pool ? block : NULL;
}

int cudart_ipc_memory(umemCudaIpc *handle, void *adr) {
  Block *block = block_to_share(adr, false);
  int error = block ? share_block(block) : umemCudaInvalidValue;
  if (!error) *handle = block->shared->handle;
  return error;
}

/* A block of the current device for what was opened. */
static int add_block(void **adr, Shared *shared, Pool *pool) {
  Block *block = cudart_device_block(cudart_here(), shared->nbytes);
  if (!block) {
    cudart_shared_end(shared);
    return umemCudaOutOfMemory;
  }
  block->bytes = bytes_of(shared);
  block->shared = shared;
  block->opened = true;
  block->pool = pool;
  *adr = (void *)block->start;
  return umemCudaSuccess;
}

static Block *find_opened(umemCudaIpc const *handle) {
  for (size_t i = 0; i < cudart_state.block_count; i++) {
    Block *block = &cudart_state.blocks[i];
    if (block->opened && !block->pool && !memcmp(&block->shared->handle, handle, sizeof *handle))
      return block;
  }
  return NULL;
}

int cudart_ipc_open(void **adr, umemCudaIpc const *handle) {
  if (is_refused(handle)) return umemCudaInvalidContext;
  Block *block = find_opened(handle);
  if (block) {
    block->shared->opened++;
    *adr = (void *)block->start;
    return umemCudaSuccess;
  }
  Shared *shared = open_handle(handle, memoryFile);
  if (!shared) return umemCudaInvalidHandle;
  int here = cudart_here()->ordinal, other = (int)shared->header->device;
  if (other == here || cudart_are_peers(here, other)) return add_block(adr, shared, NULL);
  cudart_shared_end(shared);
  return cudartPeerUnsupported;
}

int cudart_ipc_close(void *adr) {
  Block *block = cudart_block_at((uintptr_t)adr);
  if (!block || block->start != (uintptr_t)adr || !block->opened || block->pool) {
    cudart_misuse("0x%" PRIxPTR " is not opened memory", (uintptr_t)adr);
    return umemCudaInvalidValue;
  }
  if (--block->shared->opened == 0) cudart_block_remove(block);
  return umemCudaSuccess;
}

int cudart_range(void const *adr, uintptr_t *base, size_t *nbytes) {
  Block const *block = cudart_block_at((uintptr_t)adr);
  if (!block || block->freed) return umemCudaInvalidValue;
  *base = block->start;
  *nbytes = block->size;
  return umemCudaSuccess;
}

/* ---- pools ---- */

/* The file of a pool says which it is. */
int cudart_pool_make_shared(Pool *pool) {
  pool->shared = make(poolFile, 0, pool->device);
  return pool->shared ? umemCudaSuccess : umemCudaOutOfMemory;
}

int cudart_pool_export(int *fd, void *pool) {
  int error = umemCudaSuccess;
  Pool const *one = cudart_pool(pool, &error);
  if (!one) return error;
  if (!one->shared || one->opened) return umemCudaInvalidValue;
  *fd = fcntl(one->shared->fd, F_DUPFD, 0);
  return *fd < 0 ? umemCudaOutOfMemory : umemCudaSuccess;
}

int cudart_pool_import(void **pool, int fd) {
  Shared *shared = fd ? open_file(fd, poolFile) : NULL; /* CUDA refuses 0 */
  if (!shared) return umemCudaInvalidValue;
  int error = cudart_pool_make(pool, (int)shared->header->device, 0);
  if (error) {
    cudart_shared_end(shared);
    return error;
  }
  ((Pool *)*pool)->shared = shared;
  ((Pool *)*pool)->opened = true;
  return umemCudaSuccess;
}

int cudart_pool_export_pointer(umemCudaIpc *data, void *adr) {
  Block *block = block_to_share(adr, true);
  if (!block || !block->pool->shared) return umemCudaInvalidValue;
  int error = share_block(block);
  if (error) return error;
  *data = block->shared->handle;
  data->words[poolWord] = block->pool->shared->header->number;
  return umemCudaSuccess;
}

static int import_pointer(void **adr, Pool *pool, umemCudaIpc const *data) {
  if (!pool->opened || data->words[poolWord] != pool->shared->header->number)
    return umemCudaInvalidValue;
  Shared *shared = open_handle(data, memoryFile);
  if (!shared) return umemCudaInvalidValue;
  int error = add_block(adr, shared, pool);
  if (error) return error;
  pool->used += shared->nbytes;
  pool->reserved += shared->nbytes;
  return umemCudaSuccess;
}

int cudart_pool_import_pointer(void **adr, void *pool, umemCudaIpc const *data) {
  int error = umemCudaSuccess;
  Pool *one = cudart_pool(pool, &error);
  if (one && is_refused(data)) error = umemCudaInvalidContext;
  return error ? error : import_pointer(adr, one, data);
}

/* ---- events ---- */

static int make_event(void **event, Shared *shared) {
  Event *one = shared ? calloc(1, sizeof *one) : NULL;
  if (!one) {
    cudart_shared_end(shared);
    return umemCudaOutOfMemory;
  }
  *one = (Event){.next = cudart_state.events, .device = cudart_here()->ordinal, .shared = shared};
  *event = cudart_state.events = one;
  return umemCudaSuccess;
}

int cudart_ipc_event_create(void **event) { return make_event(event, make(eventFile, 0, 0)); }

int cudart_ipc_event(umemCudaIpc *handle, void *event) {
  int error = umemCudaSuccess;
  Event const *one = cudart_event(event, &error);
  if (one && (!one->shared || one->shared->fd < 0)) error = umemCudaInvalidHandle;
  if (!error) *handle = one->shared->handle;
  return error;
}

int cudart_ipc_event_open(void **event, umemCudaIpc const *handle) {
  if (is_refused(handle)) return umemCudaInvalidContext;
  Shared *shared = open_handle(handle, eventFile);
  return shared ? make_event(event, shared) : umemCudaInvalidHandle;
}

bool cudart_event_is_foreign(Event const *event) { return event->shared && event->shared->fd < 0; }

uint64_t cudart_event_next(Event const *event) {
  return __atomic_add_fetch(&event->shared->header->recorded, 1, __ATOMIC_ACQ_REL);
}

uint64_t cudart_event_last(Event const *event) {
  return __atomic_load_n(&event->shared->header->recorded, __ATOMIC_ACQUIRE);
}

void cudart_shared_reach(Shared const *shared, uint64_t count) {
  __atomic_store_n(&shared->header->done, count, __ATOMIC_RELEASE);
}

static bool has_reached(Shared const *shared, uint64_t count) {
  return __atomic_load_n(&shared->header->done, __ATOMIC_ACQUIRE) >= count;
}

/* A stream of this process does not go on by itself. */
static void demand_own(Shared const *shared) {
  for (Event const *e = cudart_state.events; e; e = e->next)
    if (e->shared && e->stream && e->shared->header->number == shared->header->number)
      cudart_demand(e->stream, e->until);
}

void cudart_shared_await(Shared const *shared, uint64_t count) {
  time_t const until = time(NULL) + patience;
  demand_own(shared);
  while (!has_reached(shared, count) && time(NULL) < until) sched_yield();
  if (!has_reached(shared, count)) cudart_misuse("another process does not reach its event");
}
