/* typed.hpp - what typed tests of the C++ headers go over: element types and ranks. */
#pragma once

#include "tests.hpp"

/* An element type of a user. */
struct Item {
  std::int32_t number;
  double value;

  friend bool operator==(Item const &one, Item const &other) {
    return one.number == other.number && one.value == other.value;
  }
};

#ifdef UMEM_TEST_FEW_TYPES
using ElementTypes = testing::Types<float, Item>;
#else
using ElementTypes =
    testing::Types<std::int32_t, std::int64_t, float, double, std::complex<float>, Item>;
#endif

/* The element number n, different from those of other n. */
template <class T> T element(umem::index_t n) {
  if constexpr (std::is_same_v<T, Item>)
    return Item{static_cast<std::int32_t>(n), 0.5 * static_cast<double>(n)};
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(n);
  else
    return T(static_cast<typename T::value_type>(n), 1);
}

/* Calls f(std::integral_constant<int, N>) for the ranks 0 to 5. */
template <class F> void for_each_rank(F const &f) {
  auto call = [&](auto rank) {
    SCOPED_TRACE("rank " + std::to_string(rank.value));
    f(rank);
  };
  call(std::integral_constant<int, 0>());
  call(std::integral_constant<int, 1>());
  call(std::integral_constant<int, 2>());
  call(std::integral_constant<int, 3>());
  call(std::integral_constant<int, 4>());
  call(std::integral_constant<int, 5>());
}

/* The first N of five numbers. */
template <int N>
umem::Extents<N> first_of(umem::index_t a, umem::index_t b, umem::index_t c, umem::index_t d,
                          umem::index_t e) {
  umem::index_t const all[] = {a, b, c, d, e};
  umem::Extents<N> extents;
  for (int k = 0; k < N; k++) extents[k] = all[k];
  return extents;
}

/* Calls f(indices) for low <= indices < high in C order, and returns how often. */
template <int N, class F>
umem::index_t for_each_indices(umem::Extents<N> const &low, umem::Extents<N> const &high,
                               F const &f) {
  for (int k = 0; k < N; k++)
    if (low[k] >= high[k]) return 0;
  umem::Extents<N> at = low;
  for (umem::index_t calls = 1;; calls++) {
    f(at);
    int k = N - 1;
    while (k >= 0 && ++at[k] == high[k]) {
      at[k] = low[k];
      k--;
    }
    if (k < 0) return calls;
  }
}

/* f(at[0], at[1], ...) */
template <int N, class F, int... K>
decltype(auto) call_with(F const &f, umem::Extents<N> const &at, std::integer_sequence<int, K...>) {
  static_cast<void>(at);
  return f(at[K]...);
}
template <int N, class F> decltype(auto) call_with(F const &f, umem::Extents<N> const &at) {
  return call_with(f, at, std::make_integer_sequence<int, N>());
}

/* That the statement throws type with exactly this message. */
#define EXPECT_THROWS(statement, type, text)                                                       \
  EXPECT_EQ(thrown_by<type>([&] { statement; }), text) << "is thrown by " #statement
