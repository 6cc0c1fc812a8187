/* umem/scalar.hpp - one value on any context: a sum that a kernel writes, or a factor that it
 * reads.
 *
 *     umem::Scalar<double> sum(stream, 0.0);
 *     ...                                       // kernels on sum.view()
 *     double total = sum.value();               // waits for them, as copies do
 *
 * See Buffer for emptiness and threads. */
#ifndef UMEM_SCALAR_HPP
#define UMEM_SCALAR_HPP

#include <umem/vector.hpp>

namespace umem {

template <class Type> class Scalar {
  static_assert(std::is_trivially_copyable_v<Type> && !std::is_const_v<Type>,
                "umem::Scalar: values are copied as bytes");

public:
  using value_type = Type;

  /* Throws as Buffer does. */
  explicit Scalar(Context const &context, Type const &value)
      : buffer_(context, sizeof(Type), detail::beyond_natural(context, alignof(Type))) {
    set_value(value);
  }

  /* A copy of the value, after all work that context() has queued. */
  Type value() const {
    Type value{};
    buffer_.copy_to(&value, sizeof value);
    return value;
  }

  void set_value(Type const &value) { buffer_.copy_from(&value, sizeof value); }

  /* Sets every byte to zero; on an ordered context this is only queued. */
  void set_value_to_zero() { buffer_.set(0); }

  address adr() const noexcept { return buffer_.adr(); }
  Context const &context() const noexcept { return buffer_.context(); }

  /* For kernels, as Vector::view; v() is the value. */
  View<Type, 0> view() { return View<Type, 0>(pointer(), {}); }
  View<Type const, 0> view() const { return View<Type const, 0>(pointer(), {}); }

private:
  Type *pointer() const { return static_cast<Type *>(detail::device_pointer(context(), adr())); }

  Buffer buffer_;
};

} // namespace umem

#endif
