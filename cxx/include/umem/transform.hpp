/* umem/transform.hpp - elements computed from those of one or two others, on host or GPU.
 *
 *     umem::transform(umem::on_host, x, y, z, Add());       // z = x + y
 *     umem::transform(x_array, z_array, Square());          // on the place of z_array
 *
 * See for_each.hpp for places, elements, order and failures. All extents must be equal, else the
 * call throws umem::value_error. An input may be the output itself, but must not overlap it
 * otherwise. A call that refuses its arguments leaves the output as it was. If the call fails
 * for another reason, the side of an output array that was current before is current again,
 * unless it is the side that the call has written.
 *
 * The operands are those of for_each.hpp, and so is the place if the caller names none: the home of
 * the output, or the host if a kernel there cannot use an input. Then arrays transfer their
 * elements to the host, the host side of the output becomes current, and its next use on the GPU
 * transfers it. For more inputs or outputs use for_each. */
#ifndef UMEM_TRANSFORM_HPP
#define UMEM_TRANSFORM_HPP

#include <umem/for_each.hpp>

namespace umem {

namespace detail {

/* out = functor(in...), one function for each side: so the compiler reports a functor that is not
 * for that side. */
template <class Function> struct Assign { Function functor; };
template <class Function> struct AssignOnHost {
  Function functor;
  template <class Type, class... Operands> void operator()(Type &out, Operands const &...in) {
    out = static_cast<Type>(functor(in...));
  }
};
template <class Function> struct AssignOnDevice {
  Function functor;
  template <class Type, class... Operands>
  UMEM_DEVICE_FUNCTION void operator()(Type &out, Operands const &...in) {
    out = static_cast<Type>(functor(in...));
  }
};
template <class Function> AssignOnHost<Function> for_host(Assign<Function> const &assign) {
  check_for_host<Function>();
  return {assign.functor};
}
template <class Function> AssignOnDevice<Function> for_device(Assign<Function> const &assign) {
  check_for_device<Function>();
  return {assign.functor};
}

inline namespace UMEM_LAUNCH_NAMESPACE {

template <class Function> inline constexpr int first_operand<Assign<Function>> = 0;

/* Whether what a functor returns can become an element Type. */
template <class Type, class Function, class... Types> constexpr bool gives_element() {
  if constexpr (hides_parameters<Function>()) {
    return true;
  } else {
    using Result = std::decay_t<std::invoke_result_t<Function &, Types &...>>;
    constexpr bool fits =
        std::is_constructible_v<Type, Result> || std::is_enum_v<Type> || std::is_enum_v<Result>;
    static_assert(fits || !is_complex<Result>,
                  "f returns a complex number, which elements that are real cannot be");
    static_assert(fits || is_complex<Result>, "f returns what no element of the output can be");
    return fits;
  }
}

template <class PlaceType, class Function, class Output, class... Uses>
void transform_uses(Called const &function, PlaceType const &place, Function const &f,
                    Output const &out, Uses const &...uses) {
  constexpr bool fits = returns_value<Function, typename Uses::value_type const...>();
  static_assert(fits, UMEM_FUNCTOR_OF_ELEMENTS);
  if constexpr (fits)
    if constexpr (gives_element<typename Output::value_type, Function,
                                typename Uses::value_type const...>())
      loop(function, place, Assign<Function>{f}, out, uses...);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* out = functor(in) */
template <class PlaceType, class Operand, class Other, class Function,
          class = detail::if_place<PlaceType>>
void transform(PlaceType const &place, Operand const &in, Other &&out, Function f) {
  detail::transform_uses("transform", place, f, detail::use(out, discard), detail::use(in, read));
}

/* out = f(one, two) */
template <class PlaceType, class Operand, class Other, class Output, class Function,
          class = detail::if_place<PlaceType>>
void transform(PlaceType const &place, Operand const &one, Other const &two, Output &&out,
               Function f) {
  detail::transform_uses("transform", place, f, detail::use(out, discard), detail::use(one, read),
                         detail::use(two, read));
}
UMEM_AT_HOME(transform)

/* What to write instead. */
template <class None = void>
void transform(detail::Anything, detail::Anything = {}, detail::Anything = {},
               detail::Anything = {}, detail::Anything = {}, detail::Anything = {},
               detail::Anything = {}) {
  static_assert(detail::never<None>,
                "transform: write transform(in, out, f) or transform(one, two, out, f), or a place "
                "before these; for more operands write for_each(f, out, one, two, three)");
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
