/* umem/reduce.cuh - reductions on GPUs; reduce.hpp includes it in files that nvcc compiles. CUB
 * reduces contiguous elements. */
#ifndef UMEM_REDUCE_CUH
#define UMEM_REDUCE_CUH

#include <umem/detail/map_kernels.cuh>
#include <umem/detail/sweep_kernels.cuh>

#include <cub/device/device_reduce.cuh>

namespace umem::detail {

/* Operation and function with Result as their only type: CUB takes the type in which it accumulates
 * from them. */
template <class Result, class Op> struct OpOf {
  Op op;
  __device__ Result operator()(Result const &a, Result const &b) {
    return static_cast<Result>(op(a, b));
  }
};
template <class Result, class Function, class Type> struct ValueOf {
  Function functor;
  __device__ Result operator()(Type const &element) {
    return static_cast<Result>(functor(element));
  }
};

template <class Result, class Op, class Function, class Type>
Result cub_reduce(DevicePlace const &place, Op const &op, Function const &functor,
                  Result const &init, Type const *first, index_t count) {
  Work work(place);
  std::size_t nbytes = 0;
  auto reduce = [&](void *temporary, Result *result) {
    check_cuda(cub::DeviceReduce::TransformReduce(
                   temporary, nbytes, first, result, count, OpOf<Result, Op>{op},
                   ValueOf<Result, Function, Type>{functor}, init, stream_of(place)),
               "a reduction");
  };
  reduce(nullptr, nullptr); /* sets nbytes */
  constexpr std::size_t result_bytes = (sizeof(Result) + 255) / 256 * 256;
  Scratch scratch(place, work.device(), result_bytes + nbytes);
  reduce(scratch.as<unsigned char>() + result_bytes, scratch.as<Result>());
  Result result;
  scratch.download(place, &result, sizeof result);
  return result;
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and f(element of each view). */
template <class Result, class Op, class Function, class Type, int Rank, class... Operands>
Result device_reduce(DevicePlace const &place, Op const &op, Function const &functor,
                     Result const &init, View<Type, Rank> const &view,
                     View<Operands, Rank> const &...others) {
  static_assert(std::is_trivially_copyable_v<Result> && std::is_default_constructible_v<Result>,
                "results of kernels are trivially copyable and can be default-constructed");
  if (view.size() == 0) return init;
  auto loops = loops_of(view, others...);
  simplify(loops);
  constexpr int Loops = loop_rank<Rank>;
  if constexpr (sizeof...(Operands) == 0)
    if (loops.is_contiguous())
      return cub_reduce<Result>(place, op, functor, init, view.data, loops.extents.at[Loops - 1]);
  using All = std::make_integer_sequence<int, 1 + sizeof...(Operands)>;
  MapStrided<false, All, Loops, Function, Type, Operands...> invoke(functor, loops, view.data,
                                                                    others.data...);
  return device_index_reduce<index_t>(place, op, invoke, init, Extents<Loops>(), loops.extents);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem::detail

#endif
