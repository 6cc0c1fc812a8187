/* umem/place.hpp - where loops over elements run: the first argument of for_each, transform, ...
 *
 *     umem::for_each(umem::on_host, view, f);           // this thread
 *     umem::for_each(umem::on_host_threads(8), view, f); // eight threads
 *     umem::for_each(umem::on_device(stream), view, f); // a kernel, queued on a CUDA stream
 *     umem::for_each(context, view, f);                 // where the context's memory is at home
 *     umem::for_each(array, f);                         // where the array's memory is at home
 *
 * Kernels need a file that nvcc compiles; elsewhere a device place is umem::not_supported_error.
 * Functors for the device mark their call operator UMEM_FUNCTION; with nvcc's option
 * --extended-lambda a __device__ lambda does as well. A functor without the mark, or another
 * lambda, is for on_host and on_host_threads only: a place that is chosen at run time needs code
 * for both. */
#ifndef UMEM_PLACE_HPP
#define UMEM_PLACE_HPP

#include <umem/context.hpp>
#include <umem/error.hpp>
#include <umem/virtual.h>

#include <cstdint>
#include <string>
#include <type_traits>

namespace umem {

/* Loops on the host. */
struct HostPlace {
  unsigned threads = 1; /* that share the work, the caller's included; more than 1: f is called by
                           several at once. 0: as many as the machine runs at once */
};

/* Kernels on a GPU. */
struct DevicePlace {
  std::uintptr_t stream = 0; /* the cudaStream_t they are queued on, borrowed */
  int device = -1;           /* the GPU's ordinal; -1: the caller's current one */
  bool wait = false;         /* whether calls return only when the kernel has finished */
};

/* This thread. */
inline constexpr HostPlace on_host{};

/* Threads started for the call, which ends when all have finished; the first exception of any comes
 * out of it. Worth it from some hundred thousand elements on. */
constexpr HostPlace on_host_threads(unsigned threads = 0) noexcept { return HostPlace{threads}; }

/* The stream: a cudaStream_t, or one as std::uintptr_t. 0 is CUDA's legacy default stream, also in files
 * that nvcc compiles for a default stream per thread; there, cudaStreamPerThread names the thread's.
 * Calls return when the kernel is queued, those with a result when it is there. */
template <class Stream = std::uintptr_t>
DevicePlace on_device(Stream stream = Stream(), int device = -1) noexcept {
  if constexpr (std::is_pointer_v<Stream>)
    return DevicePlace{reinterpret_cast<std::uintptr_t>(stream), device, false};
  else
    return DevicePlace{static_cast<std::uintptr_t>(stream), device, false};
}

/* One of both, known at run time. */
class Place {
public:
  Place(HostPlace host = on_host) noexcept : host_(host) {}
  Place(DevicePlace device) noexcept : is_device_(true), device_(device) {}

  /* Where the memory of a context is at home: the GPU where one of CUDA's can use the addresses
   * and the context names it (Cuda, CudaManaged, CudaAsync), else this thread. On an ordered
   * context the work is queued on its stream; on others calls return when it is done. */
  explicit Place(Context const &context) : Place() {
    if (!context.can(umemDeviceAccessible)) return;
    std::int64_t ordinal = context.ordinal();
    if (ordinal < 0) return;
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    std::uintptr_t stream = umemCudaAsync_stream(context.c_context());
    umemAttempt_end(&attempt);
    if (attempt.type == umemTypeError) return; /* the ordinal is not that of one of CUDA's GPUs */
    detail::check(umemAttempt_record(&attempt));
    is_device_ = true;
    device_.stream = stream;
    device_.device = static_cast<int>(ordinal);
    device_.wait = !context.can(umemOrdered);
  }

  bool is_device() const noexcept { return is_device_; }
  HostPlace const &host() const noexcept { return host_; }
  DevicePlace const &device() const noexcept { return device_; }

private:
  bool is_device_ = false;
  HostPlace host_;
  DevicePlace device_;
};

namespace detail {

/* What the first argument of an algorithm stands for. The type tells which code a call needs: that
 * of the host, of the device or, for Place, both. */
inline HostPlace as_place(HostPlace place) noexcept { return place; }
inline DevicePlace as_place(DevicePlace place) noexcept { return place; }
inline Place as_place(Place const &place) noexcept { return place; }
inline Place as_place(Context const &context) { return Place(context); }

template <class P, class = void> inline constexpr bool is_place = false;
template <class P>
inline constexpr bool is_place<P, std::void_t<decltype(as_place(std::declval<P const &>()))>> =
    true;

template <class P> inline constexpr bool may_be_host = !std::is_same_v<P, DevicePlace>;
template <class P> inline constexpr bool may_be_device = !std::is_same_v<P, HostPlace>;

inline bool is_device(HostPlace const &) noexcept { return false; }
inline bool is_device(DevicePlace const &) noexcept { return true; }
inline bool is_device(Place const &place) noexcept { return place.is_device(); }

inline HostPlace const &host_of(HostPlace const &place) noexcept { return place; }
inline HostPlace const &host_of(Place const &place) noexcept { return place.host(); }
inline DevicePlace const &device_of(DevicePlace const &place) noexcept { return place; }
inline DevicePlace const &device_of(Place const &place) noexcept { return place.device(); }

/* Refuses functions that a loop on the host would call in vain: for it, nvcc puts one that does
 * nothing in the place of a __device__ lambda. */
template <class... F> constexpr void check_for_host() {
#if defined(__CUDACC_EXTENDED_LAMBDA__)
  static_assert(
      (!__nv_is_extended_device_lambda_closure_type(F) && ...),
      "a __device__ lambda is for umem::on_device alone: mark it UMEM_FUNCTION for places "
      "that may be on the host");
#endif
}

} // namespace detail
} // namespace umem

/* Functions that launch kernels have another body in files that nvcc compiles; in these namespaces
 * they have another name too, so that both kinds of files make one program. */
#if defined(__CUDACC__)
#define UMEM_LAUNCH_NAMESPACE with_kernels
#else
#define UMEM_LAUNCH_NAMESPACE without_kernels
#endif

/* A call operator that kernels alone use: it may call functions that are not for the host. */
#if defined(__CUDACC__)
#define UMEM_DEVICE_FUNCTION __device__
#else
#define UMEM_DEVICE_FUNCTION
#endif

#endif
