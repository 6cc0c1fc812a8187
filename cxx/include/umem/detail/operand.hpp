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
#include <umem/buffer.hpp>
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

/* A: the type of the operand, const if it is. all: the call goes over all elements of the operand, not a range. */
template <class A, class Access_> struct Use {
  using Operand = A;
  using Access = Access_;
  static constexpr OperandKind kind = kind_of<std::remove_const_t<A>>;
  static constexpr int rank = rank_of<std::remove_const_t<A>>;
  static constexpr bool writes = !std::is_same_v<Access, read_t>;
  static constexpr bool discards = std::is_same_v<Access, discard_t>;
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

/* Whether the elements of an operand A, const or not, can be written. */
template <class A>
inline constexpr bool is_written =
    !std::is_const_v<typename operand_t<std::remove_const_t<A>>::element_type> &&
    !(std::is_const_v<A> && kind_of<std::remove_const_t<A>> == OperandKind::array);

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
  if constexpr (kind_of<A> != OperandKind::view) {
    check_device_accessible(operand.context());
    Place home(operand.context());
    if (!home.is_device() || home.device().wait || !is_in_order(place, home)) place.wait = true;
    if (home.is_device() && place.device < 0) place.device = home.device().device;
  }
}
template <class A> void settle(HostPlace &, A const &operand) {
  if constexpr (kind_of<A> == OperandKind::guard)
    if (!operand.context().can(umemCpuReadable))
      throw value_error(std::string("loops on the host cannot use a guard of ") +
                        operand.context().name() + ": take one of the host side");
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
    Context const &context = operand.context();
    if (!context.can(umemDeviceAccessible)) return false;
    if (context.can(umemCpuReadable)) return true; /* pinned or managed */
    Place home(context);
    return home.is_device() && home.device().device == gpu.device;
  }
}

/* The place of a loop for which the caller names none: the home of the first operand that it writes or, if it writes
 * none that has a home, of the first that has. If that is a GPU whose kernels cannot use another operand, the host, to
 * which arrays transfer their elements. */
template <class... A, class... Access> Place place_for(Use<A, Access> const &...uses) {
  constexpr bool has_home = ((Use<A, Access>::kind != OperandKind::view) || ...);
  static_assert(has_home, "views have no home: name the place of the loop before them, such as "
                          "umem::on_host");
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
  return settled(place_for(uses...), uses...);
}

/* ---- the memory of arrays and parts ---- */

struct PartMemory {
  template <class T, int N> static Mirror *mirror(Part<T, N> const &part) {
    return part.mirror_.get(); /* null: borrowed memory */
  }
  template <class T, int N> static std::uint64_t key(Part<T, N> const &part) { return part.key_; }
  template <class T, int N> static address adr(Part<T, N> const &part) { return part.adr_; }
  template <class T, int N> static StridedLayout<N> const &layout(Part<T, N> const &part) {
    return part.layout_;
  }
};

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

/* Where the elements of a part are, in bytes from the beginning of its array. */
struct Reach {
  index first = 0, end = 0; /* no element is before the first byte, nor after the end */
  index step = 0;           /* the elements are multiples of it apart; 0: there is one */

  /* False only if no byte is in both. */
  bool may_overlap(Reach const &other) const noexcept {
    if (end <= other.first || other.end <= first) return false;
    index divisor = step, rest = other.step; /* Euclid's algorithm */
    while (rest) divisor = std::exchange(rest, divisor % rest);
    return divisor == 0 || (first - other.first) % divisor == 0;
  }
};

template <class T, int N> Reach reach_of(StridedLayout<N> const &layout) noexcept {
  index const size = sizeof(T);
  Reach reach{layout.offset * size, (layout.offset + 1) * size};
  for (int k = 0; k < N; k++) {
    index extent = layout.extents.at[k], step = layout.strides.at[k] * size;
    if (extent < 2 || step == 0) continue;
    (step < 0 ? reach.first : reach.end) += step * (extent - 1);
    index divisor = step < 0 ? -step : step;
    while (reach.step) divisor = std::exchange(reach.step, divisor % reach.step);
    reach.step = divisor;
  }
  return reach;
}

/* A call's access to the memory of an array, apart from the type of the elements. */
struct OpenMemory {
  OpenMemory() = default;
  OpenMemory(OpenMemory const &) = delete;
  OpenMemory &operator=(OpenMemory const &) = delete;

  Mirror *mirror = nullptr; /* null: there is no array */
  std::uint64_t key = 0;
  Access access = Access::read; /* what this operand needs */
  bool reverts = false;         /* whether a loop that fails leaves the side current that was */
  bool wants_buffer = false;
  Reach reach;

  Side side = Side::host;
  Access held = Access::read; /* that of the guard: what all operands in the array need */
  bool is_held = false;

  /* The address of the first byte of the array on a side. */
  address acquire(Side on) {
    address adr = mirror->acquire(on, held, key);
    side = on;
    is_held = true;
    return adr;
  }

  void release(bool revert) noexcept {
    if (!is_held) return;
    is_held = false;
    if (revert && held != Access::read) mirror->undo_overwrite(side);
    mirror->release(side, held);
  }
};

/* Of the operands in one array, the first takes a guard with the access that all need together, the others guards to
 * read. They get buffers only if all can have one, and if no element would be in two, of which one is written. */
inline void share_guards(OpenMemory *const *all, int count) noexcept {
  for (int i = 0; i < count; i++) {
    OpenMemory &one = *all[i];
    one.held = one.access;
    bool buffers = one.wants_buffer, reverts = one.reverts, is_first = true;
    for (int j = 0; one.mirror && j < count; j++) {
      OpenMemory const &other = *all[j];
      if (j == i || other.mirror != one.mirror) continue;
      is_first = is_first && i < j;
      reverts = reverts || other.reverts;
      if (one.held != Access::read || other.access != Access::read) one.held = Access::write;
    }
    if (!is_first) {
      one.held = Access::read;
      continue;
    }
    for (int j = i; one.mirror && j < count; j++)
      for (int k = i; all[j]->mirror == one.mirror && k < count; k++) {
        OpenMemory const &a = *all[j], &b = *all[k];
        if (b.mirror != one.mirror) continue;
        bool writes = a.access != Access::read || b.access != Access::read;
        buffers = buffers && b.wants_buffer && (j == k || !writes || !a.reach.may_overlap(b.reach));
      }
    for (int j = i; one.mirror && j < count; j++)
      if (all[j]->mirror == one.mirror) all[j]->wants_buffer = buffers;
    one.reverts = reverts;
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
  using Value = typename U::value_type;
  static constexpr int N = U::rank;
  static constexpr bool is_part = U::kind == OperandKind::part;

public:
  static constexpr bool has_memory = true;

  template <class P> MemorySlot(P const &place, U const &used) : part_(as_part(used.operand)) {
    mirror = PartMemory::mirror(part_);
    key = PartMemory::key(part_);
    loads_ = !U::discards || !used.all || part_.ghosts() != Extents<N>();
    reverts = (U::discards && used.all) || is_device(place);
    if constexpr (U::writes) access = loads_ ? Access::write : Access::discard;
    if constexpr (is_part) look_at_part(is_device(place));
  }
  ~MemorySlot() { release(!has_begun_ || (!is_done_ && reverts)); }

  /* Opens the operands that are read, then those that are written, last those that lose their old elements. */
  template <class P> void open(P const &place, Access when) {
    if (when != (wants_buffer || !mirror ? access : held)) return;
    if (is_empty_)
      view_ = View<T, N>(nullptr, part_.extents(), part_.strides(), part_.ghosts());
    else if (!wants_buffer)
      open_memory(place);
    else if constexpr (is_part)
      open_buffer();
  }
  view_in_loop<U> view() const noexcept { return {view_}; }
  void begin() noexcept { has_begun_ = true; }

  /* After the loop. */
  void finish() {
    if constexpr (is_part && U::writes)
      if (buffer_) copy(buffered(), cells());
    is_done_ = true;
  }

private:
  struct Nothing {};

  void look_at_part(bool on_device) {
    std::size_t const nbytes = static_cast<std::size_t>(cells().size()) * sizeof(T);
    bool const is_smaller = mirror && nbytes < mirror->nbytes();
    if (U::writes && is_smaller) access = Access::write; /* what is beside the part stays */
    is_empty_ = nbytes == 0;
    if (is_empty_) mirror = nullptr; /* nothing is accessed */
    if (on_device || is_empty_) return;
    Context const &context = part_.context();
    bool const is_for_cpu =
        context.can(umemCpuReadable) && (!U::writes || context.can(umemCpuWritable));
    wants_buffer = mirror ? is_smaller && mirror->current() == Side::device : !is_for_cpu;
    if (wants_buffer) reach = reach_of<T>(PartMemory::layout(cells()));
  }

  template <class P> void open_memory(P const &place) {
    address adr = PartMemory::adr(part_);
    bool const on_device = is_device(place);
    if (mirror)
      adr = acquire(on_device ? Side::device : Side::host);
    else if (!on_device && part_.context().can(umemOrdered))
      part_.context().synchronize();
    queue_before(place, part_.context()); /* also after the transfer */
    adr += static_cast<address>(PartMemory::layout(part_).offset) * sizeof(T);
    view_ =
        View<T, N>(reinterpret_cast<T *>(adr), part_.extents(), part_.strides(), part_.ghosts());
  }

  void open_buffer() {
    Context host = mirror ? mirror->mirror_context() : pointers();
    if (mirror && U::writes) mirror->check_destination(key);
    if (mirror) mirror->check_readable(Side::host, key);
    if (U::writes && !part_.context().can(umemWritable))
      throw not_supported_error("a part on a read-only " + std::string(part_.context().name()) +
                                " cannot be written");
    auto const count = static_cast<std::size_t>(cells().size());
    buffer_ = Buffer(host, count * sizeof(T), alignof(T) > host.alignment() ? alignof(T) : 0);
    if (loads_) copy(Part<Value const, N>(cells()), buffered());
    T *first = reinterpret_cast<T *>(buffer_.adr());
    view_ = View<T, N>::with_ghosts_from(first, part_.extents(), part_.ghosts());
  }

  Part<Value, N> buffered() const {
    return Part<Value, N>(buffer_.context(), buffer_.adr(), cells().extents());
  }

  /* With the ghost cells, which a range may reach into. */
  Part<T, N> cells() const { return part_.with_ghosts(); }

  Part<T, N> part_;
  bool is_empty_ = false, loads_ = true, has_begun_ = false, is_done_ = false;
  std::conditional_t<is_part, Buffer, Nothing> buffer_;
  View<T, N> view_;
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
