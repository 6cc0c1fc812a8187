/* layout.h - the arithmetic of umemLayout: strides, spans and the normal form. */
#ifndef UMEM_LAYOUT_H
#define UMEM_LAYOUT_H

#include <stddef.h>
#include <umem/base.h>

/* The bytes that one side of a layout touches, relative to the address of its first item: [low,
 * high), with low <= 0 < high and high - low <= PTRDIFF_MAX, as for any object of C. */
typedef struct umemLayoutSpan {
  ptrdiff_t low, high;
} umemLayoutSpan;

/* A layout in normal form (see copy_direct in virtual.h) that owns its arrays. */
typedef struct umemNormalLayout {
  umemLayout layout;
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t src[UMEM_MAX_RANK];
  ptrdiff_t dst[UMEM_MAX_RANK];
} umemNormalLayout;

/* Fills in the strides of a C-ordered array without gaps. Returns false when they overflow. */
bool umem_c_strides(size_t item_size, int rank, size_t const *extents, ptrdiff_t *strides);

/* Fills in the span of items with these strides. Returns false when there is none. */
bool umem_span_of(size_t item_size, int rank, size_t const *extents, ptrdiff_t const *strides,
                  umemLayoutSpan *span);

/* The bytes that a side of a copy touches: from *adr on, which becomes the first of them. */
size_t umem_touched(uintptr_t *adr, umemLayout const *layout, ptrdiff_t const *strides);

/* The distance between two items, in whichever direction. */
static inline size_t umem_stride_length(ptrdiff_t stride) {
  return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

/* How many items a layout has. */
size_t umem_count_items(umemLayout const *layout);

/* The dimension to cut first, of these extents, when a layout in normal form does not fit: the one
 * with the largest distance between items, on the side where it is less. Cutting it leaves the
 * longest runs on both sides. Never a dimension of one item, if there is another one. */
int umem_widest(umemLayout const *layout, size_t const *extents);

/* The two parts of a layout that is cut across dimension k, and how far the first item of the
 * second part is from that of the first. The parts point to the struct. */
typedef struct umemHalves {
  umemLayout first, second;
  ptrdiff_t src, dst;
  size_t extents[2][UMEM_MAX_RANK];
} umemHalves;
void umem_halve(umemHalves *halves, umemLayout const *layout, int k);

/* Copies the arrays of a layout whose numbers do not overflow, and brings them into normal form.
 * Moves the addresses, of the first items, along. */
void umem_normalise(umemNormalLayout *normal, umemLayout const *layout, uintptr_t *src_adr,
                    uintptr_t *dst_adr);

#endif
