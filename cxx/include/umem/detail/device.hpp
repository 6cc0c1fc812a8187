/* umem/detail/device.hpp - the functions that launch kernels: in files that nvcc compiles those
 * of map_kernels.cuh and index_kernels.cuh, in others functions that throw. */
#ifndef UMEM_DETAIL_DEVICE_HPP
#define UMEM_DETAIL_DEVICE_HPP

#include <umem/place.hpp>

#if defined(__CUDACC__)
#include <umem/detail/index_kernels.cuh>
#include <umem/detail/map_kernels.cuh>

namespace umem {
namespace detail {
inline namespace UMEM_LAUNCH_NAMESPACE {

/* Throws if a loop needs kernels that this file does not have. Called before anything is changed. */
template <class PlaceType> void check_kernels(PlaceType const &) noexcept {}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#else

namespace umem {
namespace detail {
inline namespace UMEM_LAUNCH_NAMESPACE {

[[noreturn]] inline void raise_no_kernels() {
  throw not_supported_error(
      "work on a GPU needs kernels: compile this file with nvcc, or name umem::on_host");
}

/* Throws if a loop needs kernels that this file does not have. Called before anything is changed. */
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

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
#endif
