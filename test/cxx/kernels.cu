/* kernels.cu - umem's kernels on a real GPU, against umem's loops on the host, which the tests
 * kernels_elements and kernels_reduce have compared with plain loops.
 *
 * Exit code: 0; 1 when a number is wrong or a call failed; 77 without a GPU. */
#include "kernels_functors.hpp"

#include <umem.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cuda/std/complex>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using umem::Extents;
using umem::index_t;
using umem::View;

/* ---- what is compared ---- */

int checks = 0, failures = 0;
std::string kind; /* of the view that is being checked */

void expect(bool right, char const *what) {
  checks++;
  if (right) return;
  failures++;
  std::printf("WRONG: %s, %s\n", kind.c_str(), what);
}

/* Equal elements on a GPU and in RAM. */
template <class T> struct Both {
  std::vector<T> host;
  umem::Cuda gpu;
  umem::Buffer buffer;

  explicit Both(index_t count)
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
    host = found; /* one mistake is reported once */
  }
};

/* Calls f(view on the GPU, view in RAM, elements) for views of many kinds. */
template <class T, int N, class F> void with_views(Extents<N> const &e, F const &f) {
  std::string const shape =
      std::to_string(sizeof(T)) + " bytes, extents " + umem::detail::in_words(e).text;
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

  umem::Range<N> half(d.extents);
  half.begin[0] = d.extent(0) / 2;
  for (umem::Range<N> const &range : {umem::interior(d), half}) {
    umem::for_each(gpu, d, range, Increment());
    umem::for_each(host, h, range, Increment());
    both.compare("for_each over a range");
    umem::for_each_indexed(gpu, d, range, AddIndex());
    umem::for_each_indexed(host, h, range, AddIndex());
    both.compare("for_each_indexed over a range");
  }

  /* Operands with gaps of their own between the rows: equal ones, or of another size of element. */
  Extents<N> ghosts, all = d.extents;
  for (int k = 0; k < N; k++) all[k] += 2 * (ghosts[k] = k + 1);
  Both<T> like(all.product());
  auto dl = View<T, N>::with_ghosts_from(like.device(), d.extents, ghosts);
  auto hl = View<T, N>::with_ghosts_from(like.host.data(), h.extents, ghosts);
  umem::transform(gpu, d, dl, Square());
  umem::transform(host, h, hl, Square());
  like.compare("transform to ghost cells");
  umem::transform(gpu, d, dl, dl, Add());
  umem::transform(host, h, hl, hl, Add());
  like.compare("transform within ghost cells");
  Both<std::int16_t> shorts(all.product());
  auto ds = View<std::int16_t, N>::with_ghosts_from(shorts.device(), d.extents, ghosts);
  auto hs = View<std::int16_t, N>::with_ghosts_from(shorts.host.data(), h.extents, ghosts);
  umem::transform(gpu, dl, ds, Remainder());
  umem::transform(host, hl, hs, Remainder());
  shorts.compare("transform to ghost cells of another type");
  umem::for_each(gpu, RestAndSwap(), umem::discard(ds), d, dl);
  umem::for_each(host, RestAndSwap(), umem::discard(hs), h, hl);
  both.compare("for_each of three, the second");
  like.compare("for_each of three, the third");
  shorts.compare("for_each of three, the first");
  umem::for_each_indexed(gpu, AddIndexTo(), d, umem::read(dl));
  umem::for_each_indexed(host, AddIndexTo(), h, umem::read(hl));
  umem::for_each_indexed<std::int32_t>(gpu, AddIndexTo(), umem::interior(d), dl, umem::read(d));
  umem::for_each_indexed<std::int32_t>(host, AddIndexTo(), umem::interior(h), hl, umem::read(h));
  both.compare("for_each_indexed of two");
  like.compare("for_each_indexed of two, over a range");

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

/* ---- along one dimension, with a function ---- */

/* d: on the GPU, h: in RAM. */
template <class T, int N> void check_along(View<T, N> const &d, View<T, N> const &h) {
  auto const gpu = umem::on_device();
  auto const host = umem::on_host;
  for (int axis = 0; axis < N; axis++) {
    Extents<N - 1> e;
    for (int k = 0; k < N - 1; k++) e[k] = d.extent(k + (k >= axis));
    Both<double> both(e.product());
    View<double, N - 1> to(both.device(), e), expected(both.host.data(), e);
    umem::transform_reduce_along(gpu, d, axis, to, 3.f, umem::plus(), HalfOf());
    umem::transform_reduce_along(host, h, axis, expected, 3.f, umem::plus(), HalfOf());
    both.compare("transform_reduce_along");
    umem::transform_reduce_along(gpu, d, d, axis, to, 1.0, umem::maximum(), Product());
    umem::transform_reduce_along(host, h, h, axis, expected, 1.0, umem::maximum(), Product());
    both.compare("transform_reduce_along of two views");
  }
}

template <class T, int N> void check_along(Extents<N> const &e) {
  with_views<T>(e, [](auto const &d, auto const &h, Both<T> &) { check_along(d, h); });
}

void check_along() {
  check_along<float>(Extents<1>{0});
  check_along<float>(Extents<1>{1003});
  check_along<float>(Extents<2>{300, 7});
  check_along<float>(Extents<2>{5, 3001});
  check_along<float>(Extents<3>{33, 17, 65});
  check_along<std::int8_t>(Extents<3>{7, 5, 300});
  /* All shapes of blocks: short and long lines, few and many outputs, pieces of each. */
  for (index_t rows : {1, 2, 9, 33, 1030, 5000})
    for (index_t columns : {1, 3, 4, 5, 31, 64, 100, 2100})
      check_along<float>(Extents<2>{rows, columns});
  check_along<float>(Extents<2>{3, 70001});
  check_along<float>(Extents<2>{70001, 3});
}

void check_nan_along() {
  kind = "NaN along a dimension";
  Both<float> both(70 * 300);
  both.host[41 * 300 + 257] = std::nanf("");
  both.buffer.copy_from(both.host.data(), both.host.size() * sizeof(float));
  View<float, 2> in(both.device(), {70, 300});
  for (auto const &view : {in, in.transpose()})
    for (int axis : {0, 1}) {
      index_t count = view.extent(1 - axis);
      umem::Array<float, 1> out({count}, umem::Cuda());
      auto check = [&](char const *what) {
        bool right = true;
        for (index_t n = 0; n < count; n++)
          right = right && std::isnan(out.get(n)) == (n == (count == 70 ? 41 : 257));
        expect(right, what);
      };
      umem::sum_along(view, axis, out);
      check("sum_along");
      umem::min_along(view, axis, out);
      check("min_along");
      umem::max_along(view, axis, out);
      check("max_along");
    }
}

/* ---- elements that are no numbers of C ---- */

template <class T> void check_half(char const *name) {
  kind = std::string("elements of type ") + name;
  auto const gpu = umem::on_device();
  auto const host = umem::on_host;
  Both<T> both(37 * 301), lows(301), highs(37);
  View<T, 2> d(both.device(), {37, 301}), h(both.host.data(), {37, 301});
  expect(umem::sum(gpu, d) == umem::sum(host, h), "sum");
  for (auto const &[device, ram] : {std::pair(d, h), std::pair(d.transpose(), h.transpose())}) {
    expect(umem::min(gpu, device) == umem::min(host, ram), "min");
    expect(umem::max(gpu, device) == umem::max(host, ram), "max");
  }
  umem::min_along(gpu, d, 0, View<T, 1>(lows.device(), {301}));
  umem::min_along(host, h, 0, View<T, 1>(lows.host.data(), {301}));
  lows.compare("min_along");
  umem::max_along(gpu, d, 1, View<T, 1>(highs.device(), {37}));
  umem::max_along(host, h, 1, View<T, 1>(highs.host.data(), {37}));
  highs.compare("max_along");

  both.host[7777] = T(std::nanf(""));
  both.buffer.copy_from(both.host.data(), both.host.size() * sizeof(T));
  for (auto const &view : {d, d.transpose()}) {
    expect(std::isnan(static_cast<float>(umem::min(gpu, view))), "min with a NaN");
    expect(std::isnan(static_cast<float>(umem::max(gpu, view))), "max with a NaN");
  }
}

void check_complex() {
  kind = "complex numbers";
  using Complex = cuda::std::complex<float>;
  static_assert(std::is_same_v<umem::accumulator<Complex>, cuda::std::complex<double>>);
  Both<Complex> both(37 * 301);
  for (Complex &number : both.host) number = Complex(16777216.f, number.real()); /* 1 << 24 */
  both.buffer.copy_from(both.host.data(), both.host.size() * sizeof(Complex));
  View<Complex, 2> d(both.device(), {37, 301}), h(both.host.data(), {37, 301});
  expect(umem::sum(umem::on_device(), d) == umem::sum(umem::on_host, h), "sum");
  expect(umem::sum(umem::on_device(), d).real() == 37. * 301 * 16777216, "sum of real parts");
}

/* ---- further ---- */

template <class Index, int N> void check_index_reduce(umem::Range<N> const &range) {
  auto reduce = [&](auto place) {
    return umem::for_each_index_reduce<Index>(place, range, index_t(7), umem::plus(), IndexSum());
  };
  expect(reduce(umem::on_device()) == reduce(umem::on_host), "for_each_index_reduce");
}

void check_indices() {
  kind = "over indices";
  check_index_reduce<index_t>(umem::Range<3>({-3, 5, 100}, {40, 77, 101}));
  check_index_reduce<index_t>(umem::Range<1>({5}, {5}));
  check_index_reduce<std::int8_t>(umem::Range<2>({-128, -128}, {127, 127}));
  check_index_reduce<std::int16_t>(umem::Range<1>({-32768}, {32767}));
}

void check_sweeps() {
  for (Extents<2> e :
       {Extents<2>{3, 3}, Extents<2>{67, 1003}, Extents<2>{1003, 67}, Extents<2>{1030, 5}}) {
    kind = std::string("sweep, extents ") + umem::detail::in_words(e).text;
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
  umem::for_each_indexed(umem::on_host, view, [&](float const &found, index_t i, index_t j) {
    float x = static_cast<float>(2 + i + j);
    right = right && found == x + x * x;
    expected += found;
  });
  expect(right, "elements");
  expect(total == expected && most == (*view)(36, 40), "sum and max");
}

/* Parts run where their arrays are, and nothing else of these moves. */
void check_parts(umem::Context const &context) {
  kind = std::string("parts of arrays on ") + context.name();
  umem::Array<float, 3> u({20, 30, 40}, context, {{1, 0, 2}, {}, 0});
  umem::iota(u, 0);
  umem::Array<float, 2> face({20, 30}, context);
  umem::transform(u.part().select(2, 7), face, Square());
  umem::for_each(SumAndSwap(), umem::discard(u.part().select(2, 39)), u.part().select(2, 0), face);
  umem::fill(u.part().slice(0, 0, 20, 5).transpose(), 1);
  double total = umem::sum(u.part().select(0, 0)),
         column = umem::sum(u.part().select(0, 1).select(1, 39));
  double expected = 0;
  for (int j = 0; j < 30; j++) { /* elements 0 and 7 of the row, of which the second is squared */
    auto first = static_cast<float>(1200 + 40 * j), seventh = first + 7;
    expected += first + seventh * seventh;
  }
  expect(total == 1200, "a plane");
  expect(std::abs(column - expected) < 1e-6 * expected, "a column");
  expect(u.get(1, 29, 0) == face.get(1, 29) + u.get(1, 29, 39) - 2 * face.get(1, 29),
         "swapped elements");
  if (context.can(umemCpuReadable)) return;
  expect(u.current() == umem::Side::device, "nothing is transferred");
  umem::fill(umem::on_host, u.part().select(0, 3), 2);
  expect(u.current() == umem::Side::device && u.get(3, 29, 39) == 2 && u.get(4, 0, 1) == 4801,
         "a part in a buffer");
}

/* A kernel that takes parts of a view. */
struct MarkRows {
  View<float, 2> view;
  UMEM_FUNCTION void operator()(umem::index_t i) const {
    auto const row = view.part(i, umem::range(umem::end - 1, 0, -2));
    row(0) = static_cast<float>(-i);
  }
};

/* Arrays in column-major order, and arrays that get other extents. */
void check_columns(umem::Context const &context) {
  kind = std::string("columns of arrays on ") + context.name();
  umem::Array<float, 2> u({70, 41}, umem::column_major, context), rows({70, 41}, context);
  umem::iota(u, 0);
  umem::for_each_indexed(u, AddIndex());
  umem::copy(u, rows);
  umem::for_each_indexed(AddIndexTo(), umem::discard(rows), u);
  {
    auto guard = u.device(umem::write);
    umem::for_each_index(umem::Place(context), Extents<1>(70), MarkRows{*guard});
    context.synchronize();
  }
  bool right = true;
  for (umem::index_t i = 0; i < 70; i++)
    for (umem::index_t j = 0; j < 41; j++) {
      auto const value = static_cast<float>(41 * i + j + i + j);
      right = right && u.get(i, j) == (j == 40 ? static_cast<float>(-i) : value) &&
              rows.get(i, j) == value + static_cast<float>(i + j);
    }
  expect(right, "elements");
  u.release_host();
  u.resize({80, 30}, 5);
  expect(u.current() != umem::Side::host, "nothing is transferred");
  expect(u.get(79, 0) == 5 && u.get(69, 29) == 41 * 69 + 29 + 98 && u.get(70, 29) == 5, "resized");
}

/* Inputs that kernels cannot use are converted on the host. */
void check_conversion(umem::Context const &context) {
  kind = std::string("conversion to arrays on ") + context.name();
  umem::Array<int, 2> ram({37, 41}), file({37, 41}, umem::File::scratch());
  umem::iota(ram, 1);
  umem::iota(umem::on_host, file, 1);
  umem::Array<double, 2> one({37, 41}, context), two({37, 41}, context);
  umem::convert(ram, one);
  umem::convert(file, two);
  umem::transform(one, two, two, Add());
  umem::convert(two, ram);
  expect(ram.get(36, 40) == 2 * 37 * 41 && ram.get(0, 1) == 4, "elements");
}

/* A kernel on one stream uses what was queued on another, and the other way round. */
void check_order() {
  kind = "order between streams";
  umem::CudaAsync context, other;
  umem::ArrayOptions<1> options;
  options.host = umem::CudaHost();
  umem::Array<double, 1> array({1 << 24}, context, options);
  for (int round = 0; round < 5; round++) {
    umem::fill(umem::on_host, array, round);
    umem::for_each(umem::on_device(other.stream()), array, Increment());
    umem::for_each(array, Increment());
    expect(umem::sum(umem::on_device(other.stream()), array) == (round + 2.0) * (1 << 24),
           "kernels on two streams");
    array.start_sync_to_host(other);
    expect(umem::max(umem::on_host, array) == round + 2, "a transfer on the other stream");
    umem::fill(umem::on_host, array, -round);
    array.start_sync_to_device(other);
    umem::for_each(array, Increment());
    expect(umem::sum(array) == (1.0 - round) * (1 << 24), "a transfer before a kernel");
  }
}

void check_failures() {
  kind = "failures";
  bool thrown = false;
  int device = -1;
  try {
    umem::fill(umem::on_device(0, 4711), View<int, 1>(nullptr, {16}), 1);
  } catch (umem::value_error const &) {
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
    check<std::int32_t>(Extents<4>{3, 2, 5, 130});
    check_indices();
    check_sweeps();
    check_nan();
    check_along();
    check_nan_along();
    check_half<__half>("__half");
    check_half<__nv_bfloat16>("__nv_bfloat16");
    check_complex();
    check_arrays(umem::Cuda());
    check_arrays(umem::CudaAsync());
    check_arrays(umem::CudaManaged());
    check_arrays(umem::CudaHost());
    check_arrays(umem::Host());
    check_parts(umem::Cuda());
    check_parts(umem::CudaAsync());
    check_parts(umem::CudaManaged());
    check_parts(umem::Host());
    check_columns(umem::Cuda());
    check_columns(umem::CudaAsync());
    check_columns(umem::Host());
    check_conversion(umem::Cuda());
    check_conversion(umem::CudaAsync());
    check_order();
    check_failures();
  } catch (umem::error const &error) {
    std::printf("%s: %s\n", kind.c_str(), error.message());
    return 1;
  }
  std::printf("%d checks, %d wrong\n", checks, failures);
  return failures ? 1 : 0;
}
