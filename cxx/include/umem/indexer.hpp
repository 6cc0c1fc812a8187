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

#include <umem/view.hpp>

namespace umem {

/* Numbers the elements of extents 0, 1, ... in C order, whatever the strides of the memory are.
 * Trivially copyable; for host and device. It computes with Int, which is std::int32_t or
 * std::int64_t and must hold the number of elements. */
template <int Rank, class Integer = std::int64_t> class Indexer {
  static_assert(std::is_same_v<Integer, std::int32_t> || std::is_same_v<Integer, std::int64_t>,
                "Indexer: Int is std::int32_t or std::int64_t");

public:
  using integer = Integer;
  static constexpr int rank = Rank;

  /* No element; one for Rank == 0. */
  UMEM_FUNCTION constexpr Indexer() noexcept : Indexer(Extents<Rank>()) {}

  /* The extents are those of checked_product, and fit. */
  UMEM_FUNCTION UMEM_CHECKED explicit constexpr Indexer(Extents<Rank> const &extents) noexcept {
    UMEM_ASSERT(fits(extents));
    std::make_unsigned_t<Integer> size = 1; /* wraps around where there is no element in the end */
    for (int k = Rank - 1; k >= 0; k--) {
      extents_[k] = static_cast<Integer>(extents.at[k]);
      strides_[k] = static_cast<Integer>(size);
      size *= static_cast<std::make_unsigned_t<Integer>>(extents_[k]);
    }
    size_ = static_cast<Integer>(size);
  }

  /* Whether Int holds the number of elements of extents. Where there are none, the extents do not
   * matter. */
  UMEM_FUNCTION static constexpr bool fits(Extents<Rank> const &extents) noexcept {
    index_t size = 1;
    for (index_t extent : extents) {
      if (extent == 0) return true;
      if (extent < 0) return false;
    }
    for (index_t extent : extents) {
      if (extent > detail::largest<Integer> / size) return false;
      size *= extent;
    }
    return true;
  }

  /* The number of elements. */
  UMEM_FUNCTION constexpr Integer size() const noexcept { return size_; }

  /* k in [0, Rank) */
  UMEM_FUNCTION UMEM_CHECKED constexpr Integer extent(int k) const noexcept {
    UMEM_ASSERT(detail::is_dimension(k, Rank));
    return extents_[k];
  }

  /* The number of the element at Rank indices. */
  template <class... Indices>
  UMEM_FUNCTION UMEM_CHECKED constexpr Integer offset(Indices... i) const noexcept {
    static_assert(sizeof...(Indices) == Rank, "Indexer: there must be one index per dimension");
    static_assert((detail::is_index<Indices> && ...), "Indexer: indices must be integers");
    return sum(std::make_integer_sequence<int, Rank>(), static_cast<Integer>(i)...);
  }
  UMEM_FUNCTION UMEM_CHECKED constexpr Integer offset(Extents<Rank> const &i) const noexcept {
    Integer result = 0;
    for (int k = 0; k < Rank; k++) {
      UMEM_ASSERT_INDICES(i.at[k] >= 0 && i.at[k] < extents_[k], i, as_view());
      result = static_cast<Integer>(result + static_cast<Integer>(i.at[k]) * strides_[k]);
    }
    return result;
  }

  /* The indices of element number offset, which is in [0, size()). */
  UMEM_FUNCTION UMEM_CHECKED constexpr Extents<Rank> indices(Integer offset) const noexcept {
    UMEM_ASSERT(offset >= 0 && offset < size_);
    Extents<Rank> result;
    for (int k = Rank - 1; k > 0; k--) {
      Integer quotient = static_cast<Integer>(offset / extents_[k]);
      result.at[k] = static_cast<Integer>(offset - quotient * extents_[k]);
      offset = quotient;
    }
    if constexpr (Rank > 0) result.at[0] = offset;
    return result;
  }

private:
  template <int... Nth, class... Indices>
  UMEM_FUNCTION UMEM_CHECKED constexpr Integer sum(std::integer_sequence<int, Nth...>,
                                                   Indices... i) const noexcept {
    if constexpr (Rank > 0)
      UMEM_ASSERT_INDICES(((i >= 0 && i < extents_[Nth]) && ...), Extents<Rank>(i...), as_view());
    return static_cast<Integer>(((i * strides_[Nth]) + ... + Integer(0)));
  }

  /* For messages: the extents, without memory. */
  UMEM_FUNCTION constexpr View<char, Rank> as_view() const noexcept {
    View<char, Rank> view;
    for (int k = 0; k < Rank; k++) view.extents.at[k] = extents_[k];
    return view;
  }

  Integer extents_[detail::slots<Rank>] = {};
  Integer strides_[detail::slots<Rank>] = {};
  Integer size_ = 0;
};

/* Calls f with an Indexer of 32 bits where the number of elements allows, else with one of 64, and
 * returns what f returns. */
template <int Rank, class Function>
constexpr decltype(auto) for_indexer(Extents<Rank> const &extents, Function &&f) {
  if (Indexer<Rank, std::int32_t>::fits(extents))
    return std::forward<Function>(f)(Indexer<Rank, std::int32_t>(extents));
  return std::forward<Function>(f)(Indexer<Rank, std::int64_t>(extents));
}

/* Calls f with an indexer of the interior of a view, whose offsets from its data must fit too. */
template <class Type, int Rank, class Function>
constexpr decltype(auto) for_indexer(View<Type, Rank> const &view, Function &&f) {
  if (Indexer<Rank, std::int32_t>::fits(view.extents) && view.fits_32_bits())
    return std::forward<Function>(f)(Indexer<Rank, std::int32_t>(view.extents));
  return std::forward<Function>(f)(Indexer<Rank, std::int64_t>(view.extents));
}

namespace detail {

/* Divides numbers below 2^31 by a divisor in [1, 2^31) that is known before a kernel starts, by one
 * multiplication: Granlund and Montgomery, "Division by invariant integers using multiplication",
 * PLDI 1994. */
struct Divider {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 0x80000001u; /* floor(2^(31 + shift) / divisor) + 1 */
  std::uint32_t shift = 0;                /* the logarithm of divisor, rounded up */

  constexpr Divider() noexcept = default;
  explicit constexpr Divider(std::uint32_t divisor_) noexcept : divisor(divisor_) {
    while ((std::uint64_t(1) << shift) < divisor) shift++;
    multiplier = static_cast<std::uint32_t>((std::uint64_t(1) << (31 + shift)) / divisor + 1);
  }

  UMEM_FUNCTION std::uint32_t quotient(std::uint32_t n) const noexcept {
#if defined(__CUDA_ARCH__)
    return __umulhi(2 * n, multiplier) >> shift;
#else
    return static_cast<std::uint32_t>((std::uint64_t(2 * n) * multiplier) >> 32) >> shift;
#endif
  }

  /* Replaces n by the quotient and returns the remainder. */
  UMEM_FUNCTION std::uint32_t take_remainder(std::uint32_t &n) const noexcept {
    std::uint32_t q = quotient(n);
    std::uint32_t remainder = n - q * divisor;
    n = q;
    return remainder;
  }
};

} // namespace detail
} // namespace umem

#endif
