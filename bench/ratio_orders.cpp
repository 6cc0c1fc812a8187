/* ratio_orders.cpp - loops over arrays in column-major order, and between the two orders, compared
 * with the loops over raw pointers that a program would have; and a resize compared with a new
 * array and a copy.
 *
 * In RAM, with one thread, timed by its processor. */
#include "ratio.h"

#include "place.h"

#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/for_each.hpp>
#include <umem/reduce.hpp>
#include <umem/transform.hpp>

#include <optional>
#include <string>

namespace bench {

using umem::index_t;

namespace {

using Square = umem::Array<double, 2>;

struct Raw {
  double *to;
  double const *from;
  index_t n;
};

/* As a program has them: each in the order of the memory that it writes. */
[[gnu::noinline]] void fill_of(Raw const &raw) {
  for (index_t i = 0; i < raw.n * raw.n; i++) raw.to[i] = 2;
}
[[gnu::noinline]] void double_of(Raw const &raw) {
  for (index_t i = 0; i < raw.n * raw.n; i++) raw.to[i] = 2 * raw.from[i];
}
[[gnu::noinline]] double sum_of(Raw const &raw) {
  double sum = 0;
  for (index_t i = 0; i < raw.n * raw.n; i++) sum += raw.from[i];
  return sum;
}
[[gnu::noinline]] void columns_of(Raw const &raw) {
  for (index_t j = 0; j < raw.n; j++)
    for (index_t i = 0; i < raw.n; i++)
      raw.to[i + j * raw.n] = static_cast<double>(i) + 3 * static_cast<double>(j);
}
[[gnu::noinline]] void double_transposed(Raw const &raw) {
  for (index_t j = 0; j < raw.n; j++)
    for (index_t i = 0; i < raw.n; i++) raw.to[i + j * raw.n] = 2 * raw.from[i * raw.n + j];
}
[[gnu::noinline]] void copy_transposed(Raw const &raw) {
  for (index_t j = 0; j < raw.n; j++)
    for (index_t i = 0; i < raw.n; i++) raw.to[i + j * raw.n] = raw.from[i * raw.n + j];
}

void measure_order(index_t n, int times, int rounds, std::vector<Ratio> &rows) {
  Square columns({n, n}, umem::column_major), from({n, n}, umem::column_major), others({n, n});
  for (Square *array : {&columns, &from, &others}) umem::fill(umem::on_host, *array, 1.0);
  Raw const raw{columns.host(umem::write)->data, from.host(umem::read)->data, n};
  Raw const between{raw.to, others.host(umem::read)->data, n};
  [[maybe_unused]] static double volatile total;

  auto add = [&](char const *name, char const *against, std::optional<double> target,
                 index_t arrays, auto const &ours, auto const &theirs) {
    auto some = [times](auto const &call) {
      for (int k = 0; k < times; k++) call();
    };
    Samples samples =
        alternate(rounds, {[&] { return processor_seconds_of([&] { some(ours); }); },
                           [&] { return processor_seconds_of([&] { some(theirs); }); }});
    std::size_t bytes = static_cast<std::size_t>(arrays * n * n * times) * sizeof(double);
    rows.push_back({std::string(name) + ", " + std::to_string(n) + "^2", against, Measure::slowdown,
                    target, samples[0], samples[1], bytes});
  };
  std::optional<double> const target = n < 1000 ? 1.2 : 1.05; /* calls */
  std::optional<double> const between_orders = n < 1000 ? std::nullopt : target;
  char const *loops = "loops over raw pointers";
  auto twice = [](double x) { return 2 * x; };
  add(
      "fill, column-major", loops, target, 1, [&] { umem::fill(columns, 2.0); },
      [&] { fill_of(raw); });
  add(
      "transform, column-major", loops, target, 2, [&] { umem::transform(from, columns, twice); },
      [&] { double_of(raw); });
  add(
      "sum, column-major", loops, target, 1, [&] { total = umem::sum(from); },
      [&] { total = sum_of(raw); });
  add(
      "for_each with indices, column-major", loops, target, 1,
      [&] {
        umem::for_each_indexed(columns, [](double &x, index_t i, index_t j) {
          x = static_cast<double>(i) + 3 * static_cast<double>(j);
        });
      },
      [&] { columns_of(raw); });
  add(
      "transform, row-major to column-major", loops, between_orders, 2,
      [&] { umem::transform(others, columns, twice); }, [&] { double_transposed(between); });
  add(
      "copy, row-major to column-major", loops, between_orders, 2,
      [&] { umem::copy(others, columns); }, [&] { copy_transposed(between); });
}

void measure_resize(index_t n, int rounds, std::vector<Ratio> &rows) {
  Square small({n, n});
  umem::fill(umem::on_host, small, 1.0);
  index_t const more = n + n / 4;
  Samples samples = alternate(
      rounds, {[&] {
                 Square array(small);
                 return processor_seconds_of([&] { array.resize({more, more}); });
               },
               [&] {
                 Square array(small);
                 return processor_seconds_of([&] {
                   Square larger({more, more});
                   umem::copy(array.part(), larger.part(umem::range(0, n), umem::range(0, n)));
                   array = std::move(larger);
                 });
               }});
  rows.push_back({"resize, " + std::to_string(n) + "^2 to " + std::to_string(more) + "^2",
                  "a new array and a copy", Measure::slowdown, 1.1, samples[0], samples[1],
                  static_cast<std::size_t>(2 * n * n) * sizeof(double)});
}

} // namespace

void measure_orders(Effort const &effort, std::vector<Ratio> &rows) {
  measure_order(180, 200, effort.short_rounds, rows);
  measure_order(2000, 1, effort.short_rounds, rows);
  measure_resize(2000, effort.short_rounds, rows);
}

} // namespace bench
