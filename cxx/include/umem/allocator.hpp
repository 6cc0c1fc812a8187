/* umem/allocator.hpp - containers of the standard library in the memory of a context.
 *
 *     umem::CudaHost pinned;
 *     std::vector<double, umem::Allocator<double>> values(1000, pinned);
 *
 * The CPU must be able to use the memory: Host, MMap, CudaHost, and CudaManaged if the machine
 * allows. The allocator keeps its context alive. A container in the memory of a file is for one
 * process only: it holds pointers.
 *
 * Two allocators are equal if they use the same context. When a container is moved or swapped,
 * its allocator goes with it, so elements are never copied; copy assignment keeps the allocator
 * of the target. */
#ifndef UMEM_ALLOCATOR_HPP
#define UMEM_ALLOCATOR_HPP

#include <umem/buffer.hpp>

namespace umem {
namespace detail {

/* Memory of a context: the base of allocators, and for memory_resource.hpp. It is copied, never
 * moved from: a moved-from allocator keeps its value. */
class AllocatorMemory {
public:
  /* Throws umem::value_error for an empty handle, and umem::not_supported_error if addresses are no
   * pointers or, for_cpu, the CPU cannot read and write the memory. */
  AllocatorMemory(Context const &context, bool for_cpu) : context_(context) {
    if (!context) throw value_error("memory of an empty context handle");
    if (for_cpu)
      pointer_to(context, 0, umemCpuReadable | umemCpuWritable);
    else
      device_pointer(context, 0);
  }
  AllocatorMemory(AllocatorMemory const &) noexcept = default;
  AllocatorMemory &operator=(AllocatorMemory const &) noexcept = default;

  /* Throws umem::value_error for an alignment that is no power of two. waits: for work that is
   * queued on the context and may use these bytes. */
  void *allocate(std::size_t nbytes, std::size_t alignment, bool waits = true) const {
    check_alignment(alignment);
    alignment = beyond_natural(context_, alignment);
    if (!waits || !context_.can(umemOrdered))
      return reinterpret_cast<void *>(context_.allocate(nbytes, alignment));
    Buffer block(context_, nbytes, alignment);
    context_.synchronize();
    return reinterpret_cast<void *>(block.release());
  }

  /* Records and reports a failure as ~Buffer does. In a child of fork it frees nothing in memory
   * that the child shares with its parent (umemShared), if the parent has made this object or the
   * one that it is a copy of. */
  void deallocate(void *block, std::size_t alignment) const noexcept {
    end_block(context_, reinterpret_cast<address>(block), beyond_natural(context_, alignment),
              false, generation_);
  }

  Context const &context() const noexcept { return context_; }

private:
  Context context_;
  unsigned generation_ = umem_generation();
};

template <template <class> class Any> inline constexpr bool is_allocator = false;

} // namespace detail

template <class Type> class Allocator : public detail::AllocatorMemory {
public:
  using value_type = Type;
  using is_always_equal = std::false_type;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  /* Throws umem::not_supported_error if the CPU cannot read and write the memory, and
   * umem::value_error for an empty handle. */
  Allocator(Context const &context) : AllocatorMemory(context, true) {}

  /* For another type of elements. */
  template <class OtherType>
  Allocator(Allocator<OtherType> const &other) noexcept : AllocatorMemory(other) {}

  /* n elements at a multiple of alignof(Type). Throws umem::memory_error, which is a
   * std::bad_alloc. */
  [[nodiscard]] Type *allocate(std::size_t n) {
    return static_cast<Type *>(AllocatorMemory::allocate(detail::bytes_of<Type>(n), alignof(Type)));
  }

  void deallocate(Type *block, std::size_t) noexcept {
    AllocatorMemory::deallocate(block, alignof(Type));
  }
};

/* As std::pmr::polymorphic_allocator, for memory that need not be the CPU's: its type does not
 * depend on the context, and the pointers that it returns are those of the device. It constructs
 * and touches nothing in the memory. On an ordered context allocations and frees are in the order
 * of the queue. Containers of the standard library need umem::Allocator, which waits. */
template <class Type = std::byte> class PolymorphicAllocator : public detail::AllocatorMemory {
public:
  using value_type = Type;

  /* Throws umem::not_supported_error for addresses that are no pointers, such as those of a file,
   * and umem::value_error for an empty handle. */
  PolymorphicAllocator(Context const &context) : AllocatorMemory(context, false) {}

  /* For another type of elements. */
  template <class OtherType>
  PolymorphicAllocator(PolymorphicAllocator<OtherType> const &other) noexcept
      : AllocatorMemory(other) {}

  /* n elements at a multiple of alignof(Type). Throws umem::memory_error, which is a
   * std::bad_alloc. */
  [[nodiscard]] Type *allocate(std::size_t n) {
    return static_cast<Type *>(allocate_bytes(detail::bytes_of<Type>(n), alignof(Type)));
  }

  void deallocate(Type *block, std::size_t n) noexcept {
    deallocate_bytes(block, n * sizeof(Type), alignof(Type));
  }

  /* nbytes at a multiple of alignment, a power of two. */
  [[nodiscard]] void *allocate_bytes(std::size_t nbytes,
                                     std::size_t alignment = alignof(std::max_align_t)) {
    return AllocatorMemory::allocate(nbytes, alignment, false);
  }

  /* Records and reports a failure as ~Buffer does. */
  void deallocate_bytes(void *block, std::size_t,
                        std::size_t alignment = alignof(std::max_align_t)) noexcept {
    AllocatorMemory::deallocate(block, alignment);
  }
};

namespace detail {

template <> inline constexpr bool is_allocator<Allocator> = true;
template <> inline constexpr bool is_allocator<PolymorphicAllocator> = true;

} // namespace detail

/* Of allocators, also for different types of elements. */
template <template <class> class Any, class Type, class OtherType,
          class = std::enable_if_t<detail::is_allocator<Any>>>
bool operator==(Any<Type> const &one, Any<OtherType> const &other) noexcept {
  return one.context() == other.context();
}
template <template <class> class Any, class Type, class OtherType,
          class = std::enable_if_t<detail::is_allocator<Any>>>
bool operator!=(Any<Type> const &one, Any<OtherType> const &other) noexcept {
  return !(one == other);
}

} // namespace umem

#endif
