/* order_loops.cu - loops of the C++ headers over arrays, guards and views behind slow kernels. It
 * is compiled for a default stream per thread, too. */
#include "order.cuh"

#include <umem/convert.hpp>
#include <umem/fill.hpp>
#include <umem/for_each.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>
#include <umem/transform.hpp>

#include <thread>

namespace {

using namespace order;
using umem::index_t;
using Doubles = umem::Array<double, 1>;
using Rows = umem::Array<double, 2>;

constexpr index_t count = 40'000, rows = 40;

/* ---- functors ---- */

struct Increment {
  UMEM_FUNCTION void operator()(double &x) const { x += 1; }
};
struct AddZero {
  UMEM_FUNCTION void operator()(double &x, index_t i) const { x += static_cast<double>(i - i + 1); }
};
struct Next {
  UMEM_FUNCTION double operator()(double const &x) const { return x + 1; }
};
struct Add {
  UMEM_FUNCTION double operator()(double const &x, double const &y) const { return x + y; }
};
struct NextOf {
  umem::View<double const, 1> from;
  UMEM_FUNCTION double operator()(double &value, index_t i) const {
    value = from(i) + 1;
    return value;
  }
};
struct Triple {
  UMEM_FUNCTION void operator()(double &x) const { x *= 3; }
};

/* A loop that is slow itself. */
struct SlowFour {
  UMEM_DEVICE_FUNCTION void operator()(double &x) const {
    wait_for(slow_ns);
    x = 4;
  }
};

/* ---- slow kernels ---- */

static __global__ void fill_late(double *data, index_t n, double value, long long ns) {
  wait_for(ns);
  for (index_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    data[i] = value;
}

template <int N>
void slow_fill(Stream const &stream, umem::View<double, N> const &view, double value) {
  OnDevice here(stream.device);
  fill_late<<<16, 256, 0, stream.handle>>>(view.data, view.size(), value, slow_ns);
  CUDA(cudaGetLastError());
}
template <int N> void slow_fill(Stream const &stream, umem::Array<double, N> &array, double value) {
  auto guard = array.device(umem::write);
  slow_fill(stream, guard.view(), value);
}

/* ---- what is expected ---- */

std::string equal(double found, double expected, char const *what) {
  if (found == expected) return {};
  return std::string(what) + " is " + std::to_string(found) + " instead of " +
         std::to_string(expected);
}

/* Brings the array to the host. */
template <class T, int N>
std::string all_are(umem::Array<T, N> const &array, double expected, char const *what) {
  finish_all();
  auto guard = array.host(umem::read);
  T const *data = guard.view().data;
  for (index_t i = 0; i < array.size(); i++)
    if (static_cast<double>(data[i]) != expected)
      return equal(static_cast<double>(data[i]), expected,
                   (std::string(what) + ", element " + std::to_string(i)).c_str());
  return {};
}

/* An array whose elements are all 0, and no work with them is left. */
Doubles zeros(umem::Context const &context) {
  auto array = Doubles::zeros({count}, context);
  static_cast<void>(array.device(umem::read));
  context.synchronize();
  finish_all();
  return array;
}

/* ---- loops over arrays, where they live ---- */

std::string for_each(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context);
  slow_fill(stream, a, 5);
  umem::for_each(a, Increment());
  return all_are(a, 6, "the array");
}
std::string for_each_indexed(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context);
  slow_fill(stream, a, 5);
  umem::for_each_indexed(a, AddZero());
  return all_are(a, 6, "the array");
}
std::string fill(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context);
  slow_fill(stream, a, 5);
  umem::fill(a, 7);
  return all_are(a, 7, "the array");
}
std::string transform_of_the_input(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context), b = zeros(bed.context);
  slow_fill(stream, a, 5);
  umem::transform(a, b, Next());
  return all_are(b, 6, "the output");
}
std::string transform_of_the_output(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context), b = zeros(bed.context);
  slow_fill(stream, b, 5);
  umem::transform(a, b, Next());
  return all_are(b, 1, "the output");
}
std::string transform_of_two(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context), b = zeros(bed.context), c = zeros(bed.context);
  slow_fill(stream, b, 5);
  umem::transform(a, b, c, Add());
  return all_are(c, 5, "the output");
}
std::string convert(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context);
  umem::Array<float, 1> b({count}, bed.context);
  slow_fill(stream, a, 5);
  umem::convert(a, b);
  return all_are(b, 5, "the output");
}
std::string sum(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context);
  slow_fill(stream, a, 5);
  double found = umem::sum(a);
  finish_all();
  return equal(found, 5.0 * static_cast<double>(count), "the sum");
}
/* With gaps: another kernel. */
std::string max_of_a_part(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context);
  auto guard = a.device(umem::write);
  slow_fill(stream, guard.view(), 5);
  double found = umem::max(bed.context, guard.view().slice(0, 0, count, 2));
  finish_all();
  return equal(found, 5, "the maximum");
}
std::string sum_along(Bed const &bed, Stream const &stream) {
  auto a = Rows::zeros({rows, count / rows}, bed.context);
  Doubles sums({rows}, bed.context);
  slow_fill(stream, a, 5);
  umem::sum_along(a, 1, sums);
  return all_are(sums, 5.0 * static_cast<double>(count / rows), "the sums");
}
std::string sweep(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context), b = zeros(bed.context);
  slow_fill(stream, a, 5);
  auto from = umem::guard_at_home(a, umem::read);
  double found = umem::sweep(bed.context, b, umem::Range<1>(umem::Extents<1>{count}), 0.0,
                             umem::maximum(), NextOf{*from});
  from.release();
  return first_of(equal(found, 6, "the maximum"), all_are(b, 6, "the output"));
}
std::string copy_of_a_part(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context), b = zeros(bed.context);
  slow_fill(stream, a, 5);
  umem::copy(a.part(), b.part());
  umem::for_each(b, Increment());
  return all_are(b, 6, "the copy");
}

/* ---- guards, views and other streams ---- */

std::string guard_on_the_stream(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context);
  auto guard = a.device(umem::write);
  slow_fill(stream, guard.view(), 5);
  umem::for_each(umem::on_device(stream.handle, stream.device), guard, Increment());
  guard.release();
  return all_are(a, 6, "the array");
}
std::string view_on_the_stream(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context);
  auto guard = a.device(umem::write);
  slow_fill(stream, guard.view(), 5);
  umem::for_each(umem::on_device(stream.handle, stream.device), guard.view(), Increment());
  double found = umem::sum(umem::on_device(stream.handle, stream.device), guard.view());
  guard.release();
  return first_of(equal(found, 6.0 * static_cast<double>(count), "the sum"),
                  all_are(a, 6, "the array"));
}
std::string view_on_the_context(Bed const &bed, Stream const &stream) {
  Doubles a = zeros(bed.context);
  auto guard = a.device(umem::write);
  slow_fill(stream, guard.view(), 5);
  umem::for_each(bed.context, guard.view(), Increment());
  guard.release();
  return all_are(a, 6, "the array");
}
/* It starts after what is queued for the array, on the stream of its context, and is done on
 * return. */
std::string array_on_another_stream(Bed const &bed, Stream const &stream) {
  static Stream const others[] = {non_blocking(0), non_blocking(device_count() - 1)};
  Stream const &other = others[stream.device != 0];
  if (stream.handle != bed.streams[0].handle) return {};
  Doubles a = zeros(bed.context);
  slow_fill(stream, a, 5);
  umem::for_each(umem::on_device(other.handle, other.device), a, Increment());
  cudaError_t error = cudaStreamQuery(other.handle);
  std::string wrong = error == cudaSuccess ? "" : "the loop still runs";
  return first_of(wrong, all_are(a, 6, "the array"));
}
/* The host's side; where addresses are pointers, the program waits for its kernels. */
std::string guard_of_the_host(Bed const &bed, Stream const &stream) {
  if (bed.context.can(umemCpuReadable)) return {};
  Doubles a = zeros(bed.context);
  slow_fill(stream, a, 5);
  double found = umem::sum(umem::on_host, a);
  finish_all();
  return equal(found, 5.0 * static_cast<double>(count), "the sum");
}

/* ---- the table ---- */

struct Test {
  char const *name;
  std::string (*call)(Bed const &bed, Stream const &stream);
};
Test const tests[] = {
    {"for_each", for_each},
    {"for_each_indexed", for_each_indexed},
    {"fill", fill},
    {"transform, the input in use", transform_of_the_input},
    {"transform, the output in use", transform_of_the_output},
    {"transform of two inputs", transform_of_two},
    {"convert", convert},
    {"sum", sum},
    {"max of a view with gaps", max_of_a_part},
    {"sum_along", sum_along},
    {"sweep", sweep},
    {"a copy of a part", copy_of_a_part},
    {"a guard on the stream", guard_on_the_stream},
    {"a view on the stream", view_on_the_stream},
    {"a view on the context", view_on_the_context},
    {"an array on another stream", array_on_another_stream},
    {"a guard of the host", guard_of_the_host},
};

void test_loops(std::vector<Bed> const &beds) {
  for (Bed const &bed : beds)
    for (Test const &one : tests)
      for (Stream const &stream : bed.streams)
        test(bed.name + ", stream " + stream.name + ": " + one.name, [&] {
          if (&stream == &bed.streams[0]) one.call(bed, stream); /* the first takes longer */
          return one.call(bed, stream);
        });
}

/* ---- loops of two threads ---- */

template <class F> void in_thread(F const &f) {
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      f();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
}

void test_threads() {
  test("loops on stream 0 of two threads are in one order", [] {
    umem::Cuda gpu;
    Doubles a = zeros(gpu);
    auto guard = a.device(umem::write);
    in_thread([&] { umem::for_each(umem::on_device(0, 0), guard.view(), SlowFour()); });
    in_thread([&] { umem::for_each(umem::on_device(0, 0), guard.view(), Triple()); });
    guard.release();
    return all_are(a, 12, "the array");
  });
  test("a loop on stream 0 of a thread that has ended", [] {
    umem::CudaAsync legacy_stream(0, 0);
    Doubles a = zeros(legacy_stream);
    in_thread([&] { umem::for_each(umem::on_device(0, 0), a, SlowFour()); });
    in_thread([&] { umem::for_each(a, Triple()); });
    double found = umem::sum(a);
    return first_of(equal(found, 12.0 * static_cast<double>(count), "the sum"),
                    all_are(a, 12, "the array"));
  });
}

/* ---- captures ---- */

std::size_t nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  CUDA(cudaGraphGetNodes(graph, nullptr, &count));
  return count;
}

void test_capture(char const *name, cudaStreamCaptureMode mode) {
  test(std::string("loops in a capture, ") + name, [&] {
    umem::CudaAsync context, outside;
    umem::Cuda gpu;
    Doubles a = zeros(context), b = zeros(outside), c = zeros(gpu);
    cudaStream_t const stream = reinterpret_cast<cudaStream_t>(context.stream());
    std::string wrong;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    umem::sum(a);
    umem::sum(b);
    finish_all();
    CUDA(cudaStreamBeginCapture(stream, mode));
    umem::for_each(a, Increment());
    umem::fill(a, 3);
    umem::for_each(a, Increment());
    try {
      umem::sum(a);
      wrong = "a sum is not refused";
    } catch (umem::not_supported_error const &) {
    }
    umem::for_each(b, Increment()); /* neither of these is a part of the capture */
    if (umem::sum(b) != static_cast<double>(count)) wrong = "the sum outside is wrong";
    umem::for_each(c, Increment());
    if (umem::sum(c) != static_cast<double>(count)) wrong = "the sum on the legacy stream is wrong";
    CUDA(cudaStreamEndCapture(stream, &graph));
    if (nodes_of(graph) != 3) wrong = std::to_string(nodes_of(graph)) + " nodes instead of 3";
    wrong = first_of(wrong, all_are(a, 0, "the array before the graph"));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    slow_fill({"own", stream, 0}, a, 5);
    CUDA(cudaGraphLaunch(exec, stream));
    double found = umem::sum(a);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    return first_of(wrong, equal(found, 4.0 * static_cast<double>(count), "the sum"));
  });
}

} // namespace

int main() {
  return run([](int devices) {
    test_loops(beds_of(0));
    if (devices > 1)
      test_loops(beds_of(1));
    else
      std::printf("skipped - loops on a second GPU: there is none\n");
    test_threads();
    test_capture("relaxed", cudaStreamCaptureModeRelaxed);
    test_capture("thread-local", cudaStreamCaptureModeThreadLocal);
    test_capture("global", cudaStreamCaptureModeGlobal);
  });
}
