/* umem/detail/along_kernels.cuh - reductions along one dimension on GPUs: one thread per output,
 * which reads beside its neighbours, or, where the elements of an output follow each other, one
 * block. */
#ifndef UMEM_DETAIL_ALONG_KERNELS_CUH
#define UMEM_DETAIL_ALONG_KERNELS_CUH

#include <umem/detail/host_along.hpp>
#include <umem/detail/index_kernels.cuh>
#include <umem/detail/sweep_kernels.cuh>

#include <utility>

namespace umem {
namespace detail {

/* The output at indices i, j, ... by one thread. */
template <class R, class Op, class T, class U, int M> struct AlongByThread {
  Op op;
  R init;
  index count, stride;
  View<T, M> starts;
  View<U, M> out;

  template <class... I> __device__ void operator()(I... i) {
    T const *element = count ? &starts(i...) : nullptr;
    R value = init;
    for (index n = 0; n < count; n++) value = op(value, static_cast<R>(element[n * stride]));
    out(i...) = static_cast<U>(value);
  }
};

/* Output blockIdx.x, counted from `first` in C order, by one block. */
template <class R, class Op, class T, class U, int M>
__global__ void __launch_bounds__(block_threads)
    along_by_block(AlongByThread<R, Op, T, U, M> all, Extents<M> extents, index first) {
  index number = first + blockIdx.x;
  T const *in = all.starts.data;
  U *out = all.out.data;
  for (int k = M - 1; k >= 0; k--) {
    index at = number % extents.at[k];
    number /= extents.at[k];
    in += at * all.starts.strides.at[k];
    out += at * all.out.strides.at[k];
  }
  Partial<R> own;
  for (index n = threadIdx.x; n < all.count; n += block_threads)
    own = combine(all.op, own, Partial<R>{static_cast<R>(in[n * all.stride]), true});
  own = reduce_over_block(all.op, own, threadIdx.x);
  if (threadIdx.x == 0)
    *out = static_cast<U>(own.any ? static_cast<R>(all.op(all.init, own.value)) : all.init);
}

inline namespace UMEM_LAUNCH_NAMESPACE {

template <class R, class Op, class T, int N, class U>
void device_along(DevicePlace const &place, Op const &op, R const &init, View<T, N> const &in,
                  int axis, View<U, N - 1> const &out) {
  static_assert(std::is_trivially_copyable_v<R> && std::is_default_constructible_v<R>,
                "results of kernels are trivially copyable and can be default-constructed");
  AlongByThread<R, Op, T, U, N - 1> call{
      op, init, in.extents.at[axis], in.strides.at[axis], starts_along(in, axis), out.interior()};
  if (out.size() == 0) return;
  if (N > 1 && (call.count < 64 || call.stride != 1))
    return device_indices<index>(place, call, Extents<N - 1>(), out.extents);
  Work work(place);
  for (index first = 0; first < out.size(); first += launch_elements) {
    index n = out.size() - first < launch_elements ? out.size() - first : launch_elements;
    launch(place, along_by_block<R, Op, T, U, N - 1>, static_cast<unsigned>(n), block_threads, call,
           out.extents, first);
  }
  work.finish();
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
