/* array_convert.c - converts numbers, by up to three loops one after the other, rows of arrays of
 * one shape, and arrays of another type of element.
 *
 * Sources that umem can address are converted where they are, others a buffer at a time.
 * array_operand.h writes the results. */
#include "core/threads.h"
#include "array/array_operand.h"
#include "core/context.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <umem/array_convert.h>

/* ---- which conversion ---- */

/* Numbers between two loops: they stay in the first cache. */
enum { chunk = 1024 };

static size_t const sizes[] = {
    [umemNumberI8] = 1,   [umemNumberI16] = 2, [umemNumberI32] = 4, [umemNumberI64] = 8,
    [umemNumberU8] = 1,   [umemNumberU16] = 2, [umemNumberU32] = 4, [umemNumberU64] = 8,
    [umemNumberF32] = 4,  [umemNumberF64] = 8, [umemNumberF16] = 2, [umemNumberBf16] = 2,
    [umemNumberBool] = 1,
};

/* The numbers with this code, by the logarithm of their bytes. */
static umemNumber const by_code[][4] = {
    [umemCodeInt] = {umemNumberI8, umemNumberI16, umemNumberI32, umemNumberI64},
    [umemCodeUInt] = {umemNumberU8, umemNumberU16, umemNumberU32, umemNumberU64},
    [umemCodeFloat] = {umemNoNumber, umemNumberF16, umemNumberF32, umemNumberF64},
    [umemCodeHandle] = {umemNoNumber, umemNoNumber, umemNoNumber, umemNoNumber},
    [umemCodeBfloat] = {umemNoNumber, umemNumberBf16, umemNoNumber, umemNoNumber},
    [umemCodeComplex] = {umemNoNumber, umemNumberF16, umemNumberF32, umemNumberF64},
    [umemCodeBool] = {umemNumberBool, umemNoNumber, umemNoNumber, umemNoNumber},
};

/* What each part of an element is. */
static umemNumber number_of(umemElementType type) {
  unsigned code = umem_element_code(type);
  unsigned bits = umem_element_bits(type) / (umem_element_is_complex(type) ? 2 : 1);
  if (code > umemCodeBool || bits > 64) return umemNoNumber;
  return by_code[code][__builtin_ctz(bits / 8)];
}

static void add(umemConversion *conversion, umemConvertLoop *loop, size_t size) {
  conversion->loops[conversion->count] = loop;
  conversion->sizes[conversion->count++] = size;
}

static bool is_integer(umemNumber number) { return number <= umemNumberU64; }

/* To an integer, modulo 2^n. Integers that become longer ones keep their sign, and those of one
 * size their bytes. */
static void add_wrapping(umemConversion *c, umemConvertLoops const *loops, umemNumber from,
                         umemNumber to) {
  umemConvertLoop *loop = loops->wrapping[from][__builtin_ctzl(sizes[to])];
  bool is_unsigned = from >= umemNumberU8;
  umemNumber alike = (umemNumber)(to % umemNumberU8 + (is_unsigned ? umemNumberU8 : 0));
  if (!loop && from != alike) loop = loops->between[from][alike];
  if (loop) add(c, loop, sizes[to]);
}

/* Up to the number that comes before the last loop. float16 and bfloat16 are a float with few bits:
 * what is no float becomes one that is rounded to odd, so that the last loop rounds as if it were
 * the only one. */
static void add_middle(umemConversion *c, umemConvertLoops const *loops, umemNumber from,
                       umemNumber to) {
  bool narrow = to == umemNumberF16 || to == umemNumberBf16;
  if (narrow && from == umemNumberF32) return;
  if (narrow)
    add(c, loops->to_odd[from] ? loops->to_odd[from] : loops->between[from][umemNumberF32], 4);
  else if (to != umemNumberBool && from != to)
    add(c, loops->between[from][to], sizes[to]);
}

bool umem_conversion(umemConversion *conversion, umemElementType from, umemElementType to,
                     bool wraps) {
  umemConvertLoops const *loops = umem_convert_loops_here();
  bool complex = umem_element_is_complex(from);
  unsigned lanes = umem_element_lanes(from);
  *conversion = (umemConversion){.parts = lanes * (complex ? 2u : 1u),
                                 .src_size = umem_element_size(from),
                                 .dst_size = umem_element_size(to)};
  if (from == to) return true;
  umemNumber one = number_of(from), other = number_of(to);
  if (one == umemNoNumber || other == umemNoNumber || lanes != umem_element_lanes(to) ||
      complex != umem_element_is_complex(to))
    return false;
  if (one == umemNumberBool) {
    add(conversion, loops->bool_to_u8, 1);
    one = umemNumberU8;
  } else if (one == umemNumberF16 || one == umemNumberBf16) {
    add(conversion, one == umemNumberF16 ? loops->f16_to_f32 : loops->bf16_to_f32, 4);
    one = umemNumberF32;
  }
  if (wraps && is_integer(other))
    add_wrapping(conversion, loops, one, other);
  else
    add_middle(conversion, loops, one, other);
  if (other == umemNumberBool) add(conversion, loops->to_bool[one], 1);
  if (other == umemNumberF16) add(conversion, loops->f32_to_f16, 2);
  if (other == umemNumberBf16) add(conversion, loops->f32_to_bf16, 2);
  return true;
}

/* ---- conversion ---- */

/* One part of each element: by way of buffers without gaps where there is more than one loop. */
static void convert_part(umemConversion const *c, char const *src, ptrdiff_t src_step, char *dst,
                         ptrdiff_t dst_step, size_t count) {
  uint64_t between[2][chunk];
  int last = c->count - 1;
  for (size_t now; count; count -= now) {
    now = !last || count < chunk ? count : chunk;
    void const *from = src;
    ptrdiff_t step = src_step;
    for (int k = 0; k < last; k++) {
      c->loops[k](from, step, between[k], (ptrdiff_t)c->sizes[k], now);
      from = between[k];
      step = (ptrdiff_t)c->sizes[k];
    }
    c->loops[last](from, step, dst, dst_step, now);
    src += (ptrdiff_t)now * src_step;
    dst += (ptrdiff_t)now * dst_step;
  }
}

void umem_convert_steps(umemConversion const *c, void const *src, ptrdiff_t src_step, void *dst,
                        ptrdiff_t dst_step, size_t count) {
  size_t parts = c->parts;
  if (parts == 1) {
    convert_part(c, src, src_step, dst, dst_step, count);
    return;
  }
  ptrdiff_t in = (ptrdiff_t)(c->src_size / parts), out = (ptrdiff_t)(c->dst_size / parts);
  if (src_step == (ptrdiff_t)c->src_size && dst_step == (ptrdiff_t)c->dst_size) {
    convert_part(c, src, in, dst, out, count * parts);
    return;
  }
  for (size_t done = 0, now; done < count; done += now) {
    now = count - done < chunk ? count - done : chunk;
    char const *from = (char const *)src + (ptrdiff_t)done * src_step;
    char *to = (char *)dst + (ptrdiff_t)done * dst_step;
    for (size_t k = 0; k < parts; k++)
      convert_part(c, from + (ptrdiff_t)k * in, src_step, to + (ptrdiff_t)k * out, dst_step, now);
  }
}

void umem_convert(umemConversion const *c, void const *src, void *dst, size_t count) {
  if (c->count)
    umem_convert_steps(c, src, (ptrdiff_t)c->src_size, dst, (ptrdiff_t)c->dst_size, count);
  else
    memcpy(dst, src, count * c->dst_size);
}

/* ---- rows ---- */

enum {
  piece_bytes = 1 << 20, /* from which a thread more is worth waking */
  short_row = 8,         /* elements: a call for each such row takes longer than its elements */
  block_rows = 64,       /* of short rows at a time: they stay in the first cache */
  near_row =
      128 << 10, /* bytes: the lines of the cache of such a row are still there for the next row */
  cache_line = 64
};

typedef struct Rows {
  umemConversion const *conversion;
  umemArrayAxes const *from, *to; /* of one shape */
  /* The dimension of the innermost loop: the last one, or that before it if the last one is
   * short. */
  int inner;
  int cut; /* the dimension that the pieces share */
  unsigned pieces;
} Rows;

/* A part of the rows: extent elements in dimension cut. */
typedef struct Part {
  Rows const *rows;
  int64_t extent;
} Part;

static int64_t extent_of(Part const *part, int k) {
  return k == part->rows->cut ? part->extent : part->rows->to->shape[k];
}

/* One row. Most types need one loop, which is called without a detour: rows may be short. */
static inline void convert_row(umemConversion const *conversion, char const *src, int64_t in,
                               char *dst, int64_t out, int64_t count) {
  if (conversion->count == 1 && conversion->parts == 1)
    conversion->loops[0](src, (ptrdiff_t)in, dst, (ptrdiff_t)out, (size_t)count);
  else
    umem_convert_steps(conversion, src, (ptrdiff_t)in, dst, (ptrdiff_t)out, (size_t)count);
}

/* The last two dimensions, where the last one is short: its elements one by one for block_rows
 * rows. */
static void convert_short(Part const *part, char const *src, char *dst) {
  Rows const *rows = part->rows;
  int k = rows->inner;
  int64_t count = extent_of(part, k), columns = extent_of(part, k + 1);
  int64_t const *in = rows->from->strides + k, *out = rows->to->strides + k;
  for (int64_t now; count; count -= now) {
    now = count < block_rows ? count : block_rows;
    for (int64_t j = 0; j < columns; j++)
      convert_row(rows->conversion, src + j * in[1], in[0], dst + j * out[1], out[0], now);
    src += now * in[0];
    dst += now * out[0];
  }
}

/* The last two dimensions, row by row. */
static void convert_rows(Part const *part, char const *src, char *dst) {
  umemArrayAxes const *from = part->rows->from, *to = part->rows->to;
  int k = to->rank - 2;
  int64_t rows = extent_of(part, k), count = extent_of(part, k + 1);
  for (int64_t i = 0; i < rows; i++, src += from->strides[k], dst += to->strides[k])
    convert_row(part->rows->conversion, src, from->strides[k + 1], dst, to->strides[k + 1], count);
}

/* The dimensions from k on. */
static void convert_from(Part const *part, int k, char const *src, char *dst) {
  Rows const *rows = part->rows;
  int64_t in = rows->from->strides[k], out = rows->to->strides[k], count = extent_of(part, k);
  if (k == rows->to->rank - 1)
    convert_row(rows->conversion, src, in, dst, out, count);
  else if (k == rows->inner)
    convert_short(part, src, dst);
  else if (k == rows->to->rank - 2)
    convert_rows(part, src, dst);
  else
    for (int64_t i = 0; i < count; i++) convert_from(part, k + 1, src + i * in, dst + i * out);
}

static void convert_piece(void *data, unsigned piece) {
  Rows const *rows = data;
  int64_t all = rows->to->shape[rows->cut], part = all / rows->pieces, rest = all % rows->pieces;
  int64_t first = part * piece + (piece < rest ? piece : rest);
  Part const mine = {rows, part + (piece < rest)};
  convert_from(&mine, 0, (char const *)rows->from->adr + first * rows->from->strides[rows->cut],
               (char *)rows->to->adr + first * rows->to->strides[rows->cut]);
}

/* Whether neighbours of dimension k are in different lines of the cache, more than stay there, and
 * those of another dimension are closer. */
static bool is_turned(umemArrayAxes const *axes, int k) {
  int64_t step = llabs(axes->strides[k]);
  if (step <= near_row / axes->shape[k]) return false;
  for (int j = 0; j < axes->rank && step > cache_line; j++)
    if (llabs(axes->strides[j]) < step) return true;
  return false;
}

static int longest(umemArrayAxes const *axes) {
  int longest = 0;
  for (int k = 1; k < axes->rank; k++)
    if (axes->shape[k] > axes->shape[longest]) longest = k;
  return longest;
}

bool umem_array_convert_rows(umemConversion const *conversion, umemArrayAxes const *from,
                             umemArrayAxes const *to) {
  Rows rows = {.conversion = conversion, .from = from, .to = to, .inner = to->rank - 1};
  size_t shape_bytes = (size_t)to->rank * sizeof *to->shape;
  if (from->rank != to->rank || memcmp(from->shape, to->shape, shape_bytes) != 0) return false;
  int last = rows.inner;
  if (last && to->shape[last] < short_row && to->shape[last - 1] > to->shape[last]) rows.inner--;
  if (is_turned(from, rows.inner)) return false;
  size_t size =
      conversion->src_size > conversion->dst_size ? conversion->src_size : conversion->dst_size;
  for (int k = 0; k < to->rank; k++) size *= (size_t)to->shape[k];
  rows.cut = longest(to);
  rows.pieces = umem_parallel_pieces(size, piece_bytes, umemParallelMost);
  if (rows.pieces > to->shape[rows.cut]) rows.pieces = (unsigned)to->shape[rows.cut];
  umem_parallel(rows.pieces, convert_piece, &rows);
  return true;
}

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
static bool convert_by_rows(umemConversion const *conversion, umemArraySide const *from,
                            umemArraySide const *to, int64_t count) {
  return conversion->count && umem_array_is_whole(&to->axes, count) &&
         umem_array_is_here(to->ctx, umemWritable) && umem_finish(to->ctx) == umemOK &&
         umem_array_convert_rows(conversion, &from->axes, &to->axes);
}

static void convert_here(umemConversion const *conversion, umemArraySide const *from,
                         umemArraySide const *to, int64_t count) {
  uint64_t before = umem_thread.failures;
  if (!convert_by_rows(conversion, from, to, count) && umem_thread.failures == before)
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
