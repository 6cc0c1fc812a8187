/* umem/indexer.hpp - from the indices of an element to its number in C order, and back.
 *
 *     umem::for_indexer(view.extents, [&](auto indexer) {
 *       for (umem::index_t n = 0; n < indexer.size(); n++) view(indexer.indices(n)) = 0;
 *     });
 *
 * Divisions of 64 bits take several times those of 32 bits, on GPUs most of all: for_indexer
 * chooses. */
#ifndef UMEM_INDEXER_HPP
#define UMEM_INDEXER_HPP

#include <umem/config.hpp>
#include <umem/extents.hpp>
#include <umem/view.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace umem {

/* Numbers the elements of extents 0, 1, ... in C order, whatever the strides of the memory are.
 * Trivially copyable; for host and device. It computes with Int, which is std::int32_t or
 * std::int64_t and must hold the number of elements. */
template <int N, class Int = std::int64_t> class Indexer {
  static_assert(std::is_same_v<Int, std::int32_t> || std::is_same_v<Int, std::int64_t>,
                "Indexer: Int is std::int32_t or std::int64_t");

public:
  using integer = Int;
  static constexpr int rank = N;

  /* No element; one for N == 0. */
  UMEM_FUNCTION constexpr Indexer() noexcept : Indexer(Extents<N>()) {}

  /* The extents are those of checked_product, and fit. */
  UMEM_FUNCTION UMEM_CHECKED explicit constexpr Indexer(Extents<N> const &extents) noexcept {
    UMEM_ASSERT(fits(extents));
    std::make_unsigned_t<Int> size = 1; /* wraps around where there is no element in the end */
    for (int k = N - 1; k >= 0; k--) {
      extents_[k] = static_cast<Int>(extents.at[k]);
      strides_[k] = static_cast<Int>(size);
      size *= static_cast<std::make_unsigned_t<Int>>(extents_[k]);
    }
    size_ = static_cast<Int>(size);
  }

  /* Whether Int holds the number of elements of extents. Where there are none, the extents do not
   * matter. */
  UMEM_FUNCTION static constexpr bool fits(Extents<N> const &extents) noexcept {
    index_t size = 1;
    for (index_t extent : extents) {
      if (extent == 0) return true;
      if (extent < 0) return false;
    }
    for (index_t extent : extents) {
      if (extent > detail::largest<Int> / size) return false;
      size *= extent;
    }
    return true;
  }

  /* The number of elements. */
  UMEM_FUNCTION constexpr Int size() const noexcept { return size_; }

  /* k in [0, N) */
  UMEM_FUNCTION UMEM_CHECKED constexpr Int extent(int k) const noexcept {
    UMEM_ASSERT(detail::is_dimension(k, N));
    return extents_[k];
  }

  /* The number of the element at N indices. */
  template <class... I> UMEM_FUNCTION UMEM_CHECKED constexpr Int offset(I... i) const noexcept {
    static_assert(sizeof...(I) == N, "Indexer: there must be one index per dimension");
    static_assert((detail::is_index<I> && ...), "Indexer: indices must be integers");
    return sum(std::make_integer_sequence<int, N>(), static_cast<Int>(i)...);
  }
  UMEM_FUNCTION UMEM_CHECKED constexpr Int offset(Extents<N> const &i) const noexcept {
    Int result = 0;
    for (int k = 0; k < N; k++) {
      UMEM_ASSERT_INDICES(i.at[k] >= 0 && i.at[k] < extents_[k], i, as_view());
      result = static_cast<Int>(result + static_cast<Int>(i.at[k]) * strides_[k]);
    }
    return result;
  }

  /* The indices of element number offset, which is in [0, size()). */
  UMEM_FUNCTION UMEM_CHECKED constexpr Extents<N> indices(Int offset) const noexcept {
    UMEM_ASSERT(offset >= 0 && offset < size_);
    Extents<N> result;
    for (int k = N - 1; k > 0; k--) {
      Int quotient = static_cast<Int>(offset / extents_[k]);
      result.at[k] = static_cast<Int>(offset - quotient * extents_[k]);
      offset = quotient;
    }
    if constexpr (N > 0) result.at[0] = offset;
    return result;
  }

private:
  template <int... K, class... I>
  UMEM_FUNCTION UMEM_CHECKED constexpr Int sum(std::integer_sequence<int, K...>,
                                               I... i) const noexcept {
    if constexpr (N > 0)
      UMEM_ASSERT_INDICES(((i >= 0 && i < extents_[K]) && ...), Extents<N>(i...), as_view());
    return static_cast<Int>(((i * strides_[K]) + ... + Int(0)));
  }

  /* For messages: the extents, without memory. */
  UMEM_FUNCTION constexpr View<char, N> as_view() const noexcept {
    View<char, N> view;
    for (int k = 0; k < N; k++) view.extents.at[k] = extents_[k];
    return view;
  }

  Int extents_[detail::slots<N>] = {};
  Int strides_[detail::slots<N>] = {};
  Int size_ = 0;
};

/* Calls f with an Indexer of 32 bits where the number of elements allows, else with one of 64, and
 * returns what f returns. */
template <int N, class F> constexpr decltype(auto) for_indexer(Extents<N> const &extents, F &&f) {
  if (Indexer<N, std::int32_t>::fits(extents))
    return std::forward<F>(f)(Indexer<N, std::int32_t>(extents));
  return std::forward<F>(f)(Indexer<N, std::int64_t>(extents));
}

/* The same for the interior of a view, whose offsets from its data must fit too. */
template <class T, int N, class F>
constexpr decltype(auto) for_indexer(View<T, N> const &view, F &&f) {
  if (Indexer<N, std::int32_t>::fits(view.extents) && view.fits_32_bits())
    return std::forward<F>(f)(Indexer<N, std::int32_t>(view.extents));
  return std::forward<F>(f)(Indexer<N, std::int64_t>(view.extents));
}

} // namespace umem

#endif
