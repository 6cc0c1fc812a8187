/* umem/c_array.hpp - umemArray, the array of C and of other languages, in C++.
 *
 *     void scale(umemArray *array, double factor) {
 *       auto x = umem::view<double, 1>(array);          // checked: type, rank, place, access
 *       for (umem::index_t i = 0; i < x.size(); i++) x(i) *= factor;
 *     }
 *
 *     umem::Array<double, 1> u({100}, umem::Cuda());
 *     umem::CArray c = umem::c_array(u, umem::write);   // no copy
 *     process(c.get(), &status);
 *
 * Views, and arrays of one type made of arrays of the other, share the memory and keep its owner alive. */
#ifndef UMEM_C_ARRAY_HPP
#define UMEM_C_ARRAY_HPP

#include <umem/array.hpp>
#include <umem/array.h>
#include <umem/dynamic_view.hpp>
#include <umem/element.h>
#include <umem/element.hpp>

#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

template <class T> constexpr umemElementType element_type_of() {
  constexpr auto bits = static_cast<unsigned>(8 * sizeof(T));
  constexpr umemElementCode integer = std::is_signed_v<T> ? umemCodeInt : umemCodeUInt;
  if constexpr (std::is_same_v<T, bool>)
    return umemBool;
  else if constexpr (std::is_same_v<T, char>)
    return umemChar; /* signed on every machine */
  else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8)
    return UMEM_ELEMENT(integer, bits, 1);
  else if constexpr (is_half<T>)
    return umemFloat16;
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return umemBfloat16;
  else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    return UMEM_ELEMENT(umemCodeFloat, bits, 1);
  else if constexpr (is_complex<T>)
    return UMEM_ELEMENT(umemCodeComplex, bits, 1);
  else
    return 0;
}

inline std::string name_of(umemElementType type) {
  char text[32];
  umem_element_name(type, text, sizeof text);
  return text;
}

} // namespace detail

/* The umemElementType of T: bool, integers, float, double, half, bfloat16 and complex numbers. */
template <class T>
inline constexpr umemElementType element_type = detail::element_type_of<std::remove_cv_t<T>>();

/* A handle of a umemArray: one of its references. Copies share the array; move is free. Threads: as umemArray. */
class UMEM_NODISCARD CArray {
public:
  CArray() = default;

  /* Takes over one reference, such as the result of umemArray_create. NULL makes an empty handle. */
  explicit CArray(umemArray *array) noexcept : array_(array) {}

  /* One more reference to an array of others. */
  static CArray share(umemArray *array) noexcept { return CArray(umemArray_retain(array)); }

  CArray(CArray const &other) noexcept : array_(umemArray_retain(other.array_)) {}
  CArray(CArray &&other) noexcept : array_(std::exchange(other.array_, nullptr)) {}
  CArray &operator=(CArray other) noexcept {
    std::swap(array_, other.array_);
    return *this;
  }
  ~CArray() { umemArray_release(array_); }

  explicit operator bool() const noexcept { return array_ != nullptr; }

  /* Borrowed. */
  umemArray *get() const noexcept { return array_; }

  /* Gives the reference away: the caller calls umemArray_release. */
  [[nodiscard]] umemArray *release() noexcept { return std::exchange(array_, nullptr); }

private:
  umemArray *array_ = nullptr;
};

namespace detail {

/* Throws unless array has elements of type T and, if rank is not negative, this rank. */
template <class T> void check_array(umemArray const *array, int rank) {
  constexpr umemElementType type = element_type<T>;
  static_assert(type != 0, "umem::view: umemArray has no element type for T");
  if (!array) throw value_error("a view of an array that is NULL");
  if (umemArray_type(array) != type)
    throw type_error("an array of " + name_of(umemArray_type(array)) + " has no view of " +
                     name_of(type));
  if (rank >= 0 && umemArray_rank(array) != rank)
    throw value_error("an array of rank " + std::to_string(umemArray_rank(array)) +
                      " has no view of rank " + std::to_string(rank));
  for (int k = 0; k < umemArray_rank(array); k++)
    if (umemArray_elements(array) && umemArray_extent(array, k) > 1 &&
        umemArray_stride(array, k) % static_cast<std::int64_t>(sizeof(T)) != 0)
      throw value_error("stride " + std::to_string(umemArray_stride(array, k)) +
                        " of the array is no multiple of the " + std::to_string(sizeof(T)) +
                        " bytes of an element");
}

/* pointer: umemArray_host_pointer or umemArray_device_pointer. */
template <class T, class Pointer> T *pointer_of(umemArray *array, Pointer *pointer) {
  umemStatusType status = umemOK;
  void *data = pointer(array, !std::is_const_v<T>, &status);
  check(status);
  if (reinterpret_cast<std::uintptr_t>(data) % alignof(T) != 0)
    throw value_error("the first element of the array is not aligned as its type");
  return static_cast<T *>(data);
}

template <class T, int N> View<T, N> view_at(T *data, umemArray const *array) {
  View<T, N> view(data, {});
  for (int k = 0; k < N; k++) {
    view.extents.at[k] = umemArray_extent(array, k);
    view.strides.at[k] = umemArray_stride(array, k) / std::int64_t{sizeof(T)};
  }
  return view;
}

} // namespace detail

/* The elements of array for the CPU, after all work queued on its context is complete. T const to read. The array must
 * live as long as the view. Throws umem::type_error, umem::value_error for another rank, for strides between
 * elements and for elements that are not aligned, and umem::not_supported_error where the CPU cannot use the memory or a read-only array is to be written. */
template <class T, int N> View<T, N> view(umemArray *array) {
  detail::check_array<T>(array, N);
  return detail::view_at<T, N>(detail::pointer_of<T>(array, umemArray_host_pointer), array);
}
template <class T, int N> View<T, N> view(CArray const &array) { return view<T, N>(array.get()); }

/* The elements of array for kernels; nothing is waited for. Throws as view. */
template <class T, int N> View<T, N> device_view(umemArray *array) {
  detail::check_array<T>(array, N);
  return detail::view_at<T, N>(detail::pointer_of<T>(array, umemArray_device_pointer), array);
}
template <class T, int N> View<T, N> device_view(CArray const &array) {
  return device_view<T, N>(array.get());
}

/* The elements of array for the CPU, of any rank that a DynamicView has. Throws as view. */
template <class T> DynamicView<T> dynamic_view(umemArray *array) {
  detail::check_array<T>(array, -1);
  Shape shape, strides;
  for (int k = 0; k < umemArray_rank(array); k++) {
    shape.push_back(umemArray_extent(array, k));
    strides.push_back(umemArray_stride(array, k) / std::int64_t{sizeof(T)});
  }
  return DynamicView<T>(detail::pointer_of<T>(array, umemArray_host_pointer), shape, strides);
}
template <class T> DynamicView<T> dynamic_view(CArray const &array) {
  return dynamic_view<T>(array.get());
}

/* ---- umem::Array as umemArray, and back ---- */

/* A umemArray over the device side of array, without ghost cells. access: umem::read makes it read-only; umem::write and
 * umem::discard as of Array::device. Until the last reference to the umemArray is released, array is as with a guard
 * of its device side: access to the host side throws umem::locked_error. Throws as Array::device. */
template <class T, int N, class Access> CArray c_array(Array<T, N> &array, Access access) {
  using Guard = decltype(array.device(access));
  using U = typename Guard::element_type;
  static_assert(element_type<T> != 0, "umem::c_array: umemArray has no element type for T");
  auto guard = std::make_unique<Guard>(array.device(access));
  View<U, N> elements = **guard;
  std::int64_t shape[std::size_t(N) + 1], strides[std::size_t(N) + 1];
  for (int k = 0; k < N; k++) {
    shape[k] = elements.extents.at[k];
    strides[k] = elements.strides.at[k] * static_cast<index_t>(sizeof(T));
  }
  umemStatusType status = umemOK;
  umemVirtual *context = array.context().c_context();
  CArray made(umemArray_take(
      context, elements.data ? reinterpret_cast<address>(elements.data) : umem_null(context),
      element_type<T>, N, shape, strides, [](void *user) { delete static_cast<Guard *>(user); },
      guard.get(), &status));
  if (made) static_cast<void>(guard.release()); /* the array ends it */
  if constexpr (std::is_const_v<U>) {           /* a view of what is read-only stays read-only */
    umemArray_set_read_only(made.get(), true, &status);
    made = CArray(umemArray_alias(made.get(), &status));
  }
  detail::check(status);
  return made;
}
template <class T, int N> CArray c_array(Array<T, N> const &array) {
  return c_array(const_cast<Array<T, N> &>(array), read); /* which does not write */
}

/* An umem::Array over the memory of array, whose elements must be in the order of C or of Fortran without gaps: the
 * result has the same order, that of C if both fit. It keeps array alive, and
 * context, which must be one of the memory of array. Throws umem::type_error, umem::value_error for another rank, order
 * or memory,
 * and umem::not_supported_error for a read-only array, of which to_array<T const, N> is one. */
template <class T, int N> Array<T, N> to_array(CArray array, Context context) {
  detail::check_array<T>(array.get(), N);
  View<T, N> const layout = detail::view_at<T, N>(nullptr, array.get());
  bool const is_row_major = umemArray_is_c_contiguous(array.get());
  if (!is_row_major && !layout.transpose().is_contiguous())
    throw value_error("an array with gaps between its elements is no umem::Array: copy it first");
  if (!std::is_const_v<T> && umemArray_is_read_only(array.get()))
    throw not_supported_error(
        "a read-only array is no umem::Array of elements that can be written");
  if (!umem_is_same_device(context.c_context(), umemArray_context(array.get())))
    throw value_error("the array is in other memory than the context");
  ArrayOptions<N> options;
  options.order = is_row_major ? row_major : column_major;
  address adr = umemArray_address(array.get());
  return Array<T, N>::wrap(
      adr, layout.extents, std::move(context), [array]() mutable { array = CArray(); }, options);
}

/* The same; the context of array must outlive the result. */
template <class T, int N> Array<T, N> to_array(CArray array) {
  auto *context = static_cast<umemVirtual *>(umemArray_context(array.get()));
  return to_array<T, N>(std::move(array), Context::borrow(context));
}

} // namespace umem

#endif
