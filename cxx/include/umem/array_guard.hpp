/* umem/array_guard.hpp - access to the elements of an array on one side, while the guard lives.
 *
 *     auto u = array.host(umem::write);
 *     u(0, 0) = 1;
 *     smooth(*u);                              // a View<double, 2>
 *
 * While a guard to write lives, no other guard may write, and access to the other side throws
 * umem::locked_error. Guards to read may exist beside each other, and beside a guard to write of
 * the same side. A guard keeps the memory alive, also when the array moves or ends before it. But
 * what is written after the end of the array is lost: if UMEM_CHECKS is 1, an access through such a
 * guard ends the program. So does an access through a view after its guard has ended, if no other
 * guard of this side of the array lives. */
#ifndef UMEM_ARRAY_GUARD_HPP
#define UMEM_ARRAY_GUARD_HPP

#include <umem/array_mirror.hpp>
#include <umem/view.hpp>

namespace umem {

template <class Type, int Rank> class ArrayAccess;

/* An operand of a loop with its access. Operand: a reference to it, or a temporary part or view
 * itself. */
template <class Operand, class Access> struct Accessed { Operand operand; };

namespace detail {

template <class Access> struct AccessAround {
  template <class Operand> constexpr Accessed<Operand, Access> operator()(Operand &&operand) const {
    return {std::forward<Operand>(operand)};
  }
};

} // namespace detail

/* The arguments of array.host() and array.device(). Around an operand of a loop, umem::read(x),
 * umem::write(x) and umem::discard(x) are its access. */
struct read_t : public detail::AccessAround<read_t> {
  explicit read_t() = default;
};
struct write_t : public detail::AccessAround<write_t> {
  explicit write_t() = default;
};
struct discard_t : public detail::AccessAround<discard_t> {
  explicit discard_t() = default;
};
inline constexpr read_t read{};       /* only read */
inline constexpr write_t write{};     /* read and write */
inline constexpr discard_t discard{}; /* write all elements: the old values are not needed */

namespace detail {

/* Ends a guard of any kind after a failed write of the elements: the other side is current
 * again, if it was before. Only loops of umem use it: elements that a program has written stay. */
struct FailedGuard {
  template <class GuardType> static void end(GuardType &guard) noexcept { guard.abandon(); }
};

} // namespace detail

/* Access to the elements on one side; move-only. Type const: to read. Layout: what its view knows,
 * such as umem::UnitStride of array.host<umem::UnitStride>(umem::write): see layout.hpp. */
template <class Type, int Rank, Side side, class Layout = detail::LayoutOfArrays<Rank>>
class UMEM_NODISCARD Guard {
public:
  using element_type = Type;
  using value_type = std::remove_cv_t<Type>;
  using view_type = View<Type, Rank, Layout>;
  static constexpr int rank = Rank;

  Guard(Guard &&other) noexcept
      : mirror_(std::exchange(other.mirror_, nullptr)), access_(other.access_),
        view_(std::exchange(other.view_, view_type())) {}

  Guard &operator=(Guard &&other) noexcept {
    if (this == &other) return *this;
    release();
    mirror_ = std::exchange(other.mirror_, nullptr);
    access_ = other.access_;
    view_ = std::exchange(other.view_, view_type());
    return *this;
  }

  ~Guard() { release(); }

  /* Ends the access early. The view is empty afterwards. */
  void release() noexcept {
    if (!mirror_) return;
    std::exchange(mirror_, nullptr)->release(side, access_);
    view_ = view_type();
  }

  /* The elements. Do not use the view after the guard has ended. */
  UMEM_CHECKED view_type const &view() const noexcept {
    UMEM_ASSERT_OWNED(mirror_, view_);
    return view_;
  }
  UMEM_CHECKED view_type const &operator*() const noexcept { return view(); }
  UMEM_CHECKED view_type const *operator->() const noexcept { return &view(); }
  UMEM_CHECKED operator view_type() const noexcept { return view(); }
  /* Views of the same elements: to read, or with another layout, which throws umem::value_error if
   * the elements are not in it. */
  template <
      class OtherType, class Other,
      class = std::enable_if_t<std::is_convertible_v<view_type, View<OtherType, Rank, Other>>>>
  UMEM_CHECKED operator View<OtherType, Rank, Other>() const {
    return view();
  }

  /* As those of View. */
  template <class... Indices> UMEM_CHECKED Type &operator()(Indices... i) const noexcept {
    return view_type::template access<true>(view(), i...);
  }
  UMEM_CHECKED Type &operator()(Extents<Rank> const &i) const noexcept { return view()(i); }
  UMEM_CHECKED Type &operator[](index_t i) const noexcept { return view()[i]; }
  template <class... Indices> Type &at(Indices... i) const { return view_.at(i...); }

  template <class... Slices> auto part(Slices const &...slices) const {
    return view_.part(slices...);
  }

  /* The elements of a guard of rank 1, as those of View: for (double &x : u.host(umem::write)). */
  template <int OtherRank = Rank, class = std::enable_if_t<OtherRank == 1>>
  auto begin() const noexcept {
    return view().begin();
  }
  template <int OtherRank = Rank, class = std::enable_if_t<OtherRank == 1>>
  auto end() const noexcept {
    return view_.end();
  }

  /* The context of the elements. Throws umem::moved_from_error after release(). */
  Context const &context() const {
    if (!mirror_) throw moved_from_error("the guard has ended: it was released, or moved from");
    return side == Side::host ? mirror_->host() : mirror_->device();
  }

  UMEM_CHECKED index_t extent(int k) const noexcept { return view_.extent(k); }
  index_t size() const noexcept { return view_.size(); }

private:
  template <class, int> friend class ArrayAccess;
  friend struct detail::FailedGuard;

  /* Ends it after a failed write of the elements. */
  void abandon() noexcept {
    if (mirror_ && access_ != detail::Access::read) mirror_->undo_overwrite(side);
    release();
  }

  /* Takes over an access that Mirror::acquire has counted. */
  Guard(detail::Mirror &mirror, detail::Access access, view_type const &view) noexcept
      : mirror_(&mirror), access_(access), view_(view) {}

  detail::Mirror *mirror_; /* null: released */
  detail::Access access_;
  view_type view_;
};

/* Access by the CPU, and access by kernels or by other users of the memory of context(). */
template <class Type, int Rank, class Layout = detail::LayoutOfArrays<Rank>>
using HostGuard = Guard<Type, Rank, Side::host, Layout>;
template <class Type, int Rank, class Layout = detail::LayoutOfArrays<Rank>>
using DeviceGuard = Guard<Type, Rank, Side::device, Layout>;

namespace detail {

/* The view of a guard, for libraries that work on the CPU. */

/* GuardType, deduced for a parameter GuardType &&: whether it is a guard, which has a view, and
 * whether it has a name. */
template <class GuardType, class = void> inline constexpr bool has_view = false;
template <class GuardType>
inline constexpr bool
    has_view<GuardType, std::void_t<typename std::remove_reference_t<GuardType>::view_type>> = true;
template <class GuardType> inline constexpr bool has_name = std::is_lvalue_reference_v<GuardType>;

/* Throws umem::not_supported_error if the CPU cannot use the elements. */
template <class GuardType> typename GuardType::view_type cpu_view(GuardType const &guard) {
  constexpr bool writes = !std::is_const_v<typename GuardType::element_type>;
  pointer_to(guard.context(), 0, umemCpuReadable | (writes ? umemCpuWritable : 0));
  return guard.view();
}

} // namespace detail
} // namespace umem

#endif
