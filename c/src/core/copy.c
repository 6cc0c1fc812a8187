/* copy.c - copies between any two contexts, of runs and of items with strides, also over
 * themselves.
 *
 * plan.c moves runs, and items.c the items that no context moves by a route of its own. */
#include "core/copy.h"
#include "base/number.h"
#include "core/hook.h"
#include "core/layout.h"
#include "core/ram.h"

/* ---- runs ---- */

static umemStatusType copy(umemEntry const *entry, void *src, uintptr_t src_adr, void *dst,
                           uintptr_t dst_adr, size_t nbytes) {
  umemVirtual *from = umem_check(src);
  umemVirtual *to = umem_check(dst);
  if (!from || !to || !nbytes) return umem_result_of(entry);
  if (umem_validate(from, src_adr, nbytes, umemReadable) &&
      umem_validate(to, dst_adr, nbytes, umemWritable))
    umem_copy_any_run(from, src_adr, to, dst_adr, nbytes);
  return umem_result_of(entry);
}

umemStatusType umem_copy_to(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                            size_t nbytes) {
  UMEM_ENTER();
  return copy(&umem_entry_, src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_copy_from(void *dst, uintptr_t dst_adr, void *src, uintptr_t src_adr,
                              size_t nbytes) {
  UMEM_ENTER();
  return copy(&umem_entry_, src, src_adr, dst, dst_adr, nbytes);
}

static umemStatusType copy_safe(umemEntry const *entry, void *src, uintptr_t src_adr,
                                size_t src_size, void *dst, uintptr_t dst_adr, size_t dst_size,
                                size_t nbytes) {
  if (!umem_both_within(src, src_size, dst, dst_size, nbytes)) return umem_result_of(entry);
  return copy(entry, src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_copy_to_safe(void *src, uintptr_t src_adr, size_t src_size, void *dst,
                                 uintptr_t dst_adr, size_t dst_size, size_t nbytes) {
  UMEM_ENTER();
  return copy_safe(&umem_entry_, src, src_adr, src_size, dst, dst_adr, dst_size, nbytes);
}

umemStatusType umem_copy_from_safe(void *dst, uintptr_t dst_adr, size_t dst_size, void *src,
                                   uintptr_t src_adr, size_t src_size, size_t nbytes) {
  UMEM_ENTER();
  return copy_safe(&umem_entry_, src, src_adr, src_size, dst, dst_adr, dst_size, nbytes);
}

/* ---- items ---- */

/* Whether the layout makes sense by itself; false with a status otherwise. */
static bool check_layout(umemVirtual *src, umemLayout const *layout) {
  if (!layout || layout->size < sizeof(umemLayout))
    return UMEM_FAIL(src, umemValueError, "the layout is %s",
                     layout ? "too small: set its size to sizeof(umemLayout)" : "NULL");
  if (layout->rank < 0 || layout->rank > UMEM_MAX_RANK)
    return UMEM_FAIL(src, umemValueError, "rank %d is not in 0 ... %d", layout->rank,
                     UMEM_MAX_RANK);
  if (layout->rank && !layout->extents)
    return UMEM_FAIL(src, umemValueError, "the layout of rank %d has no extents", layout->rank);
  return true;
}

static bool is_empty(umemLayout const *layout) {
  for (int k = 0; k < layout->rank; k++)
    if (!layout->extents[k]) return true;
  return !layout->item_size;
}

/* Whether all items that start at adr with these strides can have addresses; false with a
 * status. Sets *first and *nbytes to the range that they are in. */
static bool check_side(umemVirtual *ctx, uintptr_t adr, umemLayout const *layout,
                       ptrdiff_t const *strides, umemCapability access, uintptr_t *first,
                       size_t *nbytes) {
  umemLayoutSpan span;
  if (!strides || !umem_span_of(layout->item_size, layout->rank, layout->extents, strides, &span) ||
      (span.low < 0 && adr < (uintptr_t)-span.low))
    return UMEM_FAIL(ctx, umemValueError, "the items leave the address space of %s",
                     umem_get_device_name(ctx));
  if (adr == umem_null_of(ctx)) return umem_validate(ctx, adr, 0, access);
  *first = adr + (uintptr_t)span.low;
  *nbytes = (size_t)(span.high - span.low);
  return umem_validate(ctx, *first, *nbytes, access);
}

static inline __attribute__((always_inline)) bool check_sides(umemVirtual *src, uintptr_t src_adr,
                                                              umemVirtual *dst, uintptr_t dst_adr,
                                                              umemLayout const *layout,
                                                              umemRanges *ranges) {
  ptrdiff_t dense[UMEM_MAX_RANK];
  bool sane = umem_c_strides(layout->item_size, layout->rank, layout->extents, dense);
  ptrdiff_t const *from = layout->src_strides ? layout->src_strides : dense;
  ptrdiff_t const *to = layout->dst_strides ? layout->dst_strides : dense;
  return check_side(src, src_adr, layout, sane ? from : NULL, umemReadable, &ranges->src,
                    &ranges->src_bytes) &&
         check_side(dst, dst_adr, layout, to, umemWritable, &ranges->dst, &ranges->dst_bytes);
}

/* ---- who moves the items ---- */

/* layout is in normal form, as in all that follows. */
static void move_items(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                       umemLayout const *layout) {
  if (!umem_copy_direct(src, src_adr, dst, dst_adr, layout))
    umem_copy_items(src, src_adr, dst, dst_adr, layout);
}

/* A whole copy of items, for umem_step_hook. */
static umemStep step_of(umemVirtual *src, umemVirtual *dst, umemLayout const *layout) {
  return (umemStep){.src = src,
                    .dst = dst,
                    .way = umemWayItems,
                    .nbytes = umem_count_items(layout) * layout->item_size,
                    .is_copy = true};
}

typedef struct Copy {
  umemVirtual *src, *dst;
  uintptr_t src_adr, dst_adr;
  umemLayout const *layout;
} Copy;

static bool move_job(void *job) {
  Copy const *copy = job;
  move_items(copy->src, copy->src_adr, copy->dst, copy->dst_adr, copy->layout);
  return true;
}

static __attribute__((noinline)) void watch_items(umemVirtual *src, uintptr_t src_adr,
                                                  umemVirtual *dst, uintptr_t dst_adr,
                                                  umemLayout const *layout) {
  Copy copy = {src, dst, src_adr, dst_adr, layout};
  umemStep const step = step_of(src, dst, layout);
  umem_step_hook(&step, move_job, &copy);
}

static inline __attribute__((always_inline)) void copy_normal(umemVirtual *src, uintptr_t src_adr,
                                                              umemVirtual *dst, uintptr_t dst_adr,
                                                              umemLayout const *layout) {
  if (!layout->rank)
    umem_copy_run(src, src_adr, dst, dst_adr, layout->item_size);
  else if (umem_is_watched())
    watch_items(src, src_adr, dst, dst_adr, layout);
  else
    move_items(src, src_adr, dst, dst_adr, layout);
}

/* ---- sides that overlap ---- */

/* Bytes of the buffer for pieces; and of pieces that are worth a copy of their own, which needs
 * no buffer. */
static size_t const most_buffer = 4 << 20, least_piece = 64 << 10;

typedef struct Move {
  umemVirtual *src, *dst, *host;
  uintptr_t src_adr, dst_adr;
  /* from an item of the source to that of the destination, in bytes of their memory */
  ptrdiff_t shift;
  uintptr_t buffer; /* in host */
  size_t room;      /* bytes of the buffer; 0: pieces need none */
  umemOverlap overlap;
  umemLayout const *layout;
  uint64_t before; /* failures of this thread when the copy began */
} Move;

static bool failed(Move const *move) { return umem_thread.failures != move->before; }

/* src or dst NULL: the buffer. */
static void copy_part(Move const *move, umemVirtual *src, ptrdiff_t src_offset, umemVirtual *dst,
                      ptrdiff_t dst_offset, umemLayout const *layout) {
  umemNormalLayout n;
  uintptr_t from = src ? move->src_adr + (uintptr_t)src_offset : move->buffer;
  uintptr_t to = dst ? move->dst_adr + (uintptr_t)dst_offset : move->buffer;
  umem_normalise(&n, layout, &from, &to);
  copy_normal(src ? src : move->host, from, dst ? dst : move->host, to, &n.layout);
}

/* Reads all items before it writes the first. An item that goes to many is in the buffer once.
 * offset: of the first item from that of the whole copy. */
static void copy_buffered(Move const *move, ptrdiff_t offset, ptrdiff_t dst_offset,
                          umemLayout const *layout) {
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t strides[UMEM_MAX_RANK];
  for (int k = 0; k < layout->rank; k++)
    extents[k] = layout->src_strides[k] ? layout->extents[k] : 1;
  umem_c_strides(layout->item_size, layout->rank, extents, strides);
  for (int k = 0; k < layout->rank; k++)
    if (!layout->src_strides[k]) strides[k] = 0;
  umemLayout gather = *layout, scatter = *layout;
  gather.extents = extents;
  gather.dst_strides = scatter.src_strides = strides;
  copy_part(move, move->src, offset, NULL, 0, &gather);
  if (umem_finish(move->src) != umemOK || failed(move)) return; /* work may go on after a failure */
  copy_part(move, NULL, 0, move->dst, dst_offset, &scatter);
  umem_finish(move->dst);
}

/* How many bytes a buffer for all items needs. */
static size_t buffered_bytes(umemLayout const *layout) {
  size_t nbytes = layout->item_size;
  for (int k = 0; k < layout->rank; k++)
    if (layout->src_strides[k]) nbytes *= layout->extents[k];
  return nbytes;
}

/* Whether the items of a piece that moves overlap with themselves: far from the ends of all
 * addresses. */
static bool meets_itself(Move const *move, umemLayout const *layout) {
  umemItems const from = {UINTPTR_MAX / 2, layout->item_size, layout->rank, layout->extents,
                          layout->dst_strides};
  umemItems to = from;
  to.adr += (uintptr_t)move->shift;
  return umem_items_meet(&from, &to);
}

/* Cuts a layout whose strides are those of both sides into pieces that follow one another by
 * their addresses, and copies them in the order of the move. */
static void copy_in_order(Move const *move, ptrdiff_t offset, umemLayout const *layout) {
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  if (failed(move)) return;
  if (!meets_itself(move, layout)) {
    copy_part(move, move->src, offset, move->dst, offset, layout);
    return;
  }
  if (nbytes <= move->room) {
    copy_buffered(move, offset, offset, layout);
    return;
  }
  umemHalves halves;
  umemLayout low = *layout, high = *layout;
  ptrdiff_t half;
  int k = 0;
  while (k < layout->rank && layout->extents[k] == 1) k++;
  if (k < layout->rank) {
    umem_halve(&halves, layout, k);
    low = halves.first, high = halves.second, half = halves.src;
  } else {
    low.item_size /= 2;
    high.item_size -= low.item_size;
    half = (ptrdiff_t)low.item_size;
  }
  bool up = move->shift < 0;
  copy_in_order(move, up ? offset : offset + half, up ? &low : &high);
  copy_in_order(move, up ? offset + half : offset, up ? &high : &low);
}

static bool copy_moving(void *job) {
  Move *move = job;
  umemLayout const *layout = move->layout;
  size_t nbytes = buffered_bytes(layout);
  uint64_t unfinished = umem_unfinished_so_far();
  bool short_shift = (size_t)(move->shift < 0 ? -move->shift : move->shift) < least_piece;
  if (move->overlap == umemOverlapAll)
    move->room = nbytes;
  else if (layout->rank || short_shift)
    move->room = nbytes < most_buffer ? nbytes : most_buffer;
  if (move->room) {
    move->host = umem_host_between(move->src, move->dst);
    if (!move->host) return true;
    move->buffer = umem_alloc(move->host, move->room);
    if (move->buffer == umem_null_of(move->host)) {
      umemVirtual_adopt(move->src, move->before);
      return true;
    }
  }
  /* Earlier work of dst may still use what is going to be read. */
  bool ready = !move->room || umem_finish(move->dst) == umemOK;
  if (ready && move->overlap == umemOverlapAll)
    copy_buffered(move, 0, 0, layout);
  else if (ready)
    copy_in_order(move, 0, layout);
  if (move->room) umem_free_buffer(move->host, move->buffer, unfinished);
  return true;
}

/* An adaptor hands the copy to its upstream, where the sides overlap as well. */
static bool pass_on(umemVirtual *self, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                    uintptr_t dst_adr, umemLayout const *layout) {
  return UMEM_SLOT(self, upstream) && UMEM_SLOT(self, copy_direct) &&
         self->vptr->copy_direct(self, src, src_adr, dst, dst_adr, layout);
}

static __attribute__((noinline)) void copy_overlapping(umemVirtual *src, uintptr_t src_adr,
                                                       umemVirtual *dst, uintptr_t dst_adr,
                                                       umemOverlap overlap,
                                                       umemLayout const *layout) {
  if (pass_on(src, src, src_adr, dst, dst_adr, layout) ||
      pass_on(dst, src, src_adr, dst, dst_adr, layout))
    return;
  bool in_ram = src->vptr->copy_to == umem_ram_copy_to && umem_cpu_writes(dst) &&
                !UMEM_SLOT(src, copy_direct) && !UMEM_SLOT(dst, copy_direct);
  if (in_ram && !layout->rank) { /* its method is memmove */
    umem_copy_run(src, src_adr, dst, dst_adr, layout->item_size);
    return;
  }
  Move move = {.src = src,
               .dst = dst,
               .src_adr = src_adr,
               .dst_adr = dst_adr,
               .overlap = overlap,
               .layout = layout,
               .before = umem_thread.failures};
  umem_share_bytes(src, &src_adr, dst, &dst_adr);
  move.shift = (ptrdiff_t)(dst_adr - src_adr);
  if (umem_is_watched()) {
    umemStep const step = step_of(src, dst, layout);
    umem_step_hook(&step, copy_moving, &move);
  } else {
    copy_moving(&move);
  }
}

/* ---- any layout ---- */

/* layout has items, which are in these ranges. */
static umemOverlap overlap_of(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                              uintptr_t dst_adr, umemLayout const *layout,
                              umemRanges const *ranges) {
  size_t length = umem_greater(ranges->src_bytes, ranges->dst_bytes);
  if (!umem_may_overlap(src, ranges->src, dst, ranges->dst, length)) return umemOverlapNone;
  return umem_overlap(src, src_adr, dst, dst_adr, layout);
}

static inline __attribute__((always_inline)) void copy_layout(umemVirtual *src, uintptr_t src_adr,
                                                              umemVirtual *dst, uintptr_t dst_adr,
                                                              umemLayout const *layout,
                                                              umemRanges const *ranges) {
  umemNormalLayout n;
  umem_normalise(&n, layout, &src_adr, &dst_adr);
  umemOverlap overlap = overlap_of(src, src_adr, dst, dst_adr, &n.layout, ranges);
  if (__builtin_expect(overlap != umemOverlapNone, 0))
    copy_overlapping(src, src_adr, dst, dst_adr, overlap, &n.layout);
  else
    copy_normal(src, src_adr, dst, dst_adr, &n.layout);
}

void umem_copy_bytes_over(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                          size_t nbytes) {
  umemLayout layout = {.size = sizeof layout, .item_size = nbytes};
  umemOverlap overlap = umem_overlap(src, src_adr, dst, dst_adr, &layout);
  if (overlap != umemOverlapNone)
    copy_overlapping(src, src_adr, dst, dst_adr, overlap, &layout);
  else
    umem_copy_run(src, src_adr, dst, dst_adr, nbytes);
}

bool umem_check_strided(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        umemLayout const *layout, umemRanges *ranges) {
  ranges->src_bytes = 0;
  return check_layout(src, layout) &&
         (is_empty(layout) || check_sides(src, src_adr, dst, dst_adr, layout, ranges));
}

void umem_copy_layout(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      umemLayout const *layout, umemRanges const *ranges) {
  if (ranges->src_bytes) copy_layout(src, src_adr, dst, dst_adr, layout, ranges);
}

umemStatusType umem_copy_strided(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                 umemLayout const *layout) {
  UMEM_ENTER();
  umemVirtual *from = umem_check(src);
  umemVirtual *to = umem_check(dst);
  umemRanges ranges;
  if (from && to && check_layout(from, layout) && !is_empty(layout) &&
      check_sides(from, src_adr, to, dst_adr, layout, &ranges))
    copy_layout(from, src_adr, to, dst_adr, layout, &ranges);
  return umem_result_of(&umem_entry_);
}

bool umem_copy_overlaps(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                        umemLayout const *layout) {
  UMEM_ENTER();
  umemVirtual *from = umem_check(src);
  umemVirtual *to = umem_check(dst);
  umemNormalLayout n;
  umemRanges ranges;
  if (!from || !to || !umem_check_strided(from, src_adr, to, dst_adr, layout, &ranges) ||
      !ranges.src_bytes)
    return false;
  umem_normalise(&n, layout, &src_adr, &dst_adr);
  return overlap_of(from, src_adr, to, dst_adr, &n.layout, &ranges) != umemOverlapNone;
}

/* ---- whether the two sides of a copy overlap ---- */

/* Steps after which the search gives up. */
enum { most_steps = 10000, most_terms = 2 * UMEM_MAX_RANK };

/* step * i for 0 <= i <= count. The rest: what this term and those after it can reach, and their
 * common divisor. */
typedef struct Term {
  uint64_t step, count, reach, divisor;
} Term;

typedef struct Equation {
  Term terms[most_terms];
  int size, steps;
  uint64_t bytes; /* the largest value of the term of step 1 */
} Equation;

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
    add_term(equation, umem_stride_length(side->strides[k]), side->extents[k] - 1);
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

/* Whether the items of the destination follow one another by their addresses: those of an inner
 * dimension are all before the next one of an outer dimension. */
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
