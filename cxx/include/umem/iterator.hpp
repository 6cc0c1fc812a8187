/* umem/iterator.hpp - the elements of views of rank 1 for loops and for algorithms of other
 * libraries.
 *
 *     for (double &x : view) x += 1;
 *     std::sort(view.begin(), view.end());
 *
 * For other ranks, and for iterators that are pointers where the elements have no gaps, see
 * elements.hpp. */
#ifndef UMEM_ITERATOR_HPP
#define UMEM_ITERATOR_HPP

#include <umem/config.hpp>

#include <iterator>

namespace umem {
namespace detail {

/* What all random access iterators over numbered elements have in common. */

/* The base of an iterator Self over elements Type, which has number(), +=, ++ and -- as prefixes,
 * and *. Comparisons are of iterators over the same elements. */
template <class Self, class Type> class NumberedIterator {
public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_cv_t<Type>;
  using difference_type = index_t;
  using pointer = Type *;
  using reference = Type &;

  UMEM_FUNCTION constexpr Type *operator->() const noexcept { return &*self(); }
  UMEM_FUNCTION constexpr Type &operator[](index_t n) const noexcept { return *(self() + n); }

  UMEM_FUNCTION friend constexpr Self operator++(Self &it, int) noexcept {
    Self before = it;
    ++it;
    return before;
  }
  UMEM_FUNCTION friend constexpr Self operator--(Self &it, int) noexcept {
    Self before = it;
    --it;
    return before;
  }
  UMEM_FUNCTION friend constexpr Self &operator-=(Self &it, index_t n) noexcept { return it += -n; }
  UMEM_FUNCTION friend constexpr Self operator+(Self it, index_t n) noexcept { return it += n; }
  UMEM_FUNCTION friend constexpr Self operator+(index_t n, Self it) noexcept { return it += n; }
  UMEM_FUNCTION friend constexpr Self operator-(Self it, index_t n) noexcept { return it += -n; }
  UMEM_FUNCTION friend constexpr index_t operator-(Self const &one, Self const &other) noexcept {
    return one.number() - other.number();
  }

#define UMEM_COMPARE(is)                                                                           \
  UMEM_FUNCTION friend constexpr bool operator is(Self const &one, Self const &other) noexcept {   \
    return one.number() is other.number();                                                         \
  }
  UMEM_FUNCTION friend constexpr bool operator==(Self const &one, Self const &other) noexcept {
    return one.is_at(other);
  }
  UMEM_FUNCTION friend constexpr bool operator!=(Self const &one, Self const &other) noexcept {
    return !one.is_at(other);
  }
  UMEM_COMPARE(<)
  UMEM_COMPARE(>)
  UMEM_COMPARE(<=)
  UMEM_COMPARE(>=)
#undef UMEM_COMPARE

private:
  UMEM_FUNCTION constexpr Self const &self() const noexcept {
    return static_cast<Self const &>(*this);
  }
};

} // namespace detail
/* A random access iterator over elements at equal distances, for host and device. It borrows the
 * memory. Distances count elements; they may be zero or negative. */
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
  /* Whether it stands where other does: as ==. */
  UMEM_FUNCTION constexpr bool is_at(StridedIterator const &other) const noexcept {
    return i_ == other.i_;
  }

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
