/* ratio_reductions.cpp - reductions over arrays in RAM, whole and along a dimension, and fills of
 * ghost cells, compared with the loops that a program writes for them. One thread, timed by its
 * processor. */
#include "ratio.h"

#include "place.h"

#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/fill_ghosts.hpp>
#include <umem/reductions.hpp>
#include <umem/reductions_along.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace bench {
namespace {

using umem::index_t;
using umem::View;

/* ---- whole ---- */

/* Extremes of 16 partial results: this loop loses NaN. */
template <class T> [[gnu::noinline]] T raw_max(T const *u, index_t n) {
  T lane[16];
  for (int l = 0; l < 16; l++) lane[l] = u[l];
  for (index_t i = 16; i + 16 <= n; i += 16)
    for (int l = 0; l < 16; l++) lane[l] = u[i + l] > lane[l] ? u[i + l] : lane[l];
  T result = lane[0];
  for (T value : lane) result = value > result ? value : result;
  return result;
}

template <class T> [[gnu::noinline]] index_t raw_argmax(T const *u, index_t n) {
  index_t best = 0;
  for (index_t i = 1; i < n; i++)
    if (u[i] > u[best]) best = i;
  return best;
}

template <class T> [[gnu::noinline]] double raw_dot(T const *u, T const *v, index_t n) {
  double lane[16] = {};
  for (index_t i = 0; i + 16 <= n; i += 16)
    for (int l = 0; l < 16; l++)
      lane[l] += static_cast<double>(u[i + l]) * static_cast<double>(v[i + l]);
  double result = 0;
  for (double value : lane) result += value;
  return result;
}

template <class A, class B>
void add_row(std::string const &name, char const *against, std::size_t bytes, int times, int rounds,
             std::vector<Ratio> &rows, A const &ours, B const &theirs) {
  auto repeat = [times](auto const &loop) {
    return processor_seconds_of([&] {
      for (int k = 0; k < times; k++) loop();
    });
  };
  Samples samples =
      alternate(rounds, {[&] { return repeat(ours); }, [&] { return repeat(theirs); }});
  rows.push_back({name, against, Measure::slowdown, std::nullopt, samples[0], samples[1],
                  bytes * static_cast<std::size_t>(times)});
}

template <class T>
void measure_whole(char const *type, index_t n, int times, int rounds, std::vector<Ratio> &rows) {
  umem::Array<T, 1> array({n});
  umem::iota(array, 0);
  auto guard = array.host(umem::read);
  View<T const, 1> const u = *guard;
  auto const bytes = static_cast<std::size_t>(n) * sizeof(T);
  std::string const of = std::string(" of ") + type + ", " + std::to_string(n);
  auto row = [&](char const *name, char const *against, auto const &ours, auto const &theirs) {
    add_row(name + of, against, bytes, times, rounds, rows, ours, theirs);
  };
  row(
      "max", "16 maxima that lose NaN", [&] { use(umem::max(umem::on_host, u)); },
      [&] { use(raw_max(u.data, n)); });
  row(
      "minmax", "16 maxima that lose NaN", [&] { use(umem::minmax(umem::on_host, u).max); },
      [&] { use(raw_max(u.data, n)); });
  row(
      "argmax", "the loop over a raw pointer", [&] { use(umem::argmax(umem::on_host, u)[0]); },
      [&] { use(raw_argmax(u.data, n)); });
  row(
      "dot", "16 sums of products", [&] { use(umem::dot(umem::on_host, u, u)); },
      [&] { use(raw_dot(u.data, u.data, n)); });
  row(
      "norm", "16 sums of products", [&] { use(umem::norm(umem::on_host, u)); },
      [&] { use(raw_dot(u.data, u.data, n)); });
}

/* ---- along a dimension: against a copy of the input ---- */

void measure_rows(index_t length, int rounds, std::vector<Ratio> &rows) {
  index_t const count = (index_t(1) << 20) / length;
  umem::Array<double, 2> in({count, length}), copy({count, length});
  umem::Array<double, 1> out({count});
  umem::Array<index_t, 1> where({count});
  umem::fill(in, 1.0);
  umem::fill(copy, 0.0);
  auto from = in.host(umem::read);
  auto to = copy.host(umem::write);
  View<double const, 2> const u = *from;
  auto const bytes = in.nbytes();
  auto copies = [&] {
    std::memcpy(to->data, u.data, bytes);
    use(*to->data);
  };
  std::string const of = " of rows of " + std::to_string(length);
  add_row(
      "sum_along" + of, "a copy of the input", bytes, 1, rounds, rows,
      [&] { umem::sum_along(u, 1, out); }, copies);
  add_row(
      "argmax_along" + of, "a copy of the input", bytes, 1, rounds, rows,
      [&] { umem::argmax_along(u, 1, where); }, copies);
}

/* ---- ghost cells ---- */

[[gnu::noinline]] void raw_periodic(double *first, index_t n) {
  index_t const row = n + 2, plane = row * row;
  auto at = [=](index_t i, index_t j, index_t k) -> double & {
    return first[i * plane + j * row + k];
  };
  for (index_t j = 1; j <= n; j++)
    for (index_t k = 1; k <= n; k++) {
      at(0, j, k) = at(n, j, k);
      at(n + 1, j, k) = at(1, j, k);
    }
  for (index_t i = 0; i < row; i++)
    for (index_t k = 1; k <= n; k++) {
      at(i, 0, k) = at(i, n, k);
      at(i, n + 1, k) = at(i, 1, k);
    }
  for (index_t i = 0; i < row; i++)
    for (index_t j = 0; j < row; j++) {
      at(i, j, 0) = at(i, j, n);
      at(i, j, n + 1) = at(i, j, 1);
    }
}

void measure_ghosts(index_t n, int times, int rounds, std::vector<Ratio> &rows) {
  umem::ArrayOptions<3> options;
  options.ghosts = {1, 1, 1};
  umem::Array<double, 3> array({n, n, n}, umem::Host(), options);
  umem::fill(umem::on_host, array.part().with_ghosts(), 1.0);
  auto guard = array.host(umem::write);
  View<double, 3> const u = *guard;
  double *const first = &u(-1, -1, -1);
  add_row(
      "fill_ghosts, periodic, " + std::to_string(n) + "^3", "loops over a raw pointer",
      static_cast<std::size_t>(12 * n * n) * sizeof(double), times, rounds, rows,
      [&] { umem::fill_ghosts(umem::on_host, u, umem::periodic); },
      [&] { raw_periodic(first, n); });
}

} // namespace

void measure_reductions(Effort const &effort, std::vector<Ratio> &rows) {
  for (index_t n : {index_t(1) << 12, index_t(1) << 20}) {
    int const times = n < (1 << 20) ? 200 : 1;
    measure_whole<float>("float", n, times, effort.short_rounds, rows);
    measure_whole<double>("double", n, times, effort.short_rounds, rows);
  }
  for (index_t length : {2, 3, 8, 31, 512}) measure_rows(length, effort.short_rounds, rows);
  measure_ghosts(40, 50, effort.short_rounds, rows);
  measure_ghosts(200, 2, effort.short_rounds, rows);
}

} // namespace bench
