/* umem/detail/device_along.hpp - as device.hpp, for reductions along one dimension. */
#ifndef UMEM_DETAIL_DEVICE_ALONG_HPP
#define UMEM_DETAIL_DEVICE_ALONG_HPP

#if defined(__CUDACC__)
#include <umem/detail/along_kernels.cuh>
#else

#include <umem/detail/device.hpp>

namespace umem {
namespace detail {
inline namespace UMEM_LAUNCH_NAMESPACE {

template <class... Operands> void device_along(Operands const &...) { raise_no_kernels(); }

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
#endif
