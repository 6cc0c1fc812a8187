/* heaps_gpu.h - allocation of GPU memory by umem's pools, by plain CUDA and by RMM, called in the
 * same way as the heaps of heaps.h. Only in builds with CUDA.
 *
 * Each class here owns what its heap() needs. finish() waits for what is queued, and throws
 * std::runtime_error if anything failed. */
#ifndef UMEM_BENCH_HEAPS_GPU_H
#define UMEM_BENCH_HEAPS_GPU_H

#include "by_hand_cuda.h"
#include "heaps.h"
#include "place.h"

#include <memory>
#include <stdexcept>
#include <string>

namespace bench {

/* A pool of umem, or a view of one, by the row of the table; with the options that it has by
 * default. */
class GpuPool {
public:
  explicit GpuPool(char const *row) : name_(row), place_(row_named(row)) {}

  std::string const &name() const { return name_; }
  Umem heap() const { return {place_.context()}; }
  void finish() const {
    place_.finish();
    check(umem_get_status(place_.context()));
  }

private:
  std::string name_;
  Place place_;
};

/* cudaMalloc and cudaFree. */
class PlainGpu {
public:
  struct Heap {
    static constexpr bool wants_sizes = false;
    std::uintptr_t alloc(std::size_t size) const {
      void *bytes = nullptr;
      by_hand::check_cuda(cudaMalloc(&bytes, size), "cudaMalloc");
      return reinterpret_cast<std::uintptr_t>(bytes);
    }
    void free(std::uintptr_t address, std::size_t) const {
      by_hand::check_cuda(cudaFree(reinterpret_cast<void *>(address)), "cudaFree");
    }
  };

  static char const *name() { return "cudaMalloc+cudaFree"; }
  Heap heap() const { return {}; }
  void finish() const {}
};

/* cudaMallocFromPoolAsync and cudaFreeAsync, one stream, and a pool that keeps what is freed. */
class OrderedGpu {
public:
  struct Heap {
    static constexpr bool wants_sizes = false;
    cudaMemPool_t pool;
    cudaStream_t stream;
    std::uintptr_t alloc(std::size_t size) const {
      void *bytes = nullptr;
      by_hand::check_cuda(cudaMallocFromPoolAsync(&bytes, size, pool, stream),
                          "cudaMallocFromPoolAsync");
      return reinterpret_cast<std::uintptr_t>(bytes);
    }
    void free(std::uintptr_t address, std::size_t) const {
      by_hand::check_cuda(cudaFreeAsync(reinterpret_cast<void *>(address), stream),
                          "cudaFreeAsync");
    }
  };

  static char const *name() { return "cudaMallocAsync+cudaFreeAsync"; }
  Heap heap() const { return {pool_, stream_}; }
  void finish() const {
    by_hand::check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

private:
  by_hand::CudaPool pool_;
  by_hand::CudaStream stream_;
};

/* RMM's pool over cudaMalloc or pinned RAM, and one stream. It begins with so many bytes, as is its
 * custom. Compiled where CMake finds RMM. */
class RmmPool {
public:
  class Impl;
  struct Heap {
    static constexpr bool wants_sizes = true;
    Impl *impl;
    std::uintptr_t alloc(std::size_t size) const;
    void free(std::uintptr_t address, std::size_t size) const;
  };

  explicit RmmPool(std::size_t initial_bytes, bool pinned = false);
  ~RmmPool();
  static std::string name(); /* with the version */
  std::size_t reserved_bytes() const;
  Heap heap() const { return {impl_.get()}; }
  void finish() const;

private:
  std::unique_ptr<Impl> impl_;
};

} // namespace bench

#endif
