/* umem/detail/sweep_kernels.cuh - kernels that call a function with indices and reduce its
 * results. */
#ifndef UMEM_DETAIL_SWEEP_KERNELS_CUH
#define UMEM_DETAIL_SWEEP_KERNELS_CUH

#include <umem/detail/cuda_call.cuh>
#include <umem/detail/host_reduce.hpp>
#include <umem/detail/index_kernels.cuh>
#include <umem/detail/scratch.cuh>
#include <umem/detail/tiles.cuh>
#include <umem/view.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* Joins the results of all threads of a block in a tree, in thread 0. */
template <class R, class Op>
__device__ Partial<R> reduce_over_block(Op &op, Partial<R> own, unsigned thread) {
  __shared__ alignas(Partial<R>) unsigned char storage[block_threads * sizeof(Partial<R>)];
  Partial<R> *parts = reinterpret_cast<Partial<R> *>(storage);
  parts[thread] = own;
  for (unsigned width = block_threads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (thread < width) parts[thread] = combine(op, parts[thread], parts[thread + width]);
  }
  return parts[0];
}

/* f(i, j, ...) without an element. */
template <int N> struct NoElement {
  struct Value {};

  int lead(Extents<N> const &) const noexcept { return 0; }
  template <class F, class... I> __device__ decltype(auto) call(F &f, Value &, I... i) const {
    return f(i...);
  }
  template <class... I> __device__ void store(Value const &, I...) const {}
};

/* f(value, i, j, ...), which stores the values as elements of data. */
template <class T, int N> struct StoreElement {
  using Value = T;

  T *data;
  Extents<N> strides;

  int lead(Extents<N> const &begin) const noexcept { return line_lead(data, strides, begin); }
  template <class F, class... I> __device__ decltype(auto) call(F &f, T &value, I... i) const {
    return f(value, i...);
  }
  template <class... I> __device__ void store(T const &value, I... i) const {
    data[offset(std::make_integer_sequence<int, N>(), static_cast<index_t>(i)...)] = value;
  }

private:
  template <int... K, class... I>
  __device__ index_t offset(std::integer_sequence<int, K...>, I... i) const {
    return ((i * strides.at[K]) + ... + index_t(0));
  }
};

/* How many indices each thread has: as many as registers can hold values. */
inline constexpr int sweep_rows = 8;

/* Each block computes a tile and leaves one result. It stores the values after it has computed
 * all rows, so that no store separates the loads. The 1 lets the compiler use the registers that
 * it needs to load ahead. */
template <class Index, class R, int N, class F, class Op, class To>
__global__ void __launch_bounds__(block_threads, 1)
    sweep_tiles(F f, Op op, To to, Tiles<N, sweep_rows> tiles, std::uint32_t first,
                Partial<R> *results) {
  TileSpot<N> spot = tiles.spot(first + blockIdx.x);
  auto compute = [&](auto &value, int row) {
    return static_cast<R>(tiles.template call<Index>(
        [&](auto... i) -> decltype(auto) { return to.call(f, value, i...); }, spot, row));
  };
  auto store = [&](auto const &value, int row) {
    tiles.template call<index_t>([&](auto... i) { to.store(value, i...); }, spot, row);
  };
  Partial<R> own;
  if (tiles.has_all(spot)) {
    typename To::Value values[sweep_rows];
    R returned[sweep_rows];
#pragma unroll
    for (int row = 0; row < sweep_rows; row++) returned[row] = compute(values[row], row);
#pragma unroll
    for (int row = 0; row < sweep_rows; row++) store(values[row], row);
    own = {returned[0], true};
#pragma unroll
    for (int row = 1; row < sweep_rows; row++)
      own.value = static_cast<R>(op(own.value, returned[row]));
  } else {
#pragma unroll 1
    for (int row = 0; row < sweep_rows; row++) {
      if (!tiles.has(spot, row)) continue;
      typename To::Value value;
      Partial<R> next{compute(value, row), true};
      store(value, row);
      own = combine(op, own, next);
    }
  }
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  own = reduce_over_block(op, own, thread);
  if (thread == 0) results[blockIdx.x] = own;
}

/* The blocks join count results, each to one. */
template <class R, class Op>
__global__ void __launch_bounds__(block_threads)
    join_results(Op op, Partial<R> const *results, std::uint32_t count, Partial<R> *joined) {
  Partial<R> own;
#pragma unroll 4
  for (std::uint32_t n = blockIdx.x * block_threads + threadIdx.x; n < count;
       n += gridDim.x * block_threads)
    own = combine(op, own, results[n]);
  own = reduce_over_block(op, own, threadIdx.x);
  if (threadIdx.x == 0) joined[blockIdx.x] = own;
}

/* The most results that may wait to be joined, and the most that one block joins. */
inline constexpr std::uint32_t most_results = 1 << 18;
inline constexpr std::uint32_t most_of_block = 8 * block_threads;

/* Joins init on the device too: op may be a device function. */
template <class Index, class R, int N, class Op, class F, class To>
R launch_sweep(DevicePlace const &place, Op const &op, F const &f, To const &to, R const &init,
               Extents<N> const &begin, Extents<N> const &end) {
  static_assert(std::is_trivially_copyable_v<R> && std::is_default_constructible_v<R>,
                "results of kernels are trivially copyable and can be default-constructed");
  Work work(place);
  using SweepTiles = Tiles<N, sweep_rows>;
  std::uint32_t most = 0;
  in_launches(begin, end, [&](Extents<N> const &low, Extents<N> const &high) {
    most = std::max(most, std::min(SweepTiles(low, high, to.lead(low)).count, most_results));
  });
  if (most == 0) return init;

  Scratch scratch(place, work.device(), sizeof(Partial<R>) * (1 + most + block_threads));
  Partial<R> *all = scratch.as<Partial<R>>(), *results = all + 1, *some = results + most;
  Partial<R> result{init, true};
  scratch.upload(place, &result,
                 sizeof result); /* the first value, with which the others are joined */
  in_launches(begin, end, [&](Extents<N> const &low, Extents<N> const &high) {
    SweepTiles tiles(low, high, to.lead(low));
    for (std::uint32_t first = 0; first < tiles.count; first += most) {
      std::uint32_t count = std::min(tiles.count - first, most);
      launch(place, sweep_tiles<Index, R, N, F, Op, To>, count, tiles.threads, f, op, to, tiles,
             first, results);
      Partial<R> const *from = all;
      count += 1;
      if (count > most_of_block) {
        launch(place, join_results<R, Op>, block_threads, block_threads, op, from, count, some);
        from = some;
        count = block_threads;
      }
      launch(place, join_results<R, Op>, 1, block_threads, op, from, count, all);
    }
  });
  scratch.download(place, &result, sizeof result);
  return result.value;
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and f(i, j, ...) */
template <class Index, class R, int N, class Op, class F>
R device_index_reduce(DevicePlace const &place, Op const &op, F const &f, R const &init,
                      Extents<N> const &begin, Extents<N> const &end) {
  if constexpr (N == 0)
    return launch_sweep<Index>(place, op, WithoutIndex<F>{f}, NoElement<1>(), init, Extents<1>(),
                               Extents<1>{1});
  else
    return launch_sweep<Index>(place, op, f, NoElement<N>(), init, begin, end);
}

/* op over init and f(value, i, j, ...), where the values become elements of view. */
template <class Index, class R, class T, int N, class Op, class F>
R device_sweep(DevicePlace const &place, Op const &op, F const &f, R const &init,
               View<T, N> const &view, Extents<N> const &begin, Extents<N> const &end) {
  static_assert(N > 0, "a sweep goes over a view with dimensions");
  return launch_sweep<Index>(place, op, f, StoreElement<T, N>{view.data, view.strides}, init, begin,
                             end);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
