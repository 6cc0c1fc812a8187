/* trace_cuda.cpp - traces on cudaMallocAsync and RMM. See trace_heap.h. */
#include "trace_heap.h"

#include "by_hand_cuda.h"
#ifdef UMEM_BENCH_RMM
#include "heaps_gpu.h"

#include <new>
#endif

#include <cuda_runtime_api.h>

namespace bench {
namespace {

class OrderedPool : public TraceHeap {
public:
  explicit OrderedPool(Trace const &trace) : blocks_(trace.blocks) {}

  bool alloc(std::uint32_t block, std::uint64_t size) override {
    if (cudaMallocFromPoolAsync(&blocks_[block], size, pool_, stream_) == cudaSuccess) return true;
    cudaGetLastError();
    return false;
  }
  void free(std::uint32_t block) override {
    by_hand::check_cuda(cudaFreeAsync(blocks_[block], stream_), "cudaFreeAsync");
  }
  std::uint64_t reserved_peak() override {
    std::uint64_t high = 0;
    by_hand::check_cuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &high),
                        "cudaMemPoolGetAttribute");
    return high;
  }

private:
  std::vector<void *> blocks_;
  by_hand::CudaPool pool_;
  by_hand::CudaStream stream_; /* ends first */
};

#ifdef UMEM_BENCH_RMM
class RmmTrace : public TraceHeap {
public:
  explicit RmmTrace(Trace const &trace) : blocks_(trace.blocks) {}

  bool alloc(std::uint32_t block, std::uint64_t size) override {
    try {
      blocks_[block] = {pool_.heap().alloc(size), size};
      return true;
    } catch (std::bad_alloc const &) {
      return false;
    }
  }
  void free(std::uint32_t block) override {
    pool_.heap().free(blocks_[block].address, blocks_[block].size);
  }
  std::uint64_t reserved_peak() override { return pool_.reserved_bytes(); } /* it never shrinks */

private:
  struct Block {
    std::uintptr_t address;
    std::uint64_t size;
  };
  std::vector<Block> blocks_;
  RmmPool pool_{0};
};
#endif

} // namespace

std::unique_ptr<TraceHeap> cuda_pool(Trace const &trace, std::uint64_t) {
  return std::make_unique<OrderedPool>(trace);
}

#ifdef UMEM_BENCH_RMM
std::unique_ptr<TraceHeap> rmm_pool(Trace const &trace, std::uint64_t) {
  return std::make_unique<RmmTrace>(trace);
}
#endif

} // namespace bench
