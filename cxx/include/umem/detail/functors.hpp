/* umem/detail/functors.hpp - what the functors of loops take, and what the compiler says of one
 * that fits nothing.
 *
 * A loop that has said why it cannot be compiled is left out, so that its message stands alone. */
#ifndef UMEM_DETAIL_FUNCTORS_HPP
#define UMEM_DETAIL_FUNCTORS_HPP

#include <umem/extents.hpp>

#include <tuple>

namespace umem::detail {

/* ---- parameters ---- */

/* Of a function, with or without noexcept. */
template <class Result, class... Args> std::tuple<Args...> parameters_in(Result (*)(Args...));
template <class Class, class Result, class... Args>
std::tuple<Args...> parameters_in(Result (Class::*)(Args...));
template <class Class, class Result, class... Args>
std::tuple<Args...> parameters_in(Result (Class::*)(Args...) const);
std::tuple<> parameters_in(...);

template <class Function, class = void> struct OwnParameters {
  using type = decltype(parameters_in(std::declval<Function>()));
};
template <class Function>
struct OwnParameters<Function, std::void_t<decltype(&Function::operator())>> {
  using type = decltype(parameters_in(&Function::operator()));
};
struct NoParameters {
  using type = std::tuple<>;
};

/* Whether nvcc shows the parameters to code of the GPU alone, as those of __device__ lambdas. */
template <class Function> constexpr bool hides_parameters() {
#if defined(__CUDACC_EXTENDED_LAMBDA__)
  return __nv_is_extended_device_lambda_closure_type(Function);
#else
  return false;
#endif
}

/* Empty where they are not known: of templates, of functors with several call operators, and of
 * those that hide them. */
template <class Function>
using parameters_of = typename std::conditional_t<hides_parameters<Function>(), NoParameters,
                                                  OwnParameters<Function>>::type;

/* Whether parameter Nth of Function can only be read: a value or a reference to const. */
template <class Parameters, std::size_t Nth> constexpr bool reads_parameter() {
  if constexpr (Nth < std::tuple_size_v<Parameters>) {
    using Parameter = std::tuple_element_t<Nth, Parameters>;
    return !std::is_reference_v<Parameter> || std::is_const_v<std::remove_reference_t<Parameter>>;
  } else {
    return false;
  }
}
template <class Function, std::size_t Nth>
inline constexpr bool only_reads = reads_parameter<parameters_of<Function>, Nth>();

/* Whether Function takes elements, its first parameters, all by value. */
template <class Parameters, std::size_t... Nth>
constexpr bool takes_values(std::index_sequence<Nth...>) {
  if constexpr (sizeof...(Nth) <= std::tuple_size_v<Parameters>)
    return (!std::is_reference_v<std::tuple_element_t<Nth, Parameters>> && ...);
  else
    return false;
}

/* ---- indices ---- */

/* Each converts to numbers of its kind and to nothing else. */
struct AnyInteger {
  template <class Integer, class = std::enable_if_t<is_index<Integer>>>
  constexpr operator Integer() const;
};
struct AnyFraction {
  template <class Fraction, class = std::enable_if_t<std::is_floating_point_v<Fraction>>>
  constexpr operator Fraction() const;
};

/* Whether a parameter among the indices takes a Probe. The probe is in braces, from which no type
 * is deduced: so the body of a generic functor is not looked at. */
template <class Probe, class Index, class Function, class... Types, int... Before, int... After>
auto takes_probe(std::tuple<Types...> *, std::integer_sequence<int, Before...>,
                 std::integer_sequence<int, After...>)
    -> decltype(std::declval<Function &>()(std::declval<Types &>()...,
                                           std::declval<std::enable_if_t<Before >= 0, Index>>()...,
                                           {Probe()},
                                           std::declval<std::enable_if_t<After >= 0, Index>>()...),
                std::true_type());
template <class Probe, class Index, class Function> std::false_type takes_probe(...);

/* Whether index Dim goes to an integer, or to a parameter whose type is deduced from it. */
template <class Index, class Function, class Elements, int Rank, int Dim>
constexpr bool takes_integer() {
  constexpr std::size_t nth = std::tuple_size_v<Elements> + Dim;
  if constexpr (nth < std::tuple_size_v<parameters_of<Function>>) {
    using Parameter = std::tuple_element_t<nth, parameters_of<Function>>;
    return is_index<std::remove_cv_t<std::remove_reference_t<Parameter>>>;
  } else {
    using Before = std::make_integer_sequence<int, Dim>;
    using After = std::make_integer_sequence<int, Rank - 1 - Dim>;
    Elements *elements = nullptr;
    return !decltype(takes_probe<AnyFraction, Index, Function>(elements, Before(),
                                                               After()))::value ||
           decltype(takes_probe<AnyInteger, Index, Function>(elements, Before(), After()))::value;
  }
}

/* The type of the indices of a loop: Index, or a narrower one that all indices of f have. Then the
 * loop checks whether they fit, and no index is cut off on the way to f. */
template <class Index, class Function, std::size_t Elements, std::size_t... Nth>
constexpr auto index_for(std::index_sequence<Nth...>) {
  using All = parameters_of<Function>;
  if constexpr (sizeof...(Nth) > 0 && std::tuple_size_v<All> == Elements + sizeof...(Nth)) {
    using First = std::tuple_element_t<Elements, All>;
    constexpr bool are_same =
        (std::is_same_v<First, std::tuple_element_t<Elements + Nth, All>> && ...);
    if constexpr (are_same && is_index<First> && std::is_signed_v<First>)
      return std::conditional_t<(sizeof(First) < sizeof(Index)), First, Index>();
    else
      return Index();
  } else {
    return Index();
  }
}
/* Of a functor that gets some elements and Rank indices. */
template <class Index, class Function, std::size_t Elements, int Rank>
using own_index = decltype(index_for<Index, Function, Elements>(
    std::make_index_sequence<static_cast<std::size_t>(Rank)>()));

/* Whether a functor has parameters of other integers than Index for its indices. */
template <class Index, class Function, std::size_t Elements, std::size_t... Nth>
constexpr bool has_other_indices(std::index_sequence<Nth...>) {
  using All = parameters_of<Function>;
  if constexpr (std::tuple_size_v<All> == Elements + sizeof...(Nth))
    return (!std::is_same_v<std::decay_t<std::tuple_element_t<Elements + Nth, All>>, Index> || ...);
  else
    return false;
}
template <class Index, class Function, std::size_t Elements, int Rank>
inline constexpr bool casts_indices = has_other_indices<Index, Function, Elements>(
    std::make_index_sequence<static_cast<std::size_t>(Rank)>());

/* Such a functor, which gets its own integers: no compiler warns of a conversion. */
template <class Function, std::size_t Elements> struct CastsIndices {
  Function functor;

  template <class... Args> UMEM_ALWAYS_INLINE decltype(auto) operator()(Args &&...args) {
    return invoke(std::index_sequence_for<Args...>(), args...);
  }

private:
  template <std::size_t... Nth, class... Args>
  UMEM_ALWAYS_INLINE decltype(auto) invoke(std::index_sequence<Nth...>, Args &...args) {
    return functor(argument<Nth>(args)...);
  }
  template <std::size_t Nth, class Arg>
  UMEM_ALWAYS_INLINE static decltype(auto) argument(Arg &arg) noexcept {
    if constexpr (Nth < Elements)
      return (arg);
    else
      return static_cast<std::decay_t<std::tuple_element_t<Nth, parameters_of<Function>>>>(arg);
  }
};
template <class Index, std::size_t Elements, int Rank, class Function>
UMEM_ALWAYS_INLINE decltype(auto) with_own_indices(Function &functor) {
  using Plain = std::remove_const_t<Function>;
  if constexpr (casts_indices<Index, Plain, Elements, Rank>)
    return CastsIndices<Plain, Elements>{functor};
  else
    return (functor);
}

/* ---- generic functors with a pack of indices: [](double &x, auto... i) ---- */

/* The call operator of a functor beside another one, which is better for the object and worse for
 * elements. Where both fit, the call is ambiguous: so it is known that that of the functor fits,
 * and its body, from which compilers deduce what it returns, is not looked at. */
template <class Function, class... Args> struct Rival : Function {
  using Function::operator();
  void operator()(std::remove_reference_t<Args> const &...);
};
template <class Function, class... Args>
auto is_decided(int)
    -> decltype(std::declval<Rival<Function, Args...> &>()(std::declval<Args>()...),
                std::true_type());
template <class, class...> std::false_type is_decided(...);
template <class Function, class... Args>
inline constexpr bool surely_takes = !decltype(is_decided<Function, Args...>(0))::value;

template <class Function, class Elements, class Before> struct TakesBefore;
template <class Function, class Elements, std::size_t... Nth>
struct TakesBefore<Function, Elements, std::index_sequence<Nth...>> {
  static constexpr bool value = surely_takes<Function, std::tuple_element_t<Nth, Elements> &...>;
};

/* Whether a functor takes elements, by references to them, and then a pack of any number of
 * indices. Index...: one more than there are dimensions, so that no list of parameters fits. */
template <class Function, class... Index, class Type, class... Types>
constexpr bool takes_pack(std::tuple<Type, Types...> *) {
  if constexpr (!std::is_class_v<Function> || std::is_final_v<Function> ||
                hides_parameters<Function>() ||
                std::tuple_size_v < parameters_of < Function >>> 0) {
    return false;
  } else {
    using Before = std::make_index_sequence<sizeof...(Types)>; /* all elements but the last */
    return surely_takes<Function, Type &, Types &...> &&
           !surely_takes<Function, Type, Types &...> &&
           (sizeof...(Types) == 0 ||
            !TakesBefore<Function, std::tuple<Type, Types...>, Before>::value) &&
           surely_takes<Function, Type &, Types &..., Index...>;
  }
}

template <class Index, class Function, class Elements, class Numbers> struct IndexedCall;
template <class Index, class Function, class... Types, int... Nth>
struct IndexedCall<Index, Function, std::tuple<Types...>, std::integer_sequence<int, Nth...>> {
  template <int> using IndexOf = Index;
  using Elements = std::tuple<Types...> *;
  static constexpr int rank = sizeof...(Nth);
  static constexpr bool hides = hides_parameters<Function>();
  static constexpr bool fits = std::is_invocable_v<Function &, Types &..., IndexOf<Nth>...>;
  static constexpr bool takes_elements() {
    if constexpr (sizeof...(Types) > 0) {
      if constexpr (!takes_pack<Function, Index, IndexOf<Nth>...>(Elements(nullptr)))
        return std::is_invocable_v<Function &, Types &...>;
    }
    return false;
  }
  static constexpr bool with_elements = takes_elements();
  static constexpr bool has_integers() {
    if constexpr (fits)
      return (takes_integer<Index, Function, std::tuple<Types...>, rank, Nth>() && ...);
    else
      return false;
  }
  static constexpr bool with_indices = has_integers();
  static constexpr bool returns_value() {
    if constexpr (with_indices)
      return !std::is_void_v<std::invoke_result_t<Function &, Types &..., IndexOf<Nth>...>>;
    else
      return false;
  }
};

/* Of a functor that gets elements of these types and one index for each of Rank dimensions. */
template <class Index, class Function, int Rank, class... Types>
using indexed_call =
    IndexedCall<Index, Function, std::tuple<Types...>, std::make_integer_sequence<int, Rank>>;

#define UMEM_INTEGER_INDEX                                                                         \
  "f takes a number that is no integer where it gets an index: is an operand missing?"

/* ---- values ---- */

/* The functor of the program that one of umem calls with what it gets. */
template <class Function> struct CalledBy { using type = Function; };
template <class Function> using called_by = typename CalledBy<Function>::type;

template <class Function, class... Types> constexpr bool returns_value() {
  if constexpr (hides_parameters<Function>())
    return true;
  else if constexpr (std::is_invocable_v<Function &, Types &...>)
    return !std::is_void_v<std::invoke_result_t<Function &, Types &...>>;
  else
    return false;
}

#define UMEM_FUNCTOR_OF_ELEMENTS                                                                   \
  "f takes an element of each operand, in their order and of their types, and returns a value"

/* Whether a functor is for elements of these types, which the compiler says if not. */
template <class Function, class... Types> constexpr bool takes_elements() {
  constexpr bool fits = returns_value<Function, Types const...>();
  static_assert(fits, UMEM_FUNCTOR_OF_ELEMENTS);
  return fits;
}

/* Whether an operation joins two results. */
template <class Op, class Result> constexpr bool joins() {
  constexpr bool fits = returns_value<Op, Result const, Result const>();
  static_assert(fits, "op takes two values of the type of init, and returns one");
  return fits;
}

} // namespace umem::detail

#endif
