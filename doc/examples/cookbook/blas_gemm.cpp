/* Multiply matrices with BLAS. */
#include <cblas.h>
#include <iostream>
#include <umem.hpp>
#include <umem/blas.hpp>
#include <umem/print.hpp>

int main() {
  auto a = umem::Array<double, 2>::full({2, 3}, 1);
  auto b = umem::Array<double, 2>::full({4, 3}, 2);
  umem::Array<double, 2> c({2, 4});
  a.set(10, 0, 0);
  {
    auto left = a.host(umem::read), right = b.host(umem::read);
    auto product = c.host(umem::discard);
    auto p = umem::to_gemm(*left, right->transpose(), *product); /* nothing is copied */
    cblas_dgemm(CblasColMajor, p.transpose_a ? CblasTrans : CblasNoTrans,
                p.transpose_b ? CblasTrans : CblasNoTrans, p.m, p.n, p.k, 1.0, p.a, p.lda, p.b,
                p.ldb, 0.0, p.c, p.ldc);
  }
  std::cout << c << '\n';
}
