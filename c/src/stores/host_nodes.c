/* host_nodes.c - RAM of this process on chosen nodes, and on pages of a chosen size.
 *
 * Each block is a mapping of its own, because the kernel has a policy for each mapping. The table
 * of blocks is beside them, in memory of malloc: umem itself never touches a block, whose pages
 * therefore go to the threads that do. */
#include "base/system.h"
#include "base/number.h"
#include "stores/host_nodes.h"
#include "core/live.h"
#include "core/memory.h"
#include "core/ram.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static size_t const huge_from = 4 << 20, huge_page = 2 << 20; /* as in host.c */

typedef struct Nodes {
  umemLive live;
  umemHost host; /* for intermediate buffers */
  umemHostOptions options;
  uint64_t nodes;   /* where pages may be; 0: unknown */
  size_t page;      /* bytes: blocks are a whole number of them */
  int flags;        /* of mmap */
  umemLock lock;    /* of the table */
  umemTable blocks; /* the size that was asked for, by address */
  uint64_t used;    /* bytes that were asked for; atomic */
} Nodes;

static Nodes *nodes_of(umemVirtual *ctx) { return (Nodes *)ctx->reserved[umemQuickOwnAt]; }

/* Of a size that was mapped. */
static size_t rounded(Nodes const *nodes, size_t nbytes) {
  return (nbytes + nodes->page - 1) & ~(nodes->page - 1);
}

/* ---- failures ---- */

static char const *kind_of_pages(Nodes const *nodes) {
  if (nodes->options.pages == umemHostPages2M) return "pages of 2 MiB";
  return nodes->options.pages == umemHostPages1G ? "pages of 1 GiB" : "memory";
}

static umemStatusType type_of(int error) {
  if (error == ENOSYS || error == EPERM || error == EINVAL || error == EOPNOTSUPP)
    return umemNotSupportedError;
  return error == ENOMEM || error == EAGAIN || error == EFAULT ? umemMemoryError : umemRuntimeError;
}

static void fail(umemVirtual *ctx, int error, size_t nbytes) {
  Nodes const *nodes = nodes_of(ctx);
  bool set_aside =
      nodes->options.pages != umemHostPagesDefault && type_of(error) == umemMemoryError;
  char on[192];
  umemVirtual_fail(ctx, type_of(error), "cannot map %zu bytes as %s on the nodes %s: %s%s", nbytes,
                   kind_of_pages(nodes),
                   nodes->nodes ? umemNuma_write(nodes->nodes, on, sizeof on) : "of the process",
                   UMEM_WORDS(error),
                   set_aside ? " (the administrator has set too few such pages aside)" : "");
}

/* ---- mappings ---- */

/* Why a mapping without options of its own has failed: there is no room. Linux says ENOMEM, and
 * valgrind EINVAL. */
static int reason_of(int error) { return error == EINVAL ? ENOMEM : error; }

static int map_at(Nodes const *nodes, void **adr, size_t nbytes, size_t alignment) {
  bool fixed = alignment > nodes->page;
  *adr = NULL;
  if (fixed && !(*adr = umem_reserve(nbytes, alignment))) return reason_of(errno);
  void *mapped =
      mmap(*adr, nbytes, PROT_READ | PROT_WRITE, nodes->flags | (fixed ? MAP_FIXED : 0), -1, 0);
  if (mapped != MAP_FAILED) {
    *adr = mapped;
    return 0;
  }
  int error = nodes->options.pages == umemHostPagesDefault ? reason_of(errno) : errno;
  if (fixed) munmap(*adr, nbytes);
  return error;
}

static int place(Nodes const *nodes, void *adr, size_t nbytes) {
  switch (nodes->options.policy) {
  case umemHostFirstTouch:
    return umemNuma_place(adr, nbytes, umemNumaPrefer, 0);
  case umemHostBind:
    return umemNuma_place(adr, nbytes, umemNumaBind, nodes->nodes);
  case umemHostPrefer:
    return umemNuma_place(adr, nbytes, umemNumaPrefer, nodes->nodes);
  case umemHostInterleave:
    return umemNuma_place(adr, nbytes, umemNumaInterleave, nodes->nodes);
  default:
    return 0;
  }
}

/* The kernel reserves pages of hugetlbfs for a mapping, but on no certain node: where a node has
 * too few, the first touch would raise SIGBUS. So umem takes those that are bound to nodes at once.
 * A kernel that cannot do that for umem leaves it to the first touch. */
static int take(Nodes const *nodes, void *adr, size_t nbytes) {
  if (nodes->options.pages == umemHostPagesDefault) {
    if (nbytes >= huge_from) madvise(adr, nbytes, MADV_HUGEPAGE); /* advice only, as in host.c */
    return 0;
  }
  if (nodes->options.policy != umemHostBind || !madvise(adr, nbytes, MADV_POPULATE_WRITE)) return 0;
  return errno == EINVAL ? 0 : errno;
}

static int map(Nodes const *nodes, void **adr, size_t nbytes, size_t alignment) {
  int error = map_at(nodes, adr, nbytes, alignment);
  if (error) return error;
  error = place(nodes, *adr, nbytes);
  if (!error) error = take(nodes, *adr, nbytes);
  if (error) munmap(*adr, nbytes);
  return error;
}

/* Whether the nodes that the memory is bound to have so many bytes left, with swap; memory that is
 * not bound has all nodes. Records a failure if not. */
static bool nodes_have(umemVirtual *ctx, Nodes const *nodes, size_t nbytes) {
  uint64_t capacity, available;
  if (nodes->options.policy != umemHostBind || nbytes < umemMemoryLeast ||
      !umemNuma_sizes(nodes->nodes, 0, &capacity, &available) || nbytes <= available)
    return true;
  uint64_t ram = umemMemory_available(), left = umemMemory_left();
  available += left > ram ? left - ram : 0;
  char on[192];
  return nbytes <= available ||
         UMEM_FAIL(ctx, umemMemoryError,
                   "cannot allocate %zu bytes: the nodes %s have %" PRIu64 " left", nbytes,
                   umemNuma_write(nodes->nodes, on, sizeof on), available);
}

/* Huge pages are set aside, and counted by the kernel. */
static bool has_memory(umemVirtual *ctx, Nodes const *nodes, size_t nbytes) {
  return nodes->options.pages != umemHostPagesDefault ||
         (umem_ram_has(ctx, nbytes) && nodes_have(ctx, nodes, nbytes));
}

/* ---- blocks ---- */

/* Whether the table has it now. */
static bool note(Nodes *nodes, uintptr_t adr, size_t nbytes) {
  umemLock_acquire(&nodes->lock);
  bool noted = umemTable_insert(&nodes->blocks, adr, nbytes);
  umemLock_release(&nodes->lock);
  if (noted) __atomic_add_fetch(&nodes->used, nbytes, __ATOMIC_RELAXED);
  return noted;
}

static uintptr_t nodes_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t nbytes) {
  Nodes *nodes = nodes_of(ctx);
  void *adr = NULL;
  size_t size = rounded(nodes, nbytes);
  if (nbytes >= huge_from && alignment < huge_page) alignment = huge_page;
  if (!has_memory(ctx, nodes, nbytes)) return 0;
  int error = size < nbytes ? ENOMEM : map(nodes, &adr, size, alignment);
  if (!error && !note(nodes, (uintptr_t)adr, nbytes)) {
    munmap(adr, size);
    error = ENOMEM;
  }
  if (!error) {
    umem_root_add(adr, size);
    return (uintptr_t)adr;
  }
  fail(ctx, error, nbytes);
  return 0;
}

static uintptr_t nodes_alloc(umemVirtual *ctx, size_t nbytes) {
  return nodes_aligned_alloc(ctx, 1, nbytes);
}

/* New mappings are zero, and nothing touches them. */
static uintptr_t nodes_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  return nodes_alloc(ctx, nmemb * size);
}

static void refuse(umemVirtual *ctx, uintptr_t adr) {
  umemVirtual_fail(ctx, umemValueError, "%#" PRIxPTR " is not a live block of this Host", adr);
}

/* The bytes of the block at adr; 0 with a status where there is none. */
static size_t size_of(umemVirtual *ctx, uintptr_t adr) {
  Nodes *nodes = nodes_of(ctx);
  umemLock_acquire(&nodes->lock);
  umemTableCell *cell = umemTable_find(&nodes->blocks, adr);
  size_t nbytes = cell ? cell->value : 0;
  umemLock_release(&nodes->lock);
  if (!cell) refuse(ctx, adr);
  return nbytes;
}

/* Unmaps bytes of a block from offset on, with the lock: no other thread gets these addresses
 * before the table is right. Returns an errno: out of mappings, the kernel cannot cut one that it
 * has joined with neighbours. */
static int unmap(uintptr_t adr, size_t offset, size_t size) {
  if (munmap((void *)(adr + offset), size - offset)) return errno;
  umem_root_remove((void *)adr, size);
  if (offset) umem_root_add((void *)adr, offset);
  return 0;
}

static void nodes_free(umemVirtual *ctx, uintptr_t adr) {
  Nodes *nodes = nodes_of(ctx);
  int error = 0;
  size_t nbytes = 0;
  umemLock_acquire(&nodes->lock);
  umemTableCell *cell = umemTable_find(&nodes->blocks, adr);
  if (cell) {
    nbytes = cell->value;
    error = unmap(adr, 0, rounded(nodes, nbytes));
    if (!error) umemTable_remove(&nodes->blocks, cell);
  }
  umemLock_release(&nodes->lock);
  if (!cell)
    refuse(ctx, adr);
  else if (error)
    umemVirtual_fail(ctx, umemRuntimeError, "cannot unmap %zu bytes at %#" PRIxPTR ": %s", nbytes,
                     adr, UMEM_WORDS(error));
  else
    __atomic_sub_fetch(&nodes->used, nbytes, __ATOMIC_RELAXED);
}

static uintptr_t nodes_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return size_of(ctx, adr) ? adr : 0;
}

/* Keeps the block if it has as many pages, or more: those are unmapped. If they cannot be, the
 * block has them until it is freed as a longer one. */
static bool resize(Nodes *nodes, uintptr_t adr, size_t old_size, size_t new_size) {
  size_t has = rounded(nodes, old_size), needs = rounded(nodes, new_size);
  if (needs < new_size || needs > has) return false;
  umemLock_acquire(&nodes->lock);
  bool fits = needs == has || unmap(adr, needs, has) == 0;
  umemTableCell *cell = umemTable_find(&nodes->blocks, adr);
  if (fits && cell) cell->value = new_size;
  umemLock_release(&nodes->lock);
  if (fits) __atomic_add_fetch(&nodes->used, (uint64_t)new_size - old_size, __ATOMIC_RELAXED);
  return fits;
}

static uintptr_t nodes_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  size_t size = size_of(ctx, adr);
  if (!size || !umem_has_size(ctx, adr, size, old_size)) return 0;
  return resize(nodes_of(ctx), adr, size, new_size) ? adr
                                                    : umem_move_block(ctx, adr, old_size, new_size);
}

/* ---- questions ---- */

static void nodes_info(umemVirtual *ctx, umemInfo *info) {
  Nodes const *nodes = nodes_of(ctx);
  uint64_t capacity = 0, available = 0;
  bool huge = nodes->options.pages != umemHostPagesDefault;
  umem_ram_info(ctx, info);
  info->page_size = nodes->page;
  if (nodes->nodes) info->nodes = nodes->nodes;
  if (!umemNuma_sizes(nodes->nodes, huge ? nodes->page : 0, &capacity, &available)) return;
  info->capacity = capacity;
  info->available = huge ? available : umem_lesser(available, info->available);
}

static umemSearch nodes_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  Nodes *nodes = nodes_of(ctx);
  if (!umemLock_try(&nodes->lock)) return umemSearchBusy;
  umemTableCell const *cell = umemTable_containing(&nodes->blocks, adr);
  if (cell) {
    found->adr = umemTable_key(cell);
    found->nbytes = cell->value;
  }
  umemLock_release(&nodes->lock);
  return cell ? umemSearchFound : umemSearchNone;
}

static bool nodes_usage(umemVirtual *ctx, umemUsage *usage) {
  usage->nbytes = __atomic_load_n(&nodes_of(ctx)->used, __ATOMIC_RELAXED);
  return true;
}

/* ---- the end ---- */

static void discard(Nodes *nodes) {
  umemTable_clear(&nodes->blocks);
  umemLock_destroy(&nodes->lock);
  umem_dtor(&nodes->host);
  free(nodes);
}

static void nodes_dtor(umemVirtual *ctx) {
  Nodes *nodes = nodes_of(ctx);
  umemLive_remove(&nodes->live);
  size_t at = 0;
  for (umemTableCell *cell; (cell = umemTable_next(&nodes->blocks, &at)); at++)
    unmap(umemTable_key(cell), 0, rounded(nodes, cell->value));
  discard(nodes);
}

struct umemVtbl const umem_host_nodes_vtbl = {
    .advise = umem_ram_advise,
    .dtor = nodes_dtor,
    .alloc = nodes_alloc,
    .calloc = nodes_calloc,
    .free = nodes_free,
    .aligned_alloc = nodes_aligned_alloc,
    .aligned_origin = nodes_aligned_origin,
    .aligned_free = nodes_free,
    UMEM_RAM_BYTES,
    .info = nodes_info,
    .realloc = nodes_realloc,
    .find = nodes_find,
    .usage = nodes_usage,
    .zero_pages = umem_ram_zero_pages,
};

/* ---- construction ---- */

/* What a context has besides plain ones: it has records, and its calls make system calls. */
static umemKind const kind = {
    .scheme = {.vtbl = &umem_host_nodes_vtbl},
    .label = "Host",
    .type = umemHostDevice,
    .capabilities =
        umemCpuReadable | umemCpuWritable | umemReadable | umemWritable | umemConcurrent,
};

static bool has_meaning(umemVirtual *ctx, umemHostOptions const *options) {
  bool one = options->nodes && !(options->nodes & (options->nodes - 1));
  if ((unsigned)options->policy > umemHostFirstTouch || (unsigned)options->pages > umemHostPages1G)
    return UMEM_FAIL(ctx, umemValueError, "an option has no meaning: policy %d, pages %d",
                     (int)options->policy, (int)options->pages);
  if (options->policy == umemHostPrefer && !one)
    return UMEM_FAIL(ctx, umemValueError, "only one node can be preferred");
  if (options->policy == umemHostFirstTouch && options->nodes)
    return UMEM_FAIL(ctx, umemValueError, "the first touch chooses the node: leave nodes out");
  return true;
}

/* Nodes without a policy are bound. Without nodes they are those that the process may use. */
static bool choose_nodes(umemVirtual *ctx, Nodes *nodes) {
  umemHostOptions *options = &nodes->options;
  char some[192], all[192];
  uint64_t allowed = 0;
  if (options->nodes && options->policy == umemHostPolicyDefault) options->policy = umemHostBind;
  int error = umemNuma_allowed(&allowed);
  if (error && options->policy != umemHostPolicyDefault)
    return UMEM_FAIL(
        ctx, umemNotSupportedError,
        "the nodes of this machine are unknown: the kernel has no NUMA, or a container "
        "forbids its calls (get_mempolicy: %s)",
        UMEM_WORDS(error));
  if (options->nodes & ~allowed)
    return UMEM_FAIL(ctx, umemValueError,
                     "the nodes %s are not among those that this process may use: %s",
                     umemNuma_write(options->nodes & ~allowed, some, sizeof some),
                     umemNuma_write(allowed, all, sizeof all));
  nodes->nodes = options->nodes ? options->nodes : allowed;
  return true;
}

static void choose_pages(Nodes *nodes) {
  nodes->flags = MAP_PRIVATE | MAP_ANONYMOUS;
  nodes->page = (size_t)sysconf(_SC_PAGESIZE);
  if (nodes->options.pages == umemHostPagesDefault) return;
  unsigned shift = nodes->options.pages == umemHostPages2M ? 21 : 30;
  nodes->flags |= MAP_HUGETLB | (int)(shift << MAP_HUGE_SHIFT);
  nodes->page = (size_t)1 << shift;
}

/* Whether the kernel can do all this, tried with a mapping that takes no memory. */
static bool try_once(umemVirtual *ctx, Nodes const *nodes) {
  void *page = mmap(NULL, nodes->page, PROT_NONE, nodes->flags | MAP_NORESERVE, -1, 0);
  if (page == MAP_FAILED)
    return UMEM_FAIL(ctx, errno == ENOMEM ? umemMemoryError : umemNotSupportedError,
                     "this system has no %s: %s", kind_of_pages(nodes), UMEM_WORDS(errno));
  int error = place(nodes, page, nodes->page);
  munmap(page, nodes->page);
  return !error || UMEM_FAIL(ctx, type_of(error),
                             "the kernel does not place memory on nodes, or a container forbids it "
                             "(mbind: %s)",
                             UMEM_WORDS(error));
}

static bool start(umemVirtual *ctx, umemHostOptions const *options,
                  umemStatusType (*plain)(umemHost *)) {
  if (!has_meaning(ctx, options)) return false;
  Nodes *nodes = calloc(1, sizeof *nodes);
  if (!nodes) return UMEM_FAIL(ctx, umemMemoryError, "no memory for a context");
  nodes->options = *options;
  plain(&nodes->host);
  umemLock_init(&nodes->lock);
  choose_pages(nodes);
  if (!choose_nodes(ctx, nodes) || !try_once(ctx, nodes)) {
    discard(nodes);
    return false;
  }
  ctx->host = &nodes->host;
  ctx->alignment = nodes->page;
  ctx->reserved[umemQuickOwnAt] = (uintptr_t)nodes;
  umemLive_add(&nodes->live, ctx);
  return true;
}

umemStatusType umemHostNodes_ctor(umemHost *ctx, umemHostOptions const *options,
                                  umemStatusType (*plain)(umemHost *)) {
  uint64_t before = umem_thread.failures;
  umem_construct(&ctx->super, &kind, NULL);
  if (start(&ctx->super, options, plain)) return umemOK;
  umem_construct_failed(&ctx->super);
  return umem_result(before);
}
