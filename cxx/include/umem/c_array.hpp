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
 * Views, and arrays of one type made of arrays of the other, share the memory and keep its owner
 * alive. */
#ifndef UMEM_C_ARRAY_HPP
#define UMEM_C_ARRAY_HPP

#include <umem/array.hpp>
#include <umem/dynamic_view.hpp>
#include <umem/element.hpp>

namespace umem {
namespace detail {

template <class Type> constexpr umemElementType element_type_of() {
  constexpr auto bits = static_cast<unsigned>(8 * sizeof(Type));
  constexpr umemElementCode integer = std::is_signed_v<Type> ? umemCodeInt : umemCodeUInt;
  if constexpr (std::is_same_v<Type, bool>)
    return umemBool;
  else if constexpr (std::is_same_v<Type, char>)
    return umemChar; /* signed on every machine */
  else if constexpr (std::is_integral_v<Type> && sizeof(Type) <= 8)
    return UMEM_ELEMENT(integer, bits, 1);
  else if constexpr (is_half<Type>)
    return umemFloat16;
  else if constexpr (std::is_same_v<Type, __nv_bfloat16>)
    return umemBfloat16;
  else if constexpr (std::is_same_v<Type, float> || std::is_same_v<Type, double>)
    return UMEM_ELEMENT(umemCodeFloat, bits, 1);
  else if constexpr (is_complex<Type>)
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

/* The umemElementType of Type: bool, integers, float, double, half, bfloat16 and complex
 * numbers. */
template <class Type>
inline constexpr umemElementType element_type = detail::element_type_of<std::remove_cv_t<Type>>();

/* A handle of a umemArray: one of its references. Copies share the array; move is free. Threads: as
 * umemArray. */
class UMEM_NODISCARD CArray {
public:
  CArray() = default;

  /* Takes over one reference, such as the result of umemArray_create. NULL makes an empty
   * handle. */
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

/* Throws unless array has elements of type Type and, if rank is not negative, this rank. */
template <class Type> void check_array(umemArray const *array, int rank) {
  constexpr umemElementType type = element_type<Type>;
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
        umemArray_stride(array, k) % static_cast<std::int64_t>(sizeof(Type)) != 0)
      throw value_error("stride " + std::to_string(umemArray_stride(array, k)) +
                        " of the array is no multiple of the " + std::to_string(sizeof(Type)) +
                        " bytes of an element");
}

/* pointer: umemArray_host_pointer or umemArray_device_pointer. */
template <class Type, class Pointer> Type *pointer_of(umemArray *array, Pointer *pointer) {
  void *data = status_call(pointer, array, !std::is_const_v<Type>);
  if (reinterpret_cast<std::uintptr_t>(data) % alignof(Type) != 0)
    throw value_error("the first element of the array is not aligned as its type");
  return static_cast<Type *>(data);
}

template <class Type, int Rank> View<Type, Rank> view_at(Type *data, umemArray const *array) {
  View<Type, Rank> view(data, {});
  for (int k = 0; k < Rank; k++) {
    view.extents.at[k] = umemArray_extent(array, k);
    view.strides.at[k] = umemArray_stride(array, k) / std::int64_t{sizeof(Type)};
  }
  return view;
}

} // namespace detail

/* The elements of array for the CPU, after all work queued on its context is complete. Type const
 * to read. The array must live as long as the view. Throws umem::type_error, umem::value_error for
 * another rank, for strides between elements and for elements that are not aligned, and
 * umem::not_supported_error where the CPU cannot use the memory or a read-only array is to be
 * written. */
template <class Type, int Rank> View<Type, Rank> view(umemArray *array) {
  detail::check_array<Type>(array, Rank);
  return detail::view_at<Type, Rank>(detail::pointer_of<Type>(array, umemArray_host_pointer),
                                     array);
}
template <class Type, int Rank> View<Type, Rank> view(CArray const &array) {
  return view<Type, Rank>(array.get());
}

/* The elements of array for kernels; nothing is waited for. Throws as view. */
template <class Type, int Rank> View<Type, Rank> device_view(umemArray *array) {
  detail::check_array<Type>(array, Rank);
  return detail::view_at<Type, Rank>(detail::pointer_of<Type>(array, umemArray_device_pointer),
                                     array);
}
template <class Type, int Rank> View<Type, Rank> device_view(CArray const &array) {
  return device_view<Type, Rank>(array.get());
}

/* The elements of array for the CPU, of any rank that a DynamicView has. Throws as view. */
template <class Type> DynamicView<Type> dynamic_view(umemArray *array) {
  detail::check_array<Type>(array, -1);
  Shape shape, strides;
  for (int k = 0; k < umemArray_rank(array); k++) {
    shape.push_back(umemArray_extent(array, k));
    strides.push_back(umemArray_stride(array, k) / std::int64_t{sizeof(Type)});
  }
  return DynamicView<Type>(detail::pointer_of<Type>(array, umemArray_host_pointer), shape, strides);
}
template <class Type> DynamicView<Type> dynamic_view(CArray const &array) {
  return dynamic_view<Type>(array.get());
}

/* ---- umem::Array as umemArray, and back ---- */

namespace detail {

/* How the elements of a view lie, as umemArray says it: strides are in bytes. */
template <class Type, int Rank> struct ByteLayout {
  std::int64_t shape[slots<Rank>] = {}, strides[slots<Rank>] = {};

  ByteLayout(Extents<Rank> const &extents, Extents<Rank> const &in_elements) {
    for (int k = 0; k < Rank; k++) {
      shape[k] = extents.at[k];
      strides[k] = in_elements.at[k] * static_cast<index_t>(sizeof(Type));
    }
  }
};

/* An array of memory that owner keeps, which ends with the last array that shares it. */
template <class Owner>
CArray owned_array(std::unique_ptr<Owner> owner, void *context, address adr, umemElementType type,
                   int rank, std::int64_t const *shape, std::int64_t const *strides,
                   bool read_only = false) {
  umemStatusType status = umemOK;
  CArray array(umemArray_take(
      context, adr, type, rank, shape, strides,
      [](void *user) { delete static_cast<Owner *>(user); }, owner.get(), &status));
  if (array) static_cast<void>(owner.release()); /* the array ends it */
  if (read_only) {                               /* a view of what is read-only stays read-only */
    umemArray_set_read_only(array.get(), true, &status);
    array = CArray(umemArray_alias(array.get(), &status));
  }
  check_status(status);
  return array;
}

} // namespace detail

/* A umemArray over the device side of array, without ghost cells. access: umem::read makes it
 * read-only; umem::write and umem::discard as of Array::device. Until the last reference to the
 * umemArray is released, array is as with a guard of its device side: access to the host side
 * throws umem::locked_error. Throws as Array::device. */
template <class Type, int Rank, class Access>
CArray c_array(Array<Type, Rank> &array, Access access) {
  using Guard = decltype(array.device(access));
  using OtherType = typename Guard::element_type;
  static_assert(element_type<Type> != 0, "umem::c_array: umemArray has no element type for T");
  auto guard = std::make_unique<Guard>(array.device(access));
  View<OtherType, Rank> const elements = **guard;
  detail::ByteLayout<Type, Rank> const layout(elements.extents, elements.strides);
  umemVirtual *context = array.context().c_context();
  auto const adr = elements.data ? reinterpret_cast<address>(elements.data) : umem_null(context);
  return detail::owned_array(std::move(guard), context, adr, element_type<Type>, Rank, layout.shape,
                             layout.strides, std::is_const_v<OtherType>);
}
template <class Type, int Rank> CArray c_array(Array<Type, Rank> const &array) {
  return c_array(const_cast<Array<Type, Rank> &>(array), read); /* which does not write */
}

/* An umem::Array over the memory of array, whose elements must be in the order of C or of Fortran
 * without gaps: the result has the same order, that of C if both fit. It keeps array alive, and
 * context, which must be one of the memory of array. Throws umem::type_error, umem::value_error for
 * another rank, order or memory, and umem::not_supported_error for a read-only array, of which
 * to_array<Type const, Rank> is one. */
template <class Type, int Rank> Array<Type, Rank> to_array(CArray array, Context context) {
  detail::check_array<Type>(array.get(), Rank);
  View<Type, Rank> const layout = detail::view_at<Type, Rank>(nullptr, array.get());
  bool const is_row_major = umemArray_is_c_contiguous(array.get());
  if (!is_row_major && !layout.transpose().is_contiguous())
    throw value_error("an array with gaps between its elements is no umem::Array: copy it first");
  if (!std::is_const_v<Type> && umemArray_is_read_only(array.get()))
    throw not_supported_error(
        "a read-only array is no umem::Array of elements that can be written");
  if (!umem_is_same_device(context.c_context(), umemArray_context(array.get())))
    throw value_error("the array is in other memory than the context");
  ArrayOptions<Rank> options;
  options.order = is_row_major ? row_major : column_major;
  address adr = umemArray_address(array.get());
  return Array<Type, Rank>::wrap(
      adr, layout.extents, std::move(context), [array]() mutable { array = CArray(); }, options);
}

/* Converts a handle; the context of array must outlive the result. */
template <class Type, int Rank> Array<Type, Rank> to_array(CArray array) {
  auto *context = static_cast<umemVirtual *>(umemArray_context(array.get()));
  return to_array<Type, Rank>(std::move(array), Context::borrow(context));
}

} // namespace umem

#endif
