/* umem/shape.hpp - extents, indices or strides whose number is known at run time. Use Extents
 * (extents.hpp) if the compiler knows it.
 *
 *     umem::Shape shape{3, 4};
 *     shape.push_back(5);
 *     umem::Extents<3> extents = shape.to<3>(); */
#ifndef UMEM_SHAPE_HPP
#define UMEM_SHAPE_HPP

#include <umem/extents.hpp>

#include <algorithm>
#include <initializer_list>
#include <memory>

namespace umem {

/* A vector of indices that needs no heap up to 6 dimensions. Host only. */
class Shape {
public:
  using value_type = index_t;
  using iterator = index_t *;
  using const_iterator = index_t const *;

  /* The most dimensions that need no heap. */
  static constexpr std::size_t inline_capacity = 6;

  Shape() noexcept = default;
  Shape(std::initializer_list<index_t> values) : Shape(values.begin(), values.end()) {}
  template <int Rank> Shape(Extents<Rank> const &extents) : Shape(extents.begin(), extents.end()) {}
  Shape(index_t const *begin, index_t const *end) {
    reserve(static_cast<std::size_t>(end - begin));
    size_ = static_cast<std::size_t>(std::copy(begin, end, data()) - data());
  }

  Shape(Shape const &other) : Shape(other.begin(), other.end()) {}
  Shape(Shape &&other) noexcept { swap(other); }
  Shape &operator=(Shape other) noexcept {
    swap(other);
    return *this;
  }
  ~Shape() = default;

  void swap(Shape &other) noexcept {
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(few_, other.few_);
    std::swap(many_, other.many_);
  }
  friend void swap(Shape &one, Shape &other) noexcept { one.swap(other); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::size_t capacity() const noexcept { return capacity_; }

  index_t *data() noexcept { return many_ ? many_.get() : few_; }
  index_t const *data() const noexcept { return many_ ? many_.get() : few_; }
  iterator begin() noexcept { return data(); }
  iterator end() noexcept { return data() + size_; }
  const_iterator begin() const noexcept { return data(); }
  const_iterator end() const noexcept { return data() + size_; }

  UMEM_CHECKED index_t &operator[](std::size_t k) noexcept {
    UMEM_ASSERT(k < size_);
    return data()[k];
  }
  UMEM_CHECKED index_t const &operator[](std::size_t k) const noexcept {
    UMEM_ASSERT(k < size_);
    return data()[k];
  }

  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    auto values = std::make_unique<index_t[]>(capacity);
    std::copy(begin(), end(), values.get());
    many_ = std::move(values);
    capacity_ = capacity;
  }

  /* Keeps its storage. */
  void clear() noexcept { size_ = 0; }

  void push_back(index_t value) {
    if (size_ == capacity_) reserve(2 * capacity_);
    data()[size_++] = value;
  }

  friend bool operator==(Shape const &one, Shape const &other) noexcept {
    return std::equal(one.begin(), one.end(), other.begin(), other.end());
  }
  friend bool operator!=(Shape const &one, Shape const &other) noexcept { return !(one == other); }

  /* Its numbers as Extents. Throws umem::type_error if there are not Rank. */
  template <int Rank> Extents<Rank> to() const {
    if (size_ != static_cast<std::size_t>(Rank))
      detail::raise_text(umemTypeError, "the shape %s has %zu dimensions, not %d",
                         detail::in_words(*this).text, size_, Rank);
    Extents<Rank> extents;
    std::copy(begin(), end(), extents.begin());
    return extents;
  }

private:
  std::size_t size_ = 0;
  std::size_t capacity_ = inline_capacity;
  index_t few_[inline_capacity] = {};
  std::unique_ptr<index_t[]> many_; /* null: they are in few_ */
};

} // namespace umem

#endif
