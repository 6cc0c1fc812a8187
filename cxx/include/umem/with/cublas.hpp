/* umem/with/cublas.hpp - cuBLAS in the order of a context.
 *
 *     auto a = u.device(umem::read), b = v.device(umem::read);
 *     auto c = w.device(umem::write);
 *     umem::set_stream(handle, c);                   // the calls below follow the work of w
 *     auto p = umem::to_gemm(*a, *b, *c);            // umem/blas.hpp
 *     cublasDgemm(handle, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
 *                 p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, p.m, p.n, p.k,
 *                 &one, p.a, p.lda, p.b, p.ldb, &zero, p.c, p.ldc);
 *
 * umem.hpp does not include this header. It needs the header cublas_v2.h of the CUDA toolkit. */
#ifndef UMEM_WITH_CUBLAS_HPP
#define UMEM_WITH_CUBLAS_HPP

#include <umem/array_guard.hpp>
#include <umem/blas.hpp>
#include <umem/place.hpp>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

namespace umem {

/* Lets a handle of cuBLAS queue its work on the stream of a context: for umem::CudaAsync its own,
 * for umem::Cuda and umem::CudaManaged the legacy default stream. If all arrays of a call are on
 * this context, the order of the calls is that of the program; let the context wait for others
 * first (umem::Context::wait). Throws umem::not_supported_error for a context that is not one of a
 * GPU, and umem::runtime_error if cuBLAS refuses the stream. */
inline void set_stream(cublasHandle_t handle, Context const &context) {
  Place const place(context);
  if (!place.is_device())
    throw not_supported_error(std::string("cuBLAS has no stream for ") + context.name() +
                              ", which is not memory of a GPU");
  std::uintptr_t const stream = place.device().stream;
  cublasStatus_t const status =
      cublasSetStream(handle, stream ? reinterpret_cast<cudaStream_t>(stream) : cudaStreamLegacy);
  if (status != CUBLAS_STATUS_SUCCESS)
    throw runtime_error("cublasSetStream returned the status " +
                        std::to_string(static_cast<int>(status)));
}

/* Sets the stream of the context of a guard. */
template <class GuardType, class = std::enable_if_t<detail::has_view<GuardType>>>
void set_stream(cublasHandle_t handle, GuardType const &guard) {
  set_stream(handle, guard.context());
}

} // namespace umem

#endif
