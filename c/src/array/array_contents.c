/* array_contents.c - copies between arrays. */
#include "array/array_handle.h"
#include "array/array_pieces.h"
#include "array/array_side.h"
#include "core/context.h"
#include "core/order.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

/* Both sides have gaps, and no rows in common: through a buffer. */
static void copy_staged(umemArraySide from, umemArraySide to, int64_t count, size_t item_size) {
  umemArrayBuffer buffer;
  uint64_t before = umem_thread.failures;
  if (!umem_array_take_buffer(&buffer, from.ctx, to.ctx, count, item_size)) return;
  while (count && umem_thread.failures == before) {
    int64_t now = count < buffer.elements ? count : buffer.elements;
    umem_array_gather(&from, buffer.host, buffer.adr, now, item_size);
    if (umem_finish(from.ctx) != umemOK || umem_thread.failures != before) break;
    umem_array_scatter(buffer.host, buffer.adr, &to, now, item_size);
    if (umem_finish(to.ctx) != umemOK) break;
    from.offset += now;
    to.offset += now;
    count -= now;
  }
  umem_array_give_buffer(&buffer, to.ctx);
}

/* All elements are read before the first is written. */
static void copy_apart(umemArraySide const *from, umemArraySide const *to, int64_t count,
                       size_t item_size) {
  umemVirtual *host = to->ctx->host;
  uint64_t before = umem_thread.failures;
  uintptr_t adr = umem_alloc(host, (size_t)count * item_size);
  if (adr == umem_null_of(host)) return;
  umem_array_gather(from, host, adr, count, item_size);
  if (umem_finish(from->ctx) == umemOK && umem_thread.failures == before)
    umem_array_scatter(host, adr, to, count, item_size);
  umem_finish(to->ctx);
  umem_free(host, adr);
}

void umem_array_copy_range(umemArraySide const *from, umemArraySide const *to, int64_t count,
                           size_t item_size) {
  bool one_copy = from->is_run && to->is_run;
  if (!one_copy && umem_array_sides_meet(from, item_size, to, item_size, count))
    copy_apart(from, to, count, item_size);
  else if (to->is_run)
    umem_array_gather(from, to->ctx, umem_array_run_address(to, item_size), count, item_size);
  else if (from->is_run)
    umem_array_scatter(from->ctx, umem_array_run_address(from, item_size), to, count, item_size);
  else if (!umem_array_copy_pieces(from, to, count, item_size))
    copy_staged(*from, *to, count, item_size);
}

/* ---- copies ---- */

static bool check_types(umemArray const *dst, umemArray const *src) {
  char have[32], want[32];
  if (dst->type == src->type) return true;
  umem_element_name(src->type, have, sizeof have);
  umem_element_name(dst->type, want, sizeof want);
  return UMEM_FAIL(NULL, umemTypeError, "elements of %s cannot be copied to %s", have, want);
}

bool umem_array_check_range(umemArray const *array, char const *which, int64_t offset,
                            int64_t count) {
  bool inside =
      offset >= 0 && count >= 0 && offset <= array->elements && count <= array->elements - offset;
  return inside || UMEM_FAIL(NULL, umemIndexError,
                             "%jd elements from %jd on are outside of %s, which has %jd",
                             (intmax_t)count, (intmax_t)offset, which, (intmax_t)array->elements);
}

static bool check_copy(umemArray const *dst, umemArray const *src) {
  return umem_array_given_pair(dst, src) && check_types(dst, src);
}

static void fail_shapes(umemArray const *dst, umemArray const *src) {
  char from[umemArrayShapeText], to[umemArrayShapeText];
  umemVirtual_fail(NULL, umemValueError, "the source has shape %s, the destination %s",
                   umem_array_write_shape(from, src->rank, umem_array_shape(src)),
                   umem_array_write_shape(to, dst->rank, umem_array_shape(dst)));
}

void umemArray_assign(umemArray *dst, umemArray *src, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status);
  if (!check_copy(dst, src)) return;
  if (!umemArray_is_same_shape(dst, src))
    fail_shapes(dst, src);
  else if (dst->elements)
    umem_array_move(src->ctx, src->adr, umem_array_strides(src), dst->ctx, dst->adr,
                    umem_array_strides(dst), dst->rank, umem_array_shape(dst), dst->item_size);
}

void umemArray_copy_contents(umemArray *dst, umemArray *src, int64_t dst_offset, int64_t src_offset,
                             int64_t count, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status);
  if (!check_copy(dst, src) || !umem_array_check_range(dst, "the destination", dst_offset, count) ||
      !umem_array_check_range(src, "the source", src_offset, count) || !count)
    return;
  umemArraySide from = umem_array_side(src, src->ctx, src_offset),
                to = umem_array_side(dst, dst->ctx, dst_offset);
  umem_array_copy_range(&from, &to, count, dst->item_size);
}

/* The context that stands for ctx in a copy on queue: queue, if it is in the same memory. */
static umemVirtual *on_queue(umemVirtual *queue, umemVirtual *ctx) {
  return umem_is_same_device(queue, ctx) ? queue : ctx;
}

void umemArray_copy_contents_on(void *queue, umemArray *dst, umemArray *src, int64_t dst_offset,
                                int64_t src_offset, int64_t count, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status);
  umemVirtual *self = umem_check(queue);
  if (!self || !check_copy(dst, src) ||
      !umem_array_check_range(dst, "the destination", dst_offset, count) ||
      !umem_array_check_range(src, "the source", src_offset, count))
    return;
  umemArraySide from = umem_array_side(src, on_queue(self, src->ctx), src_offset);
  umemArraySide to = umem_array_side(dst, on_queue(self, dst->ctx), dst_offset);
  if (from.ctx != self && to.ctx != self)
    umemVirtual_fail(self, umemValueError, "the queue is in the memory of neither array");
  else if (count && umem_wait(self, src->ctx) == umemOK && umem_wait(self, dst->ctx) == umemOK)
    umem_array_copy_range(&from, &to, count, dst->item_size);
}
