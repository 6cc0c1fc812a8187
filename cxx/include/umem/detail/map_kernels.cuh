/* umem/detail/map_kernels.cuh - kernels that call a function with elements of any number of views,
 * and with their indices. */
#ifndef UMEM_DETAIL_MAP_KERNELS_CUH
#define UMEM_DETAIL_MAP_KERNELS_CUH

#include <umem/detail/host_loops.hpp>
#include <umem/detail/launch.cuh>
#include <umem/detail/operand.hpp>

namespace umem::detail {

/* Several elements that a thread loads and stores with accesses of 16
 * bytes. */

inline constexpr std::size_t access_bytes = 16;

/* Width elements of Type without const. More than one fill whole accesses. */
template <class Type, int Width> union alignas(Width > 1 ? access_bytes : alignof(Type)) Pack {
  Type at[Width];

  __device__ Pack() {}
};

/* Whether accesses of 16 bytes hold whole elements. */
template <class Type>
inline constexpr bool fits_access = sizeof(Type) <= access_bytes &&
                                    (sizeof(Type) & (sizeof(Type) - 1)) == 0;

constexpr std::size_t least(std::size_t a) { return a; }
template <class... Slices>
constexpr std::size_t least(std::size_t a, std::size_t b, Slices... more) {
  return least(a < b ? a : b, more...);
}

/* The elements of a pack: as many of the smallest type as one access holds. */
template <class... Types>
inline constexpr int pack_size = (fits_access<Types> && ...)
                                     ? static_cast<int>(access_bytes / least(sizeof(Types)...))
                                     : 1;

/* How many elements before the first one a run of packs must begin to align all accesses; -1 if
 * no number does. */
template <int Width, class... Types> int pack_head(Types *...first) noexcept {
  auto is_aligned = [](std::uintptr_t adr, std::size_t size, int head) {
    return (adr - static_cast<std::size_t>(head) * size) % access_bytes == 0;
  };
  if (Width == 1) return 0;
  for (int head = 0; head < Width; head++)
    if ((is_aligned(reinterpret_cast<std::uintptr_t>(first), sizeof(Types), head) && ...))
      return head;
  return -1;
}

template <int Width, class Type> __device__ Pack<Type, Width> load_pack(Type const *first) {
  return *reinterpret_cast<Pack<Type, Width> const *>(first);
}

/* By an intrinsic: the compiler splits other stores into elements. */
template <int Width, class Type>
__device__ void store_pack(Type *first, Pack<Type, Width> const &pack) {
  if constexpr (Width > 1) {
    uint4 access[sizeof pack / access_bytes];
    std::memcpy(access, &pack, sizeof pack);
#pragma unroll
    for (std::size_t n = 0; n < sizeof pack / access_bytes; n++)
      __stwb(reinterpret_cast<uint4 *>(first) + n, access[n]);
  } else {
    *first = pack.at[0];
  }
}

/* ---- those of the elements [first, first + V) that are in [0, count) ---- */

/* Starts all loads before it waits for one. */
template <int Width, class Integer, class Type>
__device__ Pack<std::remove_const_t<Type>, Width> load_part(Type *data, Integer first,
                                                            Integer count) {
  Pack<std::remove_const_t<Type>, Width> pack;
#pragma unroll
  for (int e = 0; e < Width; e++)
    if (first + e >= 0 && first + e < count) pack.at[e] = data[first + e];
  return pack;
}
template <int Width, class Integer, class Type>
__device__ void store_part(Type *data, Integer first, Integer count,
                           Pack<Type, Width> const &pack) {
#pragma unroll
  for (int e = 0; e < Width; e++)
    if (first + e >= 0 && first + e < count) data[first + e] = pack.at[e];
}

/* ---- operands of a loop ---- */

/* Elements that follow each other. loads: whether the function reads them. */
template <class ElementType, bool loads_> struct PackOperand {
  using Type = ElementType;
  static constexpr bool loads = loads_;

  Type *data;
};

/* A pack of an operand in registers. */
template <int Width, class Operand> struct LoadedPack {
  typename Operand::Type *data;
  Pack<std::remove_const_t<typename Operand::Type>, Width> pack;

  __device__ typename Operand::Type &operator[](int e) { return pack.at[e]; }
};
template <int Width, class Integer, class Operand>
__device__ LoadedPack<Width, Operand> load_operand(Operand const &operand, Integer first,
                                                   Integer count, bool is_whole) {
  LoadedPack<Width, Operand> loaded;
  loaded.data = operand.data;
  if constexpr (Operand::loads)
    loaded.pack = is_whole ? load_pack<Width>(operand.data + first)
                           : load_part<Width>(operand.data, first, count);
  return loaded;
}

/* call(e, element of each operand) for the elements of packs, which then are stored. Starts all
 * loads before. */
template <bool whole, int Width, class Call, class Integer, class... Operands>
__device__ void map_pack(Call &invoke, Integer first, Integer count,
                         LoadedPack<Width, Operands>... loaded) {
#pragma unroll
  for (int e = 0; e < Width; e++)
    if (whole || (first + e >= 0 && first + e < count)) invoke(e, loaded[e]...);
  auto store = [&](auto &operand, auto *data) {
    if constexpr (std::is_const_v<std::remove_pointer_t<decltype(data)>>)
      return;
    else if constexpr (whole)
      store_pack<Width>(data + first, operand.pack);
    else
      store_part<Width>(data, first, count, operand.pack);
  };
  (store(loaded, loaded.data), ...);
}

/* call(e, element of each operand) for the elements [first, first + Width) that are in [0, count).
 * Uses whole accesses, which then are aligned, if all of them are. */
template <int Width, class Call, class Integer, class... Operands>
__device__ void map_pack_at(Call &&invoke, Integer first, Integer count,
                            Operands const &...operands) {
  if (first >= 0 && first + Width <= count)
    map_pack<true>(invoke, first, count, load_operand<Width>(operands, first, count, true)...);
  else /* the first or the last pack */
    map_pack<false>(invoke, first, count, load_operand<Width>(operands, first, count, false)...);
}

/* Elements of views that are contiguous within each row, but not
 * from row to row, such as interiors of views with ghost cells: functions of the indices of rows
 * and, as the last index, of the packs in a row. */

/* Rows with fewer elements gain nothing from packs. */
template <int Width> inline constexpr index_t least_row = 8 * Width;

/* The most packs that a row of count elements can overlap, wherever it begins. */
template <int Width> constexpr index_t packs_of_row(index_t count) noexcept {
  return (count + 2 * (Width - 1)) / Width;
}

/* A row, starting at its element 0. All indices count but the last. */
template <class Type, int Rank, int... Nth, class... Indices>
__device__ Type *row_at(Type *data, Extents<Rank> const &strides,
                        std::integer_sequence<int, Nth...>, Indices... i) {
  return data +
         ((Nth < Rank - 1 ? static_cast<index_t>(i) * strides.at[Nth] : 0) + ... + index_t(0));
}

/* The number of the first element of a pack of a row, counted from element 0, which is number
 * (head + offset) % Width of pack 0. */
template <int Width> __device__ index_t pack_begin(index_t pack, index_t head, index_t offset) {
  return pack * Width - ((head + offset) & (Width - 1));
}

/* ---- elements that follow each other ---- */

/* One pack per thread; element 0 is number `head` of pack 0. */
template <int Width, class Function, class... Packs>
__global__ void __launch_bounds__(block_threads)
    map_packs(Function functor, std::int32_t count, std::int32_t head, Packs... operands) {
  auto pack = static_cast<std::int32_t>(blockIdx.x * block_threads + threadIdx.x);
  map_pack_at<Width>([&](int, auto &...elements) { functor(elements...); }, pack * Width - head,
                     count, operands...);
}

template <int Width, class Function, class... Packs>
void launch_map_packs(DevicePlace const &place, Function const &functor, index_t count, int head,
                      Packs const &...operands) {
  launch(place, map_packs<Width, Function, Packs...>,
         blocks_for(count + head, block_threads * Width), block_threads, functor,
         static_cast<std::int32_t>(count), static_cast<std::int32_t>(head), operands...);
}

/* Converts the number of an element to its indices, and steps to the next element. */
template <int Rank> struct Walk {
  Extents<Rank> begin; /* the indices of element 0 */
  Divider extents[Rank];

  __device__ void start(std::uint32_t n, std::uint32_t (&at)[Rank]) const {
#pragma unroll
    for (int k = Rank - 1; k > 0; k--) at[k] = extents[k].take_remainder(n);
    at[0] = n;
  }
  __device__ void next(std::uint32_t (&at)[Rank]) const {
#pragma unroll
    for (int k = Rank - 1; k > 0; k--) {
      if (++at[k] != extents[k].divisor) return;
      at[k] = 0;
    }
    at[0]++;
  }
  template <class Index, class Function, int... Dims, class... Types>
  __device__ void invoke(Function &functor, std::uint32_t const (&at)[Rank],
                         std::integer_sequence<int, Dims...>, Types &...elements) const {
    functor(elements..., static_cast<Index>(begin.at[Dims] + at[Dims])...);
  }
};

/* Calls functor for packs of elements and their indices. */
template <class Index, int Width, int Rank, class Function, class... Packs>
__global__ void __launch_bounds__(block_threads)
    indexed_packs(Function functor, std::int32_t count, std::int32_t head, Walk<Rank> walk,
                  Packs... operands) {
  auto pack = static_cast<std::int32_t>(blockIdx.x * block_threads + threadIdx.x);
  std::int32_t const first = pack * Width - head;
  std::uint32_t at[Rank];
  bool has_started = false;
  map_pack_at<Width>(
      [&](int e, auto &...elements) {
        if (has_started)
          walk.next(at);
        else
          walk.start(static_cast<std::uint32_t>(first + e), at);
        has_started = true;
        walk.template invoke<Index>(functor, at, std::make_integer_sequence<int, Rank>(),
                                    elements...);
      },
      first, count, operands...);
}

template <class Index, int Width, int Rank, class Function, class... Packs>
void launch_indexed_packs(DevicePlace const &place, Function const &functor, int head,
                          Extents<Rank> const &begin, Extents<Rank> const &end,
                          Packs const &...operands) {
  Walk<Rank> walk;
  walk.begin = begin;
  index_t count = 1;
  for (int k = 0; k < Rank; k++) {
    walk.extents[k] = Divider(static_cast<std::uint32_t>(end.at[k] - begin.at[k]));
    count *= end.at[k] - begin.at[k];
  }
  launch(place, indexed_packs<Index, Width, Rank, Function, Packs...>,
         blocks_for(count + head, block_threads * Width), block_threads, functor,
         static_cast<std::int32_t>(count), static_cast<std::int32_t>(head), walk, operands...);
}

/* ---- elements with strides ---- */

template <int Count, int Rank, class Type> struct StridedOperand {
  Type *data;
  Extents<Rank> strides;

  template <class... Indices> __device__ Type &element(Indices... i) const {
    return data[offset_of(strides, i...)];
  }
};

template <bool indexed, class Operands, int Rank, class Function, class... Types> struct MapStrided;

/* functor(element of each operand), if indexed with the indices after, as a function of the indices
 * of loops. */
template <bool indexed, int... Nth, int Rank, class Function, class... Types>
struct MapStrided<indexed, std::integer_sequence<int, Nth...>, Rank, Function, Types...>
    : StridedOperand<Nth, Rank, Types>... {
  Function functor;

  MapStrided(Function const &f_, LoopLayout<Rank, sizeof...(Types)> const &loops, Types *...data)
      : StridedOperand<Nth, Rank, Types>{data, loops.strides[Nth]}..., functor(f_) {}

  template <class... Indices> __device__ decltype(auto) operator()(Indices... i) {
    if constexpr (indexed)
      return functor(StridedOperand<Nth, Rank, Types>::element(i...)..., i...);
    else
      return functor(StridedOperand<Nth, Rank, Types>::element(i...)...);
  }
};

/* The lead of the tiles for the elements of the first operand. */
template <bool indexed, int... Nth, int Rank, class Function, class Type, class... Args>
int lead_for(MapStrided<indexed, std::integer_sequence<int, Nth...>, Rank, Function, Type,
                        Args...> const &invoke,
             Extents<Rank> const &begin) noexcept {
  StridedOperand<0, Rank, Type> const &target = invoke;
  return line_lead(target.data, target.strides, begin);
}

/* ---- elements that follow each other in rows ---- */

/* Whether aligned packs in one row mean aligned packs in all rows, in all operands. */
template <int Width, int Rank, int Count>
bool has_packed_rows(LoopLayout<Rank, Count> const &loops) noexcept {
  if (Width == 1 || loops.extents.at[Rank - 1] < least_row<Width>) return false;
  for (Extents<Rank> const &stride : loops.strides) {
    if (stride.at[Rank - 1] != 1) return false;
    for (int k = 0; k < Rank - 1; k++)
      if (loops.extents.at[k] != 1 && (stride.at[k] - loops.strides[0].at[k]) % Width != 0)
        return false;
  }
  return true;
}

template <class Index, int Width, class Operands, int Rank, class Function, class... Packs>
struct MapRows;

/* functor(element of each operand) as a function of the indices of rows and, as the last index, of
 * the packs in a row. If Index is not void, with the indices after. */
template <class Index, int Width, int... Nth, int Rank, class Function, class... Packs>
struct MapRows<Index, Width, std::integer_sequence<int, Nth...>, Rank, Function, Packs...>
    : StridedOperand<Nth, Rank, typename Packs::Type>... {
  Function functor;
  index_t begin, count; /* of the elements of a row */
  int head;             /* the number of element (0, ..., 0, begin) in pack 0 */

  MapRows(Function const &f_, int head_, index_t begin_,
          LoopLayout<Rank, sizeof...(Packs)> const &loops, Packs const &...operands)
      : StridedOperand<Nth, Rank, typename Packs::Type>{operands.data, loops.strides[Nth]}...,
        functor(f_), begin(begin_), count(loops.extents.at[Rank - 1]), head(head_) {}

  template <class... Indices> __device__ void operator()(Indices... i) {
    map(Extents<Rank>(static_cast<index_t>(i)...), Packs{row<Nth, typename Packs::Type>(i...)}...);
  }

private:
  template <int m, class Type, class... Indices> __device__ Type *row(Indices... i) const {
    StridedOperand<m, Rank, Type> const &operand = *this;
    return row_at(operand.data, operand.strides, std::make_integer_sequence<int, Rank>(), i...) +
           begin;
  }

  template <class Row, class... Rows>
  __device__ void map(Extents<Rank> at, Row const &target, Rows const &...others) {
    StridedOperand<0, Rank, typename Row::Type> const &operand = *this;
    index_t first = pack_begin<Width>(at.at[Rank - 1], head, target.data - operand.data - begin);
    map_pack_at<Width>(
        [&](int e, auto &...elements) {
          at.at[Rank - 1] = begin + first + e;
          invoke(at, std::make_integer_sequence<int, Rank>(), elements...);
        },
        first, count, target, others...);
  }

  template <int... Dims, class... Types>
  __device__ void invoke(Extents<Rank> const &at, std::integer_sequence<int, Dims...>,
                         Types &...elements) {
    if constexpr (std::is_void_v<Index>)
      functor(elements...);
    else
      functor(elements..., static_cast<Index>(at.at[Dims])...);
  }
};

/* ---- views as operands ---- */

template <class Type, int Rank>
PackOperand<Type, true> operand_from(View<Type, Rank> const &view, index_t first) noexcept {
  return {view.data + first};
}
template <class Type, int Rank>
PackOperand<Type, false> operand_from(FreshView<Type, Rank> const &view, index_t first) noexcept {
  return {view.data + first};
}
template <class ViewType>
using packs_of = decltype(operand_from(std::declval<ViewType const &>(), 0));

/* Loops over views with gaps between their elements: over the packs of rows where these are
 * aligned, else over the elements. */
template <class Index, int Rank, class Function, class... Views>
void device_map_rows(DevicePlace const &place, Function const &functor,
                     LoopLayout<Rank, static_cast<int>(sizeof...(Views))> const &loops,
                     Extents<Rank> begin, Extents<Rank> end, Views const &...views) {
  constexpr bool indexed = !std::is_void_v<Index>;
  constexpr int Width = pack_size<typename Views::value_type...>;
  using All = std::make_integer_sequence<int, sizeof...(Views)>;
  for (int k = 0; k < Rank; k++)
    if (begin.at[k] >= end.at[k]) return; /* views without elements may have no memory */
  index_t const first = begin.at[Rank - 1];
  if (int head = pack_head<Width>((views.data + first)...);
      head >= 0 && has_packed_rows<Width>(loops)) {
    MapRows<Index, Width, All, Rank, Function, packs_of<Views>...> invoke(
        functor, head, first, loops, operand_from(views, 0)...);
    begin.at[Rank - 1] = 0;
    end.at[Rank - 1] = packs_of_row<Width>(loops.extents.at[Rank - 1]);
    return device_indices<index_t>(place, invoke, begin, end);
  }
  MapStrided<indexed, All, Rank, Function, typename Views::element_type...> invoke(functor, loops,
                                                                                   views.data...);
  device_indices<std::conditional_t<indexed, Index, index_t>>(place, invoke, begin, end);
}

/* functor(element of each operand, i, j, ...) for loops over transposed views: it gets the indices
 * in reversed order. */
template <class Function, class All, class... Types> struct DeviceReversedIndices;
template <class Function, int... Dims, class... Types>
struct DeviceReversedIndices<Function, std::integer_sequence<int, Dims...>, Types...> {
  Function functor;

  template <class... Indices> __device__ void operator()(Types &...elements, Indices... i) {
    std::common_type_t<Indices...> const at[] = {i...};
    functor(elements..., at[sizeof...(Dims) - 1 - Dims]...);
  }
};

/* Loops over views in column-major order: threads beside each other get elements beside each
 * other. */
template <class Index, int Rank, class Function, class... Views>
void device_map_columns(DevicePlace const &place, Function const &functor,
                        Extents<Rank> const &begin, Extents<Rank> const &end,
                        Views const &...views) {
  using All = std::make_integer_sequence<int, sizeof...(Views)>;
  using Call = DeviceReversedIndices<Function, std::make_integer_sequence<int, Rank>,
                                     typename Views::element_type...>;
  for (int k = 0; k < Rank; k++)
    if (begin.at[k] >= end.at[k]) return; /* views without elements may have no memory */
  MapStrided<true, All, Rank, Call, typename Views::element_type...> invoke(
      Call{functor}, loops_of(views.transpose()...), views.data...);
  device_indices<Index>(place, invoke, reversed(begin), reversed(end));
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* functor(element of each view) */
template <class Function, class ViewType, class... More>
void device_map(DevicePlace const &place, Function const &functor, ViewType const &view,
                More const &...others) {
  if (view.size() == 0) return;
  auto loops = loops_of(view, others...);
  simplify(loops);
  constexpr int Loops = loop_rank<ViewType::rank>;
  constexpr int Width = pack_size<typename ViewType::value_type, typename More::value_type...>;
  if (!loops.is_contiguous())
    return device_map_rows<void>(place, functor, loops, Extents<Loops>(), loops.extents, view,
                                 others...);
  Work work(place);
  for (index_t first = 0, count = loops.extents.at[Loops - 1]; first < count;
       first += launch_elements) {
    index_t n = count - first < launch_elements ? count - first : launch_elements;
    int head = pack_head<Width>(view.data + first, (others.data + first)...);
    if (head >= 0)
      launch_map_packs<Width>(place, functor, n, head, operand_from(view, first),
                              operand_from(others, first)...);
    else
      launch_map_packs<1>(place, functor, n, 0, operand_from(view, first),
                          operand_from(others, first)...);
  }
  work.finish();
}

/* functor(element of each view, i, j, ...) for begin <= (i, j, ...) < end. */
template <class Index, int Rank, class Function, class... Views>
void device_indexed(DevicePlace const &place, Function const &functor, Extents<Rank> const &begin,
                    Extents<Rank> const &end, Views const &...views) {
  bool is_whole =
      begin == Extents<Rank>() && ((end == views.extents && views.is_contiguous()) && ...);
  auto loops = loops_of(views...);
  if constexpr (Rank == 0) {
    device_map(place, functor, views...);
  } else if (Rank > 1 && ((views.strides.at[0] == 1 && views.strides.at[Rank - 1] != 1) && ...)) {
    if constexpr (Rank > 1) device_map_columns<Index>(place, functor, begin, end, views...);
  } else if (!is_whole) {
    for (int k = 0; k < Rank; k++) loops.extents.at[k] = end.at[k] - begin.at[k];
    device_map_rows<Index>(place, functor, loops, begin, end, views...);
  } else {
    Work work(place);
    in_launches(begin, end, [&](Extents<Rank> const &low, Extents<Rank> const &high) {
      constexpr int Width = pack_size<typename Views::value_type...>;
      index_t const first = distance(low, c_strides(end));
      int head = pack_head<Width>((views.data + first)...);
      if (head >= 0)
        launch_indexed_packs<Index, Width>(place, functor, head, low, high,
                                           operand_from(views, first)...);
      else
        launch_indexed_packs<Index, 1>(place, functor, 0, low, high, operand_from(views, first)...);
    });
    work.finish();
  }
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem::detail

#endif
