/* kernels_thrust.cu - Thrust, CCCL's resources and cuBLAS's arguments on memory of umem, on a GPU.
 *
 * Exit code: 0; 77 without a GPU; 1 when something is wrong. */
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE /* up to CCCL 3.0 */
#include <umem.hpp>
#include <umem/pool.hpp>
#include <umem/with/cuda_resource.hpp>
#include <umem/with/thrust.hpp>

#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, std::string const &text) {
  if (holds) return;
  failures++;
  std::printf("WRONG: %s\n", text.c_str());
}

/* Algorithms on a view with gaps and one without, with temporary memory from the context. */
template <class Policy> void check_algorithms(umem::Context const &context, Policy const &policy) {
  std::string const name = context.name();
  umem::Array<int, 2> array({300, 400}, context);
  {
    auto guard = array.host(umem::discard);
    int next = 0;
    for (int &x : umem::elements(guard)) x = next++ % 7;
  }
  std::vector<int> column;
  {
    auto guard = array.device(umem::write);
    auto const elements = umem::elements(guard->transpose());
    long const sum = thrust::reduce(policy, elements.begin(), elements.end(), 0L);
    long expected = 0;
    for (int i = 0; i < 300 * 400; i++) expected += i % 7;
    expect(sum == expected, name + ": reduce over columns");
    auto const line = guard->select(1, 3).reversed(0);
    thrust::inclusive_scan(policy, line.begin(), line.end(), line.begin());
    context.synchronize();
  }
  auto guard = array.host(umem::read);
  int total = 0;
  bool same = true;
  for (int i = 299; i >= 0; i--) {
    total += (400 * i + 3) % 7;
    same = same && guard(i, 3) == total;
  }
  expect(same, name + ": a scan along a column");
  expect(guard(7, 4) == (400 * 7 + 4) % 7, name + ": the scan wrote elsewhere");
}

void check_vectors(umem::Context const &context) {
  thrust::device_vector<double, umem::ThrustAllocator<double>> values(100000, 0.5, context);
  expect(thrust::reduce(umem::thrust_policy(context), values.begin(), values.end()) == 50000,
         std::string(context.name()) + ": a device_vector");
}

void check_resource(umem::Context const &context) {
  umem::CudaResource<cuda::mr::device_accessible> resource(context);
  cudaStream_t streams[2];
  for (cudaStream_t &stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (int round = 0; round < 100; round++) {
    cudaStream_t const stream = streams[round % 2];
    void *block = resource.allocate_async(1 << 20, 256, stream);
    expect(cudaMemsetAsync(block, round, 1 << 20, stream) == cudaSuccess, "a set of a block");
    unsigned char last = 0;
    cudaMemcpyAsync(&last, static_cast<char *>(block) + (1 << 20) - 1, 1, cudaMemcpyDeviceToHost,
                    stream);
    resource.deallocate_async(block, 1 << 20, 256, stream);
    expect(cudaStreamSynchronize(stream) == cudaSuccess && last == round,
           std::string(context.name()) + ": blocks of two streams");
  }
  for (cudaStream_t stream : streams) {
    resource.forget(stream);
    cudaStreamDestroy(stream);
  }
}

} // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 77;
  cudaSetDevice(0);
  umem::CudaAsync ordered;
  for (umem::Context const &context :
       {umem::Context(umem::Cuda()), umem::Context(ordered),
        umem::Context(umem::Pool(umem::Cuda())), umem::Context(umem::Pool(ordered)),
        umem::Context(umem::CudaManaged())}) {
    check_algorithms(context, umem::thrust_policy(context));
    check_vectors(context);
    check_resource(context);
    if (context.can(umemOrdered)) check_algorithms(context, umem::thrust_policy_queued(context));
  }
  bool refused = false;
  try {
    umem::thrust_policy_queued(umem::Cuda());
  } catch (umem::not_supported_error const &) {
    refused = true;
  }
  expect(refused, "a queued policy of a context without order");
  std::printf("%d wrong\n", failures);
  return failures ? 1 : 0;
}
