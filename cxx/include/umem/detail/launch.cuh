/* umem/detail/launch.cuh - checked launches of kernels, and kernels that call a function with
 * indices. Only nvcc compiles it, within the program and with the runtime that the program
 * links. */
#ifndef UMEM_DETAIL_LAUNCH_CUH
#define UMEM_DETAIL_LAUNCH_CUH

#include <umem/extents.hpp>
#include <umem/indexer.hpp>
#include <umem/place.hpp>

#include <cuda_runtime.h>
#include <map>
#include <mutex>

namespace umem::detail {

/* Throws the error of CUDA: umem::memory_error if memory is exhausted, else umem::runtime_error. */
inline void check_cuda(cudaError_t error, char const *what) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError()); /* reported here, not again by a later call */
  std::string text = std::string(what) + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) throw memory_error(text);
  throw runtime_error(text);
}

/* A context for each GPU that loops have used. They are never destructed, because CUDA may end
 * before the program. So the primary contexts stay, in which kernels may still run. */
class GpuContexts {
public:
  static Context const &of(int device) {
    thread_local int last = -1; /* of this thread: needs no lock */
    thread_local Context const *context = nullptr;
    if (device != last) {
      context = &find(device);
      last = device;
    }
    return *context;
  }

private:
  static Context const &find(int device) {
    static GpuContexts &all = *new GpuContexts;
    std::lock_guard<std::mutex> lock(all.mutex_);
    auto found = all.contexts_.find(device);
    if (found == all.contexts_.end()) found = all.contexts_.emplace(device, Cuda(device)).first;
    return found->second;
  }

  std::mutex mutex_;
  std::map<int, Context> contexts_;
};

/* Makes a GPU the current one while the object lives, then restores the previous one. */
class CurrentDevice {
public:
  /* device: -1 keeps the current one. */
  explicit CurrentDevice(int device) : device_(device) {
    if (device_ >= 0) {
      GpuContexts::of(device_);
      check_status(umemCuda_enter(&entry_, device_));
    } else {
      enter_current();
    }
  }
  CurrentDevice(CurrentDevice const &) = delete;
  CurrentDevice &operator=(CurrentDevice const &) = delete;
  ~CurrentDevice() { umemCuda_leave(&entry_); } /* records failures for the thread */

  int device() const noexcept { return device_; }

private:
  /* If umem was built without CUDA, it knows no GPU; then the launch makes one current. */
  void enter_current() {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    umemCuda_enter(&entry_, -1);
    umemAttempt_end(&attempt);
    if (attempt.type != umemNotSupportedError) check_status(umemAttempt_record(&attempt));
    cudaError_t error = cudaGetDevice(&device_);
    if (error != cudaSuccess) umemCuda_leave(&entry_);
    check_cuda(error, "cudaGetDevice");
  }

  umemCudaEntry entry_ = {};
  int device_;
};

/* The legacy stream by name: 0 is another stream in files compiled for a default stream per
 * thread. */
inline cudaStream_t stream_of(DevicePlace const &place) noexcept {
  return place.stream ? reinterpret_cast<cudaStream_t>(place.stream) : cudaStreamLegacy;
}

/* Throws if the stream is being captured into a graph: a call that waits would break the
 * capture. */
inline void refuse_capture(DevicePlace const &place) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaError_t error = cudaStreamIsCapturing(stream_of(place), &status);
  if (error == cudaErrorStreamCaptureImplicit) /* the legacy stream would wait for the capture */
    static_cast<void>(cudaGetLastError());
  else
    check_cuda(error, "cudaStreamIsCapturing");
  if (error == cudaSuccess && status == cudaStreamCaptureStatusNone) return;
  throw not_supported_error("the stream is being captured into a graph: a loop that waits until it "
                            "is done cannot be recorded");
}

/* Queues kernel(arguments...). */
template <class... Parameters, class... Operands>
void launch(DevicePlace const &place, void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
            Operands const &...arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream_of(place);
  check_cuda(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...),
             "the launch of a kernel");
}

inline void synchronize(DevicePlace const &place) {
  check_cuda(cudaStreamSynchronize(stream_of(place)), "a kernel");
}

/* The kernels that one call queues on a place. The GPU of the place is current meanwhile. If
 * calls on the place wait, a call that throws waits too: the kernels that it has launched may
 * still use memory. */
class Work {
public:
  explicit Work(DevicePlace const &place) : place_(place), current_(place.device) {
    if (place_.wait) refuse_capture(place_);
  }
  ~Work() {
    if (place_.wait && cudaStreamSynchronize(stream_of(place_)) != cudaSuccess)
      static_cast<void>(cudaGetLastError()); /* the call is already throwing another failure */
  }

  int device() const noexcept { return current_.device(); }

  /* The last step of a call. */
  void finish() {
    if (!place_.wait) return;
    place_.wait = false;
    synchronize(place_);
  }

private:
  DevicePlace place_;
  CurrentDevice current_;
};

/* ---- sizes ---- */

inline constexpr unsigned block_threads = 256;

/* The most elements of one launch: their numbers, rounded up, fit 31 bits. */
inline constexpr index_t launch_elements = index_t(1) << 30;

/* count / size, rounded up. */
inline unsigned blocks_for(index_t count, index_t size) noexcept {
  return static_cast<unsigned>((count + size - 1) / size);
}

/* The first power of two that is not below count; or most, itself one. */
inline unsigned power_of_two(index_t count, unsigned most) noexcept {
  unsigned power = 1;
  while (power < count && power < most) power *= 2;
  return power;
}

/* Calls functor(begin, end) for parts of [begin, end), each small enough for one launch. */

template <int Rank, class Function>
void in_launches(Extents<Rank> const &begin, Extents<Rank> const &end, Function const &functor) {
  double count = 1;
  int k = -1; /* the first dimension that can be halved */
  for (int j = 0; j < Rank; j++) {
    index_t extent = end.at[j] - begin.at[j];
    if (extent <= 0) return;
    if (extent > 1 && k < 0) k = j;
    count *= static_cast<double>(extent);
  }
  if (count <= static_cast<double>(launch_elements)) return functor(begin, end);
  Extents<Rank> low_end = end, high_begin = begin;
  low_end.at[k] = high_begin.at[k] = begin.at[k] + (end.at[k] - begin.at[k]) / 2;
  in_launches(begin, low_end, functor);
  in_launches(high_begin, end, functor);
}

/* Ranges of indices cut into tiles, one for each block of threads.
 * Neighbouring threads have neighbouring last indices, and each thread has several indices of
 * the dimension before. Indices are decoded once per block. */

/* How many elements before the first element of a range the line of the memory of the GPU
 * begins: threads that begin there write whole lines. 0 if the last dimension is strided. */
template <class Type, int Rank>
int line_lead(Type *data, Extents<Rank> const &strides, Extents<Rank> const &begin) noexcept {
  constexpr std::uintptr_t line_bytes = 128;
  if (line_bytes % sizeof(Type) != 0 || strides.at[Rank - 1] != 1) return 0;
  auto first = reinterpret_cast<std::uintptr_t>(data);
  for (int k = 0; k < Rank; k++)
    first += static_cast<std::uintptr_t>(begin.at[k] * strides.at[k]) * sizeof(Type);
  return static_cast<int>(first % line_bytes / sizeof(Type));
}

/* The position of a thread in a tile: its first indices, relative to the begin of the range. */
template <int Rank> struct TileSpot { std::int32_t at[Rank]; };

/* At most launch_elements indices; each thread has Rows of them. */
template <int Rank, int Rows> struct Tiles {
  Extents<Rank> begin;
  std::int32_t extents[Rank];
  Divider counts[Rank]; /* of tiles in each dimension */
  std::uint32_t count = 1;
  std::int32_t lead = 0; /* how far before the range the first tiles begin in the last dimension */
  dim3 threads;

  /* Uses the wished lead, or none if it needed over a quarter more tiles. */
  Tiles(Extents<Rank> const &begin_, Extents<Rank> const &end, int wished_lead) : begin(begin_) {
    for (int k = 0; k < Rank; k++) extents[k] = static_cast<std::int32_t>(end.at[k] - begin.at[k]);
    choose_threads();
    for (int k = 0; k < Rank; k++) {
      unsigned tiles = blocks_for(extents[k], length(k));
      if (k == Rank - 1) {
        unsigned led = blocks_for(index_t(extents[k]) + wished_lead, length(k));
        if (led - tiles <= tiles / 4) {
          tiles = led;
          lead = wished_lead;
        }
      }
      counts[k] = Divider(tiles);
      count *= tiles;
    }
  }

  __device__ TileSpot<Rank> spot(std::uint32_t tile) const {
    TileSpot<Rank> spot;
#pragma unroll
    for (int k = Rank - 1; k >= 0; k--)
      spot.at[k] = static_cast<std::int32_t>(k > 0 ? counts[k].take_remainder(tile) : tile);
    if constexpr (Rank == 1) {
      spot.at[0] = spot.at[0] * Rows * step + int(threadIdx.x) - lead;
    } else {
      spot.at[Rank - 1] = spot.at[Rank - 1] * int(blockDim.x) + int(threadIdx.x) - lead;
      spot.at[Rank - 2] = (spot.at[Rank - 2] * int(blockDim.y) + int(threadIdx.y)) * Rows;
    }
    if constexpr (Rank > 2)
      spot.at[Rank - 3] = spot.at[Rank - 3] * int(blockDim.z) + int(threadIdx.z);
    return spot;
  }

  /* Whether a row of the thread is in the range. */
  __device__ bool has(TileSpot<Rank> const &spot, int row) const {
    if constexpr (Rank > 2)
      if (spot.at[Rank - 3] >= extents[Rank - 3]) return false;
    if constexpr (Rank > 1)
      if (spot.at[Rank - 1] < 0 || spot.at[Rank - 1] >= extents[Rank - 1]) return false;
    std::int32_t at = spot.at[run] + row * step;
    return (Rank > 1 || at >= 0) && at < extents[run];
  }
  __device__ bool has_all(TileSpot<Rank> const &spot) const {
    return has(spot, 0) && has(spot, Rows - 1);
  }

  /* Calls functor(i, j, ...) with the indices of a row of the thread. */
  template <class Index, class Function>
  __device__ decltype(auto) invoke(Function &&functor, TileSpot<Rank> const &spot, int row) const {
    return invoke<Index>(functor, spot, row, std::make_integer_sequence<int, Rank>());
  }

private:
  /* The dimension along which the rows of a thread follow each other, and their distance.
   * Neighbours share what they read; in the last dimension neighbours belong to neighbouring
   * threads. */
  static constexpr int run = Rank > 1 ? Rank - 2 : 0;
  static constexpr int step = Rank > 1 ? 1 : static_cast<int>(block_threads);

  template <class Index, class Function, int... Nth>
  __device__ decltype(auto) invoke(Function &functor, TileSpot<Rank> const &spot, int row,
                                   std::integer_sequence<int, Nth...>) const {
    return functor(
        static_cast<Index>(begin.at[Nth] + spot.at[Nth] + (Nth == run ? row * step : 0))...);
  }

  /* Rows of 128 threads share most of the elements that a stencil reads in the cache of their
   * processor. If the last dimensions are short, threads move from one dimension to the next. */
  void choose_threads() {
    if constexpr (Rank == 1) {
      threads = dim3(block_threads, 1, 1);
    } else {
      unsigned x = power_of_two(extents[Rank - 1], 128);
      while (x > 32 && waste_of(x) > extents[Rank - 1] / 8) x /= 2;
      unsigned y = power_of_two(blocks_for(extents[Rank - 2], Rows), block_threads / x);
      unsigned z = 1;
      if constexpr (Rank > 2) z = power_of_two(extents[Rank - 3], block_threads / (x * y));
      if (z > 64) z = 64; /* CUDA's limit */
      threads = dim3(block_threads / (y * z), y, z);
    }
  }

  /* How many threads of a row of tiles, each x wide, are beyond its end. */
  std::int32_t waste_of(unsigned x) const noexcept {
    return static_cast<std::int32_t>(blocks_for(extents[Rank - 1], x) * x) - extents[Rank - 1];
  }

  index_t length(int k) const noexcept {
    if (Rank == 1) return index_t(threads.x) * Rows;
    if (k == Rank - 1) return threads.x;
    if (k == Rank - 2) return index_t(threads.y) * Rows;
    return k == Rank - 3 ? index_t(threads.z) : 1;
  }
};

/* Kernels that call a function with indices. */

/* ---- indices ---- */

inline constexpr int index_rows = 4;

template <class Index, int Rank, class Function>
__global__ void __launch_bounds__(block_threads)
    index_tiles(Function functor, Tiles<Rank, index_rows> tiles) {
  TileSpot<Rank> spot = tiles.spot(blockIdx.x);
#pragma unroll
  for (int row = 0; row < index_rows; row++)
    if (tiles.has(spot, row)) tiles.template invoke<Index>(functor, spot, row);
}

/* A function without an index as a function of one index that is always 0. */
template <class Function> struct WithoutIndex {
  Function functor;
  template <class Integer> __device__ decltype(auto) operator()(Integer) { return functor(); }
};

/* The lead of the tiles for a function. */
template <class Function, int Rank> int lead_for(Function const &, Extents<Rank> const &) noexcept {
  return 0;
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* functor(i, j, ...) for begin <= (i, j, ...) < end. */
template <class Index, int Rank, class Function>
void device_indices(DevicePlace const &place, Function const &functor, Extents<Rank> const &begin,
                    Extents<Rank> const &end) {
  if constexpr (Rank == 0) {
    device_indices<Index>(place, WithoutIndex<Function>{functor}, Extents<1>(), Extents<1>{1});
  } else {
    Work work(place);
    in_launches(begin, end, [&](Extents<Rank> const &low, Extents<Rank> const &high) {
      Tiles<Rank, index_rows> tiles(low, high, lead_for(functor, low));
      launch(place, index_tiles<Index, Rank, Function>, tiles.count, tiles.threads, functor, tiles);
    });
    work.finish();
  }
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem::detail

#endif
