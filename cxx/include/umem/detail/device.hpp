/* umem/detail/device.hpp - the functions that launch kernels: in files that nvcc compiles those of
 * map_kernels.cuh and launch.cuh, in others functions that throw. There they also replace those of
 * sweep_kernels.cuh, along_kernels.cuh and reduce.cuh, which fewer headers need. */
#ifndef UMEM_DETAIL_DEVICE_HPP
#define UMEM_DETAIL_DEVICE_HPP

#include <umem/place.hpp>

#if defined(__CUDACC__)
#include <umem/detail/launch.cuh>
#include <umem/detail/map_kernels.cuh>
#endif

namespace umem::detail {
inline namespace UMEM_LAUNCH_NAMESPACE {

#if defined(__CUDACC__)

/* Throws if a loop needs kernels that this file does not have. Called before anything is
 * changed. */
template <class PlaceType> void check_kernels(PlaceType const &) noexcept {}

#else

[[noreturn]] inline void raise_no_kernels() {
  throw not_supported_error(
      "work on a GPU needs kernels: compile this file with nvcc, or name umem::on_host");
}

template <class PlaceType> void check_kernels(PlaceType const &place) {
  if (is_device(place)) raise_no_kernels();
}

template <class... Operands> void device_map(Operands const &...) { raise_no_kernels(); }
template <class Index, class... Operands> void device_indices(Operands const &...) {
  raise_no_kernels();
}
template <class Index, class... Operands> void device_indexed(Operands const &...) {
  raise_no_kernels();
}
template <class... Operands> void device_along(Operands const &...) { raise_no_kernels(); }
template <class Result, class... Operands> Result device_reduce(Operands const &...) {
  raise_no_kernels();
}
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

#endif

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem::detail

#endif
