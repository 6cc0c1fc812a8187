/* umem/fill.hpp - sets elements to one value or to their numbers, on host or GPU.
 *
 *     umem::fill(array, 0.0);
 *     umem::iota(umem::on_host, view, 1, 2);                // 1, 3, 5, ... in C order
 *
 * See for_each.hpp for places, elements and failures. */
#ifndef UMEM_FILL_HPP
#define UMEM_FILL_HPP

#include <umem/for_each.hpp>

namespace umem {

namespace detail {

/* element = value */
template <class Type> struct SetTo {
  Type value;
  UMEM_FUNCTION void operator()(Type &element) const { element = value; }
};

/* element = start + step * number of the element in C order */
template <class Type, int Rank> struct Count {
  Type start, step;
  Extents<Rank> strides;

  template <class... Indices> UMEM_FUNCTION void operator()(Type &element, Indices... i) const {
    index_t n = number(std::make_integer_sequence<int, Rank>(), i...);
    element = static_cast<Type>(start + step * static_cast<Type>(n));
  }

private:
  template <int... Nth, class... Indices>
  UMEM_FUNCTION index_t number(std::integer_sequence<int, Nth...>, Indices... i) const {
    return ((i * strides.at[Nth]) + ... + index_t(0));
  }
};

} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* Every element becomes value. */
template <class PlaceType, class Operand, class Value, class = detail::if_place<PlaceType>>
void fill(PlaceType const &place, Operand &&elements, Value const &value) {
  using Type = detail::value_of<detail::bare_t<Operand>>;
  detail::loop("fill", place, detail::SetTo<Type>{static_cast<Type>(value)},
               detail::use(elements, discard));
}
template <class Operand, class Value, class = detail::if_operand<Operand>>
void fill(Operand &&elements, Value const &value) {
  fill(detail::AtHome(), elements, value);
}

/* start, start + step, start + 2 * step, ... in C order. Each element is computed from its
 * number, with the arithmetic of the element type. */
template <class PlaceType, class Operand, class Value, class Step = int,
          class = detail::if_place<PlaceType>>
void iota(PlaceType const &place, Operand &&elements, Value const &start, Step const &step = 1) {
  using Type = detail::value_of<detail::bare_t<Operand>>;
  constexpr int Rank = detail::rank_of<detail::bare_t<Operand>>;
  Extents<Rank> const extents = detail::extents_of(elements);
  detail::Count<Type, Rank> count{static_cast<Type>(start), static_cast<Type>(step),
                                  c_strides(extents)};
  detail::loop_indexed<index_t>("iota", place, count, nullptr, detail::use(elements, discard));
}
template <class Operand, class Value, class Step = int, class = detail::if_operand<Operand>>
void iota(Operand &&elements, Value const &start, Step const &step = 1) {
  iota(detail::AtHome(), elements, start, step);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
