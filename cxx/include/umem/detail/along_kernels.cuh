/* umem/detail/along_kernels.cuh - reductions along one dimension on GPUs: one thread per output,
 * which reads beside its neighbours, or, where the elements of an output follow each other, one
 * block. */
#ifndef UMEM_DETAIL_ALONG_KERNELS_CUH
#define UMEM_DETAIL_ALONG_KERNELS_CUH

#include <umem/detail/index_kernels.cuh>
#include <umem/detail/map_kernels.cuh>
#include <umem/detail/sweep_kernels.cuh>
#include <umem/view.hpp>

#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

template <class Operands, class R, class Op, class F, class U, int N, class... T>
struct AlongByThread;

/* The output at indices i, j, ... by one thread. The last dimension of the operands is the one that
 * is reduced. */
template <int... M, class R, class Op, class F, class U, int N, class... T>
struct AlongByThread<std::integer_sequence<int, M...>, R, Op, F, U, N, T...>
    : StridedOperand<M, N, T>... {
  Op op;
  F f;
  R init;
  index count;
  View<U, N - 1> out;

  AlongByThread(Op const &op_, F const &f_, R const &init_, int axis, View<U, N - 1> const &out_,
                View<T, N> const &...in)
      : StridedOperand<M, N, T>{in.data, with_last(in.strides, axis)}..., op(op_), f(f_),
        init(init_), count(extent_of(axis, in...)), out(out_) {}

  /* Whether what gives an output follows itself in all inputs. */
  bool in_lines() const noexcept {
    return ((static_cast<StridedOperand<M, N, T> const &>(*this).strides.at[N - 1] == 1) && ...);
  }

  /* f of the elements at i, j, ..., number of what is reduced. */
  template <class... I> __device__ R value(I... i) {
    auto all = std::make_integer_sequence<int, N>();
    return static_cast<R>(
        f(static_cast<StridedOperand<M, N, T> const &>(*this).element(all, i...)...));
  }

  template <class... I> __device__ void operator()(I... i) {
    R result = init;
    for (index n = 0; n < count; n++) result = op(result, value(static_cast<index>(i)..., n));
    out(i...) = static_cast<U>(result);
  }

private:
  template <class A, class... More>
  static index extent_of(int axis, View<A, N> const &in, View<More, N> const &...) noexcept {
    return in.extents.at[axis];
  }
  static Extents<N> with_last(Extents<N> strides, int axis) noexcept {
    for (; axis < N - 1; axis++) std::swap(strides.at[axis], strides.at[axis + 1]);
    return strides;
  }
};

/* Output blockIdx.x, counted from `first` in C order, by one block. */
template <class Operands, class R, class Op, class F, class U, int N, class... T, int... K>
__device__ void along_block(AlongByThread<Operands, R, Op, F, U, N, T...> &all, index number,
                            std::integer_sequence<int, K...>) {
  index at[N];
  for (int k = N - 2; k >= 0; k--) {
    at[k] = number % all.out.extents.at[k];
    number /= all.out.extents.at[k];
  }
  Partial<R> own;
  for (index n = threadIdx.x; n < all.count; n += block_threads)
    own = combine(all.op, own, Partial<R>{all.value(at[K]..., n), true});
  own = reduce_over_block(all.op, own, threadIdx.x);
  if (threadIdx.x == 0)
    all.out(at[K]...) =
        static_cast<U>(own.any ? static_cast<R>(all.op(all.init, own.value)) : all.init);
}
template <int N, class All>
__global__ void __launch_bounds__(block_threads) along_by_block(All all, index first) {
  along_block(all, first + blockIdx.x, std::make_integer_sequence<int, N - 1>());
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and f(element of each input) along dimension axis; the extents are right. */
template <class R, class Op, class F, class U, int N, class T, class... A>
void device_along(DevicePlace const &place, Op const &op, F const &f, R const &init, int axis,
                  View<U, N - 1> const &out, View<T, N> const &in, View<A, N> const &...others) {
  static_assert(std::is_trivially_copyable_v<R> && std::is_default_constructible_v<R>,
                "results of kernels are trivially copyable and can be default-constructed");
  using All = std::make_integer_sequence<int, 1 + sizeof...(A)>;
  using Along = AlongByThread<All, R, Op, F, U, N, T, A...>;
  if (out.size() == 0) return;
  Along call(op, f, init, axis, out.interior(), in, others...);
  if (N > 1 && (call.count < 64 || !call.in_lines()))
    return device_indices<index>(place, call, Extents<N - 1>(), out.extents);
  Work work(place);
  for (index first = 0; first < out.size(); first += launch_elements) {
    index n = out.size() - first < launch_elements ? out.size() - first : launch_elements;
    launch(place, along_by_block<N, Along>, static_cast<unsigned>(n), block_threads, call, first);
  }
  work.finish();
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
