/* heap_rmm.cpp - the pool of RMM, the RAPIDS Memory Manager. In C++20, as RMM's headers want it. */
#include "heaps_gpu.h"

#include <rmm/aligned.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/version_config.hpp>

namespace bench {

constexpr std::size_t whole = std::size_t{1} << 20; /* RMM's pools begin with multiples of 256 B */

class RmmPool::Impl {
public:
  explicit Impl(std::size_t initial_bytes)
      : pool_(rmm::mr::cuda_memory_resource{}, initial_bytes) {}

  void *alloc(std::size_t size) {
    return pool_.allocate(cuda::stream_ref{stream_}, size, rmm::CUDA_ALLOCATION_ALIGNMENT);
  }
  void free(void *address, std::size_t size) {
    pool_.deallocate(cuda::stream_ref{stream_}, address, size, rmm::CUDA_ALLOCATION_ALIGNMENT);
  }
  void finish() { by_hand::check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

private:
  by_hand::CudaStream stream_; /* outlives the pool */
  rmm::mr::pool_memory_resource pool_;
};

std::uintptr_t RmmPool::Heap::alloc(std::size_t size) const {
  return reinterpret_cast<std::uintptr_t>(impl->alloc(size));
}

void RmmPool::Heap::free(std::uintptr_t address, std::size_t size) const {
  impl->free(reinterpret_cast<void *>(address), size);
}

RmmPool::RmmPool(std::size_t initial_bytes)
    : impl_(std::make_unique<Impl>((initial_bytes / whole + 1) * whole)) {}

RmmPool::~RmmPool() = default;
void RmmPool::finish() const { impl_->finish(); }
std::string RmmPool::name() { return std::string("RMM ") + RMM_VERSION + " pool"; }

} // namespace bench
