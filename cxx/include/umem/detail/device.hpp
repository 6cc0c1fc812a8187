/* umem/detail/device.hpp - the functions that launch kernels: those of map_kernels.cuh and
 * index_kernels.cuh in files that nvcc compiles, and functions that say what is missing in others.
 * */
#ifndef UMEM_DETAIL_DEVICE_HPP
#define UMEM_DETAIL_DEVICE_HPP

#include <umem/place.hpp>

#if defined(__CUDACC__)
#include <umem/detail/index_kernels.cuh>
#include <umem/detail/map_kernels.cuh>

namespace umem {
namespace detail {
inline namespace UMEM_LAUNCH_NAMESPACE {

/* Before anything is changed: throws where kernels are asked for and there are none. */
template <class P> void check_kernels(P const &) noexcept {}

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

/* Before anything is changed: throws where kernels are asked for and there are none. */
template <class P> void check_kernels(P const &place) {
  if (is_device(place)) raise_no_kernels();
}

template <bool load, class... A> void device_map(A const &...) { raise_no_kernels(); }
template <class Index, class... A> void device_indices(A const &...) { raise_no_kernels(); }
template <class Index, class... A> void device_indexed(A const &...) { raise_no_kernels(); }

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
#endif
