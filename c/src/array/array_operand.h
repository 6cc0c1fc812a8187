/* array_operand.h - what the functions on arrays share: the bytes of an array, where the CPU finds
 * them, pieces of arrays that it cannot address, new arrays for results, and conversions. */
#ifndef UMEM_ARRAY_OPERAND_H
#define UMEM_ARRAY_OPERAND_H

#include "array/array_handle.h"
#include "array/loops.h"

/* ---- ranges of addresses ---- */

/* The dimensions of an array, those joined that need no stride of their own. */
typedef struct umemArrayAxes {
  uintptr_t adr;
  int rank; /* at least 1 */
  int64_t shape[UMEM_MAX_RANK];
  int64_t strides[UMEM_MAX_RANK];
} umemArrayAxes;

/* One element has an axis, too: adds it where there is none. */
void umem_array_end_axes(umemArrayAxes *axes, size_t item_size);

/* Fills order[rank] with the dimensions by falling size of their strides; those of equal size keep
 * their order. */
void umem_array_sort(int rank, int64_t const *strides, int *order);

/* The axes of the elements in any order: by falling strides, which are not negative, and adr is the
 * first byte of all. The array has elements. */
void umem_array_axes_of_memory(umemArrayAxes *axes, umemArray const *array);

/* Whether the elements follow one another without gaps. */
bool umem_array_is_run(umemArrayAxes const *axes, size_t item_size);

/* Joins a dimension with the one before it, of *extent elements that are *stride bytes apart, where
 * they follow one another without a gap. False where they do not, and where the numbers do not
 * fit. */
static inline bool umem_array_join(int64_t *extent, int64_t *stride, int64_t inner_extent,
                                   int64_t inner_stride) {
  int64_t row, all;
  if (__builtin_mul_overflow(inner_extent, inner_stride, &row) || *stride != row ||
      __builtin_mul_overflow(*extent, inner_extent, &all))
    return false;
  *extent = all;
  *stride = inner_stride;
  return true;
}

/* ---- sides ---- */

/* Copies a box. Strides NULL: without gaps, in C order. */
void umem_array_move(umemVirtual *src, uintptr_t src_adr, int64_t const *src_strides,
                     umemVirtual *dst, uintptr_t dst_adr, int64_t const *dst_strides, int rank,
                     int64_t const *shape, size_t item_size);

/* Whether the CPU may read or write (access: umemReadable or umemWritable) the elements where they
 * are: it can address them, and no layer of ctx looks at copies, as those do that check, log or
 * fail them. Before it does, umem_finish(ctx). Managed memory is read where it is, but not written:
 * its pages would leave the GPU one by one. On an H100 that took 2.5 times as long as copies for 64
 * KiB, and the GPU's next access 5 times. */
bool umem_array_is_here(umemVirtual *ctx, umemCapability access);

/* The elements of an array from offset on. */
typedef struct umemArraySide {
  umemVirtual *ctx; /* what copies them: the array's, or another one of its memory */
  umemArrayAxes axes;
  int64_t offset;
  bool is_run; /* they follow one another without gaps */
} umemArraySide;

umemArraySide umem_array_side(umemArray const *array, umemVirtual *ctx, int64_t offset);

/* Of a side that is a run. */
uintptr_t umem_array_run_address(umemArraySide const *run, size_t item_size);

/* Copies count elements of a side to bytes without gaps at adr, and the other way round. */
void umem_array_gather(umemArraySide const *from, umemVirtual *ctx, uintptr_t adr, int64_t count,
                       size_t item_size);
void umem_array_scatter(umemVirtual *ctx, uintptr_t adr, umemArraySide const *to, int64_t count,
                        size_t item_size);

/* Whether there are count elements in all. */
bool umem_array_is_whole(umemArrayAxes const *axes, int64_t count);

/* Whether one of count elements of a side has bytes of one of the other, as umem_items_meet. */
bool umem_array_sides_meet(umemArraySide const *from, size_t src_size, umemArraySide const *to,
                           size_t dst_size, int64_t count);

/* Copies count elements of one type between sides of other shapes, also within one array. */
void umem_array_copy_range(umemArraySide const *from, umemArraySide const *to, int64_t count,
                           size_t item_size);

/* Whether array has these elements; else records umemIndexError about `which`, "the source" for
 * example. */
bool umem_array_check_range(umemArray const *array, char const *which, int64_t offset,
                            int64_t count);

/* RAM for elements on their way. */
typedef struct umemArrayBuffer {
  umemVirtual *host;
  uintptr_t adr;
  int64_t elements;    /* at least 1, at most those that were asked for */
  uint64_t unfinished; /* work, when it was taken */
} umemArrayBuffer;

/* Allocates a buffer for count elements from one context to the other, or fewer. False, and a
 * status, without RAM. */
bool umem_array_take_buffer(umemArrayBuffer *buffer, umemVirtual *from, umemVirtual *to,
                            int64_t count, size_t item_size);

/* Frees it, after the copies of ctx that may still use it. */
void umem_array_give_buffer(umemArrayBuffer const *buffer, umemVirtual *ctx);

/* ---- pieces ---- */

/* Copies count elements as a few boxes that both sides have. False, and nothing is done, where
 * their shapes have no rows in common, or where the boxes would be too many. */
bool umem_array_copy_pieces(umemArraySide const *from, umemArraySide const *to, int64_t count,
                            size_t item_size);

/* ---- results ---- */

/* What computes elements. */
typedef struct umemArrayMaker {
  /* Writes the elements first ... first + count - 1, without gaps, to out. Called by many threads
   * at a time, for ranges that do not overlap, and computes the same whatever the ranges are.
   * scratch: the bytes asked for below. Records no failure. */
  void (*make)(struct umemArrayMaker const *self, int64_t first, int64_t count, void *out,
               void *scratch);
  size_t item_size; /* of an element */
  /* Elements that a call without room of its own in the array makes at most, at least 1. */
  int64_t chunk;
  size_t scratch; /* bytes, which may be 0 */
  /* Calls are as long as the chunk even where the array has shorter rows without gaps. */
  bool whole;
} umemArrayMaker;

/* Bytes of a chunk that stays in the first cache, and of one with some whole columns, which stays
 * in the second. */
enum { umemArrayNear = 16 << 10, umemArrayWide = 256 << 10 };

/* How many elements of that size are in so many bytes: at least 1. */
int64_t umem_array_chunk(size_t bytes, size_t item_size);

/* Writes count elements to the side, whose memory allows it, in blocks of bounded size. On contexts
 * that umem cannot address the elements are copied, and have arrived on return. */
void umem_array_make(umemArraySide const *to, int64_t count, umemArrayMaker const *maker);

/* ---- sides in RAM ---- */

/* How many of the elements from offset on follow one another without gaps, and where they are. */
int64_t umem_array_span(umemArrayAxes const *axes, int64_t offset, size_t item_size,
                        uintptr_t *adr);

/* Copies count elements of RAM to bytes without gaps, in the calling thread. */
void umem_array_pick(umemArrayAxes const *from, int64_t offset, int64_t count, void *out,
                     size_t item_size);

/* ---- conversions; array_convert.c ---- */

/* Where elements of one type become elements of another one: by up to three loops, one after the
 * other. */
typedef struct umemConversion {
  umemConvertLoop *loops[3];
  size_t sizes[3];           /* bytes of a number after each loop */
  int count;                 /* of loops; 0 where the bytes stay as they are */
  size_t parts;              /* numbers of an element: 2 for complex, times the lanes */
  size_t src_size, dst_size; /* bytes of an element */
} umemConversion;

/* wraps: numbers out of the range of an integer type wrap. False, with nothing recorded, where
 * umem/array_convert.h defines no conversion. */
bool umem_conversion(umemConversion *conversion, umemElementType from, umemElementType to,
                     bool wraps);

/* Converts count elements without gaps, in the calling thread. */
void umem_convert(umemConversion const *conversion, void const *src, void *dst, size_t count);

/* Converts count elements that are so many bytes apart. The count of loops is not 0. */
void umem_convert_steps(umemConversion const *conversion, void const *src, ptrdiff_t src_step,
                        void *dst, ptrdiff_t dst_step, size_t count);

/* Converts all elements where they are, without buffers; the conversion has loops. False, with
 * nothing done, where the shapes differ, and where rows of one side are columns of the other: then
 * tiles are faster. to goes up by its strides. */
bool umem_array_convert_rows(umemConversion const *conversion, umemArrayAxes const *from,
                             umemArrayAxes const *to);

#endif
