/* umem/detail/sweep_kernels.cuh - kernels that call a function with indices and reduce its results,
 * and the temporary memory that kernels with results need. */
#ifndef UMEM_DETAIL_SWEEP_KERNELS_CUH
#define UMEM_DETAIL_SWEEP_KERNELS_CUH

#include <umem/buffer.hpp>
#include <umem/detail/host_reduce.hpp>
#include <umem/detail/launch.cuh>

#include <algorithm>

namespace umem::detail {

/* ---- temporary memory of a GPU for calls that wait for their result ---- */

/* The unused blocks of each GPU, kept for the next call. They are never freed: CUDA may end
 * before the program. */
class ScratchStock {
public:
  static ScratchStock &get() {
    static ScratchStock &stock = *new ScratchStock;
    return stock;
  }

  Buffer take(int device, std::size_t nbytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Buffer> &blocks = blocks_[device];
    for (Buffer &block : blocks)
      if (block.size() >= nbytes) {
        std::swap(block, blocks.back());
        Buffer found = std::move(blocks.back());
        blocks.pop_back();
        return found;
      }
    return Buffer(GpuContexts::of(device), nbytes < least_bytes ? least_bytes : nbytes);
  }

  void give(int device, Buffer &&block) noexcept {
    try {
      std::lock_guard<std::mutex> lock(mutex_);
      blocks_[device].push_back(std::move(block));
    } catch (std::exception const &) { /* no memory for the list: the caller frees the block */
    }
  }

private:
  static constexpr std::size_t least_bytes = 256 * 1024;

  std::mutex mutex_;
  std::map<int, std::vector<Buffer>> blocks_;
};

/* nbytes of a GPU during a call. The call ends with download() or finish() and cannot be
 * captured into a graph. */
class Scratch {
public:
  Scratch(DevicePlace const &place, int device, std::size_t nbytes)
      : device_(device), block_(take(place, device, nbytes)) {}
  Scratch(Scratch const &) = delete;
  Scratch &operator=(Scratch const &) = delete;
  ~Scratch() { /* frees a block that kernels may still use; the free waits for them */
    if (finished_) ScratchStock::get().give(device_, std::move(block_));
  }

  template <class Type> Type *as() const noexcept { return reinterpret_cast<Type *>(block_.adr()); }

  /* Copies nbytes of the host to the beginning. It has read them when it returns. */
  void upload(DevicePlace const &place, void const *from, std::size_t nbytes) {
    check_cuda(cudaMemcpyAsync(as<void>(), from, nbytes, cudaMemcpyHostToDevice, stream_of(place)),
               "the upload of an initial value");
  }

  /* Waits for all queued work of the place and copies the first nbytes to the host. */
  void download(DevicePlace const &place, void *to, std::size_t nbytes) {
    check_cuda(cudaMemcpyAsync(to, as<void>(), nbytes, cudaMemcpyDeviceToHost, stream_of(place)),
               "the download of a result");
    finish(place);
  }

  /* Waits for all queued work of the place. */
  void finish(DevicePlace const &place) {
    synchronize(place);
    finished_ = true;
  }

private:
  static Buffer take(DevicePlace const &place, int device, std::size_t nbytes) {
    refuse_capture(place);
    return ScratchStock::get().take(device, nbytes);
  }

  int device_;
  Buffer block_;
  bool finished_ = false;
};

/* ---- kernels ---- */

/* Joins the results of all threads of a block in a tree, in thread 0. */
template <class Result, class Op>
__device__ Partial<Result> reduce_over_block(Op &op, Partial<Result> own, unsigned thread) {
  alignas(Partial<Result>)
      __shared__ unsigned char storage[block_threads * sizeof(Partial<Result>)];
  Partial<Result> *parts = reinterpret_cast<Partial<Result> *>(storage);
  parts[thread] = own;
  for (unsigned width = block_threads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (thread < width) parts[thread] = combine(op, parts[thread], parts[thread + width]);
  }
  return parts[0];
}

/* functor(i, j, ...) without an element. */
template <int Rank> struct NoElement {
  struct Value {};

  int lead(Extents<Rank> const &) const noexcept { return 0; }
  template <class Function, class... Indices>
  __device__ decltype(auto) invoke(Function &functor, Value &, Indices... i) const {
    return functor(i...);
  }
  template <class... Indices> __device__ void store(Value const &, Indices...) const {}
};

/* functor(value, i, j, ...), which stores the values as elements of data. */
template <class Type, int Rank> struct StoreElement {
  using Value = Type;

  Type *data;
  Extents<Rank> strides;

  int lead(Extents<Rank> const &begin) const noexcept { return line_lead(data, strides, begin); }
  template <class Function, class... Indices>
  __device__ decltype(auto) invoke(Function &functor, Type &value, Indices... i) const {
    return functor(value, i...);
  }
  template <class... Indices> __device__ void store(Type const &value, Indices... i) const {
    data[offset_of(strides, i...)] = value;
  }
};

/* How many indices each thread has: as many as registers can hold values. */
inline constexpr int sweep_rows = 8;

/* Each block computes a tile and leaves one result. It stores the values after it has computed
 * all rows, so that no store separates the loads. The 1 lets the compiler use the registers that
 * it needs to load ahead. */
template <class Index, class Result, int Rank, class Function, class Op, class To>
__global__ void __launch_bounds__(block_threads, 1)
    sweep_tiles(Function functor, Op op, To to, Tiles<Rank, sweep_rows> tiles, std::uint32_t first,
                Partial<Result> *results) {
  TileSpot<Rank> spot = tiles.spot(first + blockIdx.x);
  auto compute = [&](auto &value, int row) {
    return static_cast<Result>(tiles.template invoke<Index>(
        [&](auto... i) -> decltype(auto) { return to.invoke(functor, value, i...); }, spot, row));
  };
  auto store = [&](auto const &value, int row) {
    tiles.template invoke<index_t>([&](auto... i) { to.store(value, i...); }, spot, row);
  };
  Partial<Result> own;
  if (tiles.has_all(spot)) {
    typename To::Value values[sweep_rows];
    Result returned[sweep_rows];
#pragma unroll
    for (int row = 0; row < sweep_rows; row++) returned[row] = compute(values[row], row);
#pragma unroll
    for (int row = 0; row < sweep_rows; row++) store(values[row], row);
    own = {returned[0], true};
#pragma unroll
    for (int row = 1; row < sweep_rows; row++)
      own.value = static_cast<Result>(op(own.value, returned[row]));
  } else {
#pragma unroll 1
    for (int row = 0; row < sweep_rows; row++) {
      if (!tiles.has(spot, row)) continue;
      typename To::Value value;
      Partial<Result> next{compute(value, row), true};
      store(value, row);
      own = combine(op, own, next);
    }
  }
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  own = reduce_over_block(op, own, thread);
  if (thread == 0) results[blockIdx.x] = own;
}

/* The blocks join count results, each to one. */
template <class Result, class Op>
__global__ void __launch_bounds__(block_threads)
    join_results(Op op, Partial<Result> const *results, std::uint32_t count,
                 Partial<Result> *joined) {
  Partial<Result> own;
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
template <class Index, class Result, int Rank, class Op, class Function, class To>
Result launch_sweep(DevicePlace const &place, Op const &op, Function const &functor, To const &to,
                    Result const &init, Extents<Rank> const &begin, Extents<Rank> const &end) {
  static_assert(std::is_trivially_copyable_v<Result> && std::is_default_constructible_v<Result>,
                "results of kernels are trivially copyable and can be default-constructed");
  Work work(place);
  using SweepTiles = Tiles<Rank, sweep_rows>;
  std::uint32_t most = 0;
  in_launches(begin, end, [&](Extents<Rank> const &low, Extents<Rank> const &high) {
    most = std::max(most, std::min(SweepTiles(low, high, to.lead(low)).count, most_results));
  });
  if (most == 0) return init;

  Scratch scratch(place, work.device(), sizeof(Partial<Result>) * (1 + most + block_threads));
  Partial<Result> *all = scratch.as<Partial<Result>>(), *results = all + 1, *some = results + most;
  Partial<Result> result{init, true};
  scratch.upload(place, &result,
                 sizeof result); /* the first value, with which the others are joined */
  in_launches(begin, end, [&](Extents<Rank> const &low, Extents<Rank> const &high) {
    SweepTiles tiles(low, high, to.lead(low));
    for (std::uint32_t first = 0; first < tiles.count; first += most) {
      std::uint32_t count = std::min(tiles.count - first, most);
      launch(place, sweep_tiles<Index, Result, Rank, Function, Op, To>, count, tiles.threads,
             functor, op, to, tiles, first, results);
      Partial<Result> const *from = all;
      count += 1;
      if (count > most_of_block) {
        launch(place, join_results<Result, Op>, block_threads, block_threads, op, from, count,
               some);
        from = some;
        count = block_threads;
      }
      launch(place, join_results<Result, Op>, 1, block_threads, op, from, count, all);
    }
  });
  scratch.download(place, &result, sizeof result);
  return result.value;
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and functor(i, j, ...) */
template <class Index, class Result, int Rank, class Op, class Function>
Result device_index_reduce(DevicePlace const &place, Op const &op, Function const &functor,
                           Result const &init, Extents<Rank> const &begin,
                           Extents<Rank> const &end) {
  if constexpr (Rank == 0)
    return launch_sweep<Index>(place, op, WithoutIndex<Function>{functor}, NoElement<1>(), init,
                               Extents<1>(), Extents<1>{1});
  else
    return launch_sweep<Index>(place, op, functor, NoElement<Rank>(), init, begin, end);
}

/* op over init and functor(value, i, j, ...), where the values become elements of view. */
template <class Index, class Result, class Type, int Rank, class Op, class Function>
Result device_sweep(DevicePlace const &place, Op const &op, Function const &functor,
                    Result const &init, View<Type, Rank> const &view, Extents<Rank> const &begin,
                    Extents<Rank> const &end) {
  static_assert(Rank > 0, "a sweep goes over a view with dimensions");
  return launch_sweep<Index>(place, op, functor, StoreElement<Type, Rank>{view.data, view.strides},
                             init, begin, end);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem::detail

#endif
