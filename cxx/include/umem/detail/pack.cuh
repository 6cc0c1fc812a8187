/* umem/detail/pack.cuh - several elements that a thread loads and stores with accesses of 16 bytes.
 * */
#ifndef UMEM_DETAIL_PACK_CUH
#define UMEM_DETAIL_PACK_CUH

#include <umem/extents.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace umem {
namespace detail {

inline constexpr std::size_t access_bytes = 16;

/* V elements, T without const; more than one fill whole accesses. */
template <class T, int V> union alignas(V > 1 ? access_bytes : alignof(T)) Pack {
  T at[V];

  __device__ Pack() {}
};

/* Whether elements can be cut from accesses of 16 bytes. */
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

/* How many elements before the first one a run of packs begins so that all accesses are aligned; -1
 * where there is no such number. */
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
template <int V, class T> __device__ void store_pack(T *first, Pack<T, V> const &pack) {
  *reinterpret_cast<Pack<T, V> *>(first) = pack;
}

} // namespace detail
} // namespace umem

#endif
