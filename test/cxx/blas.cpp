/* blas.cpp - views as arguments of BLAS: a BLAS of a few lines computes with them. */
#include "typed.hpp"

#include <umem/blas.hpp>

/* c = alpha op(a) op(b) + beta c in column-major order, as in the reference BLAS. */
template <class T, class Int> void gemm(T alpha, umem::BlasGemm<T, Int> const &p, T beta) {
  EXPECT_GE(p.lda, std::max<Int>(1, p.transpose_a ? p.k : p.m));
  EXPECT_GE(p.ldb, std::max<Int>(1, p.transpose_b ? p.n : p.k));
  EXPECT_GE(p.ldc, std::max<Int>(1, p.m));
  for (Int i = 0; i < p.m; i++)
    for (Int j = 0; j < p.n; j++) {
      T sum = 0;
      for (Int l = 0; l < p.k; l++)
        sum += (p.transpose_a ? p.a[l + i * p.lda] : p.a[i + l * p.lda]) *
               (p.transpose_b ? p.b[j + l * p.ldb] : p.b[l + j * p.ldb]);
      p.c[i + j * p.ldc] = alpha * sum + beta * p.c[i + j * p.ldc];
    }
}

/* The element i of a vector of BLAS, whose first is the last in memory if the increment is
 * negative. */
template <class T> T &element_of(T *data, int n, int increment, int i) {
  return data[increment < 0 ? (i - (n - 1)) * increment : i * increment];
}

template <class T> void gemv(T alpha, umem::BlasGemv<T> const &p, T beta) {
  int const rows = p.transpose ? p.n : p.m, columns = p.transpose ? p.m : p.n;
  for (int i = 0; i < rows; i++) {
    T sum = 0;
    for (int j = 0; j < columns; j++)
      sum += (p.transpose ? p.a[j + i * p.lda] : p.a[i + j * p.lda]) *
             element_of(p.x, columns, p.incx, j);
    T &y = element_of(p.y, rows, p.incy, i);
    y = alpha * sum + beta * y;
  }
}

/* A matrix of numbered elements, with rows or columns without gaps, alone or inside a larger
 * one. */
struct Matrix {
  Matrix(umem::index_t rows, umem::index_t columns, bool by_columns, umem::index_t border)
      : memory(static_cast<std::size_t>((rows + 2 * border) * (columns + 2 * border) + 1)) {
    double next = 1;
    for (double &x : memory) x = next++;
    umem::Extents<2> extents = {rows, columns};
    if (by_columns) extents = {columns, rows};
    view = View<double, 2>::with_ghosts_from(memory.data(), extents, {border, border});
    if (by_columns) view = view.transpose();
  }

  std::vector<double> memory;
  View<double, 2> view;
};

TEST(Blas, multiplies_matrices_with_rows_or_columns_without_gaps) {
  for (int layouts = 0; layouts < 8; layouts++)
    for (umem::index_t border : {0, 2})
      for (auto [m, n, k] : {std::array<umem::index_t, 3>{2, 3, 4},
                             {1, 3, 2},
                             {3, 1, 2},
                             {3, 2, 1},
                             {1, 1, 1},
                             {2, 2, 0},
                             {0, 2, 2}}) {
        SCOPED_TRACE(testing::Message() << layouts << ' ' << border << ' ' << m << n << k);
        Matrix a(m, k, layouts & 1, border), b(k, n, layouts & 2, border),
            c(m, n, layouts & 4, border);
        Matrix expected = c;
        auto const offset = c.view.data - c.memory.data();
        for (umem::index_t i = 0; i < m; i++)
          for (umem::index_t j = 0; j < n; j++) {
            double sum = 0;
            for (umem::index_t l = 0; l < k; l++) sum += a.view(i, l) * b.view(l, j);
            auto at = offset + i * c.view.stride(0) + j * c.view.stride(1);
            double &x = expected.memory[static_cast<std::size_t>(at)];
            x = 2 * sum + 3 * x;
          }
        gemm(2.0, umem::to_gemm(a.view, View<double const, 2>(b.view), c.view), 3.0);
        EXPECT_EQ(c.memory, expected.memory); /* and nothing around it */
      }
}

TEST(Blas, multiplies_matrices_and_vectors) {
  for (bool by_columns : {false, true}) {
    Matrix a(2, 3, by_columns, 1);
    std::vector<double> x = {1, 2, 3, 4, 5, 6}, y = {7, 8, 9, 10};
    auto const every_second =
        View<double, 1>(x.data(), {6}).slice(0, 1, 6, 2).reversed(0);               /* 6 4 2 */
    auto const back = View<double, 1>(y.data(), {4}).slice(0, 0, 4, 2).reversed(0); /* 9 7 */
    double const first = 6 * a.view(0, 0) + 4 * a.view(0, 1) + 2 * a.view(0, 2);
    double const second = 6 * a.view(1, 0) + 4 * a.view(1, 1) + 2 * a.view(1, 2);
    gemv(2.0, umem::to_gemv(a.view, every_second, back), 1.0);
    EXPECT_EQ(y, (std::vector<double>{7 + 2 * second, 8, 9 + 2 * first, 10}));
  }
}

TEST(Blas, has_matrices_and_vectors_in_memory) {
  float memory[24] = {};
  View<float, 2> const view(memory, {4, 6});
  auto rows = umem::to_blas(view.slice(1, 1, 4));
  EXPECT_TRUE(rows.is_transposed);
  EXPECT_EQ(rows.rows, 3);
  EXPECT_EQ(rows.columns, 4);
  EXPECT_EQ(rows.leading, 6);
  EXPECT_EQ(rows.data, memory + 1);
  auto columns = umem::to_blas<std::int64_t>(view.transpose());
  static_assert(std::is_same_v<decltype(columns), umem::BlasMatrix<float, std::int64_t>>);
  EXPECT_FALSE(columns.is_transposed);
  EXPECT_EQ(columns.rows, 6);
  EXPECT_EQ(columns.leading, 6);
  auto one = umem::to_blas(view.slice(0, 2, 3)); /* one row: both orders fit */
  EXPECT_GE(one.leading, one.rows);
  auto vector = umem::to_blas(view.select(1, 2).reversed(0));
  EXPECT_EQ(vector.n, 4);
  EXPECT_EQ(vector.increment, -6);
  EXPECT_EQ(vector.data, memory + 2); /* the lowest address */
  EXPECT_EQ(umem::to_blas(View<float, 1>(memory, {1}, {0})).increment, 1);
  EXPECT_EQ(umem::to_blas(View<float, 1>(memory, {0}, {-3})).data, memory);
}

TEST(Blas, refuses_what_it_does_not_have) {
  double memory[24] = {};
  View<double, 2> const view(memory, {4, 6});
  char const *complaint =
      "BLAS needs rows or columns without gaps that do not overlap: a view of extents "
      "(4, 3) and strides (6, 2)";
  EXPECT_THROWS(umem::to_blas(view.slice(1, 0, 6, 2)), umem::value_error, complaint);
  EXPECT_THROW(umem::to_blas(view.reversed(0)), umem::value_error);
  EXPECT_THROW(umem::to_blas(View<double, 2>(memory, {4, 6}, {1, 1})), umem::value_error);
  EXPECT_THROWS(umem::to_blas(View<double, 1>(memory, {2}, {0})), umem::value_error,
                "BLAS has no vector whose elements have the distance 0");
  umem::index_t const large = umem::index_t(1) << 31;
  char const *beyond = "an extent or stride of 2147483648 exceeds the integers of this BLAS";
  EXPECT_THROWS(umem::to_blas(View<double, 1>(memory, {large})), umem::value_error, beyond);
  EXPECT_THROWS(umem::to_blas(View<double, 1>(memory, {2}, {large})), umem::value_error, beyond);
  EXPECT_THROWS(umem::to_blas(View<double, 2>(memory, {2, 2}, {large, 1})), umem::value_error,
                beyond);
  EXPECT_EQ(umem::to_blas<std::int64_t>(View<double, 1>(memory, {large})).n, large);
  EXPECT_THROWS(umem::to_gemm(view, view, view), umem::value_error,
                "the extents of a and b do not fit: 6 and 4");
  EXPECT_THROW(umem::to_gemm(view, view.transpose(), view), umem::value_error);
  EXPECT_THROW(umem::to_gemm(view.transpose(), view, view), umem::value_error);
  View<double, 1> const x(memory, {4});
  EXPECT_THROW(umem::to_gemv(view, x, x), umem::value_error);
  EXPECT_THROW(umem::to_gemv(view.transpose(), x, x), umem::value_error);
}
