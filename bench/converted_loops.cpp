/* Compiled with -O2, as most programs are. */
#include "converted_loops.h"

namespace bench {
namespace {

template <class S, class D> void convert(Pattern const &p, void const *src, void *dst) {
  S const *from = static_cast<S const *>(src) + p.src_first;
  D *to = static_cast<D *>(dst) + p.dst_first;
  std::int64_t const *in = p.src_strides, *out = p.dst_strides;
  if (p.rank == 1) {
    for (std::int64_t i = 0; i < p.shape[0]; i++) to[i * out[0]] = static_cast<D>(from[i * in[0]]);
  } else if (p.rank == 2) {
    for (std::int64_t i = 0; i < p.shape[0]; i++)
      for (std::int64_t j = 0; j < p.shape[1]; j++)
        to[i * out[0] + j * out[1]] = static_cast<D>(from[i * in[0] + j * in[1]]);
  } else {
    for (std::int64_t i = 0; i < p.shape[0]; i++)
      for (std::int64_t j = 0; j < p.shape[1]; j++)
        for (std::int64_t k = 0; k < p.shape[2]; k++)
          to[i * out[0] + j * out[1] + k * out[2]] =
              static_cast<D>(from[i * in[0] + j * in[1] + k * in[2]]);
  }
}

} // namespace

void loop_f32_f64(Pattern const &p, void const *src, void *dst) {
  convert<float, double>(p, src, dst);
}
void loop_f64_f32(Pattern const &p, void const *src, void *dst) {
  convert<double, float>(p, src, dst);
}
void loop_i32_f32(Pattern const &p, void const *src, void *dst) {
  convert<std::int32_t, float>(p, src, dst);
}
void loop_u8_f32(Pattern const &p, void const *src, void *dst) {
  convert<std::uint8_t, float>(p, src, dst);
}
void loop_i64_f64(Pattern const &p, void const *src, void *dst) {
  convert<std::int64_t, double>(p, src, dst);
}

} // namespace bench
