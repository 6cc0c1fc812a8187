/* with_eigen.cpp - views and guards as maps of Eigen, and back. */
#include "typed.hpp"

#include <umem/adaptors.hpp>
#include <umem/with/eigen.hpp>

#include <Eigen/LU>

/* That a map has the elements of a view at the same addresses. */
template <class M, class T> void expect_same(M const &map, View<T, 2> const &view) {
  ASSERT_EQ(map.rows(), view.extent(0));
  ASSERT_EQ(map.cols(), view.extent(1));
  for (umem::index_t i = 0; i < view.extent(0); i++)
    for (umem::index_t j = 0; j < view.extent(1); j++)
      EXPECT_EQ(&map.coeffRef(i, j), &view(i, j)) << i << ' ' << j;
}

TEST(WithEigen, maps_have_the_elements_of_views_of_any_strides) {
  std::vector<double> memory(100);
  auto const view = View<double, 2>::with_ghosts_from(memory.data(), {3, 4}, {2, 1});
  for (auto const &layout :
       {view, view.with_ghosts(), view.transpose(), view.reversed(0), view.reversed(1).transpose(),
        view.slice(1, 0, 4, 2), view.slice(0, 1, 1),
        View<double, 2>(memory.data(), {1, 5}, {99, 1})}) {
    expect_same(umem::to_eigen(layout), layout);
    auto const back = umem::from_eigen(umem::to_eigen(layout));
    EXPECT_EQ(back.data, layout.data);
    EXPECT_EQ(back.extents, layout.extents);
    EXPECT_EQ(back.strides, layout.strides);
  }
  umem::to_eigen(view.transpose().reversed(1)).setConstant(3);
  int written = 0;
  for (double x : memory) written += x == 3;
  EXPECT_EQ(written, 12); /* no ghost cells */

  auto const column = view.select(1, 2).reversed(0);
  auto map = umem::to_eigen(column);
  map << 1, 2, 3;
  EXPECT_EQ(view(2, 2), 1);
  EXPECT_EQ(umem::from_eigen(map).data, column.data);
  EXPECT_EQ(umem::from_eigen(map).strides, column.strides);
}

TEST(WithEigen, columns_without_gaps_have_the_maps_of_eigens_own_matrices) {
  umem::ArrayOptions<2> options{{1, 2}};
  options.order = umem::column_major;
  umem::Array<double, 2> array = umem::Array<double, 2>::full({3, 4}, 1, umem::Host(), options);
  auto guard = array.host(umem::write);
  auto columns = umem::to_eigen_columns(guard);
  expect_same(columns, *guard);
  Eigen::Ref<Eigen::MatrixXd> ref(columns); /* does not compile if it needs a copy */
  EXPECT_EQ(ref.data(), guard->data);
  EXPECT_EQ(umem::from_eigen(columns).strides, guard->strides);
  View<double const, 2> const same = *guard;
  EXPECT_EQ(umem::to_eigen_columns(same).sum(), 12);
  EXPECT_THROWS(umem::to_eigen_columns(guard->transpose()), umem::value_error,
                "to_eigen_columns: the stride of the first dimension is not 1");
}

TEST(WithEigen, rows_without_gaps_have_maps_that_eigen_does_not_copy) {
  std::vector<double> memory(100, 1);
  auto const view = View<double, 2>::with_ghosts_from(memory.data(), {3, 4}, {2, 1});
  auto rows = umem::to_eigen_rows(view);
  expect_same(rows, view);
  static_assert(decltype(rows)::InnerStrideAtCompileTime == 1);
  using Ref = Eigen::Ref<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
  Ref ref(rows); /* does not compile if it needs a copy */
  EXPECT_EQ(ref.data(), view.data);
  EXPECT_THROW(umem::to_eigen_rows(view.transpose()), umem::value_error);
  auto line = umem::to_eigen_rows(view.select(0, 1));
  EXPECT_EQ(line.sum(), 4);
  EXPECT_THROW(umem::to_eigen_rows(view.select(1, 1)), umem::value_error);
}

TEST(WithEigen, matrices_and_blocks_are_views) {
  Eigen::MatrixXd matrix(3, 4); /* in column-major order */
  auto view = umem::from_eigen(matrix);
  static_assert(std::is_same_v<decltype(view), View<double, 2>>);
  expect_same(matrix, view);
  expect_same(matrix.block(1, 1, 2, 3), umem::from_eigen(matrix.block(1, 1, 2, 3)));
  Eigen::MatrixXd const &only_read = matrix;
  static_assert(std::is_same_v<decltype(umem::from_eigen(only_read)), View<double const, 2>>);
  static_assert(
      std::is_same_v<decltype(umem::from_eigen(only_read.row(0))), View<double const, 1>>);
  auto row = umem::from_eigen(matrix.row(1));
  EXPECT_EQ(row.strides[0], 3);
  EXPECT_EQ(&row(2), &matrix(1, 2));
  Eigen::Vector3f vector(1, 2, 3);
  EXPECT_EQ(umem::from_eigen(vector)(2), 3);
  View<float const, 1> const elements = umem::from_eigen(vector);
  static_assert(
      std::is_same_v<decltype(umem::to_eigen(elements)),
                     Eigen::Map<Eigen::VectorXf const, Eigen::Unaligned, Eigen::InnerStride<>>>);
  EXPECT_EQ(umem::to_eigen(elements).sum(), 6);
}

TEST(WithEigen, guards_of_the_cpu_are_maps) {
  umem::Array<double, 2> array({2, 2});
  {
    auto guard = array.host(umem::discard);
    umem::to_eigen(guard) << 1, 2, 3, 4;
  }
  auto const guard = array.host(umem::read);
  auto const matrix = umem::to_eigen(guard);
  static_assert(
      std::is_same_v<std::remove_const_t<decltype(matrix)>, umem::EigenMap<double const, 2>>);
  EXPECT_EQ(matrix.determinant(), -2);
  EXPECT_EQ(umem::to_eigen_rows(guard)(1, 0), 3);
  umem::Array<double, 2> elsewhere({2, 2}, umem::Limit(umem::MMap::scratch(), 1 << 20));
  auto device = elsewhere.device(umem::discard);
  umem::to_eigen(device).setZero(); /* the CPU can use it */
}
