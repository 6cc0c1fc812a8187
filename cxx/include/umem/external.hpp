/* umem/external.hpp - places of allocators of others: any std::pmr::memory_resource, and any
 * resource of cuda::mr, such as those of RMM.
 *
 *     std::pmr::unsynchronized_pool_resource pool;
 *     umem::External ram(&pool, umem::Host(), umem::External::serial);
 *
 *     rmm::mr::cuda_async_memory_resource resource;
 *     umem::CudaAsync queue(0, stream);                          // of the program
 *     umem::Limit gpu(umem::External(resource, queue), 1 << 30); // bounds the resource
 *
 * This header includes neither CCCL nor RMM: a resource is what has their functions. */
#ifndef UMEM_EXTERNAL_HPP
#define UMEM_EXTERNAL_HPP

#include <umem/context.hpp>

#include <cstdio>

extern "C" struct CUstream_st; /* what a cudaStream_t points to */

namespace umem {
namespace detail {

/* What a pointer or a std::shared_ptr leads to; a resource itself. */
template <class Resource> auto resource_of(Resource &held, int) -> decltype(*held) { return *held; }
template <class Resource> Resource &resource_of(Resource &held, long) { return held; }
template <class Resource> using ResourceOf = decltype(resource_of(std::declval<Resource &>(), 0));

/* The forms that calls with a stream have: that of CCCL 3.1 and later, and the one before. */
template <class Resource, class = void> inline constexpr bool has_stream_first = false;
template <class Resource>
inline constexpr bool
    has_stream_first<Resource, std::void_t<decltype(std::declval<Resource &>().allocate(
                                   static_cast<CUstream_st *>(nullptr), 1, 1))>> = true;
template <class Resource, class = void> inline constexpr bool has_async = false;
template <class Resource>
inline constexpr bool
    has_async<Resource, std::void_t<decltype(std::declval<Resource &>().allocate_async(
                            1, 1, static_cast<CUstream_st *>(nullptr)))>> = true;

template <class Resource>
inline constexpr bool has_streams = has_stream_first<Resource> || has_async<Resource>;

/* Those of calls without: of CCCL 3.1, and of all others. */
template <class Resource, class = void> inline constexpr bool has_sync = false;
template <class Resource>
inline constexpr bool
    has_sync<Resource, std::void_t<decltype(std::declval<Resource &>().allocate_sync(1, 1))>> =
        true;
template <class Resource, class = void> inline constexpr bool is_resource = has_sync<Resource>;
template <class Resource>
inline constexpr bool
    is_resource<Resource, std::void_t<decltype(std::declval<Resource &>().allocate(1, 1))>> = true;

/* An exception of a resource as a failure. One of memory arrives at the caller in C++ as it is. */
inline void record_thrown(std::uint64_t failures, char const *function) noexcept {
  char text[UMEM_MESSAGE_SIZE];
  umemStatusType type = umemRuntimeError;
  auto write = [&](char const *what) {
    std::snprintf(text, sizeof text, "%s of the resource has thrown: %s", function, what);
  };
  try {
    throw;
  } catch (std::bad_alloc const &exception) {
    type = umemMemoryError;
    write(exception.what());
    keep_thrown(failures);
  } catch (std::exception const &exception) {
    write(exception.what());
  } catch (...) {
    write("no std::exception");
  }
  umem_set_status(nullptr, type, text);
}

/* A resource of the program behind the table of umemExternal. */
template <class Held> struct ExternalResource {
  using Resource = std::remove_reference_t<ResourceOf<Held>>;

  Context upstream;
  Held held;

  /* What a resource without streams is asked for. Pools of libstdc++ (seen with GCC 12 and 13)
   * misalign blocks whose size is no multiple of the alignment. */
  static std::size_t whole(std::size_t nbytes, std::size_t alignment) {
    std::size_t const more = alignment - 1;
    return nbytes <= SIZE_MAX - more ? (nbytes + more) & ~more : nbytes;
  }

  void *get(std::size_t nbytes, std::size_t alignment, std::uintptr_t stream) {
    Resource &resource = resource_of(held, 0);
    if (has_streams<Resource> && stream != UMEM_EXTERNAL_NO_STREAM) {
      [[maybe_unused]] auto *const on = reinterpret_cast<CUstream_st *>(stream);
      if constexpr (has_stream_first<Resource>)
        return resource.allocate(on, nbytes, alignment);
      else if constexpr (has_async<Resource>)
        return resource.allocate_async(nbytes, alignment, on);
    }
    if constexpr (has_sync<Resource>)
      return resource.allocate_sync(whole(nbytes, alignment), alignment);
    else
      return resource.allocate(whole(nbytes, alignment), alignment);
  }

  /* A resource without streams gets a block back when no work uses it any more. */
  void give(void *block, std::size_t nbytes, std::size_t alignment, std::uintptr_t stream) {
    Resource &resource = resource_of(held, 0);
    if (has_streams<Resource> && stream != UMEM_EXTERNAL_NO_STREAM) {
      [[maybe_unused]] auto *const on = reinterpret_cast<CUstream_st *>(stream);
      if constexpr (has_stream_first<Resource>)
        resource.deallocate(on, block, nbytes, alignment);
      else if constexpr (has_async<Resource>)
        resource.deallocate_async(block, nbytes, alignment, on);
      return;
    }
    if (stream != UMEM_EXTERNAL_NO_STREAM) umem_synchronize(upstream.c_context());
    if constexpr (has_sync<Resource>)
      resource.deallocate_sync(block, whole(nbytes, alignment), alignment);
    else
      resource.deallocate(block, whole(nbytes, alignment), alignment);
  }

  umemExternalOptions options(bool serial) {
    umemExternalOptions options = UMEM_EXTERNAL_OPTIONS_INIT;
    options.allocate = [](void *user, std::size_t nbytes, std::size_t alignment,
                          std::uintptr_t stream) -> void * {
      std::uint64_t const before = umem_thread_failures();
      try {
        return static_cast<ExternalResource *>(user)->get(nbytes, alignment, stream);
      } catch (...) { /* must not pass through C */
        record_thrown(before, "allocate");
        return nullptr;
      }
    };
    options.deallocate = [](void *user, void *block, std::size_t nbytes, std::size_t alignment,
                            std::uintptr_t stream) {
      std::uint64_t const before = umem_thread_failures();
      try {
        static_cast<ExternalResource *>(user)->give(block, nbytes, alignment, stream);
      } catch (...) {
        record_thrown(before, "deallocate");
      }
    };
    options.user = this;
    options.serial = serial;
    options.no_alignment = has_streams<Resource>; /* they refuse more than 256 */
    return options;
  }
};

} // namespace detail

/* Blocks of a resource of others: umemExternal. */
class External : public Context {
public:
  /* For a resource that only one thread at a time may use: umem calls it so. */
  static constexpr bool serial = true;

  /* resource: has allocate(nbytes, alignment) and deallocate(block, nbytes, alignment), or
   * allocate_sync and deallocate_sync; and for streams allocate(stream, nbytes, alignment) and
   * deallocate(stream, block, nbytes, alignment), or the ..._async before CCCL 3.1. A pointer
   * borrows it; a std::shared_ptr shares it; another object is moved or copied into the context. A
   * NULL of both is a umem::value_error.
   * The context keeps what it holds until its last block is freed.
   *
   * upstream: a context for the same memory, which copies the bytes; see umemExternal. On a
   * CudaAsync allocations and frees are in the order of its stream, also of a resource without
   * streams, whose frees then wait.
   *
   * is_serial: serial, if only one thread at a time may use the resource.
   *
   * Exceptions of a resource: those of memory (std::bad_alloc) arrive at the caller as they are;
   * others become umem::runtime_error, with their text. */
  template <class Resource, class = std::enable_if_t<detail::is_resource<std::remove_reference_t<
                                detail::ResourceOf<std::decay_t<Resource>>>>>>
  External(Resource &&resource, Context const &upstream, bool is_serial = false)
      : Context(over(std::make_shared<detail::ExternalResource<std::decay_t<Resource>>>(
                         detail::ExternalResource<std::decay_t<Resource>>{
                             upstream, std::forward<Resource>(resource)}),
                     upstream, is_serial)) {}

  UMEM_KIND_OF_CONTEXT(External, "external")

  template <class Held>
  static std::shared_ptr<umemVirtual> over(std::shared_ptr<Held> const &held,
                                           Context const &upstream, bool is_serial) {
    if constexpr (!std::is_same_v<typename Held::Resource, decltype(held->held)>)
      if (!held->held) throw value_error("External: the resource is NULL");
    umemExternalOptions const options = held->options(is_serial);
    return make_by(held, umemExternal_ctor, upstream.c_context(), &options);
  }
};

} // namespace umem

#endif
