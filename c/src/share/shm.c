/* shm.c - a context over a segment of shared memory.
 *
 * The segment has the tables (segment.h) and the lock. In the process there are only the mapping
 * and its place:
 *
 *   shm.c           the context
 *   shm_segment.c   creates, opens, locks and removes a segment
 *   segment.c       what a segment is, which bytes are whose, and whether a file is one
 *   process.c       what the process has mapped; which process owns a block */
#include "share/shm_segment.h"
#include "base/number.h"
#include "core/live.h"
#include "core/ram.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <umem/host.h>
#include <unistd.h>

typedef struct Shm {
  umemLive live;
  umemHost host; /* for intermediate buffers */
  umemShmSegment segment;
  pid_t maker;    /* the process that has constructed the context */
  unsigned forks; /* as of umem_fork_count, there */
  umemShmOwner self;
  int shown;      /* the descriptor that shows the mark of the maker; -1 if nothing does */
  bool complete;  /* blocks are so from the beginning */
  bool uncertain; /* the name is new, and goes if umem_open does not complete the stack */
} Shm;

extern umemKind const umem_shm_kind; /* below */

static Shm *shm_of(umemVirtual *ctx) { return ((umemShm *)ctx)->impl; }

/* ---- addresses ---- */

static uintptr_t first_of(Shm const *shm) {
  return (uintptr_t)shm->segment.mapped->base + shm->segment.data;
}

/* Far outside of the data for an address that is not in it. */
static uint64_t offset_of(Shm const *shm, uintptr_t adr) { return adr - first_of(shm); }

static char const *label_of(Shm const *shm) {
  return *shm->segment.name ? shm->segment.name : "without a name";
}

/* ---- failures ---- */

/* The calling process. In a child of fork it is asked anew. */
static umemShmOwner self_of(Shm const *shm) {
  return shm->forks == umem_fork_count() ? shm->self : umemShmOwner_self();
}

/* ---- the lock ---- */

/* A child of fork shows no mark. */
static uint64_t mark_of(Shm const *shm) {
  return umemShmOwner_mark(self_of(shm), shm->shown >= 0 && shm->forks == umem_fork_count());
}

static bool lock(umemVirtual *ctx) {
  return umemShmSegment_lock(ctx, &shm_of(ctx)->segment, mark_of(shm_of(ctx)));
}

static void unlock(Shm *shm) { umemShmLock_release(&shm->segment.header->lock, mark_of(shm)); }

/* Records what went wrong; whether nothing has. */
static bool check(umemVirtual *ctx, umemShmResult result, uintptr_t adr, size_t nbytes) {
  Shm *shm = shm_of(ctx);
  switch (result) {
  case umemShmOK:
    return true;
  case umemShmNoBlock:
    return UMEM_FAIL(ctx, umemValueError,
                     "%#" PRIxPTR " is not a live block of the shared memory %s", adr,
                     label_of(shm_of(ctx)));
  case umemShmNoRoom:
    return UMEM_FAIL(ctx, umemMemoryError,
                     "no room for %zu bytes in the %" PRIu64 " of the shared memory %s", nbytes,
                     shm->segment.table.capacity, label_of(shm));
  case umemShmNoEntry:
    return UMEM_FAIL(ctx, umemMemoryError,
                     "the table of the shared memory %s has no room for more than %" PRIu32
                     " blocks (option blocks)",
                     label_of(shm), shm->segment.table.blocks);
  case umemShmDamaged:
    break;
  }
  return UMEM_FAIL(ctx, umemRuntimeError, "the tables of the shared memory %s are damaged",
                   label_of(shm));
}

/* ---- blocks ---- */

static uintptr_t shm_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  Shm *shm = shm_of(ctx);
  uint64_t offset = 0;
  umemShmOwner self = self_of(shm);
  if (alignment > shm->segment.mapped->alignment)
    return UMEM_FAIL_AS(
        0, ctx, umemMemoryError,
        "the shared memory %s is mapped at a multiple of %zu: the alignment of %zu is too large",
        label_of(shm), shm->segment.mapped->alignment, alignment);
  if (!lock(ctx)) return 0;
  umemShmResult result =
      umemShmTable_alloc(&shm->segment.table, size, alignment, self, shm->complete, &offset);
  unlock(shm);
  return check(ctx, result, 0, size) ? first_of(shm) + offset : 0;
}

static uintptr_t shm_alloc(umemVirtual *ctx, size_t nbytes) {
  return shm_aligned_alloc(ctx, umemShmGranule, nbytes);
}

enum { zeros_looked_for = 64 << 10 }; /* writing fewer bytes takes less time */

static bool shm_zero_pages(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  umemMapped_zero(shm_of(ctx)->segment.mapped, adr, nbytes);
  return true;
}

static uintptr_t shm_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  uintptr_t adr = shm_alloc(ctx, nmemb * size);
  if (adr && nmemb * size < zeros_looked_for) memset((void *)adr, 0, nmemb * size);
  if (adr && nmemb * size >= zeros_looked_for) shm_zero_pages(ctx, adr, nmemb * size);
  return adr;
}

static void shm_free(umemVirtual *ctx, uintptr_t adr) {
  Shm *shm = shm_of(ctx);
  if (!lock(ctx)) return;
  umemShmResult result = umemShmTable_free(&shm->segment.table, offset_of(shm, adr));
  unlock(shm);
  check(ctx, result, adr, 0);
}

/* The bytes of the live block at adr; 0 with a status where there is none. */
static uint64_t size_of(umemVirtual *ctx, uintptr_t adr) {
  Shm *shm = shm_of(ctx);
  umemShmOwner owner;
  uint64_t size = 0;
  if (!lock(ctx)) return 0;
  umemShmResult result = umemShmTable_find(&shm->segment.table, offset_of(shm, adr), &size, &owner);
  unlock(shm);
  return check(ctx, result, adr, 0) ? size : 0;
}

static uintptr_t shm_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return size_of(ctx, adr) ? adr : 0;
}

static uintptr_t shm_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  Shm *shm = shm_of(ctx);
  umemShmTable *table = &shm->segment.table;
  umemShmOwner owner;
  uint64_t size = 0;
  if (!lock(ctx)) return 0;
  umemShmResult found = umemShmTable_find(table, offset_of(shm, adr), &size, &owner);
  umemShmResult result = found;
  if (found == umemShmOK && old_size <= size)
    result = umemShmTable_resize(table, offset_of(shm, adr), new_size);
  unlock(shm);
  if (!check(ctx, found, adr, 0) || !umem_has_size(ctx, adr, size, old_size)) return 0;
  if (result == umemShmNoRoom) return umem_move_block(ctx, adr, old_size, new_size);
  return check(ctx, result, adr, new_size) ? adr : 0;
}

static void shm_info(umemVirtual *ctx, umemInfo *info) {
  Shm *shm = shm_of(ctx);
  uint64_t used = __atomic_load_n(&shm->segment.header->root.bytes, __ATOMIC_RELAXED);
  info->capacity = shm->segment.table.capacity;
  info->available = used < info->capacity ? info->capacity - used : 0;
  info->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
  if (shm->segment.pages == umemShmPages2M) info->page_size = UINT64_C(2) << 20;
  if (shm->segment.pages == umemShmPages1G) info->page_size = UINT64_C(1) << 30;
  snprintf(info->name, sizeof info->name, "%.127s", shm->segment.name);
}

/* Without the lock, which another process may hold for long. An entry that has changed meanwhile is
 * none. */
static umemSearch shm_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  Shm *shm = shm_of(ctx);
  umemShmTable *table = &shm->segment.table;
  uint64_t offset = offset_of(shm, adr);
  umemShmEntry entry, again;
  if (offset >= table->capacity) return umemSearchNone;
  for (uint32_t at = 0; umemShmTable_next(table, &at, &entry);) {
    uint32_t same = at - 1;
    if (offset < entry.offset || offset - entry.offset >= entry.size) continue;
    if (!umemShmTable_next(table, &same, &again) || again.offset != entry.offset ||
        again.size != entry.size)
      continue;
    found->adr = first_of(shm) + (uintptr_t)entry.offset;
    found->nbytes = (size_t)entry.size;
    return umemSearchFound;
  }
  return umemSearchNone;
}

static bool shm_usage(umemVirtual *ctx, umemUsage *usage) {
  usage->nbytes = __atomic_load_n(&shm_of(ctx)->segment.header->root.bytes, __ATOMIC_RELAXED);
  return true;
}

/* ---- other processes ---- */

static bool shm_share(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle, int *fd) {
  umemShmSegment *segment = &shm_of(ctx)->segment;
  uint64_t offset = offset_of(shm_of(ctx), adr);
  if (offset >= segment->table.capacity || nbytes > segment->table.capacity - offset)
    return UMEM_FAIL(ctx, umemIndexError,
                     "%zu bytes at %#" PRIxPTR " are not in the shared memory %s", nbytes, adr,
                     label_of(shm_of(ctx)));
  int seals = fcntl(segment->mapped->fd, F_GET_SEALS);
  if (!*segment->name && (seals < 0 || !(seals & F_SEAL_SHRINK)))
    return UMEM_FAIL(ctx, umemNotSupportedError,
                     "this shared memory has a name that the context does not know, or can be made "
                     "shorter, because it was made of a descriptor: share it from a context that "
                     "has opened the name, or seal the descriptor with F_SEAL_SHRINK");
  handle->kind = *segment->name ? umemHandleNamed : umemHandleUnnamed;
  handle->offset = segment->data + offset;
  handle->size = segment->total;
  handle->identity[0] = segment->mapped->device;
  handle->identity[1] = segment->mapped->inode;
  memcpy(&handle->identity[2], segment->id, sizeof segment->id);
  strcpy(handle->name, segment->name);
  if (!*segment->name) *fd = segment->mapped->fd;
  return true;
}

static bool shm_attach(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr) {
  (void)fd;
  umemShmSegment *segment = &shm_of(ctx)->segment;
  *adr = (uintptr_t)segment->mapped->base + (uintptr_t)handle->offset;
  bool segment_kind = handle->kind == umemHandleNamed || handle->kind == umemHandleUnnamed;
  return segment_kind && handle->identity[0] == segment->mapped->device &&
         handle->identity[1] == segment->mapped->inode &&
         !umemSegment_check_handle(handle, segment->id, segment->data, segment->total);
}

/* ---- the end ---- */

static void shm_dtor(umemVirtual *ctx) {
  Shm *shm = shm_of(ctx);
  umemLive_remove(&shm->live);
  if (shm->uncertain && shm->maker == getpid()) shm_unlink(shm->segment.name);
  if (shm->shown >= 0) close(shm->shown);
  umemShmSegment_close(&shm->segment);
  umem_dtor(&shm->host);
  free(shm);
}

static bool shm_locate(umemVirtual *ctx, uintptr_t adr, uint64_t where[3]) {
  umemShmSegment *segment = &shm_of(ctx)->segment;
  uint64_t offset = offset_of(shm_of(ctx), adr);
  where[0] = segment->mapped->device;
  where[1] = segment->mapped->inode;
  where[2] = segment->data + offset;
  return offset < segment->table.capacity;
}

static struct umemVtbl const shm_vtbl = {
    .dtor = shm_dtor,
    .alloc = shm_alloc,
    .calloc = shm_calloc,
    .free = shm_free,
    .aligned_alloc = shm_aligned_alloc,
    .aligned_origin = shm_aligned_origin,
    .aligned_free = shm_free,
    UMEM_RAM_BYTES,
    .advise = umem_ram_advise,
    .info = shm_info,
    .realloc = shm_realloc,
    .share = shm_share,
    .attach = shm_attach,
    .find = shm_find,
    .usage = shm_usage,
    .locate = shm_locate,
    .zero_pages = shm_zero_pages,
};

/* ---- construction ---- */

/* What a context is made of: a name and options, or a descriptor. */
typedef struct Wish {
  char const *name;
  umemShmOptions options;
  bool takes_over, waits;
  int fd;
} Wish;

static bool open_segment(umemVirtual *ctx, umemShmSegment *segment, Wish const *wish) {
  if (wish->takes_over) return umemShmSegment_take_over(ctx, segment, wish->fd, &wish->options);
  if (!wish->name) return umemShmSegment_create(ctx, segment, &wish->options);
  return umemShmSegment_open(ctx, segment, wish->name, &wish->options);
}

static void drop_descriptor(Wish const *wish) {
  if (wish->takes_over && wish->fd >= 0) close(wish->fd);
}

static bool start(umemVirtual *ctx, Wish const *wish) {
  Shm *shm = calloc(1, sizeof *shm);
  if (!shm) {
    drop_descriptor(wish);
    return UMEM_FAIL(ctx, umemMemoryError, "no memory for a context");
  }
  umemHost_ctor(&shm->host);
  ctx->host = &shm->host;
  ((umemShm *)ctx)->impl = shm;
  if (open_segment(ctx, &shm->segment, wish)) {
    shm->maker = getpid();
    shm->forks = umem_fork_count();
    shm->self = umemShmOwner_self();
    shm->shown = umemShmOwner_show(shm->self, shm->segment.mapped->fd);
    shm->complete = !wish->options.incomplete;
    shm->uncertain = wish->waits && wish->name && shm->segment.created;
    ctx->space[0] = shm->segment.id[0];
    ctx->space[1] = shm->segment.id[1];
    return true;
  }
  umem_dtor(&shm->host);
  free(shm);
  return false;
}

/* What is wrong with the options of a program, or NULL. Older programs have none of those at the
 * end. */
static char const *read_options(umemShmOptions const *given, umemShmOptions *options) {
  if (!given) return NULL;
  if (given->size < offsetof(umemShmOptions, trust)) return "the size in the options is too small";
  memcpy(options, given, umem_lesser(given->size, sizeof *options));
  options->size = sizeof *options;
  return (unsigned)options->how > umemShmOpen || (unsigned)options->pages > umemShmPages1G ||
                 (unsigned)options->trust > umemTrustAll
             ? "an option has no meaning"
             : NULL;
}

/* Options that are too small or contradict each other give a failed context, as other failures
 * do. */
static umemStatusType construct(umemShm *ctx, umemShmOptions const *options, Wish wish) {
  uint64_t before = umem_thread.failures;
  wish.options = (umemShmOptions)UMEM_SHM_OPTIONS_INIT;
  char const *wrong = ctx ? read_options(options, &wish.options) : "the context is NULL";
  if (!wrong && wish.name && !wish.options.capacity) {
    if (wish.options.how == umemShmCreate) wrong = "what is created needs a size";
    wish.options.how = umemShmOpen;
  }
  if (wrong) drop_descriptor(&wish);
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "%s", wrong);
  memset(ctx, 0, sizeof *ctx);
  umem_construct(&ctx->super, &umem_shm_kind, NULL);
  if (wrong) {
    umemVirtual_fail(ctx, umemValueError, "%s", wrong);
  } else if (start(&ctx->super, &wish)) {
    umemLive_add(&shm_of(&ctx->super)->live, &ctx->super);
    return umemOK;
  }
  ctx->impl = NULL;
  umem_construct_failed(&ctx->super);
  return umem_result(before);
}

umemStatusType umemShm_ctor(umemShm *ctx, char const *name, size_t capacity) {
  UMEM_ENTER();
  umemShmOptions options = UMEM_SHM_OPTIONS_INIT;
  options.capacity = capacity;
  return construct(ctx, &options, (Wish){.name = name});
}

umemStatusType umemShm_ctor_with(umemShm *ctx, char const *name, umemShmOptions const *options) {
  UMEM_ENTER();
  return construct(ctx, options, (Wish){.name = name});
}

umemStatusType umemShm_adopt(umemShm *ctx, int fd) {
  UMEM_ENTER();
  return umemShm_adopt_with(ctx, fd, NULL);
}

umemStatusType umemShm_adopt_with(umemShm *ctx, int fd, umemShmOptions const *options) {
  UMEM_ENTER();
  return construct(ctx, options, (Wish){.takes_over = true, .fd = fd});
}

/* ---- by name: "shm:?size=64M", "shm:NAME?size=64M&how=create" ---- */

enum { capacityOption, accessOption = 4 };

static umemOption const place = {
    .name = "name",
    .kind = umemTextOption,
    .help = "of the segment; without one only this process and its children have it"};

static umemOption const options[] = {
    UMEM_OPTION(umemShmOptions, capacity, "size", umemSizeOption, "of all blocks together"),
    UMEM_OPTION(umemShmOptions, blocks, "blocks", umemNumberOption,
                "most blocks at a time; default: one for each 4 KiB"),
    UMEM_OPTION_WORD(umemShmOptions, how, "how", "open-or-create create open",
                     "what is done about the name; default: open-or-create"),
    UMEM_OPTION_WORD(umemShmOptions, pages, "pages", "default advise 2M 1G",
                     "huge pages; default: default"),
    UMEM_OPTION_OWN("access", umemWordOption, "user group all",
                    "who may open a new name; default: user"),
    UMEM_OPTION_WORD(umemShmOptions, sparse, "sparse", "no yes",
                     "memory is reserved when it is used, not at once; default: no"),
    UMEM_OPTION_WORD(umemShmOptions, trust, "trust", "default user group all",
                     "whose segment is opened; default: as access"),
    UMEM_OPTION_WORD(
        umemShmOptions, incomplete, "incomplete", "no yes",
        "new blocks are incomplete until the program says that they are written; default: no"),
};

static umemShmOptions const defaults = UMEM_SHM_OPTIONS_INIT;

static umemStatusType open_shm(void *ctx, void *upstream, umemOptionValue const *name,
                               umemOptionValue const *given, void *user) {
  (void)upstream, (void)user;
  static uint32_t const permissions[] = {0600, 0660, 0666};
  umemShmOptions wish;
  if (!umemKind_read(&umem_shm_kind, given, &wish)) return umemValueError;
  if (given[accessOption].given) wish.permissions = permissions[given[accessOption].number];
  return construct(ctx, &wish, (Wish){.name = name->given ? name->text : NULL, .waits = true});
}

static void complete_shm(void *ctx, void *user) {
  (void)user;
  shm_of(ctx)->uncertain = false;
}

umemKind const umem_shm_kind = {
    .scheme = {.size = sizeof(umemScheme),
               .name = "shm",
               .context_size = sizeof(umemShm),
               .place = &place,
               UMEM_OPTIONS(options),
               .vtbl = &shm_vtbl,
               .construct = open_shm,
               .complete = complete_shm,
               .help = "memory that several processes share"},
    .label = "Shm",
    .type = umemShmDevice,
    .capabilities = umemCpuReadable | umemCpuWritable | umemReadable | umemWritable |
                    umemConcurrent | umemShared,
    .alignment = umemShmGranule,
    UMEM_KIND_OPTIONS(umemShmOptions, defaults),
};

/* ---- functions for this kind alone ---- */

int umemShm_descriptor(umemShm *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_shm_kind);
  return self ? shm_of(self)->segment.mapped->fd : -1;
}

uintptr_t umemShm_offset(umemShm *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_shm_kind);
  if (!self) return UINTPTR_MAX;
  Shm *shm = shm_of(self);
  uint64_t offset = offset_of(shm, adr);
  if (offset < shm->segment.table.capacity) return (uintptr_t)(shm->segment.data + offset);
  return UMEM_FAIL_AS(UINTPTR_MAX, ctx, umemIndexError,
                      "the address %#" PRIxPTR " is not in the shared memory %s", adr,
                      label_of(shm));
}

uintptr_t umemShm_address(umemShm *ctx, uintptr_t offset) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_shm_kind);
  if (!self) return 0;
  Shm *shm = shm_of(self);
  if (offset >= shm->segment.data && offset < shm->segment.total)
    return (uintptr_t)shm->segment.mapped->base + offset;
  return UMEM_FAIL_AS(0, ctx, umemIndexError,
                      "the blocks of the shared memory %s are at the offsets from %" PRIu64
                      " to %" PRIu64 ", not at %" PRIuPTR,
                      label_of(shm), shm->segment.data, shm->segment.total, offset);
}

size_t umemShm_blocks(umemShm *ctx, umemShmBlock *blocks, size_t room) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_shm_kind);
  if (!self) return 0;
  if (room && !blocks) return UMEM_FAIL_AS(0, ctx, umemValueError, "the blocks are NULL");
  Shm *shm = shm_of(self);
  umemShmEntry entry;
  size_t count = 0;
  uint32_t at = 0;
  if (!lock(self)) return 0;
  for (; umemShmTable_next(&shm->segment.table, &at, &entry); count++)
    if (count < room)
      blocks[count] = (umemShmBlock){(uintptr_t)entry.offset, (size_t)entry.size,
                                     entry.owner.process, entry.owner.space, 0};
  unlock(shm);
  if (count && room) umemShmSegment_describe(blocks, umem_lesser(count, room), first_of(shm));
  return count;
}

size_t umemShm_reclaim(umemShm *ctx, int pid) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_shm_kind);
  if (!self) return 0;
  Shm *shm = shm_of(self);
  umemShmTable *table = &shm->segment.table;
  umemShmEntry entry;
  umemShmOwner last = {0};
  bool dead = false;
  size_t freed = 0;
  umemShmResult result = umemShmOK;
  if (!lock(self)) return 0;
  for (uint32_t at = 0; result == umemShmOK && umemShmTable_next(table, &at, &entry);) {
    if (pid && umemShmOwner_pid(entry.owner) != (uint32_t)pid) continue;
    if (entry.owner.process != last.process || entry.owner.space != last.space)
      dead = umemShmOwner_is_dead(entry.owner);
    last = entry.owner;
    if (!dead) continue;
    result = umemShmTable_free(table, entry.offset);
    freed += result == umemShmOK;
  }
  unlock(shm);
  check(self, result, first_of(shm) + entry.offset, 0);
  return freed;
}

umemStatusType umemShm_own(umemShm *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_shm_kind);
  if (!self) return umem_thread.last;
  Shm *shm = shm_of(self);
  umemShmOwner owner = umemShmOwner_self();
  if (!lock(self)) return umem_thread.last;
  umemShmResult result = umemShmTable_own(&shm->segment.table, offset_of(shm, adr), owner);
  unlock(shm);
  return check(self, result, adr, 0) ? umemOK : umem_thread.last;
}

umemStatusType umemShm_complete(umemShm *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_shm_kind);
  if (!self || !lock(self)) return umem_thread.last;
  umemShmTable *table = &shm_of(self)->segment.table;
  umemShmEntry entry;
  umemShmResult result = umemShmTable_holder(table, offset_of(shm_of(self), adr), &entry);
  if (result == umemShmOK) result = umemShmTable_complete(table, entry.offset);
  unlock(shm_of(self));
  return check(self, result, adr, 0) ? umemOK : umem_thread.last;
}

bool umemShm_is_complete(umemShm *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_shm_kind);
  if (!self || !lock(self)) return false;
  Shm *shm = shm_of(self);
  umemShmEntry entry;
  umemShmResult result = umemShmTable_holder(&shm->segment.table, offset_of(shm, adr), &entry);
  unlock(shm);
  return check(self, result, adr, 0) && entry.complete;
}
