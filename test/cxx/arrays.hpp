/* arrays.hpp - what the tests of arrays share: arrays of numbered elements, and looking at them. */
#pragma once

#include "places.h"
#include "typed.hpp"

using Doubles = Array<double, 2>;

/* Whether both sides of an array are the memory of its context. */
inline bool shares_memory(umem::Context const &context) {
  return context.can(umemCpuReadable) && !context.can(umemSeparate);
}

template <class T> struct Type { using type = T; };

/* Calls f(Type<T>()) for the element types of typed.hpp. */
template <class F> void for_each_type(F const &f) {
  f(Type<float>());
  f(Type<Item>());
#ifndef UMEM_TEST_FEW_TYPES
  f(Type<std::int32_t>());
  f(Type<std::int64_t>());
  f(Type<double>());
  f(Type<std::complex<float>>());
#endif
}

/* Calls f(at, n) for the indices of all elements, ghost cells too, in the order that they have in
 * memory: the n-th. */
template <class A, class F> void for_each_cell(A const &array, F const &f) {
  auto low = array.ghosts().below, high = array.extents();
  for (int k = 0; k < A::rank; k++) {
    low[k] = -low[k];
    high[k] += array.ghosts().above[k];
  }
  umem::index_t n = 0;
  for_each_indices(low, high, [&](auto const &at) { f(at, n++); });
}

/* Makes the n-th element in memory element(first + n), on the host. */
template <class T, int N> void number(umem::ArrayAccess<T, N> &array, umem::index_t first = 1) {
  auto guard = array.host(umem::discard);
  for_each_cell(array,
                [&](auto const &at, umem::index_t n) { (*guard)(at) = element<T>(first + n); });
}

/* Expects the same there, element by element and on the host. */
template <class T, int N>
void expect_numbered(umem::ArrayAccess<T, N> const &array, umem::index_t first = 1) {
  using Value = std::remove_const_t<T>;
  for_each_cell(array, [&](auto const &at, umem::index_t n) {
    EXPECT_EQ(array.get(at), element<Value>(first + n));
  });
  auto guard = array.host(umem::read);
  for_each_cell(array, [&](auto const &at, umem::index_t n) {
    EXPECT_EQ((*guard)(at), element<Value>(first + n));
  });
}

/* So many ghost cells before and after the rows, and left and right of them. */
inline umem::ArrayOptions<2> with_ghosts(umem::index_t rows, umem::index_t columns) {
  return {umem::Extents<2>{rows, columns}};
}

/* The bytes of the memory itself, behind the array's back. */
template <class A> std::vector<typename A::value_type> memory_of(A const &array) {
  std::vector<typename A::value_type> memory(array.nbytes() / sizeof(typename A::value_type));
  if (!memory.empty()) umem::copy(array.context(), array.adr(), memory.data(), array.nbytes());
  return memory;
}
