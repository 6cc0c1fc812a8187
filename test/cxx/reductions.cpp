/* reductions.cpp - argmin, argmax, minmax, count_if, any, all, dot, norm, whole and along a
 * dimension: on views of all kinds against plain loops, on arrays on every place, and at the edges:
 * NaN, ties, no elements, overflow. */
#include "kernels.hpp"
#include "places.h"

#include <umem/reductions.hpp>
#include <umem/reductions_along.hpp>

namespace {

using umem::index_t;

struct AboveFour {
  template <class T> UMEM_FUNCTION bool operator()(T const &x) const { return x > T(4); }
};

template <class T> class Reductions : public testing::Test {};
TYPED_TEST_SUITE(Reductions, NumberTypes);

/* Small numbers, so that there are ties in all memory orders. */
TYPED_TEST(Reductions, AreThoseOfPlainLoops) {
  using T = TypeParam;
  with_everything<T>([](auto place, auto view, std::vector<T> &) {
    constexpr int N = decltype(view)::rank;
    Extents<N> first_min, first_max;
    index_t count = 0, seen = 0;
    double squares = 0;
    plainly(view, [&](T const &x, Extents<N> const &at) {
      if (seen++ == 0) first_min = first_max = at;
      if (x < view(first_min)) first_min = at;
      if (x > view(first_max)) first_max = at;
      count += x > T(4);
      squares += static_cast<double>(x) * static_cast<double>(x);
    });
    EXPECT_EQ(umem::count_if(place, view, AboveFour()), count);
    EXPECT_EQ(umem::any(place, view, AboveFour()), count > 0);
    EXPECT_EQ(umem::all(place, view, AboveFour()), count == seen);
    EXPECT_EQ(static_cast<double>(umem::dot(place, view, view)), squares);
    EXPECT_DOUBLE_EQ(umem::norm(place, view), std::sqrt(squares));
    if (seen == 0) {
      EXPECT_THROWS(umem::argmin(place, view), umem::value_error, "argmin of no elements");
      EXPECT_THROWS(umem::argmax(place, view), umem::value_error, "argmax of no elements");
      EXPECT_THROWS(umem::minmax(place, view), umem::value_error, "minmax of no elements");
      return;
    }
    EXPECT_EQ(umem::argmin(place, view), first_min);
    EXPECT_EQ(umem::argmax(place, view), first_max);
    auto [low, high] = umem::minmax(place, view);
    EXPECT_EQ(low, view(first_min));
    EXPECT_EQ(high, view(first_max));
  });
}

/* Integers take loops of their own: wherever the extremes are, and however long the row is. */
TEST(Reductions, OfIntegersAreThoseOfPlainLoops) {
  for (index_t n : {1, 5, 31, 32, 33, 70, 1500})
    for (index_t at : {index_t(0), n / 2, n - 1})
      for (index_t step : {1, 2}) {
        std::vector<int> numbers(static_cast<std::size_t>(n * step), 100000);
        umem::View<int, 1> const view(numbers.data(), {n}, {step});
        view(at) = 2000000000;
        EXPECT_EQ(umem::max(umem::on_host, view), 2000000000);
        EXPECT_EQ(umem::sum(umem::on_host, view), 100000 * (n - 1) + 2000000000);
        EXPECT_EQ(umem::dot(umem::on_host, view, view),
                  10000000000 * (n - 1) + 4000000000000000000);
        view(at) = -5;
        EXPECT_EQ(umem::min(umem::on_host, view), -5);
      }
}

/* Along each dimension of a view, against the functions above on each row. */
template <int N> void expect_along(View<double, N> const &view) {
  for (int axis = 0; axis < N; axis++) {
    auto const first = view.select(axis, 0);
    auto count = static_cast<std::size_t>(first.size());
    std::vector<index_t> at(count, -1), counts(count, -1);
    std::vector<char> truth(count, 7);
    std::vector<double> values(count, -1), others(count, -1);
    View<index_t, N - 1> where(at.data(), first.extents), number(counts.data(), first.extents);
    View<char, N - 1> answer(truth.data(), first.extents);
    View<double, N - 1> out(values.data(), first.extents), more(others.data(), first.extents);
    auto each = [&](auto const &check) {
      for_each_indices({}, first.extents, [&](Extents<N - 1> const &i) {
        check(i, View<double, 1>(&first(i), {view.extents[axis]}, {view.strides[axis]}));
      });
    };
    auto const here = umem::on_host;
    umem::argmin_along(here, view, axis, where);
    each([&](auto i, auto row) { EXPECT_EQ(where(i), umem::argmin(here, row)[0]); });
    umem::argmax_along(here, view, axis, where);
    umem::minmax_along(here, view, axis, out, more);
    umem::count_if_along(here, view, axis, number, AboveFour());
    umem::any_along(here, view, axis, answer, AboveFour());
    each([&](auto i, auto row) {
      EXPECT_EQ(where(i), umem::argmax(here, row)[0]);
      EXPECT_EQ(out(i), umem::min(here, row));
      EXPECT_EQ(more(i), umem::max(here, row));
      EXPECT_EQ(number(i), umem::count_if(here, row, AboveFour()));
      EXPECT_EQ(answer(i), umem::any(here, row, AboveFour()));
    });
    umem::all_along(here, view, axis, answer);
    umem::dot_along(here, view, view, axis, out);
    umem::norm_along(here, view, axis, more);
    each([&](auto i, auto row) {
      EXPECT_EQ(answer(i), umem::all(here, row));
      EXPECT_EQ(out(i), umem::dot(here, row, row));
      EXPECT_DOUBLE_EQ(more(i), umem::norm(here, row));
    });
    umem::argmin_along(umem::on_host_threads(3), view, axis, number);
    umem::argmin_along(here, view, axis, where);
    EXPECT_EQ(at, counts);
  }
}

TEST(Reductions, AlongADimensionAreThoseOfItsElements) {
  auto of = [](auto extents) {
    with_views<double>(extents, [](auto view, std::vector<double> &) { expect_along(view); });
  };
  of(Extents<1>(2500));
  of(Extents<2>(7, 301));
  of(Extents<3>(4, 5, 6));
}

/* ---- the edges ---- */

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Reductions, FindTheFirstNaN) {
  std::vector<double> x(5000, 1);
  x[10] = -5;
  x[20] = 50;
  View<double, 1> view(x.data(), {5000});
  EXPECT_EQ(umem::argmin(umem::on_host, view), Extents<1>(10));
  x[4100] = x[2500] = x[2501] = nan;
  with_places([&](auto place) {
    EXPECT_EQ(umem::argmin(place, view), Extents<1>(2500));
    EXPECT_EQ(umem::argmax(place, view), Extents<1>(2500));
    EXPECT_EQ(umem::argmax(place, view.reversed(0)), Extents<1>(899));
    EXPECT_TRUE(std::isnan(umem::minmax(place, view).min));
    EXPECT_TRUE(std::isnan(umem::minmax(place, view).max));
    EXPECT_TRUE(std::isnan(umem::norm(place, view)));
    index_t at = 0;
    umem::argmin_along(place, view, 0, View<index_t, 0>(&at, {}));
    EXPECT_EQ(at, 2500);
    double length = 0;
    umem::norm_along(place, view, 0, View<double, 0>(&length, {}));
    EXPECT_TRUE(std::isnan(length));
  });
  std::vector<double> only(3, nan);
  EXPECT_TRUE(umem::all(umem::on_host, View<double, 1>(only.data(), {3})));
}

TEST(Reductions, FindTheFirstOfEqualOnesInCOrder) {
  std::vector<int> x(90 * 70, 3);
  View<int, 2> view(x.data(), {90, 70});
  x[5 * 70 + 60] = x[60 * 70 + 5] = 9;
  with_places([&](auto place) {
    EXPECT_EQ(umem::argmin(place, view), Extents(0, 0));
    EXPECT_EQ(umem::argmax(place, view), Extents(5, 60));
    EXPECT_EQ(umem::argmax(place, view.transpose()), Extents(5, 60));
    EXPECT_EQ(umem::argmax(place, view.reversed(0)), Extents(29, 5));
  });
  std::vector<double> infinite(3, inf);
  View<double, 1> same(infinite.data(), {3});
  EXPECT_EQ(umem::argmin(umem::on_host, same), Extents<1>(0)); /* as large as the identity */
  index_t at = 7;
  umem::argmin_along(umem::on_host, same, 0, View<index_t, 0>(&at, {}));
  EXPECT_EQ(at, 0);
}

TEST(Reductions, NormsDoNotOverflow) {
  auto norms = [](std::vector<double> x) {
    View<double, 1> view(x.data(), {static_cast<index_t>(x.size())});
    double along = 0;
    umem::norm_along(umem::on_host, view, 0, View<double, 0>(&along, {}));
    double const whole = umem::norm(umem::on_host, view);
    EXPECT_EQ(std::isnan(whole), std::isnan(along));
    if (whole == whole && whole < inf) {
      EXPECT_NEAR(along, whole, 1e-15 * whole);
    }
    return whole;
  };
  EXPECT_DOUBLE_EQ(norms({3e200, 4e200}), 5e200);
  EXPECT_DOUBLE_EQ(norms({3e-200, 4e-200}), 5e-200);
  EXPECT_DOUBLE_EQ(norms({3e-320, 4e-320}), 5e-320);
  EXPECT_DOUBLE_EQ(norms({1e200, 1, 1e-200}), 1e200);
  EXPECT_DOUBLE_EQ(norms({1e-155, 1e-154, 2e-154}), std::hypot(1e-155, 1e-154, 2e-154));
  EXPECT_EQ(norms({0, 0}), 0);
  EXPECT_EQ(norms({}), 0);
  EXPECT_EQ(norms({1, -inf}), inf);
  EXPECT_TRUE(std::isnan(norms({1e300, nan})));
  std::complex<double> z[] = {{3e200, 0}, {0, 4e200}};
  EXPECT_DOUBLE_EQ(umem::norm(umem::on_host, View<std::complex<double>, 1>(z, {2})), 5e200);
  float f[] = {3e30f, 4e30f};
  EXPECT_NEAR(umem::norm(umem::on_host, View<float, 1>(f, {2})), 5e30, 1e24);
}

TEST(Reductions, OnlyVdotConjugates) {
  using C = std::complex<float>;
  C x[] = {{1, 2}, {3, -1}}, y[] = {{0, 1}, {2, 2}};
  View<C, 1> a(x, {2}), b(y, {2});
  std::complex<double> dot = umem::dot(umem::on_host, a, b), vdot = umem::vdot(umem::on_host, a, b);
  EXPECT_EQ(dot, (std::complex<double>(6, 5)));
  EXPECT_EQ(vdot, (std::complex<double>(6, 9)));
  EXPECT_EQ(umem::vdot(umem::on_host, a, a), (std::complex<double>(15, 0)));
  std::complex<double> along[2];
  umem::dot_along(umem::on_host, a, b, 0, View<std::complex<double>, 0>(&along[0], {}));
  umem::vdot_along(umem::on_host, a, b, 0, View<std::complex<double>, 0>(&along[1], {}));
  EXPECT_EQ(along[0], dot);
  EXPECT_EQ(along[1], vdot);
  EXPECT_THROW(umem::dot(umem::on_host, a, View<C, 1>(y, {1})), umem::value_error);
}

TEST(Reductions, OfNoElements) {
  View<double, 2> none(nullptr, {3, 0});
  EXPECT_FALSE(umem::any(umem::on_host, none));
  EXPECT_TRUE(umem::all(umem::on_host, none));
  EXPECT_EQ(umem::count_if(umem::on_host, none, AboveFour()), 0);
  EXPECT_EQ(umem::dot(umem::on_host, none, none), 0);
  EXPECT_EQ(umem::norm(umem::on_host, none), 0);
  double values[3] = {7, 7, 7};
  View<double, 1> out(values, {3});
  umem::norm_along(umem::on_host, none, 1, out);
  EXPECT_EQ(values[2], 0);
  umem::all_along(umem::on_host, none, 1, out);
  EXPECT_EQ(values[2], 1);
  EXPECT_THROW(umem::argmax_along(umem::on_host, none, 1, View<int, 1>()), umem::value_error);
  EXPECT_THROW(umem::argmin_along(umem::on_host, none, 1, View<int, 1>()), umem::value_error);
  EXPECT_THROWS(umem::max_along(umem::on_host, none, 1, out), umem::value_error,
                "max_along of no elements");
  EXPECT_THROWS(umem::max_along(umem::on_device(), none, 1, out), umem::value_error,
                "max_along of no elements");
  EXPECT_THROWS(umem::minmax_along(umem::on_host, none, 1, out, out), umem::value_error,
                "minmax_along of no elements");
  EXPECT_EQ(values[2], 1);
  View<double, 2> rows(nullptr, {0, 3}); /* no rows have no outputs, and need no elements */
  EXPECT_NO_THROW(umem::max_along(umem::on_host, rows, 1, View<double, 1>(nullptr, {0})));
}

/* any stops: of 100 pieces it looks at the first alone. */
TEST(Reductions, AnyEndsWhenItHasFoundOne) {
  std::vector<int> x(102400, 5);
  index_t calls = 0;
  auto count = [&calls](int value) {
    calls++;
    return value == 5;
  };
  EXPECT_TRUE(umem::any(umem::on_host, View<int, 1>(x.data(), {102400}), count));
  EXPECT_LE(calls, 1024);
  EXPECT_GT(calls, 0);
}

ON_EACH_PLACE(ReductionsOnPlaces);

TEST_P(ReductionsOnPlaces, TakeArraysAndTheirParts) {
  umem::ArrayOptions<2> options{{{1, 0}, {0, 2}}};
  Array<int, 2> u({4, 5}, place, options);
  {
    auto guard = u.host(umem::discard);
    auto all = guard->with_ghosts();
    for (index_t n = 0; n < all.size(); n++) all[n] = static_cast<int>(n * 11 % 17);
  }
  if (umem::Place(place).is_device()) { /* only files that nvcc compiles have kernels */
    EXPECT_THROW(umem::argmin(u), umem::not_supported_error);
    EXPECT_THROW(umem::any(u), umem::not_supported_error);
    EXPECT_EQ(umem::argmin(umem::on_host, u), Extents(1, 3));
    return;
  }
  Array<int, 2> model(u, umem::Host());
  auto m = model.host(umem::read);
  EXPECT_EQ(umem::argmin(u), umem::argmin(m));
  EXPECT_EQ(umem::argmax(u.part()), umem::argmax(m));
  EXPECT_EQ(umem::minmax(u.part().with_ghosts()).max, 16);
  EXPECT_EQ(umem::count_if(u, AboveFour()), umem::count_if(m, AboveFour()));
  EXPECT_TRUE(umem::any(u));
  EXPECT_EQ(umem::all(u.part().select(1, 2)), umem::all(umem::on_host, m->select(1, 2)));
  EXPECT_EQ(umem::dot(u, m), umem::dot(m, m));
  EXPECT_EQ(umem::norm(u.part()), umem::norm(m));
  Array<index_t, 1> columns({4}, place);
  Array<double, 1> lengths({4}, place);
  umem::argmax_along(u, 1, columns);
  umem::norm_along(u, 1, lengths);
  for (index_t i = 0; i < 4; i++) {
    EXPECT_EQ(columns.get(i), umem::argmax(umem::on_host, m->select(0, i))[0]);
    EXPECT_DOUBLE_EQ(lengths.get(i), umem::norm(umem::on_host, m->select(0, i)));
  }
  /* with the ghost cells, and without */
  EXPECT_EQ(umem::sum(u), umem::sum(umem::on_host, m->interior()));
  EXPECT_EQ(umem::sum(u.part().with_ghosts()), umem::sum(umem::on_host, m->with_ghosts()));
  EXPECT_NE(umem::sum(u), umem::sum(u.part().with_ghosts()));
}

} // namespace
