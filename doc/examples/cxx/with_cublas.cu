/* A product of matrices by cuBLAS. */
#include <cstdio>
#include <cublas_v2.h>
#include <umem.hpp>
#include <umem/blas.hpp>
#include <umem/with/cublas.hpp>

int main() {
  umem::CudaAsync gpu;
  auto a = umem::Array<double, 2>::full({200, 300}, 1, gpu);
  auto b = umem::Array<double, 2>::full({300, 400}, 2, gpu);
  umem::Array<double, 2> c({200, 400}, gpu);
  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 1;
  /* [cublas] */
  {
    auto left = a.device(umem::read), right = b.device(umem::read);
    auto product = c.device(umem::discard);
    umem::set_stream(handle, product); /* queued in the order of the arrays */
    auto p = umem::to_gemm(*left, *right, *product);
    double const one = 1, zero = 0;
    cublasDgemm(handle, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, p.m, p.n, p.k, &one, p.a, p.lda, p.b,
                p.ldb, &zero, p.c, p.ldc);
  }
  /* [/cublas] */
  std::printf("%g\n", c.get(199, 399));
  cublasDestroy(handle);
}
