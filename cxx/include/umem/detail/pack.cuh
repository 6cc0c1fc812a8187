/* umem/detail/pack.cuh - several elements that a thread loads and stores with accesses of 16
 * bytes. */
#ifndef UMEM_DETAIL_PACK_CUH
#define UMEM_DETAIL_PACK_CUH

#include <umem/extents.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace umem {
namespace detail {

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

/* call(e, element of each operand) for the elements of packs, which then are stored. Starts all loads before. */
template <int Width, class Call, class Integer, class... Operands>
__device__ void map_whole(Call &invoke, Integer first, LoadedPack<Width, Operands>... loaded) {
#pragma unroll
  for (int e = 0; e < Width; e++) invoke(e, loaded[e]...);
  auto store = [&](auto &operand, auto *data) {
    if constexpr (!std::is_const_v<std::remove_pointer_t<decltype(data)>>)
      store_pack<Width>(data + first, operand.pack);
  };
  (store(loaded, loaded.data), ...);
}
template <int Width, class Call, class Integer, class... Operands>
__device__ void map_part(Call &invoke, Integer first, Integer count,
                         LoadedPack<Width, Operands>... loaded) {
#pragma unroll
  for (int e = 0; e < Width; e++)
    if (first + e >= 0 && first + e < count) invoke(e, loaded[e]...);
  auto store = [&](auto &operand, auto *data) {
    if constexpr (!std::is_const_v<std::remove_pointer_t<decltype(data)>>)
      store_part<Width>(data, first, count, operand.pack);
  };
  (store(loaded, loaded.data), ...);
}

/* call(e, element of each operand) for the elements [first, first + Width) that are in [0, count). Uses whole accesses,
 * which then are aligned, if all of them are. */
template <int Width, class Call, class Integer, class... Operands>
__device__ void map_pack_at(Call &&invoke, Integer first, Integer count,
                            Operands const &...operands) {
  if (first >= 0 && first + Width <= count)
    map_whole<Width>(invoke, first, load_operand<Width>(operands, first, count, true)...);
  else /* the first or the last pack */
    map_part<Width>(invoke, first, count, load_operand<Width>(operands, first, count, false)...);
}

} // namespace detail
} // namespace umem

#endif
