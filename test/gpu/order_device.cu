/* order_device.cu - what is current for a thread after calls and loops, and which GPUs have a
 * context: no GPU but the one that the program names. Where there are two, that is the second. The
 * program is the first to use CUDA in its process. */
#include <umem.hpp>
#include <umem/pool.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>

#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>
#include <string>
#include <thread>

namespace {

using umem::index_t;
using Doubles = umem::Array<double, 1>;

struct Increment {
  UMEM_FUNCTION void operator()(double &x) const { x += 1; }
};
struct Next {
  UMEM_FUNCTION double operator()(double const &x) const { return x + 1; }
};
struct FromIndex {
  UMEM_FUNCTION double operator()(double &x, index_t i) const {
    x = static_cast<double>(i);
    return x;
  }
};

/* ---- results ---- */

int failures = 0;

void check(std::string const &name, std::string const &problem) {
  if (problem.empty()) {
    std::printf("ok - %s\n", name.c_str());
  } else {
    failures++;
    std::printf("not ok - %s: %s\n", name.c_str(), problem.c_str());
  }
}

/* ---- the driver, without making a context ---- */

template <class F> F driver(char const *name) {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, 12020, cudaEnableDefault, &result);
#else
  cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &result);
#endif
  if (error != cudaSuccess || !function) throw umem::runtime_error(name);
  return reinterpret_cast<F>(function);
}

CUcontext current_context() {
  static auto const get = driver<CUresult (*)(CUcontext *)>("cuCtxGetCurrent");
  CUcontext context = nullptr;
  if (get(&context) != CUDA_SUCCESS) throw umem::runtime_error("cuCtxGetCurrent");
  return context;
}

bool has_context(int device) {
  static auto const get =
      driver<CUresult (*)(CUdevice, unsigned *, int *)>("cuDevicePrimaryCtxGetState");
  unsigned flags = 0;
  int active = 0;
  if (get(device, &flags, &active) != CUDA_SUCCESS)
    throw umem::runtime_error("cuDevicePrimaryCtxGetState");
  return active != 0;
}

/* ---- tests ---- */

std::string use_loops(umem::Context const &context) {
  Doubles a({1000}, context), b({1000}, context), sums({10}, context);
  umem::Array<double, 2> rows({10, 5000}, context);
  umem::fill(a, 1);
  umem::for_each(a, Increment());
  umem::transform(a, b, Next());
  double found = umem::sum(b);
  umem::sweep(context, a, umem::Range<1>(umem::Extents<1>{1000}), 0.0, umem::maximum(),
              FromIndex());
  umem::fill(rows, 1);
  umem::sum_along(rows, 1, sums);
  found += umem::sum(sums);
  {
    auto guard = a.device(umem::write);
    int const device = static_cast<int>(context.info().ordinal);
    umem::for_each(umem::on_device(0, device), guard, Increment());
    found += umem::max(umem::on_device(0, device), guard.view());
  }
  return found == 3000 + 50000 + 1000 ? "" : "a wrong result, " + std::to_string(found);
}

/* Whether the thread has the context that it had. One that had none may have that of GPU 0, as
 * after a call of the runtime. */
bool is_left(CUcontext before, int device) {
  CUcontext const now = current_context();
  if (now == before || before != nullptr || device != 0) return now == before;
  static auto const retain =
      driver<CUresult (*)(CUcontext *, CUdevice)>("cuDevicePrimaryCtxRetain");
  static auto const release = driver<CUresult (*)(CUdevice)>("cuDevicePrimaryCtxRelease");
  CUcontext primary = nullptr;
  if (retain(&primary, 0) != CUDA_SUCCESS) throw umem::runtime_error("cuDevicePrimaryCtxRetain");
  release(0);
  return now == primary;
}

/* All of it on the GPU, for a thread with this current context. */
void test(int device, std::string const &caller) {
  CUcontext const before = current_context();
  umem::CudaAsync async(device), queue(device);
  umem::Pool pool{umem::Cuda(device)};
  struct {
    char const *name;
    umem::Context context;
  } const contexts[] = {{"cuda", umem::Cuda(device)},
                        {"managed", umem::CudaManaged(device)},
                        {"async", async},
                        {"async of the legacy stream", umem::CudaAsync(device, 0)},
                        {"pool", pool},
                        {"view of a pool", umem::PoolOn(pool, queue)}};
  for (auto const &one : contexts) {
    std::string wrong = use_loops(one.context);
    if (wrong.empty() && !is_left(before, device)) wrong = "another context is current";
    if (wrong.empty() && device > 0 && before == nullptr && has_context(0))
      wrong = "GPU 0 has a context";
    check(std::string("arrays on ") + one.name + " of GPU " + std::to_string(device) + ", " +
              caller,
          wrong);
  }
}

/* A thread that has no context names no GPU: then the first one is meant. */
void test_current(umem::View<double, 1> const &view) {
  umem::for_each(umem::on_device(), view, Increment());
  umem::sum(umem::on_device(), view);
  check("a view on the current GPU, nothing is current",
        is_left(nullptr, 0) ? "" : "another context is current");
}

template <class F> void in_thread(F const &f) {
  std::thread([&] {
    try {
      f();
    } catch (std::exception const &error) {
      check("a thread", error.what());
    }
  }).join();
}

} // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("there is no GPU\n");
    return 3;
  }
  int const device = devices > 1 ? 1 : 0;
  in_thread([&] { test(device, "nothing is current"); });
  if (devices > 1)
    in_thread([] { check("GPU 0 has no context", has_context(0) ? "it has one" : ""); });
  else
    std::printf("skipped - no context on a GPU that is not named: there is one GPU\n");
  in_thread([] {
    umem::Cuda gpu;
    umem::Buffer block(gpu, 8000);
    test_current({reinterpret_cast<double *>(block.adr()), {1000}});
  });
  in_thread([&] {
    int current = -1;
    if (cudaSetDevice(0) != cudaSuccess) throw umem::runtime_error("cudaSetDevice");
    test(device, "GPU 0 is current");
    check("the current GPU is the same", cudaGetDevice(&current) == cudaSuccess && current == 0
                                             ? ""
                                             : "it is " + std::to_string(current));
  });
  return failures ? 1 : 0;
}
