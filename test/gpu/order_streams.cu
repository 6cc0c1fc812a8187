/* order_streams.cu - streams of the driver's interface in threads that only umem has used. Without
 * a current context they fail with "invalid device context" (201). CCCL's sync is this call. */
#include "order.cuh"

#include <umem/adaptors.hpp>

#include <cuda.h>
#include <thread>

namespace {

/* What f returns in a thread of its own, which has no current context. */
std::string in_new_thread(std::function<std::string()> const &f) {
  std::string problem;
  std::thread([&] {
    try {
      problem = f();
    } catch (std::exception const &exception) {
      problem = exception.what();
    }
  }).join();
  return problem;
}

/* What CCCL's stream_ref::sync does. */
std::string sync(cudaStream_t stream) {
  CUresult const error = cuStreamSynchronize(stream);
  return error == CUDA_SUCCESS ? "" : "cuStreamSynchronize: " + std::to_string(error);
}

CUcontext current() {
  CUcontext context = nullptr;
  return cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

/* The thread calls the driver after a call of umem, and none of CUDA's runtime. */
std::string sync_after(umem::Context const &context, cudaStream_t stream) {
  return in_new_thread([&]() -> std::string {
    if (current()) return "a new thread has a context";
    umem::Buffer block(context, 1000);
    block.set(7);
    if (!current()) return "there is no current context";
    return sync(stream);
  });
}

/* Also after the end of the context of umem, while the runtime has its own. */
std::string sync_after_the_end(cudaStream_t stream) {
  return in_new_thread([&]() -> std::string {
    umem::Buffer(umem::Cuda(0), 1000).set(7);
    return sync(stream);
  });
}

std::string runtime_goes_on() {
  return in_new_thread([]() -> std::string {
    umem::Buffer(umem::Cuda(0), 1000).set(7);
    int device = -1;
    CUDA(cudaGetDevice(&device));
    if (device != 0) return "the runtime is on GPU " + std::to_string(device);
    void *block = nullptr;
    CUDA(cudaMalloc(&block, 100));
    CUDA(cudaFree(block));
    return "";
  });
}

std::string other_gpu_is_not_chosen() {
  int devices = 0;
  CUDA(cudaGetDeviceCount(&devices));
  if (devices < 2) return "";
  return in_new_thread([]() -> std::string {
    umem::Buffer(umem::Cuda(1), 1000).set(7);
    int device = -1;
    CUDA(cudaGetDevice(&device));
    return device == 0 ? "" : "the runtime is on GPU " + std::to_string(device);
  });
}

/* Where umem alone has retained the primary context: the first test, before the runtime is used. */
std::string the_end_of_the_last_context() {
  return in_new_thread([]() -> std::string {
    umem::Buffer(umem::Cuda(0), 1000).set(7);
    umem::CudaAsync queue(0); /* which retains it again */
    umem::Buffer block(queue, 1000);
    std::string const problem = sync(reinterpret_cast<cudaStream_t>(queue.stream()));
    if (!problem.empty()) return problem;
    void *memory = nullptr;
    CUDA(cudaMalloc(&memory, 100));
    CUDA(cudaFree(memory));
    return "";
  });
}

} // namespace

int main() {
  using order::test;
  test("streams: umem alone has used the GPU", the_end_of_the_last_context);
  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 2;
  umem::CudaAsync queue(0, reinterpret_cast<std::uintptr_t>(stream));
  umem::Cuda cuda(0);
  umem::Pool pool{umem::Context(cuda)};
  test("streams: sync after a Cuda", [&] { return sync_after(cuda, stream); });
  test("streams: sync after a CudaAsync", [&] { return sync_after(queue, stream); });
  test("streams: sync after a pool",
       [&] { return sync_after(umem::Limit(pool, 1 << 20), stream); });
  test("streams: sync after the end", [&] { return sync_after_the_end(stream); });
  test("streams: the runtime is on GPU 0", runtime_goes_on);
  test("streams: another GPU is not chosen", other_gpu_is_not_chosen);
  return order::failures != 0;
}
