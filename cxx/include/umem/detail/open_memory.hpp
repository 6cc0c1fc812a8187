/* umem/detail/open_memory.hpp - the access of a loop to the memory of an array or part, apart from the type of the
 * elements and the number of dimensions: see operand.hpp. */
#ifndef UMEM_DETAIL_OPEN_MEMORY_HPP
#define UMEM_DETAIL_OPEN_MEMORY_HPP

#include <umem/array_mirror.hpp>
#include <umem/buffer.hpp>
#include <umem/detail/part_memory.hpp>
#include <umem/place.hpp>

#include <cstddef>

namespace umem {
namespace detail {

/* Throws umem::value_error if kernels cannot use the memory of a context. A kernel on another stream than that of the
 * context must finish before anything else uses the memory. */
void settle_kernels(DevicePlace &place, Context const &context);

/* Whether kernels of a GPU can use memory of a context. */
bool kernels_reach_memory(DevicePlace const &gpu, Context const &context);

/* Where the elements of a part are, in bytes from the beginning of its array. */
struct Reach {
  index_t first = 0, end = 0; /* no element is before the first byte, nor after the end */
  index_t step = 0;           /* the elements are multiples of it apart; 0: there is one */

  /* False only if no byte is in both. */
  bool may_overlap(Reach const &other) const noexcept;
};

/* A call's access to the memory of an operand. The program first makes all operands of the call, then gives them guards
 * with share_guards, then opens them. */
class OpenMemory {
public:
  OpenMemory(OpenMemory const &) = delete;
  OpenMemory &operator=(OpenMemory const &) = delete;

  /* Operands that are read open before those that are written, last those that lose their old elements. */
  bool is_open_at(Access when) const noexcept {
    return when == (wants_buffer_ || !memory_.mirror ? access_ : held_);
  }

  void begin() noexcept { has_begun_ = true; }

protected:
  OpenMemory(PartMemory const &memory, bool is_part, bool writes)
      : memory_(memory), is_part_(is_part), writes_(writes) {}
  ~OpenMemory();

  /* Decides which access the operand needs, and whether to a buffer. cells: the elements with their ghost cells, which
   * a range may reach into; discards: the loop gives all elements values. */
  void plan(Place const &place, ItemLayout const &cells, bool discards, bool has_ghosts);

  /* Makes the elements ready at a place. */
  void open_elements(Place const &place, ItemLayout const &items, ItemLayout const &cells,
                     std::size_t alignment);

  /* Takes back what is in a buffer. */
  void finish_elements(ItemLayout const &cells);

  /* The address of element (0, ..., 0) or, in a buffer, of the first cell. */
  address first() const noexcept { return first_; }
  bool has_buffer() const noexcept { return static_cast<bool>(buffer_); }

private:
  friend void share_guards(OpenMemory *const *all, int count) noexcept;

  void look_at_part(bool on_device, ItemLayout const &cells);
  void open_memory(Place const &place, ItemLayout const &items);
  void open_buffer(ItemLayout const &cells, std::size_t alignment);
  void copy_buffer(ItemLayout const &cells, bool to_buffer);
  void release(bool revert) noexcept;

  PartMemory memory_;
  bool is_part_, writes_;
  bool is_empty_ = false, loads_ = true;
  Access access_ = Access::read; /* what this operand needs */
  bool reverts_ = false;         /* whether a loop that fails leaves the side current that was */
  bool wants_buffer_ = false;
  Reach reach_;

  Access held_ = Access::read; /* that of the guard: what all operands in the array need */
  Side side_ = Side::host;
  bool is_held_ = false, has_begun_ = false, is_done_ = false;
  Buffer buffer_;
  address first_ = 0;
};

/* Of the operands in one array, the first takes a guard with the access that all need together, the others guards to
 * read. They get buffers only if all can have one, and if no element would be in two, of which one is written. */
void share_guards(OpenMemory *const *all, int count) noexcept;

} // namespace detail
} // namespace umem

#if !defined(UMEM_COMPILED)
#include <umem/detail/open_functions.hpp>
#endif

#endif
