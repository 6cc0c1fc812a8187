/* ratio_array.cpp - loops over the elements of arrays in RAM, compared with the same loops over raw
 * pointers.
 *
 * Both sides work on the same memory in the same order, with the guards of arrays inside of what is
 * timed. By hand a loop knows that the elements of a row have no gaps; umem's knows it where a row
 * says "unit stride". Loops of one thread: what counts is its time on the processor, which other
 * programs take less part in. */
#include "ratio.h"

#include "array_loops.h"
#include "place.h"

#include <umem.hpp>
#include <umem/sweep.hpp>

#include <cmath>
#include <string>

namespace bench {
namespace {

using umem::index_t;
using Reader = umem::View<double const, 2>;
using Writer = umem::View<double, 2>;

/* ---- v += a u ---- */

[[gnu::noinline]] void axpy(Square &v, Square const &u) {
  auto from = u.host(umem::read);
  auto to = v.host(umem::write);
  for (index_t i = 0; i < to.extent(0); i++)
    for (index_t j = 0; j < to.extent(1); j++) to(i, j) += 0.5 * from(i, j);
}

[[gnu::noinline]] void axpy_unit_stride(Square &v, Square const &u) {
  auto reading = u.host(umem::read);
  auto writing = v.host(umem::write);
  Reader from = reading->unit_stride();
  Writer to = writing->unit_stride();
  for (index_t i = 0; i < to.extent(0); i++)
    for (index_t j = 0; j < to.extent(1); j++) to(i, j) += 0.5 * from(i, j);
}

[[gnu::noinline]] void raw_axpy(Raw v, Raw u) {
  for (index_t i = 0; i < v.n; i++)
    for (index_t j = 0; j < v.n; j++) v.data[i * v.row + j] += 0.5 * u.data[i * u.row + j];
}

/* ---- the sum of all elements, one after the other ---- */

[[gnu::noinline]] void sum(Square &, Square const &u) {
  auto from = u.host(umem::read);
  double result = 0;
  for (index_t i = 0; i < from.extent(0); i++)
    for (index_t j = 0; j < from.extent(1); j++) result += from(i, j);
  use(result);
}

[[gnu::noinline]] void raw_sum(Raw, Raw u) {
  double result = 0;
  for (index_t i = 0; i < u.n; i++)
    for (index_t j = 0; j < u.n; j++) result += u.data[i * u.row + j];
  use(result);
}

/* ---- the mean of four neighbours ---- */

[[gnu::noinline]] void stencil(Square &v, Square const &u) {
  auto from = u.host(umem::read);
  auto to = v.host(umem::write);
  for (index_t i = 0; i < to.extent(0); i++)
    for (index_t j = 0; j < to.extent(1); j++)
      to(i, j) = 0.25 * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1));
}

[[gnu::noinline]] void stencil_unit_stride(Square &v, Square const &u) {
  auto reading = u.host(umem::read);
  auto writing = v.host(umem::write);
  Reader from = reading->unit_stride();
  Writer to = writing->unit_stride();
  for (index_t i = 0; i < to.extent(0); i++)
    for (index_t j = 0; j < to.extent(1); j++)
      to(i, j) = 0.25 * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1));
}

struct Mean {
  Reader from;
  Writer to;
  void operator()(index_t i, index_t j) const {
    to(i, j) = 0.25 * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1));
  }
};

[[gnu::noinline]] void stencil_for_each_index(Square &v, Square const &u) {
  auto reading = u.host(umem::read);
  auto writing = v.host(umem::write);
  umem::for_each_index(umem::on_host, v.extents(),
                       Mean{reading->unit_stride(), writing->unit_stride()});
}

[[gnu::noinline]] void raw_stencil(Raw v, Raw u) {
  double const *from = u.data;
  for (index_t i = 0; i < v.n; i++)
    for (index_t j = 0; j < v.n; j++)
      v.data[i * v.row + j] = 0.25 * (from[(i - 1) * u.row + j] + from[(i + 1) * u.row + j] +
                                      from[i * u.row + (j - 1)] + from[i * u.row + (j + 1)]);
}

/* ---- the same with the largest change ---- */

struct Jacobi {
  Reader from;
  double operator()(double &value, index_t i, index_t j) const {
    value = 0.25 * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1));
    return std::fabs(value - from(i, j));
  }
};

[[gnu::noinline]] void jacobi_sweep(Square &v, Square const &u) {
  auto reading = u.host(umem::read);
  umem::Range<2> all(v.extents());
  use(umem::sweep(umem::on_host, v, all, 0.0, umem::maximum(), Jacobi{reading->unit_stride()}));
}

[[gnu::noinline]] void raw_jacobi(Raw v, Raw u) {
  double const *from = u.data;
  double change = 0;
  for (index_t i = 0; i < v.n; i++)
    for (index_t j = 0; j < v.n; j++) {
      double value = 0.25 * (from[(i - 1) * u.row + j] + from[(i + 1) * u.row + j] +
                             from[i * u.row + (j - 1)] + from[i * u.row + (j + 1)]);
      double distance = std::fabs(value - from[i * u.row + j]);
      if (distance > change) change = distance;
      v.data[i * v.row + j] = value;
    }
  use(change);
}

/* ---- the rows ---- */

struct Loop {
  char const *name;
  void (*ours)(Square &v, Square const &u);
  void (*theirs)(Raw v, Raw u);
  std::optional<double> target;
  int arrays; /* read or written by it, a change being both */
};

constexpr Loop loops[] = {
    {"array axpy", axpy, raw_axpy, 1.02, 3},
    {"array axpy, unit stride", axpy_unit_stride, raw_axpy, 1.02, 3},
    {"array sum", sum, raw_sum, 1.02, 1},
    {"array stencil", stencil, raw_stencil, 1.02, 2},
    {"array stencil, unit stride", stencil_unit_stride, raw_stencil, 1.02, 2},
    {"array stencil, for_each_index", stencil_for_each_index, raw_stencil, std::nullopt, 2},
    {"array stencil with change, sweep", jacobi_sweep, raw_jacobi, std::nullopt, 2},
    {"array elements, plain -O2", plain::elements, plain::raw_elements, 1.02, 2},
    {"array stencil, plain -O2", plain::stencil, plain::raw_stencil, 1.02, 2},
    {"array elements, -O2 with UMEM_CHECKS=1", checked::elements, plain::raw_elements, std::nullopt,
     2},
    {"array stencil, -O2 with UMEM_CHECKS=1", checked::stencil, plain::raw_stencil, std::nullopt,
     2},
};

Square new_square(index_t n) {
  Square::Options options;
  options.ghosts = {1, 1};
  Square square({n, n}, umem::Host(), options);
  umem::fill(umem::on_host, square.host(umem::discard)->with_ghosts(), 1.0);
  return square;
}

Raw raw_of(Square &square) {
  auto guard = square.host(umem::write);
  return {guard->data, guard->extent(0), guard->stride(0)};
}

/* Arrays of n * n elements, which the loop goes through several times at once. */
void measure_size(index_t n, int times, int rounds, std::vector<Ratio> &rows) {
  Square u = new_square(n), v = new_square(n);
  Raw raw_u = raw_of(u), raw_v = raw_of(v);
  std::string where = ", " + std::to_string(n) + " x " + std::to_string(n);
  for (Loop const &loop : loops) {
    auto ours = [&] {
      for (int k = 0; k < times; k++) loop.ours(v, u);
    };
    auto theirs = [&] {
      for (int k = 0; k < times; k++) loop.theirs(raw_v, raw_u);
    };
    Samples samples = alternate(rounds, {[&] { return processor_seconds_of(ours); },
                                         [&] { return processor_seconds_of(theirs); }});
    std::size_t bytes = static_cast<std::size_t>(loop.arrays * u.size() * times) * sizeof(double);
    rows.push_back({loop.name + where, "the loop over a raw pointer", Measure::slowdown,
                    loop.target, samples[0], samples[1], bytes});
  }
}

} // namespace

void measure_arrays(Effort const &effort, std::vector<Ratio> &rows) {
  measure_size(180, 400, effort.short_rounds, rows); /* in the second cache */
  auto many = std::sqrt(static_cast<double>(effort.block) / sizeof(double));
  measure_size(static_cast<index_t>(many), 1, effort.short_rounds,
               rows); /* beyond the last cache */
}

} // namespace bench
