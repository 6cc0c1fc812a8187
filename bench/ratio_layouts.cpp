/* ratio_layouts.cpp - for_each over three operands, z = a x + y, in RAM: x in several layouts,
 * compared with the loops over raw pointers that a program would have for each layout.
 *
 * The row "three arrays" is a call on arrays, with its guards; the others work on views. One
 * thread, timed by its processor. */
#include "ratio.h"

#include "place.h"

#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/for_each.hpp>

#include <optional>
#include <string>

namespace bench {

using umem::index_t;

struct ScaleAndAdd {
  double a;
  void operator()(double &z, double x, double y) const { z = a * x + y; }
};

namespace {

using Writer = umem::View<double, 2>;
using Reader = umem::View<double const, 2>;

/* x as a program without umem has it: the elements from one row, and from one column, to the
 * next. */
struct Raw {
  double *z;
  double const *x, *y;
  index_t n, z_row, x_row, x_column, y_row;
};

[[gnu::noinline]] void all_contiguous(Raw const &raw) {
  for (index_t i = 0; i < raw.n * raw.n; i++) raw.z[i] = 0.5 * raw.x[i] + raw.y[i];
}
[[gnu::noinline]] void rows_of_unit_stride(Raw const &raw) {
  for (index_t i = 0; i < raw.n; i++)
    for (index_t j = 0; j < raw.n; j++)
      raw.z[i * raw.z_row + j] = 0.5 * raw.x[i * raw.x_row + j] + raw.y[i * raw.y_row + j];
}
[[gnu::noinline]] void rows_of_any_stride(Raw const &raw) {
  for (index_t i = 0; i < raw.n; i++)
    for (index_t j = 0; j < raw.n; j++)
      raw.z[i * raw.z_row + j] =
          0.5 * raw.x[i * raw.x_row + j * raw.x_column] + raw.y[i * raw.y_row + j];
}
[[gnu::noinline]] void rows_that_share_one(Raw const &raw) {
  for (index_t i = 0; i < raw.n; i++)
    for (index_t j = 0; j < raw.n; j++)
      raw.z[i * raw.z_row + j] = 0.5 * raw.x[i * raw.x_row] + raw.y[i * raw.y_row + j];
}

[[gnu::noinline]] void of_views(Writer const &z, Reader const &x, Reader const &y) {
  umem::for_each(umem::on_host, ScaleAndAdd{0.5}, umem::discard(z), x, y);
}
using Square = umem::Array<double, 2>;
[[gnu::noinline]] void of_arrays(Square &z, Square const &x, Square const &y) {
  umem::for_each(ScaleAndAdd{0.5}, umem::discard(z), x, y);
}

/* Arrays of n * n elements, which the loop goes through several times at once. */
void measure_square(index_t n, int times, int rounds, std::vector<Ratio> &rows) {
  Square::Options ghosts;
  ghosts.ghosts = {1, 1};
  Square plain({n, n}), other({n, n}), wide({n, 2 * n}), to({n, n});
  Square ghosted({n, n}, umem::Host(), ghosts), to_ghosted({n, n}, umem::Host(), ghosts);
  for (Square *array : {&plain, &other, &wide, &to, &ghosted, &to_ghosted})
    umem::fill(umem::on_host, array->part().with_ghosts(), 1.0);
  std::optional<double> const target = n < 100 ? 1.2 : 1.05; /* calls, and short rows */
  std::string const where = ", " + std::to_string(n) + "^2";

  auto add = [&](char const *name, std::optional<double> wanted, auto const &ours,
                 auto const &theirs) {
    auto some = [times](auto const &call) {
      for (int k = 0; k < times; k++) call();
    };
    Samples samples =
        alternate(rounds, {[&] { return processor_seconds_of([&] { some(ours); }); },
                           [&] { return processor_seconds_of([&] { some(theirs); }); }});
    std::size_t bytes = static_cast<std::size_t>(3 * n * n * times) * sizeof(double);
    rows.push_back({std::string("for_each, ") + name + where, "loops over raw pointers",
                    Measure::slowdown, wanted, samples[0], samples[1], bytes});
  };
  auto add_views = [&](char const *name, Writer const &z, Reader const &x, Reader const &y,
                       void (*loop)(Raw const &)) {
    Raw const raw{z.data,       x.data,       y.data,       n,
                  z.strides[0], x.strides[0], x.strides[1], y.strides[0]};
    add(
        name, target, [&] { of_views(z, x, y); }, [&] { loop(raw); });
  };
  Writer const z = *to.host(umem::write), gz = *to_ghosted.host(umem::write);
  Reader const x = *plain.host(umem::read), y = *other.host(umem::read);
  Reader const w = *wide.host(umem::read), g = *ghosted.host(umem::read);
  Raw const raw{z.data, x.data, y.data, n, n, n, 1, n};
  add(
      "three arrays", n < 100 ? std::nullopt : target, [&] { of_arrays(to, plain, other); },
      [&] { all_contiguous(raw); });
  add_views("contiguous", z, x, y, all_contiguous);
  add_views("interiors", gz, g, g, rows_of_unit_stride);
  add_views("an interior among others", z, g, y, rows_of_unit_stride);
  add_views("every second column", z, w.slice(1, 0, 2 * n, 2), y, rows_of_any_stride);
  add_views("transposed", z, x.transpose(), y, rows_of_any_stride);
  add_views("one element for each row", z, {x.data, {n, n}, {1, 0}}, y, rows_that_share_one);
  add_views("one row for all", z, {x.data, {n, n}, {0, 1}}, y, rows_of_unit_stride);
}

} // namespace

void measure_layouts(Effort const &effort, std::vector<Ratio> &rows) {
  measure_square(40, 2000, effort.short_rounds, rows);
  measure_square(180, 200, effort.short_rounds, rows);
  measure_square(2000, 1, effort.short_rounds, rows);
}

} // namespace bench
