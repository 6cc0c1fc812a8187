#include "by_hand_cuda.h"

#include <stdexcept>
#include <string>

namespace by_hand {

void check_cuda(cudaError_t error, char const *call) {
  if (error == cudaSuccess) return;
  cudaGetLastError(); /* clears the failure, so that no later call returns it */
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

int count_gpus() {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

CudaStream::CudaStream() {
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
             "cudaStreamCreateWithFlags");
}

void CudaGraph::end(cudaStream_t stream) {
  cudaGraph_t graph;
  check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cudaError_t error = cudaGraphInstantiateWithFlags(&graph_, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(error, "cudaGraphInstantiateWithFlags");
}

CudaPool::CudaPool() {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  check_cuda(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
  std::uint64_t threshold = UINT64_MAX;
  cudaError_t error = cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold);
  if (error != cudaSuccess) cudaMemPoolDestroy(pool_);
  check_cuda(error, "cudaMemPoolSetAttribute");
}

void copy(std::uintptr_t dst, std::uintptr_t src, std::size_t size, cudaMemcpyKind kind) {
  check_cuda(
      cudaMemcpy(reinterpret_cast<void *>(dst), reinterpret_cast<void const *>(src), size, kind),
      "cudaMemcpy");
}

void copy_async(std::uintptr_t dst, std::uintptr_t src, std::size_t size, cudaMemcpyKind kind,
                cudaStream_t stream) {
  check_cuda(cudaMemcpyAsync(reinterpret_cast<void *>(dst), reinterpret_cast<void const *>(src),
                             size, kind, stream),
             "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void copy_each(CudaCopies const &copies, cudaStream_t stream) {
  for (std::size_t i = 0; i < copies.dst.size(); i++)
    check_cuda(
        cudaMemcpyAsync(copies.dst[i], copies.src[i], copies.sizes[i], cudaMemcpyDefault, stream),
        "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

#if CUDART_VERSION >= 13000
void copy_batch(CudaCopies const &copies, cudaStream_t stream) {
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  check_cuda(cudaMemcpyBatchAsync(copies.dst.data(), copies.src.data(), copies.sizes.data(),
                                  copies.dst.size(), &attributes, &first, 1, stream),
             "cudaMemcpyBatchAsync");
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}
#endif

void finish() { check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize"); }

} // namespace by_hand
