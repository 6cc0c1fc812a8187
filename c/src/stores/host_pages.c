/* host_pages.c - see host_pages.h.
 *
 * A range is a mapping that nobody may read or write, which takes no memory. A page has the size of a huge page. The
 * kernel keeps the records. It has a mapping for each piece of memory and for each gap, and allows 65530 of them
 * (vm.max_map_count); pages that have been moved do not join their neighbours. So mapping can fail where there is
 * memory. */
#include "stores/host_pages.h"
#include "base/read_text.h"
#include "base/root_region.h"
#include "core/ram.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux 5.7 */
#endif

enum { page_size = 2 << 20, huge_from = 4 << 20 };

static void *at(uintptr_t adr) { return (void *)adr; }

static void fail(umemVirtual *ctx, char const *what, size_t nbytes, uintptr_t adr) {
  int error = errno;
  char text[128];
  umemVirtual_fail(ctx, error == ENOMEM || error == EAGAIN ? umemMemoryError : umemRuntimeError,
                   "cannot %s %zu bytes at 0x%jx: %s", what, nbytes, (uintmax_t)adr,
                   strerror_r(error, text, sizeof text));
}

/* Addresses without memory: at adr in place of what is there, or anywhere if adr is NULL. NULL with errno. The kernel
 * counts what nobody may write as no memory. When it becomes writable, the kernel counts it as that of malloc. */
static void *map_nothing(void *adr, size_t nbytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (adr ? MAP_FIXED : 0);
  void *mapped = mmap(adr, nbytes, PROT_NONE, flags, -1, 0);
  return mapped == MAP_FAILED ? NULL : mapped;
}

/* ---- mappings ---- */

/* Where a process has no mapping left, its malloc fails, too. So pages leave half of them to the program. To count them
 * takes milliseconds: so that is done again only when calls may have made as many as were left, or after so many
 * refusals. */
enum { per_call = 4, usual_most = 65530, refusals = 4096 };
static long left;              /* atomic: that calls may still make */
static long refused;           /* atomic: that follow without a new count */
static long pages_with_memory; /* atomic */

static void note_mapped(long pages) {
  __atomic_add_fetch(&pages_with_memory, pages, __ATOMIC_RELAXED);
}

/* The mappings of pages where /proc is not mounted: of each page, and of a gap above it, at most. */
static long most_for_pages(void) {
  return 2 * __atomic_load_n(&pages_with_memory, __ATOMIC_RELAXED);
}

/* The number of lines of a file; -1 if it cannot be read. Cancellation is put off already: see most_mappings. */
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
    long more = most / 2 - (now < 0 ? most_for_pages() : now);
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
  umemVirtual_fail(
      ctx, umemMemoryError,
      "half of the mappings that the process may have are in use (vm.max_map_count): pages leave "
      "the others to the program");
  return false;
}

/* ---- ranges ---- */

/* What is too much is unmapped at both ends. The kernel refuses that only if it merges the mapping with neighbours, and
 * has no mapping left: then these addresses stay reserved. */
static uintptr_t host_reserve(umemVirtual *ctx, size_t nbytes) {
  size_t most = 0;
  void *mapped = NULL;
  if (__builtin_add_overflow(nbytes, page_size, &most))
    errno = ENOMEM;
  else
    mapped = map_nothing(NULL, most);
  if (!mapped) {
    fail(ctx, "reserve", nbytes, 0);
    return 0;
  }
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

/* Huge pages are advice for large pieces, as in host.c: a pool of a few small blocks need not have 2 MiB at once. After a failure a part may be readable, without memory: that ends, too. */
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
  if (!take_memory(adr, nbytes)) {
    fail(ctx, "unmap", nbytes, adr);
    return 0;
  }
  note_mapped(-(long)(nbytes / page_size));
  return nbytes;
}

/* Moves a page with its memory. The kernel keeps an empty mapping at from: in a gap another thread might map something
 * before umem can. It unmaps what was at to before it checks the limit of data, so umem does not try with such a limit;
 * should the kernel itself be out of memory, umem closes the gap. A kernel before 5.7 refuses all this. */
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
umemPages const *umemHost_pages(umemVirtual *ctx) {
  (void)ctx;
  struct rlimit addresses;
  if (getrlimit(RLIMIT_AS, &addresses) || addresses.rlim_cur != RLIM_INFINITY) return NULL;
  static umemPages const pages = {page_size, host_reserve, host_release,
                                  host_map,  host_unmap,   host_move};
  return &pages;
}
