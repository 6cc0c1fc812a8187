/* umem/array.hpp - N-dimensional arrays on any context, with a host side.
 *
 *     umem::Array<double, 2> u({51, 51}, umem::Cuda());
 *     fill(*u.host(umem::discard));            // a View<double, 2> of RAM
 *     kernel(*u.device(umem::write));          // a View<double, 2> of the GPU
 *     print(*u.host(umem::read));
 *
 * The memory of an array is on one context: its device side. The CPU uses its host side: the same
 * memory if the CPU can address it, else a mirror, which is allocated at its first use. The array
 * knows which side is current. It transfers the elements only when a program asks for a side that
 * is not. Elements are in C order, or with umem::column_major in that of Fortran; with ghost cells
 * the indices of dimension k run from -ghosts.below[k] to extents[k] + ghosts.above[k] - 1. New
 * elements are not initialised. Only constructors, resize and the first use of the mirror allocate;
 * only destructors, resize, deallocate and release_host free.
 *
 * The destructor of an array on a file, or around foreign memory, writes a newer host side back. It
 * records failures on the context, and prints a line if there is no failure hook (umem_report_end);
 * flush() throws them. In a named file, the elements of an array that has ended stay where they
 * are, and no later array takes their place, as long as the file is open: deallocate() gives it
 * free, or the option reuse (umemReuse). In a child of fork, the destructor of an array that its
 * parent has made writes and frees nothing in memory that both use (umemShared): call flush().
 *
 * Threads: many threads may call const functions of one array, as for containers of the standard
 * library, if its contexts allow many threads (umemConcurrent). There is one exception:
 * release_host, which frees memory. While a thread calls another function, no other thread may use
 * the array. Many threads may use the views of a guard, like any memory.
 *
 * On ordered contexts an array orders its own transfers and copies. */
#ifndef UMEM_ARRAY_HPP
#define UMEM_ARRAY_HPP

#include <umem/array_lock.hpp>
#include <umem/default_context.hpp>

namespace umem {
namespace detail {

/* Where a copy is if the program names no context. */
inline Context const &context_of_copies(Context const &original) {
  return original.can(umemWritable) && !original.can(umemShared) ? original : pointers();
}

/* Every integer becomes one of these without narrowing, and no class does. */
__extension__ using AnyIndex = __int128;

template <int Rank> Extents<Rank> extents_in_braces(AnyIndex const (&list)[slots<Rank>]) noexcept {
  Extents<Rank> extents;
  for (int k = 0; k < Rank; k++) extents.at[k] = static_cast<index_t>(list[k]);
  return extents;
}

/* ---- frequent mistakes in the arguments of constructors ---- */

#define UMEM_EXTENTS_OF_ARRAY                                                                      \
  "Array: extents are one integer per dimension, in braces: Array<double, 2> a({3, 4}); of a "     \
  "std::vector they are umem::Shape(v.data(), v.data() + v.size()).to<2>(); umem::array_of(v) "    \
  "makes an array of the elements of v"

template <class Arg, class = void> inline constexpr bool is_container = false;
template <class Arg>
inline constexpr bool is_container<Arg, std::void_t<decltype(std::declval<Arg const &>().begin()),
                                                    decltype(std::declval<Arg const &>().size())>> =
    true;

/* Whether an array is constructed of numbers or a container, not of extents. */
template <class Array, class... Args> inline constexpr bool are_no_extents = false;
template <class Array, class Arg, class... More>
inline constexpr bool are_no_extents<Array, Arg, More...> =
    std::is_arithmetic_v<Arg>
        ? !is_index<Arg> || Array::rank != 1 || (std::is_arithmetic_v<More> || ...)
        : is_container<Arg> && !std::is_convertible_v<Arg const &, Extents<Array::rank>> &&
              !std::is_convertible_v<Arg const &, Array>;

/* Whether what follows the extents is neither a context nor options. */
template <int Rank, class... Args> inline constexpr bool are_no_place = false;
template <int Rank, class Arg, class... More>
inline constexpr bool are_no_place<Rank, Arg, More...> =
    std::is_same_v<Arg, Order>
        ? are_no_place<Rank, More...>
        : !std::is_convertible_v<Arg const &, Context> ||
              !(std::is_convertible_v<More const &, ArrayOptions<Rank>> && ...);

} // namespace detail

/* Type: arithmetic, complex, half, or any other trivially copyable type. Type const is a read-only
 * array, for elements that exist already: files opened with mode "r", foreign memory, a finished
 * array. */
template <class Type, int Rank> class Array : public ArrayAccess<Type, Rank> {
  static_assert(std::is_trivially_copyable_v<Type>,
                "Array: the elements must be trivially copyable, since they move as bytes");
  static_assert(!std::is_volatile_v<Type>, "Array: the elements must not be volatile");
  using Base = ArrayAccess<Type, Rank>;

public:
  using typename Base::value_type;
  using Options = ArrayOptions<Rank>;

  /* An empty array: every access throws umem::moved_from_error. */
  Array() noexcept = default;

  /* Uninitialised elements; on a file, those that it holds. Without device they are on the
   * umem::default_context(), here and below: in RAM unless the program or UMEM_DEFAULT says where.
   * Throws umem::value_error if an extent or a number of ghost cells is negative or all together
   * exceed the address space, and umem::memory_error if there is not enough memory. Extents may be
   * 0: without elements nothing is allocated, and only the product of the other extents must be an
   * index. */
  explicit Array(Extents<Rank> const &extents, Context device = default_context(),
                 Options const &options = {})
      : Array(extents, std::move(device), options, false) {}

  /* An array whose elements are in an order: umem::column_major for that of Fortran, BLAS and
   * MATLAB, on both sides. */
  Array(Extents<Rank> const &extents, Order order, Context device = default_context(),
        Options const &options = {})
      : Array(extents, std::move(device), in_order(options, order)) {}

  /* Extents in braces, which would also match the copy of a new array. */
  template <std::size_t length, class = std::enable_if_t<length == Rank>>
  explicit Array(detail::AnyIndex const (&extents)[length])
      : Array(detail::extents_in_braces<Rank>(extents)) {}

  /* Every byte zero. */
  static Array zeros(Extents<Rank> const &extents, Context device = default_context(),
                     Options const &options = {}) {
    return Array(extents, std::move(device), options, true);
  }

  static Array zeros(Extents<Rank> const &extents, Order order, Context device = default_context(),
                     Options const &options = {}) {
    return zeros(extents, std::move(device), in_order(options, order));
  }

  /* Every element, ghost cells too, equal to value. */
  static Array full(Extents<Rank> const &extents, value_type const &value,
                    Context device = default_context(), Options const &options = {}) {
    Array array(extents, std::move(device), options);
    array.mirror().fill(&value, sizeof value);
    return array;
  }

  static Array full(Extents<Rank> const &extents, value_type const &value, Order order,
                    Context device = default_context(), Options const &options = {}) {
    return full(extents, value, std::move(device), in_order(options, order));
  }

  /* A number of another type. Throws umem::value_error for integers whose type does not have it.
   * more: the order, the context, the options, as above. */
  template <class Value, class... More, class = detail::if_other_number<Value, value_type>>
  static Array full(Extents<Rank> const &extents, Value value, More &&...more) {
    return full(extents, detail::as_element<value_type>("Array::full", value),
                std::forward<More>(more)...);
  }

  /* ---- what to write instead of frequent mistakes ---- */

  template <class... Args, class = std::enable_if_t<detail::are_no_extents<Array, Args...>>>
  explicit Array(Args const &...) {
    static_assert(detail::never<Args...>, UMEM_EXTENTS_OF_ARRAY);
  }
  template <std::size_t length, class... Args, class = std::enable_if_t<length != Rank>>
  explicit Array(detail::AnyIndex const (&)[length], Args const &...) {
    static_assert(length == Rank, UMEM_EXTENTS_OF_ARRAY);
  }
  template <class Fraction, std::size_t length, class... Args,
            class = std::enable_if_t<std::is_floating_point_v<Fraction>>>
  explicit Array(Fraction const (&)[length], Args const &...) {
    static_assert(detail::never<Fraction>, UMEM_EXTENTS_OF_ARRAY);
  }
  template <class... Args, class = std::enable_if_t<detail::are_no_place<Rank, Args...>>>
  explicit Array(Extents<Rank> const &, Args const &...) {
    static_assert(detail::never<Args...>,
                  "Array: after the extents comes a context, then options: for a text "
                  "umem::open(text); Array::full(extents, value) sets all elements to a value");
  }
  template <class OtherType, int OtherRank, class... Args,
            class = std::enable_if_t<!std::is_same_v<std::remove_const_t<OtherType>, value_type> ||
                                     OtherRank != Rank || detail::are_no_place<Rank, Args...>>>
  explicit Array(Array<OtherType, OtherRank> const &, Args const &...) {
    static_assert(detail::never<OtherType, Args...>,
                  "Array: a copy has the same type and rank, and may be on another context, such "
                  "as umem::open(text); umem::convert(from, to) converts elements");
  }

  /* ---- foreign memory ---- */

  /* An array over existing elements at adr, in C order or that of the options. The first one is a
   * ghost cell if there are any. The array calls deleter once, when nothing uses the memory any
   * more; a newer host side has then been written back. deleter must not throw; an empty
   * std::function or a null pointer means no deleter. Throws umem::value_error for the null of
   * device, unless there are no elements. If wrap throws, it does not call deleter. */
  template <class Deleter, class = std::enable_if_t<std::is_invocable_v<Deleter &>>>
  static Array wrap(address adr, Extents<Rank> const &extents, Context device, Deleter deleter,
                    Options const &options = {}) {
    return wrap(adr, extents, std::move(device), detail::make_deleter(std::move(deleter)), options);
  }
  template <class Deleter, class = std::enable_if_t<std::is_invocable_v<Deleter &>>>
  static Array wrap(Type *first, Extents<Rank> const &extents, Deleter deleter,
                    Context device = detail::pointers(), Options const &options = {}) {
    return wrap(reinterpret_cast<address>(first), extents, std::move(device), std::move(deleter),
                options);
  }

  /* An array over memory that the caller keeps until nothing uses the array any more. */
  static Array wrap_unowned(address adr, Extents<Rank> const &extents, Context device,
                            Options const &options = {}) {
    return wrap(adr, extents, std::move(device), detail::AnyDeleter(), options);
  }
  static Array wrap_unowned(Type *first, Extents<Rank> const &extents,
                            Context device = detail::pointers(), Options const &options = {}) {
    return wrap_unowned(reinterpret_cast<address>(first), extents, std::move(device), options);
  }

  /* ---- deep copies: the elements and ghost cells, with a mirror of their own ---- */

  /* On the same context. But a copy of an array in a file, a mapped file, shared memory or the
   * memory of another rank (umemShared), or on a context that is not umemWritable, is in RAM, on a
   * Host: name the context to have it elsewhere. A copy of an empty array is empty. */
  Array(Array const &other)
      : Array(other, other ? detail::context_of_copies(other.context()) : Context()) {}

  /* On another context. The copy of a read-only array may be writable, and the other way round. */
  template <class OtherType,
            class = std::enable_if_t<std::is_same_v<std::remove_const_t<OtherType>, value_type>>>
  Array(Array<OtherType, Rank> const &other, Context device) {
    if (!other) return;
    detail::Mirror &from = other.mirror();
    Array copy(other.extents(), std::move(device),
               Options{other.ghosts(), from.mirror_context(), from.alignment(), other.order()});
    copy.mirror().copy_from(from, other.key_, 0);
    swap(copy);
  }

  /* Copies the elements to dst, and the ghost cells too if dst has as many. Throws
   * umem::value_error if the extents differ. */
  void copy_to(Array<value_type, Rank> &dst) const {
    bool all = this->ghosts() == dst.ghosts();
    Part<Type const, Rank> part = this->part();
    if (all)
      copy(part.with_ghosts(), dst.part().with_ghosts());
    else
      copy(part, dst.part());
  }

  /* ---- moves: nothing is allocated or copied. Guards, locks and parts stay valid: they go with
   * the memory ---- */

  Array(Array &&other) noexcept = default;

  /* A read-only array that takes over the elements of other. */
  template <class OtherType, class = std::enable_if_t<std::is_same_v<OtherType const, Type> &&
                                                      !std::is_same_v<OtherType, Type>>>
  Array(Array<OtherType, Rank> &&other) noexcept
      : Base(other.mirror_, other.extents(), other.ghosts(), other.order()) {
    Array<OtherType, Rank>().swap(other);
  }

  /* Exchanges everything: elements, contexts, ghost cells, order. */
  void swap(Array &other) noexcept { this->swap_members(other); }
  friend void swap(Array &one, Array &other) noexcept { one.swap(other); }

  /* ---- assignment: an array that is not empty keeps its ghost cells, its order and its alignment
   * ---- */

  /* Copies the elements of other into the memory of this array, which keeps its context and that of
   * its mirror. If both have the same ghost cells, it copies their values too; else the ghost cells
   * of this array keep their values. If the extents differ, this array gets new memory for those of
   * other, on its own context; both must then have the same ghost cells, and the memory of this
   * array must not be foreign. A read-only array always gets new memory, and needs the same ghost
   * cells. Assigning an empty array makes this one empty; an empty one becomes a copy of other.
   *
   * Throws umem::value_error if these rules do not allow the assignment, and umem::locked_error
   * while a lock or a guard of this array lives, or a lock of other: both arrays are then what they
   * were. If a copy fails for another reason and only the written side was current, some elements
   * may have been written. Arrays around foreign memory may overlap: other is read before this one
   * is written. */
  Array &operator=(Array const &other) {
    if (this != &other) assign(other);
    return *this;
  }

  /* Takes over the memory of other, its context and that of its mirror. This allocates and copies
   * nothing, and does not write to the memory that this array had. But if neither is empty and
   * other has other ghost cells, another order or less alignment, it copies the elements like the
   * assignment above, and may throw the same. other is empty afterwards, except after a failure.
   *
   * Throws umem::locked_error while a lock or a guard of this array lives: both arrays are then
   * what they were. Locks and guards of other stay valid. Array().swap(*this) drops the memory
   * whatever lives: what guards write to it afterwards is lost. */
  Array &operator=(Array &&other) { // NOLINT(performance-noexcept-move-constructor): it may throw
    if (this == &other) return *this;
    if (*this) this->mirror().check_free(this->key_);
    if (*this && other && !can_take(other)) {
      assign(other);
      Array().swap(other);
    } else {
      Array(std::move(other)).swap(*this);
    }
    return *this;
  }

  /* ---- ghost cells ---- */

  /* Makes the outermost cells in memory the ghost cells, as many as wanted, and all others the
   * elements: memory and contents stay, the extents change. Throws umem::value_error if there are
   * not so many cells, and umem::locked_error while a lock or a guard of this array lives. */
  void set_ghosts(Ghosts<Rank> const &wanted) {
    this->mirror().check_free(this->key_);
    detail::StridedLayout<Rank> cells{this->extents(), this->strides(), this->ghosts()};
    cells = cells.with_ghosts(wanted);
    this->mirror().end_watch(); /* it has another shape */
    this->extents_ = cells.extents;
    this->ghosts_ = cells.ghosts;
  }

  /* ---- other extents ---- */

  /* Gives the elements other extents in the same memory: elements with the same number in the order
   * of the array are the same. Throws umem::value_error if the extents give another number of
   * elements or if there are ghost cells, and umem::locked_error while a lock or a guard of this
   * array lives; the array is then what it was. Parts that exist keep their extents. */
  void reshape(Extents<Rank> const &extents) & {
    check_reshape(extents);
    this->extents_ = extents;
  }

  /* Reshapes into a new array, which takes over the memory and may have another rank:
   * std::move(u).reshape(umem::Extents{6, 4}). */
  Array reshape(Extents<Rank> const &extents) && {
    reshape(extents);
    return std::move(*this);
  }
  template <int OtherRank> Array<Type, OtherRank> reshape(Extents<OtherRank> const &extents) && {
    check_reshape(extents);
    Array<Type, OtherRank> result(this->mirror_, extents, Ghosts<OtherRank>(), this->order());
    Array().swap(*this);
    return result;
  }
  template <int OtherRank> void reshape(Extents<OtherRank> const &) & {
    static_assert(OtherRank == Rank,
                  "Array::reshape: the rank belongs to the type of an array: write "
                  "std::move(u).reshape(extents), or u.part().reshape(extents) for a part");
  }

  /* Gives the array other extents and new memory on the same context. Elements keep their values if
   * their indices are in the old and in the new extents. All others, and the ghost cells, become
   * value, or are uninitialised without one. One copy of the elements on the side that is current
   * moves them: umem transfers nothing between the sides. The other side is then old. On a file the
   * elements get another address. Nothing happens if the extents are the same.
   *
   * Throws umem::locked_error while a lock or a guard of this array lives, umem::value_error for
   * foreign memory or a number that elements of integers do not have, and the exceptions of the
   * constructor: the array is then what it was. While it runs, both the old and the new memory
   * exist. Parts that exist keep the old memory. */
  void resize(Extents<Rank> const &extents) { resize_to(extents, nullptr); }
  void resize(Extents<Rank> const &extents, value_type const &value) { resize_to(extents, &value); }
  template <class Value, class = detail::if_other_number<Value, value_type>>
  void resize(Extents<Rank> const &extents, Value value) {
    resize(extents, detail::as_element<value_type>("Array::resize", value));
  }

  /* Frees the memory, also in a named file, without writing a newer host side back. The array is
   * empty afterwards; parts that exist keep the memory as long as they live. Throws
   * umem::locked_error while a lock or a guard of this array lives. */
  void deallocate() {
    if (!*this) return;
    this->mirror().check_free(this->key_);
    this->mirror().leave();
    Array().swap(*this);
  }

  /* ---- locks ---- */

  /* Access for the lock's owner alone. umem::locked_error while there is a lock, or any guard. */
  [[nodiscard]] ArrayLock<Type, Rank> lock() { return ArrayLock<Type, Rank>(*this); }

private:
  template <class, int> friend class Array;

  using Base::Base;

  Array(Extents<Rank> const &extents, Context device, Options const &options, bool zeroed)
      : Base(detail::Mirror::make(std::move(device), nbytes_of(extents, options),
                                  mirror_options(options, zeroed)),
             extents, options.ghosts, options.order) {}

  static Array wrap(address adr, Extents<Rank> const &extents, Context device,
                    detail::AnyDeleter deleter, Options const &options) {
    return Array(detail::Mirror::around(std::move(device), adr, nbytes_of(extents, options),
                                        mirror_options(options), std::move(deleter)),
                 extents, options.ghosts, options.order);
  }

  static Options in_order(Options options, Order order) {
    options.order = order;
    return options;
  }

  static detail::MirrorOptions mirror_options(Options const &options, bool zeroed = false) {
    return {options.host, alignof(Type), options.alignment, zeroed};
  }

  static std::size_t nbytes_of(Extents<Rank> const &extents, Options const &options) {
    Extents<Rank> all = extents;
    checked_product(extents);
    for (int k = 0; k < Rank; k++) {
      index_t const below = options.ghosts.below[k], above = options.ghosts.above[k];
      if (below < 0 || above < 0)
        detail::raise_text(umemValueError, "a number of ghost cells of %s is negative",
                           detail::in_words(options.ghosts).text);
      if (below > detail::largest<index_t> - all[k] ||
          above > detail::largest<index_t> - all[k] - below)
        raise_size(extents);
      all[k] += below + above;
    }
    index_t count = checked_product(all);
    if (count > detail::largest<index_t> / static_cast<index_t>(sizeof(Type))) raise_size(extents);
    return static_cast<std::size_t>(count) * sizeof(Type);
  }

  [[noreturn]] static void raise_size(Extents<Rank> const &extents) {
    detail::raise_text(umemValueError, "an array of extents %s exceeds the address space",
                       detail::in_words(extents).text);
  }

  [[noreturn]] void raise_ghosts(Array const &other) const {
    detail::InWords from = detail::in_words(other.extents()),
                    ghosts = detail::in_words(other.ghosts()),
                    own_ghosts = detail::in_words(this->ghosts());
    if (Base::is_read_only)
      detail::raise_text(
          umemValueError,
          "an array of extents %s with %s ghost cells cannot be assigned to a read-only "
          "one with %s: its ghost cells are not written",
          from.text, ghosts.text, own_ghosts.text);
    detail::raise_text(
        umemValueError,
        "an array of extents %s with %s ghost cells cannot be assigned to one of extents "
        "%s with %s: extents or ghost cells must be the same",
        from.text, ghosts.text, detail::in_words(this->extents()).text, own_ghosts.text);
  }

  /* Whether an array has the same order in memory; one of rank 0 or 1 has both. */
  bool has_order_of(Array const &other) const { return Rank < 2 || this->order() == other.order(); }

  /* Whether this array keeps its ghost cells, its order and its alignment with the memory of
   * other. */
  bool can_take(Array const &other) const {
    return this->ghosts() == other.ghosts() && has_order_of(other) &&
           this->mirror().alignment() <= other.mirror().alignment();
  }

  void assign(Array const &other) {
    if (*this) this->mirror().check_free(this->key_);
    if (!*this || !other) return Array(other).swap(*this);
    bool same_ghosts = this->ghosts() == other.ghosts();
    if constexpr (!Base::is_read_only) {
      if (this->extents() == other.extents()) {
        if (!same_ghosts) return copy(other.part(), this->part());
        return copy_cells(other, *this);
      }
      if (this->mirror().is_foreign())
        detail::raise_text(
            umemValueError,
            "an array of extents %s cannot be assigned to one of extents %s around foreign "
            "memory",
            detail::in_words(other.extents()).text, detail::in_words(this->extents()).text);
    }
    if (!same_ghosts) raise_ghosts(other);
    Array copy(other.extents(), this->context(), own_options());
    copy_cells(other, copy);
    swap(copy);
  }

  /* Copies elements and ghost cells between arrays that have the same. */
  static void copy_cells(Array const &from, Array &to) {
    if (to.has_order_of(from)) return to.mirror().copy_from(from.mirror(), from.key_, to.key_);
    copy(from.part().with_ghosts(), to.template make_part<value_type>().with_ghosts());
  }

  template <int OtherRank> void check_reshape(Extents<OtherRank> const &extents) const {
    this->mirror().check_free(this->key_);
    if (!this->ghosts().is_empty())
      detail::raise_text(
          umemValueError,
          "reshape: an array of extents %s with %s ghost cells cannot get the extents %s: "
          "it must have no ghost cells",
          detail::in_words(this->extents()).text, detail::in_words(this->ghosts()).text,
          detail::in_words(extents).text);
    if (!detail::has_product(extents, this->size()))
      detail::raise_reshape_size(this->extents().begin(), Rank, extents.begin(), OtherRank);
  }

  /* value: of all cells that are new, or null. */
  void resize_to(Extents<Rank> const &extents, value_type const *value) {
    static_assert(!Base::is_read_only, "Array::resize: a read-only array keeps its elements");
    this->mirror().check_free(this->key_);
    if (extents == this->extents()) return;
    if (this->mirror().is_foreign())
      detail::raise_text(
          umemValueError,
          "resize: an array of extents %s around foreign memory cannot get the extents %s",
          detail::in_words(this->extents()).text, detail::in_words(extents).text);
    Array resized(extents, this->context(), own_options());
    resized.mirror().start_like(this->mirror());
    if (value) resized.mirror().fill(value, sizeof *value);
    Extents<Rank> common = extents;
    for (int k = 0; k < Rank; k++)
      if (common[k] > this->extents()[k]) common[k] = this->extents()[k];
    copy_common(*this, resized, common);
    swap(resized);
    resized.mirror().leave();
  }

  /* Copies the elements below `common` between the sides that are current. */
  static void copy_common(Array const &from, Array &to, Extents<Rank> const &common) {
    auto const part = [&common](auto whole) {
      for (int k = 0; k < Rank; k++) whole = whole.slice(k, 0, common[k]);
      return whole;
    };
    Part<Type const, Rank> const src = part(from.part());
    Part<Type, Rank> const dst = part(to.part());
    detail::copy_part(detail::PartMembers::memory(src), detail::PartMembers::items(src),
                      detail::PartMembers::memory(dst), detail::PartMembers::items(dst), true);
  }

  /* The options of new memory for this array. */
  Options own_options() const {
    return {this->ghosts(), this->mirror().mirror_context(), this->mirror().alignment(),
            this->order()};
  }
};

} // namespace umem

#endif
