/* ram.c - copies between memory that the CPU can address, and the methods of contexts whose memory
 * is RAM of this process.
 *
 * Several threads share long copies: one processor moves a fraction of what the memory of the
 * machine does. */
#include "core/ram.h"
#include "base/number.h"
#include "base/system.h"
#include "core/context.h"
#include "core/hook.h"
#include "core/layout.h"
#include "core/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What a thread of its own is worth. A thread that is done with one piece takes the next. */
static size_t const piece_bytes = 2 << 20;

/* ==== runs of bytes, and methods ==== */

/* A thread that sleeps takes as long to wake as one thread copies some MiB within the caches. */
static size_t const shared_from = 8 << 20;

/* ---- a run, in pieces ---- */

typedef struct Run {
  char *dst;
  char const *src; /* or NULL: every byte becomes value */
  int value;
  size_t nbytes;
  size_t next;      /* the first byte of the next piece; atomic */
  umemMeter *meter; /* or NULL */
  pthread_t caller;
  cpu_set_t near; /* the processors of its node */
  bool has_near;
} Run;

static void do_pieces(Run *run) {
  size_t first;
  while (!(run->meter && umemMeter_is_over(run->meter)) &&
         (first = __atomic_fetch_add(&run->next, piece_bytes, __ATOMIC_RELAXED)) < run->nbytes) {
    size_t n = umem_lesser(run->nbytes - first, piece_bytes);
    if (run->src)
      umem_copy_bytes(run->dst + first, run->src + first, n);
    else
      memset(run->dst + first, run->value, n);
    if (run->meter) umemMeter_add(run->meter, first, n);
  }
}

/* Memory that no thread has touched yet comes to the node of the caller, as if it did all. */
static void do_near(void *job, unsigned thread) {
  (void)thread;
  Run *run = job;
  cpu_set_t before;
  bool helps = run->has_near && !pthread_equal(run->caller, pthread_self());
  bool moved = helps && umemNear_enter(&run->near, &before);
  do_pieces(run);
  if (moved) umemNear_leave(&before);
}

static __attribute__((noinline)) void share(Run *run) {
  unsigned threads = umem_parallel_pieces(run->nbytes, piece_bytes, umemParallelMost);
  run->caller = pthread_self();
  run->has_near = threads > 1 && umemNear_here(&run->near);
  umem_parallel(threads, do_near, run);
}

static bool share_job(void *job) {
  Run *run = job;
  share(run);
  return !umemMeter_is_over(run->meter);
}

static bool is_moved(void *job) {
  (void)job;
  return true;
}

/* A step of its own for the route of the copy: it has more bytes than the piece. */
static void share_watched(Run *run) {
  umemStep step = {.way = umemWayMemcpy, .nbytes = run->nbytes};
  if (umem_step_hook(&step, share_job, run)) return;
  step.nbytes = run->meter->arrived;
  umem_step_hook(&step, is_moved, run);
}

static void copy_shared(umemVirtual *ctx, char *dst, char const *src, size_t nbytes) {
  Run run = {.dst = dst, .src = src, .nbytes = nbytes};
  if (umem_thread.meter) run.meter = umemMeter_find(ctx, (uintptr_t)src, (uintptr_t)dst, nbytes);
  if (run.meter) run.nbytes = umemMeter_take(run.meter);
  if (run.meter && umem_is_watched())
    share_watched(&run);
  else
    share(&run);
}

/* Apart, so that a short copy is a bare jump to memmove. */
static __attribute__((noinline)) void copy_long(umemVirtual *ctx, char *dst, char const *src,
                                                size_t nbytes) {
  uintptr_t to = (uintptr_t)dst, from = (uintptr_t)src;
  if ((to < from ? from - to : to - from) < nbytes)
    memmove(dst, src, nbytes); /* pieces of several threads would overwrite one another's source */
  else if (nbytes < shared_from)
    umem_copy_bytes(dst, src, nbytes);
  else
    copy_shared(ctx, dst, src, nbytes);
}

/* ---- methods ---- */

void umem_ram_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  (void)ctx;
  if (nbytes < shared_from)
    memset((void *)adr, c, nbytes);
  else
    share(&(Run){.dst = (char *)adr, .value = c, .nbytes = nbytes});
}

void umem_ram_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes) {
  (void)that;
  if (nbytes <= umemShortRun)
    memmove((void *)dst_adr, (void const *)src_adr, nbytes);
  else
    copy_long(ctx, (char *)dst_adr, (char const *)src_adr, nbytes);
}

void umem_ram_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes) {
  umem_ram_copy_to(ctx, src_adr, that, dst_adr, nbytes);
}

void umem_ram_info(umemVirtual *ctx, umemInfo *info) {
  (void)ctx;
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  info->page_size = page;
  info->capacity = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
  info->available = umemMemory_available();
}

bool umem_ram_has(umemVirtual *ctx, size_t nbytes) {
  uint64_t left;
  return umemMemory_has(nbytes, &left) ||
         UMEM_FAIL(ctx, umemMemoryError,
                   "%s cannot allocate %zu bytes: the machine and the control groups of the "
                   "process have %" PRIu64 " left",
                   umem_get_device_name(ctx), nbytes, left);
}

/* ---- hints ---- */

static char const *const names[] = {"normal",   "sequential", "random",      "unneeded",
                                    "prefetch", "prefer",     "read mostly", "accessed by"};

umemStatusType umem_refuse_advice(umemVirtual *ctx, umemAdvice advice, int device) {
  if (device == UMEM_CPU)
    return umemVirtual_fail(ctx, umemNotSupportedError,
                            "memory of %s knows no hint \"%s\" for the CPU",
                            umem_get_device_name(ctx), names[advice]);
  return umemVirtual_fail(ctx, umemNotSupportedError,
                          "memory of %s knows no hint \"%s\" for GPU %d", umem_get_device_name(ctx),
                          names[advice], device);
}

_Static_assert(MADV_NORMAL == POSIX_FADV_NORMAL && MADV_SEQUENTIAL == POSIX_FADV_SEQUENTIAL &&
                   MADV_RANDOM == POSIX_FADV_RANDOM && MADV_WILLNEED == POSIX_FADV_WILLNEED,
               "memory and files have the same hints");

int umem_kernel_advice(umemAdvice advice, int device, int unneeded) {
  switch (advice) {
  case umemAdviceNormal:
    return MADV_NORMAL;
  case umemAdviceSequential:
    return MADV_SEQUENTIAL;
  case umemAdviceRandom:
    return MADV_RANDOM;
  case umemAdviceUnneeded:
    return unneeded;
  case umemAdvicePrefetch:
    return device == UMEM_CPU ? MADV_WILLNEED : -1;
  default:
    return -1;
  }
}

#ifdef MADV_COLD
enum { cold = MADV_COLD };
#else
enum { cold = -1 };
#endif

bool umem_ram_zero_pages(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  (void)ctx;
  return !madvise((void *)adr, nbytes, MADV_DONTNEED);
}

/* The kernel takes whole pages: all that contain some of the bytes. */
void umem_ram_advise(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice,
                     int device) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = adr & ~(page - 1);
  int theirs = umem_kernel_advice(advice, device, cold);
  if (theirs < 0) {
    umem_refuse_advice(ctx, advice, device);
  } else if (madvise((void *)first, adr + nbytes - first, theirs) != 0) {
    umemStatusType type = errno == ENOMEM ? umemMemoryError : umemNotSupportedError;
    umemVirtual_fail(ctx, type, "the kernel refuses the hint \"%s\" for %zu bytes at 0x%jx: %s",
                     names[advice], nbytes, (uintmax_t)adr, UMEM_WORDS(errno));
  }
}

/* ==== items, by tiles that fit into the cache ====
 *
 * Where the dimension with the smallest stride is not the same on both sides, a loop over one
 * side touches another line of the cache, or another page, for each item of the other. Therefore
 * such a layout is copied in tiles: from the source to a small buffer in the order of the
 * source, and from there to the destination in its order. Both sides are read and written by
 * runs, and a tile touches few pages. (M. Lam, E. Rothberg, M. Wolf: "The Cache Performance and
 * Optimizations of Blocked Algorithms", ASPLOS 1991, on copying tiles.) */

enum { line = 64, page_bytes = 4096, cached_lines = (32 << 10) / line };
enum { tile_bytes = 32 << 10, rows_ahead = 6 };

/* Rows of the buffer from this length on are a line longer: those of a power of two would share
 * a few sets of the cache. */
enum { padded_from = 4 * line, buffer_bytes = tile_bytes + tile_bytes / 4 };

/* An array of this size fits the second cache. */
static size_t const cached_bytes = 256 << 10;
/* An item of this size fills lines by itself. */
static size_t const long_item = 256;
/* Of a block of tiles. */
static size_t const block_bytes = 1 << 20;

/* ---- loops over items ---- */

/* The dimensions of one loop nest, the outermost first. */
typedef struct Nest {
  int rank;
  size_t item_size;
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t src[UMEM_MAX_RANK], dst[UMEM_MAX_RANK];
} Nest;

#define CASE_OF(bytes)                                                                             \
  case bytes:                                                                                      \
    for (; n; n--, to += dst_stride, from += src_stride) memcpy(dst + to, src + from, bytes);      \
    break

static void copy_row(char *dst, ptrdiff_t dst_stride, char const *src, ptrdiff_t src_stride,
                     size_t n, size_t item_size) {
  ptrdiff_t to = 0, from = 0;
  switch (item_size) { /* the sizes that compile to plain loads and stores */
    CASE_OF(1);
    CASE_OF(2);
    CASE_OF(4);
    CASE_OF(8);
    CASE_OF(12);
    CASE_OF(16);
    CASE_OF(24);
    CASE_OF(32);
    CASE_OF(64);
  default:
    for (; n; n--, to += dst_stride, from += src_stride)
      umem_copy_bytes(dst + to, src + from, item_size);
    break;
  }
}

/* The last dimension of a nest, which is a run on both sides in the half of all nests of tiles. */
static void copy_last(Nest const *nest, char *dst, char const *src) {
  int k = nest->rank - 1;
  ptrdiff_t item = (ptrdiff_t)nest->item_size;
  if (nest->dst[k] == item && nest->src[k] == item)
    umem_copy_bytes(dst, src, nest->extents[k] * nest->item_size);
  else
    copy_row(dst, nest->dst[k], src, nest->src[k], nest->extents[k], nest->item_size);
}

/* Fetches the lines of a row that is copied soon: the processor does not guess them, because
 * the rows of a tile are far from each other and short. */
static inline void prefetch_row(char const *row, ptrdiff_t stride, size_t n, bool writes) {
  size_t bytes = (size_t)(stride < 0 ? -stride : stride) * n;
  if (bytes > tile_bytes / 8) return;
  if (stride < 0) row += stride * (ptrdiff_t)(n - 1);
  for (size_t at = 0; at < bytes; at += line) {
    if (writes)
      __builtin_prefetch(row + at, 1);
    else
      __builtin_prefetch(row + at, 0);
  }
}

/* The last two dimensions of a nest of a tile. from_source: the source is far away, otherwise
 * the destination. */
static void copy_rows(Nest const *nest, char *dst, char const *src, bool from_source) {
  int k = nest->rank - 2;
  size_t n = nest->extents[k + 1];
  for (size_t i = 0; i < nest->extents[k]; i++) {
    if (from_source)
      prefetch_row(src + rows_ahead * nest->src[k], nest->src[k + 1], n, false);
    else
      prefetch_row(dst + rows_ahead * nest->dst[k], nest->dst[k + 1], n, true);
    copy_last(nest, dst, src);
    dst += nest->dst[k], src += nest->src[k];
  }
}

static void copy_box(Nest const *nest, char *dst, char const *src, int k, bool from_source) {
  if (k >= nest->rank - 2) {
    if (k == nest->rank - 1)
      copy_last(nest, dst, src);
    else
      copy_rows(nest, dst, src, from_source);
    return;
  }
  for (size_t i = 0; i < nest->extents[k]; i++)
    copy_box(nest, dst + (ptrdiff_t)i * nest->dst[k], src + (ptrdiff_t)i * nest->src[k], k + 1,
             from_source);
}

static void add_dimension(Nest *nest, size_t extent, ptrdiff_t src, ptrdiff_t dst) {
  nest->extents[nest->rank] = extent;
  nest->src[nest->rank] = src;
  nest->dst[nest->rank] = dst;
  nest->rank++;
}

static void copy_dims(char *dst, char const *src, umemLayout const *layout, int k) {
  if (k == layout->rank - 1) {
    copy_row(dst, layout->dst_strides[k], src, layout->src_strides[k], layout->extents[k],
             layout->item_size);
    return;
  }
  for (size_t i = 0; i < layout->extents[k]; i++)
    copy_dims(dst + (ptrdiff_t)i * layout->dst_strides[k],
              src + (ptrdiff_t)i * layout->src_strides[k], layout, k + 1);
}

/* ---- tiles ---- */

/* How a layout is cut. The dimensions are those of the layout, by falling strides of the
 * destination. */
typedef struct Tiling {
  umemLayout const *layout;
  size_t tile[UMEM_MAX_RANK];   /* extents of a tile */
  int by_source[UMEM_MAX_RANK]; /* the dimensions by falling strides of the source */
} Tiling;

static void sort_by_source(Tiling *tiling) {
  ptrdiff_t const *strides = tiling->layout->src_strides;
  for (int i = 0; i < tiling->layout->rank; i++) {
    int k = i;
    for (; k > 0 &&
           umem_stride_length(strides[tiling->by_source[k - 1]]) < umem_stride_length(strides[i]);
         k--)
      tiling->by_source[k] = tiling->by_source[k - 1];
    tiling->by_source[k] = i;
  }
}

/* Halves dimensions until a tile fits into the buffer: first those whose items are far from each
 * other on both sides, so that runs stay long on each. */
static void shape_tile(Tiling *tiling) {
  umemLayout const *layout = tiling->layout;
  size_t most = tile_bytes / layout->item_size, count = umem_count_items(layout);
  memcpy(tiling->tile, layout->extents, (size_t)layout->rank * sizeof *tiling->tile);
  while (count > most) {
    int k = umem_widest(layout, tiling->tile);
    count /= tiling->tile[k];
    tiling->tile[k] = (tiling->tile[k] + 1) / 2;
    count *= tiling->tile[k];
  }
}

/* The strides of a tile in the buffer, in the order of the destination. */
static void pack_strides(Tiling const *tiling, size_t const *extents, ptrdiff_t *strides) {
  int last = tiling->layout->rank - 1;
  size_t stride = tiling->layout->item_size;
  for (int k = last; k >= 0; k--) {
    strides[k] = (ptrdiff_t)stride;
    stride *= extents[k];
    if (k == last && stride >= padded_from) stride += line;
  }
}

/* Few items in the innermost dimension cost more for the loop than for the items. All of the
 * tile is in the cache, so the order matters little. */
static void lengthen_rows(Nest *nest) {
  int last = nest->rank - 1;
  if (last < 1 || nest->extents[last] >= 8 || nest->extents[last - 1] <= nest->extents[last])
    return;
  size_t extent = nest->extents[last];
  ptrdiff_t src = nest->src[last], dst = nest->dst[last];
  nest->extents[last] = nest->extents[last - 1], nest->extents[last - 1] = extent;
  nest->src[last] = nest->src[last - 1], nest->src[last - 1] = src;
  nest->dst[last] = nest->dst[last - 1], nest->dst[last - 1] = dst;
}

/* One tile, of these extents. */
static void copy_tile(Tiling const *tiling, size_t const *extents, char *dst, char const *src) {
  umemLayout const *layout = tiling->layout;
  _Alignas(line) char buffer[buffer_bytes];
  ptrdiff_t packed[UMEM_MAX_RANK];
  Nest in, out;
  in.rank = out.rank = 0;
  in.item_size = out.item_size = layout->item_size;
  pack_strides(tiling, extents, packed);
  for (int i = 0; i < layout->rank; i++) {
    int k = tiling->by_source[i];
    if (extents[k] > 1) add_dimension(&in, extents[k], layout->src_strides[k], packed[k]);
    if (extents[i] > 1) add_dimension(&out, extents[i], packed[i], layout->dst_strides[i]);
  }
  if (!in.rank) add_dimension(&in, 1, 0, 0), add_dimension(&out, 1, 0, 0);
  lengthen_rows(&in);
  copy_box(&in, buffer, src, 0, true);
  copy_box(&out, dst, buffer, 0, false);
}

static void copy_tiled(Tiling *tiling, char *dst, char const *src) {
  umemLayout const *layout = tiling->layout;
  size_t at[UMEM_MAX_RANK] = {0}, extents[UMEM_MAX_RANK] = {0};
  for (int k;;) {
    char *to = dst;
    char const *from = src;
    for (k = 0; k < layout->rank; k++) {
      size_t rest = layout->extents[k] - at[k];
      extents[k] = rest < tiling->tile[k] ? rest : tiling->tile[k];
      to += (ptrdiff_t)at[k] * layout->dst_strides[k];
      from += (ptrdiff_t)at[k] * layout->src_strides[k];
    }
    copy_tile(tiling, extents, to, from);
    for (k = layout->rank - 1; k >= 0; k--) {
      at[k] += extents[k];
      if (at[k] < layout->extents[k]) break;
      at[k] = 0;
    }
    if (k < 0) return;
  }
}

/* Halves the layout until its pages stay in the TLB while its tiles are copied one after the
 * other. tiling has the order of the whole. */
static void copy_blocks(Tiling *tiling, char *dst, char const *src, umemLayout const *layout) {
  if (umem_count_items(layout) * layout->item_size > block_bytes) {
    umemHalves halves;
    umem_halve(&halves, layout, umem_widest(layout, layout->extents));
    copy_blocks(tiling, dst, src, &halves.first);
    copy_blocks(tiling, dst + halves.dst, src + halves.src, &halves.second);
    return;
  }
  tiling->layout = layout;
  shape_tile(tiling);
  copy_tiled(tiling, dst, src);
}

/* A loop over the destination comes back to a line of the source after all dimensions inside of
 * the source's innermost one. Whether the lines that it touches meanwhile stay in the cache. */
static bool comes_back_soon(Tiling const *tiling) {
  umemLayout const *layout = tiling->layout;
  int last = layout->rank - 1, innermost = tiling->by_source[last];
  size_t lines = 1;
  umemLayoutSpan span;
  if (layout->src_strides[last] % page_bytes == 0)
    return false; /* they share one set of the cache */
  if (umem_span_of(layout->item_size, layout->rank, layout->extents, layout->src_strides, &span) &&
      (size_t)(span.high - span.low) <= cached_bytes)
    return true;
  for (int k = innermost + 1; k <= last; k++) {
    if (layout->extents[k] > cached_lines / lines) return false;
    lines *= layout->extents[k];
  }
  return true;
}

/* Whether no stride is smaller than that of the last dimension. */
static bool is_innermost(ptrdiff_t const *strides, int last) {
  for (int k = 0; k < last; k++)
    if (umem_stride_length(strides[k]) < umem_stride_length(strides[last])) return false;
  return true;
}

/* Whether a plain loop over the destination is good enough. Fills in *tiling but for the tile. */
static bool runs_along(Tiling *tiling, umemLayout const *layout) {
  int last = layout->rank - 1;
  if (layout->item_size >= long_item || is_innermost(layout->src_strides, last)) return true;
  tiling->layout = layout;
  sort_by_source(tiling);
  return comes_back_soon(tiling);
}

void umem_copy_tiles(char *dst, char const *src, umemLayout const *layout) {
  Tiling tiling;
  if (!layout->rank) {
    umem_copy_bytes(dst, src, layout->item_size);
  } else if (layout->rank == 1 || runs_along(&tiling, layout)) {
    copy_dims(dst, src, layout, 0);
  } else {
    copy_blocks(&tiling, dst, src, layout);
  }
}

/* ---- by several threads ---- */

typedef struct Copy {
  umemLayout const *layout;
  char *dst;
  char const *src;
  umemFaultableRange const *ranges; /* or NULL */
  int axis;                         /* the dimension that is cut into pieces */
  unsigned pieces;
  bool failed; /* atomic */
} Copy;

/* What one thread copies. */
typedef struct Part {
  umemLayout layout;
  char *dst;
  char const *src;
} Part;

static void copy_part(void *data) {
  Part *part = data;
  umem_copy_tiles(part->dst, part->src, &part->layout);
}

static bool copy_alone(char *dst, char const *src, umemLayout const *layout,
                       umemFaultableRange const *ranges) {
  if (!ranges) {
    umem_copy_tiles(dst, src, layout);
    return true;
  }
  Part part = {*layout, dst, src};
  return umem_access_faultable(ranges, copy_part, &part);
}

static void copy_piece(void *job, unsigned piece) {
  Copy *copy = job;
  umemLayout const *layout = copy->layout;
  int k = copy->axis;
  size_t each = layout->extents[k] / copy->pieces, more = layout->extents[k] % copy->pieces;
  size_t first = piece * each + (piece < more ? piece : more);
  size_t extents[UMEM_MAX_RANK];
  memcpy(extents, layout->extents, (size_t)layout->rank * sizeof *extents);
  extents[k] = each + (piece < more);
  umemLayout part = *layout;
  part.extents = extents;
  if (!copy_alone(copy->dst + (ptrdiff_t)first * layout->dst_strides[k],
                  copy->src + (ptrdiff_t)first * layout->src_strides[k], &part, copy->ranges))
    __atomic_store_n(&copy->failed, true, __ATOMIC_RELAXED);
}

unsigned umem_pointer_workers(umemLayout const *layout) {
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  if (nbytes < 2 * piece_bytes) return 1;
  size_t extent = layout->extents[umem_widest(layout, layout->extents)];
  unsigned pieces = umem_parallel_pieces(nbytes, piece_bytes, umemParallelMost);
  return pieces > extent ? (unsigned)extent : pieces;
}

bool umem_copy_pointers(char *dst, char const *src, umemLayout const *layout,
                        umemFaultableRange const ranges[2]) {
  unsigned pieces = umem_pointer_workers(layout);
  if (pieces == 1) return copy_alone(dst, src, layout, ranges);
  Copy copy = {.layout = layout,
               .dst = dst,
               .src = src,
               .ranges = ranges,
               .axis = umem_widest(layout, layout->extents),
               .pieces = pieces};
  umem_parallel(pieces, copy_piece, &copy);
  return !copy.failed;
}
