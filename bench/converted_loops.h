/* converted_loops.h - the loops that a program writes to convert numbers of a part of an array. */
#ifndef UMEM_BENCH_CONVERTED_LOOPS_H
#define UMEM_BENCH_CONVERTED_LOOPS_H

#include <cstdint>

namespace bench {

/* Two arrays of one shape. Strides and the first element are in elements. */
struct Pattern {
  char const *name;
  int rank; /* 1 to 3 */
  std::int64_t shape[3], src_strides[3], dst_strides[3], src_first, dst_first;
};

/* Converts all elements in C order, by a cast. */
using ConvertLoop = void(Pattern const &, void const *src, void *dst);
ConvertLoop loop_f32_f64, loop_f64_f32, loop_i32_f32, loop_u8_f32, loop_i64_f64;

} // namespace bench

#endif
