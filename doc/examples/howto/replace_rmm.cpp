/* What a program of RMM uses, with umem: a pool over a GPU, statistics, a limit, a log, buffers. */
#include <umem.hpp>
#include <umem/adaptors.hpp>
#include <umem/buffer.hpp>
#include <umem/pool.hpp>
#include <umem/vector.hpp>

#include <cstdio>

/* The GPU, or RAM on a machine without one. */
static umem::Context device() {
  try {
    return umem::CudaAsync(0); // rmm::mr::cuda_async_memory_resource
  } catch (umem::not_supported_error const &) {
    return umem::Host();
  }
}

int main() {
  try {
    umem::Context gpu = device();
    umem::Pool pool(gpu);                    // rmm::mr::pool_memory_resource
    umem::Limit limited(pool, 1 << 20);      // rmm::mr::limiting_resource_adaptor
    umem::Stats counted(limited);            // rmm::mr::statistics_resource_adaptor
    umem::Log logged(counted, "memory.log"); // rmm::mr::logging_resource_adaptor

    umem::Buffer buffer(logged, 100000);      // rmm::device_buffer
    umem::Vector<float> vector(logged, 1000); // rmm::device_uvector
    auto const figures = counted.figures();
    std::printf("%ld bytes in %ld blocks\n", long(figures.current_bytes),
                long(figures.current_count));
    umem::Buffer too_large(logged, 2 << 20);
  } catch (umem::memory_error const &error) { // rmm::out_of_memory
    std::printf("%s\n", error.message());
  }
}
