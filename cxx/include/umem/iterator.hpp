/* umem/iterator.hpp - the elements of views of rank 1 for loops and for algorithms of other libraries.
 *
 *     for (double &x : view) x += 1;
 *     std::sort(view.begin(), view.end());
 *
 * For other ranks, and for iterators that are pointers where the elements have no gaps, see elements.hpp. */
#ifndef UMEM_ITERATOR_HPP
#define UMEM_ITERATOR_HPP

#include <umem/detail/numbered_iterator.hpp>

#include <type_traits>

namespace umem {

/* A random access iterator over elements at equal distances, for host and device. It borrows the memory. Distances
 * count elements; they may be zero or negative. */
template <class Type>
class StridedIterator : public detail::NumberedIterator<StridedIterator<Type>, Type> {
public:
  /* Of no element. */
  StridedIterator() = default;

  /* The element with number i, if element 0 is at first and the next one at first + stride. */
  UMEM_FUNCTION constexpr StridedIterator(Type *first, index_t stride, index_t i = 0) noexcept
      : first_(first), stride_(stride), i_(i) {}

  /* From elements that may be written to those that are only read. */
  template <class OtherType, class = std::enable_if_t<std::is_same_v<OtherType const, Type> &&
                                                      !std::is_same_v<OtherType, Type>>>
  UMEM_FUNCTION constexpr StridedIterator(StridedIterator<OtherType> const &other) noexcept
      : first_(other.first_), stride_(other.stride_), i_(other.i_) {}

  UMEM_FUNCTION constexpr Type &operator*() const noexcept { return first_[i_ * stride_]; }
  /* The i of the constructor. */
  UMEM_FUNCTION constexpr index_t number() const noexcept { return i_; }

  UMEM_FUNCTION constexpr StridedIterator &operator++() noexcept { return *this += 1; }
  UMEM_FUNCTION constexpr StridedIterator &operator--() noexcept { return *this += -1; }
  UMEM_FUNCTION constexpr StridedIterator &operator+=(index_t n) noexcept {
    i_ += n;
    return *this;
  }

private:
  template <class OtherType> friend class StridedIterator;

  Type *first_ = nullptr;
  index_t stride_ = 0;
  index_t i_ = 0;
};

} // namespace umem

#endif
