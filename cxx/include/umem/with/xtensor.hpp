/* umem/with/xtensor.hpp - views and guards as tensors of xtensor, and tensors of xtensor as views,
 * without copies.
 *
 *     auto guard = u.host(umem::write);
 *     auto tensor = umem::to_xtensor(guard);         // an xt::xstrided_view of the same elements
 *     tensor = 2 * tensor + 1;
 *     umem::View<double, 2> view = umem::from_xtensor(tensor);
 *
 * umem.hpp does not include this header. It borrows the memory: do not use it after the end of the
 * guard or of the memory of the view. It contains the interior without ghost cells. */
#ifndef UMEM_WITH_XTENSOR_HPP
#define UMEM_WITH_XTENSOR_HPP

#include <umem/array_guard.hpp>

#if __has_include(<xtensor/xadapt.hpp>)
#include <xtensor/xadapt.hpp>
#include <xtensor/xstrided_view.hpp>
#else /* since 0.26 */
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/views/xstrided_view.hpp>
#endif

#include <array>
#include <tuple>

namespace umem {
namespace detail {

/* The rank of a tensor type, or -1 if only the tensor knows it. */
template <class Shape, class = void> inline constexpr int xtensor_rank = -1;
template <class Shape>
inline constexpr int xtensor_rank<Shape, std::void_t<decltype(std::tuple_size<Shape>::value)>> =
    static_cast<int>(std::tuple_size<Shape>::value);

} // namespace detail

/* The elements of a view as a tensor of the same rank with the strides of the view: an
 * xt::xstrided_view over the memory, whose assignments write these elements and no others. */
template <class Type, int Rank> auto to_xtensor(View<Type, Rank> const &view) {
  static_assert(Rank > 0, "to_xtensor: a view of rank 0 is one element: use it as view()");
  std::array<std::size_t, static_cast<std::size_t>(Rank)> shape{};
  std::array<std::ptrdiff_t, static_cast<std::size_t>(Rank)> strides{};
  index_t below = 0, above = 0; /* how far the elements reach from element (0, ..., 0) */
  for (std::size_t k = 0; k < static_cast<std::size_t>(Rank); k++) {
    shape[k] = static_cast<std::size_t>(view.extents.at[k]);
    strides[k] = view.strides.at[k];
    if (view.size() > 0)
      (strides[k] < 0 ? below : above) += (view.extents.at[k] - 1) * view.strides.at[k];
  }
  Type *lowest = view.data ? view.data + below : view.data;
  auto const length = static_cast<std::size_t>(view.size() > 0 ? above - below + 1 : 0);
  auto memory =
      xt::adapt(std::move(lowest), length, xt::no_ownership(), std::array<std::size_t, 1>{length});
  return xt::strided_view(std::move(memory), std::move(shape), std::move(strides),
                          static_cast<std::size_t>(-below), xt::layout_type::dynamic);
}

/* A tensor of a guard of elements that the CPU can use, else umem::not_supported_error. The guard
 * needs a name, and must outlive the tensor. */
template <class GuardType, class = std::enable_if_t<detail::has_view<GuardType>>>
auto to_xtensor(GuardType &&guard) {
  static_assert(detail::has_name<GuardType>,
                "to_xtensor: the guard would end before the tensor: make a variable of it first");
  return to_xtensor(detail::cpu_view(guard));
}

/* A tensor, adaptor or strided view of xtensor as a view with the same strides, which borrows the
 * memory. For an xt::xarray name the rank, as in from_xtensor<2>(array); umem::value_error if the
 * array has another. */
template <int rank = -1, class OtherType> auto from_xtensor(OtherType &&tensor) {
  using Tensor = std::remove_cv_t<std::remove_reference_t<OtherType>>;
  static_assert(std::is_lvalue_reference_v<OtherType>,
                "from_xtensor: the tensor would end before the view: make a variable of it first");
  constexpr int found = detail::xtensor_rank<typename Tensor::shape_type>;
  constexpr int Rank = rank >= 0 ? rank : found;
  static_assert(Rank >= 0, "from_xtensor: name the rank, as in from_xtensor<2>(array)");
  static_assert(found < 0 || Rank == found, "from_xtensor: the tensor has another rank");
  if (tensor.dimension() != static_cast<std::size_t>(Rank))
    throw value_error("from_xtensor: an array of rank " + std::to_string(tensor.dimension()) +
                      " is no view of rank " + std::to_string(Rank));
  using Type = std::remove_pointer_t<decltype(tensor.data())>;
  Extents<Rank> extents, strides;
  for (std::size_t k = 0; k < static_cast<std::size_t>(Rank); k++) {
    extents.at[k] = static_cast<index_t>(tensor.shape()[k]);
    strides.at[k] = static_cast<index_t>(tensor.strides()[k]);
  }
  return View<Type, Rank>(tensor.data() + tensor.data_offset(), extents, strides);
}

} // namespace umem

#endif
