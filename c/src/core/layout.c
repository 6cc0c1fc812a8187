/* layout.c - computes spans of layouts, cuts them in halves, and brings them into normal form. */
#include "core/layout.h"

#include <string.h>

bool umem_c_strides(size_t item_size, int rank, size_t const *extents, ptrdiff_t *strides) {
  size_t stride = item_size;
  for (int k = rank - 1; k >= 0; k--) {
    if (stride > PTRDIFF_MAX) return false;
    strides[k] = (ptrdiff_t)stride;
    if (__builtin_mul_overflow(stride, extents[k], &stride)) return false;
  }
  return stride <= PTRDIFF_MAX;
}

bool umem_span_of(size_t item_size, int rank, size_t const *extents, ptrdiff_t const *strides,
                  umemLayoutSpan *span) {
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
  *span = (umemLayoutSpan){low, high};
  return true;
}

size_t umem_touched(uintptr_t *adr, umemLayout const *layout, ptrdiff_t const *strides) {
  umemLayoutSpan span = {0, (ptrdiff_t)layout->item_size};
  umem_span_of(layout->item_size, layout->rank, layout->extents, strides, &span);
  *adr += (uintptr_t)span.low;
  return (size_t)(span.high - span.low);
}

size_t umem_count_items(umemLayout const *layout) {
  size_t count = 1;
  for (int k = 0; k < layout->rank; k++) count *= layout->extents[k];
  return count;
}

int umem_widest(umemLayout const *layout, size_t const *extents) {
  int widest = 0;
  size_t reach = 0;
  for (int k = 0; k < layout->rank; k++) {
    size_t src = umem_stride_length(layout->src_strides[k]),
           dst = umem_stride_length(layout->dst_strides[k]);
    size_t width = (src < dst ? src : dst) * (extents[k] - 1) + (extents[k] > 1);
    if (width <= reach) continue;
    reach = width;
    widest = k;
  }
  return widest;
}

void umem_halve(umemHalves *halves, umemLayout const *layout, int k) {
  size_t all = layout->extents[k], half = all / 2;
  for (int i = 0; i < 2; i++)
    memcpy(halves->extents[i], layout->extents, (size_t)layout->rank * sizeof all);
  halves->extents[0][k] = half;
  halves->extents[1][k] = all - half;
  halves->first = halves->second = *layout;
  halves->first.extents = halves->extents[0];
  halves->second.extents = halves->extents[1];
  halves->src = (ptrdiff_t)half * layout->src_strides[k];
  halves->dst = (ptrdiff_t)half * layout->dst_strides[k];
}

static void drop(umemNormalLayout *n, int k) {
  n->layout.rank--;
  for (; k < n->layout.rank; k++) {
    n->extents[k] = n->extents[k + 1];
    n->src[k] = n->src[k + 1];
    n->dst[k] = n->dst[k + 1];
  }
}

static void swap(umemNormalLayout *n, int k) {
  size_t extent = n->extents[k];
  ptrdiff_t src = n->src[k], dst = n->dst[k];
  n->extents[k] = n->extents[k + 1], n->extents[k + 1] = extent;
  n->src[k] = n->src[k + 1], n->src[k + 1] = src;
  n->dst[k] = n->dst[k + 1], n->dst[k + 1] = dst;
}

/* Makes the strides of the destination positive; moves the first items along. */
static void flip(umemNormalLayout *n, uintptr_t *src_adr, uintptr_t *dst_adr) {
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
static void sort(umemNormalLayout *n) {
  for (int i = 1; i < n->layout.rank; i++)
    for (int k = i - 1; k >= 0 && n->dst[k] < n->dst[k + 1]; k--) swap(n, k);
}

/* Whether an outer stride goes on where count steps of the inner one end. */
static bool goes_on(ptrdiff_t outer, ptrdiff_t inner, size_t count) {
  ptrdiff_t whole;
  return !__builtin_mul_overflow(inner, (ptrdiff_t)count, &whole) && outer == whole;
}

/* Joins what is contiguous on both sides, from the innermost dimension outwards. */
static void merge(umemNormalLayout *n) {
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

void umem_normalise(umemNormalLayout *n, umemLayout const *layout, uintptr_t *src_adr,
                    uintptr_t *dst_adr) {
  size_t count = layout->rank > 0 ? (size_t)layout->rank : 0; /* GCC 14 warns of negative ones */
  n->layout =
      (umemLayout){sizeof(umemLayout), layout->item_size, layout->rank, n->extents, n->src, n->dst};
  if (count) memcpy(n->extents, layout->extents, count * sizeof *n->extents);
  if (layout->src_strides)
    memcpy(n->src, layout->src_strides, count * sizeof *n->src);
  else
    umem_c_strides(layout->item_size, layout->rank, n->extents, n->src);
  if (layout->dst_strides)
    memcpy(n->dst, layout->dst_strides, count * sizeof *n->dst);
  else
    umem_c_strides(layout->item_size, layout->rank, n->extents, n->dst);
  for (int k = layout->rank - 1; k >= 0; k--)
    if (n->extents[k] == 1) drop(n, k);
  flip(n, src_adr, dst_adr);
  sort(n);
  merge(n);
}
