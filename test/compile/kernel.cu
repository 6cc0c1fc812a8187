/* kernel.cu - a user's program that nvcc compiles: kernels work on memory of the CUDA contexts.
 *
 * Exit code: 0 when every number is right; 1 when one is wrong or a call failed; 3 without a
 * GPU. */
#include <cstdio>

#include <cuda_runtime.h>
#include <umem.h>

namespace {

constexpr size_t count = 100003;
constexpr size_t nbytes = count * sizeof(double);

__global__ void add_index(double *x, size_t n) {
  size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < n) x[i] += static_cast<double>(i);
}

bool succeeded(cudaError_t error) {
  if (error != cudaSuccess) std::printf("CUDA: %s\n", cudaGetErrorString(error));
  return error == cudaSuccess;
}

/* The kernel on the n numbers at adr, queued on stream. */
bool launch(uintptr_t adr, cudaStream_t stream) {
  constexpr unsigned threads = 256;
  constexpr unsigned blocks = static_cast<unsigned>((count + threads - 1) / threads);
  add_index<<<blocks, threads, 0, stream>>>(reinterpret_cast<double *>(adr), count);
  return succeeded(cudaGetLastError());
}

bool launch_on(int device, uintptr_t adr, cudaStream_t stream) {
  umemCudaEntry gpu;
  if (umemCuda_enter(&gpu, device) != umemOK) return false;
  bool launched = launch(adr, stream);
  return umemCuda_leave(&gpu) == umemOK && launched;
}

/* Ones go to the context, the kernel adds to each its index, and the sums come back. What the
 * context does is ordered on stream; finish is for those whose calls wait for no kernel. */
bool is_right(void *ctx, umemHost *host, cudaStream_t stream, bool finish) {
  double *numbers = reinterpret_cast<double *>(umem_alloc(host, nbytes));
  uintptr_t adr = umem_alloc(ctx, nbytes);
  if (!numbers || adr == umem_null(ctx)) return false;
  for (size_t i = 0; i < count; i++) numbers[i] = 1;

  bool right =
      umem_copy_from(ctx, adr, host, reinterpret_cast<uintptr_t>(numbers), nbytes) == umemOK;
  right =
      right && launch_on(0, adr, stream) && (!finish || succeeded(cudaStreamSynchronize(stream)));
  right = right &&
          umem_copy_to(ctx, adr, host, reinterpret_cast<uintptr_t>(numbers), nbytes) == umemOK &&
          umem_synchronize(ctx) == umemOK;
  for (size_t i = 0; right && i < count; i++) right = numbers[i] == 1 + static_cast<double>(i);

  umem_free(ctx, adr);
  umem_free(host, reinterpret_cast<uintptr_t>(numbers));
  std::printf("%s: %s %s\n", umem_get_device_name(ctx), right ? "right" : "WRONG",
              umem_get_message(ctx));
  return right;
}

/* Constructs a context, uses it and destructs it. */
template <class Context, class... Arguments>
bool works(umemStatusType (*construct)(Context *, Arguments...), umemHost *host,
           cudaStream_t stream, bool finish, Arguments... arguments) {
  Context ctx;
  bool right = construct(&ctx, arguments...) == umemOK;
  if (right)
    right = is_right(&ctx, host, stream, finish);
  else
    std::printf("%s\n", umem_get_message(&ctx));
  umem_dtor(&ctx);
  return right;
}

bool works_on_its_own_stream(umemHost *host) {
  umemCudaAsync ctx;
  bool right = umemCudaAsync_ctor(&ctx, 0, UMEM_STREAM_NEW) == umemOK;
  if (right) {
    cudaStream_t stream = reinterpret_cast<cudaStream_t>(umemCudaAsync_stream(&ctx));
    right = is_right(&ctx, host, stream, false);
  }
  umem_dtor(&ctx);
  return right;
}

} // namespace

int main() {
  umemHost host;
  umemHost_ctor(&host);
  int devices = 0;
  if (!succeeded(cudaGetDeviceCount(&devices)) || !devices) return 3;

  cudaStream_t stream;
  if (!succeeded(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) return 1;
  bool right = works(umemCuda_ctor, &host, nullptr, false, 0);
  right &= works(umemCudaHost_ctor, &host, nullptr, true, 0u);
  right &= works(umemCudaManaged_ctor, &host, nullptr, true, 0, 0u);
  right &= works(umemCudaAsync_ctor, &host, stream, false, 0, reinterpret_cast<uintptr_t>(stream));
  right &= works(umemCudaAsync_ctor, &host, nullptr, false, 0, uintptr_t{0});
  right &= works_on_its_own_stream(&host);
  right &= succeeded(cudaStreamDestroy(stream));
  umem_dtor(&host);
  return right ? 0 : 1;
}
