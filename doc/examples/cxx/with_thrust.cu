/* Thrust and CCCL's memory resources on a GPU. */
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE /* up to CCCL 3.0 */
#include <cstdio>
#include <thrust/device_vector.h>
#include <thrust/scan.h>
#include <umem.hpp>
#include <umem/pool.hpp>
#include <umem/with/cuda_resource.hpp>
#include <umem/with/thrust.hpp>

int main() {
  /* [thrust] */
  umem::Pool pool{umem::CudaAsync()}; /* temporary memory comes from here */
  auto u = umem::Array<int, 2>::full({100, 100}, 1, pool);
  {
    auto guard = u.device(umem::write);
    auto column = guard->select(1, 7);
    thrust::inclusive_scan(umem::thrust_policy(pool), column.begin(), column.end(), column.begin());
  }
  thrust::device_vector<int, umem::ThrustAllocator<int>> values(1000, 5, pool);
  /* [/thrust] */
  std::printf("%d %d\n", u.get(99, 7), static_cast<int>(values[999]));

  /* [resource] */
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  umem::CudaResource<cuda::mr::device_accessible> resource{umem::Pool(umem::Cuda())};
  void *block = resource.allocate_async(1 << 20, 256, stream);
  cudaMemsetAsync(block, 0, 1 << 20, stream);
  resource.deallocate_async(block, 1 << 20, 256, stream); /* in the order of the stream */
  resource.forget(stream);
  cudaStreamDestroy(stream);
  /* [/resource] */
}
