/* heap_rmm.cpp - the pool of RMM, the RAPIDS Memory Manager. In C++20, as RMM's headers want it. */
#include "heaps_gpu.h"

#include <rmm/aligned.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pinned_host_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/version_config.hpp>

#include <utility>

namespace bench {

using Upstream = cuda::mr::any_resource<cuda::mr::device_accessible>;

constexpr std::size_t whole = std::size_t{1} << 20; /* RMM's pools begin with multiples of 256 B */

class RmmPool::Impl {
public:
  Impl(Upstream upstream, std::size_t initial_bytes) : pool_(std::move(upstream), initial_bytes) {}

  void *alloc(std::size_t size) {
    return pool_.allocate(cuda::stream_ref{stream_}, size, rmm::CUDA_ALLOCATION_ALIGNMENT);
  }
  void free(void *address, std::size_t size) {
    pool_.deallocate(cuda::stream_ref{stream_}, address, size, rmm::CUDA_ALLOCATION_ALIGNMENT);
  }
  std::size_t reserved_bytes() const { return pool_.pool_size(); }
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

RmmPool::RmmPool(std::size_t initial_bytes, bool pinned)
    : impl_(std::make_unique<Impl>(pinned ? Upstream(rmm::mr::pinned_host_memory_resource{})
                                          : Upstream(rmm::mr::cuda_memory_resource{}),
                                   (initial_bytes / whole + 1) * whole)) {}

std::size_t RmmPool::reserved_bytes() const { return impl_->reserved_bytes(); }

RmmPool::~RmmPool() = default;
void RmmPool::finish() const { impl_->finish(); }
std::string RmmPool::name() { return std::string("RMM ") + RMM_VERSION + " pool"; }

} // namespace bench
