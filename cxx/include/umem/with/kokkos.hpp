/* umem/with/kokkos.hpp - views and guards as unmanaged views of Kokkos, and views of Kokkos as
 * umem's, without copies.
 *
 *     auto guard = u.host(umem::write);
 *     auto k = umem::to_kokkos(guard);               // a Kokkos::View of the same elements
 *     Kokkos::parallel_for(policy, KOKKOS_LAMBDA(int i, int j) { k(i, j) += 1; });
 *     umem::View<double, 2> view = umem::from_kokkos(k);
 *
 * umem.hpp does not include this header. Kokkos does not own the memory: do not use its view after
 * the end of the guard or of the memory of the view, and call Kokkos::fence before a guard ends.
 * Views of Kokkos contain the interior without ghost cells. */
#ifndef UMEM_WITH_KOKKOS_HPP
#define UMEM_WITH_KOKKOS_HPP

#include <umem/array_guard.hpp>

#include <Kokkos_Core.hpp>

namespace umem {
namespace detail {

/* Type with Rank stars. */
template <class Type, int Rank> struct KokkosData {
  using type = typename KokkosData<Type, Rank - 1>::type *;
};
template <class Type> struct KokkosData<Type, 0> { using type = Type; };

} // namespace detail

/* A view of Kokkos of memory that it does not own, with any strides or, for views whose type has
 * that layout, Kokkos::LayoutRight or Kokkos::LayoutLeft. Space: the memory space. Type const: to
 * read. */
template <class Type, int Rank, class Space = Kokkos::HostSpace,
          class Layout = Kokkos::LayoutStride>
using KokkosView = Kokkos::View<typename detail::KokkosData<Type, Rank>::type, Layout, Space,
                                Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/* The elements of a view with its strides. Space is where the memory is: Kokkos::CudaSpace for the
 * memory of a GPU. Throws umem::value_error if a stride is negative, which Kokkos does not have;
 * use View::reversed first. */
template <class Space = Kokkos::HostSpace, class Type, int Rank>
KokkosView<Type, Rank, Space> to_kokkos(View<Type, Rank> const &view) {
  static_assert(Rank <= 8, "to_kokkos: views of Kokkos have at most 8 dimensions");
  Kokkos::LayoutStride layout;
  for (int k = 0; k < Rank; k++) {
    if (view.strides.at[k] < 0 && view.extents.at[k] > 1)
      detail::raise_value("a view of Kokkos has no negative strides");
    layout.dimension[k] = static_cast<std::size_t>(view.extents.at[k]);
    layout.stride[k] = static_cast<std::size_t>(view.strides.at[k] < 0 ? 0 : view.strides.at[k]);
  }
  return KokkosView<Type, Rank, Space>(view.data, layout);
}

/* The elements of a view whose type says that they have no gaps. */
template <class Space = Kokkos::HostSpace, class Type, int Rank, class Layout,
          class = std::enable_if_t<detail::Known<Layout>::is_contiguous>>
auto to_kokkos(View<Type, Rank, Layout> const &view) {
  static_assert(Rank <= 8, "to_kokkos: views of Kokkos have at most 8 dimensions");
  using Other = std::conditional_t<detail::Known<Layout>::order == row_major, Kokkos::LayoutRight,
                                   Kokkos::LayoutLeft>;
  Other layout;
  for (int k = 0; k < Rank; k++) layout.dimension[k] = static_cast<std::size_t>(view.extents.at[k]);
  return KokkosView<Type, Rank, Space, Other>(view.data, layout);
}

/* A view of Kokkos of a guard. The guard needs a name, and must outlive the view of Kokkos. Throws
 * umem::not_supported_error if Space is one of the CPU, and the CPU cannot use the elements. */
template <class Space = Kokkos::HostSpace, class GuardType,
          class = std::enable_if_t<detail::has_view<GuardType>>>
auto to_kokkos(GuardType &&guard) {
  static_assert(detail::has_name<GuardType>,
                "to_kokkos: the guard would end before the view: make a variable of it first");
  if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, Space>::accessible)
    return to_kokkos<Space>(detail::cpu_view(guard));
  else
    return to_kokkos<Space>(guard.view());
}

/* A view of Kokkos with any layout as a view with the same strides. That of a LayoutRight has a
 * last stride of 1 in its type; there may be gaps between its rows. It borrows the memory, which
 * the view of Kokkos may own: keep that view alive. */
template <class Data, class... Properties>
auto from_kokkos(Kokkos::View<Data, Properties...> const &view) {
  using Given = Kokkos::View<Data, Properties...>;
  constexpr int Rank = static_cast<int>(Given::rank);
  Extents<Rank> extents, strides;
  for (int k = 0; k < Rank; k++) {
    extents.at[k] = static_cast<index_t>(view.extent(static_cast<std::size_t>(k)));
    strides.at[k] = static_cast<index_t>(view.stride(static_cast<std::size_t>(k)));
  }
  using Known =
      std::conditional_t<std::is_same_v<typename Given::array_layout, Kokkos::LayoutRight>,
                         UnitStride, Strided>;
  return View<typename Given::value_type, Rank, Known>(
      View<typename Given::value_type, Rank>(view.data(), extents, strides));
}

} // namespace umem

#endif
