#include "paged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static Paged *paged_of(umemVirtual *ctx) { return (Paged *)ctx; }

static void misuse(Paged *self, char const *what, uintptr_t adr) {
  if (!self->misuse[0])
    snprintf(self->misuse, sizeof self->misuse, "%s at 0x%jx", what, (uintmax_t)adr);
}

/* Begins a call: whether it fails, after how many pages. With the mutex then. */
static bool enter(Paged *self, PagedCall call, size_t *most) {
  pthread_mutex_lock(&self->mutex);
  bool fails = ++self->calls[call] == self->fails_at && call == self->failing;
  *most = fails ? self->fails_after : SIZE_MAX;
  return fails;
}

static void leave(Paged *self) { pthread_mutex_unlock(&self->mutex); }

static void fail(Paged *self, char const *what) {
  umemVirtual_fail(&self->super, self->fails_as ? self->fails_as : umemMemoryError, "no %s here",
                   what);
}

/* The range of adr, and its page there; NULL, and a misuse, where there is none with so many pages
 * of this size. */
static PagedRange *range_at(Paged *self, uintptr_t adr, size_t nbytes, size_t size, size_t *page) {
  for (size_t i = 0; i < pagedRanges; i++) {
    PagedRange *range = &self->ranges[i];
    uintptr_t start = (uintptr_t)range->bytes;
    if (!start || adr < start || adr - start >= range->size) continue;
    *page = (adr - start) / pagedSize;
    if (nbytes && !(nbytes % size) && !((adr - start) % pagedSize) &&
        nbytes <= range->size - (adr - start))
      return range;
  }
  misuse(self, "no such pages", adr);
  return NULL;
}

/* ---- ranges ---- */

static uintptr_t take_range(Paged *self, size_t nbytes) {
  PagedRange *range = self->ranges;
  while (range < self->ranges + pagedRanges && range->bytes) range++;
  if (range == self->ranges + pagedRanges || (self->longest && nbytes > self->longest)) return 0;
  unsigned char *has = calloc(nbytes / pagedSize + 1, sizeof *has);
  unsigned char *bytes =
      mmap(NULL, nbytes + pagedSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!has || bytes == MAP_FAILED) {
    if (bytes != MAP_FAILED) munmap(bytes, nbytes + pagedSize);
    free(has);
    return 0;
  }
  size_t gap = -(uintptr_t)bytes % pagedSize;
  if (gap) munmap(bytes, gap);
  munmap(bytes + gap + nbytes, pagedSize - gap);
  *range = (PagedRange){bytes + gap, nbytes, has};
  return (uintptr_t)range->bytes;
}

static uintptr_t paged_reserve(umemVirtual *ctx, size_t nbytes) {
  Paged *self = paged_of(ctx);
  size_t most;
  uintptr_t adr = enter(self, pagedReserve, &most) ? 0 : take_range(self, nbytes);
  leave(self);
  if (!adr) fail(self, "addresses");
  return adr;
}

static bool paged_release(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  Paged *self = paged_of(ctx);
  size_t most, page;
  bool fails = enter(self, pagedRelease, &most);
  PagedRange *range = fails ? NULL : range_at(self, adr, nbytes, pagedSize, &page);
  if (range && ((uintptr_t)range->bytes != adr || range->size != nbytes))
    misuse(self, "a part of a range", adr);
  for (size_t i = 0; range && i < range->size / pagedSize; i++)
    if (range->has[i]) misuse(self, "a range ends with pages", adr);
  if (range) {
    munmap(range->bytes, range->size);
    free(range->has);
    *range = (PagedRange){0};
  }
  leave(self);
  if (fails) fail(self, "end");
  return !fails;
}

/* ---- pages; size: of one, which may be large ---- */

/* Of part i of a page of so many others: see PagedRange. */
static unsigned char number_of(size_t count, size_t i) { return (unsigned char)(count + i); }
_Static_assert(pagedGroup == 4, "1, then 2 and 3, then 4 to 7");

static struct umemVtbl const zeros_vtbl;

static bool give(Paged *self, PagedRange *range, size_t page, size_t size, bool counts) {
  size_t const count = size / pagedSize;
  if (counts && self->capacity && self->pages + count > self->capacity) return false;
  for (size_t i = 0; i < count; i++) {
    if (range->has[page + i]) misuse(self, "a page is mapped twice", page + i);
    range->has[page + i] = number_of(count, i);
  }
  mprotect(range->bytes + page * pagedSize, size, PROT_READ | PROT_WRITE);
  memset(range->bytes + page * pagedSize, counts && self->super.vptr == &zeros_vtbl ? 0 : 0xA5,
         size);
  self->pages += count;
  if (self->pages > self->pages_peak && counts) self->pages_peak = self->pages;
  return true;
}

static void take(Paged *self, PagedRange *range, size_t page, size_t size) {
  size_t const count = size / pagedSize;
  for (size_t i = 0; i < count; i++) {
    if (range->has[page + i] != number_of(count, i))
      misuse(self, "no page of this size is there", page + i);
    range->has[page + i] = 0;
  }
  mprotect(range->bytes + page * pagedSize, size, PROT_NONE);
  self->pages -= count;
}

static size_t map(umemVirtual *ctx, uintptr_t adr, size_t nbytes, size_t size, PagedCall call) {
  Paged *self = paged_of(ctx);
  size_t most, page, done = 0;
  if (self->before_map) self->before_map(self->argument);
  enter(self, call, &most);
  PagedRange *range = range_at(self, adr, nbytes, size, &page);
  for (; range && done < nbytes / size && done < most; done++)
    if (!give(self, range, page + done * size / pagedSize, size, true)) break;
  leave(self);
  if (done < nbytes / size) fail(self, "pages");
  return done * size;
}

static size_t unmap(umemVirtual *ctx, uintptr_t adr, size_t nbytes, size_t size, PagedCall call) {
  Paged *self = paged_of(ctx);
  size_t most, page, done = 0;
  enter(self, call, &most);
  PagedRange *range = range_at(self, adr, nbytes, size, &page);
  for (; range && done < nbytes / size && done < most; done++)
    take(self, range, page + done * size / pagedSize, size);
  leave(self);
  if (done < nbytes / size) fail(self, "way back");
  return done * size;
}

static size_t move(umemVirtual *ctx, uintptr_t from, uintptr_t to, size_t nbytes, size_t size,
                   PagedCall call) {
  Paged *self = paged_of(ctx);
  size_t most, source, target, done = 0;
  enter(self, call, &most);
  PagedRange *out = range_at(self, from, nbytes, size, &source);
  PagedRange *in = range_at(self, to, nbytes, size, &target);
  for (; in && out && done < nbytes / size && done < most; done++) {
    take(self, out, source + done * size / pagedSize, size);
    give(self, in, target + done * size / pagedSize, size, false);
  }
  leave(self);
  if (done < nbytes / size) fail(self, "way");
  return done * size;
}

#define METHODS_OF(name, size, map_call, unmap_call, move_call)                                    \
  static size_t name##_map(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {                       \
    return map(ctx, adr, nbytes, size, map_call);                                                  \
  }                                                                                                \
  static size_t name##_unmap(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {                     \
    return unmap(ctx, adr, nbytes, size, unmap_call);                                              \
  }                                                                                                \
  static size_t name##_move(umemVirtual *ctx, uintptr_t from, uintptr_t to, size_t nbytes) {       \
    return move(ctx, from, to, nbytes, size, move_call);                                           \
  }
METHODS_OF(paged, pagedSize, pagedMap, pagedUnmap, pagedMove)
METHODS_OF(middle, pagedMiddle, pagedMapLarge, pagedUnmapLarge, pagedMoveLarge)
METHODS_OF(large, pagedLarge, pagedMapLarge, pagedUnmapLarge, pagedMoveLarge)

static umemPages const *paged_pages(umemVirtual *ctx) {
  (void)ctx;
  static umemPages const pages = {pagedSize, paged_reserve, paged_release,
                                  paged_map, paged_unmap,   paged_move};
  return &pages;
}

static umemPages const *paged_large_pages(umemVirtual *ctx) {
  static umemPages const pages = {
      .page_size = pagedLarge, .map = large_map, .unmap = large_unmap, .move = large_move};
  return paged_of(ctx)->no_large ? NULL : &pages;
}

static bool paged_zero_pages(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  Paged *self = paged_of(ctx);
  size_t page;
  if (self->keeps) return false;
  pthread_mutex_lock(&self->mutex);
  PagedRange *range = range_at(self, adr, nbytes, pagedSize, &page);
  for (size_t i = 0; range && i < nbytes / pagedSize; i++)
    if (range->has[page + i] != number_of(1, 0))
      misuse(self, "a page without memory becomes zero", adr);
  leave(self);
  madvise((void *)adr, nbytes, MADV_DONTNEED);
  self->zeroed_bytes += nbytes;
  return range;
}

static umemPages const *paged_sized_pages(umemVirtual *ctx, size_t page_size) {
  static umemPages const pages = {
      .page_size = pagedMiddle, .map = middle_map, .unmap = middle_unmap, .move = middle_move};
  return page_size == pagedMiddle && !paged_of(ctx)->no_middle ? &pages : NULL;
}

/* ---- the other methods ---- */

static uintptr_t paged_alloc(umemVirtual *ctx, size_t nbytes) {
  Paged *self = paged_of(ctx);
  size_t most;
  bool fails = enter(self, pagedAlloc, &most) || self->no_alloc;
  void *block = fails ? NULL : malloc(nbytes);
  self->blocks += block != NULL;
  leave(self);
  if (!block) fail(self, "block");
  return (uintptr_t)block;
}

static void paged_free(umemVirtual *ctx, uintptr_t adr) {
  Paged *self = paged_of(ctx);
  pthread_mutex_lock(&self->mutex);
  self->blocks--;
  leave(self);
  free((void *)adr);
}

static void paged_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  __atomic_add_fetch(&paged_of(ctx)->set_bytes, nbytes, __ATOMIC_RELAXED);
  memset((void *)adr, c, nbytes);
}

static void paged_copy_to(umemVirtual *ctx, uintptr_t src, umemVirtual *that, uintptr_t dst,
                          size_t nbytes) {
  (void)ctx, (void)that;
  memmove((void *)dst, (void const *)src, nbytes);
}
static void paged_copy_from(umemVirtual *ctx, uintptr_t dst, umemVirtual *that, uintptr_t src,
                            size_t nbytes) {
  paged_copy_to(ctx, src, that, dst, nbytes);
}

static void paged_info(umemVirtual *ctx, umemInfo *info) {
  size_t capacity = paged_of(ctx)->capacity;
  if (capacity) info->capacity = capacity * pagedSize;
}

static void paged_dtor(umemVirtual *ctx) {
  umemVirtual_dtor(ctx);
  umem_dtor(&paged_of(ctx)->host);
  pthread_mutex_destroy(&paged_of(ctx)->mutex);
}

#define METHODS                                                                                    \
  .dtor = paged_dtor, .alloc = paged_alloc, .free = paged_free, .set = paged_set,                  \
  .copy_to = paged_copy_to, .copy_from = paged_copy_from, .info = paged_info, .pages = paged_pages

static struct umemVtbl const vtbl = {METHODS, .large_pages = paged_large_pages,
                                     .sized_pages = paged_sized_pages};
static struct umemVtbl const zeros_vtbl = {METHODS, .zero_pages = paged_zero_pages};

umemStatusType paged_ctor(Paged *ctx) {
  memset(ctx, 0, sizeof *ctx);
  umemStatusType status = umemHost_ctor(&ctx->host);
  umemVirtual_ctor(&ctx->super, &ctx->host);
  ctx->super.vptr = &vtbl;
  ctx->super.name = "Paged";
  ctx->super.capabilities |= umemConcurrent | umemCpuReadable | umemCpuWritable;
  pthread_mutex_init(&ctx->mutex, NULL);
  return status;
}

void paged_promise_zeros(Paged *ctx, bool keeps) {
  ctx->super.vptr = &zeros_vtbl;
  ctx->keeps = keeps;
}

/* ---- for tests ---- */

bool paged_is_clean(Paged *ctx) {
  bool clean = !ctx->pages && !ctx->blocks && !ctx->misuse[0];
  for (size_t i = 0; i < pagedRanges; i++) clean = clean && !ctx->ranges[i].bytes;
  return clean;
}

void paged_fail(Paged *ctx, PagedCall call, unsigned long nth, unsigned long after,
                umemStatusType as) {
  memset(ctx->calls, 0, sizeof ctx->calls);
  ctx->failing = call;
  ctx->fails_at = nth;
  ctx->fails_after = after;
  ctx->fails_as = as;
}
