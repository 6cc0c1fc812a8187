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

namespace umem {
namespace detail {

template <class Range> using data_of = decltype(std::data(std::declval<Range &>()));

/* Whether std::data of a Range points to objects of type Type (which may be const). */
template <class Range, class Type, class = void> inline constexpr bool is_range_of = false;
template <class Range, class Type>
inline constexpr bool is_range_of<Range, Type, std::void_t<data_of<Range>>> = std::conjunction_v<
    std::is_same<std::remove_cv_t<std::remove_pointer_t<data_of<Range>>>, std::remove_cv_t<Type>>,
    std::is_convertible<data_of<Range>, Type *>>;

} // namespace detail

template <class Type> class Vector {
  static_assert(std::is_trivially_copyable_v<Type> && !std::is_const_v<Type>,
                "umem::Vector: elements are copied as bytes");

public:
  using value_type = Type;

  /* An empty vector. */
  Vector() = default;

  /* n elements that are not initialised. Throws as Buffer does, and umem::memory_error if the
   * number of bytes overflows. */
  explicit Vector(Context const &context, std::size_t n)
      : buffer_(context, detail::bytes_of<Type>(n),
                detail::beyond_natural(context, alignof(Type))) {}

  /* n elements of which every byte is zero. */
  static Vector zeroed(Context const &context, std::size_t n) {
    return Vector(Buffer::zeroed(context, detail::bytes_of<Type>(n),
                                 detail::beyond_natural(context, alignof(Type))));
  }

  /* A copy of the elements of a std::vector, std::array, C array, ... */
  template <class Range, class = std::enable_if_t<detail::is_range_of<Range const, Type const>>>
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
  std::size_t size() const noexcept { return buffer_.size() / sizeof(Type); }

  address adr() const noexcept { return buffer_.adr(); }
  Context const &context() const noexcept { return buffer_.context(); }

  /* The bytes. */
  Buffer const &buffer() const noexcept { return buffer_; }

  /* ---- for the CPU; see Buffer::data ---- */

  Type *data() { return static_cast<Type *>(buffer_.data()); }
  Type const *data() const { return static_cast<Type const *>(buffer_.data()); }

  Type *begin() { return data(); }
  Type *end() { return data() + size(); }
  Type const *begin() const { return data(); }
  Type const *end() const { return data() + size(); }

  /* ---- on any context ---- */

  /* A copy of element i. Throws umem::index_error if i >= size(). */
  Type get(std::size_t i) const {
    check_index(i);
    Type value{};
    copy(context(), adr() + i * sizeof(Type), &value, sizeof value);
    return value;
  }

  /* Sets element i. Throws the same. */
  void set(std::size_t i, Type const &value) {
    check_index(i);
    copy(&value, context(), adr() + i * sizeof(Type), sizeof value);
  }

  /* Frees the elements now, also in a named file: see Buffer::deallocate. */
  void deallocate() noexcept { buffer_.deallocate(); }

  /* Makes the vector n elements long: see Buffer::resize. */
  void resize(std::size_t n) { buffer_.resize(detail::bytes_of<Type>(n)); }

  /* Copies n elements to those starting at offset. Throws umem::index_error, having copied
   * nothing, if they exceed the vector. */
  void copy_from(Type const *src, std::size_t n, std::size_t offset = 0) {
    detail::check_range(offset, n, size(), "elements");
    buffer_.copy_from(src, n * sizeof(Type), offset * sizeof(Type));
  }

  /* Copies the elements starting at offset. Throws the same. */
  void copy_to(Type *dst, std::size_t n, std::size_t offset = 0) const {
    detail::check_range(offset, n, size(), "elements");
    buffer_.copy_to(dst, n * sizeof(Type), offset * sizeof(Type));
  }

  /* Copies a contiguous range of Type (std::vector, std::array, C array, ...) to the first
   * elements, or the first elements to such a range, as many as it has. Throws the same. */
  template <class Range, class = std::enable_if_t<detail::is_range_of<Range const, Type const>>>
  void copy_from(Range const &range) {
    copy_from(std::data(range), std::size(range));
  }
  template <class Range,
            class = std::enable_if_t<detail::is_range_of<std::remove_reference_t<Range>, Type>>>
  void copy_to(Range &&range) const {
    copy_to(std::data(range), std::size(range));
  }

  /* Copies all elements. Throws umem::value_error if the sizes differ. */
  void copy_to(Vector &dst) const { buffer_.copy_to(dst.buffer_); }
  void copy_from(Vector const &src) { src.copy_to(*this); }

  std::vector<Type> to_vector() const {
    std::vector<Type> values(size());
    copy_to(values.data(), values.size());
    return values;
  }

  /* The elements for kernels on the device of context(). Throws umem::not_supported_error if
   * addresses are no pointers. Borrowed: do not use the view after a resize or after the vector
   * has ended. */
  View<Type, 1> view() { return View<Type, 1>(pointer(), {size()}); }
  View<Type const, 1> view() const { return View<Type const, 1>(pointer(), {size()}); }

private:
  explicit Vector(Buffer &&buffer) noexcept : buffer_(std::move(buffer)) {}

  void check_index(std::size_t i) const {
    if (i >= size())
      detail::raise_text(umemIndexError, "index %zu of a vector of %zu elements", i, size());
  }

  Type *pointer() const { return static_cast<Type *>(detail::device_pointer(context(), adr())); }

  Buffer buffer_;
};

} // namespace umem

#endif
