/* array_side.h - a range of an array's elements as one side of a copy, and buffers between two sides. */
#ifndef UMEM_ARRAY_SIDE_H
#define UMEM_ARRAY_SIDE_H

#include "array/array_range.h"

/* Copies a box. Strides NULL: without gaps, in C order. */
void umem_array_move(umemVirtual *src, uintptr_t src_adr, int64_t const *src_strides,
                     umemVirtual *dst, uintptr_t dst_adr, int64_t const *dst_strides, int rank,
                     int64_t const *shape, size_t item_size);

/* Whether the CPU may read or write (access: umemReadable or umemWritable) the elements where they are: it can address
 * them, and no layer of ctx looks at copies, as those do that check, log or fail them. Before it does,
 * umem_finish(ctx). Managed memory is read where it is, but not written: its pages would leave the GPU one by one. On
 * an H100 that took 2.5 times as long as copies for 64 KiB, and the GPU's next access 5 times. */
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

/* Whether array has these elements; else records umemIndexError about `which`, "the source" for example. */
bool umem_array_check_range(umemArray const *array, char const *which, int64_t offset,
                            int64_t count);

/* RAM for elements on their way. */
typedef struct umemArrayBuffer {
  umemVirtual *host;
  uintptr_t adr;
  int64_t elements; /* at least 1, at most those that were asked for */
} umemArrayBuffer;

/* Allocates a buffer for count elements from one context to the other, or fewer. False, and a status, without RAM. */
bool umem_array_take_buffer(umemArrayBuffer *buffer, umemVirtual *from, umemVirtual *to,
                            int64_t count, size_t item_size);

/* Frees it, after the copies of ctx that may still use it. */
void umem_array_give_buffer(umemArrayBuffer const *buffer, umemVirtual *ctx);

#endif
