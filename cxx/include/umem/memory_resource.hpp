/* umem/memory_resource.hpp - the polymorphic containers of the standard library in the memory of
 * a context.
 *
 *     umem::MemoryResource pinned{umem::CudaHost()};
 *     std::pmr::vector<double> values(1000, &pinned);
 *
 * See umem::Allocator. Here the type of the container does not depend on the context; the
 * resource must outlive the containers. An alignment that is no power of two throws
 * umem::value_error. */
#ifndef UMEM_MEMORY_RESOURCE_HPP
#define UMEM_MEMORY_RESOURCE_HPP

#include <umem/allocator.hpp>

#include <memory_resource>

namespace umem {

class [[gnu::visibility("default")]] MemoryResource : public std::pmr::memory_resource {
public:
  /* Throws umem::not_supported_error if the CPU cannot read and write the memory, and
   * umem::value_error for an empty handle. */
  explicit MemoryResource(Context const &context) : memory_(context, true) {}

  MemoryResource(MemoryResource const &) = delete;
  MemoryResource &operator=(MemoryResource const &) = delete;

  Context const &context() const noexcept { return memory_.context(); }

private:
  void *do_allocate(std::size_t nbytes, std::size_t alignment) override {
    return memory_.allocate(nbytes, alignment);
  }

  void do_deallocate(void *block, std::size_t, std::size_t alignment) override {
    memory_.deallocate(block, alignment);
  }

  /* Whether each can free what the other has allocated: both use the same context. */
  bool do_is_equal(std::pmr::memory_resource const &other) const noexcept override {
    auto const *resource = dynamic_cast<MemoryResource const *>(&other);
    return resource && resource->context() == context();
  }

  detail::AllocatorMemory memory_;
};

} // namespace umem

#endif
