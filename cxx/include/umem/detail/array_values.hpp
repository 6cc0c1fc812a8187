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

template <class Type, int Rank> struct NestedListOf {
  using type = std::initializer_list<typename NestedListOf<Type, Rank - 1>::type>;
};
template <class Type> struct NestedListOf<Type, 0> { using type = Type; };

/* A list of lists of ... Type, Rank levels deep; for Rank == 0 a Type. */
template <class Type, int Rank> using NestedList = typename NestedListOf<Type, Rank>::type;

/* at: the indices of the list; the first `depth` are in use. */
[[noreturn]] inline void raise_ragged(index_t const *at, int depth, std::size_t count,
                                      index_t expected) {
  raise_text(umemValueError,
             "the nested lists are ragged: list %s has %zu entries, those before it have %td",
             InWords(at, at + depth).text, count, expected);
}

/* The extents along the first list of each level. */
template <class Type, int Rank, int Depth = 0>
void find_extents(NestedList<Type, Rank - Depth> const &list, Extents<Rank> &extents) {
  if constexpr (Depth < Rank) {
    extents.at[Depth] = static_cast<index_t>(list.size());
    if (list.size() > 0) find_extents<Type, Rank, Depth + 1>(*list.begin(), extents);
  }
}

/* Throws umem::value_error unless all lists of a level have one length. */
template <class Type, int Rank, int Depth = 0>
void check_lists(NestedList<Type, Rank - Depth> const &list, Extents<Rank> const &extents,
                 Extents<Rank> &at) {
  if constexpr (Depth < Rank) {
    if (list.size() != static_cast<std::size_t>(extents.at[Depth]))
      raise_ragged(at.begin(), Depth, list.size(), extents.at[Depth]);
    at.at[Depth] = 0;
    for (auto const &inner : list) {
      check_lists<Type, Rank, Depth + 1>(inner, extents, at);
      at.at[Depth]++;
    }
  }
}

template <class Type, int Rank> Extents<Rank> extents_of_list(NestedList<Type, Rank> const &list) {
  Extents<Rank> extents, at;
  find_extents<Type, Rank>(list, extents);
  check_lists<Type, Rank>(list, extents, at);
  return extents;
}

/* Writes the values of a list in C order; returns where the next one goes. */
template <class Type, int Rank> Type *write_list(NestedList<Type, Rank> const &list, Type *to) {
  if constexpr (Rank == 0) {
    *to++ = list;
  } else {
    for (auto const &inner : list) to = write_list<Type, Rank - 1>(inner, to);
  }
  return to;
}

/* ---- iterators and ranges ---- */

template <class Iter, class = void> inline constexpr bool is_iterator = false;
template <class Iter>
inline constexpr bool
    is_iterator<Iter, std::void_t<typename std::iterator_traits<Iter>::iterator_category,
                                  decltype(*std::declval<Iter &>())>> = true;

/* Arrays, parts and views: their elements may be where the CPU cannot read them. */
template <class Value, class = void> inline constexpr bool has_rank = false;
template <class Value>
inline constexpr bool has_rank<Value, std::void_t<decltype(Value::rank)>> = true;

template <class Value> inline constexpr bool is_numbers = std::is_same_v<Value, Shape>;
template <int Rank> inline constexpr bool is_numbers<Extents<Rank>> = true;

} // namespace detail
} // namespace umem

#endif
