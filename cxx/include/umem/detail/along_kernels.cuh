/* umem/detail/along_kernels.cuh - reductions along one dimension on GPUs. One thread computes an
 * output, and neighbouring threads read neighbouring elements. If there are few outputs, or if
 * the elements of one output follow each other, one block or several compute an output. */
#ifndef UMEM_DETAIL_ALONG_KERNELS_CUH
#define UMEM_DETAIL_ALONG_KERNELS_CUH

#include <umem/detail/index_kernels.cuh>
#include <umem/detail/map_kernels.cuh>
#include <umem/detail/monoids.hpp>
#include <umem/detail/scratch.cuh>
#include <umem/detail/sweep_kernels.cuh>
#include <umem/view.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

template <class Operands, class R, class Op, class F, class U, int N, class... T>
struct AlongByThread;

/* The output at indices i, j, ... by one thread. The last dimension of the operands is the
 * reduced one. */
template <int... M, class R, class Op, class F, class U, int N, class... T>
struct AlongByThread<std::integer_sequence<int, M...>, R, Op, F, U, N, T...>
    : StridedOperand<M, N, T>... {
  using Output = U;

  Op op;
  F f;
  R init;
  index count;
  View<U, N - 1> out;

  AlongByThread(Op const &op_, F const &f_, R const &init_, int axis, View<U, N - 1> const &out_,
                View<T, N> const &...in)
      : StridedOperand<M, N, T>{in.data, with_last(in.strides, axis)}..., op(op_), f(f_),
        init(init_), count(extent_of(axis, in...)), out(out_) {}

  /* Whether the elements of one output follow each other in all inputs. */
  bool in_lines() const noexcept {
    return ((static_cast<StridedOperand<M, N, T> const &>(*this).strides.at[N - 1] == 1) && ...);
  }

  /* f of the elements at (i, j, ..., n); the last index is in the reduced dimension. */
  template <class... I> __device__ R value(I... i) {
    auto all = std::make_integer_sequence<int, N>();
    if constexpr (takes_position<F>)
      return static_cast<R>(
          f(static_cast<StridedOperand<M, N, T> const &>(*this).element(all, i...)...,
            last_of(i...)));
    else
      return static_cast<R>(
          f(static_cast<StridedOperand<M, N, T> const &>(*this).element(all, i...)...));
  }

  template <class... I> __device__ void operator()(I... i) {
    R result = init;
    for (index n = 0; n < count; n++) result = op(result, value(static_cast<index>(i)..., n));
    out(i...) = static_cast<U>(result);
  }

private:
  static __device__ index last_of(index i) { return i; }
  template <class... I> static __device__ index last_of(index, I... i) {
    return last_of(static_cast<index>(i)...);
  }
  template <class A, class... More>
  static index extent_of(int axis, View<A, N> const &in, View<More, N> const &...) noexcept {
    return in.extents.at[axis];
  }
  static Extents<N> with_last(Extents<N> strides, int axis) noexcept {
    for (; axis < N - 1; axis++) std::swap(strides.at[axis], strides.at[axis + 1]);
    return strides;
  }
};

/* ---- by blocks ---- */

/* call(i, j, ...) with the indices of output `number`, counted in C order. */
template <class View, class Call, int... K>
__device__ decltype(auto) at_number(View const &out, index number, Call const &call,
                                    std::integer_sequence<int, K...>) {
  index at[sizeof...(K) + 1];
  for (int k = static_cast<int>(sizeof...(K)) - 1; k >= 0; k--) {
    at[k] = number % out.extents.at[k];
    number /= out.extents.at[k];
  }
  return call(at[K]...);
}

/* Joins init and the result of a whole block, in thread 0. */
template <int N, class R, class Along>
__device__ void finish_output(Along &all, index number, Partial<R> const &part) {
  R result = part.any ? static_cast<R>(all.op(all.init, part.value)) : all.init;
  auto store = [&](auto... i) { all.out(i...) = static_cast<typename Along::Output>(result); };
  at_number(all.out, number, store, std::make_integer_sequence<int, N - 1>());
}

/* Block n reduces a piece of output n % outputs. If there is one piece, it stores the output,
 * else the result of its piece. */
template <int N, class R, class Along>
__global__ void __launch_bounds__(block_threads)
    along_by_block(Along all, index first, index outputs, index pieces, Partial<R> *parts) {
  index number = (first + blockIdx.x) % outputs, piece = (first + blockIdx.x) / outputs;
  Partial<R> own;
  auto reduce = [&](auto... i) {
    for (index n = piece * block_threads + threadIdx.x; n < all.count; n += pieces * block_threads)
      own = combine(all.op, own, Partial<R>{all.value(i..., n), true});
  };
  at_number(all.out, number, reduce, std::make_integer_sequence<int, N - 1>());
  own = reduce_over_block(all.op, own, threadIdx.x);
  if (threadIdx.x != 0) return;
  if (parts)
    parts[number * pieces + piece] = own;
  else
    finish_output<N>(all, number, own);
}

/* Block n joins the results of the pieces of output n. */
template <int N, class R, class Along>
__global__ void __launch_bounds__(block_threads)
    join_pieces(Along all, index pieces, Partial<R> const *parts) {
  Partial<R> own;
  for (index n = threadIdx.x; n < pieces; n += block_threads)
    own = combine(all.op, own, parts[blockIdx.x * pieces + n]);
  own = reduce_over_block(all.op, own, threadIdx.x);
  if (threadIdx.x == 0) finish_output<N>(all, blockIdx.x, own);
}

/* From this number of outputs on, one thread each, or one block each, keeps a GPU busy. */
inline constexpr index many_for_threads = 1 << 15, many_for_blocks = 1 << 10;

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and f(element of each input) along dimension axis; the extents are right. */
template <class R, class Op, class F, class U, int N, class T, class... A>
void device_along(DevicePlace const &place, Op const &op, F const &f, R const &init, int axis,
                  View<U, N - 1> const &out, View<T, N> const &in, View<A, N> const &...others) {
  static_assert(std::is_trivially_copyable_v<R> && std::is_default_constructible_v<R>,
                "results of kernels are trivially copyable and can be default-constructed");
  using All = std::make_integer_sequence<int, 1 + sizeof...(A)>;
  using Along = AlongByThread<All, R, Op, F, U, N, T, A...>;
  index outputs = out.size();
  if (outputs == 0) return;
  Along call(op, f, init, axis, out.interior(), in, others...);
  if (N > 1 && (call.count < 64 || (!call.in_lines() && outputs >= many_for_threads)))
    return device_indices<index>(place, call, Extents<N - 1>(), out.extents);

  Work work(place);
  index pieces = (many_for_blocks + outputs - 1) / outputs;
  pieces = std::min(pieces, call.count / (8 * block_threads) + 1);
  if (pieces == 1) {
    for (index first = 0; first < outputs; first += launch_elements)
      launch(place, along_by_block<N, R, Along>,
             static_cast<unsigned>(std::min(outputs - first, launch_elements)), block_threads, call,
             first, outputs, pieces, nullptr);
    return work.finish();
  }
  Scratch scratch(place, work.device(),
                  sizeof(Partial<R>) * static_cast<std::size_t>(outputs * pieces));
  Partial<R> *parts = scratch.as<Partial<R>>();
  launch(place, along_by_block<N, R, Along>, static_cast<unsigned>(outputs * pieces), block_threads,
         call, index(0), outputs, pieces, parts);
  launch(place, join_pieces<N, R, Along>, static_cast<unsigned>(outputs), block_threads, call,
         pieces, parts);
  scratch.finish(place);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
