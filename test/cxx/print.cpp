/* print.cpp - arrays and views on streams. What is expected is what NumPy 2.4 prints. */
#include "arrays.hpp"
#include "comma.h"

#include <umem/print.hpp>

#include <clocale>
#include <locale>

namespace {

double const nan = std::numeric_limits<double>::quiet_NaN();
double const infinity = std::numeric_limits<double>::infinity();

template <class V> std::string printed(V const &view) {
  std::ostringstream stream;
  stream << view;
  return stream.str();
}

template <class T> std::string row(std::vector<T> values) {
  return printed(View<T, 1>(values.data(), {values.size()}));
}

template <class T> std::string scalar(T value) { return printed(View<T const, 0>(&value, {})); }

template <class T, int N> std::string counted(Extents<N> const &extents, T first = 0) {
  Array<T, N> array(extents);
  {
    auto guard = array.host(umem::discard);
    for (umem::index_t i = 0; i < guard.size(); i++)
      guard[i] = static_cast<T>(first + static_cast<T>(i));
  }
  return printed(array);
}

TEST(Print, integers) {
  EXPECT_EQ(row<int>({1, -20, 300}), "[  1 -20 300]");
  EXPECT_EQ(row<std::uint8_t>({1, 20, 255}), "[  1  20 255]");
  EXPECT_EQ(row<std::int8_t>({-128, 7}), "[-128    7]");
  EXPECT_EQ(row<std::int64_t>({std::numeric_limits<std::int64_t>::min(), 1}),
            "[-9223372036854775808                    1]");
  EXPECT_EQ(counted<int>(Extents{2, 3}, 8), "[[ 8  9 10]\n [11 12 13]]");
  EXPECT_EQ(counted<int>(Extents{2, 1, 2}), "[[[0 1]]\n\n [[2 3]]]");
  EXPECT_EQ(counted<int>(Extents{2, 1, 2, 1}), "[[[[0]\n   [1]]]\n\n\n [[[2]\n   [3]]]]");
  EXPECT_EQ(scalar(-7), "-7");
}

TEST(Print, bools) {
  bool values[] = {true, false, true};
  EXPECT_EQ(printed(View<bool, 1>(values, 3)), "[ True False  True]");
  EXPECT_EQ(printed(View<bool, 1>(values, 1)), "[ True]");
  EXPECT_EQ(scalar(true), "True");
  EXPECT_EQ(scalar(false), "False");
}

TEST(Print, floats) {
  EXPECT_EQ(row<double>({1, 2.5, -3}), "[ 1.   2.5 -3. ]");
  EXPECT_EQ(row<double>({0.1, 1. / 3, 100}), "[  0.1          0.33333333 100.        ]");
  EXPECT_EQ(row<double>({0, -0.}), "[ 0. -0.]");
  EXPECT_EQ(row<double>({1, 1001}), "[1.000e+00 1.001e+03]");
  EXPECT_EQ(row<double>({1e-5, 2}), "[1.e-05 2.e+00]");
  EXPECT_EQ(row<double>({1e8}), "[1.e+08]");
  EXPECT_EQ(row<double>({99999999}), "[99999999.]");
  EXPECT_EQ(row<double>({1e300, -1.25e-300}), "[ 1.00e+300 -1.25e-300]");
  EXPECT_EQ(row<double>({0.999999999999}), "[1.]");
  EXPECT_EQ(row<double>({9.999999999999e-5}), "[1.e-04]");
  EXPECT_EQ(row<double>({nan, 1.5, -infinity}), "[ nan  1.5 -inf]");
  EXPECT_EQ(row<double>({nan, 1.5, infinity}), "[nan 1.5 inf]");
  EXPECT_EQ(row<double>({nan}), "[nan]");
  EXPECT_EQ(row<double>({infinity, -1e10}), "[    inf -1.e+10]");
  EXPECT_EQ(row<float>({0.1f, 16777216.f}), "[1.0000000e-01 1.6777216e+07]");
  EXPECT_EQ(row<float>({1e6f}), "[1.e+06]");
  EXPECT_EQ(row<float>({999999.f}), "[999999.]");
  EXPECT_EQ(row<float>({0.1f, 0.25f}), "[0.1  0.25]");
}

TEST(Print, single_floats) {
  EXPECT_EQ(scalar(0.), "0.0");
  EXPECT_EQ(scalar(-1.5), "-1.5");
  EXPECT_EQ(scalar(1. / 3), "0.3333333333333333");
  EXPECT_EQ(scalar(1e15), "1000000000000000.0");
  EXPECT_EQ(scalar(1e16), "1e+16");
  EXPECT_EQ(scalar(1.5e-5), "1.5e-05");
  EXPECT_EQ(scalar(0.0001), "0.0001");
  EXPECT_EQ(scalar(0.1f), "0.1");
  EXPECT_EQ(scalar(1e6f), "1e+06");
  EXPECT_EQ(scalar(nan), "nan");
  EXPECT_EQ(scalar(-infinity), "-inf");
}

/* Others are doubles or have twice as many digits. */
bool const has_long_doubles = std::numeric_limits<long double>::digits == 64;

TEST(Print, long_doubles) {
  EXPECT_EQ(row<long double>({1, 2.5L, -3}), "[ 1.   2.5 -3. ]");
  EXPECT_EQ(row<long double>({static_cast<long double>(nan), -static_cast<long double>(infinity)}),
            "[ nan -inf]");
  EXPECT_EQ(scalar(0.L), "0.0");
  EXPECT_EQ(scalar(-1e16L), "-1e+16");
  if (!has_long_doubles) GTEST_SKIP() << "a long double has not 64 bits of digits here";
  EXPECT_EQ(scalar(0.1L), "0.1");
  EXPECT_EQ(scalar(1.L / 3), "0.33333333333333333334");
  EXPECT_EQ(scalar(1 + std::numeric_limits<long double>::epsilon()), "1.0000000000000000001");
  EXPECT_EQ(scalar(std::numeric_limits<long double>::max()), "1.189731495357231765e+4932");
  EXPECT_EQ(scalar(std::numeric_limits<long double>::denorm_min()), "4e-4951");
  EXPECT_EQ(scalar(std::ldexp(1.L, -16350)), "1.4440123045445249272e-4922");
  EXPECT_EQ(scalar(std::complex<long double>(2.L / 3, -1e4000L)),
            "(0.6666666666666666667-1e+4000j)");
}

TEST(Print, complex_numbers) {
  using Complex = std::complex<double>;
  EXPECT_EQ(row<Complex>({{1, 2}, {-0.5, -10}}), "[ 1.  +2.j -0.5-10.j]");
  EXPECT_EQ(row<Complex>({{nan, 1}, {2, infinity}}), "[nan +1.j  2.+infj]");
  EXPECT_EQ(row<Complex>({{1, 0.25}, {2, 1}}), "[1.+0.25j 2.+1.j  ]");
  EXPECT_EQ(scalar(Complex(1, 2)), "(1+2j)");
  EXPECT_EQ(scalar(Complex(0, 2.5)), "2.5j");
  EXPECT_EQ(scalar(Complex(-0., 1)), "(-0+1j)");
  EXPECT_EQ(scalar(Complex(nan, -infinity)), "(nan-infj)");
  EXPECT_EQ(scalar(std::complex<float>(0.1f, 1e20f)), "(0.1+1e+20j)");
}

TEST(Print, nothing) {
  EXPECT_EQ(row<double>({}), "[]");
  EXPECT_EQ(counted<int>(Extents{3, 0}), "[]");
  EXPECT_EQ(counted<int>(Extents{0, 3, 2}), "[]");
  EXPECT_THROW(printed(Array<int, 1>()), umem::moved_from_error);
  EXPECT_THROW(printed(View<int, 0>()), umem::value_error);
}

TEST(Print, breaks_long_lines) {
  EXPECT_EQ(counted<int>(Extents{30}),
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
            " 24 25 26 27 28 29]");
  EXPECT_EQ(counted<int>(Extents{1, 40}, 1000),
            "[[1000 1001 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011 1012 1013\n"
            "  1014 1015 1016 1017 1018 1019 1020 1021 1022 1023 1024 1025 1026 1027\n"
            "  1028 1029 1030 1031 1032 1033 1034 1035 1036 1037 1038 1039]]");
}

TEST(Print, sums_up_many_elements) {
  EXPECT_EQ(counted<int>(Extents{1001}), "[   0    1    2 ...  998  999 1000]");
  EXPECT_EQ(counted<int>(Extents{1000}).find("..."), std::string::npos);
  EXPECT_EQ(counted<int>(Extents{200, 6}),
            "[[   0    1    2    3    4    5]\n [   6    7    8    9   10   11]\n"
            " [  12   13   14   15   16   17]\n ...\n [1182 1183 1184 1185 1186 1187]\n"
            " [1188 1189 1190 1191 1192 1193]\n [1194 1195 1196 1197 1198 1199]]");
}

TEST(Print, leaves_ghosts_out_and_follows_strides) {
  umem::ArrayOptions<2> options{{1, 1}};
  auto array = Array<int, 2>::full({2, 2}, 9, umem::Host(), options);
  auto part = array.host(umem::write);
  part(0, 0) = 1;
  part(0, 1) = 2;
  part(1, 0) = 3;
  part(1, 1) = 4;
  EXPECT_EQ(printed(*part), "[[1 2]\n [3 4]]");
  EXPECT_EQ(printed(part->transpose()), "[[1 3]\n [2 4]]");
  EXPECT_EQ(printed(part->reversed(1)), "[[2 1]\n [4 3]]");
}

/* A comma for the point, and points between thousands. */
struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

/* What prints them in one way, whatever the locale is. */
void expect_points() {
  EXPECT_EQ(row<double>({1. / 3, 2.5}), "[0.33333333 2.5       ]");
  EXPECT_EQ(row<float>({0.1f, 1e-10f}), "[1.e-01 1.e-10]");
  EXPECT_EQ(row<double>({1.23456789123, 1e20}), "[1.23456789e+00 1.00000000e+20]");
  EXPECT_EQ(row<std::complex<double>>({{2. / 3, 1234567.}}), "[0.66666667+1234567.j]");
  EXPECT_EQ(scalar(0.1 + 0.2), "0.30000000000000004");
  if (has_long_doubles) {
    EXPECT_EQ(scalar(12345.L / 7), "1763.5714285714285714");
    EXPECT_EQ(row<long double>({1.L / 3, 2.5L}), "[0.33333333 2.5       ]");
  }
  EXPECT_EQ(row<int>({1234567, -1000}), "[1234567   -1000]");
  EXPECT_EQ(counted<int>(Extents{2}, 999999), "[ 999999 1000000]");
}

TEST(Print, has_points_in_every_locale_of_streams) {
  expect_points();
  std::locale const before = std::locale::global(std::locale(std::locale(), new Comma));
  std::ostringstream stream;
  stream << 1234.5;
  std::string const own = stream.str();
  expect_points();
  std::locale::global(before);
  EXPECT_EQ(own, "1.234,5");
}

TEST(Print, has_points_in_every_locale_of_the_process) {
  if (!set_comma_locale()) GTEST_SKIP() << "localedef makes no locale here";
  expect_points();
  std::setlocale(LC_ALL, "C");
}

ON_EACH_PLACE(PrintTest);

TEST_P(PrintTest, prints_from_everywhere) {
  EXPECT_EQ(printed(Array<float, 2>::full({2, 2}, 0.5f, place)), "[[0.5 0.5]\n [0.5 0.5]]");
}

} // namespace
