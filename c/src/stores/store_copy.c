/* store_copy.c - copies of files by ways of their own: between two files, of runs that are far from
 * each other, and of lists of runs. */
#include "base/faultable.h"
#include "base/files.h"
#include "base/system.h"
#include "core/layout.h"
#include "core/copy.h"
#include "core/threads.h"
#include "stores/store.h"

#include <fcntl.h>

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
  return ctx->vptr->dtor == umemStoreContext_dtor ? umemStore_of(ctx) : NULL;
}

/* The ends stand for all of it: what the cache lacks comes by page faults. */
static bool is_cached(umemStore *store, uint64_t offset, size_t size) {
  return umemStore_is_cached(store, offset) && umemStore_is_cached(store, offset + size - 1);
}

/* Returns how many bytes it has copied: less than size if the cache lacks some, if the write is
 * short, or if something fails. */
static size_t copy_mapped(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                          size_t size) {
  umemStore *from = umemStore_of(src), *to = umemStore_of(dst);
  uint64_t offset = umemStore_offset(from, src_adr), target = umemStore_offset(to, dst_adr), length;
  umemWindow window = {0};
  if (umem_is_slow((uintptr_t)target, (uintptr_t)offset)) return 0;
  if (!umemStore_may_touch(to, target, size, umemWritable, &length) ||
      !is_cached(from, offset, size) ||
      !umemStoreContext_window(src, src_adr, size, umemReadable, &window))
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
  if (window.release) window.release(src, &window);
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
/* Cached runs that are short, and nearer than the first of these, are copied sooner from a mapping,
 * where one page fault finds many of them; fewer are not worth a mapping. Those that are nearer
 * than the second take a page fault each, but only once. The farther they are from each other, the
 * more tables of pages are new: it takes as long as a call for every 100 KiB. So nearly as many
 * calls come before. */
static size_t const mapped_at_once = 256 << 10, mapped_below = 2 << 20;
static size_t const mapped_run = 16 << 10, least_mapped = 32, fault_distance = 100 << 10;
/* On a tmpfs a page fault takes as long as so many calls, and finds no other run. */
static size_t const far_in_ram = 16 << 10, faults_in_ram = 8;
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
  for (int k = 0; k < runs->layout->rank; k++)
    nearest = umem_lesser(nearest, umem_stride_length(runs->here[k]));
  return nearest;
}

/* Whether less than half of the pages between the first run and the last one belong to runs. */
static bool are_far(Runs const *runs) {
  size_t const page = 4096;
  size_t nearest = nearest_of(runs), size = runs->layout->item_size;
  size_t from = umemStore_of(runs->ctx)->takes_ram ? far_in_ram : far_from;
  return nearest >= from && size <= far_most && nearest / 2 >= size + page;
}

/* How far a run is from the first one. */
static ptrdiff_t distance_of(Runs const *runs, ptrdiff_t const *strides, size_t run) {
  ptrdiff_t distance = 0;
  for (int k = runs->layout->rank - 1; k >= 0; run /= runs->layout->extents[k--])
    distance += (ptrdiff_t)(run % runs->layout->extents[k]) * strides[k];
  return distance;
}

static uint64_t place_of_run(Runs const *runs, size_t run) {
  return umemStore_offset(umemStore_of(runs->ctx),
                          runs->adr + (uintptr_t)distance_of(runs, runs->here, run));
}

/* As far as some of them say; of few the last one. */
static bool are_cached(Runs const *runs, size_t first, size_t end) {
  umemStore *store = umemStore_of(runs->ctx);
  size_t stride = (end - first) / sampled_runs;
  for (size_t run = first; end - first >= least_mapped && run < end; run += stride)
    if (!umemStore_is_cached(store, place_of_run(runs, run))) return false;
  return umemStore_is_cached(store, place_of_run(runs, end - 1));
}

static bool are_near_enough(Runs const *runs) {
  size_t nearest = nearest_of(runs);
  uint64_t read = __atomic_load_n(&umemStore_of(runs->ctx)->far_runs, __ATOMIC_RELAXED);
  if (umemStore_of(runs->ctx)->takes_ram && nearest < mapped_at_once)
    return read / faults_in_ram >= runs->count;
  return nearest < mapped_at_once ||
         (nearest < mapped_below && read / (nearest / fault_distance - 1) >= runs->count);
}

/* A write through a mapping takes a page fault for each page. */
static bool prefer_mapping(Runs const *runs) {
  return runs->reads && runs->count >= least_mapped && runs->layout->item_size <= mapped_run &&
         are_near_enough(runs) && are_cached(runs, 0, runs->count);
}

/* Advice only. A write needs the pages of which it leaves a part. */
static void announce(Runs const *runs, size_t first, size_t end) {
  int fd = umemStore_of(runs->ctx)->fd;
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
  if (runs->reads)
    __atomic_fetch_add(&umemStore_of(runs->ctx)->far_runs, runs->count, __ATOMIC_RELAXED);
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
  umemStore const *from = umemStore_of(src), *to = store_if_any(dst);
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
  size_t done = copy_mapped(src, src_adr, dst, dst_adr, size);
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
  umemCopyRun *runs;
  size_t count;
  uintptr_t moved; /* from an address in the context to that in the mapping */
} Listed;

static void copy_listed(void *data) {
  Listed const *it = data;
  for (umemCopyRun *run = it->runs; run < it->runs + it->count; run++) {
    memcpy((void *)run->dst_adr, (void const *)(run->src_adr + it->moved), run->nbytes);
    run->state = umemRunDone;
  }
}

/* Whether all runs are short and wait; sets *span to the bytes from the first one to the end of the
 * last one. */
static bool are_listed(umemCopyRun const *runs, size_t count, umemFaultableRange *span) {
  uintptr_t first = UINTPTR_MAX, end = 0;
  size_t nbytes = 0, i = 0;
  for (; i < count && runs[i].state == umemRunWaits && runs[i].nbytes <= listed_run; i++) {
    nbytes += runs[i].nbytes;
    first = umem_lesser(first, runs[i].src_adr);
    end = umem_greater(end, runs[i].src_adr + runs[i].nbytes);
  }
  *span = (umemFaultableRange){first, end - first};
  return i == count && nbytes <= most_listed;
}

/* As far as some of them say. */
static bool are_listed_cached(umemStore *store, umemCopyRun const *runs, size_t count) {
  size_t const stride = count / sampled_runs;
  for (size_t i = 0; i < count; i += stride)
    if (!umemStore_is_cached(store, umemStore_offset(store, runs[i].src_adr))) return false;
  return true;
}

static bool are_in_order(umemCopyRun const *runs, size_t count) {
  size_t i = 1;
  while (i < count && runs[i - 1].src_adr <= runs[i].src_adr) i++;
  return i >= count;
}

static void announce_listed(umemVirtual *src, umemCopyRun const *runs, size_t count) {
  umemStore *store = umemStore_of(src);
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
  umemStore *store = umemStore_of(src);
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
  umemStore *store = umemStore_of(ctx);
  uint64_t length;
  umemWindow window = {0};
  umemFaultableRange span;
  if (ctx != src || !umem_cpu_writes(dst) || count < least_listed) return false;
  if (store->direct == umemDirectOn || !are_listed_cached(store, runs, count)) {
    bool in_order = are_in_order(runs, count);
    if (in_order) copy_cold_runs(src, dst, runs, count);
    return in_order;
  }
  if (!umem_is_plain_host(dst) || umem_is_watched() || !are_listed(runs, count, &span))
    return false;
  uint64_t offset = umemStore_offset(store, span.first);
  if (!umemStoreContext_window(ctx, span.first, span.size, umemReadable, &window)) return false;
  uintptr_t base = (uintptr_t)window.bytes;
  umemFaultableRange const ranges[2] = {{base, span.size}, {0}};
  Listed listed = {runs, count, base - span.first};
  bool done = umem_access_faultable(ranges, copy_listed, &listed) &&
              umemStore_may_touch(store, offset, span.size, umemReadable, &length);
  if (window.release) window.release(ctx, &window);
  for (size_t i = 0; !done && i < count; i++) runs[i].state = umemRunWaits;
  return done;
}
