/* Doubles numbers on a GPU, with CUDA only. */
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

__global__ void scale(double *x, std::size_t n, double factor) {
  std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (i < n) x[i] *= factor;
}

int main() {
  std::size_t const n = 1000000, nbytes = n * sizeof(double);
  std::vector<double> host(n);
  for (std::size_t i = 0; i < n; i++) host[i] = static_cast<double>(i);

  double *x = nullptr;
  check(cudaMalloc(&x, nbytes));
  check(cudaMemcpy(x, host.data(), nbytes, cudaMemcpyHostToDevice));

  scale<<<static_cast<unsigned>((n + 255) / 256), 256>>>(x, n, 2);
  check(cudaGetLastError());

  check(cudaMemcpy(host.data(), x, nbytes, cudaMemcpyDeviceToHost));
  std::printf("%g\n", host[n - 1]);
  check(cudaFree(x));
}
