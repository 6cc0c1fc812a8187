/* machine_code.cpp - pairs of functions that machine_code.py compares: view_X does through views
 * what raw_X does by hand, with strides and a pointer to the row: compilers make more instructions
 * of a sum of all indices. Compiled to assembly, never run. */
#include <umem/elements.hpp>

#include <cstddef>

using std::ptrdiff_t;
using umem::View;

/* An element of a row. As an argument j + 1 is one number: compilers find an increment less where
 * they see row[j + 1]. */
template <class Type> static inline Type const &at(Type const *row, ptrdiff_t j) { return row[j]; }

extern "C" {

/* ---- one element ---- */

double raw_element(double const *u, ptrdiff_t s0, ptrdiff_t s1, ptrdiff_t s2, ptrdiff_t i,
                   ptrdiff_t j, ptrdiff_t k) {
  return u[i * s0 + j * s1 + k * s2];
}
double view_element(double const *u, ptrdiff_t s0, ptrdiff_t s1, ptrdiff_t s2, ptrdiff_t i,
                    ptrdiff_t j, ptrdiff_t k) {
  return View<double const, 3>(u, {9, 9, 9}, {s0, s1, s2})(i, j, k);
}

/* Strides in memory, as a program has them. */
struct Raw {
  double *data;
  ptrdiff_t extents[2], strides[2];
};
double raw_element_in_memory(Raw const *u, ptrdiff_t i, ptrdiff_t j) {
  return u->data[i * u->strides[0] + j * u->strides[1]];
}
double view_element_in_memory(View<double, 2> const *u, ptrdiff_t i, ptrdiff_t j) {
  return (*u)(i, j);
}

/* Ghost cells cost nothing. */
void raw_ghost(Raw const *u, ptrdiff_t i) { (u->data - u->strides[0])[i * u->strides[1]] = 1; }
void view_ghost(View<double, 2> const *u, ptrdiff_t i) { (*u)(-1, i) = 1; }

float raw_linear(float const *u, ptrdiff_t i) { return u[i]; }
float view_linear(float const *u, ptrdiff_t i) { return View<float const, 1>(u, {i + 1})[i]; }

/* ---- loops ---- */

void raw_add(float *a, float const *b, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i++) a[i] += b[i];
}
void view_add(float *a, float const *b, ptrdiff_t n) {
  View<float, 1> x(a, {n});
  View<float const, 1> y(b, {n});
  for (ptrdiff_t i = 0; i < n; i++) x(i) += y(i);
}

/* Five points of rows without gaps between their elements. */
void raw_stencil(double *w, double const *u, ptrdiff_t nx, ptrdiff_t ny) {
  for (ptrdiff_t i = 1; i < nx - 1; i++)
    for (ptrdiff_t j = 1; j < ny - 1; j++)
      (w + i * ny)[j] = 0.25 * (at(u + (i - 1) * ny, j) + at(u + (i + 1) * ny, j) +
                                at(u + i * ny, j - 1) + at(u + i * ny, j + 1));
}
void view_stencil(double *w, double const *u, ptrdiff_t nx, ptrdiff_t ny) {
  View<double, 2> to(w, {nx, ny});
  View<double const, 2> from(u, {nx, ny});
  for (ptrdiff_t i = 1; i < nx - 1; i++)
    for (ptrdiff_t j = 1; j < ny - 1; j++)
      to(i, j) = 0.25 * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1));
}

/* Loops over views that come from elsewhere: their strides are data, and that of the last
 * dimension is known to be 1 by unit_stride(). */
void raw_stencil_rows(Raw const *w, Raw const *u) {
  double *to = w->data;
  double const *from = u->data;
  ptrdiff_t nx = u->extents[0], ny = u->extents[1], s = u->strides[0], t = w->strides[0];
  for (ptrdiff_t i = 1; i < nx - 1; i++)
    for (ptrdiff_t j = 1; j < ny - 1; j++)
      (to + i * t)[j] = 0.25 * (at(from + (i - 1) * s, j) + at(from + (i + 1) * s, j) +
                                at(from + i * s, j - 1) + at(from + i * s, j + 1));
}
void view_stencil_rows(View<double, 2> const *w, View<double const, 2> const *u) {
  View<double, 2> to = w->unit_stride();
  View<double const, 2> from = u->unit_stride();
  for (ptrdiff_t i = 1; i < from.extent(0) - 1; i++)
    for (ptrdiff_t j = 1; j < from.extent(1) - 1; j++)
      to(i, j) = 0.25 * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1));
}

/* And with any stride in the last dimension. */
void raw_stencil_strided(Raw const *w, Raw const *u) {
  double *to = w->data;
  double const *from = u->data;
  ptrdiff_t nx = u->extents[0], ny = u->extents[1];
  ptrdiff_t s0 = u->strides[0], s1 = u->strides[1], t0 = w->strides[0], t1 = w->strides[1];
  for (ptrdiff_t i = 1; i < nx - 1; i++)
    for (ptrdiff_t j = 1; j < ny - 1; j++)
      (to + i * t0)[j * t1] =
          0.25 * ((from + (i - 1) * s0)[j * s1] + (from + (i + 1) * s0)[j * s1] +
                  (from + i * s0)[(j - 1) * s1] + (from + i * s0)[(j + 1) * s1]);
}
void view_stencil_strided(View<double, 2> const *w, View<double const, 2> const *u) {
  View<double, 2> to = *w;
  View<double const, 2> from = *u;
  for (ptrdiff_t i = 1; i < from.extent(0) - 1; i++)
    for (ptrdiff_t j = 1; j < from.extent(1) - 1; j++)
      to(i, j) = 0.25 * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1));
}

/* A part of a view costs no more than the pointer to it. */
void raw_column(Raw const *u, ptrdiff_t k) {
  double *column = u->data + k * u->strides[1];
  ptrdiff_t n = u->extents[0], s = u->strides[0];
  for (ptrdiff_t i = 0; i < n; i++) column[i * s] = 0;
}
void view_column(View<double, 2> const *u, ptrdiff_t k) {
  View<double, 2> turned = u->transpose();
  for (ptrdiff_t i = 0; i < turned.extent(1); i++) turned(k, i) = 0;
}

/* Views of others whose type knows a stride: a function of a row, and colours of pixels. */
struct RawPixels {
  float *data;
  ptrdiff_t extents[3], strides[3];
};
void raw_row(Raw const *w, Raw const *u, ptrdiff_t i) {
  double *to = w->data + i * w->strides[0];
  double const *from = u->data + i * u->strides[0];
  for (ptrdiff_t j = 0, n = w->extents[1]; j < n; j++) to[j] += from[j];
}
void view_row(View<double, 2, umem::UnitStride> const &to,
              View<double const, 2, umem::UnitStride> const &from, ptrdiff_t i) {
  for (ptrdiff_t j = 0, n = to.extent(1); j < n; j++) to(i, j) += from(i, j);
}
void raw_pixels(RawPixels const *u) {
  float *data = u->data;
  ptrdiff_t s = u->strides[0];
  for (ptrdiff_t i = 0, n = u->extents[0]; i < n; i++)
    for (ptrdiff_t j = 0, m = u->extents[1]; j < m; j++)
      for (ptrdiff_t c = 0; c < 3; c++) data[i * s + j * 3 + c] *= 0.5f;
}
void view_pixels(
    View<float, 3, umem::FixedExtents<umem::dynamic, umem::dynamic, 3>> const &pixels) {
  for (ptrdiff_t i = 0, n = pixels.extent(0); i < n; i++)
    for (ptrdiff_t j = 0, m = pixels.extent(1); j < m; j++)
      for (ptrdiff_t c = 0; c < pixels.extent(2); c++) pixels(i, j, c) *= 0.5f;
}
/* Seven points of floats, with ghost cells or gaps between rows. */
void raw_heat(RawPixels const *w, RawPixels const *u) {
  float *to = w->data;
  float const *from = u->data;
  ptrdiff_t s0 = u->strides[0], s1 = u->strides[1], t0 = w->strides[0], t1 = w->strides[1];
  for (ptrdiff_t i = 1; i + 1 < w->extents[0]; i++)
    for (ptrdiff_t j = 1; j + 1 < w->extents[1]; j++)
      for (ptrdiff_t k = 1; k + 1 < w->extents[2]; k++)
        (to + (i * t0 + j * t1))[k] =
            at(from + ((i - 1) * s0 + j * s1), k) + at(from + ((i + 1) * s0 + j * s1), k) +
            at(from + (i * s0 + (j - 1) * s1), k) + at(from + (i * s0 + (j + 1) * s1), k) +
            at(from + (i * s0 + j * s1), k - 1) + at(from + (i * s0 + j * s1), k + 1);
}
void view_heat(View<float, 3, umem::UnitStride> const &to,
               View<float const, 3, umem::UnitStride> const &u) {
  for (ptrdiff_t i = 1; i + 1 < to.extent(0); i++)
    for (ptrdiff_t j = 1; j + 1 < to.extent(1); j++)
      for (ptrdiff_t k = 1; k + 1 < to.extent(2); k++)
        to(i, j, k) = u(i - 1, j, k) + u(i + 1, j, k) + u(i, j - 1, k) + u(i, j + 1, k) +
                      u(i, j, k - 1) + u(i, j, k + 1);
}
/* All elements, one after the other. */
void raw_elements(double *u, ptrdiff_t n, ptrdiff_t m) {
  for (double *x = u, *end = u + n * m; x != end; x++) *x += 1;
}
void view_elements(View<double, 2, umem::RowMajor> const &u) {
  for (double &x : umem::elements(u)) x += 1;
}
#if !defined(__clang__) /* whose loop for other strides than 1 is longer: see machine_loops.cpp */
void raw_elements_of_rows(Raw const *u) {
  double *data = u->data;
  ptrdiff_t n = u->extents[0], m = u->extents[1], s = u->strides[0], t = u->strides[1];
  for (ptrdiff_t i = 0; i < n; i++)
    for (ptrdiff_t j = 0; j < m; j++) (data + i * s)[j * t] += 1;
}
void view_elements_of_rows(View<double, 2> const &u) {
  for (double &x : umem::elements(u)) x += 1;
}
#endif
}
