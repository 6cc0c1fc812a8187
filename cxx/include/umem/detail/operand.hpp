/* umem/detail/operand.hpp - what loops, copies and reductions work on: arrays, locks, parts, views
 * and guards, each with what the call does to it.
 *
 *     auto where = settled(place, out, in);      // or place_for(use(out, discard), use(in, read))
 *     with_views(where, [&](auto const &to, auto const &from) { ... },
 *                use(out, discard), use(in, read));
 *
 * A call takes one guard of each array, with the strongest access that its operands ask for, on the
 * side where it runs. A part of an array whose other side alone is current is worked on in a buffer
 * of its own: see PartSlot. */
#ifndef UMEM_DETAIL_OPERAND_HPP
#define UMEM_DETAIL_OPERAND_HPP

#include <umem/detail/functors.hpp>
#include <umem/detail/open_memory.hpp>

namespace umem::detail {

/* ---- which types are operands ---- */

enum class OperandKind { view, guard, part, array };

template <OperandKind kind_, class Type, int Rank> struct OperandType {
  static constexpr OperandKind kind = kind_;
  static constexpr int rank = Rank;
  using element_type = Type;
};

template <class Type, int Rank>
OperandType<OperandKind::view, Type, Rank> operand_type(View<Type, Rank> const &);
template <class Type, int Rank, Side side, class Layout>
OperandType<OperandKind::guard, Type, Rank> operand_type(Guard<Type, Rank, side, Layout> const &);
template <class Type, int Rank>
OperandType<OperandKind::guard, Type, Rank> operand_type(PlaceGuard<Type, Rank> const &);
template <class Type, int Rank>
OperandType<OperandKind::part, Type, Rank> operand_type(Part<Type, Rank> const &);
template <class Type, int Rank>
OperandType<OperandKind::array, Type, Rank> operand_type(ArrayAccess<Type, Rank> const &);

template <class Arg> using operand_t = decltype(operand_type(std::declval<Arg const &>()));
template <class Arg> using bare_t = std::remove_cv_t<std::remove_reference_t<Arg>>;

template <class Arg, class = void> inline constexpr bool is_operand = false;
template <class Arg>
inline constexpr bool is_operand<Arg, std::void_t<operand_t<bare_t<Arg>>>> = true;
template <class Arg> using if_operand = std::enable_if_t<is_operand<Arg>>;

/* An operand, or one with its access: umem::read(x), umem::discard(z). */
template <class Arg> struct NamedAccess { using type = void; };
template <class Arg, class Access> struct NamedAccess<Accessed<Arg, Access>> {
  using type = Access;
};
/* What umem::read, umem::write or umem::discard around an operand says; void: nothing. */
template <class Arg> using named_access = typename NamedAccess<std::remove_const_t<Arg>>::type;
template <class Arg> inline constexpr bool is_accessed = !std::is_void_v<named_access<Arg>>;
template <class Arg>
inline constexpr bool is_loop_operand = is_operand<Arg> || is_accessed<bare_t<Arg>>;

template <class Arg> inline constexpr OperandKind kind_of = operand_t<Arg>::kind;
template <class Arg> inline constexpr int rank_of = operand_t<Arg>::rank;
/* Without const. */
template <class Arg> using value_of = std::remove_cv_t<typename operand_t<Arg>::element_type>;

template <class Arg> inline constexpr bool is_host_guard = false;
template <class Type, int Rank, class Layout>
inline constexpr bool is_host_guard<HostGuard<Type, Rank, Layout>> = true;
template <class Arg> inline constexpr bool is_place_guard = false;
template <class Type, int Rank> inline constexpr bool is_place_guard<PlaceGuard<Type, Rank>> = true;

/* Whether a guard is of the host side. */
template <class Arg> bool is_of_host(Arg const &guard) {
  if constexpr (is_place_guard<Arg>)
    return guard.is_host();
  else
    return is_host_guard<Arg>;
}

/* ---- extents, before anything is opened ---- */

template <class Operand, class = if_operand<Operand>> auto extents_of(Operand const &operand) {
  if constexpr (kind_of<Operand> == OperandKind::view) {
    return operand.extents;
  } else if constexpr (kind_of<Operand> == OperandKind::guard) {
    return operand.view().extents;
  } else {
    static_cast<void>(operand.context()); /* throws for a moved-from array */
    return operand.extents();
  }
}

/* ---- what a call does to an operand ---- */

/* Whether the elements of an operand Arg, const or not, can be written. */
template <class Arg>
inline constexpr bool is_written =
    !std::is_const_v<typename operand_t<std::remove_const_t<Arg>>::element_type> &&
    !(std::is_const_v<Arg> && kind_of<std::remove_const_t<Arg>> == OperandKind::array);

/* Arg: the type of the operand, const if it is. all: the call goes over all elements, not a
 * range. */
template <class Arg, class Access_> struct Use {
  using Operand = Arg;
  using Access = Access_;
  static constexpr OperandKind kind = kind_of<std::remove_const_t<Arg>>;
  static constexpr int rank = rank_of<std::remove_const_t<Arg>>;
  static constexpr bool writes = !std::is_same_v<Access, read_t>;
  static constexpr bool discards = std::is_same_v<Access, discard_t>;
  static constexpr bool is_allowed = !discards || is_written<Arg>; /* else use() has refused it */
  using value_type = value_of<std::remove_const_t<Arg>>;
  using element_type = std::conditional_t<writes, value_type, value_type const>;

  Arg &operand;
  bool all = true;
};

template <class Arg, class Access> auto extents_of(Use<Arg, Access> const &used) {
  return extents_of(used.operand);
}
template <class Arg, class Access> auto extents_of(Accessed<Arg, Access> const &accessed) {
  return extents_of(accessed.operand);
}

/* To read. */
template <class Arg> Use<Arg, read_t> use(Arg &operand, read_t, bool all = true) {
  return {operand, all};
}
/* To read and write; elements that cannot be written are only read. */
template <class Arg> auto use(Arg &operand, write_t, bool all = true) {
  return Use<Arg, std::conditional_t<is_written<Arg>, write_t, read_t>>{operand, all};
}
/* To write without reading. */
template <class Arg> Use<Arg, discard_t> use(Arg &operand, discard_t, bool all = true) {
  static_assert(is_written<Arg>, "the elements of a read-only array cannot be written");
  return {operand, all};
}

/* The use of operand Nth of a loop with functor Function: as umem::read, umem::write or
 * umem::discard around it says, else to read what is const or what Function can only read, and to
 * read and write all else. */
template <class Function, std::size_t Nth, class Arg> auto use_in_loop(Arg &operand, bool all) {
  if constexpr (is_accessed<Arg>)
    return use(operand.operand, named_access<Arg>(), all);
  else if constexpr (only_reads<Function, Nth>)
    return use(operand, read, all);
  else
    return use(operand, write, all);
}

/* Whether an operand may be there to be changed. */
template <class Arg> constexpr bool is_to_change() {
  if constexpr (is_accessed<Arg>)
    return !std::is_same_v<named_access<Arg>, read_t>;
  else
    return is_written<Arg>;
}

/* Whether a functor gets copies alone of elements that may be there to be changed. One with members
 * is let through: it may change what they refer to. */
template <class Function, class... Operands>
inline constexpr bool
    gets_copies = takes_values<parameters_of<Function>>(std::index_sequence_for<Operands...>()) &&
                  std::is_empty_v<Function> && (is_to_change<Operands>() || ...);

/* Whether a functor can only read an operand that loses its elements. */
template <class Function, class... Operands, std::size_t... Nth>
constexpr bool reads_discarded(std::index_sequence<Nth...>) {
  return ((only_reads<Function, Nth> && std::is_same_v<named_access<Operands>, discard_t>) || ...);
}

/* ---- where the loop runs ---- */

/* Whether an operand is an array in RAM that no GPU uses: its home is this thread. */
template <class Arg> UMEM_ALWAYS_INLINE bool is_array_in_ram(Arg const &operand) noexcept {
  if constexpr (kind_of<Arg> == OperandKind::array)
    if (ArrayMembers::mirror(operand)) return ArrayMembers::mirror(operand)->is_ram();
  return false;
}

/* The place of an operand that is no view. */
template <class Arg> UMEM_ALWAYS_INLINE Place home_of_one(Arg const &operand) {
  if (is_array_in_ram(operand)) return Place(on_host);
  if constexpr (kind_of<Arg> == OperandKind::guard)
    if (is_of_host(operand)) {
      static_cast<void>(operand.context()); /* throws after release() */
      return Place(on_host);
    }
  return Place(operand.context());
}

/* A place must be able to use the memory of an operand. A kernel on a stream that is not that of
 * its context must finish before anything else uses the memory. Nothing is known about the memory
 * of views. */
template <class Arg> void settle(DevicePlace &place, Arg const &operand) {
  if constexpr (kind_of<Arg> != OperandKind::view) settle_kernels(place, operand.context());
}
template <class Arg> void settle(HostPlace &, Arg const &operand) {
  if constexpr (kind_of<Arg> == OperandKind::guard)
    if (!operand.context().can(umemCpuReadable))
      raise_text(umemValueError,
                 "loops on the host cannot use a guard of %s: take one of the host side",
                 operand.context().name());
}
template <class Arg> void settle(Place &place, Arg const &operand) {
  if (place.is_device()) {
    DevicePlace device = place.device();
    settle(device, operand);
    place = Place(device);
  } else {
    HostPlace host = place.host();
    settle(host, operand);
  }
}

template <class Arg> Arg const &operand_of(Arg const &operand) noexcept { return operand; }
template <class Arg, class Access>
std::remove_const_t<Arg> const &operand_of(Use<Arg, Access> const &used) noexcept {
  return used.operand;
}

/* The place for a loop over operands, or uses of them. */
template <class PlaceType, class... Args>
UMEM_ALWAYS_INLINE auto settled(PlaceType const &place, Args const &...operands) {
  auto result = as_place(place);
  (settle(result, operand_of(operands)), ...);
  return result;
}

/* Whether kernels of a GPU can use an operand. Nothing is known about the memory of a view, nor
 * whether another GPU is connected. */
template <class Arg> bool kernels_reach(DevicePlace const &gpu, Arg const &operand) {
  if constexpr (kind_of<Arg> == OperandKind::view) {
    return true;
  } else {
    if constexpr (kind_of<Arg> == OperandKind::guard)
      if (is_of_host(operand)) return false;
    return kernels_reach_memory(gpu, operand.context());
  }
}

/* The home of the first operand that is no view, and is written if only_written. These functions
 * return a Place where they make it: to copy one waits for its bytes to be written. */
template <bool only_written, class Used, class... More>
UMEM_ALWAYS_INLINE Place home_of_first(Used const &first, More const &...others) {
  if constexpr (Used::kind != OperandKind::view && (Used::writes || !only_written))
    return home_of_one(operand_of(first));
  else if constexpr (sizeof...(More) > 0)
    return home_of_first<only_written>(others...);
  return Place();
}

/* The place of a loop for which the caller names none: the home of the first operand that it writes
 * or, if it writes none that has a home, of the first that has. If that is a GPU whose kernels
 * cannot use another operand, the host, to which arrays transfer their elements. */
template <class... Uses> UMEM_ALWAYS_INLINE Place place_for(Uses const &...uses) {
  Place home = home_of_first<((Uses::writes && Uses::kind != OperandKind::view) || ...)>(uses...);
  if (UMEM_RARELY(home.is_device()))
    if (!(kernels_reach(home.device(), operand_of(uses)) && ...)) home = Place(on_host);
  return home;
}

/* Stands for the place of a loop for which the caller names none. */
struct AtHome {};
template <> inline constexpr bool is_place<AtHome, void> = true;

/* Defines a function that loops over operands without the place that comes first: as if there was
 * one, at the home of the operands. */
#define UMEM_AT_HOME(function)                                                                     \
  template <class Operand, class... Args, class = detail::if_operand<Operand>>                     \
  decltype(auto) function(Operand &&operand, Args &&...args) {                                     \
    return function(detail::AtHome(), operand, args...);                                           \
  }

/* Whether a loop has a place. */
template <class PlaceType, class... Uses> constexpr bool has_place() {
  constexpr bool has =
      !std::is_same_v<PlaceType, AtHome> || ((Uses::kind != OperandKind::view) || ...);
  static_assert(
      has, "views have no home: name the place of the loop before them, such as umem::on_host");
  return has;
}

template <class... Uses> UMEM_ALWAYS_INLINE Place settled(AtHome, Uses const &...uses) {
  static_assert(has_place<AtHome, Uses...>());
  Place result = place_for(uses...);
  (settle(result, operand_of(uses)), ...);
  return result;
}

/* ---- the memory of arrays and parts ---- */

/* Any operand as a part. The memory of a view is that of the host. */
template <class Arg> auto as_part(Arg &operand) {
  using Bare = std::remove_const_t<Arg>;
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
template <class Type, int Rank> struct FreshView : View<Type, Rank> {};

template <class Used>
using view_in_loop =
    std::conditional_t<Used::discards, FreshView<typename Used::element_type, Used::rank>,
                       View<typename Used::element_type, Used::rank>>;

/* A view or a guard. */
template <class Used> class ViewSlot {
public:
  static constexpr bool has_memory = false;

  explicit ViewSlot(Used const &used) : used_(used) {}

  bool open_quickly() const noexcept { return true; }
  void close_quickly() const noexcept {}
  template <class PlaceType> void open(PlaceType const &place, Access when) {
    if constexpr (Used::kind == OperandKind::guard)
      if (when == Access::read) queue_before(place, used_.operand.context());
  }
  view_in_loop<Used> view() const noexcept {
    if constexpr (Used::kind == OperandKind::view)
      return {used_.operand};
    else
      return {used_.operand.view()};
  }
  void finish() noexcept {}

private:
  Used used_;
};

/* The memory of a part of an array. The loop works on the memory of the side where it runs, to
 * which the array is transferred first if only the other side is current. But if the loop runs on
 * the host and the operand is a smaller part of such an array, only the part is transferred: to a
 * buffer, and back when the loop has written it. The side that was current then stays the current
 * one. Borrowed memory that the CPU cannot use goes through a buffer as well. */
template <class Type, int Rank> class OpenPart : public OpenMemory {
public:
  /* discards: the loop gives all elements values without reading them. */
  template <class PlaceType>
  OpenPart(PlaceType const &place, Part<Type, Rank> const &part, bool is_part, bool writes,
           bool discards)
      : OpenMemory(PartMembers::memory(part), is_part, writes), layout_(PartMembers::layout(part)),
        is_reversed_(is_column_major(layout_)) {
    if (is_reversed_) layout_ = layout_.transpose();
    StridedLayout<Rank> cells = layout_.with_ghosts();
    bool has_ghosts = !layout_.ghosts.is_empty();
    plan(place, items_of(cells), discards, has_ghosts);
  }

  /* Opens the operands that are read, then those that are written, last those that lose their old
   * elements. */
  template <class PlaceType> void open(PlaceType const &place, Access when) {
    if (!is_open_at(when)) return;
    StridedLayout<Rank> cells = layout_.with_ghosts();
    open_elements(place, items_of(layout_), items_of(cells), alignof(Type));
  }

  View<Type, Rank> view() const noexcept {
    auto *first = reinterpret_cast<Type *>(this->first());
    View<Type, Rank> const view =
        has_buffer() ? View<Type, Rank>::with_ghosts_from(first, layout_.extents, layout_.ghosts)
                     : View<Type, Rank>(first, layout_.extents, layout_.strides, layout_.ghosts);
    return is_reversed_ ? view.transpose() : view;
  }

  /* After the loop. */
  void finish() {
    StridedLayout<Rank> cells = layout_.with_ghosts();
    finish_elements(items_of(cells));
  }

private:
  static ItemLayout items_of(StridedLayout<Rank> const &layout) noexcept {
    return {layout.extents.begin(), layout.strides.begin(), Rank, layout.offset, sizeof(Type)};
  }

  /* Whether the first index is faster than the last. */
  static bool is_column_major(StridedLayout<Rank> const &layout) noexcept {
    if constexpr (Rank < 2) return false;
    index_t const first = layout.strides.at[0], last = layout.strides.at[Rank > 0 ? Rank - 1 : 0];
    return (first < 0 ? -first : first) < (last < 0 ? -last : last);
  }

  StridedLayout<Rank> layout_;
  /* layout_ has the dimensions in reversed order, so that a buffer has the order of the array. */
  bool is_reversed_;
};

/* A guard for a loop on the host, where that takes no more than to count it: as for most arrays in
 * RAM. Borrows the memory: the operand lives as long as the loop. */
template <class Used> class QuickGuard {
  static constexpr Access access = Used::writes ? Access::write : Access::read;
  using Type = typename Used::element_type;

public:
  QuickGuard() = default;
  /* Of an array, if loops for which the program names no place run on the host. */
  UMEM_ALWAYS_INLINE explicit QuickGuard(Used const &used) noexcept {
    Mirror *const mirror = ArrayMembers::mirror(used.operand).get();
    if (mirror->is_ram()) begin(mirror, ArrayMembers::key(used.operand));
  }
  UMEM_ALWAYS_INLINE ~QuickGuard() { end(); }
  QuickGuard(QuickGuard const &) = delete;
  QuickGuard &operator=(QuickGuard const &) = delete;

  UMEM_ALWAYS_INLINE void begin(Mirror *mirror, std::uint64_t key) noexcept {
    mirror_ = mirror;
    first_ = mirror ? mirror->begin_loop(access, key) : 0;
  }
  UMEM_ALWAYS_INLINE void end() noexcept {
    if (first_) mirror_->end_loop(access);
    first_ = 0;
  }

  explicit operator bool() const noexcept { return first_ != 0; }
  Type *first() const noexcept { return reinterpret_cast<Type *>(first_); }

private:
  Mirror *mirror_ = nullptr;
  address first_ = 0; /* of the memory; 0: there is no guard */
};

/* An array or a part. */
template <class Used> class MemorySlot {
  using Type = typename Used::element_type;
  static constexpr int Rank = Used::rank;

public:
  static constexpr bool has_memory = true;

  explicit MemorySlot(Used const &used) : used_(used) {}
  MemorySlot(MemorySlot const &) = delete;
  MemorySlot &operator=(MemorySlot const &) = delete;

  bool open_quickly() noexcept {
    if constexpr (Used::kind == OperandKind::array) {
      quick_.begin(ArrayMembers::mirror(used_.operand).get(), ArrayMembers::key(used_.operand));
    } else {
      PartMemory const &memory = PartMembers::memory(used_.operand);
      quick_.begin(memory.mirror.get(), memory.key);
    }
    return static_cast<bool>(quick_);
  }
  void close_quickly() noexcept { quick_.end(); }

  /* Otherwise: the access that it needs, planned together with that of the other operands. */
  template <class PlaceType> OpenMemory &plan(PlaceType const &place) {
    constexpr bool is_part = Used::kind == OperandKind::part;
    return memory_.emplace(place, as_part(used_.operand), is_part, Used::writes,
                           Used::discards && used_.all);
  }
  template <class PlaceType> void open(PlaceType const &place, Access when) {
    memory_->open(place, when);
  }

  view_in_loop<Used> view() const noexcept {
    if (!quick_) return {memory_->view()};
    Type *const first = quick_.first();
    if constexpr (Used::kind == OperandKind::array) {
      return {ArrayMembers::view(used_.operand, first)};
    } else {
      StridedLayout<Rank> const &layout = PartMembers::layout(used_.operand);
      return {
          View<Type, Rank>(first + layout.offset, layout.extents, layout.strides, layout.ghosts)};
    }
  }

  /* After the loop. */
  void finish() {
    if (memory_) memory_->finish();
  }

private:
  Used used_;
  QuickGuard<Used> quick_;
  std::optional<OpenPart<Type, Rank>> memory_;
};

template <class Used>
using slot_for =
    std::conditional_t<Used::kind == OperandKind::view || Used::kind == OperandKind::guard,
                       ViewSlot<Used>, MemorySlot<Used>>;

template <std::size_t Nth, class Used> struct Slot : slot_for<Used> {
  using slot_for<Used>::slot_for;
};

template <class All, class... Uses> class OpenOperands;

/* All operands of a call on a place. The order of their accesses in memory is as if one guard gave
 * them all. */
template <std::size_t... Nth, class... Uses>
class OpenOperands<std::index_sequence<Nth...>, Uses...> : Slot<Nth, Uses>... {
  template <std::size_t n> using slot_at = Slot<n, std::tuple_element_t<n, std::tuple<Uses...>>>;

public:
  template <class PlaceType>
  UMEM_ALWAYS_INLINE explicit OpenOperands(PlaceType const &place, Uses const &...uses)
      : Slot<Nth, Uses>(uses)... {
    if constexpr (may_be_host<PlaceType>)
      if (!is_device(place) && (slot<Nth>().open_quickly() && ...)) return;
    open_all(place);
  }

  /* body(view of each operand) */
  template <class Body> UMEM_ALWAYS_INLINE decltype(auto) invoke(Body &&body) {
    return body(slot<Nth>().view()...);
  }

  /* After the loop: takes back what is in buffers. */
  void finish() { (slot<Nth>().finish(), ...); }

private:
  template <std::size_t n> auto &slot() noexcept { return static_cast<slot_at<n> &>(*this); }

  template <class PlaceType> [[gnu::noinline]] void open_all(PlaceType const &place) {
    (slot<Nth>().close_quickly(), ...);
    constexpr int count = (int(Slot<Nth, Uses>::has_memory) + ... + 0);
    OpenMemory *all[static_cast<std::size_t>(count + 1)] = {}, **next = all;
    (plan(place, next, slot<Nth>()), ...);
    share_guards(all, count);
    for (Access when : {Access::read, Access::write, Access::discard})
      (slot<Nth>().open(place, when), ...);
    for (int i = 0; i < count; i++) all[i]->begin();
  }
  template <class PlaceType, class SlotType>
  static void plan(PlaceType const &place, OpenMemory **&next, SlotType &slot) {
    if constexpr (SlotType::has_memory) *next++ = &slot.plan(place);
  }
};

/* body(view of each use), with its result. Views of what is only read have const elements; those of
 * what the loop gives values without reading are FreshViews. */
template <class PlaceType, class Body, class... Uses>
UMEM_ALWAYS_INLINE decltype(auto) with_views(PlaceType const &place, Body &&body,
                                             Uses const &...uses) {
  OpenOperands<std::index_sequence_for<Uses...>, Uses...> open(place, uses...);
  if constexpr (std::is_void_v<decltype(open.invoke(body))>) {
    open.invoke(body);
    open.finish();
  } else {
    auto result = open.invoke(body);
    open.finish();
    return result;
  }
}

} // namespace umem::detail

#endif
