/* kernels.cu - umem's kernels on a real GPU, against umem's loops on the host, which the tests
 * kernels_elements and kernels_reduce have compared with plain loops.
 *
 * Exit code: 0; 1 when a number is wrong or a call failed; 77 without a GPU. */
#include <umem.hpp>
#include <umem/convert.hpp>
#include <umem/fill.hpp>
#include <umem/for_each.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>
#include <umem/transform.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using umem::Extents;
using umem::index;
using umem::View;

/* ---- functors ---- */

struct AddIndex {
  template <class T, class... I> UMEM_FUNCTION void operator()(T &x, I... i) const {
    x = static_cast<T>(x + static_cast<T>((i + ...)));
  }
};
struct Increment {
  template <class T> UMEM_FUNCTION void operator()(T &x) const { x = static_cast<T>(x + 1); }
};
struct Square {
  template <class T> UMEM_FUNCTION T operator()(T const &x) const { return static_cast<T>(x * x); }
};
struct Add {
  template <class A, class B> UMEM_FUNCTION auto operator()(A const &a, B const &b) const {
    return a + b;
  }
};
struct Product {
  template <class A> UMEM_FUNCTION double operator()(A const &a, A const &b) const {
    return static_cast<double>(a) * static_cast<double>(b);
  }
};
template <class T, int N> struct SetByIndex {
  View<T, N> to;
  template <class... I> UMEM_FUNCTION void operator()(I... i) const {
    index n = 1;
    ((n = n * 31 + i), ...);
    to(i...) = static_cast<T>(n % 100);
  }
};
struct IndexSum {
  template <class... I> UMEM_FUNCTION index operator()(I... i) const { return (i + ...); }
};
struct Jacobi {
  View<double const, 2> u;
  UMEM_FUNCTION double operator()(double &value, index i, index j) const {
    value = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
    double change = value - u(i, j);
    return change < 0 ? -change : change;
  }
};

/* ---- what is compared ---- */

int checks = 0, failures = 0;
std::string kind; /* of the view that is being checked */

void expect(bool right, char const *what) {
  checks++;
  if (right) return;
  failures++;
  std::printf("WRONG: %s, %s\n", kind.c_str(), what);
}

/* The same elements on a GPU and in RAM. */
template <class T> struct Both {
  std::vector<T> host;
  umem::Cuda gpu;
  umem::Buffer buffer;

  explicit Both(index count)
      : host(static_cast<std::size_t>(count)), buffer(gpu, host.size() * sizeof(T)) {
    for (std::size_t n = 0; n < host.size(); n++) host[n] = static_cast<T>((n * 7 + 3) % 11);
    buffer.copy_from(host.data(), host.size() * sizeof(T));
  }
  T *device() const { return reinterpret_cast<T *>(buffer.adr()); }

  /* Kernels on the legacy stream come before the copy. */
  void compare(char const *what) {
    std::vector<T> found(host.size());
    buffer.copy_to(found.data(), host.size() * sizeof(T));
    expect(found == host, what);
    host = found; /* one mistake is told once */
  }
};

/* Calls f(view on the GPU, view in RAM, elements) for views of many kinds. */
template <class T, int N, class F> void with_views(Extents<N> const &e, F const &f) {
  std::string const shape =
      std::to_string(sizeof(T)) + " bytes, extents " + umem::detail::in_words(e);
  for (int shift : {0, 1, 3}) {
    kind = shape + ", " + std::to_string(shift) + " elements from aligned";
    Both<T> both(e.product() + 8);
    f(View<T, N>(both.device() + shift, e), View<T, N>(both.host.data() + shift, e), both);
  }
  {
    kind = shape + ", ghost cells";
    Extents<N> ghosts, all = e;
    for (int k = 0; k < N; k++) all[k] += 2 * (ghosts[k] = k + 1);
    Both<T> both(all.product());
    f(View<T, N>::with_ghosts_from(both.device(), e, ghosts),
      View<T, N>::with_ghosts_from(both.host.data(), e, ghosts), both);
  }
  {
    kind = shape + ", transposed";
    Both<T> both(e.product() + 1);
    f(View<T, N>(both.device(), e).transpose(), View<T, N>(both.host.data(), e).transpose(), both);
  }
  {
    kind = shape + ", backwards, every second";
    Both<T> both(e.product() + 1);
    auto part = [&](T *data) { return View<T, N>(data, e).reversed(N - 1).slice(0, 0, e[0], 2); };
    f(part(both.device()), part(both.host.data()), both);
  }
}

template <class T, int N>
void check_elements(View<T, N> const &d, View<T, N> const &h, Both<T> &both) {
  auto const gpu = umem::on_device();
  auto const host = umem::on_host;
  umem::for_each(gpu, d, Increment());
  umem::for_each(host, h, Increment());
  both.compare("for_each");
  umem::for_each_indexed(gpu, d, AddIndex());
  umem::for_each_indexed(host, h, AddIndex());
  both.compare("for_each_indexed");
  umem::for_each_indexed<std::int32_t>(gpu, d, AddIndex());
  umem::for_each_indexed<std::int32_t>(host, h, AddIndex());
  both.compare("for_each_indexed, indices of 32 bits");
  umem::for_each_index(gpu, d.extents, SetByIndex<T, N>{d});
  umem::for_each_index(host, h.extents, SetByIndex<T, N>{h});
  both.compare("for_each_index");
  umem::transform(gpu, d, d, Square());
  umem::transform(host, h, h, Square());
  both.compare("transform in place");

  Both<float> floats(d.size() + 1);
  View<float, N> df(floats.device(), d.extents), hf(floats.host.data(), h.extents);
  umem::iota(gpu, df, 1, 2);
  umem::iota(host, hf, 1, 2);
  floats.compare("iota");
  umem::convert(gpu, d, df);
  umem::convert(host, h, hf);
  floats.compare("convert");
  umem::transform(gpu, d, df, df, Add());
  umem::transform(host, h, hf, hf, Add());
  floats.compare("transform of two types");
}

template <class T, int N> void check_results(View<T, N> const &d, View<T, N> const &h) {
  auto const gpu = umem::on_device();
  auto const host = umem::on_host;
  expect(umem::sum(gpu, d) == umem::sum(host, h), "sum");
  if (d.size() > 0) {
    expect(umem::max(gpu, d) == umem::max(host, h), "max");
    expect(umem::min(gpu, d) == umem::min(host, h), "min");
  }
  expect(umem::transform_reduce(gpu, d, d, 1.0, umem::plus(), Product()) ==
             umem::transform_reduce(host, h, h, 1.0, umem::plus(), Product()),
         "transform_reduce of two views");
  for (int axis = 0; axis < N; axis++) {
    Extents<N - 1> e;
    for (int k = 0; k < N - 1; k++) e[k] = d.extent(k + (k >= axis));
    Both<double> sums(e.product());
    umem::sum_along(gpu, d, axis, View<double, N - 1>(sums.device(), e));
    umem::sum_along(host, h, axis, View<double, N - 1>(sums.host.data(), e));
    sums.compare("sum_along");
  }
}

template <class T, int N> void check(Extents<N> const &e) {
  with_views<T>(e, [](auto const &d, auto const &h, Both<T> &both) {
    check_elements(d, h, both);
    check_results(d, h);
    umem::fill(umem::on_device(), d, 42);
    umem::fill(umem::on_host, h, 42);
    both.compare("fill");
  });
}

template <class T> void check_type() {
  check<T>(Extents<1>{0});
  check<T>(Extents<1>{100003});
  check<T>(Extents<2>{300, 7});
  check<T>(Extents<2>{5, 3001});
  check<T>(Extents<3>{33, 17, 65});
  check<T>(Extents<3>{2001, 2, 3});
}

/* ---- further ---- */

void check_indices() {
  kind = "over indices";
  umem::Range<3> range({-3, 5, 100}, {40, 77, 101});
  expect(
      umem::for_each_index_reduce(umem::on_device(), range, index(7), umem::plus(), IndexSum()) ==
          umem::for_each_index_reduce(umem::on_host, range, index(7), umem::plus(), IndexSum()),
      "for_each_index_reduce");
  umem::Range<1> none({5}, {5});
  expect(umem::for_each_index_reduce(umem::on_device(), none, index(7), umem::plus(), IndexSum()) ==
             7,
         "for_each_index_reduce of nothing");
}

void check_sweeps() {
  for (Extents<2> e :
       {Extents<2>{3, 3}, Extents<2>{67, 1003}, Extents<2>{1003, 67}, Extents<2>{1030, 5}}) {
    kind = "sweep, extents " + umem::detail::in_words(e);
    Both<double> from(e.product()), to(e.product());
    View<double, 2> du(from.device(), e), hu(from.host.data(), e);
    View<double, 2> dv(to.device(), e), hv(to.host.data(), e);
    double d =
        umem::sweep(umem::on_device(), dv, umem::interior(dv), 0.0, umem::maximum(), Jacobi{du});
    double h = umem::sweep(umem::on_host, hv, umem::interior(hv), 0.0, umem::maximum(), Jacobi{hu});
    expect(d == h, "result");
    to.compare("elements");
  }
}

void check_nan() {
  kind = "NaN";
  Both<float> both(1000);
  both.host[777] = std::nanf("");
  both.buffer.copy_from(both.host.data(), 4000);
  View<float, 1> view(both.device(), {1000});
  expect(std::isnan(umem::max(umem::on_device(), view)), "max");
  expect(std::isnan(umem::min(umem::on_device(), view.slice(0, 0, 1000, 3))), "min, with strides");
  expect(std::isnan(umem::sum(umem::on_device(), view)), "sum");
}

/* Arrays are worked on where they live, in the order of their contexts. */
void check_arrays(umem::Context const &context) {
  kind = std::string("arrays on ") + context.name();
  umem::Array<float, 2> a({37, 41}, context), b({37, 41}, context, {{1, 2}, {}, 0});
  umem::fill(a, 2);
  umem::for_each_indexed(a, AddIndex());
  umem::transform(a, b, Square());
  umem::transform(a, b, b, Add());
  double total = umem::sum(b);
  float most = umem::max(b);
  auto view = b.host(umem::read);
  double expected = 0;
  bool right = true;
  umem::for_each_indexed(umem::on_host, view, [&](float const &found, index i, index j) {
    float x = static_cast<float>(2 + i + j);
    right = right && found == x + x * x;
    expected += found;
  });
  expect(right, "elements");
  expect(total == expected && most == (*view)(36, 40), "sum and max");
}

void check_failures() {
  kind = "failures";
  bool thrown = false;
  int device = -1;
  try {
    umem::fill(umem::on_device(0, 4711), View<int, 1>(nullptr, {16}), 1);
  } catch (umem::runtime_error const &) {
    thrown = true;
  }
  expect(thrown, "a GPU that is not there");
  expect(cudaGetDevice(&device) == cudaSuccess && device == 0, "the current device");
  expect(cudaGetLastError() == cudaSuccess, "CUDA's last error");
}

} // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("there is no GPU\n");
    return 77;
  }
  try {
    check_type<std::int8_t>();
    check_type<std::int32_t>();
    check_type<double>();
    check_indices();
    check_sweeps();
    check_nan();
    check_arrays(umem::Cuda());
    check_arrays(umem::CudaAsync());
    check_arrays(umem::CudaManaged());
    check_arrays(umem::CudaHost());
    check_arrays(umem::Host());
    check_failures();
  } catch (umem::error const &error) {
    std::printf("%s: %s\n", kind.c_str(), error.message());
    return 1;
  }
  std::printf("%d checks, %d wrong\n", checks, failures);
  return failures ? 1 : 0;
}
