/* array_convert.c - makes arrays of another type of element.
 *
 * Sources that umem can address are converted where they are, others a buffer at a time.
 * array_operand.h writes the results. */
#include <umem/array_convert.h>

#include "array/array_operand.h"
#include "array/array_conversion.h"
#include "core/context.h"
#include "core/status.h"

#include <stdlib.h>

/* ---- elements ---- */

typedef struct Converter {
  umemArrayMaker maker;
  umemConversion conversion;
  umemArraySide from; /* in RAM */
} Converter;

/* Converts what follows one another where it is, and copies what does not. */
static void make(umemArrayMaker const *self, int64_t first, int64_t count, void *out,
                 void *scratch) {
  Converter const *converter = (Converter const *)self;
  umemArrayAxes const *axes = &converter->from.axes;
  umemConversion const *conversion = &converter->conversion;
  int64_t offset = converter->from.offset + first;
  for (int64_t done = 0, now; done < count; done += now) {
    uintptr_t adr;
    int64_t left = count - done;
    int64_t span = umem_array_span(axes, offset + done, conversion->src_size, &adr);
    bool direct = converter->from.is_run || (!self->whole && span >= 64);
    now = direct ? span : self->chunk;
    if (now > left) now = left;
    if (!direct) {
      umem_array_pick(axes, offset + done, now, scratch, conversion->src_size);
      adr = (uintptr_t)scratch;
    }
    umem_convert(conversion, (void const *)adr,
                 (unsigned char *)out + (size_t)done * conversion->dst_size, (size_t)now);
  }
}

/* Whether neighbours of the last dimension are in different lines of the cache. */
static bool is_wide(umemArraySide const *side) {
  return !side->is_run && llabs(side->axes.strides[side->axes.rank - 1]) > 64;
}

static void convert_chunks(umemConversion const *conversion, umemArraySide const *from,
                           umemArraySide const *to, int64_t count) {
  Converter converter = {.conversion = *conversion, .from = *from};
  size_t in = conversion->src_size, out = conversion->dst_size, larger = in > out ? in : out;
  bool wide = is_wide(from) || is_wide(to);
  converter.maker = (umemArrayMaker){
      .make = make,
      .item_size = out,
      .chunk = umem_array_chunk(wide ? umemArrayWide : umemArrayNear, larger),
      .whole = wide,
  };
  if (count < converter.maker.chunk) converter.maker.chunk = count;
  if (!from->is_run) converter.maker.scratch = (size_t)converter.maker.chunk * in;
  umem_array_make(to, count, &converter.maker);
}

/* All elements of both sides, in one order. */
static bool convert_rows(umemConversion const *conversion, umemArraySide const *from,
                         umemArraySide const *to, int64_t count) {
  return conversion->count && umem_array_is_whole(&to->axes, count) &&
         umem_array_is_here(to->ctx, umemWritable) && umem_finish(to->ctx) == umemOK &&
         umem_array_convert_rows(conversion, &from->axes, &to->axes);
}

static void convert_here(umemConversion const *conversion, umemArraySide const *from,
                         umemArraySide const *to, int64_t count) {
  uint64_t before = umem_thread.failures;
  if (!convert_rows(conversion, from, to, count) && umem_thread.failures == before)
    convert_chunks(conversion, from, to, count);
}

static umemArraySide run_at(umemVirtual *ctx, uintptr_t adr, int64_t count, size_t item_size) {
  return (umemArraySide){
      .ctx = ctx,
      .axes = {.adr = adr, .rank = 1, .shape = {count}, .strides = {(int64_t)item_size}},
      .is_run = true};
}

/* From memory that umem cannot address. */
static void convert_from_there(umemConversion const *conversion, umemArraySide from,
                               umemArraySide to, int64_t count) {
  umemArrayBuffer buffer;
  uint64_t before = umem_thread.failures;
  size_t size = conversion->src_size;
  if (!umem_array_take_buffer(&buffer, from.ctx, to.ctx, count, size)) return;
  while (count && umem_thread.failures == before) {
    int64_t now = count < buffer.elements ? count : buffer.elements;
    umemArraySide here = run_at(buffer.host, buffer.adr, now, size);
    umem_array_gather(&from, buffer.host, buffer.adr, now, size);
    if (umem_finish(from.ctx) != umemOK || umem_thread.failures != before) break;
    convert_here(conversion, &here, &to, now);
    from.offset += now;
    to.offset += now;
    count -= now;
  }
  umem_array_give_buffer(&buffer, from.ctx);
}

static void convert_sides(umemConversion const *conversion, umemArraySide const *from,
                          umemArraySide const *to, int64_t count) {
  if (!umem_array_is_here(from->ctx, umemReadable))
    convert_from_there(conversion, *from, *to, count);
  else if (umem_finish(from->ctx) == umemOK)
    convert_here(conversion, from, to, count);
}

/* ---- the order of the elements ---- */

/* Joins a dimension with the last one where both sides can. */
static bool join_both(umemArrayAxes *a, umemArrayAxes *b, int64_t extent, int64_t one,
                      int64_t other) {
  int last = a->rank - 1;
  int64_t all = a->shape[last], of_a = a->strides[last], of_b = b->strides[last], same = all;
  if (!umem_array_join(&all, &of_a, extent, one) || !umem_array_join(&same, &of_b, extent, other))
    return false;
  a->shape[last] = b->shape[last] = all;
  a->strides[last] = of_a;
  b->strides[last] = of_b;
  return true;
}

/* The two sides of a conversion of whole arrays of one shape: in any order, so the dimensions are
 * sorted by the strides of dst, and go up there. */
static void join(umemArraySide *from, umemArraySide *to, umemArray const *src,
                 umemArray const *dst) {
  int axes[UMEM_MAX_RANK];
  int64_t const *shape = umem_array_shape(dst), *in = umem_array_strides(src),
                *out = umem_array_strides(dst);
  umem_array_sort(dst->rank, out, axes);
  umemArrayAxes *a = &from->axes, *b = &to->axes;
  from->ctx = src->ctx;
  to->ctx = dst->ctx;
  from->offset = to->offset = 0;
  a->rank = b->rank = 0;
  a->adr = src->adr;
  b->adr = dst->adr;
  for (int j = 0; j < dst->rank; j++) {
    int64_t extent = shape[axes[j]], one = in[axes[j]], other = out[axes[j]];
    if (extent == 1) continue;
    if (other < 0) {
      a->adr += (uintptr_t)((extent - 1) * one);
      b->adr += (uintptr_t)((extent - 1) * other);
      one = -one;
      other = -other;
    }
    if (a->rank && join_both(a, b, extent, one, other)) continue;
    a->shape[a->rank] = b->shape[a->rank] = extent;
    a->strides[a->rank] = one;
    b->strides[a->rank] = other;
    b->rank = ++a->rank;
  }
  umem_array_end_axes(a, src->item_size);
  umem_array_end_axes(b, dst->item_size);
  from->is_run = umem_array_is_run(a, src->item_size);
  to->is_run = umem_array_is_run(b, dst->item_size);
}

/* ---- overlap ---- */

/* By way of RAM for all elements: reads the last before it writes the first. */
static void convert_through_ram(umemConversion const *conversion, umemArraySide const *from,
                                umemArraySide const *to, int64_t count) {
  umemVirtual *host = to->ctx->host;
  size_t size = conversion->dst_size, nbytes;
  uint64_t before = umem_thread.failures;
  if (__builtin_mul_overflow((size_t)count, size, &nbytes)) nbytes = SIZE_MAX;
  uintptr_t adr = umem_alloc(host, nbytes);
  if (adr == umem_null_of(host)) return;
  umemArraySide between = run_at(host, adr, count, size);
  convert_sides(conversion, from, &between, count);
  if (umem_thread.failures == before) {
    umem_array_scatter(host, adr, to, count, size);
    umem_finish(to->ctx);
  }
  umem_free(host, adr);
}

/* ---- the call ---- */

static void make_sides(umemArraySide *from, umemArraySide *to, umemArray const *src,
                       umemArray const *dst, int64_t src_offset, int64_t dst_offset,
                       int64_t count) {
  if (count == src->elements && umemArray_is_same_shape(dst, src)) {
    join(from, to, src, dst);
  } else {
    *from = umem_array_side(src, src->ctx, src_offset);
    *to = umem_array_side(dst, dst->ctx, dst_offset);
  }
}

/* Of one type. */
static void copy(umemArraySide const *from, umemArraySide const *to, int64_t count,
                 size_t item_size) {
  umem_array_copy_range(from, to, count, item_size);
  umem_finish(from->ctx);
  umem_finish(to->ctx);
}

static bool find_conversion(umemConversion *conversion, umemArray const *dst, umemArray const *src,
                            bool wraps) {
  char have[32], want[32];
  if (umem_conversion(conversion, src->type, dst->type, wraps)) return true;
  umem_element_name(src->type, have, sizeof have);
  umem_element_name(dst->type, want, sizeof want);
  return UMEM_FAIL(NULL, umemTypeError, "there is no conversion of %s to %s", have, want);
}

static void convert(umemArray *dst, umemArray *src, int64_t dst_offset, int64_t src_offset,
                    int64_t count, bool wraps) {
  umemConversion conversion;
  if (!umem_array_given_pair(dst, src) || !find_conversion(&conversion, dst, src, wraps) ||
      !umem_array_check_range(dst, "the destination", dst_offset, count) ||
      !umem_array_check_range(src, "the source", src_offset, count) || !count)
    return;
  umemArraySide from, to;
  make_sides(&from, &to, src, dst, src_offset, dst_offset, count);
  if (umem_array_sides_meet(&from, src->item_size, &to, dst->item_size, count))
    convert_through_ram(&conversion, &from, &to, count);
  else if (conversion.count)
    convert_sides(&conversion, &from, &to, count);
  else
    copy(&from, &to, count, dst->item_size);
}

void umemArray_convert(umemArray *dst, umemArray *src, int64_t dst_offset, int64_t src_offset,
                       int64_t count, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status);
  convert(dst, src, dst_offset, src_offset, count, false);
}

void umemArray_convert_wrapping(umemArray *dst, umemArray *src, int64_t dst_offset,
                                int64_t src_offset, int64_t count, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status);
  convert(dst, src, dst_offset, src_offset, count, true);
}
