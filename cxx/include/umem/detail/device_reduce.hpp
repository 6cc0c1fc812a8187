/* umem/detail/device_reduce.hpp - replaces reduce.cuh in files that nvcc does not compile. */
#ifndef UMEM_DETAIL_DEVICE_REDUCE_HPP
#define UMEM_DETAIL_DEVICE_REDUCE_HPP

#if !defined(__CUDACC__)

#include <umem/detail/device.hpp>
#include <umem/detail/host_reduce.hpp>

namespace umem {
namespace detail {
inline namespace UMEM_LAUNCH_NAMESPACE {

template <class Result, class... Operands> Result device_reduce(Operands const &...) {
  raise_no_kernels();
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
#endif
