/* umem/detail/mistakes.hpp - functions that are chosen for nothing but a frequent mistake, so that
 * the compiler says what to write instead of which functions there are.
 *
 * Each takes Anything, which every function of umem or of a program that fits is better than. Where
 * libraries query whether a call compiles (begin, operator<<), the function is deleted, so that the
 * answer is no. */
#ifndef UMEM_DETAIL_MISTAKES_HPP
#define UMEM_DETAIL_MISTAKES_HPP

#include <umem/config.hpp>

#include <iosfwd>

namespace umem {

template <class Type, int Rank> class ArrayAccess;
template <class Type, int Rank, class Layout> class View;
template <class None> struct NoArithmetic;

namespace detail {

/* False, but only known where a template is used. */
template <class...> inline constexpr bool never = false;

/* An argument of any type, and nothing: for no argument. */
struct Anything {
  Anything() = default;
  template <class Type> constexpr Anything(Type const &) noexcept {}
};

/* An array, a lock or a view, or arithmetic with them. */
struct AnyElements {
  template <class Type, int Rank> AnyElements(ArrayAccess<Type, Rank> const &);
  template <class Type, int Rank, class Layout> AnyElements(View<Type, Rank, Layout> const &);
  template <class None> AnyElements(NoArithmetic<None> const &);
};

/* The end of a declaration that is refused for a reason. GCC before 15 does not show the text: the
 * name of the type that the function returns has to say it. */
#if defined(__cpp_deleted_function)
#define UMEM_REFUSED(text) = delete (text)
#elif defined(__clang__) && !defined(__CUDACC__)
#define UMEM_REFUSED(text) __attribute__((unavailable(text)))
#else
#define UMEM_REFUSED(text) = delete
#define UMEM_REFUSED_BY_NAME
#endif
#if defined(UMEM_REFUSED_BY_NAME)
template <class Type, class Name> using refused = Name;
#else
template <class Type, class Name> using refused = Type;
#endif

struct write_for_x_in_a_host_umem_read;
struct include_umem_print_hpp;

/* ---- what to write instead ---- */

#define UMEM_ACCESS_OF_ARRAY                                                                       \
  "name the access: umem::read, umem::write or umem::discard; a const array is only read: "        \
  "a.host(umem::read), a.device(umem::read)"

#define UMEM_ELEMENTS_OF_ARRAY                                                                     \
  "the elements of an array are used on a side: auto u = a.host(umem::write); u(i, j) = x; or "    \
  "singly: a.set(x, i, j), a.get(i, j)"

} // namespace detail

/* ---- arithmetic of whole arrays ---- */

/* What an operator returns: one message for a whole expression. */
template <class None> struct NoArithmetic {
  static_assert(detail::never<None>,
                "arrays have no operators: write umem::transform(a, b, c, std::plus<>()) or "
                "umem::for_each([](double &z, double x, double y) { z = x + y; }, c, a, b)");
  template <class Type, class = std::enable_if_t<!std::is_arithmetic_v<Type>>>
  operator Type() const;
};

#define UMEM_NO_OPERATOR(sign)                                                                     \
  template <class None = void>                                                                     \
  NoArithmetic<None> operator sign(detail::AnyElements const &, detail::AnyElements const &);      \
  template <class None = void>                                                                     \
  NoArithmetic<None> operator sign(detail::AnyElements const &, long double);                      \
  template <class None = void>                                                                     \
  NoArithmetic<None> operator sign(long double, detail::AnyElements const &)
UMEM_NO_OPERATOR(+);
UMEM_NO_OPERATOR(-);
UMEM_NO_OPERATOR(*);
UMEM_NO_OPERATOR(/);
#undef UMEM_NO_OPERATOR
template <class None = void> NoArithmetic<None> operator-(detail::AnyElements const &);

/* ---- printing ---- */

template <class None = void>
detail::refused<std::ostream, detail::include_umem_print_hpp> &
operator<<(std::ostream &, detail::AnyElements const &) UMEM_REFUSED("include <umem/print.hpp>");

} // namespace umem

#endif
