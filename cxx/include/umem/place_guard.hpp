/* umem/place_guard.hpp - access to an array on the side where a loop runs, chosen at run time.
 *
 *     umem::Array<double, 2> u, next;
 *     auto from = umem::guard_at(place, u, umem::read);
 *     umem::sweep(place, next, umem::interior(next), 0.0, umem::maximum(), Jacobi{*from});
 *
 * For functors that read other elements than their own: these hold a view, which must be of
 * memory that the place can use. */
#ifndef UMEM_PLACE_GUARD_HPP
#define UMEM_PLACE_GUARD_HPP

#include <umem/array_access.hpp>
#include <umem/place.hpp>

#include <optional>

namespace umem {

/* A guard of the host side or of the device side; move-only. Type const: to read. */
template <class Type, int Rank> class UMEM_NODISCARD PlaceGuard {
public:
  using element_type = Type;
  using value_type = std::remove_cv_t<Type>;
  using view_type = View<Type, Rank>;
  static constexpr int rank = Rank;

  explicit PlaceGuard(HostGuard<Type, Rank> guard) : host_(std::move(guard)) {}
  explicit PlaceGuard(DeviceGuard<Type, Rank> guard) : device_(std::move(guard)) {}

  /* The elements, while this guard lives. */
  view_type const &view() const noexcept {
    return host_ ? host_->view() : device_->view(); // NOLINT(bugprone-unchecked-optional-access)
  }
  view_type const &operator*() const noexcept { return view(); }
  view_type const *operator->() const noexcept { return &view(); }
  operator view_type() const noexcept { return view(); }

  /* As that of View. */
  template <class... Slices> auto part(Slices const &...slices) const {
    return view().part(slices...);
  }

  /* The elements of a guard of rank 1, as those of View. */
  template <int OtherRank = Rank, class = std::enable_if_t<OtherRank == 1>>
  StridedIterator<Type> begin() const noexcept {
    return view().begin();
  }
  template <int OtherRank = Rank, class = std::enable_if_t<OtherRank == 1>>
  StridedIterator<Type> end() const noexcept {
    return view().end();
  }

  /* The context of the elements. Throws umem::moved_from_error after release(). */
  Context const &context() const { return host_ ? host_->context() : device_->context(); }

  /* Whether it is of the host side. */
  bool is_host() const noexcept { return host_.has_value(); }

  /* Ends the access early. The view is empty afterwards. */
  void release() noexcept {
    if (host_) host_->release();
    if (device_) device_->release();
  }

private:
  friend struct detail::FailedGuard;

  void abandon() noexcept {
    if (host_) detail::FailedGuard::end(*host_);
    if (device_) detail::FailedGuard::end(*device_);
  }

  std::optional<HostGuard<Type, Rank>> host_; /* one of the two is used */
  std::optional<DeviceGuard<Type, Rank>> device_;
};

namespace detail {

/* Throws umem::value_error if kernels cannot use the memory of a context. */
inline void check_device_accessible(Context const &context) {
  if (!context.can(umemDeviceAccessible))
    raise_text(
        umemValueError,
        "kernels cannot use an array on %s: name umem::on_host, or copy it to a context of the "
        "GPU first",
        context.name());
}

/* The legacy default stream has two names: 0 and, in CUDA's headers, cudaStreamLegacy, which is
 * 1. */
inline bool is_same_stream(std::uintptr_t one, std::uintptr_t two) noexcept {
  return one == two || (one <= 1 && two <= 1);
}

/* Whether work at a place runs after the queued work of a context without further calls. */
inline bool is_in_order(DevicePlace const &place, Place const &home) {
  if (!home.is_device() || !is_same_stream(home.device().stream, place.stream)) return false;
  return place.device < 0 || home.device().device == place.device;
}

/* Orders work at a place after the queued work of a context. */
inline void queue_before(DevicePlace const &place, Context const &context) {
  if (!is_in_order(place, Place(context))) context.synchronize();
}
inline void queue_before(HostPlace const &, Context const &) {
} /* guards of the host side have waited */
inline void queue_before(Place const &place, Context const &context) {
  if (place.is_device()) queue_before(place.device(), context);
}

template <class Type, int Rank, class PlaceType, class Operand, class Access>
PlaceGuard<Type, Rank> make_place_guard(PlaceType const &place, Operand &array, Access access) {
  if (!is_on_device_side(place, array.context())) return PlaceGuard<Type, Rank>(array.host(access));
  if (!is_device(place)) return PlaceGuard<Type, Rank>(array.device(access));
  check_device_accessible(array.context());
  PlaceGuard<Type, Rank> guard(array.device(access));
  try {
    queue_before(place, array.context()); /* also after the transfer */
  } catch (...) {
    FailedGuard::end(guard);
    throw;
  }
  return guard;
}

} // namespace detail

/* A guard of array for loops at a place: HostPlace, DevicePlace, Place or a context. A kernel
 * there runs after all work that was queued for the array. If its stream is not that of the
 * context of the array, the program must wait for the kernel before the guard ends. Throws
 * umem::value_error if kernels cannot use the array, and the exceptions of array.host(access)
 * and array.device(access). */
template <class PlaceType, class Type, int Rank, class = detail::if_place<PlaceType>>
PlaceGuard<Type const, Rank> guard_at(PlaceType const &place, ArrayAccess<Type, Rank> const &array,
                                      read_t access) {
  return detail::make_place_guard<Type const, Rank>(detail::as_place(place), array, access);
}
template <class PlaceType, class Type, int Rank, class = detail::if_place<PlaceType>>
PlaceGuard<Type, Rank> guard_at(PlaceType const &place, ArrayAccess<Type, Rank> &array,
                                write_t access) {
  return detail::make_place_guard<Type, Rank>(detail::as_place(place), array, access);
}
template <class PlaceType, class Type, int Rank, class = detail::if_place<PlaceType>>
PlaceGuard<Type, Rank> guard_at(PlaceType const &place, ArrayAccess<Type, Rank> &array,
                                discard_t access) {
  return detail::make_place_guard<Type, Rank>(detail::as_place(place), array, access);
}

/* The guard for a loop without a place: it runs on the place of the array. */
template <class ArrayType, class Access>
auto guard_at_home(ArrayType &&array, Access access)
    -> decltype(guard_at(array.context(), array, access)) {
  return guard_at(array.context(), array, access);
}

} // namespace umem

#endif
