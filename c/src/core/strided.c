/* strided.c - copies of array sections.
 *
 * A layout is first brought into a normal form that makes it as short as it can be, and is offered to
 * the contexts in that form. What no context does by itself is copied here: item by item where the CPU
 * can address both sides, else in packed pieces through host memory. */
#include "core/core.h"

#include <stdlib.h>
#include <string.h>

/* Runs at least this long are copied one by one; shorter ones are packed first. */
static size_t const long_run = 16 << 10;
/* Bytes of a packed piece; it stays in the CPU's cache between reading and writing. */
static size_t const piece_bytes = 1 << 20;
/* Reading a gap of this many bytes costs less than another call ("data sieving": R. Thakur, W. Gropp,
 * E. Lusk: "Data Sieving and Collective I/O in ROMIO", Frontiers 1999). */
static size_t const cheap_gap = 4 << 10;
static size_t const sieve_bytes = 16 << 20;

/* A layout that owns its arrays, in normal form. */
typedef struct Normal {
  umemLayout layout;
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t src[UMEM_MAX_RANK];
  ptrdiff_t dst[UMEM_MAX_RANK];
} Normal;

/* The bytes a side touches, relative to the address of its first item: [low, high), with
 * low <= 0 < high and high - low <= PTRDIFF_MAX, as for any object of C. */
typedef struct Span {
  ptrdiff_t low, high;
} Span;

/* ---- the normal form ---- */

/* The strides of a C-ordered array without gaps; false when they overflow. */
static bool c_strides(size_t item_size, int rank, size_t const *extents, ptrdiff_t *strides) {
  size_t stride = item_size;
  for (int k = rank - 1; k >= 0; k--) {
    if (stride > PTRDIFF_MAX) return false;
    strides[k] = (ptrdiff_t)stride;
    if (__builtin_mul_overflow(stride, extents[k], &stride)) return false;
  }
  return stride <= PTRDIFF_MAX;
}

/* False when there is no such span. */
static bool span_of(size_t item_size, int rank, size_t const *extents, ptrdiff_t const *strides,
                    Span *span) {
  ptrdiff_t low = 0, high = 0, length;
  for (int k = 0; k < rank; k++) {
    ptrdiff_t reach;
    if (extents[k] - 1 > PTRDIFF_MAX ||
        __builtin_mul_overflow(strides[k], (ptrdiff_t)(extents[k] - 1), &reach))
      return false;
    ptrdiff_t *end = reach < 0 ? &low : &high;
    if (__builtin_add_overflow(*end, reach, end)) return false;
  }
  if (item_size > PTRDIFF_MAX || __builtin_add_overflow(high, (ptrdiff_t)item_size, &high) ||
      __builtin_sub_overflow(high, low, &length))
    return false;
  *span = (Span){low, high};
  return true;
}

static void drop(Normal *n, int k) {
  n->layout.rank--;
  for (; k < n->layout.rank; k++) {
    n->extents[k] = n->extents[k + 1];
    n->src[k] = n->src[k + 1];
    n->dst[k] = n->dst[k + 1];
  }
}

static void swap(Normal *n, int k) {
  size_t extent = n->extents[k];
  ptrdiff_t src = n->src[k], dst = n->dst[k];
  n->extents[k] = n->extents[k + 1], n->extents[k + 1] = extent;
  n->src[k] = n->src[k + 1], n->src[k + 1] = src;
  n->dst[k] = n->dst[k + 1], n->dst[k + 1] = dst;
}

/* Walks the destination upwards: negative strides there are turned round, first items moved along. */
static void flip(Normal *n, uintptr_t *src_adr, uintptr_t *dst_adr) {
  for (int k = 0; k < n->layout.rank; k++) {
    if (n->dst[k] >= 0) continue;
    ptrdiff_t last = (ptrdiff_t)n->extents[k] - 1;
    *src_adr += (uintptr_t)(n->src[k] * last);
    *dst_adr += (uintptr_t)(n->dst[k] * last);
    n->src[k] = -n->src[k];
    n->dst[k] = -n->dst[k];
  }
}

/* Stable insertion sort by falling destination stride. */
static void sort(Normal *n) {
  for (int i = 1; i < n->layout.rank; i++)
    for (int k = i - 1; k >= 0 && n->dst[k] < n->dst[k + 1]; k--) swap(n, k);
}

/* Whether an outer stride goes on where count steps of the inner one end. */
static bool goes_on(ptrdiff_t outer, ptrdiff_t inner, size_t count) {
  ptrdiff_t whole;
  return !__builtin_mul_overflow(inner, (ptrdiff_t)count, &whole) && outer == whole;
}

/* Joins what is contiguous on both sides, from the innermost dimension outwards. */
static void merge(Normal *n) {
  umemLayout *layout = &n->layout;
  while (layout->rank) {
    int last = layout->rank - 1;
    ptrdiff_t item = (ptrdiff_t)layout->item_size;
    if (n->src[last] != item || n->dst[last] != item) break;
    layout->item_size *= n->extents[last];
    layout->rank--;
  }
  for (int k = layout->rank - 2; k >= 0; k--) {
    size_t inner = n->extents[k + 1];
    if (!goes_on(n->src[k], n->src[k + 1], inner) || !goes_on(n->dst[k], n->dst[k + 1], inner))
      continue;
    n->extents[k] *= n->extents[k + 1];
    n->src[k] = n->src[k + 1];
    n->dst[k] = n->dst[k + 1];
    drop(n, k + 1);
  }
}

/* Copies the arrays of a layout whose numbers are known not to overflow, and reduces it. */
static void normalise(Normal *n, umemLayout const *layout, uintptr_t *src_adr, uintptr_t *dst_adr) {
  size_t count = layout->rank > 0 ? (size_t)layout->rank : 0; /* GCC 14 warns of negative ones */
  n->layout =
      (umemLayout){sizeof(umemLayout), layout->item_size, layout->rank, n->extents, n->src, n->dst};
  if (count) memcpy(n->extents, layout->extents, count * sizeof *n->extents);
  if (layout->src_strides)
    memcpy(n->src, layout->src_strides, count * sizeof *n->src);
  else
    c_strides(layout->item_size, layout->rank, n->extents, n->src);
  if (layout->dst_strides)
    memcpy(n->dst, layout->dst_strides, count * sizeof *n->dst);
  else
    c_strides(layout->item_size, layout->rank, n->extents, n->dst);
  for (int k = layout->rank - 1; k >= 0; k--)
    if (n->extents[k] == 1) drop(n, k);
  flip(n, src_adr, dst_adr);
  sort(n);
  merge(n);
}

/* ---- item by item, where the CPU can address both sides ---- */

#define COPY_FIXED(bytes)                                                                          \
  for (size_t i = 0; i < n; i++)                                                                   \
  memcpy(dst + (ptrdiff_t)i * dst_stride, src + (ptrdiff_t)i * src_stride, bytes)

static void copy_row(char *dst, ptrdiff_t dst_stride, char const *src, ptrdiff_t src_stride,
                     size_t n, size_t item_size) {
  switch (item_size) { /* the sizes that compile to plain loads and stores */
  case 1:
    COPY_FIXED(1);
    break;
  case 2:
    COPY_FIXED(2);
    break;
  case 4:
    COPY_FIXED(4);
    break;
  case 8:
    COPY_FIXED(8);
    break;
  case 16:
    COPY_FIXED(16);
    break;
  default:
    COPY_FIXED(item_size);
    break;
  }
}

static void copy_dims(char *dst, char const *src, umemLayout const *layout, int k) {
  if (k == layout->rank) {
    memcpy(dst, src, layout->item_size);
  } else if (k == layout->rank - 1) {
    copy_row(dst, layout->dst_strides[k], src, layout->src_strides[k], layout->extents[k],
             layout->item_size);
  } else {
    for (size_t i = 0; i < layout->extents[k]; i++)
      copy_dims(dst + (ptrdiff_t)i * layout->dst_strides[k],
                src + (ptrdiff_t)i * layout->src_strides[k], layout, k + 1);
  }
}

/* ---- in packed pieces ---- */

typedef struct Sides {
  umemVirtual *src, *dst, *host;
  uint64_t before; /* failures of this thread when the copy began */
} Sides;

static bool failed(Sides const *sides) { return umem_thread.failures != sides->before; }

/* Calls for each run of a layout in normal form, until one fails. */
typedef void RunFunction(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr, size_t nbytes);

static void for_each_run(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr,
                         umemLayout const *layout, int k, RunFunction *run) {
  if (k == layout->rank) {
    run(sides, src_adr, dst_adr, layout->item_size);
    return;
  }
  for (size_t i = 0; i < layout->extents[k] && !failed(sides); i++)
    for_each_run(sides, src_adr + (uintptr_t)((ptrdiff_t)i * layout->src_strides[k]),
                 dst_adr + (uintptr_t)((ptrdiff_t)i * layout->dst_strides[k]), layout, k + 1, run);
}

static void read_one(Sides *sides, uintptr_t src_adr, uintptr_t buffer, size_t nbytes) {
  umem_read_run(sides->src, src_adr, sides->host, (void *)buffer, nbytes);
}

static void write_one(Sides *sides, uintptr_t buffer, uintptr_t dst_adr, size_t nbytes) {
  umem_write_run(sides->dst, dst_adr, sides->host, (void const *)buffer, nbytes);
}

static void route_one(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr, size_t nbytes) {
  umem_route(sides->src, src_adr, sides->dst, dst_adr,
             &(umemLayout){.size = sizeof(umemLayout), .item_size = nbytes});
}

static size_t count_items(umemLayout const *layout) {
  size_t count = 1;
  for (int k = 0; k < layout->rank; k++) count *= layout->extents[k];
  return count;
}

/* Reads the whole span that the source items lie in, when the gaps are small; false if they are not,
 * or if there is no room for it. */
static bool read_sieved(Sides *sides, uintptr_t src_adr, char *packed, umemLayout const *layout) {
  Span span;
  if (!span_of(layout->item_size, layout->rank, layout->extents, layout->src_strides, &span))
    return false;
  size_t nbytes = (size_t)(span.high - span.low);
  size_t runs = count_items(layout);
  if (runs < 2 || nbytes > sieve_bytes || nbytes / runs > layout->item_size + cheap_gap)
    return false;
  char *buffer = malloc(nbytes);
  if (!buffer) return false;
  umem_read_run(sides->src, src_adr + (uintptr_t)span.low, sides->host, buffer, nbytes);
  umem_synchronize(sides->src);
  if (!failed(sides)) copy_dims(packed, buffer - span.low, layout, 0);
  free(buffer);
  return true;
}

/* Gathers the source's items into packed, in the order of layout. */
static void pack(Sides *sides, uintptr_t src_adr, char *packed, umemLayout const *layout) {
  Normal n;
  uintptr_t to = (uintptr_t)packed;
  umemLayout gather = *layout;
  gather.dst_strides = NULL;
  normalise(&n, &gather, &src_adr, &to);
  if (umem_cpu_reads(sides->src)) {
    umem_synchronize(sides->src);
    copy_dims((char *)to, (char const *)src_adr, &n.layout, 0);
  } else if (!read_sieved(sides, src_adr, (char *)to, &n.layout)) {
    for_each_run(sides, src_adr, to, &n.layout, 0, read_one);
    umem_synchronize(sides->src);
  }
}

/* Scatters packed to the destination's items. */
static void unpack(Sides *sides, uintptr_t dst_adr, char const *packed, umemLayout const *layout) {
  Normal n;
  uintptr_t from = (uintptr_t)packed;
  umemLayout scatter = *layout;
  scatter.src_strides = NULL;
  normalise(&n, &scatter, &from, &dst_adr);
  if (umem_cpu_writes(sides->dst))
    copy_dims((char *)dst_adr, (char const *)from, &n.layout, 0);
  else
    for_each_run(sides, from, dst_adr, &n.layout, 0, write_one);
  umem_synchronize(sides->dst); /* packed is used again */
}

/* Halves the outermost dimension until a piece fits into packed. */
static void copy_pieces(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr,
                        umemLayout const *layout, char *packed) {
  if (failed(sides)) return;
  if (count_items(layout) <= piece_bytes / layout->item_size) {
    pack(sides, src_adr, packed, layout);
    if (!failed(sides)) unpack(sides, dst_adr, packed, layout);
    return;
  }
  if (layout->extents[0] == 1) {
    umemLayout inner = *layout;
    inner.rank--, inner.extents++, inner.src_strides++, inner.dst_strides++;
    copy_pieces(sides, src_adr, dst_adr, &inner, packed);
    return;
  }
  size_t extents[UMEM_MAX_RANK];
  memcpy(extents, layout->extents, (size_t)layout->rank * sizeof *extents);
  size_t half = extents[0] / 2;
  umemLayout part = *layout;
  part.extents = extents;
  extents[0] = half;
  copy_pieces(sides, src_adr, dst_adr, &part, packed);
  extents[0] = layout->extents[0] - half;
  copy_pieces(sides, src_adr + (uintptr_t)((ptrdiff_t)half * layout->src_strides[0]),
              dst_adr + (uintptr_t)((ptrdiff_t)half * layout->dst_strides[0]), &part, packed);
}

void umem_copy_items(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                     umemLayout const *layout) {
  Sides sides = {src, dst, NULL, umem_thread.failures};
  if (umem_cpu_reads(src) && umem_cpu_writes(dst)) {
    umem_synchronize(src);
    umem_synchronize(dst);
    if (!failed(&sides)) copy_dims((char *)dst_adr, (char const *)src_adr, layout, 0);
    return;
  }
  if (layout->item_size >= long_run) {
    for_each_run(&sides, src_adr, dst_adr, layout, 0, route_one);
    return;
  }
  sides.host = umem_host_between(src, dst);
  if (!sides.host) return;
  /* Earlier work of dst may still use what the CPU is going to read or overwrite. */
  if (umem_synchronize(dst) != umemOK) return;
  size_t all = count_items(layout) * layout->item_size;
  uintptr_t packed = umem_alloc(sides.host, all < piece_bytes ? all : piece_bytes);
  if (packed == umem_null_of(sides.host)) {
    umemVirtual_adopt(src, sides.before);
    return;
  }
  copy_pieces(&sides, src_adr, dst_adr, layout, (char *)packed);
  umem_free(sides.host, packed);
}

/* ---- the public function ---- */

/* Whether the layout makes sense by itself; false with a status otherwise. */
static bool check_layout(umemVirtual *src, umemLayout const *layout) {
  if (!layout || layout->size < sizeof(umemLayout)) {
    umemVirtual_fail(src, umemValueError, "the layout is %s",
                     layout ? "too small: set its size to sizeof(umemLayout)" : "NULL");
    return false;
  }
  if (layout->rank < 0 || layout->rank > UMEM_MAX_RANK) {
    umemVirtual_fail(src, umemValueError, "rank %d is not in 0 ... %d", layout->rank,
                     UMEM_MAX_RANK);
    return false;
  }
  if (layout->rank && !layout->extents) {
    umemVirtual_fail(src, umemValueError, "the layout of rank %d has no extents", layout->rank);
    return false;
  }
  return true;
}

static bool is_empty(umemLayout const *layout) {
  for (int k = 0; k < layout->rank; k++)
    if (!layout->extents[k]) return true;
  return !layout->item_size;
}

/* Whether all items that start at adr with these strides can have addresses; false with a status. */
static bool check_side(umemVirtual *ctx, uintptr_t adr, umemLayout const *layout,
                       ptrdiff_t const *strides, umemCapability access) {
  ptrdiff_t dense[UMEM_MAX_RANK];
  Span span;
  bool sane =
      c_strides(layout->item_size, layout->rank, layout->extents, dense) &&
      span_of(layout->item_size, layout->rank, layout->extents, strides ? strides : dense, &span);
  if (!sane || (span.low < 0 && adr < (uintptr_t)-span.low)) {
    umemVirtual_fail(ctx, umemValueError, "the items leave the address space of %s",
                     umem_get_device_name(ctx));
    return false;
  }
  if (adr == umem_null_of(ctx)) return umem_validate(ctx, adr, 0, access);
  return umem_validate(ctx, adr + (uintptr_t)span.low, (size_t)(span.high - span.low), access);
}

umemStatusType umem_copy_strided(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                 umemLayout const *layout) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *from = umem_guard(src);
  umemVirtual *to = umem_guard(dst);
  if (!from || !to || !check_layout(from, layout) || is_empty(layout)) return umem_result(before);
  if (!check_side(from, src_adr, layout, layout->src_strides, umemReadable) ||
      !check_side(to, dst_adr, layout, layout->dst_strides, umemWritable))
    return umem_result(before);
  Normal n;
  normalise(&n, layout, &src_adr, &dst_adr);
  umem_route(from, src_adr, to, dst_adr, &n.layout);
  return umem_result(before);
}
