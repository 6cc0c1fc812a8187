/* umem/dlpack.hpp - arrays exchanged with other libraries, in C++: see umem/dlpack.h.
 *
 *     umem::DLPackTensor tensor = umem::to_dlpack(umem::c_array(u, umem::write));
 *     consume(tensor.release());                               // calls the deleter when it is done
 *
 *     umem::CArray a = umem::from_dlpack(&host, umem::DLPackTensor(produce()));
 */
#ifndef UMEM_DLPACK_HPP
#define UMEM_DLPACK_HPP

#include <umem/c_array.hpp>
#include <umem/dlpack.h>

#include <utility>

namespace umem {

/* Owns a tensor, and calls its deleter unless it is released. Not copyable. */
class DLPackTensor {
public:
  DLPackTensor() = default;

  /* Takes over the tensor. NULL makes an empty owner. */
  explicit DLPackTensor(umemDLManagedTensorVersioned *tensor) noexcept : tensor_(tensor) {}

  DLPackTensor(DLPackTensor &&other) noexcept : tensor_(other.release()) {}
  DLPackTensor &operator=(DLPackTensor other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~DLPackTensor() {
    if (tensor_ && tensor_->deleter) tensor_->deleter(tensor_);
  }

  explicit operator bool() const noexcept { return tensor_ != nullptr; }

  /* Borrowed. */
  umemDLManagedTensorVersioned *get() const noexcept { return tensor_; }

  /* Gives the tensor away: the caller, or who gets it, calls the deleter. */
  [[nodiscard]] umemDLManagedTensorVersioned *release() noexcept {
    return std::exchange(tensor_, nullptr);
  }

private:
  umemDLManagedTensorVersioned *tensor_ = nullptr;
};

/* umemArray_to_dlpack. Throws for its errors. */
inline DLPackTensor to_dlpack(CArray const &array,
                              umemDLPackOptions const &options = UMEM_DLPACK_OPTIONS_INIT) {
  umemStatusType status = umemOK;
  DLPackTensor tensor(umemArray_to_dlpack(array.get(), &options, &status));
  detail::check(status);
  return tensor;
}

/* umemArray_from_dlpack; ctx as there. Throws for its errors, and tensor keeps the tensor then. */
inline CArray from_dlpack(void *ctx, DLPackTensor &tensor) {
  umemStatusType status = umemOK;
  CArray array(umemArray_from_dlpack(ctx, tensor.get(), &status));
  detail::check(status);
  static_cast<void>(tensor.release()); /* the array has taken it over */
  return array;
}

/* The same; after a failure the deleter has run. */
inline CArray from_dlpack(void *ctx, DLPackTensor &&tensor) { return from_dlpack(ctx, tensor); }

} // namespace umem

#endif
