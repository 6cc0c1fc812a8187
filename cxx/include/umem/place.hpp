/* umem/place.hpp - where loops over elements run: the first argument of for_each, transform, ...
 *
 *     umem::for_each(umem::on_host, view, f);            // in this thread
 *     umem::for_each(umem::on_host_threads(8), view, f); // in up to eight threads
 *     umem::for_each(umem::on_device(stream), view, f);  // in a kernel, queued on a CUDA stream
 *     umem::for_each(context, view, f);                  // on its GPU, or in this thread
 *     umem::for_each(array, f);                          // the same for the context of the array
 *
 * Kernels need a file that nvcc compiles; in other files a device place throws
 * umem::not_supported_error. Functors for the device mark their call operator UMEM_FUNCTION. With
 * nvcc's option --extended-lambda, __device__ lambdas work too. Functors without the mark and all
 * other lambdas are for on_host and on_host_threads only: a place that is chosen at run time needs
 * code for both. */
#ifndef UMEM_PLACE_HPP
#define UMEM_PLACE_HPP

#include <umem/context.hpp>

namespace umem {

/* Loops on the host. */
struct HostPlace {
  unsigned threads =
      1; /* that share the work, the calling one included; they call f at the same time.
                           0: as many as umem_get_parallel_threads() */
  /* Whether they go over the device side of arrays on a umem::Guarded that stands for a device, as
   * loops do for which the program names no place, or the context. */
  bool as_device = false;
};

/* Kernels on a GPU. */
struct DevicePlace {
  std::uintptr_t stream = 0; /* the cudaStream_t on which they are queued; borrowed */
  int device = -1;           /* the GPU's ordinal; -1: the caller's current GPU */
  bool wait = false;         /* whether calls return only when the kernel has finished */
};

/* This thread. */
inline constexpr HostPlace on_host{};

/* This thread and those of the library (umem/threads.h), up to so many as umem_set_threads allows;
 * a child of fork begins with 1. The call returns when all have finished. If f throws in several of
 * them, the call throws one of these exceptions. All threads use the caller's floating-point
 * environment. Loops gain from some ten thousand elements on. */
constexpr HostPlace on_host_threads(unsigned threads = 0) noexcept { return HostPlace{threads}; }

/* Kernels on a stream: a cudaStream_t, or one as std::uintptr_t. 0 is CUDA's legacy default stream,
 * also in files that nvcc compiles for a default stream per thread; in these, cudaStreamPerThread
 * names the stream of the thread. Calls return when the kernel is queued; calls with a result
 * return when the result is there. */
template <class Stream = std::uintptr_t>
DevicePlace on_device(Stream stream = Stream(), int device = -1) noexcept {
  if constexpr (std::is_pointer_v<Stream>)
    return DevicePlace{reinterpret_cast<std::uintptr_t>(stream), device, false};
  else
    return DevicePlace{static_cast<std::uintptr_t>(stream), device, false};
}

namespace detail {

/* Whether the CPU plays the device of a context: a umemGuarded over RAM that no GPU uses. */
inline bool stands_for_device(Context const &context) noexcept {
  return context.can(umemSeparate | umemCpuReadable | umemCpuWritable) &&
         !context.can(umemDeviceAccessible);
}

} // namespace detail

/* A place on the host or on a GPU, chosen at run time. */
class Place {
public:
  Place(HostPlace host = on_host) noexcept : host_(host) {}
  Place(DevicePlace device) noexcept : is_device_(true), device_(device) {}

  /* The GPU of a context whose addresses this GPU can use and which names it (Cuda, CudaManaged,
   * CudaAsync); for other contexts this thread. On an ordered context loops are queued on its
   * stream; on others calls return when the loop is done. */
  explicit Place(Context const &context) : Place() {
    host_.as_device = detail::stands_for_device(context);
    if (context.can(umemDeviceAccessible)) find_device(context);
  }

  bool is_device() const noexcept { return is_device_; }
  HostPlace const &host() const noexcept { return host_; }
  DevicePlace const &device() const noexcept { return device_; }

private:
  [[gnu::noinline]] void find_device(Context const &context) {
    std::int64_t ordinal = context.ordinal();
    if (ordinal < 0) return;
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    std::uintptr_t stream = umemCudaAsync_stream(context.c_context());
    umemAttempt_end(&attempt);
    if (attempt.type == umemTypeError) return; /* the context is not one of CUDA's */
    detail::check_status(umemAttempt_record(&attempt));
    is_device_ = true;
    device_.stream = stream;
    device_.device = static_cast<int>(ordinal);
    device_.wait = !context.can(umemOrdered);
  }

  bool is_device_ = false;
  HostPlace host_;
  DevicePlace device_;
};

namespace detail {

/* The place that the first argument of an algorithm names. Its type decides which code a call
 * compiles: for the host, for the device or, with Place, for both. */
inline HostPlace as_place(HostPlace place) noexcept { return place; }
inline DevicePlace as_place(DevicePlace place) noexcept { return place; }
inline Place as_place(Place const &place) noexcept { return place; }
inline Place as_place(Context const &context) { return Place(context); }

template <class PlaceType, class = void> inline constexpr bool is_place = false;
template <class PlaceType>
inline constexpr bool
    is_place<PlaceType, std::void_t<decltype(as_place(std::declval<PlaceType const &>()))>> = true;
template <class PlaceType> using if_place = std::enable_if_t<is_place<PlaceType>>;

template <class PlaceType>
inline constexpr bool may_be_host = !std::is_same_v<PlaceType, DevicePlace>;
template <class PlaceType>
inline constexpr bool may_be_device = !std::is_same_v<PlaceType, HostPlace>;

inline bool is_device(HostPlace const &) noexcept { return false; }
inline bool is_device(DevicePlace const &) noexcept { return true; }
inline bool is_device(Place const &place) noexcept { return place.is_device(); }

inline HostPlace const &host_of(HostPlace const &place) noexcept { return place; }
inline HostPlace const &host_of(Place const &place) noexcept { return place.host(); }
inline DevicePlace const &device_of(DevicePlace const &place) noexcept { return place; }
inline DevicePlace const &device_of(Place const &place) noexcept { return place.device(); }

/* host_job(place) or device_job(place), whose results are of one type. Compiles what the type of
 * the place allows. */
template <class PlaceType, class HostJob, class DeviceJob>
auto on_side(PlaceType const &place, HostJob const &host_job, DeviceJob const &device_job) {
  if constexpr (!may_be_device<PlaceType>)
    return host_job(host_of(place));
  else if constexpr (!may_be_host<PlaceType>)
    return device_job(device_of(place));
  else
    return place.is_device() ? device_job(place.device()) : host_job(place.host());
}

/* Whether loops at a place go over the device side of arrays on a context. */
template <class PlaceType> bool is_on_device_side(PlaceType const &place, Context const &context) {
  if (is_device(place)) return true;
  if constexpr (may_be_host<PlaceType>)
    return host_of(place).as_device && stands_for_device(context);
  else
    return false;
}

/* Whether Function reaches a kernel whole: its bytes are copied there, and neither constructor nor
 * destructor runs. nvcc wraps __host__ __device__ lambdas in a type of its own that does. */
template <class Function>
inline constexpr bool is_for_device = std::is_trivially_copyable_v<Function>
#if defined(__CUDACC_EXTENDED_LAMBDA__)
                                      ||
                                      __nv_is_extended_host_device_lambda_closure_type(Function) ||
                                      __nv_is_extended_device_lambda_closure_type(Function)
#endif
    ;
template <class... Functions> constexpr void check_for_device() {
  static_assert(
      (is_for_device<Functions> && ...),
      "a functor for a GPU is copied there as bytes: it must be trivially copyable, so give "
      "it pointers, views and numbers, not a std::vector or another owner of memory");
}

#define UMEM_COPIED_FUNCTOR                                                                        \
  "loops take functors by value and copy them: let this one have a pointer or a reference to "     \
  "what "                                                                                          \
  "cannot be copied"

/* Refuses functors that cannot be copied, and __device__ lambdas for a loop on the host: there nvcc
 * replaces them by functions that do nothing. */
template <class... Functions> constexpr void check_for_host() {
  static_assert((std::is_copy_constructible_v<Functions> && ...), UMEM_COPIED_FUNCTOR);
#if defined(__CUDACC_EXTENDED_LAMBDA__)
  static_assert(
      (!__nv_is_extended_device_lambda_closure_type(Functions) && ...),
      "a __device__ lambda is for umem::on_device alone: mark it UMEM_FUNCTION for places "
      "that may be on the host");
#endif
}

} // namespace detail
} // namespace umem

/* Functions that launch kernels have another body in files that nvcc compiles. These namespaces
 * give them another name too, so that one program can have files of both kinds; and those with
 * checks another one. */
#if defined(__CUDACC__)
#define UMEM_LAUNCH_NAMESPACE with_kernels
#elif UMEM_CHECKS
#define UMEM_LAUNCH_NAMESPACE without_kernels_checked
#else
#define UMEM_LAUNCH_NAMESPACE without_kernels
#endif

/* Marks a call operator that only kernels use: it may call functions that are not for the host. */
#if defined(__CUDACC__)
#define UMEM_DEVICE_FUNCTION __device__
#else
#define UMEM_DEVICE_FUNCTION
#endif

#endif
