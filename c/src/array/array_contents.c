/* array_contents.c - copies, compares and fills what is in arrays. */
#include "array/array_operand.h"
#include "core/context.h"

#include <stdlib.h>
#include <string.h>

/* ---- contents ---- */

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
static void copy_through_ram(umemArraySide const *from, umemArraySide const *to, int64_t count,
                             size_t item_size) {
  umemVirtual *host = to->ctx->host;
  uint64_t before = umem_thread.failures, unfinished = umem_unfinished_so_far();
  uintptr_t adr = umem_alloc(host, (size_t)count * item_size);
  if (adr == umem_null_of(host)) return;
  umem_array_gather(from, host, adr, count, item_size);
  if (umem_finish(from->ctx) == umemOK && umem_thread.failures == before)
    umem_array_scatter(host, adr, to, count, item_size);
  umem_finish(to->ctx);
  umem_free_buffer(host, adr, unfinished);
}

void umem_array_copy_range(umemArraySide const *from, umemArraySide const *to, int64_t count,
                           size_t item_size) {
  bool one_copy = from->is_run && to->is_run;
  if (!one_copy && umem_array_sides_meet(from, item_size, to, item_size, count))
    copy_through_ram(from, to, count, item_size);
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

/* ---- filling ---- */

/* Whether all bytes are equal, so that umem_set can write them. */
static bool is_one_byte(unsigned char const *value, size_t size) {
  for (size_t i = 1; i < size; i++)
    if (value[i] != value[0]) return false;
  return true;
}

/* Writes the first element to those after it, doubling what is there. */
static void repeat(unsigned char *bytes, size_t size, size_t all) {
  for (size_t done = size; done < all; done *= 2)
    memcpy(bytes + done, bytes, done < all - done ? done : all - done);
}

/* ---- by the CPU ---- */

enum { pattern_size = 4096 };

/* Stores value in count elements that are stride bytes apart. For sizes that the compiler knows
 * this is one store each. */
#define FILL_LINE(size)                                                                            \
  for (int64_t i = 0; i < count; i++) memcpy(bytes + i * stride, value, size)
#define CASE_OF(size)                                                                              \
  case size:                                                                                       \
    FILL_LINE(size);                                                                               \
    break

static void fill_line(unsigned char *bytes, int64_t count, int64_t stride, void const *value,
                      size_t size) {
  switch (size) {
    CASE_OF(1);
    CASE_OF(2);
    CASE_OF(4);
    CASE_OF(8);
    CASE_OF(16);
  default:
    FILL_LINE(size);
  }
}

/* Fills a row without gaps: copies of a pattern that stays in the cache. */
static void fill_run(unsigned char *bytes, size_t nbytes, void const *value, size_t size) {
  unsigned char pattern[pattern_size];
  size_t whole = size < pattern_size ? pattern_size / size * size : 0, done = 0;
  if (nbytes < 2 * pattern_size || !whole) {
    fill_line(bytes, (int64_t)(nbytes / size), (int64_t)size, value, size);
    return;
  }
  memcpy(pattern, value, size);
  repeat(pattern, size, whole);
  for (; done + whole <= nbytes; done += whole) memcpy(bytes + done, pattern, whole);
  memcpy(bytes + done, pattern, nbytes - done);
}

/* The dimensions from k on. */
static void fill_axes(umemArrayAxes const *axes, int k, unsigned char *bytes, void const *value,
                      size_t size) {
  int64_t count = axes->shape[k], stride = axes->strides[k];
  if (k < axes->rank - 1)
    for (int64_t i = 0; i < count; i++) fill_axes(axes, k + 1, bytes + i * stride, value, size);
  else if (stride == (int64_t)size)
    fill_run(bytes, (size_t)count * size, value, size);
  else
    fill_line(bytes, count, stride, value, size);
}

/* ---- everywhere else ---- */

/* Copies what was written to the beginning of a run on to the rest of it, in the memory itself. */
static void double_run(umemVirtual *ctx, uintptr_t adr, size_t done, size_t all) {
  for (uint64_t before = umem_thread.failures; done < all && umem_thread.failures == before;
       done *= 2)
    umem_copy_to(ctx, adr, ctx, adr + done, done < all - done ? done : all - done);
}

static void fill_through_buffer(umemArray *array, umemArrayAxes const *axes, void const *value) {
  umemArraySide to = umem_array_side(array, array->ctx, 0);
  to.axes = *axes;
  to.is_run = umem_array_is_run(axes, array->item_size);
  umemArrayBuffer buffer;
  size_t size = array->item_size;
  uint64_t before = umem_thread.failures;
  if (!umem_array_take_buffer(&buffer, array->ctx->host, array->ctx, array->elements, size)) return;
  size_t nbytes = (size_t)buffer.elements * size;
  memcpy((void *)buffer.adr, value, size);
  repeat((unsigned char *)buffer.adr, size, nbytes);
  bool doubles = to.is_run && umem_can(array->ctx, umemReadable | umemDeviceAccessible) &&
                 !umem_cpu_writes(array->ctx);
  int64_t last = doubles ? buffer.elements : array->elements;
  while (to.offset < last && umem_thread.failures == before) {
    int64_t now = last - to.offset < buffer.elements ? last - to.offset : buffer.elements;
    umem_array_scatter(buffer.host, buffer.adr, &to, now, size);
    to.offset += now;
  }
  if (doubles && umem_thread.failures == before)
    double_run(array->ctx, axes->adr, nbytes, (size_t)array->elements * size);
  umem_array_give_buffer(&buffer, array->ctx);
}

/* In the order of the memory, whatever that of the elements is. */
static void fill(umemArray *array, void const *value) {
  umemArrayAxes axes;
  size_t size = array->item_size;
  if (!array->elements) return;
  umem_array_axes_of_memory(&axes, array);
  umemVirtual *ctx = array->ctx;
  bool is_set = umem_array_is_run(&axes, size) && is_one_byte(value, size);
  if (is_set && !umem_is_plain_host(ctx))
    umem_set(ctx, axes.adr, *(unsigned char const *)value, (size_t)array->elements * size);
  else if (umem_can(ctx, umemOrdered) || !umem_array_is_here(ctx, umemWritable))
    fill_through_buffer(array, &axes, value); /* in the order of the queue */
  else if (umem_finish(ctx) == umemOK)
    fill_axes(&axes, 0, (unsigned char *)axes.adr, value, size);
}

void umemArray_fill(umemArray *array, void const *value, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status);
  if (!umem_array_writable(array)) return;
  if (!value)
    umemVirtual_fail(NULL, umemValueError, "the value is NULL");
  else
    fill(array, value);
}

void umemArray_clear(umemArray *array, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status);
  if (!umem_array_writable(array)) return;
  unsigned char *zero = calloc(1, array->item_size); /* up to 1 MiB: 65535 lanes */
  if (!zero)
    umemVirtual_fail(NULL, umemMemoryError, "no memory for an element");
  else
    fill(array, zero);
  free(zero);
}
