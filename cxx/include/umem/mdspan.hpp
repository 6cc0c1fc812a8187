/* umem/mdspan.hpp - views as mdspan: cuda::std::mdspan in programs that nvcc compiles or if the
 * standard library has none, else std::mdspan.
 *
 *     auto span = umem::to_mdspan(view);       // mdspan<T, dextents<index, N>, layout_stride>
 *     auto same = umem::from_mdspan(span);     // View<T, N>
 *
 * umem.hpp does not include this header: mdspan takes long to compile. UMEM_HAS_MDSPAN is 1 if
 * an mdspan was found; without one, to_mdspan is not declared. */
#ifndef UMEM_MDSPAN_HPP
#define UMEM_MDSPAN_HPP

#include <umem/config.hpp>
#include <umem/extents.hpp>
#include <umem/view.hpp>
#include <umem/view_error.hpp>

#if __has_include(<version>)
#include <version>
#endif

/* A program may have files of both kinds: names that depend on the choice contain it. */
#if __has_include(<cuda/std/mdspan>) && (defined(__CUDACC__) || !defined(__cpp_lib_mdspan))
#include <cuda/std/array>
#include <cuda/std/mdspan>
#define UMEM_HAS_MDSPAN 1
#define UMEM_MDSPAN_NAMESPACE with_cuda_mdspan
#define UMEM_STD cuda::std
#elif defined(__cpp_lib_mdspan)
#include <array>
#include <mdspan>
#define UMEM_HAS_MDSPAN 1
#define UMEM_MDSPAN_NAMESPACE with_std_mdspan
#define UMEM_STD std
#else
#define UMEM_HAS_MDSPAN 0
#endif

#if UMEM_HAS_MDSPAN
namespace umem {

inline namespace UMEM_MDSPAN_NAMESPACE {

template <class T, int N>
using mdspan = UMEM_STD::mdspan<T, UMEM_STD::dextents<index, N>, UMEM_STD::layout_stride>;

/* The interior of view: an mdspan has no ghost cells and no negative index. Throws
 * umem::value_error if a stride is not positive, which an mdspan does not allow; use
 * View::reversed first. */
template <class T, int N> UMEM_FUNCTION mdspan<T, N> to_mdspan(View<T, N> const &view) {
  using Span = mdspan<T, N>;
  UMEM_STD::array<index, N> extents{}, strides{};
  for (int k = 0; k < N; k++) {
    UMEM_CHECK(view.strides.at[k] > 0, detail::raise_value("an mdspan has only positive strides"));
    extents[static_cast<UMEM_STD::size_t>(k)] = view.extents.at[k];
    strides[static_cast<UMEM_STD::size_t>(k)] = view.strides.at[k];
  }
  return Span(view.data,
              typename Span::mapping_type(UMEM_STD::dextents<index, N>(extents), strides));
}

/* An mdspan with any layout that has strides as a view, which borrows the memory. Throws umem::value_error if the
 * mapping of a layout of the program has no strides. */
template <class T, class E, class Layout>
UMEM_FUNCTION auto from_mdspan(UMEM_STD::mdspan<T, E, Layout> const &span) {
  using Span = UMEM_STD::mdspan<T, E, Layout>;
  constexpr int N = static_cast<int>(Span::rank());
  UMEM_CHECK(span.is_strided(), detail::raise_value("an mdspan without strides is no view"));
  Extents<N> extents, strides;
  for (int k = 0; k < N; k++) {
    auto const rank = static_cast<UMEM_STD::size_t>(k);
    extents.at[k] = static_cast<index>(span.extent(rank));
    strides.at[k] = static_cast<index>(span.stride(rank));
  }
  return View<T, N>(span.data_handle(), extents, strides);
}

} // namespace UMEM_MDSPAN_NAMESPACE
} // namespace umem

#undef UMEM_STD
#endif

#endif
