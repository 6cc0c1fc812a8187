/* umem/mdspan.hpp - views as mdspan: cuda::std::mdspan in programs that nvcc compiles or if the
 * standard library has none, else std::mdspan.
 *
 *     auto span = umem::to_mdspan(view);       // mdspan<T, dextents<index, N>, layout_stride>
 *     auto same = umem::from_mdspan(span);     // View<T, N>
 *     auto left = umem::to_mdspan<std::layout_left>(*column_major.host(umem::read));
 *
 * With this header full_extent of that library is a slice of umem, too.
 *
 * umem.hpp does not include this header: mdspan takes long to compile. UMEM_HAS_MDSPAN is 1 if
 * an mdspan was found; without one, to_mdspan is not declared. */
#ifndef UMEM_MDSPAN_HPP
#define UMEM_MDSPAN_HPP

#include <umem/view.hpp>

#if __has_include(<version>)
#include <version>
#endif

/* A program may have files of both kinds: names that depend on the choice contain it. */
#if __has_include(<cuda/std/mdspan>) && (defined(__CUDACC__) || !defined(__cpp_lib_mdspan))
#include <cuda/std/array>
#include <cuda/std/mdspan>
#include <cuda/std/type_traits>
#define UMEM_HAS_MDSPAN 1
#define UMEM_MDSPAN_NAMESPACE with_cuda_mdspan
#define UMEM_STD cuda::std
#if __has_include(<cuda/std/__mdspan/submdspan_helper.h>)
#define UMEM_HAS_FULL_EXTENT
#endif
#elif defined(__cpp_lib_mdspan)
#include <array>
#include <mdspan>
#include <type_traits>
#define UMEM_HAS_MDSPAN 1
#define UMEM_MDSPAN_NAMESPACE with_std_mdspan
#define UMEM_STD std
#if defined(__cpp_lib_submdspan)
#define UMEM_HAS_FULL_EXTENT
#endif
#else
#define UMEM_HAS_MDSPAN 0
#endif

#if UMEM_HAS_MDSPAN
namespace umem {

namespace detail {

#if defined(UMEM_HAS_FULL_EXTENT)
template <> inline constexpr bool is_full_extent<UMEM_STD::full_extent_t> = true;
#endif

/* The extents of an mdspan of a view with a layout. */
template <class Layout, UMEM_STD::size_t... k>
auto mdspan_extents(UMEM_STD::index_sequence<k...>) -> UMEM_STD::extents<
    index_t, (Known<Layout>::extent(static_cast<int>(k)) == dynamic
                  ? UMEM_STD::dynamic_extent
                  : static_cast<UMEM_STD::size_t>(Known<Layout>::extent(static_cast<int>(k))))...>;

/* The layout of a view of an mdspan. */
template <class Shape, class Layout, UMEM_STD::size_t... k>
constexpr auto layout_of_mdspan(UMEM_STD::index_sequence<k...>) {
  constexpr bool is_right = UMEM_STD::is_same<Layout, UMEM_STD::layout_right>::value;
  constexpr bool is_fixed = ((Shape::static_extent(k) != UMEM_STD::dynamic_extent) || ... || false);
  if constexpr (is_right && is_fixed)
    return FixedExtents<(Shape::static_extent(k) == UMEM_STD::dynamic_extent
                             ? dynamic
                             : static_cast<index_t>(Shape::static_extent(k)))...>();
  else if constexpr (is_right)
    return RowMajor();
  else if constexpr (UMEM_STD::is_same<Layout, UMEM_STD::layout_left>::value)
    return ColumnMajor();
  else
    return Strided();
}

} // namespace detail

inline namespace UMEM_MDSPAN_NAMESPACE {

template <class Type, int Rank>
using mdspan = UMEM_STD::mdspan<Type, UMEM_STD::dextents<index_t, Rank>, UMEM_STD::layout_stride>;

/* The interior of view: an mdspan has no ghost cells and no negative index. Throws
 * umem::value_error if a stride is not positive, which an mdspan does not allow; use
 * View::reversed first. */
template <class Type, int Rank>
UMEM_FUNCTION mdspan<Type, Rank> to_mdspan(View<Type, Rank> const &view) {
  using Span = mdspan<Type, Rank>;
  UMEM_STD::array<index_t, Rank> extents{}, strides{};
  for (int k = 0; k < Rank; k++) {
    UMEM_CHECK(view.strides.at[k] > 0, detail::raise_value("an mdspan has only positive strides"));
    extents[static_cast<UMEM_STD::size_t>(k)] = view.extents.at[k];
    strides[static_cast<UMEM_STD::size_t>(k)] = view.strides.at[k];
  }
  return Span(view.data,
              typename Span::mapping_type(UMEM_STD::dextents<index_t, Rank>(extents), strides));
}

/* The interior of view with a layout that has no gaps: to_mdspan<std::layout_left>(view) of an
 * array in column-major order, to_mdspan<std::layout_right>(view) of one in row-major order. Throws
 * umem::value_error if the elements are not in the order of the layout without gaps. */
template <class Layout, class Type, int Rank>
UMEM_FUNCTION auto to_mdspan(View<Type, Rank> const &view)
    -> UMEM_STD::mdspan<Type, UMEM_STD::dextents<index_t, Rank>, Layout> {
  constexpr bool is_left = UMEM_STD::is_same<Layout, UMEM_STD::layout_left>::value;
  static_assert(is_left || UMEM_STD::is_same<Layout, UMEM_STD::layout_right>::value,
                "to_mdspan: the layout is layout_left or layout_right; without one, the mdspan has "
                "the strides of the view");
  UMEM_CHECK((is_left ? view.transpose() : view).is_contiguous(),
             detail::raise_value(is_left ? "to_mdspan: the elements are not in column-major order "
                                           "without gaps, as layout_left is"
                                         : "to_mdspan: the elements are not in row-major order "
                                           "without gaps, as layout_right is"));
  UMEM_STD::array<index_t, Rank> extents{};
  for (int k = 0; k < Rank; k++) extents[static_cast<UMEM_STD::size_t>(k)] = view.extents.at[k];
  return UMEM_STD::mdspan<Type, UMEM_STD::dextents<index_t, Rank>, Layout>(
      view.data, UMEM_STD::dextents<index_t, Rank>(extents));
}

/* A view whose type says that it has no gaps: layout_left, or layout_right with the extents that
 * the type fixes. */
template <class Type, int Rank, class Layout,
          class = std::enable_if_t<detail::Known<Layout>::is_contiguous>>
UMEM_FUNCTION auto to_mdspan(View<Type, Rank, Layout> const &view) {
  using Shape = decltype(detail::mdspan_extents<Layout>(
      UMEM_STD::make_index_sequence<static_cast<UMEM_STD::size_t>(Rank)>()));
  using Order = std::conditional_t<detail::Known<Layout>::order == row_major,
                                   UMEM_STD::layout_right, UMEM_STD::layout_left>;
  UMEM_STD::array<index_t, Rank> all{};
  for (int k = 0; k < Rank; k++) all[static_cast<UMEM_STD::size_t>(k)] = view.extents.at[k];
  return UMEM_STD::mdspan<Type, Shape, Order>(view.data, Shape(all));
}

/* An mdspan with any layout that has strides as a view, which borrows the memory. The type of the
 * view keeps layout_right, layout_left and, of layout_right, fixed extents. Throws
 * umem::value_error if the mapping of a layout of the program has no strides. */
template <class Type, class ExtentsType, class Layout>
UMEM_FUNCTION auto from_mdspan(UMEM_STD::mdspan<Type, ExtentsType, Layout> const &span) {
  using Span = UMEM_STD::mdspan<Type, ExtentsType, Layout>;
  constexpr int Rank = static_cast<int>(Span::rank());
  UMEM_CHECK(span.is_strided(), detail::raise_value("an mdspan without strides is no view"));
  Extents<Rank> extents, strides;
  for (int k = 0; k < Rank; k++) {
    auto const rank = static_cast<UMEM_STD::size_t>(k);
    extents.at[k] = static_cast<index_t>(span.extent(rank));
    if constexpr (Rank > 0) strides.at[k] = static_cast<index_t>(span.stride(rank));
  }
  using Known = decltype(detail::layout_of_mdspan<ExtentsType, Layout>(
      UMEM_STD::make_index_sequence<Span::rank()>()));
  return View<Type, Rank, Known>(View<Type, Rank>(span.data_handle(), extents, strides));
}

} // namespace UMEM_MDSPAN_NAMESPACE
} // namespace umem

#undef UMEM_STD
#undef UMEM_HAS_FULL_EXTENT
#endif

#endif
