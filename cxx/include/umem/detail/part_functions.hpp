/* umem/detail/part_functions.hpp - what part_memory.hpp declares. */
#ifndef UMEM_DETAIL_PART_FUNCTIONS_HPP
#define UMEM_DETAIL_PART_FUNCTIONS_HPP

#include <umem/detail/part_memory.hpp>
#include <umem/extents.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace umem {
namespace detail {

UMEM_INLINE PartMemory::PartMemory(PartMemory const &other)
    : mirror(other.mirror), key(other.key), adr(other.adr), context_(other.context_) {}

UMEM_INLINE PartMemory &PartMemory::operator=(PartMemory const &other) {
  PartMemory copy = other;
  return *this = std::move(copy);
}

UMEM_INLINE PartMemory::~PartMemory() {} // NOLINT(modernize-use-equals-default): out of line

UMEM_INLINE void PartMemory::check_source() const {
  if (mirror)
    mirror->complete(key);
  else if (context_.can(umemOrdered))
    context_.synchronize();
}

/* The sum may wrap around on the way. */
inline Location moved(Location location, ItemLayout const &items) noexcept {
  location.adr += static_cast<address>(items.offset) * items.item_size;
  return location;
}

UMEM_INLINE Location PartMemory::source(ItemLayout const &items) const {
  return moved(mirror ? mirror->source(key) : Location{&context_, adr, Side::device}, items);
}

UMEM_INLINE Location PartMemory::destination(ItemLayout const &items, bool all) const {
  return moved(mirror ? mirror->destination(key, all) : Location{&context_, adr, Side::device},
               items);
}

inline std::size_t count_of(ItemLayout const &items) noexcept {
  std::size_t count = 1;
  for (int k = 0; k < items.rank; k++) count *= static_cast<std::size_t>(items.extents[k]);
  return count;
}

UMEM_INLINE bool share_elements(void const *one, ItemLayout const &of_one, void const *other,
                                ItemLayout const &of_other) {
  if (!one || !other) return false;
  std::size_t extents[UMEM_MAX_RANK];
  std::ptrdiff_t strides[UMEM_MAX_RANK], other_strides[UMEM_MAX_RANK];
  for (int k = 0; k < of_one.rank; k++) {
    extents[k] = static_cast<std::size_t>(of_one.extents[k]);
    strides[k] = of_one.strides[k] * static_cast<std::ptrdiff_t>(of_one.item_size);
    other_strides[k] = of_other.strides[k] * static_cast<std::ptrdiff_t>(of_other.item_size);
  }
  umemLayout const layout = {sizeof layout, std::min(of_one.item_size, of_other.item_size),
                             of_one.rank,   extents,
                             strides,       other_strides};
  void *host = pointers().c_context();
  return umem_copy_overlaps(host, reinterpret_cast<address>(one), host,
                            reinterpret_cast<address>(other), &layout);
}

/* Queues the copy, and orders later work of both arrays after it. */
inline void copy_between(PartMemory const &src, Location const &from, ItemLayout const &in,
                         PartMemory const &dst, Location const &to, ItemLayout const &out) {
  std::size_t extents[UMEM_MAX_RANK];
  std::ptrdiff_t in_strides[UMEM_MAX_RANK], out_strides[UMEM_MAX_RANK];
  auto size = static_cast<std::ptrdiff_t>(in.item_size);
  for (int k = 0; k < in.rank; k++) {
    extents[k] = static_cast<std::size_t>(in.extents[k]);
    in_strides[k] = in.strides[k] * size;
    out_strides[k] = out.strides[k] * size;
  }
  copy(*from.context, from.adr, *to.context, to.adr,
       umemLayout{sizeof(umemLayout), in.item_size, in.rank, extents, in_strides, out_strides});
  if (src.mirror && dst.mirror) {
    dst.mirror->wait_for(to.side, *from.context);
    src.mirror->wait_for(from.side, *to.context); /* may throw */
  } else {
    if (from.context->can(umemOrdered)) from.context->synchronize();
    if (to.context->can(umemOrdered)) to.context->synchronize();
  }
}

UMEM_INLINE void copy_part(PartMemory const &src, ItemLayout const &from, PartMemory const &dst,
                           ItemLayout const &to, bool keep_side) {
  if (!std::equal(from.extents, from.extents + from.rank, to.extents))
    raise_text(umemValueError, "a copy of extents %s to extents %s",
               InWords(from.extents, from.extents + from.rank).text,
               InWords(to.extents, to.extents + to.rank).text);
  std::size_t count = count_of(from);
  if (count == 0) return;
  Location source = src.source(from);
  bool all = !keep_side && dst.mirror && count * to.item_size == dst.mirror->nbytes();
  Location destination = dst.destination(to, all);
  try {
    copy_between(src, source, from, dst, destination, to);
  } catch (...) {
    if (dst.mirror) dst.mirror->undo_overwrite(destination.side);
    throw;
  }
}

} // namespace detail
} // namespace umem

#endif
