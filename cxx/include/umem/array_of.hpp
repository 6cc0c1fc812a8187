/* umem/array_of.hpp - new arrays of elements that the program has: in braces, in containers of the standard library,
 * behind iterators.
 *
 *     auto u = umem::array_of({{1., 2.}, {3., 4.}});             // an Array<double, 2> in RAM
 *     auto v = umem::array_of(vector, umem::Cuda());             // the elements of a std::vector, a span, ...
 *     auto w = umem::array_of(vector, umem::Extents{3, 4}, gpu); // in C order
 *     auto x = umem::array_of(set.begin(), set.end());           // of any iterators
 *     auto y = umem::array_of<float, 4>({{{{1, 2}}}});           // any type and rank
 *
 * All functions copy, and throw what the constructor of Array throws. Array::wrap_unowned makes an array over memory
 * without a copy. */
#ifndef UMEM_ARRAY_OF_HPP
#define UMEM_ARRAY_OF_HPP

#include <umem/array.hpp>
#include <umem/detail/array_values.hpp>

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace umem {
namespace detail {

/* A container whose elements follow each other in memory. */
template <class C, class = void> inline constexpr bool is_in_memory = false;
template <class C>
inline constexpr bool is_in_memory<C, std::void_t<decltype(*std::declval<C const &>().data()),
                                                  decltype(std::declval<C const &>().size())>> =
    std::is_pointer_v<decltype(std::declval<C const &>().data())>;

template <class C>
using element_of =
    std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<C const &>().data())>>;

template <int N> void check_count(index_t count, Extents<N> const &extents) {
  if (count != checked_product(extents))
    raise_text(umemValueError, "array_of: %td elements do not fill extents %s", count,
               in_words(extents).text);
}

template <class T, int N>
Array<T, N> array_from(T const *first, Extents<N> const &extents, Context &&context,
                       ArrayOptions<N> const &options) {
  Array<T, N> made(extents, std::move(context), options);
  if (made.size() > 0)
    Array<T const, N>::wrap_unowned(reinterpret_cast<address>(first), extents, pointers())
        .copy_to(made);
  return made;
}

template <class T, int N>
Array<T, N> array_from_lists(NestedList<T, N> const &values, Context &&context,
                             ArrayOptions<N> const &options) {
  Array<T, N> list(extents_of_list<T, N>(values));
  if (list.size() > 0) write_list<T, N>(values, list.host(discard)->data);
  return array_from<T, N>(list.size() > 0 ? list.host(read)->data : nullptr, list.extents(),
                          std::move(context), options);
}

/* A range whose elements do not follow each other in memory, such as a std::list. What has a rank may be where the CPU
 * cannot read it. */
template <class C, class = void> inline constexpr bool is_range_of_others = false;
template <class C>
inline constexpr bool
    is_range_of_others<C, std::void_t<decltype(std::begin(std::declval<C const &>())),
                                      decltype(std::end(std::declval<C const &>()))>> =
        !is_in_memory<C> && !has_rank<C> && !std::is_array_v<C> && !is_numbers<C>;

template <class C>
using element_of_range =
    typename std::iterator_traits<decltype(std::begin(std::declval<C const &>()))>::value_type;

} // namespace detail

/* ---- in braces ---- */

/* Up to three levels. umem::value_error if the lists of a level have different lengths. */
template <class T>
Array<T, 1> array_of(std::initializer_list<T> values, Context context = detail::pointers(),
                     ArrayOptions<1> const &options = {}) {
  return detail::array_from_lists<T, 1>(values, std::move(context), options);
}
template <class T>
Array<T, 2> array_of(std::initializer_list<std::initializer_list<T>> values,
                     Context context = detail::pointers(), ArrayOptions<2> const &options = {}) {
  return detail::array_from_lists<T, 2>(values, std::move(context), options);
}
template <class T>
Array<T, 3> array_of(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values,
                     Context context = detail::pointers(), ArrayOptions<3> const &options = {}) {
  return detail::array_from_lists<T, 3>(values, std::move(context), options);
}

/* With type and rank any number of levels: array_of<float, 4>({{{{1, 2}}}}), array_of<double, 0>(1). */
template <class T, int N>
Array<T, N> array_of(detail::NestedList<T, N> const &values, Context context = detail::pointers(),
                     ArrayOptions<N> const &options = {}) {
  return detail::array_from_lists<T, N>(values, std::move(context), options);
}

/* ---- of arrays of C ---- */

template <class T, std::size_t n>
Array<T, 1> array_of(T const (&list)[n], Context context = detail::pointers(),
                     ArrayOptions<1> const &options = {}) {
  return detail::array_from<T, 1>(list, {n}, std::move(context), options);
}
template <class T, std::size_t m, std::size_t n>
Array<T, 2> array_of(T const (&list)[m][n], Context context = detail::pointers(),
                     ArrayOptions<2> const &options = {}) {
  return detail::array_from<T, 2>(list[0], {m, n}, std::move(context), options);
}
template <class T, std::size_t l, std::size_t m, std::size_t n>
Array<T, 3> array_of(T const (&list)[l][m][n], Context context = detail::pointers(),
                     ArrayOptions<3> const &options = {}) {
  return detail::array_from<T, 3>(list[0][0], {l, m, n}, std::move(context), options);
}

/* ---- of a std::vector, std::array, std::span, std::string, ...: what has data() and size() ---- */

template <class C, class = std::enable_if_t<detail::is_in_memory<C>>>
Array<detail::element_of<C>, 1> array_of(C const &elements, Context context = detail::pointers(),
                                         ArrayOptions<1> const &options = {}) {
  return detail::array_from<detail::element_of<C>, 1>(
      elements.data(), {static_cast<index_t>(elements.size())}, std::move(context), options);
}

/* In C order; umem::value_error unless there are as many elements as extents want. */
template <class C, int N, class = std::enable_if_t<detail::is_in_memory<C>>>
Array<detail::element_of<C>, N> array_of(C const &elements, Extents<N> const &extents,
                                         Context context = detail::pointers(),
                                         ArrayOptions<N> const &options = {}) {
  detail::check_count(static_cast<index_t>(elements.size()), extents);
  return detail::array_from<detail::element_of<C>, N>(elements.data(), extents, std::move(context),
                                                      options);
}

/* ---- of [first, last), of any input iterators ---- */

template <class I, class T = typename std::iterator_traits<I>::value_type,
          class = std::enable_if_t<detail::is_iterator<I>>>
Array<T, 1> array_of(I first, I last, Context context = detail::pointers(),
                     ArrayOptions<1> const &options = {}) {
  struct Cell { /* a std::vector<bool> would pack them */
    T value;
  };
  std::vector<Cell> cells;
  for (; first != last; ++first) cells.push_back({*first});
  return detail::array_from<T, 1>(cells.empty() ? nullptr : &cells[0].value,
                                  {static_cast<index_t>(cells.size())}, std::move(context),
                                  options);
}

/* In C order; umem::value_error unless there are as many elements as extents want. */
template <class I, int N, class T = typename std::iterator_traits<I>::value_type,
          class = std::enable_if_t<detail::is_iterator<I>>>
Array<T, N> array_of(I first, I last, Extents<N> const &extents,
                     Context context = detail::pointers(), ArrayOptions<N> const &options = {}) {
  auto const all = array_of(first, last);
  detail::check_count(all.size(), extents);
  auto const guard = all.host(read);
  return detail::array_from<T, N>(guard->data, extents, std::move(context), options);
}

/* ---- of other ranges, such as a std::list or a std::vector<bool> ---- */

template <class C, class = std::enable_if_t<detail::is_range_of_others<C>>, class = void>
Array<detail::element_of_range<C>, 1> array_of(C const &elements,
                                               Context context = detail::pointers(),
                                               ArrayOptions<1> const &options = {}) {
  return array_of(std::begin(elements), std::end(elements), std::move(context), options);
}
template <class C, int N, class = std::enable_if_t<detail::is_range_of_others<C>>, class = void>
Array<detail::element_of_range<C>, N> array_of(C const &elements, Extents<N> const &extents,
                                               Context context = detail::pointers(),
                                               ArrayOptions<N> const &options = {}) {
  return array_of(std::begin(elements), std::end(elements), extents, std::move(context), options);
}

} // namespace umem

#endif
