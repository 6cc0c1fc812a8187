/* kernels_double.cu - on which stream and on which GPU the loops launch their kernels, and what is
 * current for the caller afterwards. On a double of CUDA's runtime, so that nothing is computed:
 * the linker's option --wrap leads the program's own calls of CUDA here. Built for both default
 * streams.
 *
 * Exit code: 0; 1 when something is wrong. */
#include <umem.hpp>
#ifndef FEW_LOOPS /* nvcc spends most of its time on these */
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>
#endif

#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "fake/cudart.h"
}

namespace {

using umem::index_t;
using Doubles = umem::Array<double, 1>;

/* ---- what the program asks of CUDA ---- */

enum : std::uintptr_t { legacy = 1, per_thread = 2 };

struct Call {
  std::string name;
  std::uintptr_t stream; /* as CUDA understands it */
  int device;            /* current at the call; -1: CUDA would have made a context */
};
std::vector<Call> calls;
bool is_capturing = false; /* what CUDA says of every stream */

int current_device() {
  void *context = nullptr;
  int device = -1;
  if (fake_cudart()->context_current(&context) || !context) return -1;
  return fake_cudart()->get_device(&device) ? -1 : device;
}

/* What stream 0 is depends on how the calling file was compiled. */
cudaError_t called(char const *name, cudaStream_t stream, std::uintptr_t meaning_of_0) {
  auto number = reinterpret_cast<std::uintptr_t>(stream);
  calls.push_back({name, number ? number : meaning_of_0, current_device()});
  return cudaSuccess;
}

} // namespace

#define WRAP(suffix, meaning_of_0)                                                                 \
  extern "C" cudaError_t __wrap_cudaLaunchKernelExC##suffix(cudaLaunchConfig_t const *config,      \
                                                            void const *, void **) {               \
    return called("launch", config->stream, meaning_of_0);                                         \
  }                                                                                                \
  extern "C" cudaError_t __wrap_cudaMemcpyAsync##suffix(void *, void const *, std::size_t,         \
                                                        cudaMemcpyKind, cudaStream_t stream) {     \
    return called("copy", stream, meaning_of_0);                                                   \
  }                                                                                                \
  extern "C" cudaError_t __wrap_cudaStreamIsCapturing##suffix(cudaStream_t stream,                 \
                                                              cudaStreamCaptureStatus *status) {   \
    *status = is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;          \
    return called("question", stream, meaning_of_0);                                               \
  }                                                                                                \
  extern "C" cudaError_t __wrap_cudaStreamSynchronize##suffix(cudaStream_t stream) {               \
    return called("wait", stream, meaning_of_0);                                                   \
  }

WRAP(, legacy)
WRAP(_ptsz, per_thread)

extern "C" cudaError_t __wrap_cudaGetDevice(int *device) {
  return static_cast<cudaError_t>(fake_cudart()->get_device(device));
}
extern "C" cudaError_t __wrap_cudaSetDevice(int device) {
  fake_cudart_set_device(device);
  return cudaSuccess;
}
extern "C" cudaError_t __wrap_cudaGetLastError() { return cudaSuccess; }

namespace {

/* ---- what is expected ---- */

int failures = 0;
std::string what;

void expect(bool holds, std::string const &text) {
  if (holds) return;
  failures++;
  std::printf("WRONG: %s: %s\n", what.c_str(), text.c_str());
}

struct Increment {
  UMEM_FUNCTION void operator()(double &x) const { x += 1; }
};
#ifndef FEW_LOOPS
struct Square {
  UMEM_FUNCTION double operator()(double const &x) const { return x * x; }
};
struct Axpy {
  UMEM_FUNCTION void operator()(double &z, double const &x, double const &y) const {
    z = 2 * x + y;
  }
};
struct FromIndex {
  UMEM_FUNCTION double operator()(double &x, index_t i) const {
    x = static_cast<double>(i);
    return x;
  }
};
#endif

/* A sum over a view with gaps; with FEW_LOOPS, which leaves sums out, a fill. */
#ifdef FEW_LOOPS
template <class P> void strided_sum(P const &place, umem::View<double, 1> const &view) {
  umem::fill(place, view.slice(0, 0, view.size(), 2), 2);
}
#else
template <class P> void strided_sum(P const &place, umem::View<double const, 1> const &view) {
  umem::sum(place, view.slice(0, 0, view.size(), 2));
}
#endif

/* All that was asked of CUDA since the last time was asked on this stream of this GPU; forgets
 * it. */
void expect_calls(std::uintptr_t stream, int device) {
  bool has_launched = false;
  for (Call const &call : calls) {
    has_launched = has_launched || call.name == "launch";
    expect(call.stream == stream, "a " + call.name + " on stream " + std::to_string(call.stream) +
                                      " instead of " + std::to_string(stream));
    expect(call.device == device, "a " + call.name + " on GPU " + std::to_string(call.device) +
                                      " instead of " + std::to_string(device));
  }
  expect(has_launched, "no kernel was launched");
  calls.clear();
}

/* Every kind of loop over arrays of a context, or with FEW_LOOPS two. */
void check_loops(umem::Context const &context, std::uintptr_t stream, int device, int before) {
  Doubles one({1000}, context);
  auto after = [&](char const *loop) {
    std::string const all = what;
    what += std::string(", ") + loop;
    expect_calls(stream, device);
    expect(current_device() == before, "another GPU is current afterwards");
    what = all;
  };
  umem::fill(one, 1);
  after("fill");
  umem::for_each(one, Increment());
  after("for_each");
  umem::fill(one.part().slice(0, 0, 1000, 3), 1);
  after("fill of a part");
  expect(one.current() != umem::Side::host, "a part has moved");
#ifndef FEW_LOOPS
  umem::for_each(Axpy(), umem::discard(one), one.part(), umem::read(one));
  after("for_each of three");
  strided_sum(context, one.device(umem::read).view());
  after("sum");
  Doubles two({1000}, context);
  umem::Array<double, 2> rows({4, 5000}, context);
  umem::transform(one, two, Square());
  after("transform");
  umem::sweep(context, one, umem::interior(one), 0.0, umem::maximum(), FromIndex());
  after("sweep");
  Doubles sums({4}, context);
  umem::sum_along(rows, 1, sums);
  after("sum_along");
#endif
}

std::uintptr_t handle(std::uintptr_t stream) { return stream ? stream : std::uintptr_t(legacy); }

/* Arrays of GPU 1, for a thread whose current GPU is `before` (-1: none). */
void check_arrays(int before) {
  auto const caller = before < 0 ? std::string("none") : "GPU " + std::to_string(before);
  umem::CudaAsync own(1), of_legacy(1, 0);
  umem::Context const contexts[] = {umem::Cuda(1), umem::CudaManaged(1), of_legacy, own};
  for (umem::Context const &context : contexts) {
    what = std::string("arrays on ") + context.name() + ", current: " + caller;
    check_loops(context, context == own ? handle(own.stream()) : std::uintptr_t(legacy), 1, before);
  }
  expect(before == 0 || !fake_cudart_had_context(0), "GPU 0 has a context");
}

/* Views on a place that names its GPU, and on one that means the current one. */
void check_views(int before) {
  what = "views";
  umem::Cuda gpu(1);
  umem::Buffer buffer(gpu, 8000);
  umem::View<double, 1> view(reinterpret_cast<double *>(buffer.adr()), {1000});
  umem::fill(umem::on_device(0, 1), view, 1);
  expect_calls(legacy, 1);
  strided_sum(umem::on_device(std::uintptr_t(legacy), 1), view);
  expect_calls(legacy, 1);
  umem::fill(umem::on_device(std::uintptr_t(0x1000), 1), view, 1);
  expect_calls(0x1000, 1);
  expect(current_device() == before, "another GPU is current afterwards");
  if (before < 0) return;
  strided_sum(umem::on_device(), view);
  expect_calls(legacy, before);
  umem::fill(umem::on_device(cudaStreamPerThread), view, 1);
  expect_calls(per_thread, before);
  expect(current_device() == before, "another GPU is current afterwards");
}

/* The legacy stream by its other name is the one that arrays of a Cuda are in the order of. */
void check_names_of_the_legacy_stream() {
  what = "the legacy stream by name";
  umem::Cuda gpu(1);
  Doubles array({1000}, gpu);
  auto place = umem::detail::settled(umem::on_device(cudaStreamLegacy), array);
  expect(umem::detail::is_in_order(place, umem::Place(gpu)), "it counts as another stream");
}

#ifndef FEW_LOOPS
/* What has to wait cannot be captured, and leaves the capture whole: nothing is queued. */
void check_captures() {
  what = "a capture";
  umem::CudaAsync gpu(1);
  Doubles array({1000}, gpu);
  is_capturing = true;
  bool refused = false;
  try {
    strided_sum(gpu, array.device(umem::read).view());
  } catch (umem::not_supported_error const &) {
    refused = true;
  }
  expect(refused, "a sum is not refused");
  for (Call const &call : calls) expect(call.name == "question", "a " + call.name);
  calls.clear();
  umem::for_each(array, Increment());
  expect_calls(gpu.stream(), 1);
  is_capturing = false;
}
#endif

/* Of a thread of its own: threads begin without a current context. */
template <class F> void in_thread(F const &f) {
  std::thread([&] {
    try {
      f();
    } catch (umem::error const &error) {
      expect(false, error.message());
    }
  }).join();
}

} // namespace

int main() {
  umemCudaRt_replace(fake_cudart());
  in_thread([] { check_arrays(-1); });
  in_thread([] { check_views(-1); });
  in_thread(check_names_of_the_legacy_stream);
#ifndef FEW_LOOPS
  in_thread(check_captures);
#endif
  in_thread([] {
    fake_cudart_set_device(2);
    check_arrays(2);
    check_views(2);
  });
  what = "at the end";
  expect(!fake_cudart_had_context(0), "GPU 0 has a context");
  expect(!fake_cudart_misuse(), fake_cudart_misuse() ? fake_cudart_misuse() : "");
  std::printf("%d wrong\n", failures);
  return failures ? 1 : 0;
}
