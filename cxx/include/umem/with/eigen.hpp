/* umem/with/eigen.hpp - views and guards as maps of Eigen, and matrices of Eigen as views, without
 * copies.
 *
 *     auto guard = u.host(umem::write);
 *     auto matrix = umem::to_eigen(guard);           // an Eigen::Map of the same elements
 *     matrix *= 2;
 *     umem::View<double, 2> view = umem::from_eigen(matrix);
 *
 * umem.hpp does not include this header. It needs Eigen 3.4 or later. A map borrows the memory: do
 * not use it after the end of the guard or of the memory of the view. Maps contain the interior
 * without ghost cells. */
#ifndef UMEM_WITH_EIGEN_HPP
#define UMEM_WITH_EIGEN_HPP

#include <umem/array_guard.hpp>

#include <Eigen/Core>

static_assert(EIGEN_VERSION_AT_LEAST(3, 4, 0), "umem/with/eigen.hpp needs Eigen 3.4 or later");

namespace umem {
namespace detail {

/* The matrix of which a map of rank Rank is. */
template <class Type, int Rank>
using EigenMatrix =
    Eigen::Matrix<std::remove_cv_t<Type>, Eigen::Dynamic, Rank == 1 ? 1 : Eigen::Dynamic,
                  Rank == 1 ? Eigen::ColMajor : Eigen::RowMajor>;
template <class Type, int Rank>
using EigenConstness = std::conditional_t<std::is_const_v<Type>, EigenMatrix<Type, Rank> const,
                                          EigenMatrix<Type, Rank>>;

template <int Rank>
using EigenStride = std::conditional_t<Rank == 1, Eigen::InnerStride<>,
                                       Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
template <int Rank>
using EigenRowStride = std::conditional_t<Rank == 1, Eigen::Stride<0, 0>, Eigen::OuterStride<>>;

template <int Rank> constexpr void check_eigen_rank() {
  static_assert(Rank == 1 || Rank == 2,
                "to_eigen: Eigen has vectors and matrices: use View::select or View::reshape to "
                "make a view of rank 1 or 2");
}

} // namespace detail

/* A column vector (Rank is 1) or a matrix (Rank is 2) with any strides. Type const: to read. */
template <class Type, int Rank>
using EigenMap =
    Eigen::Map<detail::EigenConstness<Type, Rank>, Eigen::Unaligned, detail::EigenStride<Rank>>;

/* A map for elements of a row that follow each other: faster, and for arguments of type
 * Eigen::Ref. */
template <class Type, int Rank>
using EigenRows =
    Eigen::Map<detail::EigenConstness<Type, Rank>, Eigen::Unaligned, detail::EigenRowStride<Rank>>;

/* A map for elements of a column that follow each other. */
template <class Type>
using EigenColumns = Eigen::Map<
    std::conditional_t<std::is_const_v<Type>,
                       Eigen::Matrix<std::remove_cv_t<Type>, Eigen::Dynamic, Eigen::Dynamic> const,
                       Eigen::Matrix<std::remove_cv_t<Type>, Eigen::Dynamic, Eigen::Dynamic>>,
    Eigen::Unaligned, Eigen::OuterStride<>>;

/* The elements of a view with all its strides, which may be negative. Eigen does not use vector
 * instructions for these maps, and copies them for products of matrices: if the rows have no gaps,
 * use to_eigen_rows. */
template <class Type, int Rank> EigenMap<Type, Rank> to_eigen(View<Type, Rank> const &view) {
  detail::check_eigen_rank<Rank>();
  if constexpr (Rank == 1)
    return EigenMap<Type, Rank>(view.data, view.extents.at[0],
                                Eigen::InnerStride<>(view.strides.at[0]));
  else
    return EigenMap<Type, Rank>(view.data, view.extents.at[0], view.extents.at[1],
                                detail::EigenStride<Rank>(view.strides.at[0], view.strides.at[1]));
}

/* A map of a guard of elements that the CPU can use, else umem::not_supported_error. The guard
 * needs a name, and must outlive the map. */
template <class GuardType, class = std::enable_if_t<detail::has_view<GuardType>>>
auto to_eigen(GuardType &&guard) {
  static_assert(detail::has_name<GuardType>,
                "to_eigen: the guard would end before the map: make a variable of it first");
  return to_eigen(detail::cpu_view(guard));
}

/* The elements of a view or guard whose last dimension has stride 1, as those of arrays; else
 * umem::value_error. For columns without gaps see to_eigen_columns. */
template <class Type, int Rank> EigenRows<Type, Rank> to_eigen_rows(View<Type, Rank> const &view) {
  detail::check_eigen_rank<Rank>();
  View<Type, Rank> const rows = view.unit_stride();
  if constexpr (Rank == 1)
    return EigenRows<Type, Rank>(rows.data, rows.extents.at[0]);
  else
    return EigenRows<Type, Rank>(rows.data, rows.extents.at[0], rows.extents.at[1],
                                 Eigen::OuterStride<>(rows.strides.at[0]));
}
template <class GuardType, class = std::enable_if_t<detail::has_view<GuardType>>>
auto to_eigen_rows(GuardType &&guard) {
  static_assert(detail::has_name<GuardType>,
                "to_eigen_rows: the guard would end before the map: make a variable of it first");
  return to_eigen_rows(detail::cpu_view(guard));
}

/* The elements of a view or guard whose first dimension has stride 1, as those of arrays in
 * column-major order: the order of Eigen's own matrices. Else umem::value_error. */
template <class Type> EigenColumns<Type> to_eigen_columns(View<Type, 2> const &view) {
  if (view.strides.at[0] != 1 && view.extents.at[0] > 1)
    detail::raise_value("to_eigen_columns: the stride of the first dimension is not 1");
  return EigenColumns<Type>(view.data, view.extents.at[0], view.extents.at[1],
                            Eigen::OuterStride<>(view.strides.at[1]));
}
template <class GuardType, class = std::enable_if_t<detail::has_view<GuardType>>>
auto to_eigen_columns(GuardType &&guard) {
  static_assert(
      detail::has_name<GuardType>,
      "to_eigen_columns: the guard would end before the map: make a variable of it first");
  return to_eigen_columns(detail::cpu_view(guard));
}

/* A matrix, map or block of Eigen as a view with the same strides: of rank 1 for vectors, else 2.
 * It borrows the memory. T is const if the argument does not allow to write. */
template <class MatrixType> auto from_eigen(MatrixType &&matrix) {
  using Matrix = std::remove_cv_t<std::remove_reference_t<MatrixType>>;
  static_assert((Matrix::Flags & Eigen::DirectAccessBit) != 0,
                "from_eigen: an expression has no elements in memory: assign it to a matrix first");
  static_assert(std::is_lvalue_reference_v<MatrixType> ||
                    !std::is_base_of_v<Eigen::PlainObjectBase<Matrix>, Matrix>,
                "from_eigen: the matrix would end before the view: make a variable of it first");
  using Type = std::remove_pointer_t<decltype(matrix.data())>;
  if constexpr (Matrix::IsVectorAtCompileTime)
    return View<Type, 1>(matrix.data(), {matrix.size()}, {matrix.innerStride()});
  else
    return View<Type, 2>(matrix.data(), {matrix.rows(), matrix.cols()},
                         {matrix.rowStride(), matrix.colStride()});
}

} // namespace umem

#endif
