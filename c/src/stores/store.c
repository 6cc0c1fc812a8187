/* store.c - makes contexts of the engine: their methods, construction, names and end.
 *
 * The methods turn addresses into offsets of the file. For pointers they check that an address is
 * in the mapping; the functions below check the rest. */
#include "stores/store.h"
#include "base/faultable.h"
#include "base/files.h"
#include "base/number.h"
#include "base/system.h"
#include "base/thread.h"
#include "core/ram.h"
#include "core/context.h"
#include "core/layout.h"
#include "core/plan.h"
#include "core/status.h"
#include "core/threads.h"
#include "watch/watch.h"
#include "stores/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(UMEM_STORE_NONE == UINTPTR_MAX, "the engine's null is that of offsets");

/* The public structs are {super, impl, ...}. */
static umemStore **impl_of(umemVirtual *ctx) { return (umemStore **)(void *)(ctx + 1); }
static umemStore *store_of(umemVirtual *ctx) { return *impl_of(ctx); }

bool umemStore_maps(umemStore const *store, uintptr_t adr, umemStatusType otherwise) {
  return !store->base || umemStore_offset(store, adr) < store->limit ||
         UMEM_FAIL(store->ctx, otherwise, "the address %#" PRIxPTR " is not in the mapping of %s",
                   adr, store->label);
}

/* ---- blocks ---- */

uintptr_t umemStoreContext_alloc(umemVirtual *ctx, size_t nbytes) {
  umemStore *store = store_of(ctx);
  return umemStore_address(store, umemStore_alloc(store, nbytes, umemStoreGranule, false));
}

uintptr_t umemStoreContext_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  umemStore *store = store_of(ctx);
  return umemStore_address(store, umemStore_alloc(store, nmemb * size, umemStoreGranule, true));
}

uintptr_t umemStoreContext_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  umemStore *store = store_of(ctx);
  if (!store->base || alignment <= store->alignment)
    return umemStore_address(store, umemStore_alloc(store, size, alignment, false));
  umemVirtual_fail(ctx, umemMemoryError,
                   "%s is mapped at a multiple of %" PRIu64 ": the alignment of %zu is too large",
                   store->label, store->alignment, alignment);
  return 0;
}

void umemStoreContext_free(umemVirtual *ctx, uintptr_t adr) {
  umemStore *store = store_of(ctx);
  if (umemStore_maps(store, adr, umemValueError))
    umemStore_free(store, umemStore_offset(store, adr));
}

uintptr_t umemStoreContext_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  umemStore *store = store_of(ctx);
  bool begins = umemStore_maps(store, adr, umemValueError) &&
                umemStore_begins(store, umemStore_offset(store, adr));
  return begins ? adr : umemStore_address(store, UMEM_STORE_NONE);
}

uintptr_t umemStoreContext_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size,
                                   size_t new_size) {
  umemStore *store = store_of(ctx);
  uint64_t moved = UMEM_STORE_NONE;
  if (umemStore_maps(store, adr, umemValueError))
    moved = umemStore_realloc(store, umemStore_offset(store, adr), old_size, new_size);
  return umemStore_address(store, moved);
}

void umemStoreContext_trim(umemVirtual *ctx, size_t keep) { umemStore_trim(store_of(ctx), keep); }

/* ---- bytes ---- */

void umemStoreContext_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  umemStore *store = store_of(ctx);
  if (umemStore_maps(store, adr, umemIndexError))
    umemStore_set(store, umemStore_offset(store, adr), c, nbytes);
}

void umemStoreContext_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *host,
                              uintptr_t dst_adr, size_t nbytes) {
  (void)host;
  umemStore *store = store_of(ctx);
  if (umemStore_maps(store, src_adr, umemIndexError))
    umemStore_read(store, umemStore_offset(store, src_adr), (void *)dst_adr, nbytes);
}

void umemStoreContext_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *host,
                                uintptr_t src_adr, size_t nbytes) {
  (void)host;
  umemStore *store = store_of(ctx);
  if (umemStore_maps(store, dst_adr, umemIndexError))
    umemStore_write(store, umemStore_offset(store, dst_adr), (void const *)src_adr, nbytes);
}

/* Linux finds pages that were written through a mapping without msync too; POSIX requires it. */
static bool flush_mapping(umemStore *store) {
  uint64_t length;
  if (!umemStore_settle(store) || !umemStore_measure(store, &length)) return false;
  if (length > store->limit) length = store->limit;
  return !length || UMEM_AGAIN(msync(store->base, length, MS_SYNC)) == 0 ||
         umemStore_fail(store, umemIOError, errno, "cannot flush the mapping of");
}

void umemStoreContext_flush(umemVirtual *ctx) {
  umemStore *store = store_of(ctx);
  if (!store->base || !store->writable || flush_mapping(store)) umemStore_flush(store);
}

/* ---- bytes for others ---- */

bool umemStoreContext_window(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                             umemWindow *window) {
  umemStore *store = store_of(ctx);
  uint64_t offset = umemStore_offset(store, adr);
  return offset < store->limit && umemStore_window(store, offset, nbytes, access, window);
}

bool umemStoreContext_direct_file(umemVirtual *ctx, uintptr_t adr, size_t nbytes,
                                  umemCapability access, umemDirectFile *file) {
  umemStore *store = store_of(ctx);
  uint64_t offset = umemStore_offset(store, adr);
  return offset < store->limit && umemStore_lend(store, offset, nbytes, access, file);
}

bool umemStoreContext_share(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle,
                            int *fd) {
  umemStore *store = store_of(ctx);
  return umemStore_maps(store, adr, umemIndexError) &&
         umemStore_describe(store, umemStore_offset(store, adr), nbytes, handle, fd);
}

bool umemStoreContext_attach(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr) {
  (void)fd;
  umemStore *store = store_of(ctx);
  *adr = umemStore_address(store, handle->offset);
  return handle->size <= store->limit && umemStore_has(store, handle);
}

/* ---- queries ---- */

void umemStoreContext_info(umemVirtual *ctx, umemInfo *info) {
  umemStore *store = store_of(ctx);
  umemStore_info(store, info);
  if (store->base) info->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
}

umemSearch umemStoreContext_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  umemStore *store = store_of(ctx);
  uint64_t offset = umemStore_offset(store, adr);
  umemSearch search =
      offset < store->limit ? umemStore_search(store, offset, found) : umemSearchNone;
  if (search == umemSearchFound) found->adr = umemStore_address(store, found->adr);
  return search;
}

bool umemStoreContext_usage(umemVirtual *ctx, umemUsage *usage) {
  umemStore *store = store_of(ctx);
  if (!umemLock_try(&store->lock)) return false;
  usage->nbytes = umemRange_totals(store->range).live_bytes;
  umemLock_release(&store->lock);
  return true;
}

bool umemStoreContext_locate(umemVirtual *ctx, uintptr_t adr, uint64_t where[3]) {
  umemStore *store = store_of(ctx);
  memcpy(where, store->identity, sizeof store->identity);
  where[2] = umemStore_offset(store, adr);
  return where[2] < store->limit;
}

/* ---- hints ---- */

/* What POSIX calls the hints about the cached bytes of a file. */
static int file_advice(umemAdvice advice, int device) {
  switch (advice) {
  case umemAdviceNormal:
    return POSIX_FADV_NORMAL;
  case umemAdviceSequential:
    return POSIX_FADV_SEQUENTIAL;
  case umemAdviceRandom:
    return POSIX_FADV_RANDOM;
  case umemAdviceUnneeded:
    return POSIX_FADV_DONTNEED;
  case umemAdvicePrefetch:
    return device == UMEM_CPU ? POSIX_FADV_WILLNEED : -1;
  default:
    return -1;
  }
}

/* A mapping has the hints of RAM: the kernel reads ahead by what it knows of the mapping. */
void umemStoreContext_advise(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice,
                             int device) {
  umemStore *store = store_of(ctx);
  if (store->base && advice != umemAdviceUnneeded) {
    umem_ram_advise(ctx, adr, nbytes, advice, device);
    return;
  }
  int theirs = file_advice(advice, device), error = 0;
  if (theirs < 0)
    umem_refuse_advice(ctx, advice, device);
  else if ((error = posix_fadvise(store->fd, (off_t)umemStore_offset(store, adr), (off_t)nbytes,
                                  theirs)))
    umemVirtual_fail(ctx, umemNotSupportedError, "the kernel refuses the hint: %s",
                     strerror(error));
}

/* ---- copies between two stores ----
 *
 * Copies a cached run from one file to another with pwrite from a mapping of the source.
 *
 * The way through a buffer copies the bytes twice. The destination is not mapped: its pages may be
 * new, and to write those through a mapping takes a page fault for each. A source that another
 * process cuts meanwhile ends the call with EFAULT and raises no signal; the way through a buffer
 * then says what has happened. */

/* Bytes. A longer run is copied by two threads. */
static size_t const pair_most = 4 << 20;
/* A shorter run takes less time through a buffer. */
static size_t const pair_least = 32 << 10;

/* The store of a context of the engine; NULL for any other one. */
static umemStore *store_if_any(umemVirtual *ctx) {
  return ctx->vptr->dtor == umemStore_dtor ? store_of(ctx) : NULL;
}

/* The ends stand for all of it: what the cache lacks comes by page faults. */
static bool is_cached(umemStore *store, uint64_t offset, size_t size) {
  return umemStore_is_cached(store, offset) && umemStore_is_cached(store, offset + size - 1);
}

/* Returns how many bytes it has copied: less than size if the cache lacks some, if the write is
 * short, or if something fails. */
static size_t copy_mapped(umemStore *from, uint64_t offset, umemStore *to, uint64_t target,
                          size_t size) {
  uint64_t length;
  umemWindow window = {0};
  if (umem_is_slow((uintptr_t)target, (uintptr_t)offset)) return 0;
  if (!umemStore_may_touch(to, target, size, umemWritable, &length) ||
      !is_cached(from, offset, size) ||
      !umemStore_window(from, offset, size, umemReadable, &window))
    return 0;
  uint64_t begin = umem_route_clock();
  size_t written = 0;
  while (written < size) {
    size_t most = umemStore_write_most(to, target + written, size - written);
    ssize_t n =
        pwrite(to->fd, (char const *)window.bytes + written, most, (off_t)(target + written));
    if (n <= 0) break; /* the way through a buffer says why */
    written += (size_t)n;
  }
  if (written) umem_note(umemWayPageCache, written, 1, begin);
  if (window.release) window.release(from->ctx, &window);
  return written;
}

/* ---- runs that are far from each other ----
 *
 * Through a mapping each of them would take a page fault, and where the cache lacks it the kernel
 * would read all that it reads ahead. One call reads or writes each run. The kernel learns of the
 * runs that come next, so that the disk has many of them to read at a time. */

/* From the beginning of a run to that of the next one, at least: a disk reads what is nearer sooner
 * in one go, with the gaps. Bytes of a run, at most. */
static size_t const far_from = 32 << 10, far_most = 1 << 20;
/* Cached runs that are nearer and shorter are copied sooner from a mapping, where one page fault
 * finds many of them; fewer are not worth a mapping. */
static size_t const mapped_below = 2 << 20, mapped_run = 16 << 10, least_mapped = 32;
enum { announced_runs = 256, sampled_runs = 4 };
static size_t const announced_bytes = 8 << 20;
/* What a thread of its own is worth. */
static size_t const far_part = 2 << 20;

typedef struct Runs {
  umemVirtual *ctx;
  bool reads;
  uintptr_t adr; /* of the first run, in ctx */
  char *memory;  /* and in memory */
  umemLayout const *layout;
  ptrdiff_t const *here, *there; /* strides in ctx and in memory */
  size_t count;
  unsigned pieces;
  bool over; /* a run has failed: take no other; atomic */
} Runs;

static Runs runs_of(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, uintptr_t dst_adr,
                    umemLayout const *layout) {
  bool reads = ctx == src;
  return (Runs){.ctx = ctx,
                .reads = reads,
                .adr = reads ? src_adr : dst_adr,
                .memory = (char *)(reads ? dst_adr : src_adr),
                .layout = layout,
                .here = reads ? layout->src_strides : layout->dst_strides,
                .there = reads ? layout->dst_strides : layout->src_strides,
                .count = umem_count_items(layout)};
}

/* From the beginning of a run to that of the nearest other one. */
static size_t nearest_of(Runs const *runs) {
  size_t nearest = SIZE_MAX;
  for (int k = 0; k < runs->layout->rank; k++) {
    size_t stride = (size_t)(runs->here[k] < 0 ? -runs->here[k] : runs->here[k]);
    nearest = umem_lesser(nearest, stride);
  }
  return nearest;
}

/* Whether less than half of the pages between the first run and the last one belong to runs. */
static bool are_far(Runs const *runs) {
  size_t const page = 4096;
  size_t nearest = nearest_of(runs), size = runs->layout->item_size;
  return nearest >= far_from && size <= far_most && nearest / 2 >= size + page;
}

/* How far a run is from the first one. */
static ptrdiff_t distance_of(Runs const *runs, ptrdiff_t const *strides, size_t run) {
  ptrdiff_t distance = 0;
  for (int k = runs->layout->rank - 1; k >= 0; run /= runs->layout->extents[k--])
    distance += (ptrdiff_t)(run % runs->layout->extents[k]) * strides[k];
  return distance;
}

static uint64_t place_of_run(Runs const *runs, size_t run) {
  return umemStore_offset(store_of(runs->ctx),
                          runs->adr + (uintptr_t)distance_of(runs, runs->here, run));
}

/* As far as some of them say; of few the first and the last one. */
static bool are_cached(Runs const *runs, size_t first, size_t end) {
  umemStore *store = store_of(runs->ctx);
  size_t count = end - first, stride = count < least_mapped ? count : count / sampled_runs;
  for (size_t run = first; run < end; run += stride)
    if (!umemStore_is_cached(store, place_of_run(runs, run))) return false;
  return umemStore_is_cached(store, place_of_run(runs, end - 1));
}

/* A write through a mapping takes a page fault for each page. */
static bool prefer_mapping(Runs const *runs) {
  return runs->reads && runs->count >= least_mapped && runs->layout->item_size <= mapped_run &&
         nearest_of(runs) < mapped_below && are_cached(runs, 0, runs->count);
}

/* Advice only. A write needs the pages of which it leaves a part. */
static void announce(Runs const *runs, size_t first, size_t end) {
  int fd = store_of(runs->ctx)->fd;
  size_t size = runs->layout->item_size;
  if (first >= end || are_cached(runs, first, end)) return;
  for (size_t run = first; run < end; run++) {
    off_t offset = (off_t)place_of_run(runs, run);
    posix_fadvise(fd, offset, runs->reads ? (off_t)size : 1, POSIX_FADV_WILLNEED);
    if (!runs->reads) posix_fadvise(fd, offset + (off_t)size - 1, 1, POSIX_FADV_WILLNEED);
  }
}

static bool copy_far_run(Runs const *runs, size_t run) {
  uint64_t before = umem_thread.failures;
  uintptr_t adr = runs->adr + (uintptr_t)distance_of(runs, runs->here, run);
  uintptr_t memory = (uintptr_t)(runs->memory + distance_of(runs, runs->there, run));
  if (runs->reads)
    umemStoreContext_copy_to(runs->ctx, adr, NULL, memory, runs->layout->item_size);
  else
    umemStoreContext_copy_from(runs->ctx, adr, NULL, memory, runs->layout->item_size);
  return umem_thread.failures == before;
}

/* The work of one thread. */
static void copy_far_piece(void *job, unsigned piece) {
  Runs *runs = job;
  size_t each = runs->count / runs->pieces, more = runs->count % runs->pieces;
  size_t run = piece * each + umem_lesser(piece, more), end = run + each + (piece < more);
  size_t batch = umem_lesser(announced_runs, announced_bytes / runs->layout->item_size);
  size_t known = umem_lesser(end, run + batch);
  announce(runs, run, known);
  for (size_t next = run; run < end && !__atomic_load_n(&runs->over, __ATOMIC_RELAXED); run++) {
    if (run == next) {
      next = known;
      known = umem_lesser(end, known + batch);
      announce(runs, next, known);
    }
    if (!copy_far_run(runs, run)) __atomic_store_n(&runs->over, true, __ATOMIC_RELAXED);
  }
}

/* Writes of one file exclude each other in the kernel. */
static void copy_far(Runs *runs) {
  size_t nbytes = runs->count * runs->layout->item_size;
  runs->pieces = runs->reads ? umem_parallel_pieces(nbytes, far_part, umemParallelMost) : 1;
  if (runs->pieces > runs->count) runs->pieces = (unsigned)runs->count;
  umem_parallel(runs->pieces, copy_far_piece, runs);
}

/* Whether the runs are far, and the CPU can address the other side, which is no adaptor. */
static bool plans_far(Runs const *runs, umemVirtual *other) {
  bool plain = !(other->capabilities & (umemOrdered | umemDeviceShared)) &&
               (runs->reads ? umem_cpu_writes(other) : umem_cpu_reads(other));
  return plain && !UMEM_SLOT(other, upstream) && are_far(runs) && !prefer_mapping(runs);
}

/* ---- plans ---- */

bool umemStoreContext_plan_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                                umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  size_t size = layout->item_size;
  if (layout->rank) {
    Runs runs = runs_of(ctx, src, src_adr, dst_adr, layout);
    return plans_far(&runs, runs.reads ? dst : src);
  }
  if (ctx != src || size < pair_least || size > pair_most) return false;
  umemStore const *from = store_of(src), *to = store_if_any(dst);
  return to && from->direct != umemDirectOn && to->direct != umemDirectOn;
}

bool umemStoreContext_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                                  umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  size_t size = layout->item_size;
  if (layout->rank) {
    Runs runs = runs_of(ctx, src, src_adr, dst_adr, layout);
    copy_far(&runs);
    return true;
  }
  umemStore *from = store_of(src), *to = store_of(dst);
  size_t done =
      copy_mapped(from, umemStore_offset(from, src_adr), to, umemStore_offset(to, dst_adr), size);
  if (done < size) umem_copy_buffered(src, src_adr + done, dst, dst_adr + done, size - done);
  return true;
}

/* ---- lists of runs ----
 *
 * Copies runs that the page cache has from a mapping of the file: a call of the system for each of
 * them takes longer than the bytes. */

enum { least_listed = 32 }; /* fewer runs take less time by calls */
static size_t const listed_run = 16 << 10;
/* Bytes. Several threads read more of them sooner. */
static size_t const most_listed = 8 << 20;

typedef struct Listed {
  umemCopyRun const *runs;
  size_t count;
  uintptr_t moved; /* from an address in the context to that in the mapping */
} Listed;

static void copy_listed(void *data) {
  Listed const *it = data;
  for (umemCopyRun const *run = it->runs; run < it->runs + it->count; run++)
    memcpy((void *)run->dst_adr, (void const *)(run->src_adr + it->moved), run->nbytes);
}

/* Whether all runs are short and wait; sets *span to the bytes from the first one to the end of the
 * last one. */
static bool are_listed(umemCopyRun const *runs, size_t count, umemFaultableRange *span) {
  uintptr_t first = UINTPTR_MAX, end = 0;
  size_t nbytes = 0;
  for (size_t i = 0; i < count; nbytes += runs[i++].nbytes) {
    if (runs[i].state != umemRunWaits || runs[i].nbytes > listed_run) return false;
    if (nbytes > most_listed || runs[i].nbytes > UINTPTR_MAX - runs[i].src_adr) return false;
    first = umem_lesser(first, runs[i].src_adr);
    end = umem_greater(end, runs[i].src_adr + runs[i].nbytes);
  }
  *span = (umemFaultableRange){first, end - first};
  return nbytes <= most_listed;
}

/* As far as some of them say. */
static bool are_listed_cached(umemStore *store, umemCopyRun const *runs, size_t count) {
  size_t const stride = count / sampled_runs;
  for (size_t i = 0; i < count; i += stride)
    if (!umemStore_is_cached(store, umemStore_offset(store, runs[i].src_adr))) return false;
  return true;
}

static void announce_listed(umemVirtual *src, umemCopyRun const *runs, size_t count) {
  umemStore *store = store_of(src);
  for (size_t i = 0; i < count; i++)
    if (runs[i].state == umemRunWaits)
      posix_fadvise(store->fd, (off_t)umemStore_offset(store, runs[i].src_adr),
                    (off_t)runs[i].nbytes, POSIX_FADV_WILLNEED);
}

static bool are_done(umemCopyRun const *runs, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (runs[i].state != umemRunDone) return false;
  return true;
}

/* What a ring leaves before its time is over is read by calls. */
static void copy_cold_runs(umemVirtual *src, umemVirtual *dst, umemCopyRun *runs, size_t count) {
  umemStore *store = store_of(src);
  size_t passed = umem_is_plain_host(dst) ? umemStore_read_ring(store, runs, count) : 0;
  if (passed && are_done(runs, passed) && (passed == count || umem_thread.until))
    umem_thread.stopped = passed < count;
  else
    umem_copy_each_run(src, dst, runs, count,
                       store->direct == umemDirectOn ? NULL : announce_listed);
}

/* The file may become shorter meanwhile, and the rest of a page reads as zeros then: calls copy the
 * runs again, and say which one has failed. */
bool umemStoreContext_copy_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst,
                                umemCopyRun *runs, size_t count) {
  umemStore *store = store_of(ctx);
  uint64_t length;
  umemWindow window = {0};
  umemFaultableRange span;
  if (ctx != src || !umem_cpu_writes(dst) || count < least_listed) return false;
  if (store->direct == umemDirectOn || !are_listed_cached(store, runs, count)) {
    copy_cold_runs(src, dst, runs, count);
    return true;
  }
  if (!umem_is_plain_host(dst) || umem_is_watched() || !are_listed(runs, count, &span))
    return false;
  uint64_t offset = umemStore_offset(store, span.first);
  if (!umemStore_window(store, offset, span.size, umemReadable, &window)) return false;
  uintptr_t base = (uintptr_t)window.bytes;
  umemFaultableRange const ranges[2] = {{base, span.size}, {0}};
  Listed listed = {runs, count, base - span.first};
  bool done = umem_access_faultable(ranges, copy_listed, &listed) &&
              umemStore_may_touch(store, offset, span.size, umemReadable, &length);
  if (window.release) window.release(ctx, &window);
  for (size_t i = 0; done && i < count; i++) runs[i].state = umemRunDone;
  return done;
}

/* ---- mapping ----
 *
 * The file is mapped once, far beyond its end, so that growth needs no further call and blocks
 * never move. The kernel lets a page be used as soon as the file reaches it. */

/* Bytes of address space for a mapping. Builds for emulators that pay for each page of it take
 * fewer. */
#ifndef UMEM_MMAP_ROOM
#define UMEM_MMAP_ROOM (UINT64_C(1) << 40)
#endif
static uint64_t const room_wanted = UMEM_MMAP_ROOM;
static uint64_t const room_spare = 1 << 16; /* beyond the file: less is of no use */

/* The mapping begins at a multiple of this, where there is space enough, so that blocks aligned in
 * the file are aligned in memory. */
static uint64_t const base_alignment = 1 << 30;

/* Maps room bytes of the file at a multiple of alignment; NULL with errno set otherwise. */
static char *map_aligned(umemStore const *store, size_t room, size_t alignment) {
  char *start =
      mmap(NULL, room + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return NULL;
  size_t below = -(uintptr_t)start & (alignment - 1);
  char *base = start + below;
  int protection = PROT_READ | (store->writable ? PROT_WRITE : 0);
  int how = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
  if (mmap(base, room, protection, how, store->fd, 0) == MAP_FAILED) {
    int error = errno;
    munmap(start, room + alignment);
    errno = error;
    return NULL;
  }
  /* The rest on either side is only addresses: if it cannot be unmapped, nothing is lost. */
  if (below) munmap(start, below);
  munmap(base + room, alignment - below);
  return base;
}

/* Maps room_wanted bytes, or less where there is less address space, but always more than the file
 * has. */
static bool map(umemStore *store) {
  uint64_t length;
  if (!umemStore_measure(store, &length)) return false;
  uint64_t needed = (store->empties ? 0 : length & ~(room_spare - 1)) + 2 * room_spare;
  uint64_t room = needed > room_wanted / 2 ? 2 * needed : room_wanted;
  for (; !store->base && room >= needed; room = room / 2 & ~(room_spare - 1)) {
    store->alignment = room < base_alignment ? room_spare : base_alignment;
    store->base = map_aligned(store, room, store->alignment);
    store->limit = room;
  }
  if (store->base) return true;
  return umemStore_fail(store, errno == ENOMEM || errno == EAGAIN ? umemMemoryError : umemIOError,
                        errno, "cannot map");
}

/* ---- construction ---- */

/* What a kind of offsets, or of pointers, needs of the open file. The space of pointers remains the
 * context's own: two mappings of one file have different addresses for one byte. */
static bool prepare(umemVirtual *ctx, umemKind const *kind, umemStore *store) {
  if (!umemStore_identify(store, store->identity)) return false;
  if (kind->capabilities & umemFaultable && !map(store)) return false;
  if (kind->capabilities & umemOffsets) memcpy(ctx->space, store->identity, sizeof ctx->space);
  return !kind->start || kind->start(ctx, NULL);
}

static umemStore *open_store(umemVirtual *ctx, umemKind const *kind, umemStoreWish const *wish) {
  bool mapped = kind->capabilities & umemFaultable;
  if (wish->source == umemStoreReplaces)
    return umemStore_replace(ctx, wish->filename, wish->options);
  if (wish->source == umemStoreTakesOver)
    return umemStore_take_over(ctx, wish->fd, wish->options, mapped);
  return umemStore_open(ctx, wish->filename, wish->mode, wish->options, mapped);
}

umemStatusType umemStore_construct(void *ctx, umemKind const *kind, umemStoreWish const *wish) {
  umemVirtual *self = ctx;
  uint64_t before = umem_thread.failures;
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  memset(ctx, 0, kind->scheme.context_size);
  umem_construct(self, kind, NULL);
  umemStore *store = *impl_of(self) = open_store(self, kind, wish);
  if (store && prepare(self, kind, store) && umemStore_start(store) &&
      (wish->waits || umemStore_commit(store))) {
    self->capabilities |= umemStore_capabilities(store);
    self->host = &store->host;
    umemLive_add(&store->live, self);
    return umemOK;
  }
  umemStore_close(store);
  *impl_of(self) = NULL;
  umem_construct_failed(self);
  return umem_result(before);
}

void umemStore_dtor(umemVirtual *ctx) {
  umemLive_remove(&store_of(ctx)->live);
  umemStore_close(store_of(ctx));
}

/* ---- by name: "file:scratch.bin?mode=w+", "mmap:array.bin?mode=r" ---- */

umemOption const umem_store_path = {.name = "path",
                                    .kind = umemPathOption,
                                    .help = "of the file; without one it is a scratch file"};

static char const *const modes[] = {"r", "r+", "w", "w+", "a", "a+"};

_Static_assert(umemReserveAuto == 0 && umemReserveNone == 1, "the indices of the words of reserve");
_Static_assert(umemReuseAuto == 0 && umemReuseNo == 2, "those of reuse");
_Static_assert(umemDirectAuto == 0 && umemDirectOn == 1 && umemDirectOff == 2, "those of direct");

umemOption const umem_store_options[umemStoreOptionCount] = {
    {.name = "mode",
     .kind = umemWordOption,
     .words = "r r+ w w+ a a+",
     .help = "as of umemFile_ctor; default: r+, for a scratch file w+"},
    UMEM_OPTION_WORD(umemFileOptions, reserve, "reserve", "auto none",
                     "disk space when a block is allocated, or when it is written; default: auto"),
    UMEM_OPTION_WORD(umemFileOptions, direct, "direct", "auto on off",
                     "long transfers around the page cache; default: auto"),
    UMEM_OPTION_WORD(
        umemFileOptions, reuse, "reuse", "auto yes no",
        "bytes of an array of a named file that has ended, while it is open; auto: C reuses"),
};

umemFileOptions const umem_store_defaults = UMEM_FILE_OPTIONS_INIT;

static char const *mode_of(umemOptionValue const *place, umemOptionValue const *given) {
  if (given[0].given) return modes[given[0].number];
  return place->given ? "r+" : "w+";
}

umemStatusType umemStore_construct_named(void *ctx, void *upstream, umemOptionValue const *place,
                                         umemOptionValue const *given, void *user) {
  (void)upstream;
  umemFileOptions options;
  if (!umemKind_read(user, given, &options)) return umemValueError;
  umemStoreWish wish = {
      .filename = place->text, .mode = mode_of(place, given), .options = &options, .waits = true};
  return umemStore_construct(ctx, user, &wish);
}

umemStatusType umemStore_commit_named(void *ctx, void *user) {
  (void)user;
  uint64_t before = umem_thread.failures;
  umemStore_commit(store_of(ctx));
  return umem_result(before);
}
