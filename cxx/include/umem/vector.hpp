/* umem/vector.hpp - elements of one type on any context, uninitialised until they are set.
 *
 *     umem::Vector<double> vector(umem::Cuda(), 1000);
 *     vector.copy_from(std::vector<double>(1000, 0.5));
 *     double last = vector.get(999);
 *
 * For work arrays: no shape, no mirror, no kernels; umem::Array has those. See Buffer for
 * emptiness, threads and order on ordered contexts. */
#ifndef UMEM_VECTOR_HPP
#define UMEM_VECTOR_HPP

#include <umem/buffer.hpp>
#include <umem/view.hpp>

#include <cstddef>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace umem {
namespace detail {

/* The bytes of n elements of T. */
template <class T> std::size_t bytes_of(std::size_t n) {
  if (n > std::numeric_limits<std::size_t>::max() / sizeof(T))
    raise_text(umemMemoryError, "%zu elements of %zu bytes exceed any memory", n, sizeof(T));
  return n * sizeof(T);
}

/* The alignment to request from context for blocks of T: 0 if its natural one suffices. */
template <class T> std::size_t alignment_of(Context const &context) {
  return alignof(T) > context.alignment() ? alignof(T) : 0;
}

template <class Range> using data_of = decltype(std::data(std::declval<Range &>()));

/* Whether std::data of a Range points to objects of type T (which may be const). */
template <class Range, class T, class = void> inline constexpr bool is_range_of = false;
template <class Range, class T>
inline constexpr bool is_range_of<Range, T, std::void_t<data_of<Range>>> = std::conjunction_v<
    std::is_same<std::remove_cv_t<std::remove_pointer_t<data_of<Range>>>, std::remove_cv_t<T>>,
    std::is_convertible<data_of<Range>, T *>>;

} // namespace detail

template <class T> class Vector {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "umem::Vector: elements are copied as bytes");

public:
  using value_type = T;

  /* An empty vector. */
  Vector() = default;

  /* n elements that are not initialised. Throws as Buffer does, and umem::memory_error if the
   * number of bytes overflows. */
  explicit Vector(Context const &context, std::size_t n)
      : buffer_(context, detail::bytes_of<T>(n), detail::alignment_of<T>(context)) {}

  /* n elements of which every byte is zero. */
  static Vector zeroed(Context const &context, std::size_t n) {
    return Vector(
        Buffer::zeroed(context, detail::bytes_of<T>(n), detail::alignment_of<T>(context)));
  }

  /* A copy of the elements of a std::vector, std::array, C array, ... */
  template <class Range, class = std::enable_if_t<detail::is_range_of<Range const, T const>>>
  static Vector from(Context const &context, Range const &range) {
    Vector vector(context, std::size(range));
    vector.copy_from(range);
    return vector;
  }

  void swap(Vector &other) noexcept { buffer_.swap(other.buffer_); }
  friend void swap(Vector &one, Vector &other) noexcept { one.swap(other); }

  /* Whether there is a block, as for Buffer. */
  explicit operator bool() const noexcept { return static_cast<bool>(buffer_); }

  /* In elements. */
  std::size_t size() const noexcept { return buffer_.size() / sizeof(T); }

  address adr() const noexcept { return buffer_.adr(); }
  Context const &context() const noexcept { return buffer_.context(); }

  /* The bytes. */
  Buffer const &buffer() const noexcept { return buffer_; }

  /* ---- for the CPU; see Buffer::data ---- */

  T *data() { return static_cast<T *>(buffer_.data()); }
  T const *data() const { return static_cast<T const *>(buffer_.data()); }

  T *begin() { return data(); }
  T *end() { return data() + size(); }
  T const *begin() const { return data(); }
  T const *end() const { return data() + size(); }

  /* ---- on any context ---- */

  /* A copy of element i. Throws umem::index_error if i >= size(). */
  T get(std::size_t i) const {
    check_index(i);
    T value{};
    copy(context(), adr() + i * sizeof(T), &value, sizeof value);
    return value;
  }

  /* Sets element i. Throws the same. */
  void set(std::size_t i, T const &value) {
    check_index(i);
    copy(&value, context(), adr() + i * sizeof(T), sizeof value);
  }

  /* Makes the vector n elements long: see Buffer::resize. */
  void resize(std::size_t n) { buffer_.resize(detail::bytes_of<T>(n)); }

  /* Copies n elements to those starting at offset. Throws umem::index_error, having copied
   * nothing, if they exceed the vector. */
  void copy_from(T const *src, std::size_t n, std::size_t offset = 0) {
    detail::check_range(offset, n, size(), "elements");
    buffer_.copy_from(src, n * sizeof(T), offset * sizeof(T));
  }

  /* Copies the elements starting at offset. Throws the same. */
  void copy_to(T *dst, std::size_t n, std::size_t offset = 0) const {
    detail::check_range(offset, n, size(), "elements");
    buffer_.copy_to(dst, n * sizeof(T), offset * sizeof(T));
  }

  /* Copies a contiguous range of T (std::vector, std::array, C array, ...) to the first
   * elements, or the first elements to such a range, as many as it has. Throws the same. */
  template <class Range, class = std::enable_if_t<detail::is_range_of<Range const, T const>>>
  void copy_from(Range const &range) {
    copy_from(std::data(range), std::size(range));
  }
  template <class Range,
            class = std::enable_if_t<detail::is_range_of<std::remove_reference_t<Range>, T>>>
  void copy_to(Range &&range) const {
    copy_to(std::data(range), std::size(range));
  }

  /* Copies all elements. Throws umem::value_error if the sizes differ. */
  void copy_to(Vector &dst) const { buffer_.copy_to(dst.buffer_); }
  void copy_from(Vector const &src) { src.copy_to(*this); }

  std::vector<T> to_vector() const {
    std::vector<T> values(size());
    copy_to(values.data(), values.size());
    return values;
  }

  /* The elements for kernels on the device of context(). Throws umem::not_supported_error if
   * addresses are no pointers. Borrowed: do not use the view after a resize or after the vector
   * has ended. */
  View<T, 1> view() { return View<T, 1>(pointer(), {size()}); }
  View<T const, 1> view() const { return View<T const, 1>(pointer(), {size()}); }

private:
  explicit Vector(Buffer &&buffer) noexcept : buffer_(std::move(buffer)) {}

  void check_index(std::size_t i) const {
    if (i >= size())
      detail::raise_text(umemIndexError, "index %zu of a vector of %zu elements", i, size());
  }

  T *pointer() const { return static_cast<T *>(detail::device_pointer(context(), adr())); }

  Buffer buffer_;
};

} // namespace umem

#endif
