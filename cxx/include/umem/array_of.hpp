/* umem/array_of.hpp - new arrays of elements that the program has: in braces, in containers of the
 * standard library, behind iterators.
 *
 *     auto u = umem::array_of({{1., 2.}, {3., 4.}});             // an Array<double, 2>, in RAM
 *     auto v = umem::array_of(vector, umem::Cuda());             // of a std::vector, a span, ...
 *     auto w = umem::array_of(vector, umem::Extents{3, 4}, gpu); // in C order
 *     auto x = umem::array_of(set.begin(), set.end());           // of any iterators
 *     auto y = umem::array_of<float, 4>({{{{1, 2}}}});           // any type and rank
 *
 * All functions copy, and throw what the constructor of Array throws. Array::wrap_unowned makes an
 * array over memory without a copy. */
#ifndef UMEM_ARRAY_OF_HPP
#define UMEM_ARRAY_OF_HPP

#include <umem/array.hpp>
#include <umem/shape.hpp>

namespace umem {
namespace detail {

/* The elements of new arrays, from nested lists, ranges and iterators. */

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

/* ---- arrays of C, iterators and ranges ---- */

template <class List, std::size_t... Nth>
constexpr Extents<sizeof...(Nth)> extents_of_c_array(std::index_sequence<Nth...>) {
  return {std::extent_v<List, Nth>...};
}

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

/* A container whose elements follow each other in memory. */
template <class Container, class = void> inline constexpr bool is_in_memory = false;
template <class Container>
inline constexpr bool
    is_in_memory<Container, std::void_t<decltype(*std::declval<Container const &>().data()),
                                        decltype(std::declval<Container const &>().size())>> =
        std::is_pointer_v<decltype(std::declval<Container const &>().data())>;

/* A range whose elements do not follow each other in memory, such as a std::list. What has a rank
 * may be where the CPU cannot read it. */
template <class Container, class = void> inline constexpr bool is_range_of_others = false;
template <class Container>
inline constexpr bool is_range_of_others<
    Container, std::void_t<decltype(std::begin(std::declval<Container const &>())),
                           decltype(std::end(std::declval<Container const &>()))>> =
    !is_in_memory<Container> && !has_rank<Container> && !std::is_array_v<Container> &&
    !is_numbers<Container>;

/* The type of the elements of either; none of what is neither. */
template <class Container, class = void> struct ElementOf {};
template <class Container> struct ElementOf<Container, std::enable_if_t<is_in_memory<Container>>> {
  using type =
      std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<Container const &>().data())>>;
};
template <class Container>
struct ElementOf<Container, std::enable_if_t<is_range_of_others<Container>>> {
  using type = typename std::iterator_traits<decltype(std::begin(
      std::declval<Container const &>()))>::value_type;
};
template <class Container> using element_of = typename ElementOf<Container>::type;

template <int Rank> void check_count(index_t count, Extents<Rank> const &extents) {
  if (count != checked_product(extents))
    raise_text(umemValueError, "array_of: %td elements do not fill extents %s", count,
               in_words(extents).text);
}

template <class Type, int Rank>
Array<Type, Rank> array_from(Type const *first, Extents<Rank> const &extents, Context &&context,
                             ArrayOptions<Rank> const &options) {
  Array<Type, Rank> made(extents, std::move(context), options);
  if (made.size() > 0)
    Array<Type const, Rank>::wrap_unowned(reinterpret_cast<address>(first), extents, pointers())
        .copy_to(made);
  return made;
}

template <class Type, int Rank>
Array<Type, Rank> array_from_lists(NestedList<Type, Rank> const &values, Context &&context,
                                   ArrayOptions<Rank> const &options) {
  Array<Type, Rank> list(extents_of_list<Type, Rank>(values), pointers());
  if (list.size() > 0) write_list<Type, Rank>(values, list.host(discard)->data);
  return array_from<Type, Rank>(list.size() > 0 ? list.host(read)->data : nullptr, list.extents(),
                                std::move(context), options);
}

} // namespace detail

/* ---- in braces ---- */

/* Up to three levels. umem::value_error if the lists of a level have different lengths. */
template <class Type>
Array<Type, 1> array_of(std::initializer_list<Type> values, Context context = default_context(),
                        ArrayOptions<1> const &options = {}) {
  return detail::array_from_lists<Type, 1>(values, std::move(context), options);
}
template <class Type>
Array<Type, 2> array_of(std::initializer_list<std::initializer_list<Type>> values,
                        Context context = default_context(), ArrayOptions<2> const &options = {}) {
  return detail::array_from_lists<Type, 2>(values, std::move(context), options);
}
template <class Type>
Array<Type, 3>
array_of(std::initializer_list<std::initializer_list<std::initializer_list<Type>>> values,
         Context context = default_context(), ArrayOptions<3> const &options = {}) {
  return detail::array_from_lists<Type, 3>(values, std::move(context), options);
}

/* With type and rank any number of levels: array_of<float, 4>({{{{1, 2}}}}), array_of<double,
 * 0>(1). */
template <class Type, int Rank>
Array<Type, Rank> array_of(detail::NestedList<Type, Rank> const &values,
                           Context context = default_context(),
                           ArrayOptions<Rank> const &options = {}) {
  return detail::array_from_lists<Type, Rank>(values, std::move(context), options);
}

/* ---- of arrays of C ---- */

template <class Row, std::size_t n, class Type = std::remove_all_extents_t<Row>,
          int Rank = 1 + static_cast<int>(std::rank_v<Row>)>
Array<Type, Rank> array_of(Row const (&list)[n], Context context = default_context(),
                           ArrayOptions<Rank> const &options = {}) {
  return detail::array_from<Type, Rank>(
      reinterpret_cast<Type const *>(list),
      detail::extents_of_c_array<Row[n]>(
          std::make_index_sequence<static_cast<std::size_t>(Rank)>()),
      std::move(context), options);
}

/* ---- of [first, last), of any input iterators ---- */

template <class Iter, class Type = typename std::iterator_traits<Iter>::value_type,
          class = std::enable_if_t<detail::is_iterator<Iter>>>
Array<Type, 1> array_of(Iter first, Iter last, Context context = default_context(),
                        ArrayOptions<1> const &options = {}) {
  struct Cell { /* a std::vector<bool> would pack them */
    Type value;
  };
  std::vector<Cell> cells;
  for (; first != last; ++first) cells.push_back({*first});
  return detail::array_from<Type, 1>(cells.empty() ? nullptr : &cells[0].value,
                                     {static_cast<index_t>(cells.size())}, std::move(context),
                                     options);
}

/* In C order; umem::value_error unless there are as many elements as extents want. */
template <class Iter, int Rank, class Type = typename std::iterator_traits<Iter>::value_type,
          class = std::enable_if_t<detail::is_iterator<Iter>>>
Array<Type, Rank> array_of(Iter first, Iter last, Extents<Rank> const &extents,
                           Context context = default_context(),
                           ArrayOptions<Rank> const &options = {}) {
  auto const all = array_of(first, last, detail::pointers());
  detail::check_count(all.size(), extents);
  auto const guard = all.host(read);
  return detail::array_from<Type, Rank>(guard->data, extents, std::move(context), options);
}

/* ---- of a std::vector, std::array, std::span, std::string, ...: what has data() and size(); and
 * of other ranges, such as a std::list or a std::vector<bool> ---- */

template <class Container, class Type = detail::element_of<Container>>
Array<Type, 1> array_of(Container const &elements, Context context = default_context(),
                        ArrayOptions<1> const &options = {}) {
  if constexpr (detail::is_in_memory<Container>)
    return detail::array_from<Type, 1>(elements.data(), {static_cast<index_t>(elements.size())},
                                       std::move(context), options);
  else
    return array_of(std::begin(elements), std::end(elements), std::move(context), options);
}

/* In C order; umem::value_error unless there are as many elements as extents want. */
template <class Container, int Rank, class Type = detail::element_of<Container>>
Array<Type, Rank> array_of(Container const &elements, Extents<Rank> const &extents,
                           Context context = default_context(),
                           ArrayOptions<Rank> const &options = {}) {
  if constexpr (detail::is_in_memory<Container>) {
    detail::check_count(static_cast<index_t>(elements.size()), extents);
    return detail::array_from<Type, Rank>(elements.data(), extents, std::move(context), options);
  } else {
    return array_of(std::begin(elements), std::end(elements), extents, std::move(context), options);
  }
}

} // namespace umem

#endif
