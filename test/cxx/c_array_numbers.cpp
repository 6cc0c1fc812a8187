/* c_array_numbers.cpp - umem/c_array_numbers.hpp: conversion and random numbers of C for the arrays
 * of C and of C++. */
#include "typed.hpp"

#include <umem/array_of.hpp>
#include <umem/c_array_numbers.hpp>
#include <umem/compare.hpp>

using umem::CArray;

namespace {

template <class T> CArray make(umem::Context const &context, std::int64_t count) {
  umemStatusType status = umemOK;
  CArray array(
      umemArray_zeros(context.c_context(), umem::element_type<T>, 1, &count, nullptr, &status));
  EXPECT_EQ(status, umemOK) << umem_thread_message();
  return array;
}

} // namespace

TEST(CArrayNumbers, convert_by_the_rules_of_c) {
  umem::Host host;
  auto in = umem::Array<double, 2>::full({2, 3}, 1e300);
  in.set(-2.75, 0, 1);
  in.set(std::numeric_limits<double>::quiet_NaN(), 1, 1);
  CArray out = make<std::int16_t>(host, 6);
  umem::convert_elements(in, out);
  auto view = umem::view<std::int16_t const, 1>(out);
  EXPECT_EQ(view(0), 32767);
  EXPECT_EQ(view(1), -2);
  EXPECT_EQ(view(4), 0);
  umem::Array<float, 1> floats({6});
  umem::convert_elements(out.get(), floats);
  EXPECT_EQ(floats.get(1), -2);
  EXPECT_EQ(floats.get(5), 32767);
}

TEST(CArrayNumbers, convert_wraps_where_asked) {
  auto in = umem::array_of<double, 1>({300.75, -1.5, 65536.0 * 65536 + 7});
  umem::Array<std::int8_t, 1> out({3});
  umem::convert_elements(in, out, umem::wrapping);
  EXPECT_EQ(out.get(0), 44);
  EXPECT_EQ(out.get(1), -1);
  EXPECT_EQ(out.get(2), 7);
  umem::convert_elements(in, 2, out, 0, 1, umem::wrapping);
  EXPECT_EQ(out.get(0), 7);
  umem::convert_elements(in, 2, out, 0, 1);
  EXPECT_EQ(out.get(0), 127);
}

/* ---- umem::convert, whose results are those of C ---- */

/* Numbers of a type that are limits of some type, beside one, halfway between two, no numbers, or
 * anything. */
template <class T> std::vector<T> hard_numbers() {
  std::vector<double> const limits{
      0,     0.5,     1,     1.5,   127,   128,          255,          256,
      32767, 65519.5, 65520, 65535, 65536, 2147483647.0, 4294967295.0, 1e9};
  std::vector<T> numbers;
  auto const add = [&numbers](long double x) {
    T const near = umem::detail::converted<T, false>(x);
    numbers.push_back(near);
    if constexpr (std::is_floating_point_v<T>)
      for (T to : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity()})
        numbers.push_back(std::nextafter(near, to));
  };
  for (double x : limits)
    for (double sign : {1., -1.})
      for (double more : {-1., -0.25, 0., 0.25, 1.}) add(sign * x + more);
  for (int k = 20; k < 140; k++)
    for (double more : {0.75, 1., 1.00048828125, 1.001}) add(std::ldexp(k % 2 ? more : -more, k));
  for (int k = 1; k < 40; k++) add(std::ldexp(1.0009765625, -k));
  std::mt19937_64 random(7);
  for (int k = 0; k < 200; k++) add(static_cast<long double>(random()) - 9e18L);
  if constexpr (std::is_floating_point_v<T>)
    for (T x : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(),
                std::numeric_limits<T>::max()})
      numbers.insert(numbers.end(), {x, -x});
  return numbers;
}

/* As far as it is defined: of a NaN that it is one. */
template <class T> bool is_same_number(T const &one, T const &other) {
  if constexpr (std::is_integral_v<T>) return one == other;
  double const a = static_cast<double>(static_cast<float>(one)),
               b = static_cast<double>(static_cast<float>(other));
  return std::isnan(a) ? std::isnan(b) : std::memcmp(&one, &other, sizeof one) == 0;
}

/* The numbers by umemArray_convert, or umemArray_convert_wrapping. */
template <class To, bool wraps, class From>
umem::Array<To, 1> converted_by_c(std::vector<From> const &in) {
  auto const count = static_cast<std::int64_t>(in.size());
  umem::Host host;
  CArray source = make<From>(host, count);
  umem::Array<To, 1> target({count});
  std::memcpy(reinterpret_cast<void *>(umemArray_address(source.get())), in.data(),
              in.size() * sizeof(From));
  if constexpr (wraps)
    umem::convert_elements(source, target, umem::wrapping);
  else
    umem::convert_elements(source, target);
  return target;
}

template <class To, bool wraps, class From>
void expect_same_numbers(std::vector<From> const &in, To const *found) {
  auto const wanted = converted_by_c<To, wraps>(in);
  auto const expected = wanted.host(umem::read);
  for (std::size_t i = 0; i < in.size(); i++)
    ASSERT_TRUE(is_same_number(expected(static_cast<std::int64_t>(i)), found[i]))
        << umem::element_type<From> << " to " << umem::element_type<To> << ", wrapping " << wraps
        << ": " << static_cast<double>(static_cast<float>(in[i]));
}

/* One by one, as the loops convert them: the loops themselves take the compiler much longer. */
template <class To, bool wraps, class From> void expect_rules_of_c(std::vector<From> const &in) {
  std::unique_ptr<To[]> const found(new To[in.size()]);
  for (std::size_t i = 0; i < in.size(); i++) found[i] = umem::detail::converted<To, wraps>(in[i]);
  expect_same_numbers<To, wraps>(in, found.get());
}

template <class From, class... To> void expect_rules_of_c_for_all() {
  std::vector<From> const in = hard_numbers<From>();
  (expect_rules_of_c<To, false>(in), ...);
  (expect_rules_of_c<To, true>(in), ...);
}

template <class To, class From> void expect_rules_of_c_in_loops() {
  std::vector<From> const in = hard_numbers<From>();
  auto const count = static_cast<std::int64_t>(in.size());
  umem::Array<To, 1> have({count});
  umem::View<From const, 1> const from(in.data(), {count});
  umem::convert(from, have);
  expect_same_numbers<To, false>(in, &have.host(umem::read)(0));
  umem::convert(umem::on_host, from, have, umem::wrapping);
  expect_same_numbers<To, true>(in, &have.host(umem::read)(0));
}

template <class... T> void expect_rules_of_c_between() {
  (expect_rules_of_c_for_all<T, T...>(), ...);
}

TEST(CArrayNumbers, convert_of_cxx_has_the_results_of_c) {
#if defined(UMEM_TEST_FEW_TYPES)
  expect_rules_of_c_between<std::int8_t, std::uint8_t, std::int64_t, std::uint64_t, float,
                            double>();
#else
  expect_rules_of_c_between<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                            std::uint16_t, std::uint32_t, std::uint64_t, float, double>();
#endif
  expect_rules_of_c<bool, false>(hard_numbers<double>());
}

TEST(CArrayNumbers, loops_convert_as_c_does) {
  expect_rules_of_c_in_loops<std::int8_t, double>();
  expect_rules_of_c_in_loops<std::uint64_t, float>();
  expect_rules_of_c_in_loops<double, std::int64_t>();
  expect_rules_of_c_in_loops<std::int64_t, std::uint8_t>();
}

TEST(CArrayNumbers, convert_of_cxx_takes_complex_numbers_part_by_part) {
  auto in = umem::Array<std::complex<double>, 1>::full({2}, {1e300, -2.5});
  umem::Array<std::complex<float>, 1> want({2}), have({2});
  umem::convert_elements(in, want);
  umem::convert(in, have);
  EXPECT_EQ(have.get(1), want.get(1));
  EXPECT_EQ(have.get(1).imag(), -2.5f);
}

TEST(CArrayNumbers, convert_ranges) {
  auto in = umem::Array<int, 1>::full({5}, 3);
  auto out = umem::Array<double, 1>::full({4}, 1);
  in.set(7, 4);
  umem::convert_elements(in, 3, out, 1, 2);
  EXPECT_EQ(out.get(0), 1);
  EXPECT_EQ(out.get(1), 3);
  EXPECT_EQ(out.get(2), 7);
  EXPECT_EQ(out.get(3), 1);
  EXPECT_THROW(umem::convert_elements(in, 3, out, 1, 3), umem::index_error);
  EXPECT_EQ(out.get(3), 1);
}

TEST(CArrayNumbers, are_the_same_in_every_place) {
  umem::Array<double, 2> here({5, 7});
  umem::random_normal(here, 10, 2, 77);
  umem::File file = umem::File::scratch();
  CArray other = make<double>(file, 35);
  umem::random_normal(other, 10, 2, 77);
  umem::Array<double, 1> copy({35});
  umem::convert_elements(other, copy);
  for (int i = 0; i < 35; i++) EXPECT_EQ(here.get(i / 7, i % 7), copy.get(i));
  umem::random_uniform(here, -3, -2, 1);
  umem::random_uniform(copy, -3, -2, 1);
  for (int i = 0; i < 35; i++) {
    EXPECT_TRUE(copy.get(i) >= -3 && copy.get(i) < -2);
    EXPECT_EQ(here.get(i / 7, i % 7), copy.get(i));
  }
  EXPECT_NE(copy.get(0), copy.get(1));
}

TEST(CArrayNumbers, are_the_same_in_parts_views_guards_and_files) {
  umem::Array<double, 2> model({3, 5});
  umem::random_uniform(model, 0, 1, 9);
  auto const expect = [&](umem::ArrayAccess<double, 2> const &array, int ghosts) {
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 5; j++) EXPECT_EQ(array.get(i, j), model.get(i, j));
    if (ghosts > 0) {
      EXPECT_EQ(array.get(-1, 2), -7) << "ghost cells keep their values";
      EXPECT_EQ(array.get(1, 5), -7);
    }
  };
  umem::ArrayOptions<2> options{{1, 2}};
  for (umem::Context const &context :
       {umem::Context(umem::Host()), umem::Context(umem::File::scratch()),
        umem::Context(umem::Cuda())}) {
    auto array = umem::Array<double, 2>::full({3, 5}, -7, context, options);
    umem::random_uniform(array, 0, 1, 9);
    expect(array, 1);
    auto wide = umem::Array<double, 2>::full({10, 6}, -7, context);
    auto part = wide.part().slice(0, 0, 10, 2).transpose().slice(0, 0, 6, 2).reversed(0);
    umem::random_uniform(part, 0, 1, 9);
    umem::Array<double, 2> copied({3, 5});
    umem::copy(part, copied);
    expect(copied, 0);
    EXPECT_EQ(wide.get(1, 1), -7) << "what is between stays";
    EXPECT_EQ(wide.get(9, 5), -7);
    umem::Array<double, 2> again({3, 5}, context);
    umem::random_uniform(again.host(umem::write), 0, 1, 9);
    expect(again, 0);
    if (context.can(umemOffsets)) continue;
    umem::Array<double, 2> there({3, 5}, context);
    umem::random_uniform(there.device(umem::write), 0, 1, 9);
    expect(there, 0);
  }
  umem::Array<double, 2> here({5, 3});
  umem::random_uniform(here.host(umem::write)->transpose(), 0, 1, 9);
  for (int i = 0; i < 3; i++) EXPECT_EQ(here.get(4, i), model.get(i, 4));
}

TEST(CArrayNumbers, convert_parts_and_files) {
  umem::Array<double, 2> in({4, 3}, umem::File::scratch());
  umem::random_normal(in, 0, 100, 3);
  umem::Array<std::int16_t, 2> out({3, 2}, umem::File::scratch());
  auto const part = in.part().transpose().slice(1, 1, 3);
  umem::convert_elements(part, out);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 2; j++)
      EXPECT_EQ(out.get(i, j), static_cast<std::int16_t>(in.get(j + 1, i)));
}

TEST(CArrayNumbers, reach_a_gpu) {
  umem::Cuda gpu;
  umem::Array<float, 1> there({100}, gpu), here({100});
  umem::random_uniform(there, 0, 1, 5);
  umem::random_uniform(here, 0, 1, 5);
  umem::Array<double, 1> back({100});
  umem::convert_elements(there, back);
  for (int i = 0; i < 100; i++) EXPECT_EQ(back.get(i), double{here.get(i)});
}

TEST(CArrayNumbers, fill_what_loops_take) {
  umem::Array<double, 2> here({5, 7});
  umem::random_normal(here, 0, 1, 9);
  for (umem::Context const &context : {umem::Context(umem::File::scratch()),
                                       umem::Context(umem::Cuda()), umem::Context(umem::Host())}) {
    umem::Array<double, 2> there({5, 7}, context, {{1, 2}, {}, 0});
    umem::random_normal(there, 0, 1, 9);
    EXPECT_EQ(umem::difference(there, here), "");
    auto wide = umem::Array<double, 3>::zeros({5, 7, 2}, context);
    umem::random_normal(wide.part().select(2, 1), 0, 1, 9);
    EXPECT_EQ(umem::difference(wide.part().select(2, 1), here), "");
    EXPECT_EQ(umem::sum(umem::on_host, wide.part().select(2, 0)), 0);
    EXPECT_THROW(umem::random_uniform(wide.part().select(2, 1), 1, 1, 9), umem::value_error);
    EXPECT_EQ(umem::difference(wide.part().select(2, 1), here), ""); /* as before */
  }
  umem::Array<double, 2> none({0, 7});
  umem::random_uniform(none.part(), 0, 1, 9);
}

TEST(CArrayNumbers, throw_what_c_records) {
  auto const fixed = umem::Array<double, 1>::full({4}, 1);
  umem::Array<int, 1> ints({4});
  umem::Array<double, 1> five({5});
  EXPECT_THROWS(umem::convert_elements(fixed, five), umem::value_error,
                "4 elements cannot become 5");
  EXPECT_THROW(static_cast<void>(umem::convert_elements(ints, umem::c_array(fixed))),
               umem::not_supported_error);
  EXPECT_THROW(umem::convert_elements(CArray(), ints), umem::value_error);
  EXPECT_THROW(umem::random_uniform(ints, 0, 1, 1), umem::type_error);
  EXPECT_THROW(umem::random_uniform(five, 1, 0, 1), umem::value_error);
  EXPECT_THROW(umem::random_normal(five, 0, -1, 1), umem::value_error);
  CArray held = umem::c_array(five, umem::write);
  EXPECT_THROW(umem::random_normal(five, 0, 1, 1), umem::locked_error);
}
