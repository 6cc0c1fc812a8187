/* shm.c - memory that other processes can map, from memfd_create.
 *
 * The range allocator keeps the table of blocks beside the memory. Its numbers are the addresses themselves. */
#include "core/construct.h"
#include "base/lock.h"
#include "base/range.h"
#include "base/thread.h"
#include "core/enter.h"
#include "core/ram.h"
#include "core/realloc.h"
#include "core/status.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <umem/host.h>
#include <umem/shm.h>
#include <unistd.h>

enum { shm_alignment = 16 };

typedef struct Shm {
  umemHost host; /* for intermediate buffers */
  int fd;
  char *base;
  size_t capacity;
  umemLock lock;    /* of range */
  umemRange *range; /* owned */
} Shm;

static Shm *shm_of(umemVirtual *ctx) { return ((umemShm *)ctx)->impl; }

/* ---- blocks ---- */

static uintptr_t shm_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  Shm *shm = shm_of(ctx);
  umemLock_acquire(&shm->lock);
  uint64_t adr = umemRange_alloc(shm->range, size, alignment);
  umemLock_release(&shm->lock);
  if (adr != UMEM_RANGE_NONE) return (uintptr_t)adr;
  umemVirtual_fail(ctx, umemMemoryError, "no room for %zu bytes in the %zu of shared memory", size,
                   shm->capacity);
  return 0;
}

static uintptr_t shm_alloc(umemVirtual *ctx, size_t nbytes) {
  return shm_aligned_alloc(ctx, shm_alignment, nbytes);
}

static void refuse(umemVirtual *ctx, uintptr_t adr) {
  umemVirtual_fail(ctx, umemValueError, "0x%jx is not a live block of this %s", (uintmax_t)adr,
                   umem_get_device_name(ctx));
}

static void shm_free(umemVirtual *ctx, uintptr_t adr) {
  Shm *shm = shm_of(ctx);
  umemLock_acquire(&shm->lock);
  bool freed = umemRange_free(shm->range, adr);
  umemLock_release(&shm->lock);
  if (!freed) refuse(ctx, adr);
}

/* The bytes of the live block at adr; 0 with a status where there is none. */
static uint64_t size_of(umemVirtual *ctx, uintptr_t adr) {
  Shm *shm = shm_of(ctx);
  umemRangeItem block;
  umemLock_acquire(&shm->lock);
  bool found = umemRange_find(shm->range, adr, &block) && block.live && block.start == adr;
  umemLock_release(&shm->lock);
  if (!found) refuse(ctx, adr);
  return found ? block.size : 0;
}

static uintptr_t shm_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return size_of(ctx, adr) ? adr : 0;
}

/* Pointers do not know their blocks: the default would read old_size bytes at any address. */
static uintptr_t shm_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  uint64_t size = size_of(ctx, adr);
  if (!size || !umem_has_size(ctx, adr, size, old_size)) return 0;
  return umem_move_block(ctx, adr, old_size, new_size);
}

/* ---- construction and end ---- */

static void close_all(Shm *shm) {
  umemRange_destroy(shm->range);
  if (shm->base) munmap(shm->base, shm->capacity);
  if (shm->fd >= 0) close(shm->fd);
  umemLock_destroy(&shm->lock);
  umem_dtor(&shm->host);
  free(shm);
}

static void shm_dtor(umemVirtual *ctx) { close_all(shm_of(ctx)); }

static struct umemVtbl const shm_vtbl = {
    .dtor = shm_dtor,
    .alloc = shm_alloc,
    .free = shm_free,
    .aligned_alloc = shm_aligned_alloc,
    .aligned_origin = shm_aligned_origin,
    .aligned_free = shm_free,
    .set = umem_ram_set,
    .copy_to = umem_ram_copy_to,
    .copy_from = umem_ram_copy_from,
    .realloc = shm_realloc,
};

/* "shm:?size=64M" */
static umemOption const options[] = {
    {.name = "size", .kind = umemSizeOption, .required = true, .help = "of all blocks together"},
};

static umemStatusType open_shm(void *ctx, void *upstream, umemOptionValue const *place,
                               umemOptionValue const *given, void *user) {
  (void)upstream, (void)place, (void)user;
  return umemShm_ctor(ctx, given[0].number);
}

umemKind const umem_shm_kind = {
    .scheme = {.size = sizeof(umemScheme),
               .name = "shm",
               .context_size = sizeof(umemShm),
               .vtbl = &shm_vtbl,
               UMEM_OPTIONS(options),
               .construct = open_shm,
               .help = "memory that other processes can map"},
    .label = "Shm",
    .type = umemVirtualDevice,
    .capabilities =
        umemCpuReadable | umemCpuWritable | umemReadable | umemWritable | umemConcurrent,
    .alignment = shm_alignment,
};

/* What a system call has failed with; always false. */
static bool fail(umemVirtual *ctx, char const *what, size_t capacity) {
  char words[128];
  umemVirtual_fail(ctx, umemMemoryError, "cannot %s %zu bytes of shared memory: %s", what, capacity,
                   umem_system_words(errno, words, sizeof words));
  return false;
}

static bool map(umemVirtual *ctx, Shm *shm) {
  shm->fd = memfd_create("umem", MFD_CLOEXEC);
  if (shm->fd < 0 || ftruncate(shm->fd, (off_t)shm->capacity) != 0)
    return fail(ctx, "make", shm->capacity);
  void *base = mmap(NULL, shm->capacity, PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, 0);
  if (base == MAP_FAILED) return fail(ctx, "map", shm->capacity);
  shm->base = base;
  shm->range = umemRange_create(shm_alignment);
  if (shm->range && umemRange_add(shm->range, (uintptr_t)base, shm->capacity, true)) return true;
  umemVirtual_fail(ctx, umemMemoryError, "no memory for the table of blocks");
  return false;
}

static bool open_memory(umemVirtual *ctx, size_t capacity) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (!capacity || capacity > PTRDIFF_MAX - page) {
    umemVirtual_fail(ctx, umemValueError, "shared memory cannot have %zu bytes", capacity);
    return false;
  }
  Shm *shm = calloc(1, sizeof *shm);
  if (!shm) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a context");
    return false;
  }
  shm->fd = -1;
  shm->capacity = (capacity + page - 1) / page * page;
  umemLock_init(&shm->lock);
  umemHost_ctor(&shm->host);
  ((umemShm *)ctx)->impl = shm;
  ctx->host = &shm->host;
  if (map(ctx, shm)) return true;
  close_all(shm);
  return false;
}

umemStatusType umemShm_ctor(umemShm *ctx, size_t capacity) {
  UMEM_ENTER();
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  uint64_t before = umem_thread.failures;
  umem_construct(&ctx->super, &umem_shm_kind, NULL);
  if (open_memory(&ctx->super, capacity)) return umemOK;
  ctx->impl = NULL;
  umem_construct_failed(&ctx->super);
  return umem_result(before);
}

int umemShm_descriptor(umemShm *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_shm_kind);
  return self ? shm_of(self)->fd : -1;
}
