/* by_hand_cuda.h - what a program does with GPUs that has no umem: plain calls of CUDA's runtime.
 * Only in builds with CUDA. */
#ifndef UMEM_BENCH_BY_HAND_CUDA_H
#define UMEM_BENCH_BY_HAND_CUDA_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

namespace by_hand {

/* Throws std::runtime_error, with CUDA's words, unless error is cudaSuccess. */
void check_cuda(cudaError_t error, char const *call);

/* How many GPUs there are. */
int count_gpus();

/* A stream that the legacy default stream does not wait for. */
class CudaStream {
public:
  CudaStream();
  CudaStream(CudaStream const &) = delete;
  CudaStream &operator=(CudaStream const &) = delete;
  ~CudaStream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

private:
  cudaStream_t stream_;
};

/* What is queued on a stream meanwhile, to be launched by one call. */
class CudaGraph {
public:
  template <class Queue> CudaGraph(cudaStream_t stream, Queue const &queue) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    queue();
    end(stream);
  }
  CudaGraph(CudaGraph const &) = delete;
  CudaGraph &operator=(CudaGraph const &) = delete;
  ~CudaGraph() { cudaGraphExecDestroy(graph_); }
  operator cudaGraphExec_t() const { return graph_; }

private:
  void end(cudaStream_t stream);
  cudaGraphExec_t graph_;
};

/* A memory pool of the first GPU that keeps what is freed. */
class CudaPool {
public:
  CudaPool();
  CudaPool(CudaPool const &) = delete;
  CudaPool &operator=(CudaPool const &) = delete;
  ~CudaPool() { cudaMemPoolDestroy(pool_); }
  operator cudaMemPool_t() const { return pool_; }

private:
  cudaMemPool_t pool_;
};

/* Copies by cudaMemcpy, of memory whose addresses umem gave. */
void copy(std::uintptr_t dst, std::uintptr_t src, std::size_t size, cudaMemcpyKind kind);

/* A copy by cudaMemcpyAsync and cudaStreamSynchronize. */
void copy_async(std::uintptr_t dst, std::uintptr_t src, std::size_t size, cudaMemcpyKind kind,
                cudaStream_t stream);

/* Copies between addresses that umem gave, one after the other or, if this CUDA has it, by one call
 * of cudaMemcpyBatchAsync. Both return when all is copied. */
struct CudaCopies {
  std::vector<void *> dst;
  std::vector<void const *> src;
  std::vector<std::size_t> sizes;
};
void copy_each(CudaCopies const &copies, cudaStream_t stream);
#if CUDART_VERSION >= 13000
void copy_batch(CudaCopies const &copies, cudaStream_t stream);
#endif

/* Returns when all that was queued on the legacy default stream is done. */
void finish();

} // namespace by_hand

#endif
