/* order.cuh - what the programs of the part `order` share: kernels that are slow to begin, contexts
 * with the streams that are in one order with their calls, and results as lines "ok - NAME".
 *
 * A test queues a slow kernel, makes a call of umem behind it and looks at bytes that are wrong if
 * the call did not wait for the kernel or the kernel not for what came before. What the
 * documentation puts in no order is not tested. */
#pragma once

#include <umem.hpp>
#include <umem/pool.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace order {

using Byte = unsigned char;

/* How long a slow kernel waits before it touches memory: much longer than any call takes that must
 * not overtake it. There are thousands of them. */
inline constexpr long long slow_ns = 30'000'000;

/* Bytes before a test, those that are right after it, and those that came too late or too early. */
enum : int { old_byte = 1, new_byte = 2, stale_byte = 3 };

/* ---- results ---- */

inline int failures = 0;

inline void report(std::string const &name, std::string const &problem) {
  if (problem.empty()) {
    std::printf("ok - %s\n", name.c_str());
  } else {
    failures++;
    std::printf("not ok - %s: %s\n", name.c_str(), problem.c_str());
  }
  std::fflush(stdout);
}

inline void check_cuda(cudaError_t error, char const *call) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw umem::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}
#define CUDA(call) ::order::check_cuda((call), #call)

inline void check(umemStatusType status) { umem::detail::check_status(status); }

/* Runs f, which returns what is wrong, as the test of this name. */
template <class F> void test(std::string const &name, F const &f) {
  std::string problem;
  try {
    problem = f();
  } catch (umem::error const &error) {
    problem = error.message();
  } catch (std::exception const &error) {
    problem = error.what();
  }
  report(name, problem);
}

/* ---- GPUs ---- */

inline int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/* Makes a GPU current for a block. */
class OnDevice {
public:
  explicit OnDevice(int device) { check(umemCuda_enter(&entry_, device)); }
  OnDevice(OnDevice const &) = delete;
  OnDevice &operator=(OnDevice const &) = delete;
  ~OnDevice() { umemCuda_leave(&entry_); }

private:
  umemCudaEntry entry_;
};

/* Returns when all GPUs have nothing to do. */
inline void finish_all() {
  static int const devices = device_count();
  for (int device = 0; device < devices; device++) {
    OnDevice here(device);
    CUDA(cudaDeviceSynchronize());
  }
}

/* ---- streams ---- */

struct Stream {
  std::string name;
  cudaStream_t handle;
  int device;
};

inline Stream legacy(int device) { return {"legacy", cudaStreamLegacy, device}; }
inline Stream per_thread(int device) { return {"per-thread", cudaStreamPerThread, device}; }

/* The end of the program is theirs. */
inline Stream make_stream(std::string const &name, unsigned flags, int device) {
  OnDevice here(device);
  Stream stream{name, nullptr, device};
  CUDA(cudaStreamCreateWithFlags(&stream.handle, flags));
  return stream;
}
inline Stream blocking(int device) { return make_stream("blocking", cudaStreamDefault, device); }
inline Stream non_blocking(int device) {
  return make_stream("non-blocking", cudaStreamNonBlocking, device);
}
inline Stream stream_of(umem::CudaAsync const &context, int device) {
  return {"own", reinterpret_cast<cudaStream_t>(context.stream()), device};
}

inline std::uintptr_t number(Stream const &stream) {
  return reinterpret_cast<std::uintptr_t>(stream.handle);
}

/* ---- kernels ---- */

__device__ inline void wait_for(long long ns) {
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < ns);
}

/* After ns: copies n bytes to a log if there is one, then sets them if value is a byte. */
static __global__ void visit(Byte *data, std::size_t n, Byte *log, int value, long long ns) {
  if (ns) wait_for(ns);
  std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    if (log) log[i] = data[i];
    if (value >= 0) data[i] = static_cast<Byte>(value);
  }
}

/* Queues that kernel. */
inline void launch(Stream const &stream, umem::address adr, std::size_t n, Byte *log, int value,
                   long long ns) {
  OnDevice here(stream.device);
  visit<<<16, 256, 0, stream.handle>>>(reinterpret_cast<Byte *>(adr), n, log, value, ns);
  CUDA(cudaGetLastError());
}
inline void slow_set(Stream const &stream, umem::address adr, std::size_t n, int value) {
  launch(stream, adr, n, nullptr, value, slow_ns);
}
/* The first kernels of a program take long to begin. */
inline void warm_up(int device) {
  OnDevice here(device);
  launch(legacy(device), 0, 0, nullptr, -1, 1000);
  CUDA(cudaDeviceSynchronize());
}

/* Memory that kernels write and the host reads when they are done. */
class Log {
public:
  Log(std::size_t n) : n_(n) {
    CUDA(cudaHostAlloc(reinterpret_cast<void **>(&bytes_), n, cudaHostAllocPortable));
  }
  Log(Log const &) = delete;
  Log &operator=(Log const &) = delete;
  ~Log() { cudaFreeHost(bytes_); }

  Byte *data() const { return bytes_; }
  void clear() { std::memset(bytes_, 0, n_); }

private:
  std::size_t n_;
  Byte *bytes_ = nullptr;
};

/* ---- bytes ---- */

/* What is wrong with n bytes that should all be value; empty: nothing. */
inline std::string differ(Byte const *bytes, std::size_t n, int value, char const *what) {
  for (std::size_t i = 0; i < n; i++)
    if (bytes[i] != value)
      return std::string(what) + ": byte " + std::to_string(i) + " of " + std::to_string(n) +
             " is " + std::to_string(bytes[i]) + " instead of " + std::to_string(value);
  return {};
}

inline std::string first_of(std::string const &one, std::string const &two) {
  return one.empty() ? two : one;
}

/* For a block of a context, whose work is complete. */
inline std::string differ(umem::Context const &context, umem::address adr, std::size_t n, int value,
                          char const *what) {
  std::vector<Byte> found(n);
  umem::copy(context, adr, found.data(), n);
  return differ(found.data(), n, value, what);
}

/* Sets n bytes, without work that is left in any queue. */
inline void prepare(umem::Context const &context, umem::address adr, std::size_t n, int value) {
  context.set(adr, value, n);
  context.synchronize();
  finish_all();
}

/* ---- contexts ---- */

/* A context, and the streams whose kernels are in one order with its calls; none where kernels
 * cannot use its memory, or where nothing is promised to those that do. */
struct Bed {
  std::string name;
  umem::Context context;
  std::vector<Stream> streams;
  bool frees_in_order; /* blocks may be freed while such kernels still use them */

  bool has_kernels() const { return !streams.empty(); }
  bool is_ordered() const { return context.can(umemOrdered); }
};

/* Those of one GPU. */
inline std::vector<Bed> beds_of(int device) {
  std::string const gpu = device ? "-" + std::to_string(device) : "";
  Stream const own_blocking = blocking(device);
  std::vector<Stream> const all{legacy(device), blocking(device), per_thread(device)};
  umem::Cuda cuda(device);
  umem::CudaManaged managed(device);
  umem::CudaAsync own(device), of_legacy(device, 0), of_blocking(device, number(own_blocking));
  umem::CudaAsync for_pool(device), for_view(device);
  umem::Pool pool(cuda), async_pool(for_pool);
  umem::PoolOn view(pool, for_view), async_view(async_pool, for_view);
  std::vector<Bed> beds;
  beds.push_back({"cuda" + gpu, cuda, all, true});
  if (managed.can(umemCpuReadable)) beds.push_back({"managed" + gpu, managed, all, true});
  beds.push_back({"async(own)" + gpu, own, {stream_of(own, device)}, true});
  beds.push_back({"async(legacy)" + gpu, of_legacy, all, true});
  beds.push_back({"async(blocking)" + gpu, of_blocking, {own_blocking, legacy(device)}, true});
  beds.back().streams[1].name = "legacy";
  beds.push_back({"pool(cuda)" + gpu, pool, all, false});
  beds.push_back({"pool(async)" + gpu, async_pool, {stream_of(for_pool, device)}, true});
  beds.push_back({"view(pool(cuda),async)" + gpu, view, {stream_of(for_view, device)}, true});
  beds.push_back(
      {"view(pool(async),async)" + gpu, async_view, {stream_of(for_view, device)}, true});
  return beds;
}

/* Those whose memory is the host's. */
inline std::vector<Bed> host_beds() {
  return {{"host", umem::Host(), {}, false},
          {"file", umem::File::scratch(), {}, false},
          {"mmap", umem::MMap::scratch(), {}, false},
          {"pinned", umem::CudaHost(), {}, false}};
}

/* ---- the program ---- */

/* Runs all of it on what GPUs there are. Exit code: 0; 1 when a test failed; 3 without a GPU. */
inline int run(std::function<void(int devices)> const &all) {
  int const devices = device_count();
  if (!devices) {
    std::printf("there is no GPU\n");
    return 3;
  }
  try {
    std::vector<umem::Context> held; /* so that streams of the program stay while they are used */
    for (int device = 0; device < devices; device++) {
      held.push_back(umem::Cuda(device));
      warm_up(device);
    }
    all(devices);
  } catch (umem::error const &error) {
    report("the program", error.message());
  } catch (std::exception const &error) {
    report("the program", error.what());
  }
  return failures ? 1 : 0;
}

} // namespace order
