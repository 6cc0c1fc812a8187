/* kernels_reduce.cpp - reductions and sweeps on the host, against plain loops. */
#include "kernels.hpp"

#include <umem/fill.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>

#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <cmath>
#include <complex>
#include <limits>
#include <random>

namespace {

using umem::index; /* here, since POSIX has a function of that name */

template <class T> class Reduce : public testing::Test {};
TYPED_TEST_SUITE(Reduce, NumberTypes);

TYPED_TEST(Reduce, SumMinMax) {
  using T = TypeParam;
  with_everything<T>([](auto place, auto view, std::vector<T> &) {
    double sum = 0, low = 1000, high = -1000;
    plainly(view, [&](T &x, auto const &) {
      sum += static_cast<double>(x);
      low = std::min(low, static_cast<double>(x));
      high = std::max(high, static_cast<double>(x));
    });
    EXPECT_EQ(static_cast<double>(umem::sum(place, view)), sum);
    if (view.size() == 0) {
      EXPECT_THROWS(umem::min(place, view), umem::value_error, "min of no elements");
      EXPECT_THROWS(umem::max(place, view), umem::value_error, "max of no elements");
    } else {
      EXPECT_EQ(static_cast<double>(umem::min(place, view)), low);
      EXPECT_EQ(static_cast<double>(umem::max(place, view)), high);
    }
  });
}

TYPED_TEST(Reduce, OfTwoViews) {
  using T = TypeParam;
  with_everything<T>([](auto place, auto view, std::vector<T> &) {
    std::vector<double> others(static_cast<std::size_t>(view.size()));
    umem::View<double, decltype(view)::rank> other(others.data(), view.extents);
    umem::iota(place, other, 1);
    double dot = 5;
    plainly(view, [&](T &x, auto const &at) { dot += static_cast<double>(x) * other(at); });
    EXPECT_EQ(
        umem::transform_reduce(place, view, other, 5.0, umem::plus(),
                               [](T const &x, double y) { return static_cast<double>(x) * y; }),
        dot);
  });
}

TYPED_TEST(Reduce, AlongEachDimension) {
  using T = TypeParam;
  with_everything<T>([](auto place, auto view, std::vector<T> &) {
    constexpr int N = decltype(view)::rank;
    if constexpr (N > 0) {
      for (int axis = 0; axis < N; axis++) {
        SCOPED_TRACE("axis " + std::to_string(axis));
        umem::Extents<N - 1> extents;
        for (int k = 0; k < N - 1; k++) extents[k] = view.extent(k + (k >= axis));
        auto count = static_cast<std::size_t>(extents.product());
        std::vector<double> sums(count), expected(count), highs(count);
        umem::View<double, N - 1> sum(sums.data(), extents), plain(expected.data(), extents);
        umem::View<double, N - 1> high(highs.data(), extents);
        plainly(view, [&](T &x, umem::Extents<N> const &at) {
          umem::Extents<N - 1> to;
          for (int k = 0; k < N - 1; k++) to[k] = at[k + (k >= axis)];
          plain(to) += static_cast<double>(x);
        });
        umem::sum_along(place, view, axis, sum);
        EXPECT_EQ(sums, expected);
        umem::max_along(place, view, axis, high);
        plainly(high, [&](double &x, umem::Extents<N - 1> const &at) {
          double largest = -std::numeric_limits<double>::infinity();
          if constexpr (std::is_integral_v<T>)
            largest = static_cast<double>(std::numeric_limits<T>::lowest());
          for (index n = 0; n < view.extent(axis); n++) {
            umem::Extents<N> from;
            for (int k = 0; k < N - 1; k++) from[k + (k >= axis)] = at[k];
            from[axis] = n;
            largest = std::max(largest, static_cast<double>(view(from)));
          }
          EXPECT_EQ(x, largest);
        });
      }
    }
  });
}

TEST(Reduce, OfManyOutputs) { /* more than one part of a row */
  std::vector<float> in(2 * 10000), out(10000);
  umem::View<float, 2> view(in.data(), {2, 10000});
  umem::iota(umem::on_host, view, 0);
  umem::sum_along(umem::on_host_threads(2), view, 0, umem::View<float, 1>(out.data(), {10000}));
  for (std::size_t i = 0; i < 10000; i++) ASSERT_EQ(out[i], static_cast<float>(10000 + 2 * i));
}

TEST(Reduce, SumsInAWiderType) {
  std::vector<float> ones(1 << 25, 1.0f); /* more than a float can count */
  umem::View<float, 1> view(ones.data(), {1 << 25});
  static_assert(std::is_same_v<decltype(umem::sum(umem::on_host, view)), double>);
  EXPECT_EQ(umem::sum(umem::on_host, view), 1 << 25);
  std::vector<std::int8_t> bytes(1000, 127);
  EXPECT_EQ(umem::sum(umem::on_host, umem::View<std::int8_t, 1>(bytes.data(), {1000})), 127000);
  bool flags[] = {true, false, true};
  EXPECT_EQ(umem::sum(umem::on_host, umem::View<bool, 1>(flags, {3})), 2);
}

static_assert(std::is_same_v<umem::accumulator<__half>, float>);
static_assert(std::is_same_v<umem::accumulator<__nv_bfloat16>, float>);
static_assert(std::is_same_v<umem::accumulator<float const>, double>);

template <class T> void expect_float_sums_of() {
  std::vector<T> ones(3 * 4001, T(1.0f)); /* more than it can count */
  umem::View<T, 2> view(ones.data(), {3, 4001});
  static_assert(std::is_same_v<decltype(umem::sum(umem::on_host, view)), float>);
  EXPECT_EQ(umem::sum(umem::on_host, view), 3 * 4001);
  float sums[3];
  umem::sum_along(umem::on_host, view, 1, umem::View<float, 1>(sums, {3}));
  for (float sum : sums) EXPECT_EQ(sum, 4001);
}

TEST(Reduce, SumsOfHalvesAreFloats) {
#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
  expect_float_sums_of<__half>();
  expect_float_sums_of<__nv_bfloat16>();
#endif
#ifdef __FLT16_MANT_DIG__
  expect_float_sums_of<_Float16>();
#endif
}

TEST(Reduce, ErrorsOfSumsGrowSlowly) {
  index const n = 1 << 22;
  std::vector<double> tenths(static_cast<std::size_t>(n), 0.1);
  double sum = umem::sum(umem::on_host, umem::View<double, 1>(tenths.data(), {n}));
  double exact = 0.1 * static_cast<double>(n); /* rounded once */
  EXPECT_LE(std::fabs(sum - exact), 1e-14 * exact);
  double in_turn = 0;
  for (double x : tenths) in_turn += x;
  EXPECT_GT(std::fabs(in_turn - exact), 1e-12 * exact);
}

TEST(Reduce, NaNComesThrough) {
  for (int at : {0, 1, 17, 500, 2047}) {
    std::vector<double> numbers(2048, 1.0);
    numbers[static_cast<std::size_t>(at)] = std::nan("");
    umem::View<double, 1> view(numbers.data(), {2048});
    EXPECT_TRUE(std::isnan(umem::min(umem::on_host, view))) << at;
    EXPECT_TRUE(std::isnan(umem::max(umem::on_host, view))) << at;
    EXPECT_TRUE(std::isnan(umem::sum(umem::on_host, view))) << at;
  }
}

TEST(Reduce, OfInfinities) {
  double const infinity = std::numeric_limits<double>::infinity();
  double numbers[] = {infinity, infinity};
  EXPECT_EQ(umem::min(umem::on_host, umem::View<double, 1>(numbers, {2})), infinity);
  EXPECT_EQ(umem::max(umem::on_host, umem::View<double, 1>(numbers, {2})), infinity);
}

TEST(Reduce, ByAUsersOperation) {
  std::vector<std::uint32_t> numbers(1000);
  std::uint32_t all = 7;
  for (std::uint32_t n = 0; n < 1000; n++) all ^= numbers[n] = n * 2654435761u;
  umem::View<std::uint32_t, 2> view(numbers.data(), {10, 100});
  auto exclusive_or = [](std::uint32_t a, std::uint32_t b) { return a ^ b; };
  EXPECT_EQ(umem::reduce(umem::on_host, view.transpose(), std::uint32_t(7), exclusive_or), all);
  EXPECT_EQ(umem::reduce(umem::on_host, view.slice(0, 3, 3), std::uint32_t(7), exclusive_or), 7u);
}

TEST(Reduce, ComplexNumbers) {
  std::vector<std::complex<float>> numbers(100, {1, 2});
  EXPECT_EQ(umem::sum(umem::on_host, umem::View<std::complex<float>, 1>(numbers.data(), {100})),
            (std::complex<double>(100, 200)));
}

TEST(Reduce, OverIndices) {
  auto sum = [](auto... i) { return (index(i) + ... + index(0)); };
  with_places([&](auto place) {
    EXPECT_EQ(umem::for_each_index_reduce(place, umem::Extents<0>(), index(5), umem::plus(), sum),
              5);
    EXPECT_EQ(
        umem::for_each_index_reduce(place, umem::Extents<1>(1000), index(5), umem::plus(), sum),
        499505);
    EXPECT_EQ(umem::for_each_index_reduce(place, umem::Range<2>({-3, 10}, {400, 12}), index(0),
                                          umem::maximum(), sum),
              399 + 11);
    EXPECT_EQ(
        umem::for_each_index_reduce(place, umem::Extents<3>(2, 0, 2), index(-1), umem::plus(), sum),
        -1);
  });
}

struct Jacobi {
  umem::View<double const, 2> u;
  double operator()(double &value, index i, index j) const {
    value = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
    return std::fabs(value - u(i, j));
  }
};

TEST(Sweep, WritesAndReduces) {
  with_places([](auto place) {
    for (bool transposed : {false, true}) {
      index const nx = 37, ny = 601;
      std::vector<double> a(nx * ny), b(nx * ny, -1), expected(nx * ny, -1);
      std::mt19937 random(1);
      for (double &x : a) x = static_cast<double>(random() % 1000);
      umem::View<double, 2> u(a.data(), {nx, ny}), v(b.data(), {nx, ny}),
          w(expected.data(), {nx, ny});
      if (transposed) u = u.transpose(), v = v.transpose(), w = w.transpose();
      double norm = 0;
      for (index i = 1; i < u.extent(0) - 1; i++)
        for (index j = 1; j < u.extent(1) - 1; j++) norm = std::max(norm, Jacobi{u}(w(i, j), i, j));
      EXPECT_EQ(umem::sweep(place, v, umem::interior(v), 0.0, umem::maximum(), Jacobi{u}), norm);
      EXPECT_EQ(b, expected);
    }
  });
}

TEST(Sweep, MayWriteGhostCellsButNoFurther) {
  std::vector<int> numbers(16, 0);
  auto view = umem::View<int, 2>::with_ghosts_from(numbers.data(), {2, 2}, {1, 1});
  auto one = [](int &value, index, index) { return value = 1; };
  EXPECT_EQ(
      umem::sweep(umem::on_host, view, umem::Range<2>({-1, -1}, {3, 3}), 0, umem::plus(), one), 16);
  EXPECT_EQ(numbers, std::vector<int>(16, 1));
  EXPECT_THROWS(
      umem::sweep(umem::on_host, view, umem::Range<2>({0, 0}, {2, 4}), 0, umem::plus(), one),
      umem::index_error, "index 3 is outside the range [-1, 3) of dimension 1");
  EXPECT_EQ(umem::sweep(umem::on_host, view, umem::Range<2>({9, 9}, {9, 10}), 7, umem::plus(), one),
            7);
}

TEST(Refusals, OfDimensionsAndExtents) {
  umem::View<int, 2> in(nullptr, {2, 3});
  umem::View<int, 1> out(nullptr, {3});
  EXPECT_THROWS(umem::sum_along(umem::on_host, in, 1, out), umem::value_error,
                "reduce_along: the extents (2, 3) without dimension 1 are not (3,)");
  EXPECT_THROWS(umem::sum_along(umem::on_host, in, 2, out), umem::index_error,
                "there is no dimension 2 in a view of rank 2");
  EXPECT_THROW(umem::sum(umem::on_device(), in), umem::not_supported_error);
}

} // namespace
