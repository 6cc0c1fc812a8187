/* host.c - RAM of this process, from libc's malloc family.
 *
 * libc keeps the table of blocks. Large blocks are advised to use transparent huge pages, which
 * makes their first touch several times faster (bench: fill of a fresh block); everything else is
 * malloc's speed. Methods return 0 when libc is out of memory; the dispatcher records it. Large
 * requests are first compared with what the system has left, as libc grants more. Hosts with
 * options: host_nodes.c. */
#include "base/system.h"
#include "stores/host_nodes.h"
#include "core/memory.h"
#include "core/ram.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <umem/host.h>
#include <unistd.h>

/* ==== memory that is mapped page by page: the method pages of umem/virtual.h ====
 *
 * A range is a mapping without access, which takes no memory. A page has the size of a huge page.
 * The kernel keeps the records. It has a mapping for each piece of memory and for each gap, and
 * allows 65530 of them (vm.max_map_count); pages that have been moved do not join their neighbours.
 * So mapping can fail where there is memory. */

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux 5.7 */
#endif

enum { page_size = 2 << 20, huge_from = 4 << 20 /* such a block contains a whole huge page */ };

static void *at(uintptr_t adr) { return (void *)adr; }

/* Returns 0. */
static size_t fail(umemVirtual *ctx, char const *what, size_t nbytes, uintptr_t adr) {
  umemStatusType type = errno == ENOMEM || errno == EAGAIN ? umemMemoryError : umemRuntimeError;
  return UMEM_FAIL_AS(0, ctx, type, "cannot %s %zu bytes at 0x%jx: %s", what, nbytes,
                      (uintmax_t)adr, UMEM_WORDS(errno));
}

/* Addresses without memory: at adr in place of what is there, or anywhere if adr is NULL. NULL with
 * errno. The kernel counts a mapping without write access as no memory. When it becomes writable,
 * the kernel counts it as that of malloc. */
static void *map_nothing(void *adr, size_t nbytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (adr ? MAP_FIXED : 0);
  void *mapped = mmap(adr, nbytes, PROT_NONE, flags, -1, 0);
  return mapped == MAP_FAILED ? NULL : mapped;
}

/* ---- mappings ---- */

/* Where a process has no mapping left, its malloc fails, too. So pages leave half of them to the
 * program. To count them takes milliseconds: so that is done again only when calls may have made as
 * many as were left, or after so many refusals. */
enum { per_call = 4, usual_most = 65530, refusals = 4096 };
static long left;              /* atomic: that calls may still make */
static long refused;           /* atomic: that follow without a new count */
static long pages_with_memory; /* atomic */

static void note_mapped(long pages) {
  __atomic_add_fetch(&pages_with_memory, pages, __ATOMIC_RELAXED);
}

/* The number of lines of a file; -1 if it cannot be read. Cancellation is put off already: see
 * most_mappings. */
static long count_lines(char const *path) {
  char text[4096];
  long lines = 0;
  ssize_t n;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  while ((n = read(fd, text, sizeof text)) > 0)
    for (ssize_t i = 0; i < n; i++) lines += text[i] == '\n';
  close(fd);
  return n < 0 ? -1 : lines;
}

static long most_mappings(void) {
  char text[32];
  long most =
      umem_read_text("/proc/sys/vm/max_map_count", text, sizeof text) ? strtol(text, NULL, 10) : 0;
  return most > 0 ? most : usual_most;
}

/* Whether a call may make some mappings more. */
static bool has_mappings(void) {
  if (__atomic_sub_fetch(&left, per_call, __ATOMIC_RELAXED) >= 0) return true;
  if (__atomic_sub_fetch(&refused, 1, __ATOMIC_RELAXED) <= 0) {
    long most = most_mappings(), now = count_lines("/proc/self/maps");
    /* Where /proc is not mounted: of each page, and of a gap above it, at most. */
    long unknown = 2 * __atomic_load_n(&pages_with_memory, __ATOMIC_RELAXED);
    long more = most / 2 - (now < 0 ? unknown : now);
    if (more >= most / 64) {
      __atomic_store_n(&left, more, __ATOMIC_RELAXED);
      return true;
    }
    __atomic_store_n(&refused, (long)refusals, __ATOMIC_RELAXED);
  }
  return false;
}

static bool may_map(umemVirtual *ctx) {
  if (has_mappings()) return true;
  return UMEM_FAIL(
      ctx, umemMemoryError,
      "half of the mappings that the process may have are in use (vm.max_map_count): pages leave "
      "the others to the program");
}

/* ---- ranges ---- */

/* What is too much is unmapped at both ends. The kernel refuses that only if it merges the mapping
 * with neighbours, and has no mapping left: then these addresses stay reserved. */
static uintptr_t host_reserve(umemVirtual *ctx, size_t nbytes) {
  size_t most = 0;
  void *mapped = NULL;
  if (__builtin_add_overflow(nbytes, page_size, &most))
    errno = ENOMEM;
  else
    mapped = map_nothing(NULL, most);
  if (!mapped) return fail(ctx, "reserve", nbytes, 0);
  uintptr_t begin = (uintptr_t)mapped, end = begin + most;
  uintptr_t adr = (begin + page_size - 1) & ~(uintptr_t)(page_size - 1);
  if (adr > begin) munmap(mapped, adr - begin);
  if (end > adr + nbytes) munmap(at(adr + nbytes), end - adr - nbytes);
  umem_root_add(at(adr), nbytes);
  return adr;
}

static bool host_release(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  bool released = !munmap(at(adr), nbytes);
  if (!released)
    fail(ctx, "release", nbytes, adr);
  else
    umem_root_remove(at(adr), nbytes);
  return released;
}

/* ---- pages ---- */

/* Huge pages are advice for large pieces, as in host.c: a pool of a few small blocks need not have
 * 2 MiB at once. After a failure a part may be readable, without memory: that ends, too. */
static size_t host_map(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  if (!umem_ram_has(ctx, nbytes) || !may_map(ctx)) return 0;
  if (mprotect(at(adr), nbytes, PROT_READ | PROT_WRITE)) {
    fail(ctx, "map", nbytes, adr);
    map_nothing(at(adr), nbytes);
    return 0;
  }
  if (nbytes >= huge_from) madvise(at(adr), nbytes, MADV_HUGEPAGE);
  note_mapped((long)(nbytes / page_size));
  return nbytes;
}

/* Where mappings are short, the addresses stay readable. */
static bool take_memory(uintptr_t adr, size_t nbytes) {
  return (!has_mappings() && !madvise(at(adr), nbytes, MADV_DONTNEED)) ||
         map_nothing(at(adr), nbytes);
}

static size_t host_unmap(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  if (!take_memory(adr, nbytes)) return fail(ctx, "unmap", nbytes, adr);
  note_mapped(-(long)(nbytes / page_size));
  return nbytes;
}

/* Moves a page with its memory. The kernel keeps an empty mapping at from: in a gap another thread
 * might map something before umem can. It unmaps what was at to before it checks the limit of data,
 * so umem does not try with such a limit; should the kernel itself be out of memory, umem closes
 * the gap. A kernel before 5.7 refuses all this. */
static bool carry(uintptr_t from, uintptr_t to) {
  int const flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  int const closing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  struct rlimit data;
  if (getrlimit(RLIMIT_DATA, &data) || data.rlim_cur != RLIM_INFINITY) return false;
  if (mremap(at(from), page_size, page_size, flags, at(to)) != MAP_FAILED) return true;
  if (errno != ENOMEM) return false;
  void *closed = mmap(at(to), page_size, PROT_NONE, closing, -1, 0);
  (void)closed; /* it fails where there is no gap */
  return false;
}

/* A page that cannot be carried gets new memory. */
static bool move_one(umemVirtual *ctx, uintptr_t from, uintptr_t to) {
  if (carry(from, to))
    note_mapped(1);
  else if (!host_map(ctx, to, page_size))
    return false;
  if (host_unmap(ctx, from, page_size)) return true;
  map_nothing(at(to), page_size);
  note_mapped(-1);
  return false;
}

static size_t host_move(umemVirtual *ctx, uintptr_t from, uintptr_t to, size_t nbytes) {
  size_t done = 0;
  while (done < nbytes && may_map(ctx) && move_one(ctx, from + done, to + done)) done += page_size;
  return done;
}

/* Where the addresses of the process are limited, ranges would take those that others need. */
static umemPages const *host_pages(umemVirtual *ctx) {
  (void)ctx;
  struct rlimit addresses;
  if (getrlimit(RLIMIT_AS, &addresses) || addresses.rlim_cur != RLIM_INFINITY) return NULL;
  static umemPages const pages = {page_size, host_reserve, host_release,
                                  host_map,  host_unmap,   host_move};
  return &pages;
}

/* ==== methods ==== */

extern umemKind const umem_host_kind; /* below */

enum { host_alignment = 16 };

/* Advice only: where the kernel has no such pages the memory is as good, and errors mean
 * nothing. */
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
  if (alignment < sizeof(void *))
    alignment = sizeof(void *); /* the least that posix_memalign takes */
  if (posix_memalign(&block, alignment, size)) block = NULL;
  return (uintptr_t)advised(block, size);
}

/* Apart, so that the small case below is a bare jump to malloc. At the beginning of a page, where
 * malloc has its header: the kernel fills such memory from files up to four times as fast (AMD
 * EPYC), and devices reach it. */
static __attribute__((noinline)) uintptr_t alloc_large(umemVirtual *ctx, size_t nbytes) {
  return host_aligned_alloc(ctx, (size_t)sysconf(_SC_PAGESIZE), nbytes);
}

static uintptr_t host_alloc(umemVirtual *ctx, size_t nbytes) {
  return nbytes < huge_from ? (uintptr_t)malloc(nbytes) : alloc_large(ctx, nbytes);
}

/* What malloc gives needs nothing else; 0 bytes are 1, as in every context. The rest (large blocks,
 * no memory) goes through the method. Volatile: on the stack, and not in registers, which would
 * have to be saved first. */
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
    UMEM_RAM_BYTES,
    .advise = umem_ram_advise,
    .info = host_info,
    .realloc = host_realloc,
    .pages = host_pages,
    .zero_pages = umem_ram_zero_pages,
};

/* ---- by name: "host:", "host:?nodes=0-1&policy=interleave", "host:?pages=2M" ---- */

enum { nodesOption };

static umemOption const options[] = {
    UMEM_OPTION_OWN("nodes", umemTextOption, NULL,
                    "numbers and ranges, as in 0,2-3; default: those of the process"),
    UMEM_OPTION_WORD(
        umemHostOptions, policy, "policy", "default bind prefer interleave first-touch",
        "on which nodes pages are; default: with nodes bind, else that of the process"),
    UMEM_OPTION_WORD(umemHostOptions, pages, "pages", "default 2M 1G",
                     "pages of hugetlbfs; default: default"),
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
    UMEM_KIND_OPTIONS(umemHostOptions, defaults),
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
  if (!umem_read_sized(ctx, &wish, sizeof wish, given, "umemHostOptions")) {
    umem_construct_failed(&ctx->super);
    return UMEM_RESULT();
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
  return umemVirtual_fail(ctx, error == EFAULT ? umemIndexError : umemNotSupportedError,
                          "the kernel does not tell on which node %#" PRIxPTR " is: %s", adr,
                          UMEM_WORDS(error));
}
