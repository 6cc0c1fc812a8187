/* overlap.c - the overlap of two layouts.
 *
 * An item of one side has a byte of an item of the other if the sum of i[k] * stride[k] over both sides, with the bytes
 * of the items as dimensions of stride 1, can be the distance of the two sides: a linear equation of integers within
 * bounds. The strides of arrays are mostly multiples of each other, so a search from the largest stride down has one or
 * two choices for each. NumPy does it in the same way (mem_overlap.c). */
#include "core/overlap.h"
#include "core/layers.h"
#include "core/layout.h"

/* Steps after which the search gives up. */
enum { most_steps = 10000, most_terms = 2 * UMEM_MAX_RANK };

/* step * i for 0 <= i <= count. The rest: what this term and those after it can reach, and their common divisor. */
typedef struct Term {
  uint64_t step, count, reach, divisor;
} Term;

typedef struct Equation {
  Term terms[most_terms];
  int size, steps;
  uint64_t bytes; /* the largest value of the term of step 1 */
} Equation;

static uint64_t length_of(ptrdiff_t stride) {
  return stride < 0 ? (uint64_t)0 - (uint64_t)stride : (uint64_t)stride;
}

/* Equal steps are one term. */
static void add_term(Equation *equation, uint64_t step, uint64_t count) {
  int k = 0;
  if (!step || !count) return;
  while (k < equation->size && equation->terms[k].step > step) k++;
  if (k < equation->size && equation->terms[k].step == step) {
    equation->terms[k].count += count;
    return;
  }
  for (int j = equation->size++; j > k; j--) equation->terms[j] = equation->terms[j - 1];
  equation->terms[k] = (Term){.step = step, .count = count};
}

static void add_side(Equation *equation, umemItems const *side) {
  for (int k = 0; k < side->rank; k++)
    add_term(equation, length_of(side->strides[k]), side->extents[k] - 1);
  equation->bytes += side->item_size - 1;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static void finish_equation(Equation *equation) {
  uint64_t reach = equation->bytes, divisor = 0;
  for (int k = equation->size - 1; k >= 0; k--) {
    Term *term = &equation->terms[k];
    term->reach = reach += term->step * term->count;
    term->divisor = divisor = common_divisor(divisor, term->step);
  }
}

/* Whether the terms from k on can make wanted; true when the search gives up. */
static bool can_make(Equation *equation, int k, uint64_t wanted) {
  if (k == equation->size) return wanted <= equation->bytes;
  Term const *term = &equation->terms[k];
  if (wanted > term->reach || wanted % term->divisor > equation->bytes) return false;
  uint64_t rest = term->reach - term->step * term->count; /* what those after this one can reach */
  uint64_t most = wanted / term->step, least = 0;
  if (most > term->count) most = term->count;
  if (wanted > rest) least = (wanted - rest + term->step - 1) / term->step;
  for (uint64_t i = most + 1; i-- > least;)
    if (++equation->steps > most_steps || can_make(equation, k + 1, wanted - i * term->step))
      return true;
  return false;
}

bool umem_items_meet(umemItems const *one, umemItems const *other) {
  umemLayoutSpan a, b;
  if (!umem_span_of(one->item_size, one->rank, one->extents, one->strides, &a) ||
      !umem_span_of(other->item_size, other->rank, other->extents, other->strides, &b))
    return true;
  uintptr_t low = one->adr + (uintptr_t)a.low, other_low = other->adr + (uintptr_t)b.low;
  uint64_t length = (uint64_t)(a.high - a.low), other_length = (uint64_t)(b.high - b.low);
  if (low >= other_low ? low - other_low >= other_length : other_low - low >= length) return false;
  Equation equation = {.size = 0};
  add_side(&equation, one);
  add_side(&equation, other);
  finish_equation(&equation);
  return can_make(&equation, 0, (uint64_t)(other_low - low) + other_length - 1);
}

bool umem_share_bytes(umemVirtual *src, uintptr_t *src_adr, umemVirtual *dst, uintptr_t *dst_adr) {
  if (src == dst) return true;
  umemVirtual *one = UMEM_LAYER_WITH(src, locate), *other = UMEM_LAYER_WITH(dst, locate);
  uint64_t from[3], to[3];
  if (one && other && one != other && one->vptr->locate(one, *src_adr, from) &&
      other->vptr->locate(other, *dst_adr, to)) {
    *src_adr = (uintptr_t)from[2];
    *dst_adr = (uintptr_t)to[2];
    return from[0] == to[0] && from[1] == to[1];
  }
  bool offsets = (src->capabilities | dst->capabilities) & umemOffsets;
  bool addressed = src->capabilities & dst->capabilities & (umemCpuReadable | umemDeviceAccessible);
  return (addressed && !offsets) || umem_is_one_memory(src, dst);
}

/* Whether the items of the destination follow one another by their addresses: those of an inner dimension are all before
 * the next one of an outer dimension. */
static bool is_in_order(umemLayout const *layout) {
  size_t inner = layout->item_size;
  for (int k = layout->rank - 1; k >= 0; k--) {
    size_t stride = (size_t)layout->dst_strides[k];
    if (stride < inner) return false;
    inner += stride * (layout->extents[k] - 1);
  }
  return true;
}

static bool has_equal_strides(umemLayout const *layout) {
  for (int k = 0; k < layout->rank; k++)
    if (layout->src_strides[k] != layout->dst_strides[k]) return false;
  return true;
}

umemOverlap umem_overlap(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                         umemLayout const *layout) {
  if (!umem_share_bytes(src, &src_adr, dst, &dst_adr)) return umemOverlapNone;
  bool shifted = has_equal_strides(layout);
  if (shifted && src_adr == dst_adr) return umemOverlapNone; /* each item to itself */
  umemItems const from = {src_adr, layout->item_size, layout->rank, layout->extents,
                          layout->src_strides};
  umemItems const to = {dst_adr, layout->item_size, layout->rank, layout->extents,
                        layout->dst_strides};
  if (!umem_items_meet(&from, &to)) return umemOverlapNone;
  return shifted && is_in_order(layout) ? umemOverlapShift : umemOverlapAll;
}
