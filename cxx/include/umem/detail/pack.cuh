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

/* V elements of T without const. More than one fill whole accesses. */
template <class T, int V> union alignas(V > 1 ? access_bytes : alignof(T)) Pack {
  T at[V];

  __device__ Pack() {}
};

/* Whether accesses of 16 bytes hold whole elements. */
template <class T>
inline constexpr bool fits_access = sizeof(T) <= access_bytes && (sizeof(T) & (sizeof(T) - 1)) == 0;

constexpr std::size_t least(std::size_t a) { return a; }
template <class... S> constexpr std::size_t least(std::size_t a, std::size_t b, S... more) {
  return least(a < b ? a : b, more...);
}

/* The elements of a pack: as many of the smallest type as one access holds. */
template <class... T>
inline constexpr int pack_size = (fits_access<T> && ...)
                                     ? static_cast<int>(access_bytes / least(sizeof(T)...))
                                     : 1;

/* How many elements before the first one a run of packs must begin to align all accesses; -1 if
 * no number does. */
template <int V, class... T> int pack_head(T *...first) noexcept {
  auto is_aligned = [](std::uintptr_t adr, std::size_t size, int head) {
    return (adr - static_cast<std::size_t>(head) * size) % access_bytes == 0;
  };
  if (V == 1) return 0;
  for (int head = 0; head < V; head++)
    if ((is_aligned(reinterpret_cast<std::uintptr_t>(first), sizeof(T), head) && ...)) return head;
  return -1;
}

template <int V, class T> __device__ Pack<T, V> load_pack(T const *first) {
  return *reinterpret_cast<Pack<T, V> const *>(first);
}

/* By an intrinsic: the compiler splits other stores into elements. */
template <int V, class T> __device__ void store_pack(T *first, Pack<T, V> const &pack) {
  if constexpr (V > 1) {
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
template <int V, class I, class T>
__device__ Pack<std::remove_const_t<T>, V> load_part(T *data, I first, I count) {
  Pack<std::remove_const_t<T>, V> pack;
#pragma unroll
  for (int e = 0; e < V; e++)
    if (first + e >= 0 && first + e < count) pack.at[e] = data[first + e];
  return pack;
}
template <int V, class I, class T>
__device__ void store_part(T *data, I first, I count, Pack<T, V> const &pack) {
#pragma unroll
  for (int e = 0; e < V; e++)
    if (first + e >= 0 && first + e < count) data[first + e] = pack.at[e];
}

/* ---- operands of a loop ---- */

/* Elements that follow each other. loads: whether the function reads them. */
template <class T_, bool loads_> struct PackOperand {
  using T = T_;
  static constexpr bool loads = loads_;

  T *data;
};

/* A pack of an operand in registers. */
template <int V, class E> struct LoadedPack {
  typename E::T *data;
  Pack<std::remove_const_t<typename E::T>, V> pack;

  __device__ typename E::T &operator[](int e) { return pack.at[e]; }
};
template <int V, class I, class E>
__device__ LoadedPack<V, E> load_operand(E const &operand, I first, I count, bool is_whole) {
  LoadedPack<V, E> loaded;
  loaded.data = operand.data;
  if constexpr (E::loads)
    loaded.pack =
        is_whole ? load_pack<V>(operand.data + first) : load_part<V>(operand.data, first, count);
  return loaded;
}

/* call(e, element of each operand) for the elements of packs, which then are stored. Starts all loads before. */
template <int V, class Call, class I, class... E>
__device__ void map_whole(Call &call, I first, LoadedPack<V, E>... loaded) {
#pragma unroll
  for (int e = 0; e < V; e++) call(e, loaded[e]...);
  auto store = [&](auto &operand, auto *data) {
    if constexpr (!std::is_const_v<std::remove_pointer_t<decltype(data)>>)
      store_pack<V>(data + first, operand.pack);
  };
  (store(loaded, loaded.data), ...);
}
template <int V, class Call, class I, class... E>
__device__ void map_part(Call &call, I first, I count, LoadedPack<V, E>... loaded) {
#pragma unroll
  for (int e = 0; e < V; e++)
    if (first + e >= 0 && first + e < count) call(e, loaded[e]...);
  auto store = [&](auto &operand, auto *data) {
    if constexpr (!std::is_const_v<std::remove_pointer_t<decltype(data)>>)
      store_part<V>(data, first, count, operand.pack);
  };
  (store(loaded, loaded.data), ...);
}

/* call(e, element of each operand) for the elements [first, first + V) that are in [0, count). Uses whole accesses,
 * which then are aligned, if all of them are. */
template <int V, class Call, class I, class... E>
__device__ void map_pack_at(Call &&call, I first, I count, E const &...operands) {
  if (first >= 0 && first + V <= count)
    map_whole<V>(call, first, load_operand<V>(operands, first, count, true)...);
  else /* the first or the last pack */
    map_part<V>(call, first, count, load_operand<V>(operands, first, count, false)...);
}

} // namespace detail
} // namespace umem

#endif
