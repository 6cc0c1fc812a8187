/* ratio_index.cpp - for_each_indexed over arrays in RAM, compared with three loops that are written
 * out.
 *
 * Short rows show what a row costs besides its elements. The functors are as in a header of a
 * program, which other files may have too: compilers inline less of these. One thread, timed by its
 * processor. */
#include "ratio.h"

#include "place.h"

#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/for_each.hpp>

#include <string>

namespace bench {

using umem::index_t;
using Reader3 = umem::View<double const, 3>;
using Writer3 = umem::View<double, 3>;

struct Halve {
  template <class... I> void operator()(double &x, I...) const { x = 0.5 * x + 1; }
};
struct AddIndices {
  template <class... I> void operator()(double &x, I... i) const {
    x += static_cast<double>((i + ...));
  }
};
struct SevenPoints {
  Reader3 u;
  void operator()(double &x, index_t i, index_t j, index_t k) const {
    x = 0.4 * u(i, j, k) + 0.1 * (u(i - 1, j, k) + u(i + 1, j, k) + u(i, j - 1, k) +
                                  u(i, j + 1, k) + u(i, j, k - 1) + u(i, j, k + 1));
  }
};

namespace {

/* The elements as a program without umem has them. */
struct Raw {
  double *v;
  double const *u;
  index_t n, plane, row; /* extents, and elements from one plane, and one row, to the next */
};

[[gnu::noinline]] void halve(Writer3 const &v, Reader3 const &) {
  umem::for_each_indexed(umem::on_host, v, Halve());
}

[[gnu::noinline]] void raw_halve(Raw const &raw) {
  auto [v, u, n, plane, row] = raw;
  for (index_t i = 0; i < n; i++)
    for (index_t j = 0; j < n; j++)
      for (index_t k = 0; k < n; k++) {
        double &x = v[i * plane + j * row + k];
        x = 0.5 * x + 1;
      }
}

[[gnu::noinline]] void add_indices(Writer3 const &v, Reader3 const &) {
  umem::for_each_indexed(umem::on_host, v, AddIndices());
}

[[gnu::noinline]] void raw_add_indices(Raw const &raw) {
  auto [v, u, n, plane, row] = raw;
  for (index_t i = 0; i < n; i++)
    for (index_t j = 0; j < n; j++)
      for (index_t k = 0; k < n; k++) v[i * plane + j * row + k] += static_cast<double>(i + j + k);
}

[[gnu::noinline]] void seven_points(Writer3 const &v, Reader3 const &u) {
  umem::for_each_indexed(umem::on_host, v, umem::interior(v), SevenPoints{u.unit_stride()});
}

[[gnu::noinline]] void raw_seven_points(Raw const &raw) {
  auto [v, u, n, plane, row] = raw;
  for (index_t i = 1; i < n - 1; i++)
    for (index_t j = 1; j < n - 1; j++)
      for (index_t k = 1; k < n - 1; k++) {
        double const *at = u + i * plane + j * row + k;
        v[i * plane + j * row + k] =
            0.4 * at[0] + 0.1 * (at[-plane] + at[plane] + at[-row] + at[row] + at[-1] + at[1]);
      }
}

struct Loop {
  char const *name;
  void (*ours)(Writer3 const &v, Reader3 const &u);
  void (*theirs)(Raw const &raw);
  int arrays; /* read or written by it, a change being both */
};

constexpr Loop loops[] = {
    {"for_each_indexed, scaling", halve, raw_halve, 2},
    {"for_each_indexed, sum of indices", add_indices, raw_add_indices, 2},
    {"for_each_indexed, seven points", seven_points, raw_seven_points, 2},
};

/* Arrays of n * n * n elements, which the loop goes through several times at once. */
void measure_cube(index_t n, int times, int rounds, std::vector<Ratio> &rows) {
  umem::Array<double, 3> from({n, n, n}), to({n, n, n});
  umem::fill(umem::on_host, from, 1.0);
  umem::fill(umem::on_host, to, 1.0);
  auto reading = from.host(umem::read);
  auto writing = to.host(umem::write);
  Reader3 const u = *reading;
  Writer3 const v = *writing;
  Raw const raw = {v.data, u.data, n, v.strides[0], v.strides[1]};
  std::string const where = ", " + std::to_string(n) + "^3";
  for (Loop const &loop : loops) {
    auto ours = [&] {
      for (int k = 0; k < times; k++) loop.ours(v, u);
    };
    auto theirs = [&] {
      for (int k = 0; k < times; k++) loop.theirs(raw);
    };
    Samples samples = alternate(rounds, {[&] { return processor_seconds_of(ours); },
                                         [&] { return processor_seconds_of(theirs); }});
    std::size_t bytes = static_cast<std::size_t>(loop.arrays * u.size() * times) * sizeof(double);
    rows.push_back({loop.name + where, "three loops over a raw pointer", Measure::slowdown, 1.05,
                    samples[0], samples[1], bytes});
  }
}

} // namespace

void measure_indexed(Effort const &effort, std::vector<Ratio> &rows) {
  measure_cube(40, 200, effort.short_rounds, rows);
  measure_cube(96, 20, effort.short_rounds, rows);
  measure_cube(256, 1, effort.short_rounds, rows);
  measure_layouts(effort, rows);
  measure_orders(effort, rows);
  measure_reductions(effort, rows);
}

} // namespace bench
