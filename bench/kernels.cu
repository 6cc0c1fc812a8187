/* kernels.cu - the kernels of the C++ headers on a GPU, each timed in turns with a copy within the
 * device that moves as many bytes as fast as the memory allows.
 *
 *     umem_kernels
 *
 * Prints GB (1e9 bytes) read and written per second of both, medians of nine, and their ratio. Exit
 * code: 0; 1 when a call failed; 2 without a GPU. */
#include <umem.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

using umem::index_t;
using umem::View;

/* ---- what is done with elements ---- */

struct AddIndex {
  template <class T, class... I> UMEM_FUNCTION void operator()(T &x, I... i) const {
    x = static_cast<T>(x + static_cast<T>((i + ...)));
  }
};

struct Increment {
  template <class T> UMEM_FUNCTION void operator()(T &x) const { x = static_cast<T>(x + 1); }
};

struct Square {
  template <class T> UMEM_FUNCTION T operator()(T x) const { return static_cast<T>(x * x); }
};

struct ScaleAndAdd {
  template <class T> UMEM_FUNCTION void operator()(T &z, T const &x, T const &y) const {
    z = 2 * x + y;
  }
};

struct Product {
  template <class T> UMEM_FUNCTION T operator()(T a, T b) const { return a * b; }
};

struct Jacobi {
  View<double const, 2> u;
  UMEM_FUNCTION double operator()(double &value, index_t i, index_t j) const {
    value = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
    double change = value - u(i, j);
    return change < 0 ? -change : change;
  }
};

/* ---- timing ---- */

void check(cudaError_t error) {
  if (error != cudaSuccess) throw umem::runtime_error(cudaGetErrorString(error));
}

/* Three arrays of 1 GiB and a stream. */
class Bench {
public:
  static constexpr std::size_t nbytes = std::size_t{1} << 30;

  Bench() : gpu_(0), a_(gpu_, nbytes), b_(gpu_, nbytes), c_(gpu_, nbytes) {
    for (umem::Buffer const *buffer : {&a_, &b_, &c_}) gpu_.set(buffer->adr(), 0, nbytes);
    gpu_.synchronize();
    check(cudaEventCreate(&start_));
    check(cudaEventCreate(&stop_));
    std::printf("%-44s %9s %9s %7s\n", "1 GiB per array, median of 9", "GB/s", "copy", "ratio");
  }
  ~Bench() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  Bench(Bench const &) = delete;
  Bench &operator=(Bench const &) = delete;

  template <class T> T *a() const { return reinterpret_cast<T *>(a_.adr()); }
  template <class T> T *b() const { return reinterpret_cast<T *>(b_.adr()); }

  auto place() const { return umem::on_device(gpu_.stream()); }

  /* moved: bytes that run reads and writes. goal: the ratio to reach; 0 where none is promised. */
  void row(std::string const &name, double moved, std::function<void()> const &run,
           double goal = 0) {
    constexpr int rounds = 9;
    std::vector<double> copies, runs;
    for (int i = -1; i < rounds; i++) { /* the first warms up */
      double copy = seconds_of([&] {
        check(cudaMemcpyAsync(b<char>(), reinterpret_cast<char *>(c_.adr()), nbytes,
                              cudaMemcpyDeviceToDevice, stream()));
      });
      double own = seconds_of(run);
      if (i < 0) continue;
      copies.push_back(copy);
      runs.push_back(own);
    }
    double copy = 2e-9 * static_cast<double>(nbytes) / median(copies);
    double own = 1e-9 * moved / median(runs);
    std::printf("%-44s %9.0f %9.0f %7.3f%s\n", name.c_str(), own, copy, own / copy,
                goal > 0 && own / copy < goal ? "  not met" : "");
  }

private:
  cudaStream_t stream() const { return reinterpret_cast<cudaStream_t>(gpu_.stream()); }

  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  double seconds_of(std::function<void()> const &run) {
    float milliseconds = 0;
    check(cudaEventRecord(start_, stream()));
    run();
    check(cudaEventRecord(stop_, stream()));
    check(cudaEventSynchronize(stop_));
    check(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return 1e-3 * static_cast<double>(milliseconds);
  }

  umem::CudaAsync gpu_;
  umem::Buffer a_, b_, c_;
  cudaEvent_t start_, stop_;
};

constexpr double both = 2.0 * static_cast<double>(Bench::nbytes); /* read and written */

/* ---- rows ---- */

template <class T> void time_add_index(Bench &bench, std::string const &type) {
  constexpr index_t n = static_cast<index_t>(Bench::nbytes / sizeof(T));
  auto row = [&](std::string const &name, auto const &view) {
    bench.row(
        "add-index " + name + " " + type, 2.0 * static_cast<double>(view.size()) * sizeof(T),
        [&] { umem::for_each_indexed(bench.place(), view, AddIndex()); }, 0.97);
  };
  row("1D", View<T, 1>(bench.a<T>(), {n}));
  row("2D", View<T, 2>(bench.a<T>(), {n / 16384, 16384}));
  row("3D", View<T, 3>(bench.a<T>(), {n / (512 * 512), 512, 512}));
  row("3D, odd extents,", View<T, 3>(bench.a<T>(), {n / (509 * 511), 509, 511}));
}

void time_elements(Bench &bench) {
  constexpr index_t n = Bench::nbytes / sizeof(float);
  View<float, 1> a(bench.a<float>(), {n}), b(bench.b<float>(), {n});
  auto place = bench.place();
  bench.row(
      "for_each", both, [&] { umem::for_each(place, a, Increment()); }, 0.97);
  bench.row(
      "for_each, not aligned to 16 bytes", both - 8,
      [&] { umem::for_each(place, a.slice(0, 1, n), Increment()); }, 0.97);
  bench.row(
      "transform", both, [&] { umem::transform(place, a, b, Square()); }, 0.97);
  bench.row("fill", 0.5 * both, [&] { umem::fill(place, a, 1); });
  View<double, 1> x(bench.a<double>(), {n / 4}), y(bench.b<double>(), {n / 4}),
      z(bench.a<double>() + n / 4, {n / 4});
  bench.row(
      "for_each of three arrays, z = a x + y", 0.75 * both,
      [&] { umem::for_each(place, ScaleAndAdd(), umem::discard(z), umem::read(x), umem::read(y)); },
      0.97);
  bench.row("for_each of three, x transposed", 0.75 * both, [&] {
    umem::for_each(place, ScaleAndAdd(), umem::discard(z.reshape(umem::Extents<2>{8192, 8192})),
                   umem::read(x.reshape(umem::Extents<2>{8192, 8192}).transpose()),
                   umem::read(y.reshape(umem::Extents<2>{8192, 8192})));
  });
  View<float, 3> inside =
      View<float, 3>::with_ghosts_from(bench.a<float>(), {510, 510, 1022}, {1, 1, 1});
  View<float, 3> other =
      View<float, 3>::with_ghosts_from(bench.b<float>(), {510, 510, 1022}, {1, 1, 1});
  double moved = 8.0 * static_cast<double>(inside.size());
  bench.row("for_each, 3D inside of ghost cells", moved,
            [&] { umem::for_each(place, inside, Increment()); });
  bench.row("add-index, 3D inside of ghost cells", moved,
            [&] { umem::for_each_indexed(place, inside, AddIndex()); });
  bench.row("transform, 3D inside of ghost cells", moved,
            [&] { umem::transform(place, inside, other, Square()); });
}

void time_reductions(Bench &bench) {
  View<float, 1> a(bench.a<float>(), {static_cast<index_t>(Bench::nbytes / sizeof(float))});
  View<double, 1> x(bench.a<double>(), {static_cast<index_t>(Bench::nbytes / sizeof(double))});
  View<double, 1> y(bench.b<double>(), x.extents);
  auto place = bench.place();
  umem::fill(place, a, 0);
  bench.row("sum of floats", 0.5 * both, [&] { umem::sum(place, a); });
  bench.row("max of doubles", 0.5 * both, [&] { umem::max(place, x); });
  for (index_t columns : {2, 8, 32, 100, 1000, 16384, 1 << 22}) {
    View<double, 2> m(bench.a<double>(), {x.size() / columns, columns});
    for (int axis : {0, 1})
      bench.row("sum along dimension " + std::to_string(axis) + " of " +
                    umem::detail::in_words(m.extents).text,
                8.0 * static_cast<double>(m.size() + m.extent(1 - axis)), [&] {
                  umem::sum_along(place, m, axis,
                                  View<double, 1>(bench.b<double>(), {m.extent(1 - axis)}));
                });
  }
  bench.row("dot product of doubles", both,
            [&] { umem::transform_reduce(place, x, y, 0.0, umem::plus(), Product()); });
}

void time_sweeps(Bench &bench) {
  constexpr index_t n = Bench::nbytes / sizeof(double);
  for (index_t rows : {index_t{8192}, index_t{11585}, index_t{2048}}) {
    View<double, 2> u(bench.a<double>(), {rows, n / rows}), next(bench.b<double>(), u.extents);
    bench.row(
        "Laplace sweep with its norm, " + std::to_string(rows) + " rows",
        16.0 * static_cast<double>(u.size()),
        [&] {
          umem::sweep(bench.place(), next, umem::interior(next), 0.0, umem::maximum(), Jacobi{u});
        },
        0.85);
  }
}

} // namespace

int main() {
  try {
    Bench bench;
    time_add_index<std::int32_t>(bench, "int32");
    time_add_index<std::int64_t>(bench, "int64");
    time_add_index<float>(bench, "float");
    time_add_index<double>(bench, "double");
    time_elements(bench);
    time_reductions(bench);
    time_sweeps(bench);
    return 0;
  } catch (umem::not_supported_error const &error) {
    std::printf("no GPU: %s\n", error.message());
    return 2;
  } catch (umem::error const &error) {
    std::printf("%s\n", error.message());
    return 1;
  }
}
