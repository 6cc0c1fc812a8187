/* umem/array_access.hpp - access to the elements of an array. Array (array.hpp) and ArrayLock
 * (array_lock.hpp) are derived from it. */
#ifndef UMEM_ARRAY_ACCESS_HPP
#define UMEM_ARRAY_ACCESS_HPP

#include <umem/array_guard.hpp>
#include <umem/element.hpp>
#include <umem/part.hpp>

namespace umem {

template <class Type, int Rank> class Array;
template <class Type, int Rank> class ArrayLock;

namespace detail {
struct ArrayMembers;
}

/* The layout of an array and the context of its mirror. */
template <int Rank> struct ArrayOptions {
  Ghosts<Rank> ghosts = {}; /* cells before and after the interior; not negative */
  Context host = {}; /* of the mirror, if the CPU cannot use the memory itself; empty: Host */
  /* In bytes, of the first element in memory on both sides: a power of two, else
   * umem::value_error. 0 and alignments below that of T mean that of T. */
  std::size_t alignment = 0;
  Order order = row_major; /* of the elements in memory, on both sides */
};

/* Type const: the elements are only read. Checked functions throw umem::moved_from_error for an
 * empty array, and umem::locked_error if a lock or a guard forbids the access. */
template <class Type, int Rank> class ArrayAccess {
public:
  using element_type = Type;
  using value_type = std::remove_cv_t<Type>;
  static constexpr int rank = Rank;
  static constexpr bool is_read_only = std::is_const_v<Type>;

  /* ---- questions ---- */

  /* False for a default-constructed or moved-from array; its extents are 0. */
  explicit operator bool() const noexcept { return static_cast<bool>(mirror_); }

  /* Of the interior, without ghost cells. */
  Extents<Rank> const &extents() const noexcept { return extents_; }
  UMEM_CHECKED index_t extent(int k) const noexcept { return extents_[k]; }
  index_t size() const noexcept { return mirror_ ? extents_.product() : 0; }

  Ghosts<Rank> const &ghosts() const noexcept { return ghosts_; }

  /* Of the elements in memory: umem::row_major or umem::column_major. */
  Order order() const noexcept { return order_; }

  /* In elements. */
  Extents<Rank> strides() const noexcept { return layout<Type>(nullptr).strides; }

  /* The context of the memory: the device side. */
  Context const &context() const { return mirror().device(); }

  /* The context of the host side: context() itself if the CPU can use its memory. */
  Context const &host_context() const { return mirror().host(); }

  /* The address in context() of the first element in memory, a ghost cell if there are any; the
   * null of context() for no elements. Call sync_to_device() before using it: the elements there
   * may be old. A program that has asked for the address may use the elements without a guard: umem
   * watches it no more (see UMEM_CHECKS). */
  address adr() const { return mirror().lend(); }

  /* Bytes in memory, with ghost cells. */
  std::size_t nbytes() const { return mirror().nbytes(); }

  /* The side that was written last. Side::both if both are current, or if both are one memory. */
  Side current() const { return mirror().current(); }

  /* ---- the elements, on one side ---- */

  /* A guard of the host side: while it lives, the CPU may use the elements. If only the device
   * side is current, the elements are transferred first. umem::read: to read; umem::write: to
   * read and write; umem::discard: to write all elements, without their old values. With a layout,
   * as in host<umem::UnitStride>(umem::write), the type of the view knows the strides: see
   * layout.hpp; it throws umem::value_error if the array has others. */
  template <class Layout = detail::LayoutOfArrays<Rank>>
  UMEM_CHECKED HostGuard<Type const, Rank, Layout> host(read_t) const {
    return guard<Side::host, Type const, Layout>(detail::Access::read);
  }
  template <class Layout = detail::LayoutOfArrays<Rank>>
  UMEM_CHECKED HostGuard<Type, Rank, Layout> host(write_t) {
    check_not_read_only();
    return guard<Side::host, Type, Layout>(detail::Access::write);
  }
  template <class Layout = detail::LayoutOfArrays<Rank>>
  UMEM_CHECKED HostGuard<Type, Rank, Layout> host(discard_t) {
    check_not_read_only();
    return guard<Side::host, Type, Layout>(detail::Access::discard);
  }

  /* Gives access to the memory of context(), for kernels. An ordered context queues the transfer.
   * Throws umem::not_supported_error if addresses are no pointers. */
  template <class Layout = detail::LayoutOfArrays<Rank>>
  UMEM_CHECKED DeviceGuard<Type const, Rank, Layout> device(read_t) const {
    return guard<Side::device, Type const, Layout>(detail::Access::read);
  }
  template <class Layout = detail::LayoutOfArrays<Rank>>
  UMEM_CHECKED DeviceGuard<Type, Rank, Layout> device(write_t) {
    check_not_read_only();
    return guard<Side::device, Type, Layout>(detail::Access::write);
  }
  template <class Layout = detail::LayoutOfArrays<Rank>>
  UMEM_CHECKED DeviceGuard<Type, Rank, Layout> device(discard_t) {
    check_not_read_only();
    return guard<Side::device, Type, Layout>(detail::Access::discard);
  }

  /* ---- what to write instead of frequent mistakes ---- */

  template <class Layout = detail::LayoutOfArrays<Rank>, class... Access>
  HostGuard<Type, Rank, Layout> host(Access const &...) const {
    static_assert(detail::never<Layout>, "Array::host: " UMEM_ACCESS_OF_ARRAY);
    __builtin_unreachable();
  }
  template <class Layout = detail::LayoutOfArrays<Rank>, class... Access>
  DeviceGuard<Type, Rank, Layout> device(Access const &...) const {
    static_assert(detail::never<Layout>, "Array::device: " UMEM_ACCESS_OF_ARRAY);
    __builtin_unreachable();
  }
  template <class... Indices> value_type &operator()(Indices const &...) const {
    static_assert(detail::never<Indices...>, UMEM_ELEMENTS_OF_ARRAY);
    __builtin_unreachable();
  }
  template <class Integer> value_type &operator[](Integer const &) const {
    static_assert(detail::never<Integer>, UMEM_ELEMENTS_OF_ARRAY);
    __builtin_unreachable();
  }
  detail::refused<value_type, detail::write_for_x_in_a_host_umem_read> *begin() const
      UMEM_REFUSED("write for (double x : a.host(umem::read)), or umem::elements() of a guard");
  detail::refused<value_type, detail::write_for_x_in_a_host_umem_read> *
  end() const; /* so that begin alone is refused */

  /* ---- single elements, on whichever side they are ---- */

  /* The element at Rank indices, which may be those of a ghost cell. Transfers nothing else. Throws
   * umem::index_error if an index is out of range. */
  template <class... Indices, class = std::enable_if_t<(detail::is_index<Indices> && ...)>>
  value_type get(Indices... i) const {
    return get(indices(i...));
  }
  value_type get(Extents<Rank> const &i) const {
    alignas(value_type) unsigned char bytes[sizeof(value_type)];
    mirror().get(key_, offset_of(i), bytes, sizeof bytes);
    return *std::launder(reinterpret_cast<value_type *>(bytes));
  }

  /* Sets the element to value. Throws umem::locked_error also while any guard lives, and
   * umem::value_error for a number that elements of integers do not have. */
  template <class... Indices, class = std::enable_if_t<(detail::is_index<Indices> && ...)>>
  void set(value_type const &value, Indices... i) {
    set(value, indices(i...));
  }
  template <class Value, class... At, class = detail::if_other_number<Value, value_type>>
  void set(Value value, At const &...i) {
    set(detail::as_element<value_type>("Array::set", value), i...);
  }
  void set(value_type const &value, Extents<Rank> const &i) {
    check_not_read_only();
    mirror().set(key_, offset_of(i), &value, sizeof value);
  }

  /* ---- transfers ---- */

  /* Makes this side current too. The transfer is complete on return. */
  void sync_to_host() const { mirror().sync(Side::host, key_); }
  void sync_to_device() const { mirror().sync(Side::device, key_); }

  /* Transfers, queued if context() is ordered: guards, get and set wait for it. The transfer runs
   * beside other work if the host context is CudaHost. */
  void start_sync_to_host() const { mirror().start_sync(Side::host, key_, context()); }
  void start_sync_to_device() const { mirror().start_sync(Side::device, key_, context()); }

  /* Transfers, queued on another context of the same memory, such as umem::CudaAsync with a
   * stream of its own, after what context() has queued so far. Throws umem::value_error for
   * other memory. */
  void start_sync_to_host(Context const &queue) const {
    mirror().start_sync(Side::host, key_, queue);
  }
  void start_sync_to_device(Context const &queue) const {
    mirror().start_sync(Side::device, key_, queue);
  }

  /* Transfers a newer host side to context(), and makes the elements durable there, if there are
   * any. An object in a bucket is complete then. */
  void flush() const {
    sync_to_device();
    if (nbytes()) context().flush();
  }

  /* Frees the mirror, after updating context(). The next use of the host side allocates it
   * again. Throws umem::locked_error while a guard of the host lives. No other thread may use the
   * array meanwhile. */
  void release_host() const { mirror().release_host(key_); }

  /* ---- parts, for strided copies between any two storages ---- */

  /* The elements, whichever side is current: see part.hpp. */
  Part<Type const, Rank> part() const { return make_part<Type const>(); }
  Part<Type, Rank> part() { return make_part<Type>(); }

  /* Those in one slice per dimension, such as u.part(umem::full_extent, umem::range(1, umem::end -
   * 1), 3): see slice.hpp. */
  template <class... Slices, class = std::enable_if_t<(sizeof...(Slices) > 0)>>
  auto part(Slices const &...slices) const {
    return part().part(slices...);
  }
  template <class... Slices, class = std::enable_if_t<(sizeof...(Slices) > 0)>>
  auto part(Slices const &...slices) {
    return part().part(slices...);
  }

protected:
  ArrayAccess() noexcept = default;
  ArrayAccess(std::shared_ptr<detail::Mirror> mirror, Extents<Rank> const &extents,
              Ghosts<Rank> const &ghosts, Order order, std::uint64_t key = 0) noexcept
      : mirror_(std::move(mirror)), extents_(extents), ghosts_(ghosts), order_(order), key_(key) {}
  ArrayAccess(ArrayAccess &&other) noexcept { swap_members(other); }
  ArrayAccess &operator=(ArrayAccess &&) = delete;
  ~ArrayAccess() = default;

  void swap_members(ArrayAccess &other) noexcept {
    std::swap(mirror_, other.mirror_);
    std::swap(extents_, other.extents_);
    std::swap(ghosts_, other.ghosts_);
    std::swap(order_, other.order_);
    std::swap(key_, other.key_);
  }

  detail::Mirror &mirror() const {
    if (!mirror_)
      throw moved_from_error("the array is empty: it was moved from, or never constructed");
    return *mirror_;
  }

  std::shared_ptr<detail::Mirror> const &shared_mirror() const {
    mirror();
    return mirror_;
  }

private:
  template <class, int> friend class Array;
  template <class, int> friend class ArrayLock;
  friend struct detail::ArrayMembers;

  static constexpr void check_not_read_only() {
    static_assert(!is_read_only, "Array: the elements of a read-only array are not written");
  }

  /* The interior of an array that begins at first. */
  template <class OtherType> View<OtherType, Rank> layout(OtherType *first) const noexcept {
    return View<OtherType, Rank>::with_ghosts_from(first, extents_, ghosts_, order_);
  }

  template <Side side, class OtherType, class Layout>
  UMEM_CHECKED Guard<OtherType, Rank, side, Layout> guard(detail::Access access) const {
    detail::Mirror &mirror = this->mirror();
    if constexpr (!std::is_same_v<Layout, detail::LayoutOfArrays<Rank>>)
      detail::check_layout<Layout>(layout<OtherType>(nullptr));
    address adr = mirror.acquire(side, access, key_);
#if UMEM_CHECKS
    mirror.watch(extents_.begin(), Rank);
#endif
    return Guard<OtherType, Rank, side, Layout>(mirror, access,
                                                layout(reinterpret_cast<OtherType *>(adr)));
  }

  template <class OtherType> Part<OtherType, Rank> make_part() const {
    View<Type, Rank> all = layout<Type>(nullptr);
    index_t first = detail::distance(ghosts_.below, all.strides);
    return Part<OtherType, Rank>(shared_mirror(), key_, first, extents_, all.strides, ghosts_);
  }

  template <class... Indices> static Extents<Rank> indices(Indices... i) {
    static_assert(sizeof...(Indices) == Rank, "Array: there must be one index per dimension");
    if constexpr (Rank > 0 && sizeof...(Indices) == Rank)
      return Extents<Rank>(i...);
    else
      return Extents<Rank>();
  }

  /* The offset in bytes from the first element in memory. */
  std::size_t offset_of(Extents<Rank> const &i) const {
    mirror();
    Extents<Rank> strides = this->strides();
    index_t offset = 0;
    for (int k = 0; k < Rank; k++) {
      index_t const below = ghosts_.below[k], high = extents_[k] + ghosts_.above[k];
      if (i[k] < -below || i[k] >= high) detail::raise_index(i[k], k, -below, high);
      offset += (i[k] + below) * strides[k];
    }
    return static_cast<std::size_t>(offset) * sizeof(Type);
  }

  std::shared_ptr<detail::Mirror> mirror_; /* shared with locks and parts; null: empty */
  Extents<Rank> extents_;
  Ghosts<Rank> ghosts_;
  Order order_ = row_major;
  std::uint64_t key_ = 0; /* of the lock through which this is used */
};

namespace detail {

/* What loops need of an array. */
struct ArrayMembers {
  template <class Type, int Rank>
  static std::shared_ptr<Mirror> const &mirror(ArrayAccess<Type, Rank> const &array) noexcept {
    return array.mirror_;
  }
  template <class Type, int Rank>
  static std::uint64_t key(ArrayAccess<Type, Rank> const &array) noexcept {
    return array.key_;
  }
  /* The interior of the elements from first on. */
  template <class OtherType, class Type, int Rank>
  static View<OtherType, Rank> view(ArrayAccess<Type, Rank> const &array,
                                    OtherType *first) noexcept {
    return array.layout(first);
  }
  /* Whether two arrays have the same elements in the same order, and no others. */
  template <class Type, class Other, int Rank>
  static bool are_alike(ArrayAccess<Type, Rank> const &one,
                        ArrayAccess<Other, Rank> const &two) noexcept {
    return one.mirror_ && two.mirror_ && one.extents_ == two.extents_ && one.order_ == two.order_ &&
           one.ghosts_.is_empty() && two.ghosts_.is_empty();
  }
};

} // namespace detail
} // namespace umem

#endif
