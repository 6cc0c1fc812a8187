/* array_convert_rows.c - see array_convert_rows.h. */
#include "array/array_convert_rows.h"
#include "core/threads.h"

#include <stdlib.h>
#include <string.h>

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
  int inner; /* the dimension of the innermost loop: the last one, or that before it if the last one is short */
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

/* The last two dimensions, where the last one is short: its elements one by one for block_rows rows. */
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

/* Whether neighbours of dimension k are in different lines of the cache, more than stay there, and those of another
 * dimension are closer. */
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
