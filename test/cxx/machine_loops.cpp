/* machine_loops.cpp - pairs of functions that machine_code.py compares: call_X does by a generic
 * call of umem, on arrays in RAM or on views whose strides are data, what raw_X does by a loop over
 * raw pointers to elements without gaps. Compiled to assembly, never run.
 *
 * With SPOILED no loop of umem is what it should be: functors stay calls. */
#include <umem/array.hpp>
#include <umem/elements.hpp>
#include <umem/fill.hpp>
#include <umem/for_each.hpp>
#include <umem/functional.hpp>
#include <umem/reductions.hpp>
#include <umem/reductions_along.hpp>
#include <umem/sweep.hpp>
#include <umem/transform.hpp>

#include <cstddef>

using std::ptrdiff_t;
using umem::on_host;
using umem::View;

#ifdef SPOILED
#define OPERATION __attribute__((noinline))
#else
#define OPERATION
#endif

namespace {

struct Halve {
  OPERATION void operator()(float &x) const { x = 0.5f * x + 1; }
};
struct Add {
  OPERATION double operator()(double x, double y) const { return x + y; }
};
struct ScaleAndAdd {
  double a; /* in a register, although the loop writes elements of its type */
  OPERATION void operator()(double &z, double x, double y) const { z = a * x + y; }
};
struct Axpy {
  double a;
  OPERATION void operator()(double const &x, double &y) const { y += a * x; }
};
struct Set {
  double value;
  OPERATION void operator()(double &x) const { x = value; }
};
struct AddColumn {
  template <class Index> OPERATION void operator()(float &x, Index, Index j) const {
    x += static_cast<float>(j);
  }
};
struct FivePoints {
  View<double, 2> w;
  View<double const, 2> u;
  OPERATION void operator()(ptrdiff_t i, ptrdiff_t j) const {
    w(i, j) = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
  }
};
/* With the square of its change. */
struct Jacobi {
  View<double const, 2> u;
  OPERATION double operator()(double &value, ptrdiff_t i, ptrdiff_t j) const {
    value = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
    return (value - u(i, j)) * (value - u(i, j));
  }
};

} // namespace

/* As in a header of a program: other files may have it too, so that compilers inline less of it. */
struct SevenPoints {
  View<double const, 3> u;
  OPERATION void operator()(double &x, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k) const {
    x = 0.5 * u(i, j, k) + 0.1 * (u(i - 1, j, k) + u(i + 1, j, k) + u(i, j - 1, k) +
                                  u(i, j + 1, k) + u(i, j, k - 1) + u(i, j, k + 1));
  }
};

extern "C" {

void raw_for_each(float *x, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i++) x[i] = 0.5f * x[i] + 1;
}
void call_for_each(View<float, 1> const &x) { umem::for_each(on_host, x, Halve()); }

void raw_transform(double const *x, double const *y, double *z, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i++) z[i] = x[i] + y[i];
}
void call_transform(View<double const, 1> const &x, View<double const, 1> const &y,
                    View<double, 1> const &z) {
  umem::transform(on_host, x, y, z, Add());
}

void raw_axpy(double *z, double const *x, double const *y, ptrdiff_t n, double a) {
  for (ptrdiff_t i = 0; i < n; i++) z[i] = a * x[i] + y[i];
}
void call_axpy(View<double, 2> const &z, View<double const, 2> const &x,
               View<double const, 2> const &y, double a) {
  umem::for_each(on_host, ScaleAndAdd{a}, umem::discard(z), x, y);
}

void raw_fill(double *x, ptrdiff_t n, double value) {
  for (ptrdiff_t i = 0; i < n; i++) x[i] = value;
}
#ifdef SPOILED
void call_fill(View<double, 1> const &x, double value) { umem::for_each(on_host, x, Set{value}); }
#else
void call_fill(View<double, 1> const &x, double value) { umem::fill(on_host, x, value); }
#endif

void raw_arrays_in_ram(double const *x, double *y, ptrdiff_t n, double a) {
  for (ptrdiff_t i = 0; i < n; i++) y[i] += a * x[i];
}
void call_arrays_in_ram(umem::Array<double, 2> const &x, umem::Array<double, 2> &y, double a) {
  umem::for_each(Axpy{a}, x, y);
}

void raw_for_each_indexed(float *x, int nx, int ny) {
  for (int i = 0; i < nx; i++)
    for (int j = 0; j < ny; j++) x[ptrdiff_t(i) * ny + j] += static_cast<float>(j);
}
void call_for_each_indexed(View<float, 2> const &x) {
  umem::for_each_indexed<std::int32_t>(on_host, x, AddColumn());
}
void raw_for_each_indexed_3d(double *x, double const *u, ptrdiff_t n, ptrdiff_t plane,
                             ptrdiff_t row) {
  for (ptrdiff_t i = 1; i < n - 1; i++)
    for (ptrdiff_t j = 1; j < n - 1; j++)
      for (ptrdiff_t k = 1; k < n - 1; k++) {
        double const *at = u + i * plane + j * row + k;
        x[i * plane + j * row + k] =
            0.5 * at[0] + 0.1 * (at[-plane] + at[plane] + at[-row] + at[row] + at[-1] + at[1]);
      }
}
void call_for_each_indexed_3d(View<double, 3> const &x, View<double const, 3> const &u) {
  umem::for_each_indexed(on_host, x, umem::interior(x), SevenPoints{u});
}
void raw_for_each_index(double *w, double const *u, ptrdiff_t nx, ptrdiff_t ny) {
  for (ptrdiff_t i = 1; i < nx - 1; i++)
    for (ptrdiff_t j = 1; j < ny - 1; j++)
      w[i * ny + j] = 0.25 * (u[(i - 1) * ny + j] + u[(i + 1) * ny + j] + u[i * ny + (j - 1)] +
                              u[i * ny + (j + 1)]);
}
void call_for_each_index(View<double, 2> const &w, View<double const, 2> const &u) {
  umem::for_each_index(on_host, umem::interior(w), FivePoints{w, u});
}
/* Two loops over strips of a row, as additions of floating-point numbers in their order do not
 * vectorise. */
double raw_sweep(double *w, double const *u, ptrdiff_t nx, ptrdiff_t ny) {
  double square[256], sum = 0;
  for (ptrdiff_t i = 1; i < nx - 1; i++)
    for (ptrdiff_t first = 1; first < ny - 1; first += 256) {
      ptrdiff_t n = ny - 1 - first < 256 ? ny - 1 - first : 256;
      for (ptrdiff_t k = 0; k < n; k++) {
        ptrdiff_t j = first + k;
        w[i * ny + j] = 0.25 * (u[(i - 1) * ny + j] + u[(i + 1) * ny + j] + u[i * ny + (j - 1)] +
                                u[i * ny + (j + 1)]);
        square[k] = (w[i * ny + j] - u[i * ny + j]) * (w[i * ny + j] - u[i * ny + j]);
      }
      for (ptrdiff_t k = 0; k < n; k++) sum += square[k];
    }
  return sum;
}
double call_sweep(View<double, 2> const &w, View<double const, 2> const &u) {
  return umem::sweep(on_host, w, umem::interior(w), 0.0, umem::plus(), Jacobi{u});
}

#if !defined(SPOILED) /* they have no functor of the program */
/* Reductions of int, in 64 bits. */
long raw_sum(int const *x, ptrdiff_t n) {
  long result = 0;
  for (ptrdiff_t i = 0; i < n; i++) result += x[i];
  return result;
}
long call_sum(View<int const, 1> const &x) { return umem::sum(on_host, x); }
int raw_max(int const *x, ptrdiff_t n) {
  int result = x[0];
  for (ptrdiff_t i = 0; i < n; i++) result = x[i] > result ? x[i] : result;
  return result;
}
int call_max(View<int const, 1> const &x) { return umem::max(on_host, x); }
long raw_count_if(int const *x, ptrdiff_t n) {
  long result = 0;
  for (ptrdiff_t i = 0; i < n; i++) result += x[i] > 3;
  return result;
}
long call_count_if(View<int const, 1> const &x) {
  return umem::count_if(on_host, x, [](int i) { return i > 3; });
}
/* Of numbers without a sign: SSE2 has no products of others in 64 bits. Clang vectorises neither
 * loop for SSE2. */
#if !defined(__clang__)
unsigned long raw_dot(unsigned const *x, unsigned const *y, ptrdiff_t n) {
  unsigned long result = 0;
  for (ptrdiff_t i = 0; i < n; i++) result += static_cast<unsigned long>(x[i]) * y[i];
  return result;
}
unsigned long call_dot(View<unsigned const, 1> const &x, View<unsigned const, 1> const &y) {
  return umem::dot(on_host, x, y);
}
#endif
void raw_sum_along(double const *x, double *to, ptrdiff_t n, ptrdiff_t m) {
  for (ptrdiff_t i = 0; i < n; i++)
    for (ptrdiff_t j = 0; j < m; j++) to[j] += x[i * m + j];
}
void call_sum_along(View<double const, 2> const &x, View<double, 1> const &to) {
  umem::sum_along(on_host, x, 0, to);
}
/* Four points by indices of guards, whose strides are in memory. */
void raw_guards(double *w, double const *u, ptrdiff_t nx, ptrdiff_t ny) {
  for (ptrdiff_t i = 1; i < nx - 1; i++)
    for (ptrdiff_t j = 1; j < ny - 1; j++)
      w[i * ny + j] = 0.5 * (u[(i - 1) * ny + j] + u[(i + 1) * ny + j] + u[i * ny + (j - 1)] +
                             u[i * ny + (j + 1)]);
}
void call_guards(umem::HostGuard<double, 2> const &w, umem::HostGuard<double const, 2> const &u) {
  for (ptrdiff_t i = 1; i < w.extent(0) - 1; i++)
    for (ptrdiff_t j = 1; j < w.extent(1) - 1; j++)
      w(i, j) = 0.5 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
}
/* A loop over all elements: two loops, of which the inner one has vectors. */
void raw_elements(double *x, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i++) x[i] += 1;
}
void call_elements(View<double, 2> const &view) {
  for (double &x : umem::elements(view)) x += 1;
}
void raw_elements_3d(float *x, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i++) x[i] += 1;
}
void call_elements_3d(View<float, 3> const &view) {
  for (float &x : umem::elements(view)) x += 1;
}
#endif
}
