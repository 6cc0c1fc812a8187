/* umem/fill.hpp - sets elements to one value or to their numbers, on host or GPU.
 *
 *     umem::fill(array, 0.0);
 *     umem::iota(umem::on_host, view, 1, 2);                // 1, 3, 5, ... in C order
 *
 * See for_each.hpp for places, elements and failures. */
#ifndef UMEM_FILL_HPP
#define UMEM_FILL_HPP

#include <umem/element.hpp>
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
    element = static_cast<Type>(start + step * static_cast<Type>(offset_of(strides, i...)));
  }
};

/* The step of iota as an element, and for unsigned elements modulo their range. The check has
 * 64 bits of precision or more, which is exact: what is beyond fits no element. */
template <class Type, class Value, class Step>
Type step_of(Value const &start, Step const &step, index_t count) {
  if constexpr (is_integer<Type> && std::is_arithmetic_v<Value> && std::is_arithmetic_v<Step>) {
    long double const last = static_cast<long double>(start) +
                             static_cast<long double>(step) * static_cast<long double>(count - 1);
    if (count > 1) as_element<Type>("iota", last);
    if constexpr (std::is_floating_point_v<Step>)
      return static_cast<Type>(as_element<std::int64_t>("iota", step));
  }
  return static_cast<Type>(step);
}

} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* Every element becomes value. Throws umem::value_error for integers whose type does not have it:
 * too large or too small, a fraction, NaN. */
template <class PlaceType, class Operand, class Value, class = detail::if_place<PlaceType>>
void fill(PlaceType const &place, Operand &&elements, Value const &value) {
  using Type = detail::value_of<detail::bare_t<Operand>>;
  detail::loop("fill", place, detail::SetTo<Type>{detail::as_element<Type>("fill", value)},
               detail::use(elements, discard));
}
UMEM_AT_HOME(fill)

/* start, start + step, start + 2 * step, ... in C order. Each element is computed from its
 * number, with the arithmetic of the element type. Throws umem::value_error for integers if one of
 * these numbers is a fraction or out of range. */
template <class PlaceType, class Operand, class Value, class Step = int,
          class = detail::if_place<PlaceType>>
void iota(PlaceType const &place, Operand &&elements, Value const &start, Step const &step = 1) {
  using Type = detail::value_of<detail::bare_t<Operand>>;
  constexpr int Rank = detail::rank_of<detail::bare_t<Operand>>;
  Extents<Rank> const extents = detail::extents_of(elements);
  detail::Count<Type, Rank> count{detail::as_element<Type>("iota", start),
                                  detail::step_of<Type>(start, step, extents.product()),
                                  c_strides(extents)};
  detail::loop_indexed<index_t>("iota", place, count, nullptr, detail::use(elements, discard));
}
UMEM_AT_HOME(iota)

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
