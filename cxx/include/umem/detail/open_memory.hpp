/* umem/detail/open_memory.hpp - the access of a loop to the memory of an array or part, whatever
 * the type of the elements and the number of dimensions are. */
#ifndef UMEM_DETAIL_OPEN_MEMORY_HPP
#define UMEM_DETAIL_OPEN_MEMORY_HPP

#include <umem/place_guard.hpp>

namespace umem::detail {

/* Where the elements of a part are, in bytes from the beginning of its array. */
struct Reach {
  index_t first = 0, end = 0; /* no element is before the first byte, nor after the end */
  index_t step = 0;           /* the elements are multiples of it apart; 0: there is one */

  /* False only if no byte is in both. */
  bool may_overlap(Reach const &other) const noexcept;
};

/* A call's access to the memory of an operand. The program first makes all operands of the call,
 * then gives them guards with share_guards, then opens them. */
class OpenMemory {
public:
  OpenMemory(OpenMemory const &) = delete;
  OpenMemory &operator=(OpenMemory const &) = delete;

  /* Operands that are read open before those that are written, last those that lose their old
   * elements. */
  bool is_open_at(Access when) const noexcept {
    return when == (wants_buffer_ || !memory_.mirror ? access_ : held_);
  }

  void begin() noexcept { has_begun_ = true; }

protected:
  OpenMemory(PartMemory const &memory, bool is_part, bool writes)
      : memory_(memory), is_part_(is_part), writes_(writes) {}
  ~OpenMemory();

  /* Decides which access the operand needs, and whether to a buffer. cells: the elements with their
   * ghost cells, which a range may reach into; discards: the loop gives all elements values. */
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

/* Of the operands in one array, the first takes a guard with the access that all need together, the
 * others guards to read. They get buffers only if all can have one, and if no element would be in
 * two, of which one is written. */
void share_guards(OpenMemory *const *all, int count) noexcept;

/* ---- kernels ---- */

/* Throws umem::value_error if kernels cannot use the memory of a context. A kernel on another
 * stream than that of the context must finish before anything else uses the memory. */
void settle_kernels(DevicePlace &place, Context const &context);

/* Whether kernels of a GPU can use memory of a context. */
bool kernels_reach_memory(DevicePlace const &gpu, Context const &context);

} // namespace umem::detail

#endif

#if !defined(UMEM_OPEN_MEMORY_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_OPEN_MEMORY_FUNCTIONS

namespace umem::detail {

/* ---- where elements are ---- */

UMEM_INLINE bool Reach::may_overlap(Reach const &other) const noexcept {
  if (end <= other.first || other.end <= first) return false;
  index_t divisor = step, rest = other.step; /* Euclid's algorithm */
  while (rest) divisor = std::exchange(rest, divisor % rest);
  return divisor == 0 || (first - other.first) % divisor == 0;
}

UMEM_INLINE Reach reach_of(ItemLayout const &items) noexcept {
  auto size = static_cast<index_t>(items.item_size);
  Reach reach{items.offset * size, (items.offset + 1) * size};
  for (int k = 0; k < items.rank; k++) {
    index_t extent = items.extents[k], step = items.strides[k] * size;
    if (extent < 2 || step == 0) continue;
    (step < 0 ? reach.first : reach.end) += step * (extent - 1);
    index_t divisor = step < 0 ? -step : step;
    while (reach.step) divisor = std::exchange(reach.step, divisor % reach.step);
    reach.step = divisor;
  }
  return reach;
}

/* ---- one guard for each array ---- */

UMEM_INLINE void share_guards(OpenMemory *const *all, int count) noexcept {
  for (int i = 0; i < count; i++) {
    OpenMemory &one = *all[i];
    Mirror *mirror = one.memory_.mirror.get();
    one.held_ = one.access_;
    bool buffers = one.wants_buffer_, reverts = one.reverts_, is_first = true;
    for (int j = 0; mirror && j < count; j++) {
      OpenMemory const &other = *all[j];
      if (j == i || other.memory_.mirror.get() != mirror) continue;
      is_first = is_first && i < j;
      reverts = reverts || other.reverts_;
      if (one.held_ != Access::read || other.access_ != Access::read) one.held_ = Access::write;
    }
    if (!is_first) {
      one.held_ = Access::read;
      continue;
    }
    for (int j = i; mirror && j < count; j++)
      for (int k = i; all[j]->memory_.mirror.get() == mirror && k < count; k++) {
        OpenMemory const &a = *all[j], &b = *all[k];
        if (b.memory_.mirror.get() != mirror) continue;
        bool writes = a.access_ != Access::read || b.access_ != Access::read;
        buffers =
            buffers && b.wants_buffer_ && (j == k || !writes || !a.reach_.may_overlap(b.reach_));
      }
    for (int j = i; mirror && j < count; j++)
      if (all[j]->memory_.mirror.get() == mirror) all[j]->wants_buffer_ = buffers;
    one.reverts_ = reverts;
  }
}

/* ---- one operand ---- */

UMEM_INLINE OpenMemory::~OpenMemory() { release(!has_begun_ || (!is_done_ && reverts_)); }

UMEM_INLINE void OpenMemory::release(bool revert) noexcept {
  if (!is_held_) return;
  is_held_ = false;
  if (revert && held_ != Access::read) memory_.mirror->undo_overwrite(side_);
  memory_.mirror->release(side_, held_);
}

UMEM_INLINE void OpenMemory::plan(Place const &place, ItemLayout const &cells, bool discards,
                                  bool has_ghosts) {
  bool on_device = is_on_device_side(place, memory_.context());
  loads_ = !discards || has_ghosts;
  reverts_ = discards || on_device;
  if (writes_) access_ = loads_ ? Access::write : Access::discard;
  if (is_part_) look_at_part(on_device, cells);
}

UMEM_INLINE void OpenMemory::look_at_part(bool on_device, ItemLayout const &cells) {
  Mirror const *mirror = memory_.mirror.get();
  std::size_t nbytes = count_of(cells) * cells.item_size;
  bool is_smaller = mirror && nbytes < mirror->nbytes();
  if (writes_ && is_smaller) access_ = Access::write; /* what is beside the part stays */
  is_empty_ = nbytes == 0;
  if (is_empty_) memory_.mirror.reset(); /* nothing is accessed */
  if (on_device || is_empty_) return;
  Context const &context = memory_.context();
  bool is_for_cpu = context.can(umemCpuReadable) && (!writes_ || context.can(umemCpuWritable));
  wants_buffer_ = mirror ? is_smaller && mirror->current() == Side::device : !is_for_cpu;
  if (wants_buffer_) reach_ = reach_of(cells);
}

UMEM_INLINE void OpenMemory::open_elements(Place const &place, ItemLayout const &items,
                                           ItemLayout const &cells, std::size_t alignment) {
  if (is_empty_) return;
  if (wants_buffer_)
    open_buffer(cells, alignment);
  else
    open_memory(place, items);
}

UMEM_INLINE void OpenMemory::open_memory(Place const &place, ItemLayout const &items) {
  first_ = memory_.adr;
  bool on_device = place.is_device();
  if (memory_.mirror) {
    side_ = is_on_device_side(place, memory_.context()) ? Side::device : Side::host;
    first_ = memory_.mirror->acquire(side_, held_, memory_.key);
    is_held_ = true;
  } else if (!on_device && memory_.context().can(umemOrdered)) {
    memory_.context().synchronize();
  }
  queue_before(place, memory_.context()); /* also after the transfer */
  first_ += static_cast<address>(items.offset) * items.item_size;
}

/* Between the cells and a buffer that holds them without gaps, in C order. */
UMEM_INLINE void OpenMemory::copy_buffer(ItemLayout const &cells, bool to_buffer) {
  index_t strides[UMEM_MAX_RANK], stride = 1;
  for (int k = cells.rank - 1; k >= 0; k--) {
    strides[k] = stride;
    stride *= cells.extents[k];
  }
  PartMemory buffer(nullptr, 0, buffer_.context(), buffer_.adr());
  ItemLayout in_buffer{cells.extents, strides, cells.rank, 0, cells.item_size};
  if (to_buffer)
    copy_part(memory_, cells, buffer, in_buffer);
  else
    copy_part(buffer, in_buffer, memory_, cells);
}

UMEM_INLINE void OpenMemory::open_buffer(ItemLayout const &cells, std::size_t alignment) {
  Mirror *mirror = memory_.mirror.get();
  Context host = mirror ? mirror->mirror_context() : pointers();
  if (mirror && writes_) mirror->check_destination(memory_.key);
  if (mirror) mirror->check_readable(Side::host, memory_.key);
  if (writes_ && !memory_.context().can(umemWritable))
    raise_text(umemNotSupportedError, "a part on a read-only %s cannot be written",
               memory_.context().name());
  buffer_ = Buffer(host, count_of(cells) * cells.item_size, beyond_natural(host, alignment));
  if (loads_) copy_buffer(cells, true);
  first_ = buffer_.adr();
}

UMEM_INLINE void OpenMemory::finish_elements(ItemLayout const &cells) {
  if (writes_ && buffer_) copy_buffer(cells, false);
  is_done_ = true;
}

/* ---- kernels ---- */

UMEM_INLINE void settle_kernels(DevicePlace &place, Context const &context) {
  check_device_accessible(context);
  Place home(context);
  if (!home.is_device() || home.device().wait || !is_in_order(place, home)) place.wait = true;
  if (home.is_device() && place.device < 0) place.device = home.device().device;
}

UMEM_INLINE bool kernels_reach_memory(DevicePlace const &gpu, Context const &context) {
  if (!context.can(umemDeviceAccessible)) return false;
  if (context.can(umemCpuReadable)) return true; /* pinned or managed */
  Place home(context);
  return home.is_device() && home.device().device == gpu.device;
}

} // namespace umem::detail

#endif
