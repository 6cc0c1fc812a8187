/* umem/detail/sweep_kernels.cuh - kernels that call a function with indices and reduce what it
 * returns. */
#ifndef UMEM_DETAIL_SWEEP_KERNELS_CUH
#define UMEM_DETAIL_SWEEP_KERNELS_CUH

#include <umem/detail/cuda_call.cuh>
#include <umem/detail/host_reduce.hpp>
#include <umem/detail/index_kernels.cuh>
#include <umem/detail/scratch.cuh>
#include <umem/detail/tiles.cuh>
#include <umem/view.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* The results of all threads of a block joined in a tree, for thread 0. */
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
struct NoElement {};

/* f(value, i, j, ...), whose values are stored in elements when all rows are computed: no store
 * stands between the loads. */
template <class T, int N> struct StoreElement {
  T *data;
  Extents<N> strides;

  template <int... K, class... I>
  __device__ void store(T const &value, std::integer_sequence<int, K...>, I... i) const {
    data[((i * strides.at[K]) + ... + index(0))] = value;
  }
};

/* What the rows of one thread in one tile give. */
template <class Index, class R, int N, class F, class Op>
__device__ Partial<R> tile_result(F &f, Op &op, NoElement, Tiles<N> const &tiles,
                                  TileSpot<N> const &spot) {
  Partial<R> result;
#pragma unroll
  for (int row = 0; row < tile_rows; row++)
    if (tiles.has(spot, row))
      result = combine(op, result,
                       Partial<R>{static_cast<R>(tiles.template call<Index>(f, spot, row)), true});
  return result;
}

template <class Index, class R, int N, class F, class Op, class T>
__device__ Partial<R> tile_result(F &f, Op &op, StoreElement<T, N> const &to, Tiles<N> const &tiles,
                                  TileSpot<N> const &spot) {
  auto all = std::make_integer_sequence<int, N>();
  auto store = [&](T const &value, int row) {
    tiles.template call<index>([&](auto... i) { to.store(value, all, i...); }, spot, row);
  };
  Partial<R> result;
  if (tiles.has(spot, tile_rows - 1)) {
    T value[tile_rows];
    R returned[tile_rows];
#pragma unroll
    for (int row = 0; row < tile_rows; row++)
      returned[row] = static_cast<R>(
          tiles.template call<Index>([&](auto... i) { return f(value[row], i...); }, spot, row));
#pragma unroll
    for (int row = 0; row < tile_rows; row++) store(value[row], row);
    result = {returned[0], true};
#pragma unroll
    for (int row = 1; row < tile_rows; row++)
      result.value = static_cast<R>(op(result.value, returned[row]));
  } else {
#pragma unroll
    for (int row = 0; row < tile_rows; row++) {
      if (!tiles.has(spot, row)) continue;
      T value;
      R returned = static_cast<R>(
          tiles.template call<Index>([&](auto... i) { return f(value, i...); }, spot, row));
      store(value, row);
      result = combine(op, result, Partial<R>{returned, true});
    }
  }
  return result;
}

/* Blocks go from tile to tile; each leaves one result. */
template <class Index, class R, int N, class F, class Op, class To>
__global__ void __launch_bounds__(block_threads)
    sweep_tiles(F f, Op op, To to, Tiles<N> tiles, Partial<R> *results) {
  Partial<R> own;
  for (std::uint32_t tile = blockIdx.x; tile < tiles.count; tile += gridDim.x)
    own = combine(op, own, tile_result<Index, R, N>(f, op, to, tiles, tiles.spot(tile)));
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  own = reduce_over_block(op, own, thread);
  if (thread == 0) results[blockIdx.x] = own;
}

/* One block joins the results of all. */
template <class R, class Op>
__global__ void __launch_bounds__(block_threads)
    join_results(Op op, Partial<R> const *results, std::uint32_t count, Partial<R> *result) {
  Partial<R> own;
  for (std::uint32_t n = threadIdx.x; n < count; n += block_threads)
    own = combine(op, own, results[n]);
  own = reduce_over_block(op, own, threadIdx.x);
  if (threadIdx.x == 0) *result = own;
}

/* As many blocks as the GPU runs at once. */
template <class Kernel> unsigned resident_blocks(Kernel kernel, int device) {
  int processors = 0, blocks = 0;
  check_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
             "cudaDeviceGetAttribute");
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block_threads, 0),
             "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return static_cast<unsigned>(processors * (blocks > 0 ? blocks : 1));
}

template <class Index, class R, int N, class Op, class F, class To>
Partial<R> launch_sweep(DevicePlace const &place, Op const &op, F const &f, To const &to,
                        Extents<N> const &begin, Extents<N> const &end) {
  static_assert(std::is_trivially_copyable_v<R> && std::is_default_constructible_v<R>,
                "results of kernels are trivially copyable and can be default-constructed");
  CurrentDevice current(place.device);
  auto kernel = sweep_tiles<Index, R, N, F, Op, To>;
  unsigned most = resident_blocks(kernel, current.device());
  index launches = 0;
  in_launches(begin, end, [&](Extents<N> const &, Extents<N> const &) { launches++; });
  if (launches == 0) return {};

  Scratch scratch(current.device(),
                  sizeof(Partial<R>) * static_cast<std::size_t>(launches * most + 1));
  Partial<R> *results = scratch.as<Partial<R>>();
  std::uint32_t count = 1; /* the first is that of all */
  in_launches(begin, end, [&](Extents<N> const &low, Extents<N> const &high) {
    Tiles<N> tiles(low, high);
    unsigned blocks = tiles.count < most ? tiles.count : most;
    launch(place, kernel, blocks, tiles.threads, f, op, to, tiles, results + count);
    count += blocks;
  });
  launch(place, join_results<R, Op>, 1, block_threads, op, results + 1, count - 1, results);
  Partial<R> result;
  scratch.download(place, &result, sizeof result);
  return result;
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* Over f(i, j, ...) */
template <class Index, class R, int N, class Op, class F>
Partial<R> device_index_reduce(DevicePlace const &place, Op const &op, F const &f,
                               Extents<N> const &begin, Extents<N> const &end) {
  if constexpr (N == 0)
    return launch_sweep<Index, R>(place, op, WithoutIndex<F>{f}, NoElement(), Extents<1>(),
                                  Extents<1>{1});
  else
    return launch_sweep<Index, R>(place, op, f, NoElement(), begin, end);
}

/* Over f(value, i, j, ...), where the values become elements of view. */
template <class Index, class R, class T, int N, class Op, class F>
Partial<R> device_sweep(DevicePlace const &place, Op const &op, F const &f, View<T, N> const &view,
                        Extents<N> const &begin, Extents<N> const &end) {
  static_assert(N > 0, "a sweep goes over a view with dimensions");
  return launch_sweep<Index, R>(place, op, f, StoreElement<T, N>{view.data, view.strides}, begin,
                                end);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
