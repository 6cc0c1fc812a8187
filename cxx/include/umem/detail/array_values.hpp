/* umem/detail/array_values.hpp - the elements of new arrays, from nested lists, ranges and iterators. */
#ifndef UMEM_DETAIL_ARRAY_VALUES_HPP
#define UMEM_DETAIL_ARRAY_VALUES_HPP

#include <umem/error.hpp>
#include <umem/extents.hpp>
#include <umem/shape.hpp>

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* ---- nested lists ---- */

template <class T, int N> struct NestedListOf {
  using type = std::initializer_list<typename NestedListOf<T, N - 1>::type>;
};
template <class T> struct NestedListOf<T, 0> { using type = T; };

/* A list of lists of ... T, N levels deep; for N == 0 a T. */
template <class T, int N> using NestedList = typename NestedListOf<T, N>::type;

/* at: the indices of the list; the first `depth` are in use. */
[[noreturn]] inline void raise_ragged(index_t const *at, int depth, std::size_t count,
                                      index_t expected) {
  raise_text(umemValueError,
             "the nested lists are ragged: list %s has %zu entries, those before it have %td",
             InWords(at, at + depth).text, count, expected);
}

/* The extents along the first list of each level. */
template <class T, int N, int K = 0>
void find_extents(NestedList<T, N - K> const &list, Extents<N> &extents) {
  if constexpr (K < N) {
    extents.at[K] = static_cast<index_t>(list.size());
    if (list.size() > 0) find_extents<T, N, K + 1>(*list.begin(), extents);
  }
}

/* Throws umem::value_error unless all lists of a level have one length. */
template <class T, int N, int K = 0>
void check_lists(NestedList<T, N - K> const &list, Extents<N> const &extents, Extents<N> &at) {
  if constexpr (K < N) {
    if (list.size() != static_cast<std::size_t>(extents.at[K]))
      raise_ragged(at.begin(), K, list.size(), extents.at[K]);
    at.at[K] = 0;
    for (auto const &inner : list) {
      check_lists<T, N, K + 1>(inner, extents, at);
      at.at[K]++;
    }
  }
}

template <class T, int N> Extents<N> extents_of_list(NestedList<T, N> const &list) {
  Extents<N> extents, at;
  find_extents<T, N>(list, extents);
  check_lists<T, N>(list, extents, at);
  return extents;
}

/* Writes the values of a list in C order; returns where the next one goes. */
template <class T, int N> T *write_list(NestedList<T, N> const &list, T *to) {
  if constexpr (N == 0) {
    *to++ = list;
  } else {
    for (auto const &inner : list) to = write_list<T, N - 1>(inner, to);
  }
  return to;
}

/* ---- iterators and ranges ---- */

template <class It, class = void> inline constexpr bool is_iterator = false;
template <class It>
inline constexpr bool
    is_iterator<It, std::void_t<typename std::iterator_traits<It>::iterator_category,
                                decltype(*std::declval<It &>())>> = true;

/* Arrays, parts and views: their elements may be where the CPU cannot read them. */
template <class V, class = void> inline constexpr bool has_rank = false;
template <class V> inline constexpr bool has_rank<V, std::void_t<decltype(V::rank)>> = true;

template <class V> inline constexpr bool is_numbers = std::is_same_v<V, Shape>;
template <int N> inline constexpr bool is_numbers<Extents<N>> = true;

} // namespace detail
} // namespace umem

#endif
