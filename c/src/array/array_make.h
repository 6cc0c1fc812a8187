/* array_make.h - writes elements that are computed in RAM, in the order of an array, to an array anywhere. */
#ifndef UMEM_ARRAY_MAKE_H
#define UMEM_ARRAY_MAKE_H

#include "array/array_side.h"

/* What computes elements. */
typedef struct umemArrayMaker {
  /* Writes the elements first ... first + count - 1, without gaps, to out. Called by many threads at a time, for ranges
   * that do not overlap, and computes the same whatever the ranges are. scratch: the bytes asked for below. Records
   * no failure. */
  void (*make)(struct umemArrayMaker const *self, int64_t first, int64_t count, void *out,
               void *scratch);
  size_t item_size; /* of an element */
  int64_t
      chunk; /* elements that a call without room of its own in the array makes at most, at least 1 */
  size_t scratch; /* bytes, which may be 0 */
  bool
      whole; /* calls are as long as the chunk even where the array has shorter rows without gaps */
} umemArrayMaker;

/* Bytes of a chunk that stays in the first cache, and of one with some whole columns, which stays in the second. */
enum { umemArrayNear = 16 << 10, umemArrayWide = 256 << 10 };

/* How many elements of that size are in so many bytes: at least 1. */
int64_t umem_array_chunk(size_t bytes, size_t item_size);

/* Writes count elements to the side, whose memory allows it, in blocks of bounded size. On contexts that umem cannot
 * address the elements are copied, and have arrived on return. */
void umem_array_make(umemArraySide const *to, int64_t count, umemArrayMaker const *maker);

/* ---- sides in RAM ---- */

/* How many of the elements from offset on follow one another without gaps, and where they are. */
int64_t umem_array_span(umemArrayAxes const *axes, int64_t offset, size_t item_size,
                        uintptr_t *adr);

/* Copies count elements of RAM to bytes without gaps, and the other way round, in the calling thread. */
void umem_array_pick(umemArrayAxes const *from, int64_t offset, int64_t count, void *out,
                     size_t item_size);
void umem_array_put(void const *in, umemArrayAxes const *to, int64_t offset, int64_t count,
                    size_t item_size);

#endif
