/* umem/reduce.cuh - reductions on GPUs; reduce.hpp includes it in files that nvcc compiles. CUB
 * reduces contiguous elements. */
#ifndef UMEM_REDUCE_CUH
#define UMEM_REDUCE_CUH

#include <umem/detail/device.hpp>
#include <umem/detail/loop_layout.hpp>
#include <umem/detail/map_kernels.cuh>
#include <umem/detail/scratch.cuh>
#include <umem/detail/sweep_kernels.cuh>

#include <cub/device/device_reduce.cuh>

#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* Operation and function with R as their only type: CUB takes the type in which it accumulates
 * from them. */
template <class R, class Op> struct OpOf {
  Op op;
  __device__ R operator()(R const &a, R const &b) { return static_cast<R>(op(a, b)); }
};
template <class R, class F, class T> struct ValueOf {
  F f;
  __device__ R operator()(T const &element) { return static_cast<R>(f(element)); }
};

template <class R, class Op, class F, class T>
R cub_reduce(DevicePlace const &place, Op const &op, F const &f, R const &init, T const *first,
             index_t count) {
  Work work(place);
  std::size_t nbytes = 0;
  auto reduce = [&](void *temporary, R *result) {
    check_cuda(cub::DeviceReduce::TransformReduce(temporary, nbytes, first, result, count,
                                                  OpOf<R, Op>{op}, ValueOf<R, F, T>{f}, init,
                                                  stream_of(place)),
               "a reduction");
  };
  reduce(nullptr, nullptr); /* sets nbytes */
  constexpr std::size_t result_bytes = (sizeof(R) + 255) / 256 * 256;
  Scratch scratch(place, work.device(), result_bytes + nbytes);
  reduce(scratch.as<unsigned char>() + result_bytes, scratch.as<R>());
  R result;
  scratch.download(place, &result, sizeof result);
  return result;
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and f(element of each view). */
template <class R, class Op, class F, class T, int N, class... A>
R device_reduce(DevicePlace const &place, Op const &op, F const &f, R const &init,
                View<T, N> const &view, View<A, N> const &...others) {
  static_assert(std::is_trivially_copyable_v<R> && std::is_default_constructible_v<R>,
                "results of kernels are trivially copyable and can be default-constructed");
  if (view.size() == 0) return init;
  auto loops = loops_of(view, others...);
  simplify(loops);
  constexpr int L = loop_rank<N>;
  if constexpr (sizeof...(A) == 0)
    if (loops.is_contiguous())
      return cub_reduce<R>(place, op, f, init, view.data, loops.extents.at[L - 1]);
  using All = std::make_integer_sequence<int, 1 + sizeof...(A)>;
  MapStrided<false, All, L, F, T, A...> call(f, loops, view.data, others.data...);
  return device_index_reduce<index_t>(place, op, call, init, Extents<L>(), loops.extents);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
