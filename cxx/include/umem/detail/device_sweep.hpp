/* umem/detail/device_sweep.hpp - as device.hpp, for loops over indices with a result. */
#ifndef UMEM_DETAIL_DEVICE_SWEEP_HPP
#define UMEM_DETAIL_DEVICE_SWEEP_HPP

#if defined(__CUDACC__)
#include <umem/detail/sweep_kernels.cuh>
#else

#include <umem/detail/device.hpp>
#include <umem/detail/host_reduce.hpp>

namespace umem {
namespace detail {
inline namespace UMEM_LAUNCH_NAMESPACE {

template <class Index, class Op, class Function, class Result, class... Operands>
Result device_index_reduce(DevicePlace const &, Op const &, Function const &, Result const &,
                           Operands const &...) {
  raise_no_kernels();
}
template <class Index, class Op, class Function, class Result, class... Operands>
Result device_sweep(DevicePlace const &, Op const &, Function const &, Result const &,
                    Operands const &...) {
  raise_no_kernels();
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
#endif
