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

template <int V, class F, class T, class... A>
__device__ void map_pack(F &f, Pack<std::remove_const_t<T>, V> &target,
                         Pack<A, V> const &...inputs) {
#pragma unroll
  for (int e = 0; e < V; e++) {
    T &element = target.at[e];
    f(element, inputs.at[e]...);
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

template <bool load, int V, class I, class F, class T, class... A>
__device__ void map_part(F &f, I first, I count, T *target, Pack<A, V> const &...inputs) {
  Pack<std::remove_const_t<T>, V> pack;
  if constexpr (load) pack = load_part<V>(target, first, count);
#pragma unroll
  for (int e = 0; e < V; e++) {
    T &element = pack.at[e];
    if (first + e >= 0 && first + e < count) f(element, inputs.at[e]...);
  }
  if constexpr (!std::is_const_v<T>) store_part<V>(target, first, count, pack);
}

/* f(element of target, element of each input). Uses whole accesses, which are then aligned, if
 * all elements exist. load: f reads the target. */
template <bool load, int V, class I, class F, class T, class... A>
__device__ void map_pack_at(F &f, I first, I count, T *target, A const *...inputs) {
  if (first >= 0 && first + V <= count) {
    Pack<std::remove_const_t<T>, V> pack;
    if constexpr (load) pack = load_pack<V>(target + first);
    map_pack<V, F, T, A...>(f, pack, load_pack<V>(inputs + first)...);
    if constexpr (!std::is_const_v<T>) store_pack<V>(target + first, pack);
  } else { /* the first or the last pack */
    map_part<load, V, I, F, T, A...>(f, first, count, target,
                                     load_part<V>(inputs, first, count)...);
  }
}

} // namespace detail
} // namespace umem

#endif
