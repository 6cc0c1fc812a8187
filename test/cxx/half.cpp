/* half.cpp - elements of 16 bits: __half and __nv_bfloat16 where CUDA's headers are, _Float16 where
 * the compiler has it. */
#include "arrays.hpp"

#include <umem/c_array_numbers.hpp>
#include <umem/npy.hpp>
#include <umem/print.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>

#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
#define HAS_CUDA_TYPES 1
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#define HAS_CUDA_TYPES 0
#endif

#include <fstream>

namespace {

/* Calls f(Type<T>()) for those types that there are. */
template <class F> void for_each_half(F const &f) {
#if HAS_CUDA_TYPES
  f(Type<__half>());
  f(Type<__nv_bfloat16>());
#endif
#ifdef UMEM_HAS_FLOAT16
  f(Type<_Float16>());
#endif
  static_cast<void>(f);
}

/* Element n, which all of the types can tell from its neighbours. */
template <class T> T number(umem::index_t n) { return T(0.5f * static_cast<float>(n)); }

template <class T> Array<T, 2> numbered(umem::Context const &place) {
  Array<T, 2> array({3, 4}, place, {{1, 0}});
  auto guard = array.host(umem::discard);
  for_each_cell(array, [&](auto const &at, umem::index_t n) { (*guard)(at) = number<T>(n); });
  return array;
}

template <class T> void expect_numbers(Array<T, 2> const &array) {
  for_each_cell(array, [&](auto const &at, umem::index_t n) {
    EXPECT_EQ(static_cast<float>(array.get(at)), static_cast<float>(number<T>(n)));
  });
}

/* ---- on every context ---- */

class HalfTest : public EachPlace {};

TEST_P(HalfTest, elements_are_set_and_read) {
  for_each_half([&](auto type) {
    using T = typename decltype(type)::type;
    Array<T, 2> array = numbered<T>(place);
    expect_numbers(array);
    array.set(T(-1.5f), 2, 1);
    EXPECT_EQ(static_cast<float>(array.get(2, 1)), -1.5f);
    EXPECT_EQ(static_cast<float>((*array.host(umem::read))(2, 1)), -1.5f);
  });
}

TEST_P(HalfTest, arrays_are_copied_between_contexts) {
  for_each_half([&](auto type) {
    using T = typename decltype(type)::type;
    Array<T, 2> array = numbered<T>(umem::Host()), there(array, place), back(there, umem::Host());
    expect_numbers(there);
    expect_numbers(back);
    Array<T, 1> column({3}, umem::Host());
    copy(there.part().select(1, 2), column.part());
    for (umem::index_t i = 0; i < 3; i++)
      EXPECT_EQ(static_cast<float>(column.get(i)), static_cast<float>(there.get(i, 2)));
  });
}

struct Twice {
  template <class T> UMEM_FUNCTION float operator()(T const &x) const {
    return 2 * static_cast<float>(x);
  }
};

TEST_P(HalfTest, arrays_are_reduced_where_they_live) {
  for_each_half([&](auto type) {
    using T = typename decltype(type)::type;
    Array<T, 2> array = numbered<T>(place);
    Array<T, 1> rows({3}, place), columns({4}, place);
    Array<float, 1> sums({3}, place);
    if (umem::Place(place).is_device()) { /* no kernels here */
      EXPECT_THROW(umem::max(array), umem::not_supported_error);
      EXPECT_THROW(umem::max_along(array, 1, rows), umem::not_supported_error);
      return;
    }
    EXPECT_EQ(static_cast<float>(umem::min(array)), 2.f);
    EXPECT_EQ(static_cast<float>(umem::max(array)), 7.5f);
    EXPECT_EQ(umem::sum(array), 57.f);
    umem::max_along(array, 1, rows);
    EXPECT_EQ(static_cast<float>(rows.get(2)), 7.5f);
    umem::min_along(array, 0, columns);
    EXPECT_EQ(static_cast<float>(columns.get(3)), 3.5f);
    umem::transform_reduce_along(array, 1, sums, 1.f, umem::plus(), Twice());
    EXPECT_EQ(sums.get(0), 1 + 2 * (2 + 2.5f + 3 + 3.5f));
  });
}

FOR_EACH_PLACE(HalfTest);

static_assert(std::is_same_v<umem::accumulator<__half>, float>);
static_assert(std::is_same_v<umem::accumulator<__nv_bfloat16>, float>);

/* ---- text, files and arithmetic, of each type ---- */

template <class T> std::string row(std::vector<float> const &values) {
  Array<T, 1> array({values.size()}, umem::Host());
  umem::convert(umem::on_host, umem::View<float const, 1>(values.data(), {values.size()}), array);
  std::ostringstream stream;
  stream << array;
  return stream.str();
}

/* What umemArray_convert makes of numbers: halfway between two, beside that, too large, subnormal,
 * NaN. */
template <class T, class From> void expect_conversion_of_c(std::vector<From> const &numbers) {
  umem::View<From const, 1> const in(numbers.data(), {numbers.size()});
  Array<T, 1> want({numbers.size()}), have({numbers.size()});
  Array<From, 1> back({numbers.size()}), again({numbers.size()});
  umem::convert_elements(in, want);
  umem::convert(in, have);
  umem::convert_elements(want, back);
  umem::convert(want, again);
  for (umem::index_t i = 0; i < in.size(); i++) {
    float const x = static_cast<float>(want.get(i)), y = static_cast<float>(have.get(i));
    EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y)))
        << static_cast<double>(in(i)) << ": " << x << " and " << y;
    EXPECT_TRUE(back.get(i) == again.get(i) || std::isnan(x)) << x;
  }
}

TEST(Half, converts_as_in_c) {
  std::vector<double> numbers{65504, 65519.99, 65520, 1e10, 1e300, 1e-8, 6e-8, 0.0, std::nan("")};
  for (int k = -25; k < 18; k++)
    for (double more : {0., 0x1p-60, -0x1p-53, 0x1p-30})
      for (double half : {0x1p-11, 0x1p-8, 0x1.8p-10})
        numbers.push_back(std::ldexp(1 + half + more, k));
  std::vector<std::int64_t> integers{std::numeric_limits<std::int64_t>::min(), -1, 2049, 2051,
                                     65520};
  for (int k = 12; k < 62; k++)
    for (std::int64_t more : {-1, 0, 1})
      integers.push_back((std::int64_t(1) << k) + (std::int64_t(1) << (k - 8)) + more);
  for_each_half([&](auto type) {
    using T = typename decltype(type)::type;
    expect_conversion_of_c<T>(numbers);
    expect_conversion_of_c<T>(integers);
  });
}

/* What NumPy prints of a float16. */
template <class T> void expect_text_of_half() {
  EXPECT_EQ(row<T>({1, -0.5f, 0.1f}), "[ 1.  -0.5  0.1]");
  EXPECT_EQ(row<T>({65504, 1}), "[6.55e+04 1.00e+00]");
  EXPECT_EQ(row<T>({std::numeric_limits<float>::infinity(), 0.3333f}), "[   inf 0.3333]");
}

template <class T> void expect_files_of_half() {
  TempFile file;
  Array<T, 2> array = numbered<T>(umem::Host());
  umem::save_npy(file.path, array);
  Array<T, 2> read = umem::load_npy<T, 2>(file.path, umem::Host());
  for (umem::index_t i = 0; i < 3; i++)
    for (umem::index_t j = 0; j < 4; j++)
      EXPECT_EQ(static_cast<float>(read.get(i, j)), static_cast<float>(array.get(i, j)));
  EXPECT_THROW((umem::load_npy<short, 2>(file.path)), umem::type_error);
  umem_thread_clear();

  std::ifstream stream(file.path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(stream), {});
  EXPECT_NE(bytes.find("'descr': '<f2'"), std::string::npos);
  ASSERT_GT(bytes.size(), 24u);
  EXPECT_EQ(bytes.substr(bytes.size() - 24, 4), std::string("\x00\x40\x00\x41", 4)); /* 2, 2.5 */
}

struct Double {
  template <class T> UMEM_FUNCTION void operator()(T &x) const { x = T(2 * static_cast<float>(x)); }
};

template <class T> void expect_loops() {
  Array<T, 2> array = numbered<T>(umem::Host());
  umem::for_each(array, Double());
  Array<float, 2> floats({3, 4}, umem::Host());
  umem::convert(array, floats);
  EXPECT_EQ(floats.get(0, 0), 4.f); /* behind a row of ghost cells */
  EXPECT_EQ(floats.get(2, 3), 15.f);
}

/* ---- reductions ---- */

template <class T> void expect_float_sums() {
  std::vector<T> ones(3 * 4001, T(1.0f)); /* more than it can count */
  umem::View<T, 2> view(ones.data(), {3, 4001});
  static_assert(std::is_same_v<decltype(umem::sum(umem::on_host, view)), float>);
  EXPECT_EQ(umem::sum(umem::on_host, view), 3 * 4001);
  float sums[3];
  umem::sum_along(umem::on_host, view, 1, umem::View<float, 1>(sums, {3}));
  for (float sum : sums) EXPECT_EQ(sum, 4001);
}

constexpr float infinity = std::numeric_limits<float>::infinity();

/* The smallest and the largest element, by all ways to get them. */
template <class T> void expect_extremes(std::vector<T> &numbers, float low, float high) {
  auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  umem::index_t const n = static_cast<umem::index_t>(numbers.size());
  T found[1];
  umem::View<T, 1> out(found, {1}), view(numbers.data(), {n});
  umem::View<T, 2> row(numbers.data(), {1, n}), column(numbers.data(), {n, 1});
  for (auto place : {umem::on_host, umem::on_host_threads(2)}) {
    auto expect = [&](float expected, auto const &reduce) {
      reduce(row, 1);
      EXPECT_TRUE(same(static_cast<float>(found[0]), expected)) << static_cast<float>(found[0]);
      reduce(column, 0);
      EXPECT_TRUE(same(static_cast<float>(found[0]), expected)) << static_cast<float>(found[0]);
    };
    EXPECT_TRUE(same(static_cast<float>(umem::min(place, view)), low));
    EXPECT_TRUE(same(static_cast<float>(umem::max(place, view)), high));
    expect(low, [&](auto in, int axis) { umem::min_along(place, in, axis, out); });
    expect(high, [&](auto in, int axis) { umem::max_along(place, in, axis, out); });
  }
}

template <class T> void expect_min_and_max() {
  std::vector<T> numbers(300);
  for (std::size_t n = 0; n < 300; n++) numbers[n] = T(static_cast<float>(n * 7 % 300) - 100);
  expect_extremes(numbers, -100, 199);
  for (std::size_t at : {0u, 17u, 299u}) {
    T const before = std::exchange(numbers[at], T(std::nanf("")));
    expect_extremes(numbers, std::nanf(""), std::nanf(""));
    numbers[at] = before;
  }
  for (T &x : numbers) x = T(infinity);
  expect_extremes(numbers, infinity, infinity);
  for (T &x : numbers) x = T(-infinity);
  expect_extremes(numbers, -infinity, -infinity);

  T found[2];
  umem::View<T, 1> out(found, {2});
  EXPECT_THROW(umem::min_along(umem::on_host, umem::View<T, 2>(nullptr, {2, 0}), 1, out),
               umem::value_error);
  EXPECT_THROW(umem::max_along(umem::on_host, umem::View<T, 2>(nullptr, {0, 2}), 0, out),
               umem::value_error);
}

#if HAS_CUDA_TYPES

TEST(Half, is_printed) { expect_text_of_half<__half>(); }
TEST(Half, goes_to_files_and_back) { expect_files_of_half<__half>(); }
TEST(Half, is_computed_with) { expect_loops<__half>(); }
TEST(Half, has_sums_of_float) { expect_float_sums<__half>(); }
TEST(Half, has_a_smallest_and_a_largest_one) { expect_min_and_max<__half>(); }

TEST(Bfloat16, is_printed) {
  EXPECT_EQ(row<__nv_bfloat16>({1, -0.5f, 0.1f}), "[ 1.  -0.5  0.1]");
  EXPECT_EQ(row<__nv_bfloat16>({256, 3}), "[2.56e+02 3.00e+00]");
}
TEST(Bfloat16, is_computed_with) { expect_loops<__nv_bfloat16>(); }
TEST(Bfloat16, has_sums_of_float) { expect_float_sums<__nv_bfloat16>(); }
TEST(Bfloat16, has_a_smallest_and_a_largest_one) { expect_min_and_max<__nv_bfloat16>(); }

#else

TEST(Half, is_left_out) { GTEST_SKIP() << "__half, __nv_bfloat16: there are no headers of CUDA"; }

#endif
#ifdef UMEM_HAS_FLOAT16

TEST(Float16, is_printed) { expect_text_of_half<_Float16>(); }
TEST(Float16, goes_to_files_and_back) { expect_files_of_half<_Float16>(); }
TEST(Float16, is_computed_with) { expect_loops<_Float16>(); }
TEST(Float16, has_sums_of_float) { expect_float_sums<_Float16>(); }
TEST(Float16, has_a_smallest_and_a_largest_one) { expect_min_and_max<_Float16>(); }

#else

TEST(Float16, is_left_out) { GTEST_SKIP() << "_Float16: this compiler has no such type"; }

#endif

} // namespace
