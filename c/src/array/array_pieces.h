/* array_pieces.h - copies between ranges of two arrays with gaps, without a buffer. */
#ifndef UMEM_ARRAY_PIECES_H
#define UMEM_ARRAY_PIECES_H

#include "array/array_side.h"

/* Copies count elements as a few boxes that both sides have. False, and nothing is done, where their shapes have no rows
 * in common, or where the boxes would be too many. */
bool umem_array_copy_pieces(umemArraySide const *from, umemArraySide const *to, int64_t count,
                            size_t item_size);

#endif
