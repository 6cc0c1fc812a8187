/* umem/for_each.hpp - a function called for every element, or for every index, on host or GPU.
 *
 *     umem::for_each(array, [](double &x) { x += 1; });
 *     umem::for_each([=](double &z, double x, double y) { z = a * x + y; }, z, x, y); // where z is
 *     umem::for_each(umem::on_host, [](double &z, double x, umem::index_t i) { z = x * i; },
 *                    z, view);
 *     umem::for_each_indexed(array, umem::interior(array), AddIndex());
 *
 * Operands: an Array, an ArrayLock, a Part, a View or a guard; one before the functor, or any
 * number after it. All have the same rank and extents. f gets a reference to an element of each, in
 * their order, and then the indices if it takes them: for_each asks first whether f takes the
 * elements alone, for_each_indexed always passes indices. A pack after the elements, as in
 * [](double &x, auto... i), always gets the indices. An index goes to a parameter of an integer
 * type, or of a type that is deduced: where f has another number there, an operand is missing, and
 * the loop does not compile.
 *
 * Access: umem::read(x), umem::write(x) (to read and write) and umem::discard(x) (to write without
 * reading) say what f does with the elements of x. Without them an operand is only read if it is
 * const, or if f takes its elements by value or by reference to const; f's own parameters count
 * where f has one call operator that is no template. All others are read and written. A loop whose
 * f has no members and takes all elements by value does not compile, unless they are const or in
 * umem::read: f could change nothing. An f with `auto` parameters is not looked at.
 *
 * Places: the first argument may be the place where the loop runs (place.hpp). Without it the loop
 * runs at the home of the first operand that it writes, or of the first one if it writes none: for
 * an array or a part this is the place of its context, for a guard that of its side; views have no
 * home. If that home is a GPU whose kernels cannot use another operand (an array in plain memory,
 * in a file or on another GPU, a guard of the host side), the loop runs on the host. Views must be
 * of memory that the place can use, and so must guards: on the host a guard of the memory of a GPU
 * throws umem::value_error.
 *
 * The call takes one guard of each array, on the side where the loop runs: umem transfers an array
 * of which only the other side is current. But of a part that is smaller than its array, a loop on
 * the host transfers only the part, to a buffer, and back if it writes: the side that was current
 * stays so. If the elements of a part that is written may be in another operand too, there is no
 * buffer, and the array is transferred as a whole. An operand may occur twice, and operands may be
 * parts of one array. But an element that is written must not belong to two operands, unless at the
 * same index. With UMEM_CHECKS such a loop throws umem::value_error; without, the results depend on
 * the order of the calls.
 *
 * Loops visit ghost cells only if a range reaches into them. They call functions in no particular
 * order. On the GPU, and with several threads, calls run at the same time, and each thread has its
 * own copy of f; so f may write only its own elements, or elements that no other call touches. An
 * element that f gets may be a copy, which umem writes back. With on_host the calls run one after
 * the other; those with indices run in C order or, if the elements of all operands are in
 * column-major order, in that of Fortran.
 *
 * Arrays, locks and parts must not end or get other memory before the call returns.
 *
 * A call that refuses its arguments changes no operand. If f throws on the host, the call throws
 * the same exception. A kernel that cannot be launched throws umem::runtime_error with CUDA's
 * message, and a GPU that does not exist umem::value_error. If a kernel crashes, a later call that
 * waits for it throws. After a failed call that discards an array, or of a GPU, the side of the
 * array that was current before is current again, unless it is the side that the call has written.
 * Elements that f has changed on the host stay changed, except those of a part in a buffer. */
#ifndef UMEM_FOR_EACH_HPP
#define UMEM_FOR_EACH_HPP

#include <umem/detail/host_loops.hpp>
#include <umem/detail/operand.hpp>
#include <umem/detail/trace.hpp>
#include <umem/range.hpp>

#if defined(__CUDACC__)
#include <umem/detail/launch.cuh>
#include <umem/detail/map_kernels.cuh>
#endif

namespace umem {

namespace detail {

inline namespace UMEM_LAUNCH_NAMESPACE {

/* In files that nvcc compiles, map_kernels.cuh, sweep_kernels.cuh, along_kernels.cuh and reduce.cuh
 * have the functions that launch kernels; in others these here throw. */
#if defined(__CUDACC__)

/* Throws if a loop needs kernels that this file does not have. Called before anything is
 * changed. */
template <class PlaceType> void check_kernels(PlaceType const &) noexcept {}

#else

[[noreturn]] inline void raise_no_kernels() {
  throw not_supported_error(
      "work on a GPU needs kernels: compile this file with nvcc, or name umem::on_host");
}

template <class PlaceType> void check_kernels(PlaceType const &place) {
  if (is_device(place)) raise_no_kernels();
}

template <class... Operands> void device_map(Operands const &...) { raise_no_kernels(); }
template <class Index, class... Operands> void device_indices(Operands const &...) {
  raise_no_kernels();
}
template <class Index, class... Operands> void device_indexed(Operands const &...) {
  raise_no_kernels();
}
template <class... Operands> void device_along(Operands const &...) { raise_no_kernels(); }
template <class Result, class... Operands> Result device_reduce(Operands const &...) {
  raise_no_kernels();
}
template <class Index, class Op, class Function, class Result, class... Operands>
Result device_index_reduce(DevicePlace const &, Op const &, Function const &, Result const &,
                           Operands const &...) {
  raise_no_kernels();
}
template <class Index, class Op, class Function, class Result, class... Operands>
Result device_sweep(DevicePlace const &, Op const &, Function const &, Result const &,
                    Operands const &...) {
  raise_no_kernels();
}

#endif

} // namespace UMEM_LAUNCH_NAMESPACE

/* Throws umem::value_error if an index type cannot hold the indices of a range. */
template <class Index, int Rank> void check_index_type(Range<Rank> const &range) {
  static_assert(is_index<Index> && std::is_signed_v<Index>,
                "the type of indices is a signed integer");
  constexpr index_t most = largest<Index>;
  for (int k = 0; k < Rank; k++)
    if (range.begin.at[k] < -most - 1 || range.end.at[k] > most)
      raise_text(umemValueError, "indices up to %s do not fit the type asked for",
                 in_words(range.end).text);
}

/* Throws it also if one of the parameters of a functor cannot. */
template <class Integer> bool has_indices(index_t begin, index_t end) noexcept {
  using Limits = std::numeric_limits<Integer>;
  return sizeof(Integer) == sizeof(index_t) || (begin >= static_cast<index_t>(Limits::min()) &&
                                                end - 1 <= static_cast<index_t>(Limits::max()));
}
template <class Parameters, std::size_t Elements, int Rank, std::size_t... Nth>
bool have_indices(Range<Rank> const &range, std::index_sequence<Nth...>) noexcept {
  return (has_indices<std::decay_t<std::tuple_element_t<Elements + Nth, Parameters>>>(
              range.begin.at[Nth], range.end.at[Nth]) &&
          ...);
}
template <class Index, class Function, std::size_t Elements, int Rank>
void check_index_types(Range<Rank> const &range) {
  check_index_type<Index>(range);
  if constexpr (casts_indices<Index, Function, Elements, Rank>)
    if (!have_indices<parameters_of<Function>, Elements>(
            range, std::make_index_sequence<static_cast<std::size_t>(Rank)>()))
      raise_text(umemValueError, "indices up to %s do not fit the parameters of f",
                 in_words(range.end).text);
}

/* ---- which arguments f gets ---- */

template <class Index, class Function, class... Uses>
using call_of = indexed_call<Index, Function, std::tuple_element_t<0, std::tuple<Uses...>>::rank,
                             typename Uses::element_type...>;

/* Whether f gets the indices after the elements of uses: if it must, or takes nothing else. */
template <bool must, class Index, class Function, class... Uses> constexpr bool gets_indices() {
  using Call = call_of<Index, Function, Uses...>;
  if constexpr (must) { /* elements alone are not tried: the body of a generic f is no error then */
    static_assert(!Call::fits || Call::with_indices, UMEM_INTEGER_INDEX);
    static_assert(Call::fits || Call::hides,
                  "for_each_indexed: f takes a reference to an element of each operand, in their "
                  "order and of their types, and then one index per dimension; elements that are "
                  "only read are const");
    return true;
  } else if constexpr (Call::with_elements) { /* the body of a generic f sees no indices then */
    return false;
  } else {
    static_assert(!Call::fits || Call::with_indices, UMEM_INTEGER_INDEX);
    static_assert(!Call::hides,
                  "for_each: of a __device__ lambda nvcc does not show whether it takes indices; "
                  "call for_each_indexed");
    static_assert(Call::fits || Call::hides,
                  "for_each: f takes a reference to an element of each operand, in their order "
                  "and of their types, and may take one index per dimension after them; "
                  "elements that are only read are const");
    return true;
  }
}

/* Whether a loop can be compiled: no message has been given. */
template <class... Uses> constexpr bool are_allowed() {
  constexpr int Rank = std::tuple_element_t<0, std::tuple<Uses...>>::rank;
  return ((Uses::rank == Rank && Uses::is_allowed) && ...);
}
template <bool must, class Index, class Function, class... Uses> constexpr bool takes_operands() {
  if constexpr (!are_allowed<Uses...>() || !is_index<Index> || !std::is_signed_v<Index>) {
    return false;
  } else {
    using Call = call_of<Index, Function, Uses...>;
    if constexpr (must)
      return Call::with_indices || Call::hides;
    else if constexpr (Call::with_elements)
      return true;
    else
      return Call::with_indices;
  }
}

/* Whether a functor of indices alone takes them; a compile error says why not. */
template <class Index, class Function, int Rank> constexpr bool takes_indices() {
  using Call = indexed_call<Index, Function, Rank>;
  static_assert(Call::fits || Call::hides, "for_each_index: f takes one index per dimension");
  static_assert(!Call::fits || Call::with_indices, UMEM_INTEGER_INDEX);
  return Call::with_indices || Call::hides;
}

/* ---- a function with a body for each side ---- */

/* The function that a loop on the host calls; see AssignOnHost of transform.hpp for another. */
template <class Function> Function const &for_host(Function const &f) {
  check_for_host<Function>();
  return f;
}
template <class Function> Function const &for_device(Function const &f) {
  check_for_device<Function>();
  return f;
}

/* ---- parts of views ---- */

template <class Type, int Rank>
View<Type, Rank> in_range(View<Type, Rank> const &view, Range<Rank> const &range) {
  return part_of(view, range);
}
template <class Type, int Rank>
FreshView<Type, Rank> in_range(FreshView<Type, Rank> const &view, Range<Rank> const &range) {
  return {part_of(static_cast<View<Type, Rank> const &>(view), range)};
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* f(element of each view) */
template <class PlaceType, class Function, class... Views>
UMEM_ALWAYS_INLINE void map(PlaceType const &place, Function const &f, Views const &...views) {
  if constexpr (may_be_device<PlaceType>)
    if (is_device(place)) return device_map(device_of(place), for_device(f), views...);
  if constexpr (may_be_host<PlaceType>) {
    auto own = for_host(f);
    host_map(host_of(place), own, views...);
  }
}

/* f(element of each view, i, j, ...) for the indices of a range. */
template <class Index, class PlaceType, class Function, int Rank, class... Views>
UMEM_ALWAYS_INLINE void map_indexed(PlaceType const &place, Function const &f,
                                    Range<Rank> const &range, Views const &...views) {
  check_index_types<Index, Function, sizeof...(Views)>(range);
  if constexpr (may_be_device<PlaceType>)
    if (is_device(place))
      return device_indexed<Index>(device_of(place), for_device(f), range.begin, range.end,
                                   views...);
  if constexpr (may_be_host<PlaceType>)
    host_indexed<Index>(host_of(place),
                        with_own_indices<Index, sizeof...(Views), Rank>(for_host(f)), range.begin,
                        range.end, views...);
}

/* ---- loops over operands ---- */

/* The number of the first operand in messages: transform gives its output before the others. */
template <class Function> inline constexpr int first_operand = 1;

/* With UMEM_CHECKS: throws umem::value_error if two operands, of which one is written, have
 * elements in common that are not at the same index. */
#if UMEM_CHECKS
template <class Type, class OtherType, int Rank>
void check_pair(char const *function, int one, int other, View<Type, Rank> const &a,
                View<OtherType, Rank> const &b) {
  ItemLayout const of_a = {a.extents.begin(), a.strides.begin(), Rank, 0, sizeof(Type)};
  ItemLayout const of_b = {b.extents.begin(), b.strides.begin(), Rank, 0, sizeof(OtherType)};
  if constexpr (!std::is_const_v<Type> || !std::is_const_v<OtherType>)
    if (share_elements(a.data, of_a, b.data, of_b))
      raise_text(umemValueError,
                 "%s: operands %d and %d%s share elements that are not at the same index, and the "
                 "loop writes one of them",
                 function, one, other, one == 0 ? " (0 is the output)" : "");
}
inline void check_apart(char const *, int) {}
template <class Type, int Rank, class... Types>
void check_apart(char const *function, int first, View<Type, Rank> const &view,
                 View<Types, Rank> const &...others) {
  [[maybe_unused]] int number = first;
  (check_pair(function, first, ++number, view, others), ...);
  check_apart(function, first + 1, others...);
}
#else
template <class... Views> void check_apart(char const *, int, Views const &...) {}
#endif

template <class... Uses> constexpr void check_ranks() {
  constexpr int Rank = std::tuple_element_t<0, std::tuple<Uses...>>::rank;
  static_assert(((Uses::rank == Rank) && ...), "all operands of a loop have the same rank");
}

/* f(element of each use), if all are arrays in RAM with equal extents, no ghost cells and one order
 * of the elements: the call takes a few nanoseconds more than the loop over one row that it is.
 * Else returns false, and has done nothing. */
template <class Function, class Used, class... More>
UMEM_ALWAYS_INLINE bool loop_in_ram(Function const &f, Used const &first, More const &...others) {
  bool const alike = (ArrayMembers::are_alike(first.operand, first.operand) && ... &&
                      ArrayMembers::are_alike(first.operand, others.operand));
  if (UMEM_RARELY(!alike)) return false;
  auto run = [&](auto const &...guards) __attribute__((always_inline)) {
    if (UMEM_RARELY(!(guards && ...))) return false;
    auto own = for_host(f);
    host_row(own, first.operand.size(), guards.first()...);
    return true;
  };
  return run(QuickGuard<Used>(first), QuickGuard<More>(others)...);
}

/* Whether operands may be such arrays. */
template <class PlaceType, class... Uses>
inline constexpr bool may_be_in_ram =
    !UMEM_CHECKS && (std::is_same_v<PlaceType, AtHome> || std::is_same_v<PlaceType, HostPlace>)&&(
                        (Uses::kind == OperandKind::array) && ...);
inline bool is_this_thread(AtHome) noexcept { return true; }
inline bool is_this_thread(HostPlace const &place) noexcept { return place.threads == 1; }

/* Clang keeps operands, and the numbers of a functor, in registers, if no function takes their
 * addresses; GCC optimises the loop better in a function of its own, with a functor in memory. */
#if defined(__clang__)
#define UMEM_LOOP UMEM_ALWAYS_INLINE
template <class Type> using OfLoop = Type const;
#else
#define UMEM_LOOP
template <class Type> using OfLoop = Type const &;
#endif

/* f(element of each use), of any operands. */
template <class PlaceType, class Function, class... Uses>
[[gnu::noinline]] void loop_anywhere(char const *function, PlaceType const &place,
                                     OfLoop<Function> f, OfLoop<Uses>... uses) {
  auto where = settled(place, uses...);
  check_kernels(where); /* before old elements are discarded */
  check_extents(function, extents_of(uses)...);
  with_views(
      where,
      [&](auto const &...views) __attribute__((always_inline)) {
        check_apart(function, first_operand<Function>, views...);
        map(where, f, views...);
      },
      uses...);
}

/* f(element of each use) */
template <class PlaceType, class Function, class... Uses>
UMEM_LOOP void loop(Called const &function, PlaceType const &place, Function const &f,
                    Uses const &...uses) {
  check_ranks<Uses...>();
  if constexpr (are_allowed<Uses...>()) {
    if constexpr (may_be_in_ram<PlaceType, Uses...>)
      if (is_this_thread(place) && loop_in_ram(f, uses...)) return;
    loop_anywhere<PlaceType, Function, Uses...>(function.name, place, f, uses...);
  }
}

/* f(element of each use, i, j, ...), for all elements or, if range is not null, those with these
 * indices. RangeType: a pointer to a Range, or std::nullptr_t. */
template <class Index, class PlaceType, class Function, class RangeType, class Used, class... More>
UMEM_ALWAYS_INLINE void loop_indexed(Called const &function, PlaceType const &place,
                                     Function const &f, RangeType range, Used const &first,
                                     More const &...others) {
  constexpr bool has_range = !std::is_null_pointer_v<RangeType>;
  auto where = settled(place, first, others...);
  check_kernels(where);
  check_ranks<Used, More...>();
  if constexpr (!has_range) check_extents(function.name, extents_of(first), extents_of(others)...);
  with_views(
      where,
      [&](auto const &view, auto const &...views) __attribute__((always_inline)) {
        if constexpr (has_range) {
          check_range(view, *range);
          (check_range(views, *range), ...);
          if constexpr (UMEM_CHECKS)
            check_apart(function.name, 1, in_range(view, *range), in_range(views, *range)...);
          map_indexed<Index>(where, f, *range, view, views...);
        } else {
          check_apart(function.name, 1, view, views...);
          map_indexed<Index>(where, f, Range<Used::rank>(view.extents), view, views...);
        }
      },
      first, others...);
}

/* f(element of each use, and indices if it takes them) */
template <class Index, bool indexed, class PlaceType, class Function, class RangeType,
          class... Uses>
UMEM_ALWAYS_INLINE void for_each_of(Called const &function, PlaceType const &place,
                                    Function const &f, RangeType range, Uses const &...uses) {
  check_ranks<Uses...>();
  static_assert(is_index<Index> && std::is_signed_v<Index>,
                "the type of indices is a signed integer");
  static_assert(std::is_copy_constructible_v<Function>, UMEM_COPIED_FUNCTOR);
  constexpr bool with_indices = gets_indices<indexed, Index, Function, Uses...>();
  if constexpr (!takes_operands<indexed, Index, Function, Uses...>() ||
                !std::is_copy_constructible_v<Function> || !has_place<PlaceType, Uses...>()) {
    return;
  } else if constexpr (with_indices) {
    constexpr int Rank = std::tuple_element_t<0, std::tuple<Uses...>>::rank;
    loop_indexed<own_index<Index, Function, sizeof...(Uses), Rank>>(function, place, f, range,
                                                                    uses...);
  } else if constexpr (std::is_null_pointer_v<RangeType>) {
    loop(function, place, f, uses...);
  } else {
    auto where = settled(place, uses...);
    check_kernels(where);
    with_views(
        where,
        [&](auto const &...views) {
          if constexpr (UMEM_CHECKS) check_apart(function.name, 1, in_range(views, *range)...);
          map(where, f, in_range(views, *range)...);
        },
        uses...);
  }
}

/* Chooses the uses of the operands, and loops over them. */
template <class Index, bool indexed, class PlaceType, class Function, class RangeType,
          std::size_t... Nth, class... Operands>
UMEM_ALWAYS_INLINE void for_each_operand(std::index_sequence<Nth...>, PlaceType const &place,
                                         Function const &f, RangeType range,
                                         Operands &...operands) {
  Called const function(indexed ? "for_each_indexed" : "for_each");
  for_each_of<Index, indexed>(function, place, f, range,
                              use_in_loop<Function, Nth>(operands, range == nullptr)...);
}
template <class Index, bool indexed, class PlaceType, class Function, class RangeType,
          class... Operands>
UMEM_ALWAYS_INLINE void for_each_call(PlaceType const &place, Function const &f, RangeType range,
                                      Operands &...operands) {
  static_assert(!gets_copies<Function, Operands...>,
                "f takes all elements by value: write '[](T &x)' to change them, or "
                "'[](T const &x)' to read them");
  constexpr bool reads_none =
      !reads_discarded<Function, Operands...>(std::index_sequence_for<Operands...>());
  static_assert(reads_none, "f only reads the elements of an operand in umem::discard");
  if constexpr (!gets_copies<Function, Operands...> && reads_none)
    for_each_operand<Index, indexed>(std::index_sequence_for<Operands...>(), place, f, range,
                                     operands...);
}

} // namespace UMEM_LAUNCH_NAMESPACE

#define UMEM_OPERANDS_OF_LOOP                                                                      \
  "write for_each(a, f) or for_each(f, a, b, c), or a place such as umem::on_host before these: "  \
  "operands are arrays, locks, parts, guards and, after a place, views, such as "                  \
  "umem::View<double, 1>(v.data(), v.size()) of a std::vector v"

/* The arguments of functions whose place is optional. */
template <class PlaceType, class Operand>
inline constexpr bool is_place_and_operand = is_place<PlaceType> &&is_loop_operand<Operand>;
template <class Function, class... Operands>
inline constexpr bool is_functor_and_operands = sizeof...(Operands) > 0 && !is_place<Function> &&
                                                !is_loop_operand<Function> &&
                                                (is_loop_operand<Operands> && ...);
template <class PlaceType, class Function, class... Operands>
inline constexpr bool is_place_and_operands =
    is_place<PlaceType> &&is_functor_and_operands<Function, Operands...>;

} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- elements ---- */

/* f(element of each operand), or f(element of each operand, i, j, ...) if f takes these. f takes by
 * reference what it changes. If it takes all elements by value, it changes copies, which is refused
 * only if f captures nothing and is no template. */
template <class PlaceType, class Function, class... Operands,
          class = std::enable_if_t<detail::is_place_and_operands<PlaceType, Function, Operands...>>>
void for_each(PlaceType const &place, Function f, Operands &&...operands) {
  detail::for_each_call<index_t, false>(place, f, nullptr, operands...);
}
template <class Function, class... Operands,
          class = std::enable_if_t<detail::is_functor_and_operands<Function, Operands...>>>
void for_each(Function f, Operands &&...operands) {
  detail::for_each_call<index_t, false>(detail::AtHome(), f, nullptr, operands...);
}
template <class PlaceType, class Operand, class Function,
          class = std::enable_if_t<detail::is_place_and_operand<PlaceType, Operand>>>
void for_each(PlaceType const &place, Operand &&elements, Function f) {
  detail::for_each_call<index_t, false>(place, f, nullptr, elements);
}
template <class Operand, class Function, class = std::enable_if_t<detail::is_loop_operand<Operand>>>
void for_each(Operand &&elements, Function f) {
  detail::for_each_call<index_t, false>(detail::AtHome(), f, nullptr, elements);
}

/* What to write instead. */
template <class None = void>
void for_each(detail::Anything, detail::Anything = {}, detail::Anything = {}, detail::Anything = {},
              detail::Anything = {}, detail::Anything = {}, detail::Anything = {}) {
  static_assert(detail::never<None>, UMEM_OPERANDS_OF_LOOP);
}
template <class None = void>
void for_each_indexed(detail::Anything, detail::Anything = {}, detail::Anything = {},
                      detail::Anything = {}, detail::Anything = {}, detail::Anything = {},
                      detail::Anything = {}) {
  static_assert(detail::never<None>, UMEM_OPERANDS_OF_LOOP);
}

/* Calls f for the elements whose indices are in range: a Range<Rank>, Extents or {begin, end}.
 * Each operand counts them from its own element (0, ..., 0). Throws umem::index_error if a range
 * that is not empty leaves the elements and ghost cells of an operand. */
template <class PlaceType, class Function, int Rank, class... Operands,
          class = std::enable_if_t<detail::is_place_and_operands<PlaceType, Function, Operands...>>>
void for_each(PlaceType const &place, Function f, Range<Rank> const &range,
              Operands &&...operands) {
  detail::for_each_call<index_t, false>(place, f, &range, operands...);
}
template <class Function, int Rank, class... Operands,
          class = std::enable_if_t<detail::is_functor_and_operands<Function, Operands...>>>
void for_each(Function f, Range<Rank> const &range, Operands &&...operands) {
  detail::for_each_call<index_t, false>(detail::AtHome(), f, &range, operands...);
}
template <class PlaceType, class Operand, class Function,
          class = std::enable_if_t<detail::is_place_and_operand<PlaceType, Operand>>>
void for_each(PlaceType const &place, Operand &&elements, detail::range_of<Operand> const &range,
              Function f) {
  detail::for_each_call<index_t, false>(place, f, &range, elements);
}
template <class Operand, class Function, class = std::enable_if_t<detail::is_loop_operand<Operand>>>
void for_each(Operand &&elements, detail::range_of<Operand> const &range, Function f) {
  detail::for_each_call<index_t, false>(detail::AtHome(), f, &range, elements);
}

/* ---- elements with their indices ---- */

/* f(element of each operand, i, j, ...). The indices are umem::index_t or the type that the caller
 * names, or that all indices of f have, as in [](double &x, int i, int j). With 32 bits,
 * for_each_indexed<std::int32_t>, compilers vectorise loops on the host better that compute with
 * indices. Throws umem::value_error if the type is too narrow. */
template <class Index = index_t, class PlaceType, class Function, class... Operands,
          class = std::enable_if_t<detail::is_place_and_operands<PlaceType, Function, Operands...>>>
UMEM_ALWAYS_INLINE void for_each_indexed(PlaceType const &place, Function f,
                                         Operands &&...operands) {
  detail::for_each_call<Index, true>(place, f, nullptr, operands...);
}
template <class Index = index_t, class Function, class... Operands,
          class = std::enable_if_t<detail::is_functor_and_operands<Function, Operands...>>>
UMEM_ALWAYS_INLINE void for_each_indexed(Function f, Operands &&...operands) {
  detail::for_each_call<Index, true>(detail::AtHome(), f, nullptr, operands...);
}
template <class Index = index_t, class PlaceType, class Operand, class Function,
          class = std::enable_if_t<detail::is_place_and_operand<PlaceType, Operand>>>
UMEM_ALWAYS_INLINE void for_each_indexed(PlaceType const &place, Operand &&elements, Function f) {
  detail::for_each_call<Index, true>(place, f, nullptr, elements);
}
template <class Index = index_t, class Operand, class Function,
          class = std::enable_if_t<detail::is_loop_operand<Operand>>>
UMEM_ALWAYS_INLINE void for_each_indexed(Operand &&elements, Function f) {
  detail::for_each_call<Index, true>(detail::AtHome(), f, nullptr, elements);
}

/* Calls f for the elements whose indices are in range, as for_each does. */
template <class Index = index_t, class PlaceType, class Function, int Rank, class... Operands,
          class = std::enable_if_t<detail::is_place_and_operands<PlaceType, Function, Operands...>>>
UMEM_ALWAYS_INLINE void for_each_indexed(PlaceType const &place, Function f,
                                         Range<Rank> const &range, Operands &&...operands) {
  detail::for_each_call<Index, true>(place, f, &range, operands...);
}
template <class Index = index_t, class Function, int Rank, class... Operands,
          class = std::enable_if_t<detail::is_functor_and_operands<Function, Operands...>>>
UMEM_ALWAYS_INLINE void for_each_indexed(Function f, Range<Rank> const &range,
                                         Operands &&...operands) {
  detail::for_each_call<Index, true>(detail::AtHome(), f, &range, operands...);
}
template <class Index = index_t, class PlaceType, class Operand, class Function,
          class = std::enable_if_t<detail::is_place_and_operand<PlaceType, Operand>>>
UMEM_ALWAYS_INLINE void for_each_indexed(PlaceType const &place, Operand &&elements,
                                         detail::range_of<Operand> const &range, Function f) {
  detail::for_each_call<Index, true>(place, f, &range, elements);
}
template <class Index = index_t, class Operand, class Function,
          class = std::enable_if_t<detail::is_loop_operand<Operand>>>
UMEM_ALWAYS_INLINE void for_each_indexed(Operand &&elements, detail::range_of<Operand> const &range,
                                         Function f) {
  detail::for_each_call<Index, true>(detail::AtHome(), f, &range, elements);
}

/* ---- indices alone ---- */

/* f(i, j, ...) for all indices of a range, or all below extents. The place must be able to use
 * the memory that f touches. */
template <class Index = index_t, class PlaceType, int Rank, class Function>
UMEM_ALWAYS_INLINE void for_each_index(PlaceType const &place, Range<Rank> const &range,
                                       Function f) {
  detail::Called const function("for_each_index");
  if constexpr (detail::takes_indices<Index, Function, Rank>()) {
    auto where = detail::as_place(place);
    using Where = decltype(where);
    using Own = detail::own_index<Index, Function, 0, Rank>;
    detail::check_index_types<Own, Function, 0>(range);
    if constexpr (detail::may_be_device<Where>)
      if (detail::is_device(where))
        return detail::device_indices<Own>(detail::device_of(where), detail::for_device(f),
                                           range.begin, range.end);
    if constexpr (detail::may_be_host<Where>) {
      detail::check_for_host<Function>();
      detail::host_indices<Own>(detail::host_of(where), detail::with_own_indices<Own, 0, Rank>(f),
                                range.begin, range.end);
    }
  }
}
template <class Index = index_t, class PlaceType, int Rank, class Function>
UMEM_ALWAYS_INLINE void for_each_index(PlaceType const &place, Extents<Rank> const &extents,
                                       Function f) {
  for_each_index<Index>(place, Range<Rank>(extents), f);
}
template <class Index = index_t, class PlaceType, int Rank, class Function>
UMEM_ALWAYS_INLINE void for_each_index(PlaceType const &place, Extents<Rank> const &begin,
                                       Extents<Rank> const &end, Function f) {
  for_each_index<Index>(place, Range<Rank>(begin, end), f);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
