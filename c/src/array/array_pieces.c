/* array_pieces.c - see array_pieces.h.
 *
 * Both sides get the same inner dimensions: the larger extent of two is split where it is a multiple of the other. Where
 * a row of the destination begins in the middle of a row of the source, at element s, all rows are copied as two
 * boxes: what each takes from the rest of its row of the source, and what it takes from the first s elements of the
 * next row. The same holds for rows of rows. */
#include "array/array_pieces.h"
#include "core/status.h"

/* Dimensions whose rows begin at another index on each side. Each may double the number of boxes. */
enum { most_shifts = 4 };

/* Two sides over one shape: dimensions first ... UMEM_MAX_RANK - 1, of which the outermost has no end. */
typedef struct Pieces {
  umemVirtual *src, *dst;
  size_t item_size;
  uint64_t before; /* failures */
  int first;
  int64_t shape[UMEM_MAX_RANK], src_strides[UMEM_MAX_RANK], dst_strides[UMEM_MAX_RANK];
  int64_t box[UMEM_MAX_RANK]; /* the shape of what is copied now */
} Pieces;

/* A dimension of one side that is being matched. */
typedef struct Axis {
  umemArrayAxes const *axes;
  int k;
  int64_t extent, stride;
} Axis;

static void next_axis(Axis *axis, int64_t taken) {
  axis->extent /= taken;
  axis->stride = (int64_t)((uint64_t)axis->stride * (uint64_t)taken);
  if (axis->extent > 1 || axis->k == 0) return;
  axis->k--;
  axis->extent = axis->axes->shape[axis->k];
  axis->stride = axis->axes->strides[axis->k];
}

static Axis last_axis(umemArrayAxes const *axes) {
  int k = axes->rank - 1;
  return (Axis){axes, k, axes->shape[k], axes->strides[k]};
}

/* The extent that both have; 0 if there is none. */
static int64_t common_extent(Axis const *one, Axis const *other) {
  if (one->k == 0) return other->extent;
  if (other->k == 0) return one->extent;
  if (one->extent % other->extent == 0) return other->extent;
  return other->extent % one->extent == 0 ? one->extent : 0;
}

static bool match(Pieces *pieces, umemArrayAxes const *from, umemArrayAxes const *to) {
  Axis src = last_axis(from), dst = last_axis(to);
  for (pieces->first = UMEM_MAX_RANK - 1; pieces->first >= 0; pieces->first--) {
    pieces->src_strides[pieces->first] = src.stride;
    pieces->dst_strides[pieces->first] = dst.stride;
    if (src.k == 0 && dst.k == 0) return true;
    int64_t extent = common_extent(&src, &dst);
    if (extent == 0) return false;
    pieces->shape[pieces->first] = extent;
    next_axis(&src, extent);
    next_axis(&dst, extent);
  }
  return false;
}

/* The address of element or row `index` of dimension k. */
static uintptr_t address(Pieces const *pieces, int64_t const *strides, int k, uintptr_t adr,
                         int64_t index) {
  for (; k > pieces->first; index /= pieces->shape[k--])
    adr += (uintptr_t)(index % pieces->shape[k] * strides[k]);
  return adr + (uintptr_t)(index * strides[k]);
}

/* Copies count rows of dimension k, which is one for both sides, from row s to row d. */
static void copy_box(Pieces *pieces, int k, uintptr_t src, int64_t s, uintptr_t dst, int64_t d,
                     int64_t count) {
  pieces->box[k] = count;
  umem_array_move(pieces->src, address(pieces, pieces->src_strides, k, src, s),
                  pieces->src_strides + k, pieces->dst,
                  address(pieces, pieces->dst_strides, k, dst, d), pieces->dst_strides + k,
                  UMEM_MAX_RANK - k, pieces->box + k, pieces->item_size);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The same for any rows: a row is box[k + 1 ...] elements, from src and to dst on. */
static void copy_rows(Pieces *pieces, int k, uintptr_t src, int64_t s, uintptr_t dst, int64_t d,
                      int64_t count) {
  if (k == pieces->first) {
    copy_box(pieces, k, src, s, dst, d, count);
    return;
  }
  int64_t const extent = pieces->shape[k];
  while (count && umem_thread.failures == pieces->before) {
    int64_t shift = s % extent, filled = d % extent, now;
    if (filled || count < extent) {
      now = least(count, extent - (shift > filled ? shift : filled));
      copy_box(pieces, k, src, s, dst, d, now);
    } else {
      int64_t rows = count / extent, rest = extent - shift;
      now = rows * extent;
      pieces->box[k] = rest;
      copy_rows(pieces, k - 1, src + (uintptr_t)(shift * pieces->src_strides[k]), s / extent, dst,
                d / extent, rows);
      pieces->box[k] = shift;
      if (shift)
        copy_rows(pieces, k - 1, src, s / extent + 1,
                  dst + (uintptr_t)(rest * pieces->dst_strides[k]), d / extent, rows);
    }
    s += now;
    d += now;
    count -= now;
  }
}

bool umem_array_copy_pieces(umemArraySide const *from, umemArraySide const *to, int64_t count,
                            size_t item_size) {
  Pieces pieces = {
      .src = from->ctx, .dst = to->ctx, .item_size = item_size, .before = umem_thread.failures};
  if (!match(&pieces, &from->axes, &to->axes)) return false;
  int shifts = from->offset == to->offset ? 0 : UMEM_MAX_RANK - 1 - pieces.first;
  if (shifts > most_shifts) return false;
  copy_rows(&pieces, UMEM_MAX_RANK - 1, from->axes.adr, from->offset, to->axes.adr, to->offset,
            count);
  return true;
}
