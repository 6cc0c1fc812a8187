/* umem/with/thrust.hpp - Thrust's containers and temporary memory on contexts, and its algorithms
 * on their streams.
 *
 *     umem::Pool pool{umem::CudaAsync()};
 *     auto guard = u.device(umem::write);
 *     thrust::sort(umem::thrust_policy(pool), guard.begin(), guard.end());
 *     thrust::device_vector<double, umem::ThrustAllocator<double>> values(1000, pool);
 *
 * umem.hpp does not include this header. It needs Thrust, which is part of the CUDA toolkit; the
 * policy needs nvcc. The iterators of views, and those of umem::elements, work on host and
 * device. */
#ifndef UMEM_WITH_THRUST_HPP
#define UMEM_WITH_THRUST_HPP

#include <umem/allocator.hpp>
#include <umem/place.hpp>

#include <thrust/device_ptr.h>
#include <thrust/device_reference.h>
#if defined(__CUDACC__) || defined(UMEM_DOXYGEN)
#include <thrust/system/cuda/execution_policy.h>

#include <cuda_runtime_api.h>
#endif

namespace umem {

/* The allocator of a thrust::device_vector: memory of a context that kernels can use, and with a
 * Thrust for the CPU of one that the CPU can use. It keeps its context alive. Two allocators are
 * equal if they use the same context; when a vector is moved or swapped, its allocator goes with
 * it.
 *
 * New memory may be used on any stream: on an ordered context the allocation waits for the work
 * queued there. Free memory, that is end a vector, after the work on other streams that uses it. */
template <class Type> class ThrustAllocator : public detail::AllocatorMemory {
public:
  using value_type = Type;
  using pointer = thrust::device_ptr<Type>;
  using const_pointer = thrust::device_ptr<Type const>;
  using reference = thrust::device_reference<Type>;
  using const_reference = thrust::device_reference<Type const>;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using is_always_equal = std::false_type;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  template <class OtherType> struct rebind { using other = ThrustAllocator<OtherType>; };

  /* Throws umem::not_supported_error if addresses are no pointers, and umem::value_error for an
   * empty handle. */
  ThrustAllocator(Context const &context) : AllocatorMemory(context, false) {}

  /* For another type of elements. */
  template <class OtherType>
  ThrustAllocator(ThrustAllocator<OtherType> const &other) noexcept : AllocatorMemory(other) {}

  /* n elements at a multiple of alignof(Type). Throws umem::memory_error, which is a
   * std::bad_alloc. */
  [[nodiscard]] pointer allocate(std::size_t n) {
    void *block = AllocatorMemory::allocate(detail::bytes_of<Type>(n), alignof(Type));
    return pointer(static_cast<Type *>(block));
  }

  void deallocate(pointer block, std::size_t) noexcept {
    AllocatorMemory::deallocate(block.get(), alignof(Type));
  }
};

namespace detail {
template <> inline constexpr bool is_allocator<ThrustAllocator> = true;
}

/* The allocator of temporary memory for algorithms on the stream of a context, which it keeps
 * alive. Freed memory is used again in the order of that stream. */
class ThrustScratch {
public:
  using value_type = char;

  explicit ThrustScratch(Context const &context) : context_(context) {}

  /* Copied, never moved from. */
  ThrustScratch(ThrustScratch const &) noexcept = default;
  ThrustScratch &operator=(ThrustScratch const &) noexcept = default;

  /* nbytes. Throws umem::memory_error. */
  char *allocate(std::ptrdiff_t nbytes) {
    return reinterpret_cast<char *>(context_.allocate(static_cast<std::size_t>(nbytes)));
  }
  void deallocate(char *block, std::size_t) noexcept {
    umem_free(context_.c_context(), reinterpret_cast<address>(block));
  }

  Context const &context() const noexcept { return context_; }

private:
  Context context_;
};

#if defined(__CUDACC__) || defined(UMEM_DOXYGEN)
namespace detail {

/* The stream of a context of the current GPU. */
inline cudaStream_t thrust_stream(Context const &context) {
  Place const place(context);
  if (!place.is_device())
    throw not_supported_error(std::string("Thrust has no stream for ") + context.name() +
                              ", which is not memory of a GPU: use thrust::host");
  int current = -1;
  if (cudaGetDevice(&current) != cudaSuccess || current != place.device().device)
    throw value_error("the context is on GPU " + std::to_string(place.device().device) +
                      ", but GPU " + std::to_string(current) +
                      " is the current one: call cudaSetDevice first");
  std::uintptr_t const stream = place.device().stream;
  return stream ? reinterpret_cast<cudaStream_t>(stream) : cudaStreamLegacy;
}

} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* The execution policy for algorithms of Thrust on the stream of a context, with temporary memory
 * from the context. The algorithms return when their work is complete. The context must be one of
 * the current GPU: umem::value_error. umem::not_supported_error for a context that is not one of a
 * GPU. */
inline auto thrust_policy(Context const &context) {
  cudaStream_t const stream = detail::thrust_stream(context);
  return thrust::cuda::par(ThrustScratch(context)).on(stream);
}

/* A policy with which algorithms without a result on the host may return when their work is queued.
 * The context must be ordered, such as a umem::CudaAsync: only then can temporary memory be freed
 * while work uses it; else umem::not_supported_error. */
inline auto thrust_policy_queued(Context const &context) {
  cudaStream_t const stream = detail::thrust_stream(context);
  if (!context.can(umemOrdered))
    throw not_supported_error(std::string("memory of ") + context.name() +
                              " is not freed in the order of a stream: use thrust_policy");
  return thrust::cuda::par_nosync(ThrustScratch(context)).on(stream);
}

} // namespace UMEM_LAUNCH_NAMESPACE
#endif

} // namespace umem

#endif
