/* compare.cpp - all_equal, all_close and difference, and arrays of what a program has: values,
 * edges, every context. */
#include "arrays.hpp"

#include <umem/array_of.hpp>
#include <umem/compare.hpp>

#include <list>

namespace {

using umem::Tolerance;

constexpr double infinity = std::numeric_limits<double>::infinity();
double const nan = std::numeric_limits<double>::quiet_NaN();

/* ---- close numbers ---- */

template <class A, class B> bool close(A a, B b, Tolerance const &tolerance = {}) {
  return umem::all_close(umem::on_host, umem::View<A const, 0>(&a, {}),
                         umem::View<B const, 0>(&b, {}), tolerance);
}

/* What numpy.allclose answers. */
TEST(AllClose, has_the_rule_of_numpy) {
  EXPECT_TRUE(close(1.0, 1.0 + 0.9e-5));
  EXPECT_FALSE(close(1.0, 1.0 + 1.1e-5));
  EXPECT_TRUE(close(0.0, 1e-8));
  EXPECT_FALSE(close(0.0, 2e-8));
  EXPECT_TRUE(close(10.0, 9.0, {0.12, 0})); /* relative to the second */
  EXPECT_FALSE(close(9.0, 10.0, {0.09, 0}));
  EXPECT_TRUE(close(9.0, 10.0, {0, 1}));
  EXPECT_TRUE(close(infinity, infinity));
  EXPECT_FALSE(close(infinity, -infinity));
  EXPECT_FALSE(close(infinity, 1e308, {infinity, 0}));
  EXPECT_FALSE(close(1e308, infinity, {1, 0}));
  EXPECT_FALSE(close(-1e308, 1e308, {3, 0})); /* their distance is no number */
  EXPECT_FALSE(close(nan, nan));
  EXPECT_TRUE(close(nan, nan, {1e-5, 1e-8, true}));
  EXPECT_FALSE(close(nan, 1.0, {1e-5, 1e-8, true}));
  EXPECT_FALSE(close(1.0, nan, {1e-5, 1e-8, true}));
}

TEST(AllClose, takes_all_numbers) {
  EXPECT_TRUE(close(1, 1.000001f));
  EXPECT_FALSE(close(1, 2u));
  EXPECT_TRUE(close(std::int64_t{1} << 62, std::int64_t{1} << 62));
  EXPECT_FALSE(close(100, 101));
  using Complex = std::complex<double>;
  EXPECT_TRUE(close(Complex(3, 4), Complex(3, 4.00004)));
  EXPECT_FALSE(close(Complex(3, 4), Complex(3, 4.00006)));
  EXPECT_TRUE(close(Complex(1e300, 1e300), Complex(1e300, 1.000001e300)));
  EXPECT_TRUE(close(Complex(nan, 1), Complex(2, nan), {0, 0, true}));
  EXPECT_FALSE(close(Complex(infinity, 1), Complex(infinity, 2)));
  EXPECT_TRUE(close(Complex(infinity, 1), Complex(infinity, 1)));
}

TEST(AllClose, wants_equal_extents) {
  EXPECT_THROW(umem::all_close(umem::array_of({1, 2}), umem::array_of({1, 2, 3})),
               umem::value_error);
  EXPECT_TRUE(
      umem::all_close(umem::array_of(std::vector<int>()), umem::array_of(std::vector<float>())));
}

TEST(Difference, names_the_first_in_c_order) {
  auto u = umem::array_of({{1, 2, 3}, {4, 5, 6}});
  auto v = umem::array_of({{1., 2., 3.}, {4., 5.5, 7.}});
  EXPECT_EQ(umem::difference(u, u), "");
  EXPECT_EQ(umem::difference(u, v), "element (1, 1): 5 and 5.5; 2 of 6 elements differ");
  EXPECT_EQ(umem::difference(u, v, {0.1, 0}), "element (1, 2): 6 and 7.0");
  EXPECT_EQ(umem::difference(u.part().transpose(), v.part().transpose()),
            "element (1, 1): 5 and 5.5; 2 of 6 elements differ");
  EXPECT_EQ(umem::difference(u, umem::array_of({{1}})), "extents (2, 3) and (1, 1)");
  std::complex<float> const z(1, 2);
  EXPECT_EQ(umem::difference(Array<std::complex<float>, 1>::full({1}, z), umem::array_of({nan})),
            "element (0,): (1+2j) and nan");
}

/* ---- arrays of what there is ---- */

TEST(ArrayOf, has_the_elements_of_braces) {
  auto one = umem::array_of({1.5f, 2.5f});
  static_assert(std::is_same_v<decltype(one), Array<float, 1>>);
  EXPECT_EQ(one.get(1), 2.5f);
  auto three = umem::array_of({{{1, 2}, {3, 4}, {5, 6}}});
  static_assert(std::is_same_v<decltype(three), Array<int, 3>>);
  EXPECT_EQ(three.extents(), (Extents<3>{1, 3, 2}));
  EXPECT_EQ(three.get(0, 2, 1), 6);
}

TEST(ArrayOf, has_the_elements_of_containers) {
  std::array<double, 6> const numbers = {1, 2, 3, 4, 5, 6};
  auto u = umem::array_of(numbers, Extents{3, 2});
  EXPECT_EQ(umem::difference(u, umem::array_of({{1., 2.}, {3., 4.}, {5., 6.}})), "");
  EXPECT_EQ(umem::array_of(std::string("ab")).get(1), 'b');
  EXPECT_THROWS(umem::array_of(numbers, Extents{4, 2}), umem::value_error,
                "array_of: 6 elements do not fill extents (4, 2)");
  EXPECT_THROW(umem::array_of(numbers, Extents{-3, -2}), umem::value_error);
}

TEST(ArrayOf, has_the_elements_of_arrays_of_c) {
  double const row[] = {1, 2, 3};
  EXPECT_EQ(umem::difference(umem::array_of(row), umem::array_of({1., 2., 3.})), "");
  int const deep[2][1][3][2] = {{{{1, 2}, {3, 4}, {5, 6}}}, {{{7, 8}, {9, 10}, {11, 12}}}};
  auto u = umem::array_of(deep);
  static_assert(std::is_same_v<decltype(u), Array<int, 4>>);
  EXPECT_EQ(u.extents(), (Extents<4>{2, 1, 3, 2}));
  EXPECT_EQ(u.get(1, 0, 2, 1), 12);
}

TEST(ArrayOf, has_the_elements_of_iterators) {
  std::list<int> const list = {7, 8, 9};
  EXPECT_EQ(umem::difference(umem::array_of(list.begin(), list.end()), umem::array_of({7, 8, 9})),
            "");
  EXPECT_EQ(umem::array_of(list.end(), list.end()).extent(0), 0);
  std::vector<bool> const flags = {true, false, true};
  EXPECT_EQ(umem::difference(umem::array_of(flags.begin(), flags.end()),
                             umem::array_of({true, false, true})),
            "");
}

ON_EACH_PLACE(ArrayOfOn);

TEST_P(ArrayOfOn, copies_to_every_context) {
  std::vector<Item> items;
  for (int n = 0; n < 12; n++) items.push_back(element<Item>(n));
  umem::ArrayOptions<2> options{{1, 2}};
  auto u = umem::array_of(items, Extents{3, 4}, place, options);
  EXPECT_TRUE(u.context() == place);
  EXPECT_EQ(u.ghosts(), (umem::Ghosts<2>{1, 2}));
  for (int n = 0; n < 12; n++) EXPECT_EQ(u.get(n / 4, n % 4), items[static_cast<std::size_t>(n)]);
}

TEST_P(ArrayOfOn, is_compared_on_every_context) {
  auto u = umem::array_of({{1., 2.}, {3., 4.}}, place), v = u;
  EXPECT_TRUE(umem::all_equal(umem::on_host, u, v));
  v.set(4.00001, 1, 1);
  EXPECT_FALSE(umem::all_equal(umem::on_host, u, v.part()));
  EXPECT_TRUE(umem::all_close(umem::on_host, u, v.part()));
  EXPECT_EQ(umem::difference(u, v), "element (1, 1): 4.0 and 4.00001");
}

TEST_P(ArrayOfOn, takes_lists_of_any_depth_and_other_ranges) {
  auto deep = umem::array_of<float, 4>({{{{1, 2}, {3, 4}}}, {{{5, 6}, {7, 8}}}}, place);
  EXPECT_EQ(deep.extents(), (umem::Extents<4>{2, 1, 2, 2}));
  EXPECT_EQ(deep.get(1, 0, 1, 0), 7);
  EXPECT_EQ((umem::array_of<double, 0>(7, place).get()), 7);
  EXPECT_EQ((umem::array_of<double, 2>({{}, {}}, place).extents()), (umem::Extents<2>{2, 0}));
  auto list = umem::array_of(std::list<int>{1, 2, 3, 4, 5, 6}, umem::Extents{3, 2}, place);
  EXPECT_EQ(list.get(2, 0), 5);
  auto flags = umem::array_of(std::vector<bool>{true, false}, place);
  EXPECT_TRUE(flags.get(0));
  EXPECT_FALSE(flags.get(1));
  std::vector<double> const values{1, 2, 3, 4};
  auto pairs = umem::array_of(values.begin(), values.end(), umem::Extents{2, 2}, place);
  EXPECT_EQ(pairs.get(1, 0), 3);
  umem::ArrayOptions<2> options;
  options.order = umem::column_major;
  options.ghosts = {1, 0};
  auto columns = umem::array_of({{1, 2, 3}, {4, 5, 6}}, place, options);
  EXPECT_EQ(columns.order(), umem::column_major);
  EXPECT_EQ(columns.get(1, 0), 4);
}

TEST(ArrayOf, refuses_ragged_lists_and_wrong_numbers) {
  EXPECT_THROWS(static_cast<void>(umem::array_of({{1, 2}, {3}})), umem::value_error,
                "the nested lists are ragged: list (1,) has 1 entries, those before it have 2");
  EXPECT_THROWS((umem::array_of({{{1}, {2}}, {{3}, {4, 5}}})), umem::value_error,
                "the nested lists are ragged: list (1, 1) has 2 entries, those before it have 1");
  std::list<float> const five(5);
  EXPECT_THROWS((umem::array_of(five, umem::Extents{2, 2})), umem::value_error,
                "array_of: 5 elements do not fill extents (2, 2)");
  EXPECT_THROWS((umem::array_of(five.begin(), five.end(), umem::Extents{2, 3})), umem::value_error,
                "array_of: 5 elements do not fill extents (2, 3)");
}

TEST(AllEqual, compares_integers_by_value) {
  EXPECT_FALSE(umem::all_equal(umem::array_of({-1}), umem::array_of({0xffffffffu})));
  EXPECT_TRUE(
      umem::all_equal(umem::array_of({std::int8_t(5)}), umem::array_of({std::uint64_t(5)})));
  std::int64_t const large = std::int64_t(1) << 60;
  EXPECT_FALSE(
      umem::all_equal(umem::array_of({large}), umem::array_of({std::uint64_t(large) + 1})));
  EXPECT_FALSE(
      umem::all_equal(umem::array_of({~std::uint64_t(0)}), umem::array_of({std::int64_t(-1)})));
}

} // namespace
