/* memfd.c - memory that other processes can map, from memfd_create.
 *
 * The range allocator keeps the table of blocks beside the memory. Its numbers are the addresses themselves. */
#include "core/context.h"
#include "base/lock.h"
#include "base/range.h"
#include "base/thread.h"
#include "core/status.h"
#include "core/live.h"
#include "core/ram.h"
#include "core/realloc.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <umem/host.h>
#include <umem/memfd.h>
#include <unistd.h>

enum { memfd_alignment = 16 };

typedef struct Memfd {
  umemHost host; /* for intermediate buffers */
  int fd;
  char *base;
  size_t capacity;
  umemLock lock;    /* of range */
  umemRange *range; /* owned */
  umemLive live;
} Memfd;

static Memfd *memfd_of(umemVirtual *ctx) { return ((umemMemfd *)ctx)->impl; }

/* ---- blocks ---- */

static uintptr_t memfd_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  Memfd *memfd = memfd_of(ctx);
  umemLock_acquire(&memfd->lock);
  uint64_t adr = umemRange_alloc(memfd->range, size, alignment);
  umemLock_release(&memfd->lock);
  if (adr != UMEM_RANGE_NONE) return (uintptr_t)adr;
  umemVirtual_fail(ctx, umemMemoryError, "no room for %zu bytes in the %zu of shared memory", size,
                   memfd->capacity);
  return 0;
}

static uintptr_t memfd_alloc(umemVirtual *ctx, size_t nbytes) {
  return memfd_aligned_alloc(ctx, memfd_alignment, nbytes);
}

static void refuse(umemVirtual *ctx, uintptr_t adr) {
  umemVirtual_fail(ctx, umemValueError, "0x%jx is not a live block of this %s", (uintmax_t)adr,
                   umem_get_device_name(ctx));
}

static void memfd_free(umemVirtual *ctx, uintptr_t adr) {
  Memfd *memfd = memfd_of(ctx);
  umemLock_acquire(&memfd->lock);
  bool freed = umemRange_free(memfd->range, adr);
  umemLock_release(&memfd->lock);
  if (!freed) refuse(ctx, adr);
}

/* The bytes of the live block at adr; 0 with a status where there is none. */
static uint64_t size_of(umemVirtual *ctx, uintptr_t adr) {
  Memfd *memfd = memfd_of(ctx);
  umemRangeItem block;
  umemLock_acquire(&memfd->lock);
  bool found = umemRange_find(memfd->range, adr, &block) && block.live && block.start == adr;
  umemLock_release(&memfd->lock);
  if (!found) refuse(ctx, adr);
  return found ? block.size : 0;
}

static umemSearch memfd_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  Memfd *memfd = memfd_of(ctx);
  umemRangeItem block;
  if (!umemLock_try(&memfd->lock)) return umemSearchBusy;
  bool is_live = umemRange_find(memfd->range, adr, &block) && block.live;
  umemLock_release(&memfd->lock);
  if (!is_live || adr - block.start >= block.size) return umemSearchNone;
  found->adr = block.start;
  found->nbytes = block.size;
  return umemSearchFound;
}

static uintptr_t memfd_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return size_of(ctx, adr) ? adr : 0;
}

/* Pointers do not know their blocks: the default would read old_size bytes at any address. */
static uintptr_t memfd_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  uint64_t size = size_of(ctx, adr);
  if (!size || !umem_has_size(ctx, adr, size, old_size)) return 0;
  return umem_move_block(ctx, adr, old_size, new_size);
}

/* ---- construction and end ---- */

static void close_all(Memfd *memfd) {
  umemRange_destroy(memfd->range);
  if (memfd->base) munmap(memfd->base, memfd->capacity);
  if (memfd->fd >= 0) close(memfd->fd);
  umemLock_destroy(&memfd->lock);
  umem_dtor(&memfd->host);
  free(memfd);
}

static void memfd_dtor(umemVirtual *ctx) {
  umemLive_remove(&memfd_of(ctx)->live);
  close_all(memfd_of(ctx));
}

static struct umemVtbl const memfd_vtbl = {
    .dtor = memfd_dtor,
    .alloc = memfd_alloc,
    .free = memfd_free,
    .aligned_alloc = memfd_aligned_alloc,
    .aligned_origin = memfd_aligned_origin,
    .aligned_free = memfd_free,
    .set = umem_ram_set,
    .copy_to = umem_ram_copy_to,
    .copy_from = umem_ram_copy_from,
    .realloc = memfd_realloc,
    .find = memfd_find,
};

/* "memfd:?size=64M" */
static umemOption const options[] = {
    {.name = "size", .kind = umemSizeOption, .required = true, .help = "of all blocks together"},
};

static umemStatusType open_memfd(void *ctx, void *upstream, umemOptionValue const *place,
                                 umemOptionValue const *given, void *user) {
  (void)upstream, (void)place, (void)user;
  return umemMemfd_ctor(ctx, given[0].number);
}

umemKind const umem_memfd_kind = {
    .scheme = {.size = sizeof(umemScheme),
               .name = "memfd",
               .context_size = sizeof(umemMemfd),
               .vtbl = &memfd_vtbl,
               UMEM_OPTIONS(options),
               .construct = open_memfd,
               .help = "memory that other processes can map"},
    .label = "Memfd",
    .type = umemVirtualDevice,
    .capabilities =
        umemCpuReadable | umemCpuWritable | umemReadable | umemWritable | umemConcurrent,
    .alignment = memfd_alignment,
};

/* What a system call has failed with; always false. */
static bool fail(umemVirtual *ctx, char const *what, size_t capacity) {
  char words[128];
  umemVirtual_fail(ctx, umemMemoryError, "cannot %s %zu bytes of shared memory: %s", what, capacity,
                   umem_system_words(errno, words, sizeof words));
  return false;
}

static bool map(umemVirtual *ctx, Memfd *memfd) {
  memfd->fd = memfd_create("umem", MFD_CLOEXEC);
  if (memfd->fd < 0 || ftruncate(memfd->fd, (off_t)memfd->capacity) != 0)
    return fail(ctx, "make", memfd->capacity);
  void *base = mmap(NULL, memfd->capacity, PROT_READ | PROT_WRITE, MAP_SHARED, memfd->fd, 0);
  if (base == MAP_FAILED) return fail(ctx, "map", memfd->capacity);
  memfd->base = base;
  memfd->range = umemRange_create(memfd_alignment);
  if (memfd->range && umemRange_add(memfd->range, (uintptr_t)base, memfd->capacity, true))
    return true;
  umemVirtual_fail(ctx, umemMemoryError, "no memory for the table of blocks");
  return false;
}

static bool open_memory(umemVirtual *ctx, size_t capacity) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (!capacity || capacity > PTRDIFF_MAX - page) {
    umemVirtual_fail(ctx, umemValueError, "shared memory cannot have %zu bytes", capacity);
    return false;
  }
  Memfd *memfd = calloc(1, sizeof *memfd);
  if (!memfd) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a context");
    return false;
  }
  memfd->fd = -1;
  memfd->capacity = (capacity + page - 1) / page * page;
  umemLock_init(&memfd->lock);
  umemHost_ctor(&memfd->host);
  ((umemMemfd *)ctx)->impl = memfd;
  ctx->host = &memfd->host;
  if (map(ctx, memfd)) return true;
  close_all(memfd);
  return false;
}

umemStatusType umemMemfd_ctor(umemMemfd *ctx, size_t capacity) {
  UMEM_ENTER();
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  uint64_t before = umem_thread.failures;
  umem_construct(&ctx->super, &umem_memfd_kind, NULL);
  if (open_memory(&ctx->super, capacity)) {
    umemLive_add(&memfd_of(&ctx->super)->live, &ctx->super);
    return umemOK;
  }
  ctx->impl = NULL;
  umem_construct_failed(&ctx->super);
  return umem_result(before);
}

int umemMemfd_descriptor(umemMemfd *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_memfd_kind);
  return self ? memfd_of(self)->fd : -1;
}
