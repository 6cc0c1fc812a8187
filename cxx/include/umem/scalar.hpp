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

#include <umem/buffer.hpp>
#include <umem/vector.hpp>
#include <umem/view.hpp>

#include <type_traits>

namespace umem {

template <class T> class Scalar {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "umem::Scalar: values are copied as bytes");

public:
  using value_type = T;

  /* Throws as Buffer does. */
  explicit Scalar(Context const &context, T const &value)
      : buffer_(context, sizeof(T), detail::alignment_of<T>(context)) {
    set_value(value);
  }

  /* A copy of the value, after all work that context() has queued. */
  T value() const {
    T value{};
    buffer_.copy_to(&value, sizeof value);
    return value;
  }

  void set_value(T const &value) { buffer_.copy_from(&value, sizeof value); }

  /* Sets every byte to zero; on an ordered context this is only queued. */
  void set_value_to_zero() { buffer_.set(0); }

  address adr() const noexcept { return buffer_.adr(); }
  Context const &context() const noexcept { return buffer_.context(); }

  /* For kernels, as Vector::view; v() is the value. */
  View<T, 0> view() { return View<T, 0>(pointer(), {}); }
  View<T const, 0> view() const { return View<T const, 0>(pointer(), {}); }

private:
  T *pointer() const { return static_cast<T *>(detail::device_pointer(context(), adr())); }

  Buffer buffer_;
};

} // namespace umem

#endif
