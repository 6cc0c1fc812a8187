/* umem/cpu_memory.hpp - memory of a context for the allocators of allocator.hpp and
 * memory_resource.hpp. */
#ifndef UMEM_CPU_MEMORY_HPP
#define UMEM_CPU_MEMORY_HPP

#include <umem/buffer.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace umem {
namespace detail {

/* Memory of a context whose addresses are pointers for this CPU. It is copied, never moved from:
 * a moved-from allocator keeps its value. */
class CpuMemory {
public:
  /* Throws umem::not_supported_error if the CPU cannot read and write the memory, and
   * umem::value_error for an empty handle. */
  explicit CpuMemory(Context const &context) : context_(context) {
    if (!context) throw value_error("memory of an empty context handle");
    pointer_to(context, 0, umemCpuReadable | umemCpuWritable);
  }
  CpuMemory(CpuMemory const &) noexcept = default;
  CpuMemory &operator=(CpuMemory const &) noexcept = default;

  /* Throws umem::value_error for an alignment that is no power of two. */
  void *allocate(std::size_t nbytes, std::size_t alignment) const {
    check_alignment(alignment);
    if (context_.can(umemOrdered)) {
      /* Work that is still queued may use these bytes: the CPU must wait. */
      Buffer block(context_, nbytes, beyond_natural(alignment));
      context_.synchronize();
      return reinterpret_cast<void *>(block.release());
    }
    return reinterpret_cast<void *>(context_.allocate(nbytes, beyond_natural(alignment)));
  }

  /* Records and reports a failure as ~Buffer does. In a child of fork it frees nothing in memory that the child shares with
   * its parent (umemShared), if the parent has made this object or the one that it is a copy of. */
  void deallocate(void *block, std::size_t alignment) const noexcept {
    end_block(context_, reinterpret_cast<address>(block), beyond_natural(alignment), false,
              generation_);
  }

  Context const &context() const noexcept { return context_; }

private:
  /* The alignment to request: 0 if every block has it. */
  std::size_t beyond_natural(std::size_t alignment) const noexcept {
    return alignment > context_.alignment() ? alignment : 0;
  }

  Context context_;
  unsigned generation_ = umem_generation();
};

} // namespace detail
} // namespace umem

#endif
