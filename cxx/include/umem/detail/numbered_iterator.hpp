/* umem/detail/numbered_iterator.hpp - what all random access iterators over numbered elements have in common. */
#ifndef UMEM_DETAIL_NUMBERED_ITERATOR_HPP
#define UMEM_DETAIL_NUMBERED_ITERATOR_HPP

#include <umem/config.hpp>

#include <iterator>
#include <type_traits>

namespace umem {
namespace detail {

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

  UMEM_FUNCTION friend constexpr bool operator==(Self const &one, Self const &other) noexcept {
    return one.number() == other.number();
  }
  UMEM_FUNCTION friend constexpr bool operator!=(Self const &one, Self const &other) noexcept {
    return one.number() != other.number();
  }
  UMEM_FUNCTION friend constexpr bool operator<(Self const &one, Self const &other) noexcept {
    return one.number() < other.number();
  }
  UMEM_FUNCTION friend constexpr bool operator>(Self const &one, Self const &other) noexcept {
    return one.number() > other.number();
  }
  UMEM_FUNCTION friend constexpr bool operator<=(Self const &one, Self const &other) noexcept {
    return one.number() <= other.number();
  }
  UMEM_FUNCTION friend constexpr bool operator>=(Self const &one, Self const &other) noexcept {
    return one.number() >= other.number();
  }

private:
  UMEM_FUNCTION constexpr Self const &self() const noexcept {
    return static_cast<Self const &>(*this);
  }
};

} // namespace detail
} // namespace umem

#endif
