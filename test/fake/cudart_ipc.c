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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

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

static bool is_own(umemCudaIpc const *handle) {
  return handle->words[pidWord] == (uint64_t)getpid();
}

/* A process may not open its own handles. */
static int refuse_own(umemCudaIpc const *handle) {
  bool refuses = is_own(handle) && !cudart_state.machine.shares_with_itself;
  return refuses ? umemCudaInvalidContext : umemCudaSuccess;
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
  int error = cudart_enter("ipc_memory", needContext);
  Block *block = error ? NULL : block_to_share(adr, false);
  if (!error) error = block ? share_block(block) : umemCudaInvalidValue;
  if (!error) *handle = block->shared->handle;
  return cudart_leave(error);
}

/* A block of the current device for what was opened. */
static int add_block(void **adr, Shared *shared, Pool *pool) {
  int error = umemCudaSuccess;
  Device *device = cudart_current(&error);
  Block *block = device ? cudart_device_block(device, shared->nbytes) : NULL;
  if (!block) {
    cudart_shared_end(shared);
    return error ? error : umemCudaOutOfMemory;
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

static int open_memory(void **adr, umemCudaIpc const *handle) {
  Block *block = find_opened(handle);
  if (block) {
    block->shared->opened++;
    *adr = (void *)block->start;
    return umemCudaSuccess;
  }
  int error = umemCudaSuccess;
  Device *device = cudart_current(&error);
  Shared *shared = device ? open_handle(handle, memoryFile) : NULL;
  if (!shared) return error ? error : umemCudaInvalidHandle;
  int other = (int)shared->header->device;
  if (other != device->ordinal && !cudart_are_peers(device->ordinal, other)) {
    cudart_shared_end(shared);
    return cudartPeerUnsupported;
  }
  return add_block(adr, shared, NULL);
}

int cudart_ipc_open(void **adr, umemCudaIpc const *handle) {
  int error = cudart_enter("ipc_open", needContext | needNoCapture);
  if (!error) error = refuse_own(handle);
  if (!error) error = open_memory(adr, handle);
  return cudart_leave(error);
}

int cudart_ipc_close(void *adr) {
  int error = cudart_enter("ipc_close", needContext | needNoCapture);
  Block *block = error ? NULL : cudart_block_at((uintptr_t)adr);
  if (block && (block->start != (uintptr_t)adr || !block->opened || block->pool)) block = NULL;
  if (!error && !block) {
    cudart_misuse("0x%" PRIxPTR " is not opened memory", (uintptr_t)adr);
    error = umemCudaInvalidValue;
  }
  if (block && --block->shared->opened == 0) cudart_block_remove(block);
  return cudart_leave(error);
}

int cudart_range(void const *adr, uintptr_t *base, size_t *nbytes) {
  int error = cudart_enter("range", needContext);
  Block const *block = error ? NULL : cudart_block_at((uintptr_t)adr);
  if (!error && (!block || block->freed)) error = umemCudaInvalidValue;
  if (!error) {
    *base = block->start;
    *nbytes = block->size;
  }
  return cudart_leave(error);
}

/* ---- pools ---- */

/* The file of a pool says which it is. */
int cudart_pool_make_shared(Pool *pool) {
  pool->shared = make(poolFile, 0, pool->device);
  return pool->shared ? umemCudaSuccess : umemCudaOutOfMemory;
}

int cudart_pool_export(int *fd, void *pool) {
  int error = cudart_enter("pool_export", needContext);
  Pool const *one = error ? NULL : cudart_pool(pool, &error);
  if (one && (!one->shared || one->opened)) error = umemCudaInvalidValue;
  if (!error && (*fd = fcntl(one->shared->fd, F_DUPFD, 0)) < 0) error = umemCudaOutOfMemory;
  return cudart_leave(error);
}

int cudart_pool_import(void **pool, int fd) {
  int error = cudart_enter("pool_import", needContext | needNoCapture);
  Shared *shared = error || !fd ? NULL : open_file(fd, poolFile); /* CUDA refuses 0 */
  if (!error && !shared) error = umemCudaInvalidValue;
  if (shared) error = cudart_pool_make(pool, (int)shared->header->device, 0);
  if (shared && error) cudart_shared_end(shared);
  if (!error) {
    ((Pool *)*pool)->shared = shared;
    ((Pool *)*pool)->opened = true;
  }
  return cudart_leave(error);
}

int cudart_pool_export_pointer(umemCudaIpc *data, void *adr) {
  int error = cudart_enter("pool_export_pointer", needContext);
  Block *block = error ? NULL : block_to_share(adr, true);
  if (!error && (!block || !block->pool->shared)) error = umemCudaInvalidValue;
  if (!error) error = share_block(block);
  if (!error) {
    *data = block->shared->handle;
    data->words[poolWord] = block->pool->shared->header->number;
  }
  return cudart_leave(error);
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
  int error = cudart_enter("pool_import_pointer", needContext | needNoCapture);
  Pool *one = error ? NULL : cudart_pool(pool, &error);
  if (one) error = refuse_own(data);
  if (one && !error) error = import_pointer(adr, one, data);
  return cudart_leave(error);
}

/* ---- events ---- */

static int make_event(void **event, Shared *shared) {
  int error = shared ? umemCudaSuccess : umemCudaOutOfMemory;
  Device const *device = shared ? cudart_current(&error) : NULL;
  Event *one = device ? calloc(1, sizeof *one) : NULL;
  if (!one) {
    cudart_shared_end(shared);
    return error ? error : umemCudaOutOfMemory;
  }
  *one = (Event){.next = cudart_state.events, .device = device->ordinal, .shared = shared};
  *event = cudart_state.events = one;
  return umemCudaSuccess;
}

int cudart_ipc_event_create(void **event) {
  int error = cudart_enter("ipc_event_create", needContext);
  if (!error) error = make_event(event, make(eventFile, 0, 0));
  return cudart_leave(error);
}

int cudart_ipc_event(umemCudaIpc *handle, void *event) {
  int error = cudart_enter("ipc_event", needContext);
  Event const *one = error ? NULL : cudart_event(event, &error);
  if (one && (!one->shared || one->shared->fd < 0)) error = umemCudaInvalidHandle;
  if (!error) *handle = one->shared->handle;
  return cudart_leave(error);
}

int cudart_ipc_event_open(void **event, umemCudaIpc const *handle) {
  int error = cudart_enter("ipc_event_open", needContext);
  if (!error) error = refuse_own(handle);
  Shared *shared = error ? NULL : open_handle(handle, eventFile);
  if (!error && !shared) error = umemCudaInvalidHandle;
  if (!error) error = make_event(event, shared);
  return cudart_leave(error);
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
