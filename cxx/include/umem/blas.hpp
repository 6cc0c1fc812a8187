/* umem/blas.hpp - views as arguments of BLAS and cuBLAS.
 *
 *     auto a = u.host(umem::read), b = v.host(umem::read);
 *     auto c = w.host(umem::write);
 *     auto p = umem::to_gemm(*a, *b, *c);            // c = alpha a b + beta c
 *     cblas_dgemm(CblasColMajor, p.transpose_a ? CblasTrans : CblasNoTrans,
 *                 p.transpose_b ? CblasTrans : CblasNoTrans, p.m, p.n, p.k,
 *                 1.0, p.a, p.lda, p.b, p.ldb, 0.0, p.c, p.ldc);
 *
 * BLAS knows matrices in column-major order with a leading dimension. These functions say which
 * such matrix is in the memory of a view, and whether it is the transpose. Nothing is copied, and
 * no BLAS is included: the results fit CBLAS, the BLAS of Fortran and cuBLAS. Int is the integer of
 * the BLAS: int, or std::int64_t if it has 64 bits. */
#ifndef UMEM_BLAS_HPP
#define UMEM_BLAS_HPP

#include <umem/view.hpp>

namespace umem {

/* A vector: n elements, and their distance. */
template <class Type, class Integer = int> struct BlasVector {
  Integer n;
  Type
      *data; /* the element with the lowest address, as BLAS wants it for negative increments too */
  Integer increment; /* not 0 */
};

/* A matrix in column-major order. */
template <class Type, class Integer = int> struct BlasMatrix {
  bool is_transposed; /* whether the view is the transpose of this matrix: its rows have no gaps */
  Integer rows, columns; /* of the matrix in memory */
  Type *data;
  Integer leading; /* the leading dimension: the distance of columns in elements */
};

/* The arguments of a product c = alpha op(a) op(b) + beta c of matrices in column-major order. */
template <class Type, class Integer = int> struct BlasGemm {
  bool transpose_a, transpose_b;
  Integer m, n, k;
  Type const *a;
  Integer lda;
  Type const *b;
  Integer ldb;
  Type *c;
  Integer ldc;
};

/* The arguments of a product y = alpha op(a) x + beta y. */
template <class Type, class Integer = int> struct BlasGemv {
  bool transpose;
  Integer m, n; /* of the matrix in memory */
  Type const *a;
  Integer lda;
  Type const *x;
  Integer incx;
  Type *y;
  Integer incy;
};

namespace detail {

template <class Integer> Integer blas_int(index_t value) {
  if (value > largest<Integer> || value < -largest<Integer>)
    throw value_error("an extent or stride of " + std::to_string(value) +
                      " exceeds the integers of this BLAS");
  return static_cast<Integer>(value);
}

/* Whether dimension `fast` of a matrix has no gaps, and the other one strides that BLAS allows. */
template <class Type> bool is_blas_order(View<Type, 2> const &view, int fast) noexcept {
  index_t const length = view.extents.at[fast], count = view.extents.at[1 - fast];
  if (length > 1 && view.strides.at[fast] != 1) return false;
  return count <= 1 || length == 0 || view.strides.at[1 - fast] >= length;
}

/* The matrix whose columns are dimension `fast` of the view. */
template <class Integer, class Type>
BlasMatrix<Type, Integer> blas_matrix(View<Type, 2> const &view, int fast) {
  index_t const length = view.extents.at[fast], count = view.extents.at[1 - fast];
  index_t leading = length > 1 ? length : 1; /* where the stride does not matter */
  if (count > 1 && length > 0) leading = view.strides.at[1 - fast];
  return {fast == 1, blas_int<Integer>(length), blas_int<Integer>(count), view.data,
          blas_int<Integer>(leading)};
}

[[noreturn]] inline void raise_blas(std::string const &text, Extents<2> const &extents,
                                    Extents<2> const &strides) {
  raise_text(umemValueError, "%s: a view of extents %s and strides %s", text.c_str(),
             in_words(extents).text, in_words(strides).text);
}

template <class Type> void check_blas_order(View<Type, 2> const &view) {
  if (!is_blas_order(view, 0) && !is_blas_order(view, 1))
    raise_blas("BLAS needs rows or columns without gaps that do not overlap", view.extents,
               view.strides);
}

template <class Operand, class Other>
void check_blas_extents(Operand const &one, Other const &other, char const *what) {
  if (one != other)
    throw value_error(std::string("the extents of ") + what +
                      " do not fit: " + std::to_string(one) + " and " + std::to_string(other));
}

} // namespace detail

/* A view of rank 1. Throws umem::value_error for a stride of 0. */
template <class Integer = int, class Type>
BlasVector<Type, Integer> to_blas(View<Type, 1> const &view) {
  index_t const n = view.extents.at[0], stride = n > 1 ? view.strides.at[0] : 1;
  if (stride == 0) throw value_error("BLAS has no vector whose elements have the distance 0");
  Type *lowest = stride < 0 ? view.data + (n - 1) * stride : view.data;
  return {detail::blas_int<Integer>(n), lowest, detail::blas_int<Integer>(stride)};
}

/* A view of rank 2. Throws umem::value_error unless its rows or its columns have no gaps. */
template <class Integer = int, class Type>
BlasMatrix<Type, Integer> to_blas(View<Type, 2> const &view) {
  detail::check_blas_order(view);
  return detail::blas_matrix<Integer>(view, detail::is_blas_order(view, 0) ? 0 : 1);
}

/* The product of an m x k and a k x n matrix, into an m x n matrix: each may have its rows or its
 * columns without gaps. Throws umem::value_error for other strides, and for extents that do not
 * fit. */
template <class Integer = int, class Operand, class Other, class Type>
BlasGemm<Type, Integer> to_gemm(View<Operand, 2> const &a, View<Other, 2> const &b,
                                View<Type, 2> const &c) {
  constexpr bool fits =
      std::is_same_v<Operand const, Type const> && std::is_same_v<Other const, Type const>;
  static_assert(fits, "to_gemm: the matrices must have the same type of elements");
  static_assert(!std::is_const_v<Type>, "to_gemm: the result is written");
  if constexpr (!fits) {
    return {};
  } else {
    detail::check_blas_extents(a.extents.at[1], b.extents.at[0], "a and b");
    detail::check_blas_extents(a.extents.at[0], c.extents.at[0], "a and c");
    detail::check_blas_extents(b.extents.at[1], c.extents.at[1], "b and c");
    auto const to = to_blas<Integer>(c);
    auto first = to_blas<Integer>(View<Type const, 2>(a));
    auto second = to_blas<Integer>(View<Type const, 2>(b));
    if (to.is_transposed) std::swap(first, second); /* rows without gaps: c' = b' a' */

    return {first.is_transposed != to.is_transposed,
            second.is_transposed != to.is_transposed,
            to.rows,
            to.columns,
            detail::blas_int<Integer>(a.extents.at[1]),
            first.data,
            first.leading,
            second.data,
            second.leading,
            to.data,
            to.leading};
  }
}

/* The product of a matrix and a vector. Throws the same. */
template <class Integer = int, class Operand, class OtherType, class Type>
BlasGemv<Type, Integer> to_gemv(View<Operand, 2> const &a, View<OtherType, 1> const &x,
                                View<Type, 1> const &y) {
  static_assert(std::is_same_v<Operand const, Type const> &&
                    std::is_same_v<OtherType const, Type const>,
                "to_gemv: matrix and vectors must have the same type of elements");
  static_assert(!std::is_const_v<Type>, "to_gemv: the result is written");
  detail::check_blas_extents(a.extents.at[1], x.extents.at[0], "a and x");
  detail::check_blas_extents(a.extents.at[0], y.extents.at[0], "a and y");
  auto const matrix = to_blas<Integer>(View<Type const, 2>(a));
  auto const from = to_blas<Integer>(View<Type const, 1>(x));
  auto const to = to_blas<Integer>(y);
  return {matrix.is_transposed, matrix.rows, matrix.columns, matrix.data, matrix.leading, from.data,
          from.increment,       to.data,     to.increment};
}

} // namespace umem

#endif
