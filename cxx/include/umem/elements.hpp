/* umem/elements.hpp - the elements of views and guards of any rank, one after the other in C order.
 *
 *     for (double &x : umem::elements(u.host(umem::write))) x += 1;
 *     for (double &x : umem::elements(u.host<umem::RowMajor>(umem::write))) x += 1; // by pointers
 *     umem::visit_elements(view, [](auto first, auto last) { std::sort(first, last); });
 *
 * The iterators are random access iterators for algorithms of the standard library and, on host and
 * device, of Thrust. They borrow the memory and leave ghost cells out; with_ghosts() of a view
 * includes them. */
#ifndef UMEM_ELEMENTS_HPP
#define UMEM_ELEMENTS_HPP

#include <umem/layout.hpp>

namespace umem {
namespace detail {

/* 0 or 1. Clang computes with a bool member as a number of eight bits. For each way to a branch it
 * makes a branch of its own only where the condition is one bit. */
#if defined(__clang__) && defined(__BITINT_MAXWIDTH__) && !defined(__CUDACC__)
__extension__ typedef unsigned _BitInt(1) Bit;
#else
using Bit = bool;
#endif

} // namespace detail

/* A random access iterator over the elements of a view in C order. ++ and -- cost as much as a loop
 * over indices; += and [] divide once for each dimension.
 *
 * To compare with the end reads nothing but more_, and inside of a row ++ leaves it alone for GCC
 * and sets it for Clang: so they make two nested loops of one over all elements, and the inner one
 * has vector instructions. */
template <class Type, int Rank>
class ElementIterator : public detail::NumberedIterator<ElementIterator<Type, Rank>, Type> {
public:
  /* Of no element. */
  ElementIterator() = default;

  /* Element i of view in C order, in [0, view.size()]. */
  UMEM_FUNCTION constexpr explicit ElementIterator(View<Type, Rank> const &view,
                                                   index_t i = 0) noexcept
      : data_(view.data), extents_(view.extents), strides_(view.strides), left_(length()) {
    more_ = i != view.size();
    if (more_)
      *this += i;
    else
      go_to_end(i);
  }

  /* From elements that may be written to those that are only read. */
  template <class OtherType, class = std::enable_if_t<std::is_same_v<OtherType const, Type> &&
                                                      !std::is_same_v<OtherType, Type>>>
  UMEM_FUNCTION constexpr ElementIterator(ElementIterator<OtherType, Rank> const &other) noexcept
      : ElementIterator(View<Type, Rank>(other.data_, other.extents_, other.strides_), other.i_) {}

  UMEM_FUNCTION constexpr Type &operator*() const noexcept { return data_[offset_]; }
  /* The number of the element in C order. */
  UMEM_FUNCTION constexpr index_t number() const noexcept { return i_; }
  /* Whether it stands where other does: as ==. */
  UMEM_FUNCTION constexpr bool is_at(ElementIterator const &other) const noexcept {
    return more_ == other.more_ && (!more_ || i_ == other.i_);
  }

  UMEM_FUNCTION constexpr ElementIterator &operator++() noexcept {
    i_++;
    offset_ += strides_.at[last];
    if (UMEM_RARELY(--left_ == 0))
      next_row();
    else
      set_more(true);
    return *this;
  }
  UMEM_FUNCTION constexpr ElementIterator &operator--() noexcept {
    i_--;
    more_ = true;
    if (left_ == length()) previous_row();
    offset_ -= strides_.at[last];
    left_++;
    return *this;
  }
  UMEM_FUNCTION constexpr ElementIterator &operator+=(index_t n) noexcept {
    if (n == 0) return *this; /* also where there are no elements */
    i_ += n;
    index_t rest = i_ / length();
    left_ = length() - i_ % length();
    offset_ = i_ % length() * strides_.at[last];
    for (int k = Rank - 2; k >= 0; k--) {
      at_.at[k] = k > 0 ? rest % extents_.at[k] : rest;
      if (k > 0) rest /= extents_.at[k];
      offset_ += at_.at[k] * strides_.at[k];
    }
    more_ = Rank > 1 ? at_.at[0] < extents_.at[0] : i_ < length();
    return *this;
  }

private:
  template <class OtherType, int OtherRank> friend class ElementIterator;
  static constexpr int last = Rank > 0 ? Rank - 1 : 0;

  /* Of a row. */
  UMEM_FUNCTION constexpr index_t length() const noexcept {
    return Rank > 0 ? extents_.at[last] : 1;
  }
  UMEM_FUNCTION constexpr void go_to_end(index_t size) noexcept {
    i_ = size;
    if (Rank < 2) return;
    at_.at[0] = extents_.at[0];
    offset_ = at_.at[0] * strides_.at[0];
  }
  /* After a step forward: for GCC a write only where it changes more_. */
  UMEM_FUNCTION constexpr void set_more(bool more) noexcept {
    if constexpr (!std::is_same_v<detail::Bit, bool>)
      more_ = more;
    else if (!more)
      more_ = false;
  }
  /* From after the last element of a row to the first of the next one, and back. */
  UMEM_FUNCTION constexpr void next_row() noexcept {
    left_ = length();
    offset_ -= left_ * strides_.at[last];
    for (int k = Rank - 2; k >= 0; k--) {
      offset_ += strides_.at[k];
      if (++at_.at[k] < extents_.at[k] || k == 0)
        break; /* the end has extents_[0] as first index */
      offset_ -= at_.at[k] * strides_.at[k];
      at_.at[k] = 0;
    }
    set_more(Rank > 1 && at_.at[0] != extents_.at[0]);
  }
  UMEM_FUNCTION constexpr void previous_row() noexcept {
    for (int k = Rank - 2; k >= 0; k--) {
      offset_ -= strides_.at[k];
      if (at_.at[k]-- > 0 || k == 0) break;
      at_.at[k] = extents_.at[k] - 1;
      offset_ += extents_.at[k] * strides_.at[k];
    }
    left_ = 0;
    offset_ += length() * strides_.at[last];
  }

  Type *data_ = nullptr;
  Extents<Rank> extents_;
  Extents<Rank> strides_;
  Extents<Rank> at_;   /* the indices of the row of element i_ */
  index_t offset_ = 0; /* of this element from data_ */
  index_t i_ = 0;
  detail::Bit more_ = false; /* not at the end */
  index_t left_ = 0;         /* elements of the row from this one on */
};

namespace detail {

template <class Type, int Rank>
UMEM_FUNCTION constexpr auto iterator_at(View<Type, Rank> const &view, index_t i) noexcept {
  if constexpr (Rank == 1)
    return StridedIterator<Type>(view.data, view.strides.at[0], i);
  else
    return ElementIterator<Type, Rank>(view, i);
}

/* Whether the distance between elements that follow each other in C order is the same for all. Then
 * step is it. */
template <class Type, int Rank>
UMEM_FUNCTION constexpr bool has_one_step(View<Type, Rank> const &view, index_t &step) noexcept {
  bool is_first = true;
  index_t next = 0; /* the stride that the next slower dimension must have */
  for (int k = Rank - 1; k >= 0; k--) {
    if (view.extents.at[k] == 1) continue;
    if (is_first)
      step = view.strides.at[k];
    else if (view.strides.at[k] != next)
      return false;
    is_first = false;
    next = view.strides.at[k] * view.extents.at[k];
  }
  return true;
}

} // namespace detail

/* The elements of a view as a range: begin(), end(), size(). */
template <class Type, int Rank> class Elements {
public:
  UMEM_FUNCTION constexpr explicit Elements(View<Type, Rank> const &view) noexcept : view_(view) {}

  UMEM_FUNCTION constexpr auto begin() const noexcept { return detail::iterator_at(view_, 0); }
  UMEM_FUNCTION constexpr auto end() const noexcept {
    return detail::iterator_at(view_, view_.size());
  }
  UMEM_FUNCTION constexpr index_t size() const noexcept { return view_.size(); }

private:
  View<Type, Rank> view_;
};

/* Elements that follow each other in memory, by pointers. */
template <class Type> struct ContiguousElements {
  Type *first;
  index_t count;

  UMEM_FUNCTION constexpr Type *begin() const noexcept { return first; }
  UMEM_FUNCTION constexpr Type *end() const noexcept { return first + count; }
  UMEM_FUNCTION constexpr Type *data() const noexcept { return first; }
  UMEM_FUNCTION constexpr std::size_t size() const noexcept {
    return static_cast<std::size_t>(count);
  }
};

/* The elements of a view. If its type knows that they have no gaps, by pointers: compilers
 * vectorise loops over them. */
template <class Type, int Rank, class Layout>
UMEM_FUNCTION constexpr auto elements(View<Type, Rank, Layout> const &view) noexcept {
  using Rules = detail::Known<Layout>;
  if constexpr (Rules::is_contiguous && Rules::order == row_major)
    return ContiguousElements<Type>{view.data, view.data ? view.size() : 0};
  else
    return Elements<Type, Rank>(view);
}

namespace detail {

/* A range of a guard, which it keeps. */
template <class Owner> struct ElementsOfGuard {
  Owner guard;

  auto begin() const noexcept { return elements(guard.view()).begin(); }
  auto end() const noexcept { return elements(guard.view()).end(); }
  index_t size() const noexcept { return guard.view().size(); }
};

} // namespace detail

/* The elements of a guard. A guard without a name, as in for (double &x :
 * umem::elements(u.host(umem::write))), lives as long as the range. */
template <class GuardType, class = typename std::remove_reference_t<GuardType>::view_type>
auto elements(GuardType &&guard) {
  if constexpr (std::is_lvalue_reference_v<GuardType>)
    return elements(guard.view());
  else
    return detail::ElementsOfGuard<std::remove_cv_t<GuardType>>{std::forward<GuardType>(guard)};
}

/* The elements of a view in C order as a range of pointers: for std::span and functions that take a
 * pointer and a count. Throws umem::value_error if the view has gaps. */
template <class Type, int Rank>
UMEM_FUNCTION constexpr ContiguousElements<Type> contiguous_elements(View<Type, Rank> const &view) {
  UMEM_CHECK(view.is_contiguous(),
             detail::raise_value("the elements of a view with gaps do not follow each other"));
  return {view.data, view.data ? view.size() : 0};
}

/* Calls functor(first, last) with the fastest iterators over the elements in C order, and returns
 * what it returns. These are pointers if the elements follow each other, a StridedIterator if their
 * distances are equal, else an ElementIterator. The compiler compiles functor for all three; the
 * results must have the same type. */
template <class Type, int Rank, class Function>
auto visit_elements(View<Type, Rank> const &view, Function &&functor) {
  index_t const count = view.data ? view.size() : 0;
  if (view.is_contiguous()) return functor(view.data, view.data + count);
  index_t step = 1;
  if (!detail::has_one_step(view, step)) {
    if constexpr (Rank > 1) /* any other has one step */
      return functor(ElementIterator<Type, Rank>(view), ElementIterator<Type, Rank>(view, count));
  }
  return functor(StridedIterator<Type>(view.data, step),
                 StridedIterator<Type>(view.data, step, count));
}

/* Visits the elements of a guard. */
template <class GuardType, class Function,
          class = typename std::remove_reference_t<GuardType>::view_type>
auto visit_elements(GuardType const &guard, Function &&functor) {
  return visit_elements(guard.view(), std::forward<Function>(functor));
}

} // namespace umem

#endif
