/* umem/part.hpp - parts of arrays on any context, and copies between them.
 *
 *     auto edge = gpu.part().select(0, 50);    // the last row of an array on a GPU
 *     auto ghost = file.part().select(0, -1);  // the row of ghost cells of an array in a file
 *     auto inner = gpu.part(umem::range(1, umem::end - 1), umem::full_extent); // see slice.hpp
 *     umem::copy(edge, ghost);
 *
 * A Part is like a View (view.hpp), but its elements are in the memory of a context. Slicing a
 * part touches no element. */
#ifndef UMEM_PART_HPP
#define UMEM_PART_HPP

#include <umem/array_mirror.hpp>
#include <umem/view.hpp>

#include <vector>

namespace umem {
namespace detail {

/* The memory of a part, and copies between two of them, without the type of the elements
 * and the number of dimensions. */

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

  Context const &context() const noexcept { return mirror ? mirror->device() : context_; }

  /* Throws if the items cannot be read: the array is locked, or queued work has failed. */
  void check_source() const;

  /* The location of item (0, ..., 0) for a copy. The destination becomes the current side of its
   * array; all: the copy writes every byte of the array. */
  Location source(ItemLayout const &items) const;
  Location destination(ItemLayout const &items, bool all) const;

  std::shared_ptr<Mirror> mirror; /* null: borrowed memory */
  std::uint64_t key;              /* of the lock through which the part was made */
  address adr;                    /* of borrowed memory */

private:
  Context context_; /* of borrowed memory */
};

struct PartMembers; /* part.hpp */

/* Whether elements of two views with the same extents share bytes, except where each element is its
 * own. */
bool share_elements(void const *one, ItemLayout const &of_one, void const *other,
                    ItemLayout const &of_other);

/* umem::copy of parts: see part.hpp. A copy that writes every byte of an array goes to its device
 * side, unless keep_side is true. */
void copy_part(PartMemory const &src, ItemLayout const &from, PartMemory const &dst,
               ItemLayout const &to, bool keep_side = false, umemTransfer **transfer = nullptr);

/* The copies of umem::copy_many and umem::start_many: see copy.hpp, transfer.hpp. */
class PartCopies {
public:
  /* Throws, and adds nothing, if the extents differ. */
  void add(PartMemory const &src, ItemLayout const &from, PartMemory const &dst,
           ItemLayout const &to);
  /* transfer: NULL, or where the handle of a list is stored that only begins. */
  void run(umemCopyManyOptions const *options, umemTransfer **transfer) const;

private:
  struct Item {
    PartMemory src, dst;
    std::vector<std::size_t> extents;
    std::vector<std::ptrdiff_t> from, to; /* strides in bytes, of src and dst */
    ItemLayout src_items, dst_items;      /* of which extents and strides are not used */
  };
  static void list_runs(Item const &item, std::size_t k, address src_adr, address dst_adr,
                        std::vector<umemCopyItem> &runs, umemCopyItem const &model);
  std::vector<Item> items_;
};

} // namespace detail
/* Type const: copies only read the elements. Parts of an array keep its memory alive. A copy reads
 * from a side that is current; afterwards the side that it has written is the only current one. */
template <class Type, int Rank> class Part {
public:
  using element_type = Type;
  using value_type = std::remove_cv_t<Type>;
  static constexpr int rank = Rank;
  static_assert(std::is_trivially_copyable_v<value_type>);
  static_assert(Rank <= UMEM_MAX_RANK,
                "Part: strided copies have at most UMEM_MAX_RANK dimensions");

  /* A part of borrowed memory without an array: adr is the address of element (0, ..., 0),
   * strides count elements. Copies with it are complete on return. */
  Part(Context context, address adr, Extents<Rank> const &extents, Extents<Rank> const &strides)
      : memory_{nullptr, 0, std::move(context), adr}, layout_{extents, strides, {}} {
    checked_product(extents);
  }
  Part(Context context, address adr, Extents<Rank> const &extents)
      : Part(std::move(context), adr, extents, row_major) {}
  Part(Context context, address adr, Extents<Rank> const &extents, Order order)
      : Part(std::move(context), adr, extents, strides_in(order, extents)) {}

  /* Copying a Part copies no elements: umem::copy does. A temporary part, such as array.part(),
   * cannot be assigned to. */
  Part(Part const &) = default;
  Part(Part &&) noexcept = default;
  Part &operator=(Part const &) & = default;
  Part &operator=(Part &&) &noexcept = default;
  ~Part() = default;

  /* From elements that may be written to those that are only read. */
  template <class OtherType, class = std::enable_if_t<std::is_same_v<OtherType const, Type> &&
                                                      !std::is_same_v<OtherType, Type>>>
  Part(Part<OtherType, Rank> const &other) : memory_(other.memory_), layout_(other.layout_) {}

  Extents<Rank> const &extents() const noexcept { return layout_.extents; }
  Extents<Rank> const &strides() const noexcept { return layout_.strides; }
  Ghosts<Rank> const &ghosts() const noexcept { return layout_.ghosts; }
  UMEM_CHECKED index_t extent(int k) const noexcept { return layout_.extents[k]; }
  index_t size() const noexcept { return layout_.extents.product(); }

  /* The context of the memory: that of the array, or of the borrowed memory. Loops over the part
   * run there if no place is named (place.hpp). */
  Context const &context() const noexcept { return memory_.context(); }

  /* ---- parts and other orders, as those of View ---- */

  /* The elements in one slice per dimension. */
  template <class... Slices> auto part(Slices const &...slices) const {
    detail::check_slices<Rank, Slices...>();
    if constexpr (detail::are_slices<Rank, Slices...>)
      return laid_out(detail::sliced(layout_, slices...));
    else
      return *this;
  }

  /* Indices first, first + step, ... below last of dimension k; they may be those of ghost
   * cells. */
  Part slice(int k, Position first, Position last, index_t step = 1) const {
    return laid_out(layout_.slice(k, first, last, step));
  }

  /* The elements with index i in dimension k. i may be the index of a ghost cell. */
  template <int OtherRank = Rank - 1> Part<Type, OtherRank> select(int k, Position i) const {
    static_assert(Rank > 0 && OtherRank == Rank - 1,
                  "Part::select: the result has one dimension less");
    return laid_out(layout_.select(k, i));
  }

  /* Dimension k of the result is dimension order[k] of this. */
  Part permute(Extents<Rank> const &order) const { return laid_out(layout_.permute(order)); }

  /* All dimensions in reversed order. */
  Part transpose() const { return laid_out(layout_.transpose()); }

  /* Dimension k from its last element to its first. */
  Part reversed(int k) const { return laid_out(layout_.reversed(k)); }

  /* The elements of the interior with other extents, without a copy. */
  template <int OtherRank>
  Part<Type, OtherRank> reshape(Extents<OtherRank> const &shape, Order order = row_major) const {
    static_assert(OtherRank <= UMEM_MAX_RANK,
                  "Part: strided copies have at most UMEM_MAX_RANK dimensions");
    return laid_out(layout_.reshape(shape, order));
  }

  /* The elements without their ghost cells. */
  Part interior() const { return laid_out(layout_.interior()); }

  /* The ghost cells as elements like all others: the indices begin at 0. */
  Part with_ghosts() const { return laid_out(layout_.with_ghosts()); }

  /* All cells, the outermost ones as ghost cells: as many as wanted. */
  Part with_ghosts(Ghosts<Rank> const &wanted) const {
    return laid_out(layout_.with_ghosts(wanted));
  }

private:
  template <class, int> friend class Part;
  template <class SliceType, class OtherType, int OtherRank>
  friend void copy(Part<SliceType, OtherRank> const &src, Part<OtherType, OtherRank> const &dst);
  template <class, int> friend class ArrayAccess;
  friend struct detail::PartMembers;

  /* A part of an array. Its first element in memory is `first` elements before element (0, ...,
   * 0). */
  Part(std::shared_ptr<detail::Mirror> mirror, std::uint64_t key, index_t first,
       Extents<Rank> const &extents, Extents<Rank> const &strides,
       Ghosts<Rank> const &ghosts) noexcept
      : memory_{std::move(mirror), key, Context(), 0}, layout_{extents, strides, ghosts, first} {}

  /* A part of the same memory as other, in another layout. */
  template <int OtherRank>
  Part(Part<Type, OtherRank> const &other, detail::StridedLayout<Rank> const &layout)
      : memory_(other.memory_), layout_(layout) {}

  template <int OtherRank>
  Part<Type, OtherRank> laid_out(detail::StridedLayout<OtherRank> const &layout) const {
    return Part<Type, OtherRank>(*this, layout);
  }

  template <class OtherType> void copy_to(Part<OtherType, Rank> const &dst) const {
    static_assert(!std::is_const_v<OtherType>,
                  "copy: the elements of the destination are read-only");
    static_assert(std::is_same_v<OtherType, value_type>,
                  "copy: the elements have other types: umem::convert(from, to)");
    detail::copy_part(memory_, items(), dst.memory_, dst.items());
  }

  detail::ItemLayout items() const noexcept {
    return {layout_.extents.begin(), layout_.strides.begin(), Rank, layout_.offset, sizeof(Type)};
  }

  detail::PartMemory memory_;
  detail::StridedLayout<Rank> layout_; /* its offset counts from the beginning of the memory */
};

namespace detail {

/* What the functions of the library need of a part. */
struct PartMembers {
  template <class Type, int Rank>
  static PartMemory const &memory(Part<Type, Rank> const &part) noexcept {
    return part.memory_;
  }
  template <class Type, int Rank> static ItemLayout items(Part<Type, Rank> const &part) noexcept {
    return part.items();
  }
  template <class Type, int Rank>
  static StridedLayout<Rank> const &layout(Part<Type, Rank> const &part) noexcept {
    return part.layout_;
  }
};

} // namespace detail

/* Copies the elements of src to those of dst. Throws umem::value_error if the extents differ. It
 * copies no ghost cells, except where with_ghosts() has made them elements. The two may overlap:
 * all elements are read before the first is written. Throws umem::locked_error while a lock of
 * either array or a guard of the array of dst lives. The copy is ordered with other queued work of
 * both arrays. It is complete on return while a guard to write the host side of src lives. */
template <class SliceType, class Type, int Rank>
void copy(Part<SliceType, Rank> const &src, Part<Type, Rank> const &dst) {
  src.copy_to(dst);
}

/* The elements of a view of host memory. */
template <class Type, int Rank> Part<Type, Rank> part(View<Type, Rank> const &view) {
  return Part<Type, Rank>(detail::pointers(), reinterpret_cast<address>(view.data), view.extents,
                          view.strides);
}

} // namespace umem

#endif

#if !defined(UMEM_PART_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_PART_FUNCTIONS

namespace umem::detail {

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

/* Two layouts of the same extents as C has them: strides in bytes. */
struct ByteStrides {
  int rank;
  std::size_t extents[UMEM_MAX_RANK];
  std::ptrdiff_t from[UMEM_MAX_RANK], to[UMEM_MAX_RANK];

  ByteStrides(ItemLayout const &one, ItemLayout const &other) noexcept : rank(one.rank) {
    for (int k = 0; k < rank; k++) {
      extents[k] = static_cast<std::size_t>(one.extents[k]);
      from[k] = one.strides[k] * static_cast<std::ptrdiff_t>(one.item_size);
      to[k] = other.strides[k] * static_cast<std::ptrdiff_t>(other.item_size);
    }
  }

  /* Borrows the numbers. */
  umemLayout layout(std::size_t item_size) const noexcept {
    return {sizeof(umemLayout), item_size, rank, extents, from, to};
  }
};

UMEM_INLINE bool share_elements(void const *one, ItemLayout const &of_one, void const *other,
                                ItemLayout const &of_other) {
  if (!one || !other) return false;
  ByteStrides const strides(of_one, of_other);
  umemLayout const layout = strides.layout(std::min(of_one.item_size, of_other.item_size));
  void *host = pointers().c_context();
  return umem_copy_overlaps(host, reinterpret_cast<address>(one), host,
                            reinterpret_cast<address>(other), &layout);
}

/* Orders later work of both arrays after a copy that is queued, or has begun. waits: after one of
 * memory that belongs to no array. */
inline void order_after(PartMemory const &src, Location const &from, PartMemory const &dst,
                        Location const &to, bool waits = true) {
  if (!from.context->can(umemOrdered) && !to.context->can(umemOrdered)) return;
  if (src.mirror && dst.mirror) {
    dst.mirror->wait_for(to.side, *from.context);
    src.mirror->wait_for(from.side, *to.context); /* may throw */
  } else if (waits) {
    if (from.context->can(umemOrdered)) from.context->synchronize();
    if (to.context->can(umemOrdered)) to.context->synchronize();
  }
}

/* The bytes of a copy whose elements follow each other in C order on both sides; 0 if not. */
inline std::size_t run_of(ItemLayout const &in, ItemLayout const &out) noexcept {
  index_t run = 1;
  for (int k = in.rank - 1; k >= 0; k--) {
    if (in.extents[k] != 1 && (in.strides[k] != run || out.strides[k] != run)) return 0;
    run *= in.extents[k];
  }
  return static_cast<std::size_t>(run) * in.item_size;
}

/* Queues the copy, and orders later work of both arrays after it. transfer: NULL, or where the
 * handle of a copy is stored that only begins. */
inline void copy_between(PartMemory const &src, Location const &from, ItemLayout const &in,
                         PartMemory const &dst, Location const &to, ItemLayout const &out,
                         umemTransfer **transfer) {
  std::size_t const run = transfer ? 0 : run_of(in, out);
  if (run) {
    copy(*from.context, from.adr, *to.context, to.adr, run);
    return order_after(src, from, dst, to);
  }
  ByteStrides const strides(in, out);
  umemLayout const layout = strides.layout(in.item_size);
  if (transfer)
    check_status(umem_start_strided(from.context->c_context(), from.adr, to.context->c_context(),
                                    to.adr, &layout, nullptr, transfer));
  else
    copy(*from.context, from.adr, *to.context, to.adr, layout);
  order_after(src, from, dst, to, !transfer);
}

inline void check_same_extents(ItemLayout const &from, ItemLayout const &to) {
  if (!std::equal(from.extents, from.extents + from.rank, to.extents))
    raise_text(umemValueError, "a copy of extents %s to extents %s",
               InWords(from.extents, from.extents + from.rank).text,
               InWords(to.extents, to.extents + to.rank).text);
}

UMEM_INLINE void copy_part(PartMemory const &src, ItemLayout const &from, PartMemory const &dst,
                           ItemLayout const &to, bool keep_side, umemTransfer **transfer) {
  check_same_extents(from, to);
  std::size_t count = count_of(from);
  if (count == 0 && !transfer) return;
  if (count == 0) return check_status(umem_start_many(nullptr, 0, nullptr, transfer));
  Location source = src.source(from);
  bool all = !keep_side && dst.mirror && count * to.item_size == dst.mirror->nbytes();
  Location destination = dst.destination(to, all);
  try {
    copy_between(src, source, from, dst, destination, to, transfer);
  } catch (...) {
    if (transfer) umemTransfer_release(std::exchange(*transfer, nullptr));
    if (dst.mirror) dst.mirror->undo_overwrite(destination.side);
    throw;
  }
}

UMEM_INLINE void PartCopies::add(PartMemory const &src, ItemLayout const &from,
                                 PartMemory const &dst, ItemLayout const &to) {
  check_same_extents(from, to);
  if (count_of(from) == 0) return;
  ByteStrides const all(from, to);
  Item item{src, dst, {}, {}, {}, from, to};
  item.extents.assign(all.extents, all.extents + all.rank);
  item.from.assign(all.from, all.from + all.rank);
  item.to.assign(all.to, all.to + all.rank);
  items_.push_back(std::move(item));
}

/* Adds the elements of the dimensions from k on. umem_copy_many joins those that are
 * neighbours. */
UMEM_INLINE void PartCopies::list_runs(Item const &item, std::size_t k, address src_adr,
                                       address dst_adr, std::vector<umemCopyItem> &runs,
                                       umemCopyItem const &model) {
  std::size_t run = item.src_items.item_size;
  bool dense = true;
  for (std::size_t i = item.extents.size(); i-- > k && dense; run *= item.extents[i])
    dense = item.extents[i] == 1 ||
            (item.from[i] == static_cast<std::ptrdiff_t>(run) && item.to[i] == item.from[i]);
  if (dense) {
    runs.push_back({model.src, src_adr, model.dst, dst_adr, run});
    return;
  }
  for (std::size_t i = 0; i < item.extents[k]; i++)
    list_runs(item, k + 1, src_adr + static_cast<address>(item.from[k]) * i,
              dst_adr + static_cast<address>(item.to[k]) * i, runs, model);
}

UMEM_INLINE void PartCopies::run(umemCopyManyOptions const *options,
                                 umemTransfer **transfer) const {
  std::vector<Location> from, to;
  std::vector<umemCopyItem> runs;
  try {
    for (Item const &item : items_) from.push_back(item.src.source(item.src_items));
    for (std::size_t i = 0; i < items_.size(); i++) {
      to.push_back(items_[i].dst.destination(items_[i].dst_items, false));
      list_runs(items_[i], 0, from[i].adr, to[i].adr, runs,
                {from[i].context->c_context(), 0, to[i].context->c_context(), 0, 0});
    }
    check_status(transfer ? umem_start_many(runs.data(), runs.size(), options, transfer)
                          : umem_copy_many(runs.data(), runs.size(), options));
    for (std::size_t i = 0; i < items_.size(); i++)
      order_after(items_[i].src, from[i], items_[i].dst, to[i], !transfer);
  } catch (...) {
    if (transfer) umemTransfer_release(std::exchange(*transfer, nullptr));
    for (std::size_t i = 0; i < to.size(); i++)
      if (items_[i].dst.mirror) items_[i].dst.mirror->undo_overwrite(to[i].side);
    throw;
  }
}

} // namespace umem::detail

#endif
