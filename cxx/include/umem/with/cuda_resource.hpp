/* umem/with/cuda_resource.hpp - contexts as memory resources of CCCL (cuda::mr), for libraries that
 * take one.
 *
 *     umem::Pool pool{umem::Cuda()};
 *     umem::CudaResource<cuda::mr::device_accessible> resource(pool);
 *     void *block = resource.allocate_async(800, 256, stream);
 *     ...                                            // work on the stream
 *     resource.deallocate_async(block, 800, 256, stream);
 *
 * umem.hpp does not include this header. It needs CCCL, which is part of the CUDA toolkit; tested
 * with 3.0 (CUDA 13.0) and 3.5. CCCL has renamed its functions: up to 3.0, where a program defines
 * the macro LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE before its includes, they are allocate
 * and allocate_async; later ones call them allocate_sync and allocate(stream, ...). A CudaResource
 * has them all. */
#ifndef UMEM_WITH_CUDA_RESOURCE_HPP
#define UMEM_WITH_CUDA_RESOURCE_HPP

#include <umem/buffer.hpp>
#include <umem/place.hpp>
#include <umem/pool.hpp>

#include <cuda/memory_resource>
#if __has_include(<cuda/stream_ref>)
#include <cuda/stream_ref>
#else
#include <cuda/stream>
#endif
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <optional>

namespace umem {
namespace detail {

/* The memory of a context for many streams. */
class StreamMemory {
public:
  StreamMemory(Context const &context, unsigned capabilities) : context_(context) {
    if (!context) throw value_error("a memory resource of an empty context handle");
    if (context.can(umemOffsets) || !context.can(capabilities))
      throw not_supported_error(std::string("memory of ") + context.name() +
                                " does not have the properties of the resource");
    Place const place(context);
    if (!place.is_device()) return;
    device_ = place.device().device;
    own_stream_ = place.device().stream;
    auto *layer = static_cast<umemVirtual *>(find_pool());
    if (layer == context.c_context()) pool_.emplace(Pool::of(context));
  }

  Context const &context() const noexcept { return context_; }

  /* For work on any stream, which may begin at once. */
  void *allocate(std::size_t nbytes, std::size_t alignment) {
    check_alignment(alignment);
    address const adr = context_.allocate(nbytes, beyond_natural(context_, alignment));
    if (context_.can(umemOrdered)) or_free(adr, alignment, [&] { context_.synchronize(); });
    return reinterpret_cast<void *>(adr);
  }

  /* No work uses the block any more. */
  void deallocate(void *block, std::size_t alignment) noexcept { free(context_, block, alignment); }

  /* For work on this stream. */
  void *allocate(std::size_t nbytes, std::size_t alignment, cuda::stream_ref stream) {
    std::uintptr_t const number = number_of(stream);
    if (device_ < 0 || number == per_thread) return allocate(nbytes, alignment);
    check_alignment(alignment);
    if (pool_) {
      if (Lane *lane = lane_of(number); lane->view)
        return reinterpret_cast<void *>(
            lane->view->allocate(nbytes, beyond_natural(context_, alignment)));
      return allocate(nbytes, alignment);
    }
    address const adr = context_.allocate(nbytes, beyond_natural(context_, alignment));
    if (context_.can(umemOrdered) && !is_own(number))
      or_free(adr, alignment, [&] { lane_of(number)->queue.wait(context_); });
    return reinterpret_cast<void *>(adr);
  }

  /* Work that is queued on this stream may still use the block. */
  void deallocate(void *block, std::size_t alignment, cuda::stream_ref stream) noexcept {
    try {
      std::uintptr_t const number = number_of(stream);
      if (device_ >= 0 && number != per_thread) {
        if (pool_) {
          if (Lane *lane = lane_of(number); lane->view) return free(*lane->view, block, alignment);
        } else if (context_.can(umemOrdered)) {
          if (!is_own(number)) context_.wait(lane_of(number)->queue);
          return free(context_, block, alignment);
        }
      }
      cudaError_t const failure = wait_for(stream);
      if (failure == cudaSuccess) return free(context_, block, alignment);
      umemVirtual_fail(context_.c_context(), umemRuntimeError,
                       "umem::CudaResource: a block stays live, since its stream has failed: %s",
                       cudaGetErrorString(failure));
    } catch (...) { // NOLINT(bugprone-empty-catch): it is recorded
      /* the block stays live, since work may still use it */
    }
  }

  /* Forgets a stream. */
  void forget(cuda::stream_ref stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    lanes_.erase(number_of(stream));
  }

private:
  /* What belongs to a stream of the program. */
  struct Lane {
    CudaAsync queue;
    std::optional<PoolOn> view; /* of pool_, if the stream is one of its memory */
  };

  static constexpr std::uintptr_t per_thread =
      2; /* cudaStreamPerThread: a stream for each thread */

  static std::uintptr_t number_of(cuda::stream_ref stream) noexcept {
    auto const number = reinterpret_cast<std::uintptr_t>(stream.get());
    return number == 1 ? 0 : number; /* cudaStreamLegacy is another name of stream 0 */
  }

  /* cuda::stream_ref::wait does nothing in files that nvcc does not compile. */
  cudaError_t wait_for(cuda::stream_ref stream) const {
    if (device_ < 0) return cudaStreamSynchronize(stream.get());
    umemCudaEntry entry; /* else CUDA would make a context on GPU 0 */
    check_status(umemCuda_enter(&entry, device_));
    cudaError_t const failure = cudaStreamSynchronize(stream.get());
    check_status(umemCuda_leave(&entry));
    return failure;
  }

  bool is_own(std::uintptr_t number) const noexcept { return number == own_stream_; }

  /* The outermost pool in the stack, or NULL. Records nothing. */
  void *find_pool() const noexcept {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    void *found = umem_find_layer(context_.c_context(), "pool");
    umemAttempt_end(&attempt);
    return found;
  }

  Lane *lane_of(std::uintptr_t number) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = lanes_.find(number);
    if (found == lanes_.end()) {
      Lane lane{CudaAsync(device_, number), std::nullopt};
      if (pool_ && lane.queue.is_same_device(*pool_)) lane.view.emplace(*pool_, lane.queue);
      found = lanes_.emplace(number, std::move(lane)).first;
    }
    return &found->second; /* stays where it is until forget() */
  }

  void free(Context const &from, void *block, std::size_t alignment) const noexcept {
    if (beyond_natural(context_, alignment))
      umem_aligned_free(from.c_context(), reinterpret_cast<address>(block));
    else
      umem_free(from.c_context(), reinterpret_cast<address>(block));
  }

  template <class Function>
  void or_free(address adr, std::size_t alignment, Function const &functor) {
    try {
      functor();
    } catch (...) {
      free(context_, reinterpret_cast<void *>(adr), alignment);
      throw;
    }
  }

  Context context_;
  int device_ = -1;               /* the GPU; -1: the context is not one of a GPU */
  std::uintptr_t own_stream_ = 0; /* of the context */
  std::optional<Pool> pool_;      /* the context itself, if it is a pool on a GPU */
  std::mutex mutex_;
  std::map<std::uintptr_t, Lane> lanes_;
};

template <class Property> constexpr unsigned capability_of() {
  if constexpr (std::is_same_v<Property, cuda::mr::device_accessible>)
    return umemDeviceAccessible;
  else if constexpr (std::is_same_v<Property, cuda::mr::host_accessible>)
    return umemCpuReadable | umemCpuWritable;
  else
    return 0;
}

} // namespace detail

/* A memory resource over any context whose addresses are pointers. Properties: what the resource
 * promises, cuda::mr::device_accessible, cuda::mr::host_accessible or both. It keeps the context
 * alive. Copies share the context and are equal; equal resources may free each other's blocks.
 *
 * Blocks for a stream, and frees in its order:
 *
 *   a pool on a GPU      has a umemPoolOn for each stream: a free does not wait, and the block is
 *                        used again in the order of the stream; another stream takes it by one
 *                        event
 *   an ordered context   has a stream of its own: for others it waits, and they wait, by events
 *   all others           a free waits for the stream on the host
 *
 * cudaStreamPerThread is treated like a stream of the third kind. A resource keeps an object for
 * each stream that it has seen: call forget before you destroy a stream. Streams that are not
 * destroyed may outlive the resource.
 *
 * Threads: as the context; forget: while no other thread uses this stream with the resource. */
template <class... Properties> class CudaResource {
  static_assert(
      (std::is_same_v<Properties, cuda::mr::device_accessible> || ...) ||
          (std::is_same_v<Properties, cuda::mr::host_accessible> || ...),
      "CudaResource: name cuda::mr::device_accessible, cuda::mr::host_accessible, or both");

public:
  /* What cudaMalloc gives. */
  static constexpr std::size_t default_alignment = 256;

  /* Throws umem::not_supported_error if the context does not have the properties, or its addresses
   * are no pointers; umem::value_error for an empty handle. */
  explicit CudaResource(Context const &context)
      : memory_(std::make_shared<detail::StreamMemory>(
            context, (detail::capability_of<Properties>() | ... | 0u))) {}

  /* nbytes that work on any stream may use at once, at a multiple of alignment, a power of two.
   * Throws umem::memory_error, which is a std::bad_alloc. */
  void *allocate(std::size_t nbytes, std::size_t alignment = default_alignment) {
    return memory_->allocate(nbytes, alignment);
  }
  void *allocate_sync(std::size_t nbytes, std::size_t alignment = default_alignment) {
    return memory_->allocate(nbytes, alignment);
  }

  /* Frees a block that no work uses any more. nbytes is not needed; alignment: as for the
   * allocation. */
  void deallocate(void *block, std::size_t /* nbytes */,
                  std::size_t alignment = default_alignment) noexcept {
    memory_->deallocate(block, alignment);
  }
  void deallocate_sync(void *block, std::size_t /* nbytes */,
                       std::size_t alignment = default_alignment) noexcept {
    memory_->deallocate(block, alignment);
  }

  /* nbytes for work that is queued on the stream from now on. */
  void *allocate(cuda::stream_ref stream, std::size_t nbytes,
                 std::size_t alignment = default_alignment) {
    return memory_->allocate(nbytes, alignment, stream);
  }
  void *allocate_async(std::size_t nbytes, std::size_t alignment, cuda::stream_ref stream) {
    return memory_->allocate(nbytes, alignment, stream);
  }
  void *allocate_async(std::size_t nbytes, cuda::stream_ref stream) {
    return memory_->allocate(nbytes, default_alignment, stream);
  }

  /* Frees a block that work queued on the stream so far may still use; work on other streams does
   * not. If the stream has failed, the block stays live, and the context and the thread record the
   * failure. */
  void deallocate(cuda::stream_ref stream, void *block, std::size_t /* nbytes */,
                  std::size_t alignment = default_alignment) noexcept {
    memory_->deallocate(block, alignment, stream);
  }
  void deallocate_async(void *block, std::size_t /* nbytes */, std::size_t alignment,
                        cuda::stream_ref stream) noexcept {
    memory_->deallocate(block, alignment, stream);
  }
  void deallocate_async(void *block, std::size_t /* nbytes */, cuda::stream_ref stream) noexcept {
    memory_->deallocate(block, default_alignment, stream);
  }

  /* Forgets a stream that the program is about to destroy. Blocks stay live. */
  void forget(cuda::stream_ref stream) { memory_->forget(stream); }

  Context const &context() const noexcept { return memory_->context(); }

  /* Whether both use the same context. */
  friend bool operator==(CudaResource const &one, CudaResource const &other) noexcept {
    return one.context() == other.context();
  }
  friend bool operator!=(CudaResource const &one, CudaResource const &other) noexcept {
    return !(one == other);
  }

  /* That the resource has a property; for CCCL. */
  template <class Property, class = std::enable_if_t<(std::is_same_v<Property, Properties> || ...)>>
  friend constexpr void get_property(CudaResource const &, Property) noexcept {}

private:
  std::shared_ptr<detail::StreamMemory> memory_;
};

} // namespace umem

#endif
