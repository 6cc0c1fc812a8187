/* umem/detail/part_memory.hpp - the memory of a part, and copies between two of them, without the type of the elements
 * and the number of dimensions. */
#ifndef UMEM_DETAIL_PART_MEMORY_HPP
#define UMEM_DETAIL_PART_MEMORY_HPP

#include <umem/array_mirror.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace umem {
namespace detail {

/* Items in some memory: pointers to rank extents and strides, both in items. */
struct ItemLayout {
  index_t const *extents, *strides;
  int rank;
  index_t offset; /* of item (0, ..., 0) from the beginning of the memory */
  std::size_t item_size;
};

/* The memory of an array, or memory that a part borrows. */
class PartMemory {
public:
  PartMemory(std::shared_ptr<Mirror> mirror_, std::uint64_t key_, Context context,
             address adr_) noexcept
      : mirror(std::move(mirror_)), key(key_), adr(adr_), context_(std::move(context)) {}
  PartMemory(PartMemory const &other);
  PartMemory(PartMemory &&) noexcept = default;
  PartMemory &operator=(PartMemory const &other);
  PartMemory &operator=(PartMemory &&) noexcept = default;
  ~PartMemory();

  Context const &context() const noexcept { return mirror ? mirror->device() : context_; }

  /* Throws if the items cannot be read: the array is locked, or queued work has failed. */
  void check_source() const;

  /* The location of item (0, ..., 0) for a copy. The destination becomes the current side of its array; all: the copy
   * writes every byte of the array. */
  Location source(ItemLayout const &items) const;
  Location destination(ItemLayout const &items, bool all) const;

  std::shared_ptr<Mirror> mirror; /* null: borrowed memory */
  std::uint64_t key;              /* of the lock through which the part was made */
  address adr;                    /* of borrowed memory */

private:
  Context context_; /* of borrowed memory */
};

struct PartMembers; /* part.hpp */

/* Whether elements of two views with the same extents share bytes, except where each element is its own. */
bool share_elements(void const *one, ItemLayout const &of_one, void const *other,
                    ItemLayout const &of_other);

/* umem::copy of parts: see part.hpp. A copy that writes every byte of an array goes to its device side, unless keep_side
 * is true. */
void copy_part(PartMemory const &src, ItemLayout const &from, PartMemory const &dst,
               ItemLayout const &to, bool keep_side = false);

} // namespace detail
} // namespace umem

#if !defined(UMEM_COMPILED)
#include <umem/detail/part_functions.hpp>
#endif

#endif
