/* external_rmm.cpp - RMM's resources in C++ as places on a GPU: umem::External over them, under
 * Limit, Stats and a pool of umem. */
#include <umem.hpp>
#include <umem/adaptors.hpp>
#include <umem/external.hpp>
#include <umem/pool.hpp>

#include <cuda/stream_ref>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/resource_ref.hpp>

#include <cstdio>
#include <string>
#include <thread>

namespace {

int failures = 0;

void report(std::string const &name, std::string const &problem) {
  std::printf("%s - %s%s%s\n", problem.empty() ? "ok" : "not ok", name.c_str(),
              problem.empty() ? "" : ": ", problem.c_str());
  failures += !problem.empty();
}

/* Arrays there and back, beyond a limit, and out of a pool. */
std::string use(umem::Context const &place) {
  umem::Stats stats{place};
  umem::Limit limit(stats, 1 << 20);
  auto u = umem::Array<int, 1>::full({1000}, 7, limit);
  u.release_host();
  if ((*u.host(umem::read))(999) != 7) return "wrong bytes";
  if (stats.figures().current_bytes != 4000) return "wrong figures";
  try {
    umem::Buffer(limit, 2 << 20);
    return "the limit does not hold";
  } catch (umem::memory_error const &) {
  }
  umem::Pool pool{umem::Context(limit)};
  for (int i = 1; i < 100; i++) umem::Buffer(pool, 100).set(i);
  return umem::Buffer(place, 100, 4096).adr() % 4096 ? "wrong alignment" : "";
}

/* In a thread that only umem has used, CCCL's streams find a context. */
std::string sync(umem::CudaAsync const &queue) {
  std::string problem;
  std::thread([&] {
    try {
      umem::Buffer(queue, 1000).set(7);
      cuda::stream_ref(reinterpret_cast<cudaStream_t>(queue.stream())).sync();
    } catch (std::exception const &exception) {
      problem = exception.what();
    }
  }).join();
  return problem;
}

template <class Make> void test(std::string const &name, Make const &make) {
  std::string problem;
  try {
    umem::Context const place = make();
    problem = use(place);
    try {
      umem::Buffer(place, std::size_t(1) << 50);
      problem = "a petabyte was allocated";
    } catch (std::bad_alloc const &) {
    }
  } catch (std::exception const &exception) {
    problem = exception.what();
  }
  report(name, problem);
}

} // namespace

int main() {
  umem::CudaAsync queue(0);
  umem::Cuda now(0);
  rmm::mr::cuda_memory_resource cuda;
  rmm::mr::pool_memory_resource pool(cuda, 1 << 24);
  rmm::mr::cuda_async_memory_resource async;
  test("RMM's cuda_memory_resource on a Cuda", [&] { return umem::External(cuda, now); });
  test("RMM's pool on a CudaAsync", [&] { return umem::External(pool, queue); });
  test("a pointer to RMM's pool on a Cuda", [&] { return umem::External(&pool, now); });
  test("RMM's cuda_async_memory_resource", [&] { return umem::External(async, queue); });
  test("RMM's resource_ref",
       [&] { return umem::External(rmm::device_async_resource_ref(pool), queue); });
  report("CCCL's stream_ref::sync in a new thread", sync(queue));
  return failures != 0;
}
