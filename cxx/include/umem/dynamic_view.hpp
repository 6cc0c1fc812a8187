/* umem/dynamic_view.hpp - a view whose rank is known at run time: for code that reads, prints or
 * passes on arrays of any rank. Each access costs a loop over the dimensions; to<N>() returns
 * the View for the work. */
#ifndef UMEM_DYNAMIC_VIEW_HPP
#define UMEM_DYNAMIC_VIEW_HPP

#include <umem/shape.hpp>
#include <umem/view.hpp>

namespace umem {

/* A View of any rank: see View for what the members mean. The first rank() numbers of each are
 * in use. Type may be const. Trivially copyable; host only. */
template <class Type> class DynamicView {
public:
  using element_type = Type;
  using value_type = std::remove_cv_t<Type>;
  static constexpr int max_rank = 8;

  Type *data = nullptr; /* borrowed */
  Extents<max_rank> extents;
  Extents<max_rank> strides;
  Ghosts<max_rank> ghosts;

  /* An empty view of rank 0. */
  DynamicView() = default;

  /* The elements of view. Type may be const where the Type of view is not. */
  template <class OtherType, int Rank,
            class = std::enable_if_t<std::is_same_v<OtherType, Type> ||
                                     std::is_same_v<OtherType const, Type>>>
  DynamicView(View<OtherType, Rank> const &view) noexcept : data(view.data), rank_(Rank) {
    static_assert(Rank <= max_rank, "DynamicView: a view has at most 8 dimensions");
    for (int k = 0; k < Rank; k++) {
      extents.at[k] = view.extents.at[k];
      strides.at[k] = view.strides.at[k];
      ghosts.below.at[k] = view.ghosts.below.at[k];
      ghosts.above.at[k] = view.ghosts.above.at[k];
    }
  }

  /* Elements in C order without gaps. Throws umem::value_error if the shape has more than
   * max_rank dimensions or is not that of an array. */
  DynamicView(Type *data_, Shape const &shape)
      : data(data_), rank_(static_cast<int>(checked(shape).size())) {
    std::copy(shape.begin(), shape.end(), extents.begin());
    strides = c_strides(extents); /* a 0 behind the last extent counts as 1 */
  }

  /* data_ is element (0, ..., 0); there are no ghost cells. Throws umem::value_error if there
   * are not as many strides as extents, or more than max_rank. */
  DynamicView(Type *data_, Shape const &shape, Shape const &strides_) : DynamicView(data_, shape) {
    if (strides_.size() != shape.size())
      detail::raise_text(umemValueError, "the shape %s and the strides %s are not of one rank",
                         detail::in_words(shape).text, detail::in_words(strides_).text);
    std::copy(strides_.begin(), strides_.end(), strides.begin());
  }

  int rank() const noexcept { return rank_; }

  /* k in [0, rank()) */
  UMEM_CHECKED index_t extent(int k) const noexcept { return number(extents, k); }
  UMEM_CHECKED index_t stride(int k) const noexcept { return number(strides, k); }
  [[deprecated("write ghosts.below[k] or ghosts.above[k]")]] index_t ghost(int k) const noexcept {
    return number(ghosts.below, k);
  }

  /* The indices of dimension k, those of ghost cells included, are in [low(k), high(k)). */
  UMEM_CHECKED index_t low(int k) const noexcept { return -number(ghosts.below, k); }
  UMEM_CHECKED index_t high(int k) const noexcept {
    return number(extents, k) + number(ghosts.above, k);
  }

  Shape shape() const { return Shape(extents.begin(), extents.begin() + rank_); }

  /* Elements of the interior; 1 for rank 0. */
  index_t size() const noexcept {
    index_t result = 1;
    for (int k = 0; k < rank_; k++) result *= extents.at[k];
    return result;
  }

  bool is_empty() const noexcept { return !data || size() == 0; }

  /* The element at rank() indices, in braces, as Extents or as a Shape. Throws umem::index_error
   * if there are not rank() indices or one is out of range, and umem::value_error if the view
   * has no memory. */
  Type &at(Shape const &indices) const { return at(indices.data(), indices.size()); }
  Type &at(index_t const *indices, std::size_t count) const {
    if (!data) throw value_error("an element of an empty view");
    if (count != static_cast<std::size_t>(rank_))
      detail::raise_text(umemIndexError, "%zu indices for a view of rank %d", count, rank_);
    index_t offset = 0;
    for (int k = 0; k < rank_; k++) {
      if (indices[k] < low(k) || indices[k] >= high(k))
        detail::raise_index(indices[k], k, low(k), high(k));
      offset += indices[k] * strides.at[k];
    }
    return data[offset];
  }

  /* The elements with a rank that the compiler knows. Throws umem::type_error if it is not
   * Rank. */
  template <int Rank> View<Type, Rank> to() const {
    static_assert(Rank >= 0 && Rank <= max_rank, "DynamicView: a view has at most 8 dimensions");
    if (Rank != rank_)
      detail::raise_text(umemTypeError, "a view of rank %d is none of rank %d", rank_, Rank);
    View<Type, Rank> view(data, {});
    for (int k = 0; k < Rank; k++) {
      view.extents.at[k] = extents.at[k];
      view.strides.at[k] = strides.at[k];
      view.ghosts.below.at[k] = ghosts.below.at[k];
      view.ghosts.above.at[k] = ghosts.above.at[k];
    }
    return view;
  }

private:
  UMEM_CHECKED index_t number(Extents<max_rank> const &numbers, int k) const noexcept {
    UMEM_ASSERT(detail::is_dimension(k, rank_));
    return numbers.at[k];
  }

  /* Returns shape if it is that of an array of at most max_rank dimensions, else throws. */
  static Shape const &checked(Shape const &shape) {
    if (shape.size() > static_cast<std::size_t>(max_rank))
      detail::raise_text(umemValueError, "the shape %s has more than %d dimensions",
                         detail::in_words(shape).text, max_rank);
    checked_product(shape);
    return shape;
  }

  int rank_ = 0;
};

} // namespace umem

#endif
