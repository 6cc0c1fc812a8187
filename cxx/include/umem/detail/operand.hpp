/* umem/detail/operand.hpp - the elements that algorithms accept: views, guards, and arrays, of
 * which they take a guard for the side where the loop runs. */
#ifndef UMEM_DETAIL_OPERAND_HPP
#define UMEM_DETAIL_OPERAND_HPP

#include <umem/array_access.hpp>
#include <umem/place.hpp>
#include <umem/place_guard.hpp>
#include <umem/view.hpp>

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* ---- views and guards ---- */

template <class T, int N> struct OpenView { View<T, N> view; };

template <class P, class T, int N, class Access>
OpenView<T, N> open(P const &, View<T, N> const &view, Access) {
  return {view};
}
template <class P, class T, int N, Side side, class Access>
OpenView<T, N> open(P const &place, Guard<T, N, side> const &guard, Access) {
  queue_before(place, guard.context());
  return {guard.view()};
}
template <class P, class T, int N, class Access>
OpenView<T, N> open(P const &place, PlaceGuard<T, N> const &guard, Access) {
  queue_before(place, guard.context());
  return {guard.view()};
}

/* ---- arrays ---- */

/* Access to an array during a call. If an exception ends a call that writes all elements, or any
 * call on a GPU, the side that was current before is current again, unless it is the side that
 * the call has written. Elements that a function on the host has changed stay changed. */
template <class T, int N> class OpenArray {
public:
  OpenArray(PlaceGuard<T, N> &&guard_, bool undoes)
      : guard(std::move(guard_)), view(guard.view()), undoes_(undoes),
        exceptions_(std::uncaught_exceptions()) {}
  OpenArray(OpenArray const &) = delete;
  OpenArray &operator=(OpenArray const &) = delete;
  ~OpenArray() {
    if (undoes_ && std::uncaught_exceptions() > exceptions_) FailedGuard::end(guard);
  }

  PlaceGuard<T, N> guard;
  View<T, N> view;

private:
  bool undoes_;
  int exceptions_; /* uncaught exceptions when this was opened */
};

template <class T, int N, class A, class P, class Access>
OpenArray<T, N> open_array(P const &place, A &array, Access access, bool writes_all = false) {
  return OpenArray<T, N>(make_place_guard<T, N>(place, array, access),
                         writes_all || is_device(place));
}

/* To read. */
template <class P, class T, int N>
OpenArray<T const, N> open(P const &place, ArrayAccess<T, N> const &array, read_t) {
  return open_array<T const, N>(place, array, read);
}
/* To read and write; an array that cannot be written is only read. */
template <class P, class T, int N>
OpenArray<T, N> open(P const &place, ArrayAccess<T, N> &array, write_t) {
  if constexpr (std::is_const_v<T>)
    return open_array<T, N>(place, array, read);
  else
    return open_array<T, N>(place, array, write);
}
template <class P, class T, int N>
OpenArray<T const, N> open(P const &place, ArrayAccess<T, N> const &array, write_t) {
  return open_array<T const, N>(place, array, read);
}
/* To write the whole interior; ghost cells keep their values. */
template <class P, class T, int N>
OpenArray<T, N> open(P const &place, ArrayAccess<T, N> &array, discard_t) {
  static_assert(!std::is_const_v<T>, "the elements of a read-only array cannot be written");
  bool all = array.ghosts().is_empty();
  return all ? open_array<T, N>(place, array, discard, true)
             : open_array<T, N>(place, array, write, true);
}

/* ---- extents, before anything is opened ---- */

template <class T, int N> Extents<N> extents_of(View<T, N> const &view) { return view.extents; }
template <class T, int N, Side side> Extents<N> extents_of(Guard<T, N, side> const &guard) {
  return guard.view().extents;
}
template <class T, int N> Extents<N> extents_of(PlaceGuard<T, N> const &guard) {
  return guard.view().extents;
}
template <class T, int N> Extents<N> extents_of(ArrayAccess<T, N> const &array) {
  array.context(); /* throws for a moved-from array */
  return array.extents();
}

/* ---- where the loop runs ---- */

template <class T, int N> bool is_array_or_not(ArrayAccess<T, N> const &);
template <class A, class = void> inline constexpr bool is_array = false;
template <class A>
inline constexpr bool is_array<A, std::void_t<decltype(is_array_or_not(std::declval<A &>()))>> =
    true;

/* The place of an array. Views and guards have none. */
template <class A> Place home_of(A const &operand) {
  static_assert(is_array<A>,
                "views and guards have no home: name the place of the loop before them, "
                "such as umem::on_host");
  return Place(operand.context());
}

template <class A> inline constexpr bool is_guard = false;
template <class T, int N, Side side> inline constexpr bool is_guard<Guard<T, N, side>> = true;
template <class T, int N> inline constexpr bool is_guard<PlaceGuard<T, N>> = true;
template <class A> inline constexpr bool is_host_guard = false;
template <class T, int N> inline constexpr bool is_host_guard<HostGuard<T, N>> = true;

/* A place must be able to use the memory of an array. A kernel on a stream that is not that of
 * its context must finish before anything else uses the array. Nothing is known about the memory
 * of views. */
template <class A> void settle(DevicePlace &place, A const &operand) {
  if constexpr (is_array<A> || is_guard<A>) {
    check_device_accessible(operand.context());
    Place home(operand.context());
    if (!home.is_device() || home.device().wait || !is_in_order(place, home)) place.wait = true;
    if (home.is_device() && place.device < 0) place.device = home.device().device;
  }
}
template <class A> void settle(HostPlace &, A const &operand) {
  if constexpr (is_guard<A>)
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

/* The place for a loop over operands. */
template <class P, class... A> auto settled(P const &place, A const &...operands) {
  auto result = as_place(place);
  (settle(result, operands), ...);
  return result;
}

/* Whether kernels of a GPU can use an input. Nothing is known about the memory of a view, nor
 * whether another GPU is connected. */
template <class A> bool kernels_reach(DevicePlace const &gpu, A const &input) {
  if constexpr (is_host_guard<A>) {
    return false; /* a guard of the host side */
  } else if constexpr (is_array<A> || is_guard<A>) {
    Context const &context = input.context();
    if (!context.can(umemDeviceAccessible)) return false;
    if (context.can(umemCpuReadable)) return true; /* pinned or managed */
    Place home(context);
    return home.is_device() && home.device().device == gpu.device;
  } else {
    return true;
  }
}

/* The place of a loop for which the caller names none: that of the output or, if kernels there
 * cannot use an input, the host, to which arrays transfer their elements. */
template <class B, class... A> Place place_for(B const &output, A const &...inputs) {
  Place home = home_of(output);
  if (!home.is_device() || (kernels_reach(home.device(), inputs) && ...)) return home;
  return Place(on_host);
}

/* A view of elements that are only read. */
template <class T, int N> View<T const, N> as_const(View<T, N> const &view) { return view; }

} // namespace detail
} // namespace umem

#endif
