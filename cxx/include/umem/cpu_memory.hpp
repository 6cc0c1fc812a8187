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

  /* Records and reports a failure as ~Buffer does. */
  void deallocate(void *block, std::size_t alignment) const noexcept {
    if (beyond_natural(alignment))
      umem_aligned_free(context_.c_context(), reinterpret_cast<address>(block));
    else
      umem_free(context_.c_context(), reinterpret_cast<address>(block));
  }

  Context const &context() const noexcept { return context_; }

private:
  /* The alignment to request: 0 if every block has it. */
  std::size_t beyond_natural(std::size_t alignment) const noexcept {
    return alignment > context_.alignment() ? alignment : 0;
  }

  Context context_;
};

} // namespace detail
} // namespace umem

#endif
