/* umem/dlpack.hpp - arrays exchanged with other libraries, in C++: see umem/dlpack.h.
 *
 *     umem::DLPackTensor tensor = umem::to_dlpack(u, umem::write);   // u: an umem::Array
 *     consume(tensor.release());                            // calls the deleter when it is done
 *
 *     auto v = umem::from_dlpack<double, 1>(umem::Host(), umem::DLPackTensor(produce())); */
#ifndef UMEM_DLPACK_HPP
#define UMEM_DLPACK_HPP

#include <umem/c_array.hpp>

namespace umem {

/* Owns a tensor, and calls its deleter unless it is released. Not copyable. Tensor:
 * umemDLManagedTensorVersioned or umemDLManagedTensor. */
template <class Tensor> class DLPackOwner {
public:
  DLPackOwner() = default;

  /* Takes over the tensor. NULL makes an empty owner. */
  explicit DLPackOwner(Tensor *tensor) noexcept : tensor_(tensor) {}

  DLPackOwner(DLPackOwner &&other) noexcept : tensor_(other.release()) {}
  DLPackOwner &operator=(DLPackOwner other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~DLPackOwner() {
    if (tensor_ && tensor_->deleter) tensor_->deleter(tensor_);
  }

  explicit operator bool() const noexcept { return tensor_ != nullptr; }

  /* Borrowed. */
  Tensor *get() const noexcept { return tensor_; }

  /* Gives the tensor away: the caller must see to it that the deleter is called. */
  [[nodiscard]] Tensor *release() noexcept { return std::exchange(tensor_, nullptr); }

private:
  Tensor *tensor_ = nullptr;
};

using DLPackTensor = DLPackOwner<umemDLManagedTensorVersioned>;

/* The form without a version, for older libraries. */
using UnversionedDLPackTensor = DLPackOwner<umemDLManagedTensor>;

/* ---- umemArray ---- */

/* umemArray_to_dlpack. Throws for its errors. */
inline DLPackTensor to_dlpack(CArray const &array,
                              umemDLPackOptions const &options = UMEM_DLPACK_OPTIONS_INIT) {
  return DLPackTensor(detail::status_call(umemArray_to_dlpack, array.get(), &options));
}

/* umemArray_to_dlpack_unversioned. Throws for its errors. */
inline UnversionedDLPackTensor
to_dlpack_unversioned(CArray const &array,
                      umemDLPackOptions const &options = UMEM_DLPACK_OPTIONS_INIT) {
  return UnversionedDLPackTensor(
      detail::status_call(umemArray_to_dlpack_unversioned, array.get(), &options));
}

/* umemArray_describe_dlpack: without an owner, as long as array lives. Throws for its errors. */
inline umemDLTensor describe_dlpack(CArray const &array,
                                    std::int64_t stream = UMEM_DLPACK_DEFAULT_STREAM) {
  umemDLTensor tensor;
  detail::status_call(umemArray_describe_dlpack, array.get(), stream, &tensor);
  return tensor;
}

/* umemArray_from_dlpack; ctx as there. Throws for its errors, and then tensor still owns the
 * tensor. */
inline CArray from_dlpack(void *ctx, DLPackTensor &tensor) {
  CArray array(detail::status_call(umemArray_from_dlpack, ctx, tensor.get()));
  static_cast<void>(tensor.release()); /* the array has taken it over */
  return array;
}
inline CArray from_dlpack(void *ctx, UnversionedDLPackTensor &tensor) {
  CArray array(detail::status_call(umemArray_from_dlpack_unversioned, ctx, tensor.get()));
  static_cast<void>(tensor.release());
  return array;
}

/* Imports a tensor that it takes over; if it throws, the deleter has been called. */
template <class Tensor> CArray from_dlpack(void *ctx, DLPackOwner<Tensor> &&tensor) {
  DLPackOwner<Tensor> owner = std::move(tensor);
  return from_dlpack(ctx, owner);
}

/* ---- umem::Array ---- */

/* The device side of array as a tensor. The memory is shared: array is as with umem::c_array until
 * the deleter has been called, so access to the host side throws umem::locked_error. access:
 * umem::read makes the tensor read-only. Throws as umem::c_array and umemArray_to_dlpack. */
template <class Type, int Rank, class Access>
DLPackTensor to_dlpack(Array<Type, Rank> &array, Access access,
                       umemDLPackOptions const &options = UMEM_DLPACK_OPTIONS_INIT) {
  return to_dlpack(c_array(array, access), options);
}
/* Exports an array read-only. */
template <class Type, int Rank>
DLPackTensor to_dlpack(Array<Type, Rank> &array, umemDLPackOptions const &options) {
  return to_dlpack(c_array(array, read), options);
}
template <class Type, int Rank>
DLPackTensor to_dlpack(Array<Type, Rank> const &array,
                       umemDLPackOptions const &options = UMEM_DLPACK_OPTIONS_INIT) {
  return to_dlpack(c_array(array), options);
}

/* An umem::Array over the memory of tensor, which must be in C order without gaps. context: a
 * context of this memory, as for umemArray_from_dlpack; the array keeps it alive. The array calls
 * the deleter when nothing uses the memory any more. Throws as umemArray_from_dlpack and
 * umem::to_array; then the deleter has been called. */
template <class Type, int Rank, class Tensor>
Array<Type, Rank> from_dlpack(Context const &context, DLPackOwner<Tensor> &&tensor) {
  return to_array<Type, Rank>(from_dlpack(context.c_context(), std::move(tensor)), context);
}

} // namespace umem

#endif
