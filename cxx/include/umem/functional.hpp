/* umem/functional.hpp - operations for reductions, on host and device. */
#ifndef UMEM_FUNCTIONAL_HPP
#define UMEM_FUNCTIONAL_HPP

#include <umem/element.hpp>

namespace umem {

struct plus {
  template <class Type>
  UMEM_FUNCTION constexpr Type operator()(Type const &a, Type const &b) const {
    return static_cast<Type>(a + b);
  }
};

struct multiplies {
  template <class Type>
  UMEM_FUNCTION constexpr Type operator()(Type const &a, Type const &b) const {
    return static_cast<Type>(a * b);
  }
};

/* The smaller value; a NaN if either is one, which std::min and fmin may lose. */
struct minimum {
  template <class Type>
  UMEM_FUNCTION constexpr Type operator()(Type const &a, Type const &b) const {
    Type const chosen = b < a ? b : a;
    return b == b ? chosen : b;
  }
};

/* The larger value; a NaN if either is one. */
struct maximum {
  template <class Type>
  UMEM_FUNCTION constexpr Type operator()(Type const &a, Type const &b) const {
    Type const chosen = b > a ? b : a;
    return b == b ? chosen : b;
  }
};

/* The smallest and the largest of some elements: what umem::minmax (reductions.hpp) returns. */
template <class Type> struct MinMax { Type min, max; };

namespace detail {

/* The element itself: for reductions without a function of the elements. */
struct Identity {
  template <class Type> UMEM_FUNCTION constexpr Type const &operator()(Type const &value) const {
    return value;
  }
};

template <class Type, class = void> struct Accumulator {
  using Integer = std::conditional_t<std::is_signed_v<Type> || std::is_same_v<Type, bool>,
                                     std::int64_t, std::uint64_t>;
  using Other = std::conditional_t<is_short_float<Type>, float,
                                   std::conditional_t<std::is_same_v<Type, float>, double, Type>>;
  using type = std::conditional_t<std::is_integral_v<Type>, Integer, Other>;
};

/* For complex numbers of any library: the same template, of the accumulator of their parts, if
 * one can be made of them. */
template <template <class> class Outer, class Type>
struct Accumulator<Outer<Type>,
                   std::enable_if_t<std::is_same_v<complex_part_t<Outer<Type>>, Type> &&
                                    (std::is_floating_point_v<Type> || is_short_float<Type>)>> {
  using Wide = Outer<typename Accumulator<Type>::type>;
  using type =
      std::conditional_t<std::is_constructible_v<Wide, Outer<Type> const &>, Wide, Outer<Type>>;
};

/* The value that is not larger, or not smaller, than any Type. */
template <class Type> Type limit_of(bool largest_value) {
  if constexpr (is_short_float<Type>) { /* not every library has std::numeric_limits of these */
    return static_cast<Type>(limit_of<float>(largest_value));
  } else {
    using Limits = std::numeric_limits<Type>;
    static_assert(Limits::is_specialized, "min and max are for types with std::numeric_limits");
    if constexpr (Limits::has_infinity)
      return largest_value ? Limits::infinity() : static_cast<Type>(-Limits::infinity());
    return largest_value ? Limits::max() : Limits::lowest();
  }
}

} // namespace detail

/* The type of sums of Type: double for float; float for floating-point numbers of 16 bits; 64 bits
 * for integers (bool is counted); for std::complex, cuda::std::complex and similar types a
 * complex number whose parts follow these rules; else Type itself. */
template <class Type>
using accumulator = typename detail::Accumulator<std::remove_cv_t<Type>>::type;

} // namespace umem

#endif
