/* umem/compare.hpp - whether the elements of two arrays are equal, or close to each other; for
 * tests, and for loops that wait for convergence.
 *
 *     if (umem::all_close(next, u)) break;
 *     umem::all_equal(umem::on_host, view, array.part())
 *     EXPECT_EQ(umem::difference(found, expected), "");  // else it says which element differs
 *
 * See for_each.hpp for places, operands and failures; without a place the loop runs on that of the
 * first operand, and difference on the host. The extents are equal, or all_equal and all_close
 * throw umem::value_error. Types of elements may differ. */
#ifndef UMEM_COMPARE_HPP
#define UMEM_COMPARE_HPP

#include <umem/elements.hpp>
#include <umem/print.hpp>
#include <umem/reduce.hpp>

namespace umem {

/* x is close to y if |x - y| <= absolute + relative |y|: the rule and the numbers of
 * numpy.allclose. Infinite numbers are close to themselves alone. NaN is close to nothing, with
 * equal_nan to NaN. */
struct Tolerance {
  double relative = 1e-5;
  double absolute = 1e-8;
  bool equal_nan = false;
};

namespace detail {

/* A number of any type in double, with an imaginary part that may be 0. */
struct Number {
  double re, im;

  template <class Type> static UMEM_FUNCTION Number of(Type const &x) {
    if constexpr (is_complex<Type>)
      return {static_cast<double>(x.real()), static_cast<double>(x.imag())};
    else
      return {static_cast<double>(x), 0};
  }

  UMEM_FUNCTION bool is_nan() const { return re != re || im != im; }
  /* Also where its square is too large. */
  UMEM_FUNCTION double magnitude() const {
    double const a = re < 0 ? -re : re, b = im < 0 ? -im : im;
    double const more = a < b ? b : a, less = a < b ? a : b;
    return less > 0 && more <= largest ? more * std::sqrt(1 + less / more * (less / more)) : more;
  }

  static constexpr double largest = 1.7976931348623157e308;
};

/* Numbers of one type by their own ==. */
struct IsEqual {
  template <class Operand, class Other>
  UMEM_FUNCTION bool operator()(Operand const &x, Other const &y) const {
    if constexpr (std::is_same_v<Operand, Other>) {
      return x == y;
    } else if constexpr (std::is_integral_v<Operand> && std::is_integral_v<Other>) {
      using Common = std::common_type_t<Operand, Other>;
      return (x < Operand(0)) == (y < Other(0)) && static_cast<Common>(x) == static_cast<Common>(y);
    } else {
      Number const a = Number::of(x), b = Number::of(y);
      return a.re == b.re && a.im == b.im;
    }
  }
};

struct IsClose {
  Tolerance tolerance;

  template <class Operand, class Other>
  UMEM_FUNCTION bool operator()(Operand const &x, Other const &y) const {
    if (IsEqual()(x, y)) return true;
    Number const a = Number::of(x), b = Number::of(y);
    if (a.is_nan() || b.is_nan()) return tolerance.equal_nan && a.is_nan() && b.is_nan();
    double const distance = Number{a.re - b.re, a.im - b.im}.magnitude();
    return distance <= Number::largest && /* else one is infinite */
           distance <= tolerance.absolute + tolerance.relative * b.magnitude();
  }
};

/* 1 for elements that differ. */
template <class Same> struct Differs {
  Same same;

  template <class Operand, class Other>
  UMEM_FUNCTION index_t operator()(Operand const &x, Other const &y) const {
    return same(x, y) ? 0 : 1;
  }
};

inline namespace UMEM_LAUNCH_NAMESPACE {

template <class PlaceType, class Operand, class Other, class Same>
index_t count_differing(Called const &function, PlaceType const &place, Operand const &one,
                        Other const &two, Same const &same) {
  return reduce_uses<index_t>(function, place, index_t(0), plus(), Differs<Same>{same},
                              use(one, read), use(two, read));
}

} // namespace UMEM_LAUNCH_NAMESPACE

template <class Type> std::string text_of(Type const &value) {
  return print(View<Type const, 0>(&value, {}));
}

/* The first elements for which same(x, y) does not hold, in words. */
template <class Same, class Operand, class Other>
std::string first_difference(Operand const &one, Other const &two, Same const &same) {
  static_assert(rank_of<Operand> == rank_of<Other>,
                "umem::difference: the operands have different ranks");
  auto const first = extents_of(one), second = extents_of(two);
  if (first != second)
    return std::string("extents ") + in_words(first).text + " and " + in_words(second).text;
  auto const find = [&](auto const &x, auto const &y) {
    std::string text;
    index_t count = 0, number = 0;
    auto other = elements(y).begin();
    for (auto const &value : elements(x)) {
      if (!same(value, *other) && count++ == 0) {
        text = std::string("element ") + in_words(indices_at(number, first)).text + ": " +
               text_of(value) + " and " + text_of(*other);
      }
      ++other;
      ++number;
    }
    if (count > 1)
      text += "; " + std::to_string(count) + " of " + std::to_string(number) + " elements differ";
    return text;
  };
  return with_views(settled(on_host, use(one, read), use(two, read)), find, use(one, read),
                    use(two, read));
}

} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* Whether each element equals that of the other operand with the same indices, by ==; NaN equals
 * nothing. Integers of different types are compared by value; of other numbers of different types
 * the nearest double counts, for all_close and difference, too. */
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
bool all_equal(PlaceType const &place, Operand const &one, Other const &two) {
  return detail::count_differing("all_equal", place, one, two, detail::IsEqual()) == 0;
}
UMEM_AT_HOME(all_equal)

/* Whether each element is close to that of the other operand with the same indices. */
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
bool all_close(PlaceType const &place, Operand const &one, Other const &two,
               Tolerance const &tolerance = {}) {
  return detail::count_differing("all_close", place, one, two, detail::IsClose{tolerance}) == 0;
}
template <class Operand, class Other, class = detail::if_operand<Operand>>
bool all_close(Operand const &one, Other const &two, Tolerance const &tolerance = {}) {
  return all_close(detail::AtHome(), one, two, tolerance);
}

} // namespace UMEM_LAUNCH_NAMESPACE

/* Where the first elements are that are not equal, or not close, in C order, what they are, and how
 * many there are: "element (1, 2): 3.5 and 3.25; 5 of 12 elements differ". Empty if there are
 * none. */
template <class Operand, class Other> std::string difference(Operand const &one, Other const &two) {
  return detail::first_difference(one, two, detail::IsEqual());
}
template <class Operand, class Other>
std::string difference(Operand const &one, Other const &two, Tolerance const &tolerance) {
  return detail::first_difference(one, two, detail::IsClose{tolerance});
}

} // namespace umem

#endif
