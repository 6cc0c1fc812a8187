/* cxx_loops.cpp - loops over elements of arrays beside the same loops over raw pointers, to be
 * compiled as users compile: cxx_loops.py does so with each compiler and level, and prints a table.
 *
 * Each line of the output is a row: its name, nanoseconds of a call by umem and by hand, the least
 * of all rounds, in which both are timed in turns. All loops are functions that are not inlined, as
 * in a program of several files.
 *
 * Arguments: how many rounds, and a text that the names of rows must contain. With 0 rounds each is
 * called once more, for a tool that counts the instructions of `counted_call`. */
#include <umem.hpp>
#include <umem/fill_ghosts.hpp>
#include <umem/reductions.hpp>
#include <umem/reductions_along.hpp>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

/* A function as of another file: compilers know nothing of its arguments. Clang looks for constants
 * in all calls of a function that no other file can call, so none is in an unnamed namespace. */
#if defined(__clang__)
#define APART [[gnu::noinline]]
#else
#define APART [[gnu::noipa]]
#endif

namespace loops {

using umem::dynamic;
using umem::index_t;
using Clock = std::chrono::steady_clock;
using Call = std::function<void()>;

int rounds = 100;
std::string wanted; /* in the name of a row */
/* Rows whose types know less than the loop over raw pointers that a program would write: by hand
 * they have strides in memory, too. */
std::string const harder = "any strides: ";
volatile double sink;

double time_of(Call const &call, int repeats) {
  auto const begin = Clock::now();
  for (int i = 0; i < repeats; i++) call();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / repeats;
}

extern "C" APART void counted_call(Call const &call) { call(); }

void row(std::string const &name, Call const &ours, Call const &by_hand) {
  if (name.find(wanted) == std::string::npos) return;
  if (rounds == 0) {
    ours(), counted_call(ours), by_hand(), counted_call(by_hand);
    std::printf("%s\n", name.c_str());
    return;
  }
  int repeats = 1;
  while (time_of(by_hand, repeats) * repeats < 1e5) repeats *= 2;
  double least[] = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  for (int i = 0; i < rounds; i++) {
    least[0] = std::min(least[0], time_of(ours, repeats));
    least[1] = std::min(least[1], time_of(by_hand, repeats));
  }
  std::printf("%s\t%.2f\t%.2f\n", name.c_str(), least[0], least[1]);
}

/* ---- functions that take views ---- */

template <class To, class From> APART void add_row(To const &to, From const &from, index_t i) {
  for (index_t j = 0, n = to.extent(1); j < n; j++) to(i, j) += from(i, j);
}
APART void add_row_raw(double *to, index_t s, double const *from, index_t t, index_t i, index_t n) {
  for (index_t j = 0; j < n; j++) to[i * s + j] += from[i * t + j];
}

/* With what a function for any views knows: strides in memory. */
template <class Type, int Rank> struct Raw {
  Type *data;
  index_t extents[Rank], strides[Rank];
};
APART void add_row_raw_strides(Raw<double, 2> const &to, Raw<double const, 2> const &from,
                               index_t i) {
  for (index_t j = 0, n = to.extents[1]; j < n; j++)
    to.data[i * to.strides[0] + j * to.strides[1]] +=
        from.data[i * from.strides[0] + j * from.strides[1]];
}

template <class Pixels> APART void brighten(Pixels const &x) {
  for (index_t i = 0, n = x.extent(0); i < n; i++)
    for (index_t j = 0, m = x.extent(1); j < m; j++)
      for (index_t c = 0; c < 3; c++) x(i, j, c) = x(i, j, c) * 0.5f + 1;
}
APART void brighten_raw(float *x, index_t n, index_t m, index_t s) {
  for (index_t i = 0; i < n; i++)
    for (index_t j = 0; j < m; j++)
      for (index_t c = 0; c < 3; c++) x[i * s + j * 3 + c] = x[i * s + j * 3 + c] * 0.5f + 1;
}

APART void brighten_raw_strides(Raw<float, 3> const &x) {
  for (index_t i = 0, n = x.extents[0]; i < n; i++)
    for (index_t j = 0, m = x.extents[1]; j < m; j++)
      for (index_t c = 0; c < 3; c++) {
        float &element = x.data[i * x.strides[0] + j * x.strides[1] + c * x.strides[2]];
        element = element * 0.5f + 1;
      }
}

template <class To, class From>
[[gnu::always_inline]] inline void heat_loops(To const &to, From const &u) {
  for (index_t i = 1; i + 1 < to.extent(0); i++)
    for (index_t j = 1; j + 1 < to.extent(1); j++)
      for (index_t k = 1; k + 1 < to.extent(2); k++)
        to(i, j, k) =
            u(i, j, k) + 0.1f * (u(i - 1, j, k) + u(i + 1, j, k) + u(i, j - 1, k) + u(i, j + 1, k) +
                                 u(i, j, k - 1) + u(i, j, k + 1) - 6 * u(i, j, k));
}
template <class To, class From> APART void heat(To const &to, From const &u) { heat_loops(to, u); }
template <class Layout>
APART void heat_of_arrays(umem::Array<float, 3> &to_array, umem::Array<float, 3> const &array) {
  auto const to = to_array.host<Layout>(umem::write);
  auto const u = array.host<Layout>(umem::read);
  heat_loops(to, u);
}
APART void heat_of_values(umem::View<float, 3> to, umem::View<float const, 3> u) {
  heat_loops(to, u);
}
APART void heat_raw(float *to, float const *u, index_t n) {
  for (index_t i = 1; i + 1 < n; i++)
    for (index_t j = 1; j + 1 < n; j++)
      for (index_t k = 1; k + 1 < n; k++) {
        index_t const at = (i * n + j) * n + k;
        to[at] = u[at] + 0.1f * (u[at - n * n] + u[at + n * n] + u[at - n] + u[at + n] + u[at - 1] +
                                 u[at + 1] - 6 * u[at]);
      }
}
APART void heat_raw_views(Raw<float, 3> const &to, Raw<float const, 3> const &u) {
  auto const at = [](auto const &x, index_t i, index_t j, index_t k) -> auto & {
    return (x.data + i * x.strides[0] + j * x.strides[1])[k * x.strides[2]];
  };
  for (index_t i = 1; i + 1 < to.extents[0]; i++)
    for (index_t j = 1; j + 1 < to.extents[1]; j++)
      for (index_t k = 1; k + 1 < to.extents[2]; k++)
        at(to, i, j, k) =
            at(u, i, j, k) + 0.1f * (at(u, i - 1, j, k) + at(u, i + 1, j, k) + at(u, i, j - 1, k) +
                                     at(u, i, j + 1, k) + at(u, i, j, k - 1) + at(u, i, j, k + 1) -
                                     6 * at(u, i, j, k));
}
/* Seven points with what a function for any two arrays knows: the strides of each. */
struct RowsAndPlanes {
  index_t plane, row;
};
APART void heat_raw_strides(float *to, RowsAndPlanes s, float const *u, RowsAndPlanes t,
                            index_t n) {
  for (index_t i = 1; i + 1 < n; i++)
    for (index_t j = 1; j + 1 < n; j++) {
      float *const x = to + i * s.plane + j * s.row;
      float const *const y = u + i * t.plane + j * t.row;
      for (index_t k = 1; k + 1 < n; k++)
        x[k] = y[k] + 0.1f * (y[k - t.plane] + y[k + t.plane] + y[k - t.row] + y[k + t.row] +
                              y[k - 1] + y[k + 1] - 6 * y[k]);
    }
}

void views() {
  for (int n : {8, 30, 100, 1000}) {
    umem::Array<double, 2> to({4, n}), from({4, n});
    umem::fill(to, 1e-3);
    umem::fill(from, 1e-3);
    auto const u = to.host(umem::write);
    auto const v = from.host(umem::read);
    umem::View<double, 2, umem::UnitStride> const unit = u;
    umem::View<double const, 2, umem::UnitStride> const read = v;
    Call const raw = [&] { add_row_raw(u->data, n, v->data, n, 1, n); };
    std::string const name = "row of " + std::to_string(n);
    row(
        name + ", UnitStride", [&] { add_row(unit, read, 1); }, raw);
    Raw<double, 2> const any{u->data, {4, n}, {n, 1}};
    Raw<double const, 2> const any_read{v->data, {4, n}, {n, 1}};
    row(
        harder + name + ", View", [&] { add_row(*u, *v, 1); },
        [&] { add_row_raw_strides(any, any_read, 1); });
  }

  auto image = umem::Array<float, 3>::full({100, 100, 3}, 1);
  auto const pixels = image.host(umem::write);
  umem::View<float, 3, umem::FixedExtents<dynamic, dynamic, 3>> const fixed = pixels;
  Call const raw_image = [&] { brighten_raw(pixels->data, 100, 100, 300); };
  row(
      "RGB of 100^2, FixedExtents<,, 3>", [&] { brighten(fixed); }, raw_image);
  Raw<float, 3> const any_image{pixels->data, {100, 100, 3}, {300, 3, 1}};
  row(
      harder + "RGB of 100^2, View", [&] { brighten(*pixels); },
      [&] { brighten_raw_strides(any_image); });

  auto one = umem::Array<float, 3>::full({60, 60, 60}, 1), other = one;
  RowsAndPlanes const strides{3600, 60};
  float *const first = one.host(umem::write)->data;
  float const *const second = other.host(umem::read)->data;
  Call const raw_heat = [&] { heat_raw(first, second, 60); };
  row(
      "heat of 60^3, by hand with strides of each",
      [&] { heat_raw_strides(first, strides, second, strides, 60); }, raw_heat);
  row(
      "heat of 60^3, guards", [&] { heat_of_arrays<umem::Strided>(one, other); }, raw_heat);
  row(
      "heat of 60^3, guards UnitStride", [&] { heat_of_arrays<umem::UnitStride>(one, other); },
      raw_heat);
  auto const to = one.host(umem::write);
  auto const u = other.host(umem::read);
  row(
      "heat of 60^3, View by value", [&] { heat_of_values(*to, *u); }, raw_heat);
  row(
      "heat of 60^3, guards by reference", [&] { heat(to, u); }, raw_heat);
  umem::View<float, 3, umem::UnitStride> const unit = to;
  umem::View<float const, 3, umem::UnitStride> const read = u;
  row(
      "heat of 60^3, UnitStride by reference", [&] { heat(unit, read); },
      [&] { heat_raw_strides(first, strides, second, strides, 60); });
  Raw<float, 3> const any{first, {60, 60, 60}, {3600, 60, 1}};
  Raw<float const, 3> const any_read{second, {60, 60, 60}, {3600, 60, 1}};
  row(
      harder + "heat of 60^3, View by reference", [&] { heat(*to, *u); },
      [&] { heat_raw_views(any, any_read); });
}

/* ---- calls of umem with functors ---- */

APART void jacobi(umem::Array<double, 2> &to, umem::Array<double, 2> const &from) {
  auto const u = from.host<umem::UnitStride>(umem::read);
  umem::for_each_indexed(umem::write(to), {{1, 1}, {to.extent(0) - 1, to.extent(1) - 1}},
                         [u = *u](double &x, index_t i, index_t j) {
                           x = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
                         });
}
APART void jacobi_raw(double *to, double const *u, index_t n) {
  for (index_t i = 1; i + 1 < n; i++)
    for (index_t j = 1; j + 1 < n; j++)
      to[i * n + j] =
          0.25 * (u[(i - 1) * n + j] + u[(i + 1) * n + j] + u[i * n + j - 1] + u[i * n + j + 1]);
}

template <class Type>
APART void axpy(umem::Array<Type, 1> const &x, umem::Array<Type, 1> &y, Type a) {
  umem::for_each([a](Type const &from, Type &to) { to += a * from; }, x, y);
}
template <class Type> APART void axpy_raw(Type const *x, Type *y, index_t n, Type a) {
  for (index_t i = 0; i < n; i++) y[i] += a * x[i];
}

/* As a functor has the factor. */
template <class Type> APART void axpy_raw_of(Type const *x, Type *y, index_t n, Type const &a) {
  Type const factor = a; /* which no loop writes */
  for (index_t i = 0; i < n; i++) y[i] += factor * x[i];
}

APART void squares(umem::Array<double, 1> const &x, umem::Array<double, 1> const &y,
                   umem::Array<double, 1> &z) {
  umem::for_each([](double a, double b, double &to) { to = a * a + b * b; }, x, y,
                 umem::discard(z));
}
APART void squares_raw(double const *x, double const *y, double *z, index_t n) {
  for (index_t i = 0; i < n; i++) z[i] = x[i] * x[i] + y[i] * y[i];
}

/* Short rows with gaps between them. */
APART void axpy_rows(umem::View<double const, 2> const &x, umem::View<double, 2> const &y,
                     double a) {
  umem::for_each(
      umem::on_host, [a](double const &from, double &to) { to += a * from; }, x, y);
}
APART void axpy_rows_raw(double const *x, double *y, index_t n, index_t m, index_t s, double a) {
  for (index_t i = 0; i < n; i++)
    for (index_t j = 0; j < m; j++) y[i * s + j] += a * x[i * s + j];
}

template <class Elements> APART void increment(Elements const &view) {
  for (double &element : umem::elements(view)) element += 1;
}
APART void increment_visited(umem::View<double, 2> const &view) {
  umem::visit_elements(view, [](auto first, auto last) {
    for (; first != last; ++first) *first += 1;
  });
}
APART void increment_raw(double *x, index_t n, index_t m) {
  for (index_t i = 0; i < n * m; i++) x[i] += 1;
}

template <class Type> Type *pointer(umem::Array<Type, 1> &x) { return x.host(umem::write)->data; }

void calls() {
  for (index_t n : {index_t(8), index_t(1000)}) {
    auto u = umem::Array<double, 2>::full({n, n}, 1), v = u;
    double *const to = u.host(umem::write)->data;
    double const *const from = v.host(umem::read)->data;
    row(
        "Jacobi of " + std::to_string(n) + "^2, for_each_indexed", [&] { jacobi(u, v); },
        [&] { jacobi_raw(to, from, n); });
  }
  for (index_t n : {index_t(16), index_t(1000), index_t(1000000)}) {
    auto x = umem::Array<double, 1>::full({n}, 1), y = x, z = x;
    double *const from = pointer(x), *const to = pointer(y), *const out = pointer(z);
    row(
        "axpy of " + std::to_string(n) + ", for_each", [&] { axpy(x, y, 1e-9); },
        [&] { axpy_raw<double>(from, to, n, 1e-9); });
    row(
        "x*x + y*y of " + std::to_string(n) + ", for_each", [&] { squares(x, y, z); },
        [&] { squares_raw(from, to, out, n); });
  }
  auto rows = umem::Array<double, 2>::full({1000, 4}, 1), other_rows = rows;
  auto const x_rows = rows.host(umem::read);
  auto const y_rows = other_rows.host(umem::write);
  for (index_t m : {index_t(2), index_t(3)}) {
    auto const part = umem::range(0, m);
    umem::View<double const, 2> const u = x_rows->part(umem::full_extent, part);
    umem::View<double, 2> const v = y_rows->part(umem::full_extent, part);
    row(
        "axpy of 1000 rows of " + std::to_string(m) + ", for_each", [&] { axpy_rows(u, v, 1e-9); },
        [&] { axpy_rows_raw(u.data, v.data, 1000, m, 4, 1e-9); });
  }
  using Complex = std::complex<double>;
  auto x = umem::Array<Complex, 1>::full({100000}, Complex(1, 1)), y = x;
  Complex *const from = pointer(x), *const to = pointer(y);
  Complex const factor(1e-9, 0);
  row(
      "complex axpy of 1e5, for_each", [&] { axpy(x, y, factor); },
      [&] { axpy_raw(from, to, 100000, factor); });
  row(
      "the same, by hand with the factor in memory", [&] { axpy(x, y, factor); },
      [&] { axpy_raw_of(from, to, 100000, factor); });

  auto grid = umem::Array<double, 2>::full({1000, 1000}, 1);
  double *const first = grid.host(umem::write)->data;
  Call const by_hand = [&] { increment_raw(first, 1000, 1000); };
  row(
      "elements() of 1000^2", [&] { increment(grid.host(umem::write)); }, by_hand);
  row(
      "visit_elements of 1000^2, View", [&] { increment_visited(*grid.host(umem::write)); },
      by_hand);
  row(
      "elements() of 1000^2, RowMajor", [&] { increment(*grid.host<umem::RowMajor>(umem::write)); },
      by_hand);
}

/* ---- reductions ---- */

template <class Type> APART Type sum_raw(int const *x, index_t n) {
  return std::accumulate(x, x + n, Type());
}
APART int max_raw(int const *x, index_t n) {
  int result = x[0];
  for (index_t i = 1; i < n; i++) result = x[i] > result ? x[i] : result;
  return result;
}
APART index_t count_raw(int const *x, index_t n) {
  index_t result = 0;
  for (index_t i = 0; i < n; i++) result += x[i] > 3;
  return result;
}
template <class Type> APART Type dot_raw(int const *x, int const *y, index_t n) {
  Type result = 0;
  for (index_t i = 0; i < n; i++) result += Type(x[i]) * y[i];
  return result;
}
APART void sum_along_raw(double const *x, double *to, index_t n) {
  for (index_t j = 0; j < n; j++) to[j] = 0;
  for (index_t i = 0; i < n; i++)
    for (index_t j = 0; j < n; j++) to[j] += x[i * n + j];
}

void reductions() {
  index_t const n = 1000000;
  auto x = umem::Array<int, 1>::full({n}, 2), y = x;
  int *const a = pointer(x), *const b = pointer(y);
  Call const sum = [&] { sink = static_cast<double>(umem::sum(x)); };
  Call const dot = [&] { sink = static_cast<double>(umem::dot(x, y)); };
  row("sum of int in 64 bits, 1e6", sum, [&] { sink = static_cast<double>(sum_raw<long>(a, n)); });
  row("sum of int, by hand in 32 bits", sum, [&] { sink = sum_raw<int>(a, n); });
  row(
      "max of int, 1e6", [&] { sink = umem::max(x); }, [&] { sink = max_raw(a, n); });
  row(
      "count_if of int, 1e6",
      [&] { sink = static_cast<double>(umem::count_if(x, [](int i) { return i > 3; })); },
      [&] { sink = static_cast<double>(count_raw(a, n)); });
  row("dot of int in 64 bits, 1e6", dot,
      [&] { sink = static_cast<double>(dot_raw<long>(a, b, n)); });
  row("dot of int, by hand in 32 bits", dot, [&] { sink = dot_raw<int>(a, b, n); });

  auto grid = umem::Array<double, 2>::full({1000, 1000}, 1);
  auto to = umem::Array<double, 1>::full({1000}, 1);
  double const *const from = grid.host(umem::read)->data;
  double *const out = pointer(to);
  row(
      "sum along the first axis of 1000^2", [&] { umem::sum_along(grid, 0, to); },
      [&] { sum_along_raw(from, out, 1000); });
}

/* ---- small things called often ---- */

APART void periodic_raw(double *u, index_t n) {
  index_t const s = n + 2;
  for (index_t j = 1; j <= n; j++) u[j] = u[n * s + j], u[(n + 1) * s + j] = u[s + j];
  for (index_t i = 0; i < s; i++) u[i * s] = u[i * s + n], u[i * s + n + 1] = u[i * s + 1];
}

void small() {
  for (index_t n : {index_t(8), index_t(1000)}) {
    umem::Array<double, 2>::Options options;
    options.ghosts = {1, 1};
    auto u = umem::Array<double, 2>::full({n, n}, 1, umem::Host(), options);
    double *const first = &u.host(umem::write)(-1, -1);
    row(
        "fill_ghosts, periodic, of " + std::to_string(n) + "^2",
        [&] { umem::fill_ghosts(u, umem::periodic); }, [&] { periodic_raw(first, n); });
  }
  auto x = umem::Array<double, 1>::full({16}, 1), y = x, z = x;
  double *const from = pointer(x), *const to = pointer(y);
  row(
      "copy of 16", [&] { umem::copy(x, y); }, [&] { std::copy(from, from + 16, to); });
  Call const of_three = [&] {
    sink = x.host(umem::read)(0) + y.host(umem::read)(0) + z.host(umem::read)(0);
  };
  row("three guards", of_three, [&] { sink = from[0] + to[0]; });
  std::thread([] {}).join(); /* the process has had two threads: from now on numbers are atomic */
  row("three guards, with threads", of_three, [&] { sink = from[0] + to[0]; });
}

} // namespace loops

int main(int argc, char **argv) {
  if (argc > 1) loops::rounds = std::atoi(argv[1]);
  if (argc > 2) loops::wanted = argv[2];
  loops::views();
  loops::calls();
  loops::reductions();
  loops::small();
}
