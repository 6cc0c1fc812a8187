/* kernels_reduce.cpp - reductions and sweeps on the host, against plain loops. */
#include "kernels.hpp"
#include "kernels_functors.hpp"

#include <umem/compare.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/reductions.hpp>
#include <umem/reductions_along.hpp>
#include <umem/sweep.hpp>

namespace {

using umem::index_t; /* here, since POSIX has a function of that name */

/* The extents, or the indices, of all dimensions but one. */
template <int N> umem::Extents<N - 1> without(umem::Extents<N> const &at, int axis) {
  umem::Extents<N - 1> rest;
  for (int k = 0; k < N - 1; k++) rest[k] = at[k + (k >= axis)];
  return rest;
}

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
        umem::Extents<N - 1> const extents = without(view.extents, axis);
        auto count = static_cast<std::size_t>(extents.product());
        std::vector<double> sums(count), expected(count), highs(count);
        umem::View<double, N - 1> sum(sums.data(), extents), plain(expected.data(), extents);
        umem::View<double, N - 1> high(highs.data(), extents);
        plainly(view, [&](T &x, umem::Extents<N> const &at) {
          plain(without(at, axis)) += static_cast<double>(x);
        });
        umem::sum_along(place, view, axis, sum);
        EXPECT_EQ(sums, expected);
        if (view.extent(axis) == 0) {
          EXPECT_THROWS(umem::max_along(place, view, axis, high), umem::value_error,
                        "max_along of no elements");
          EXPECT_THROWS(umem::min_along(place, view, axis, high), umem::value_error,
                        "min_along of no elements");
          continue;
        }
        umem::max_along(place, view, axis, high);
        plainly(high, [&](double &x, umem::Extents<N - 1> const &at) {
          double largest = -std::numeric_limits<double>::infinity();
          if constexpr (std::is_integral_v<T>)
            largest = static_cast<double>(std::numeric_limits<T>::lowest());
          for (index_t n = 0; n < view.extent(axis); n++) {
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

static_assert(std::is_same_v<umem::accumulator<float const>, double>);
static_assert(std::is_same_v<umem::accumulator<std::complex<float>>, std::complex<double>>);
static_assert(std::is_same_v<umem::accumulator<std::complex<double>>, std::complex<double>>);

/* As other libraries have them. */
template <class T> struct OwnComplex {
  using value_type = T;
  T re, im;

  OwnComplex(T r = 0, T i = 0) : re(r), im(i) {}
  template <class A> OwnComplex(OwnComplex<A> const &a) : re(a.re), im(a.im) {}
  T real() const { return re; }
  T imag() const { return im; }
  OwnComplex operator+(OwnComplex const &b) const { return {re + b.re, im + b.im}; }
};
template <class T> struct NarrowComplex { /* that is not made from one of another type */
  using value_type = T;
  T real() const { return 0; }
  T imag() const { return 0; }
};
static_assert(std::is_same_v<umem::accumulator<OwnComplex<float>>, OwnComplex<double>>);
static_assert(std::is_same_v<umem::accumulator<OwnComplex<double> const>, OwnComplex<double>>);
static_assert(std::is_same_v<umem::accumulator<OwnComplex<int>>, OwnComplex<int>>);
static_assert(std::is_same_v<umem::accumulator<NarrowComplex<float>>, NarrowComplex<float>>);
static_assert(std::is_same_v<umem::accumulator<std::pair<float, int>>, std::pair<float, int>>);

TEST(Reduce, ErrorsOfSumsGrowSlowly) {
  index_t const n = 1 << 22;
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

TEST(Reduce, ByAnOperationThatReturnsAWiderType) { /* as the sum of two shorts is an int */
  using Short = std::int16_t;
  auto add = [](Short a, Short b) { return a + b; };
  auto itself = [](Short x) { return x; };
  with_everything<Short>([&](auto place, auto view, std::vector<Short> &) {
    constexpr int N = decltype(view)::rank;
    int sum = 7;
    plainly(view, [&](Short &x, auto const &) { sum += x; });
    auto const expected = static_cast<Short>(sum); /* which wraps around, if at all */
    EXPECT_EQ(umem::reduce(place, view, Short(7), add), expected);
    EXPECT_EQ(umem::transform_reduce(place, view, Short(7), add, itself), expected);
    if constexpr (N > 0) {
      std::vector<Short> found(static_cast<std::size_t>(view.size()), 0);
      for (int axis = 0; axis < N; axis++) {
        umem::View<Short, N - 1> out(found.data(), without(view.extents, axis));
        if (view.extent(axis) == 0) continue;
        umem::reduce_along(place, view, axis, out, Short(0), add);
        EXPECT_EQ(umem::reduce(place, out, Short(7), add), expected) << axis;
      }
    }
  });
  auto low = [](auto... i) { return static_cast<Short>((i + ... + 0) % 5); };
  with_places([&](auto place) {
    EXPECT_EQ(umem::for_each_index_reduce(place, umem::Extents<2>(3, 1000), Short(1), add, low),
              6001);
  });
}

TEST(Reduce, ComplexNumbers) {
  std::vector<std::complex<float>> numbers(100, {1, 2});
  EXPECT_EQ(umem::sum(umem::on_host, umem::View<std::complex<float>, 1>(numbers.data(), {100})),
            (std::complex<double>(100, 200)));
  std::vector<OwnComplex<float>> ones(1 << 25, {1, 0}); /* more than a float can count */
  umem::View<OwnComplex<float>, 1> view(ones.data(), {1 << 25});
  EXPECT_EQ(umem::sum(umem::on_host, view).real(), 1 << 25);
}

/* ---- along one dimension ---- */

/* Of halves, as floats, and of products with other numbers, which may lie in another way. */
template <class T> void expect_transformed() {
  with_everything<T>([](auto place, auto view, std::vector<T> &) {
    constexpr int N = decltype(view)::rank;
    if constexpr (N > 0) {
      std::vector<double> others(static_cast<std::size_t>(view.size()));
      umem::View<double, N> other(others.data(), view.extents);
      umem::iota(place, other, 1);
      for (int axis = 0; axis < N; axis++) {
        SCOPED_TRACE("axis " + std::to_string(axis));
        umem::Extents<N - 1> const extents = without(view.extents, axis);
        auto const count = static_cast<std::size_t>(extents.product());
        std::vector<double> found(count, -1), halves(count, 3), products(count, 7);
        umem::View<double, N - 1> out(found.data(), extents);
        plainly(view, [&](T &x, umem::Extents<N> const &at) {
          std::size_t n = static_cast<std::size_t>(&out(without(at, axis)) - found.data());
          halves[n] += 0.5 * static_cast<double>(x);
          products[n] += static_cast<double>(x) * other(at);
        });
        umem::transform_reduce_along(place, view, axis, out, 3.f, umem::plus(), HalfOf());
        EXPECT_EQ(found, halves);
        umem::transform_reduce_along(place, view, other, axis, out, 7.0, umem::plus(), Product());
        EXPECT_EQ(found, products);
        umem::transform_reduce_along(place, other, view, axis, out, 7.0, umem::plus(), Product());
        EXPECT_EQ(found, products);
      }
    }
  });
}

TEST(Along, TransformsBytes) { expect_transformed<std::int8_t>(); }
TEST(Along, TransformsDoubles) { expect_transformed<double>(); }

TEST(Along, OfManyOutputs) { /* more than one part of a row */
  std::vector<float> in(2 * 10000);
  std::vector<double> out(10000);
  umem::View<float, 2> view(in.data(), {2, 10000});
  umem::View<double, 1> to(out.data(), {10000});
  umem::iota(umem::on_host, view, 0);
  umem::transform_reduce_along(umem::on_host_threads(2), view, view, 0, to, 0.0, umem::plus(),
                               Product());
  for (std::size_t i = 0; i < 10000; i++) {
    double low = static_cast<double>(i), high = low + 10000;
    ASSERT_EQ(out[i], low * low + high * high);
  }
}

TEST(Along, ConvertsWhatTheFunctionReturns) { /* before the operation, to the type of init */
  int numbers[] = {1, 2, 3, 4, 5, 6};
  double sums[3];
  umem::View<double, 1> out(sums, {3});
  umem::View<int, 2> in(numbers, {2, 3});
  umem::transform_reduce_along(umem::on_host, in, 0, out, 100, umem::plus(), HalfOf());
  EXPECT_EQ(std::vector<double>(sums, sums + 3), (std::vector<double>{102, 103, 104}));
}

TEST(Along, OfNothingIsTheInit) {
  std::atomic<int> calls{0};
  auto count = [&](double x) { return calls++, x; };
  with_places([&](auto place) {
    std::vector<double> out(7, -1);
    umem::transform_reduce_along(place, umem::View<double, 2>(nullptr, {7, 0}), 1,
                                 umem::View<double, 1>(out.data(), {7}), 2.5f, umem::plus(), count);
    EXPECT_EQ(out, std::vector<double>(7, 2.5));
    umem::transform_reduce_along(place, umem::View<double, 2>(nullptr, {7, 0}), 0,
                                 umem::View<double, 1>(nullptr, {0}), 2.5f, umem::plus(), count);
  });
  EXPECT_EQ(calls, 0);
}

TEST(Along, KeepsGhostCellsOfTheOutput) {
  std::vector<int> in(4 * 4, 1), out(3 * 3, -1);
  auto from = umem::View<int, 3>::with_ghosts_from(in.data(), {4, 1, 4}, {0, 0, 0});
  auto to = umem::View<int, 2>::with_ghosts_from(out.data(), {1, 1}, {1, 1});
  umem::transform_reduce_along(umem::on_host, from.slice(2, 0, 1), 0, to, 0.0, umem::plus(),
                               HalfOf());
  EXPECT_EQ(out, (std::vector<int>{-1, -1, -1, -1, 2, -1, -1, -1, -1}));
}

TEST(Along, NaNStaysInItsOutput) {
  constexpr index_t rows = 70, columns = 300;
  std::vector<double> numbers(rows * columns, 1.0);
  umem::View<double, 2> view(numbers.data(), {rows, columns});
  view(41, 257) = std::nan("");
  auto check = [&](auto const &reduce) {
    for (auto const &in : {view, view.transpose()})
      for (int axis : {0, 1}) {
        index_t count = in.extent(1 - axis), at = count == rows ? 41 : 257;
        std::vector<double> out(static_cast<std::size_t>(count));
        reduce(in, axis, umem::View<double, 1>(out.data(), {count}));
        for (index_t n = 0; n < count; n++)
          EXPECT_EQ(std::isnan(out[static_cast<std::size_t>(n)]), n == at) << axis << ' ' << n;
      }
  };
  with_places([&](auto place) {
    check([&](auto in, int axis, auto out) { umem::sum_along(place, in, axis, out); });
    check([&](auto in, int axis, auto out) { umem::min_along(place, in, axis, out); });
    check([&](auto in, int axis, auto out) { umem::max_along(place, in, axis, out); });
    check([&](auto in, int axis, auto out) {
      umem::transform_reduce_along(place, in, axis, out, -1.0, umem::maximum(), HalfOf());
    });
  });
}

TEST(Along, WhatTheFunctionThrowsComesOut) {
  std::vector<double> in(6 * 5000, 1), out(5000);
  in.back() = 2;
  umem::View<double, 2> view(in.data(), {6, 5000});
  auto refuse = [](double x) {
    if (x == 2) throw std::logic_error("two");
    return x;
  };
  with_places([&](auto place) {
    for (int axis : {0, 1})
      EXPECT_THROW(umem::transform_reduce_along(
                       place, view, axis, umem::View<double, 1>(out.data(), {axis ? 6 : 5000}), 0.0,
                       umem::plus(), refuse),
                   std::logic_error);
  });
}

TEST(Along, OfArrays) {
  umem::Array<float, 2> a({5, 40}, umem::Host(), {{1, 0}, {}, 0});
  umem::Array<int, 2> b({5, 40}, umem::Host());
  umem::Array<double, 1> rows({5}, umem::Host(), {{2}, {}, 0}), columns({40}, umem::Host());
  umem::iota(a, 0);
  umem::fill(b, 3);
  umem::fill(umem::on_host, (*rows.host(umem::write)).with_ghosts(), -7);
  umem::transform_reduce_along(a, 1, rows, 1.0, umem::plus(), HalfOf());
  EXPECT_EQ(rows.get(4), 1 + 0.5 * (40 * 160 + 780));
  EXPECT_EQ(rows.get(-1), -7);
  umem::transform_reduce_along(a, b, 0, columns, 0.0, umem::plus(), Product());
  EXPECT_EQ(columns.get(39), 3 * (5 * 39 + 400));
  umem::transform_reduce_along(a, a, 0, columns, 0.0, umem::maximum(), Product());
  EXPECT_EQ(columns.get(0), 160 * 160);
  umem::transform_reduce_along(umem::on_host_threads(2), b, 1, rows, 0, umem::plus(), HalfOf());
  EXPECT_EQ(rows.get(0), 40);
}

/* ---- indices and sweeps ---- */

TEST(Reduce, OverIndices) {
  auto sum = [](auto... i) { return (index_t(i) + ... + index_t(0)); };
  with_places([&](auto place) {
    EXPECT_EQ(umem::for_each_index_reduce(place, umem::Extents<0>(), index_t(5), umem::plus(), sum),
              5);
    EXPECT_EQ(
        umem::for_each_index_reduce(place, umem::Extents<1>(1000), index_t(5), umem::plus(), sum),
        499505);
    EXPECT_EQ(umem::for_each_index_reduce(place, umem::Range<2>({-3, 10}, {400, 12}), index_t(0),
                                          umem::maximum(), sum),
              399 + 11);
    EXPECT_EQ(umem::for_each_index_reduce(place, umem::Extents<3>(2, 0, 2), index_t(-1),
                                          umem::plus(), sum),
              -1);
  });
}

TEST(Sweep, WritesAndReduces) {
  with_places([](auto place) {
    for (bool transposed : {false, true}) {
      index_t const nx = 37, ny = 601;
      std::vector<double> a(nx * ny), b(nx * ny, -1), expected(nx * ny, -1);
      std::mt19937 random(1);
      for (double &x : a) x = static_cast<double>(random() % 1000);
      umem::View<double, 2> u(a.data(), {nx, ny}), v(b.data(), {nx, ny}),
          w(expected.data(), {nx, ny});
      if (transposed) u = u.transpose(), v = v.transpose(), w = w.transpose();
      double norm = 0;
      for (index_t i = 1; i < u.extent(0) - 1; i++)
        for (index_t j = 1; j < u.extent(1) - 1; j++)
          norm = std::max(norm, Jacobi{u}(w(i, j), i, j));
      EXPECT_EQ(umem::sweep(place, v, umem::interior(v), 0.0, umem::maximum(), Jacobi{u}), norm);
      EXPECT_EQ(b, expected);
    }
  });
}

TEST(Sweep, MayWriteGhostCellsButNoFurther) {
  std::vector<int> numbers(16, 0);
  auto view = umem::View<int, 2>::with_ghosts_from(numbers.data(), {2, 2}, {1, 1});
  auto one = [](int &value, index_t, index_t) { return value = 1; };
  EXPECT_EQ(
      umem::sweep(umem::on_host, view, umem::Range<2>({-1, -1}, {3, 3}), 0, umem::plus(), one), 16);
  EXPECT_EQ(numbers, std::vector<int>(16, 1));
  EXPECT_THROWS(
      umem::sweep(umem::on_host, view, umem::Range<2>({0, 0}, {2, 4}), 0, umem::plus(), one),
      umem::index_error, "index 3 is outside the range [-1, 3) of dimension 1");
  EXPECT_EQ(umem::sweep(umem::on_host, view, 0, umem::plus(), one), 4); /* no ghost cells */
  EXPECT_EQ(umem::sweep(umem::on_host, view, umem::Range<2>({9, 9}, {9, 10}), 7, umem::plus(), one),
            7);
}

TEST(Refusals, OfDimensionsAndExtents) {
  umem::View<int, 2> in(nullptr, {2, 3});
  umem::View<int, 1> out(nullptr, {3});
  EXPECT_THROWS(umem::sum_along(umem::on_host, in, 1, out), umem::value_error,
                "sum_along: the extents (2, 3) without dimension 1 are not (3,)");
  EXPECT_THROWS(umem::sum_along(umem::on_host, in, 2, out), umem::index_error,
                "there is no dimension 2 in a view of rank 2");
  EXPECT_THROWS(umem::sum_along(umem::on_host, in, -1, out), umem::index_error,
                "there is no dimension -1 in a view of rank 2");
  EXPECT_THROW(umem::sum(umem::on_device(), in), umem::not_supported_error);

  umem::HostPlace const here = umem::on_host;
  umem::plus const add;
  EXPECT_THROWS(umem::transform_reduce_along(here, in, 1, out, 0, add, HalfOf()), umem::value_error,
                "transform_reduce_along: the extents (2, 3) without dimension 1 are not (3,)");
  EXPECT_THROWS(umem::transform_reduce_along(here, in, 2, out, 0, add, HalfOf()), umem::index_error,
                "there is no dimension 2 in a view of rank 2");
  EXPECT_THROWS(umem::transform_reduce_along(here, in, in.transpose(), 0, out, 0, add, Product()),
                umem::value_error, "transform_reduce_along: the extents (2, 3) and (3, 2) differ");
  EXPECT_THROW(umem::transform_reduce_along(umem::on_device(), in, 0, out, 0, add, HalfOf()),
               umem::not_supported_error);
}

TEST(Refusals, NameTheFunctionThatWasCalled) {
  umem::View<int, 2> a(nullptr, {2, 3}), b(nullptr, {3, 2});
  umem::View<int, 1> out(nullptr, {4});
  auto const two = [](int x, int) { return x; };
#define EXPECT_REFUSAL(call, message) EXPECT_THROWS(umem::call, umem::value_error, message)
  EXPECT_REFUSAL(transform(umem::on_host, a, b, a, two),
                 "transform: the extents (2, 3) and (3, 2) differ");
  EXPECT_REFUSAL(convert(umem::on_host, a, b), "convert: the extents (3, 2) and (2, 3) differ");
  EXPECT_REFUSAL(convert(umem::on_host, a, b, umem::wrapping),
                 "convert: the extents (3, 2) and (2, 3) differ");
  EXPECT_REFUSAL(all_equal(umem::on_host, a, b), "all_equal: the extents (2, 3) and (3, 2) differ");
  EXPECT_REFUSAL(all_close(umem::on_host, a, b), "all_close: the extents (2, 3) and (3, 2) differ");
  EXPECT_REFUSAL(dot(umem::on_host, a, b), "dot: the extents (2, 3) and (3, 2) differ");
  EXPECT_REFUSAL(vdot(umem::on_host, a, b), "vdot: the extents (2, 3) and (3, 2) differ");
  EXPECT_REFUSAL(transform_reduce(umem::on_host, a, b, 0, umem::plus(), two),
                 "transform_reduce: the extents (2, 3) and (3, 2) differ");
  EXPECT_REFUSAL(for_each(
                     umem::on_host, [](int &, int) {}, a, b),
                 "for_each: the extents (2, 3) and (3, 2) differ");
  EXPECT_REFUSAL(for_each_indexed(
                     umem::on_host, [](int &, int, umem::index_t, umem::index_t) {}, a, b),
                 "for_each_indexed: the extents (2, 3) and (3, 2) differ");
#define EXPECT_REFUSAL_OF(function, ...)                                                           \
  EXPECT_REFUSAL(function(umem::on_host, __VA_ARGS__),                                             \
                 #function ": the extents (2, 3) without dimension 1 are not (4,)")
  EXPECT_REFUSAL_OF(reduce_along, a, 1, out, 0, umem::plus());
  EXPECT_REFUSAL_OF(sum_along, a, 1, out);
  EXPECT_REFUSAL_OF(min_along, a, 1, out);
  EXPECT_REFUSAL_OF(max_along, a, 1, out);
  EXPECT_REFUSAL_OF(minmax_along, a, 1, out, out);
  EXPECT_REFUSAL_OF(argmin_along, a, 1, out);
  EXPECT_REFUSAL_OF(argmax_along, a, 1, out);
  EXPECT_REFUSAL_OF(any_along, a, 1, out);
  EXPECT_REFUSAL_OF(all_along, a, 1, out);
  EXPECT_REFUSAL_OF(dot_along, a, a, 1, out);
  EXPECT_REFUSAL_OF(vdot_along, a, a, 1, out);
  EXPECT_REFUSAL_OF(norm_along, a, 1, out);
#undef EXPECT_REFUSAL_OF
  umem::View<int, 2> const none(nullptr, {2, 0});
  EXPECT_REFUSAL(minmax_along(umem::on_host, none, 1, out, out), "minmax_along of no elements");
  EXPECT_REFUSAL(argmax(umem::on_host, none), "argmax of no elements");
  EXPECT_REFUSAL(minmax(umem::on_host, none), "minmax of no elements");
#undef EXPECT_REFUSAL
}

} // namespace
