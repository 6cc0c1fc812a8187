/* host.c - RAM of this process, from libc's malloc family.
 *
 * libc keeps the table of blocks. Large blocks are advised to use transparent huge pages, which makes their
 * first touch several times faster (bench: fill of a fresh block); everything else is malloc's speed.
 * Methods return 0 when libc is out of memory; the dispatcher records it. Large requests are first compared with what
 * the system has left, as libc grants more. Hosts with options: host_nodes.c. */
#include "base/numa.h"
#include "core/context.h"
#include "core/status.h"
#include "core/memory.h"
#include "core/ram.h"
#include "core/realloc.h"
#include "stores/host_nodes.h"
#include "stores/host_pages.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <umem/host.h>
#include <unistd.h>

extern umemKind const umem_host_kind; /* below */

enum { host_alignment = 16 };

/* Blocks of this size and more contain a whole huge page of 2 MiB. */
static size_t const huge_from = 4 << 20;

/* Advice only: where the kernel has no such pages the memory is as good, and errors mean nothing. */
static void *advised(void *block, size_t nbytes) {
  if (nbytes < huge_from || !block) return block;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t first = ((uintptr_t)block + page - 1) & ~(page - 1);
  uintptr_t end = ((uintptr_t)block + nbytes) & ~(page - 1);
  madvise((void *)first, end - first, MADV_HUGEPAGE);
  return block;
}

static bool host_is_same_device(umemVirtual *ctx, umemVirtual *other) {
  (void)ctx;
  return umem_is_plain_host(other);
}

static uintptr_t host_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  void *block = NULL;
  if (!umem_ram_has(ctx, size)) return 0;
  if (alignment < sizeof(void *)) alignment = sizeof(void *); /* what posix_memalign asks for */
  if (posix_memalign(&block, alignment, size)) block = NULL;
  return (uintptr_t)advised(block, size);
}

/* Apart, so that the small case below is a bare jump to malloc. At the beginning of a page, where malloc has its
 * header: the kernel fills such memory from files up to four times as fast (AMD EPYC), and devices reach it. */
static __attribute__((noinline)) uintptr_t alloc_large(umemVirtual *ctx, size_t nbytes) {
  return host_aligned_alloc(ctx, (size_t)sysconf(_SC_PAGESIZE), nbytes);
}

static uintptr_t host_alloc(umemVirtual *ctx, size_t nbytes) {
  return nbytes < huge_from ? (uintptr_t)malloc(nbytes) : alloc_large(ctx, nbytes);
}

/* What malloc gives needs nothing else; 0 bytes are 1, as in every context. The rest (large blocks, no memory) goes
 * through the method. Volatile: on the stack, and not in registers, which would have to be saved first. */
static uintptr_t host_quick_alloc(umemVirtual *ctx, size_t nbytes, void const *caller) {
  umemVirtual *volatile const kept_ctx = ctx;
  size_t volatile const kept_nbytes = nbytes;
  void const *volatile const kept_caller = caller;
  void *block = nbytes < huge_from ? malloc(nbytes + !nbytes) : NULL;
  if (__builtin_expect(block != NULL, 1)) return (uintptr_t)block;
  return umem_alloc_in_full(kept_ctx, kept_nbytes, kept_caller);
}

static uintptr_t host_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  if (!umem_ram_has(ctx, nmemb * size)) return 0;
  return (uintptr_t)advised(calloc(nmemb, size), nmemb * size);
}

static void host_free(umemVirtual *ctx, uintptr_t adr) {
  (void)ctx;
  free((void *)adr);
}

static uintptr_t host_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  size_t has = malloc_usable_size((void *)adr);
  if (!umem_has_size(ctx, adr, has, old_size)) return 0;
  if (new_size > has && !umem_ram_has(ctx, new_size - has)) return 0;
  return (uintptr_t)advised(realloc((void *)adr, new_size), new_size);
}

static uintptr_t host_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  (void)ctx;
  return adr;
}

static void host_info(umemVirtual *ctx, umemInfo *info) {
  uint64_t nodes;
  umem_ram_info(ctx, info);
  if (umemNuma_allowed(&nodes) == 0) info->nodes = nodes;
}

static struct umemVtbl const host_vtbl = {
    .is_same_device = host_is_same_device,
    .alloc = host_alloc,
    .calloc = host_calloc,
    .free = host_free,
    .aligned_alloc = host_aligned_alloc,
    .aligned_origin = host_aligned_origin,
    .aligned_free = host_free,
    .set = umem_ram_set,
    .copy_to = umem_ram_copy_to,
    .copy_from = umem_ram_copy_from,
    .info = host_info,
    .realloc = host_realloc,
    .pages = umemHost_pages,
};

/* ---- by name: "host:", "host:?nodes=0-1&policy=interleave", "host:?pages=2M" ---- */

enum { nodesOption };

static umemOption const options[] = {
    {.name = "nodes",
     .kind = umemTextOption,
     .help = "numbers and ranges, as in 0,2-3; default: those of the process"},
    {.name = "policy",
     .kind = umemWordOption,
     .words = "default bind prefer interleave first-touch",
     .help = "on which nodes pages are; default: with nodes bind, else that of the process",
     .reserved = {offsetof(umemHostOptions, policy), sizeof(umemHostPolicy)}},
    {.name = "pages",
     .kind = umemWordOption,
     .words = "default 2M 1G",
     .help = "pages of hugetlbfs; default: default",
     .reserved = {offsetof(umemHostOptions, pages), sizeof(umemHostPages)}},
};

static umemHostOptions const defaults = UMEM_HOST_OPTIONS_INIT;

static umemStatusType open_host(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *given, void *user) {
  (void)upstream, (void)place, (void)user;
  umemHostOptions wish;
  if (!umemKind_read(&umem_host_kind, given, &wish)) return umemValueError;
  if (given[nodesOption].given && !(wish.nodes = umemNuma_read(given[nodesOption].text)))
    return umemVirtual_fail(NULL, umemValueError,
                            "nodes=%.60s is no list of nodes from 0 to 63, as in 0,2-3",
                            given[nodesOption].text);
  return umemHost_ctor_with(ctx, &wish);
}

umemKind const umem_host_kind = {
    .scheme = {.size = sizeof(umemScheme),
               .name = "host",
               .context_size = sizeof(umemHost),
               UMEM_OPTIONS(options),
               .vtbl = &host_vtbl,
               .construct = open_host,
               .help = "RAM of this process"},
    .label = "Host",
    .type = umemHostDevice,
    .capabilities = umemCpuReadable | umemCpuWritable | umemReadable | umemWritable |
                    umemConcurrent | umemSilent | umemPrompt,
    .alignment = host_alignment,
    .options_type = "umemHostOptions",
    .options_size = sizeof(umemHostOptions),
    .defaults = &defaults,
    .variant = &umem_host_nodes_vtbl,
};

umemStatusType umemHost_ctor(umemHost *ctx) {
  UMEM_ENTER();
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  umem_construct(&ctx->super, &umem_host_kind, ctx);
  umemQuick_set(&ctx->super, host_quick_alloc, NULL); /* free is silent */
  return umemOK;
}

/* Options that are too small give a failed context, as other failures do. */
umemStatusType umemHost_ctor_with(umemHost *ctx, umemHostOptions const *given) {
  UMEM_ENTER();
  umemHostOptions wish = defaults;
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  umem_construct(&ctx->super, &umem_host_kind, ctx);
  uint64_t before = umem_thread.failures;
  if (!umem_read_sized(ctx, &wish, sizeof wish, given, "umemHostOptions")) {
    umem_construct_failed(&ctx->super);
    return umem_result(before);
  }
  if (wish.nodes || wish.policy != umemHostPolicyDefault || wish.pages != umemHostPagesDefault)
    return umemHostNodes_ctor(ctx, &wish, umemHost_ctor);
  umemQuick_set(&ctx->super, host_quick_alloc, NULL); /* free is silent */
  return umemOK;
}

umemStatusType umemHost_node(umemHost *ctx, uintptr_t adr, int *node) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_host_kind);
  if (!self) return umem_thread.last;
  if (!node) return umemVirtual_fail(ctx, umemValueError, "node is NULL");
  int error = umemNuma_find(adr, node);
  if (!error) return umemOK;
  char words[128];
  return umemVirtual_fail(ctx, error == EFAULT ? umemIndexError : umemNotSupportedError,
                          "the kernel does not tell on which node %#" PRIxPTR " is: %s", adr,
                          umem_system_words(error, words, sizeof words));
}
