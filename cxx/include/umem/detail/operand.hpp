/* umem/detail/operand.hpp - what loops, copies and reductions work on: arrays, locks, parts, views and guards, each
 * with what the call does to it.
 *
 *     auto where = settled(place, out, in);             // or place_for(use(out, discard), use(in, read))
 *     with_views(where, [&](auto const &to, auto const &from) { ... }, use(out, discard), use(in, read));
 *
 * A call takes one guard of each array, with the strongest access that its operands ask for, on the side where it
 * runs. A part of an array whose other side alone is current is worked on in a buffer of its own: see PartSlot. */
#ifndef UMEM_DETAIL_OPERAND_HPP
#define UMEM_DETAIL_OPERAND_HPP

#include <umem/array_access.hpp>
#include <umem/detail/open_memory.hpp>
#include <umem/part.hpp>
#include <umem/place.hpp>
#include <umem/place_guard.hpp>
#include <umem/view.hpp>

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* ---- which types are operands ---- */

enum class OperandKind { view, guard, part, array };

template <OperandKind kind_, class T, int N> struct OperandType {
  static constexpr OperandKind kind = kind_;
  static constexpr int rank = N;
  using element_type = T;
};

template <class T, int N> OperandType<OperandKind::view, T, N> operand_type(View<T, N> const &);
template <class T, int N, Side side>
OperandType<OperandKind::guard, T, N> operand_type(Guard<T, N, side> const &);
template <class T, int N>
OperandType<OperandKind::guard, T, N> operand_type(PlaceGuard<T, N> const &);
template <class T, int N> OperandType<OperandKind::part, T, N> operand_type(Part<T, N> const &);
template <class T, int N>
OperandType<OperandKind::array, T, N> operand_type(ArrayAccess<T, N> const &);

template <class A> using operand_t = decltype(operand_type(std::declval<A const &>()));
template <class A> using bare_t = std::remove_cv_t<std::remove_reference_t<A>>;

template <class A, class = void> inline constexpr bool is_operand = false;
template <class A> inline constexpr bool is_operand<A, std::void_t<operand_t<bare_t<A>>>> = true;

/* The same, or one with its access: umem::read(x), umem::discard(z). */
template <class A> inline constexpr bool is_accessed = false;
template <class A, class Access> inline constexpr bool is_accessed<Accessed<A, Access>> = true;
template <class A> inline constexpr bool is_loop_operand = is_operand<A> || is_accessed<bare_t<A>>;

template <class A> inline constexpr OperandKind kind_of = operand_t<A>::kind;
template <class A> inline constexpr int rank_of = operand_t<A>::rank;
/* Without const. */
template <class A> using value_of = std::remove_cv_t<typename operand_t<A>::element_type>;

template <class A> inline constexpr bool is_host_guard = false;
template <class T, int N> inline constexpr bool is_host_guard<HostGuard<T, N>> = true;
template <class A> inline constexpr bool is_place_guard = false;
template <class T, int N> inline constexpr bool is_place_guard<PlaceGuard<T, N>> = true;

/* Whether a guard is of the host side. */
template <class A> bool is_of_host(A const &guard) {
  if constexpr (is_place_guard<A>)
    return guard.is_host();
  else
    return is_host_guard<A>;
}

/* ---- extents, before anything is opened ---- */

template <class T, int N> Extents<N> extents_of(View<T, N> const &view) { return view.extents; }
template <class T, int N, Side side> Extents<N> extents_of(Guard<T, N, side> const &guard) {
  return guard.view().extents;
}
template <class T, int N> Extents<N> extents_of(PlaceGuard<T, N> const &guard) {
  return guard.view().extents;
}
template <class T, int N> Extents<N> extents_of(Part<T, N> const &part) { return part.extents(); }
template <class T, int N> Extents<N> extents_of(ArrayAccess<T, N> const &array) {
  array.context(); /* throws for a moved-from array */
  return array.extents();
}

/* ---- what a call does to an operand ---- */

/* Whether the elements of an operand A, const or not, can be written. */
template <class A>
inline constexpr bool is_written =
    !std::is_const_v<typename operand_t<std::remove_const_t<A>>::element_type> &&
    !(std::is_const_v<A> && kind_of<std::remove_const_t<A>> == OperandKind::array);

/* A: the type of the operand, const if it is. all: the call goes over all elements of the operand, not a range. */
template <class A, class Access_> struct Use {
  using Operand = A;
  using Access = Access_;
  static constexpr OperandKind kind = kind_of<std::remove_const_t<A>>;
  static constexpr int rank = rank_of<std::remove_const_t<A>>;
  static constexpr bool writes = !std::is_same_v<Access, read_t>;
  static constexpr bool discards = std::is_same_v<Access, discard_t>;
  static constexpr bool is_allowed = !discards || is_written<A>; /* else use() has refused it */
  using value_type = value_of<std::remove_const_t<A>>;
  using element_type = std::conditional_t<writes, value_type, value_type const>;

  A &operand;
  bool all = true;
};

template <class A, class Access> auto extents_of(Use<A, Access> const &used) {
  return extents_of(used.operand);
}
template <class A, class Access> auto extents_of(Accessed<A, Access> const &accessed) {
  return extents_of(accessed.operand);
}

/* To read. */
template <class A> Use<A, read_t> use(A &operand, read_t, bool all = true) {
  return {operand, all};
}
/* To read and write; elements that cannot be written are only read. */
template <class A> auto use(A &operand, write_t, bool all = true) {
  return Use<A, std::conditional_t<is_written<A>, write_t, read_t>>{operand, all};
}
/* To write without reading. */
template <class A> Use<A, discard_t> use(A &operand, discard_t, bool all = true) {
  static_assert(is_written<A>, "the elements of a read-only array cannot be written");
  return {operand, all};
}

/* The parameters of a functor with one call operator that is no template. */
template <class C> struct ParametersOf { using type = std::tuple<>; };
template <class R, class... A> struct ParametersOf<R (*)(A...)> { using type = std::tuple<A...>; };
template <class R, class... A> struct ParametersOf<R (*)(A...) noexcept> {
  using type = std::tuple<A...>;
};
template <class C, class R, class... A> struct ParametersOf<R (C::*)(A...)> {
  using type = std::tuple<A...>;
};
template <class C, class R, class... A> struct ParametersOf<R (C::*)(A...) const> {
  using type = std::tuple<A...>;
};
template <class C, class R, class... A> struct ParametersOf<R (C::*)(A...) noexcept> {
  using type = std::tuple<A...>;
};
template <class C, class R, class... A> struct ParametersOf<R (C::*)(A...) const noexcept> {
  using type = std::tuple<A...>;
};

/* Whether parameter K of F can only be read: a value or a reference to const. Not known of templates and of functors
 * with several call operators; nor of __device__ lambdas, whose parameters nvcc shows to code of the GPU alone. */
template <class F, std::size_t K, class = void> inline constexpr bool only_reads = false;
template <std::size_t K, class Parameters> constexpr bool reads_parameter() {
  if constexpr (K < std::tuple_size_v<Parameters>) {
    using P = std::tuple_element_t<K, Parameters>;
    return !std::is_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>;
  } else {
    return false;
  }
}
template <class F> constexpr bool hides_parameters() {
#if defined(__CUDACC_EXTENDED_LAMBDA__)
  return __nv_is_extended_device_lambda_closure_type(F);
#else
  return false;
#endif
}
template <class F, std::size_t K>
inline constexpr bool only_reads<F, K, std::void_t<decltype(&F::operator())>> =
    !hides_parameters<F>() &&
    reads_parameter<K, typename ParametersOf<decltype(&F::operator())>::type>();
template <class R, class... A, std::size_t K>
inline constexpr bool only_reads<R (*)(A...), K, void> = reads_parameter<K, std::tuple<A...>>();

/* The use of operand K of a loop with functor F: as umem::read, umem::write or umem::discard around it says, else to
 * read what is const or what F can only read, and to read and write all else. */
template <class F, std::size_t K, class A> auto use_in_loop(A &operand, bool all) {
  if constexpr (only_reads<F, K>)
    return use(operand, read, all);
  else
    return use(operand, write, all);
}
template <class F, std::size_t K, class A, class Access>
auto use_in_loop(Accessed<A, Access> const &accessed, bool all) {
  return use(accessed.operand, Access(), all);
}
template <class F, std::size_t K, class A, class Access>
auto use_in_loop(Accessed<A, Access> &accessed, bool all) {
  return use(accessed.operand, Access(), all);
}

/* ---- where the loop runs ---- */

/* The place of an operand that is no view. */
template <class A> Place home_of_one(A const &operand) {
  if constexpr (kind_of<A> == OperandKind::guard)
    if (is_of_host(operand)) {
      static_cast<void>(operand.context()); /* throws after release() */
      return Place(on_host);
    }
  return Place(operand.context());
}

/* A place must be able to use the memory of an operand. A kernel on a stream that is not that of its context must
 * finish before anything else uses the memory. Nothing is known about the memory of views. */
template <class A> void settle(DevicePlace &place, A const &operand) {
  if constexpr (kind_of<A> != OperandKind::view) settle_kernels(place, operand.context());
}
template <class A> void settle(HostPlace &, A const &operand) {
  if constexpr (kind_of<A> == OperandKind::guard)
    if (!operand.context().can(umemCpuReadable))
      raise_text(umemValueError,
                 "loops on the host cannot use a guard of %s: take one of the host side",
                 operand.context().name());
}
template <class A> void settle(Place &place, A const &operand) {
  if (place.is_device()) {
    DevicePlace device = place.device();
    settle(device, operand);
    place = Place(device);
  } else {
    HostPlace host = place.host();
    settle(host, operand);
  }
}

template <class A> A const &operand_of(A const &operand) noexcept { return operand; }
template <class A, class Access>
std::remove_const_t<A> const &operand_of(Use<A, Access> const &used) noexcept {
  return used.operand;
}

/* The place for a loop over operands, or uses of them. */
template <class P, class... A> auto settled(P const &place, A const &...operands) {
  auto result = as_place(place);
  (settle(result, operand_of(operands)), ...);
  return result;
}

/* Whether kernels of a GPU can use an operand. Nothing is known about the memory of a view, nor whether another GPU is
 * connected. */
template <class A> bool kernels_reach(DevicePlace const &gpu, A const &operand) {
  if constexpr (kind_of<A> == OperandKind::view) {
    return true;
  } else {
    if constexpr (kind_of<A> == OperandKind::guard)
      if (is_of_host(operand)) return false;
    return kernels_reach_memory(gpu, operand.context());
  }
}

/* The place of a loop for which the caller names none: the home of the first operand that it writes or, if it writes
 * none that has a home, of the first that has. If that is a GPU whose kernels cannot use another operand, the host, to
 * which arrays transfer their elements. */
template <class... A, class... Access> Place place_for(Use<A, Access> const &...uses) {
  constexpr bool has_home = ((Use<A, Access>::kind != OperandKind::view) || ...);
  constexpr bool writes_home =
      ((Use<A, Access>::writes && Use<A, Access>::kind != OperandKind::view) || ...);
  Place home;
  if constexpr (has_home) {
    bool found = false;
    auto look = [&](auto const &used) {
      using U = std::remove_cv_t<std::remove_reference_t<decltype(used)>>;
      if constexpr (U::kind != OperandKind::view && (U::writes || !writes_home))
        if (!std::exchange(found, true)) home = home_of_one(operand_of(used));
    };
    (look(uses), ...);
    if (!home.is_device()) return home;
    if (!(kernels_reach(home.device(), operand_of(uses)) && ...)) return Place(on_host);
  }
  return home;
}

/* Stands for the place of a loop for which the caller names none. */
struct AtHome {};
template <> inline constexpr bool is_place<AtHome, void> = true;
template <class... U> Place settled(AtHome, U const &...uses) {
  static_assert(
      ((U::kind != OperandKind::view) || ...),
      "views have no home: name the place of the loop before them, such as umem::on_host");
  return settled(place_for(uses...), uses...);
}

/* ---- the memory of arrays and parts ---- */

/* Any operand as a part. The memory of a view is that of the host. */
template <class A> auto as_part(A &operand) {
  using Bare = std::remove_const_t<A>;
  if constexpr (kind_of<Bare> == OperandKind::part) {
    return operand;
  } else if constexpr (kind_of<Bare> == OperandKind::array) {
    return operand.part();
  } else if constexpr (kind_of<Bare> == OperandKind::view) {
    return part(operand);
  } else {
    auto const &view = operand.view();
    return Part<typename Bare::element_type, Bare::rank>(
        operand.context(), reinterpret_cast<address>(view.data), view.extents, view.strides);
  }
}

/* ---- operands while a loop goes over them ---- */

/* Elements that a loop gives values without reading them. */
template <class T, int N> struct FreshView : View<T, N> {};

template <class U>
using view_in_loop = std::conditional_t<U::discards, FreshView<typename U::element_type, U::rank>,
                                        View<typename U::element_type, U::rank>>;

template <class T, int N> View<T, N> const &view_of(View<T, N> const &view) noexcept {
  return view;
}
template <class T, int N, Side side>
View<T, N> const &view_of(Guard<T, N, side> const &guard) noexcept {
  return guard.view();
}
template <class T, int N> View<T, N> const &view_of(PlaceGuard<T, N> const &guard) noexcept {
  return guard.view();
}

/* A view or a guard. */
template <class U> class ViewSlot {
public:
  static constexpr bool has_memory = false;

  template <class P> ViewSlot(P const &, U const &used) : used_(used) {}

  template <class P> void open(P const &place, Access when) {
    if constexpr (U::kind == OperandKind::guard)
      if (when == Access::read) queue_before(place, used_.operand.context());
  }
  view_in_loop<U> view() const noexcept { return {view_of(used_.operand)}; }
  void finish() noexcept {}

private:
  U used_;
};

/* An array or a part. The loop works on the memory of the side where it runs, to which the array is transferred first if
 * only the other side is current. But if the loop runs on the host and the operand is a smaller part of such an array,
 * only the part is transferred: to a buffer, and back when the loop has written it. The side that was current then
 * stays the current one. Borrowed memory that the CPU cannot use goes through a buffer as well. */
template <class U> class MemorySlot : public OpenMemory {
  using T = typename U::element_type;
  static constexpr int N = U::rank;

public:
  static constexpr bool has_memory = true;

  template <class P>
  MemorySlot(P const &place, U const &used) : MemorySlot(place, as_part(used.operand), used.all) {}

  /* Opens the operands that are read, then those that are written, last those that lose their old elements. */
  template <class P> void open(P const &place, Access when) {
    if (!is_open_at(when)) return;
    StridedLayout<N> cells = layout_.with_ghosts();
    open_elements(place, items_of(layout_), items_of(cells), alignof(T));
  }

  view_in_loop<U> view() const noexcept {
    auto *first = reinterpret_cast<T *>(this->first());
    View<T, N> const view =
        has_buffer() ? View<T, N>::with_ghosts_from(first, layout_.extents, layout_.ghosts)
                     : View<T, N>(first, layout_.extents, layout_.strides, layout_.ghosts);
    return {is_reversed_ ? view.transpose() : view};
  }

  /* After the loop. */
  void finish() {
    StridedLayout<N> cells = layout_.with_ghosts();
    finish_elements(items_of(cells));
  }

private:
  template <class P>
  MemorySlot(P const &place, Part<T, N> const &part, bool all)
      : OpenMemory(PartMembers::memory(part), U::kind == OperandKind::part, U::writes),
        layout_(PartMembers::layout(part)), is_reversed_(is_column_major(layout_)) {
    if (is_reversed_) layout_ = layout_.transpose();
    StridedLayout<N> cells = layout_.with_ghosts();
    bool has_ghosts = !layout_.ghosts.is_empty();
    plan(place, items_of(cells), U::discards && all, has_ghosts);
  }

  static ItemLayout items_of(StridedLayout<N> const &layout) noexcept {
    return {layout.extents.begin(), layout.strides.begin(), N, layout.offset, sizeof(T)};
  }

  /* Whether the first index is faster than the last. */
  static bool is_column_major(StridedLayout<N> const &layout) noexcept {
    if constexpr (N < 2) return false;
    index_t const first = layout.strides.at[0], last = layout.strides.at[N > 0 ? N - 1 : 0];
    return (first < 0 ? -first : first) < (last < 0 ? -last : last);
  }

  StridedLayout<N> layout_;
  bool
      is_reversed_; /* layout_ has the dimensions in reversed order, so that a buffer has the order of the array */
};

template <class U>
using slot_for = std::conditional_t<U::kind == OperandKind::view || U::kind == OperandKind::guard,
                                    ViewSlot<U>, MemorySlot<U>>;

template <std::size_t K, class U> struct Slot : slot_for<U> { using slot_for<U>::slot_for; };

template <class All, class... U> class OpenOperands;

/* All operands of a call on a place. The order of their accesses in memory is as if one guard gave them all. */
template <std::size_t... K, class... U>
class OpenOperands<std::index_sequence<K...>, U...> : Slot<K, U>... {
public:
  template <class P>
  explicit OpenOperands(P const &place, U const &...uses) : Slot<K, U>(place, uses)... {
    constexpr int count = (int(Slot<K, U>::has_memory) + ... + 0);
    if constexpr (count > 0) {
      OpenMemory *all[static_cast<std::size_t>(count)], **next = all;
      (add(next, static_cast<Slot<K, U> &>(*this)), ...);
      share_guards(all, count);
    }
    for (Access when : {Access::read, Access::write, Access::discard})
      (static_cast<Slot<K, U> &>(*this).open(place, when), ...);
    (begin(static_cast<Slot<K, U> &>(*this)), ...);
  }

  /* body(view of each operand) */
  template <class Body> UMEM_ALWAYS_INLINE decltype(auto) call(Body &&body) {
    return body(static_cast<Slot<K, U> &>(*this).view()...);
  }

  /* After the loop: takes back what is in buffers. */
  void finish() { (static_cast<Slot<K, U> &>(*this).finish(), ...); }

private:
  template <class S> static void add(OpenMemory **&next, S &slot) {
    if constexpr (S::has_memory) *next++ = &slot;
  }
  template <class S> static void begin(S &slot) {
    if constexpr (S::has_memory) slot.begin();
  }
};

/* body(view of each use), with its result. Views of what is only read have const elements; those of what the loop gives
 * values without reading are FreshViews. */
template <class P, class Body, class... U>
UMEM_ALWAYS_INLINE decltype(auto) with_views(P const &place, Body &&body, U const &...uses) {
  OpenOperands<std::index_sequence_for<U...>, U...> open(place, uses...);
  if constexpr (std::is_void_v<decltype(open.call(body))>) {
    open.call(body);
    open.finish();
  } else {
    auto result = open.call(body);
    open.finish();
    return result;
  }
}

} // namespace detail
} // namespace umem

#endif
