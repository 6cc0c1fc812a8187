/* umem/detail/map_kernels.cuh - kernels that call a function with elements of one or several views.
 * */
#ifndef UMEM_DETAIL_MAP_KERNELS_CUH
#define UMEM_DETAIL_MAP_KERNELS_CUH

#include <umem/detail/index_kernels.cuh>
#include <umem/detail/loop_layout.hpp>
#include <umem/detail/pack.cuh>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* ---- elements that follow each other ---- */

template <int V, class F, class T, class... A>
__device__ void map_pack(F &f, Pack<std::remove_const_t<T>, V> &target,
                         Pack<A, V> const &...inputs) {
#pragma unroll
  for (int e = 0; e < V; e++) {
    T &element = target.at[e];
    f(element, inputs.at[e]...);
  }
}

/* One pack per thread; element 0 is number `head` of pack 0. load: that f reads the target. */
template <bool load, int V, class F, class T, class... A>
__global__ void __launch_bounds__(block_threads)
    map_packs(F f, std::uint32_t count, std::uint32_t head, T *target, A const *...inputs) {
  std::uint32_t end =
      (blockIdx.x * block_threads + threadIdx.x + 1) * V; /* of the pack, from head */
  if (end - V >= head && end - head <= count) {
    std::uint32_t first = end - V - head;
    Pack<std::remove_const_t<T>, V> pack;
    if constexpr (load) pack = load_pack<V>(target + first);
    map_pack<V, F, T, A...>(f, pack, load_pack<V>(inputs + first)...);
    if constexpr (!std::is_const_v<T>) store_pack<V>(target + first, pack);
  } else { /* the first or the last pack */
    for (std::uint32_t n = end - V; n < end; n++)
      if (n >= head && n - head < count) f(target[n - head], inputs[n - head]...);
  }
}

template <bool load, int V, class F, class T, class... A>
void launch_map_packs(DevicePlace const &place, F const &f, index count, int head, T *target,
                      A const *...inputs) {
  launch(place, map_packs<load, V, F, T, A...>, blocks_for(count + head, block_threads * V),
         block_threads, f, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(head),
         target, inputs...);
}

/* ---- elements with strides ---- */

template <int M, int N, class T> struct StridedOperand {
  T *data;
  Extents<N> strides;

  template <int... K, class... I>
  __device__ T &element(std::integer_sequence<int, K...>, I... i) const {
    return data[((i * strides.at[K]) + ... + index(0))];
  }
};

template <class Operands, int N, class F, class... T> struct MapStrided;

/* f(element of each operand) as a function of the indices of loops. */
template <int... M, int N, class F, class... T>
struct MapStrided<std::integer_sequence<int, M...>, N, F, T...> : StridedOperand<M, N, T>... {
  F f;

  MapStrided(F const &f_, LoopLayout<N, sizeof...(T)> const &loops, T *...data)
      : StridedOperand<M, N, T>{data, loops.strides[M]}..., f(f_) {}

  template <class... I> __device__ void operator()(I... i) {
    auto all = std::make_integer_sequence<int, N>();
    f(static_cast<StridedOperand<M, N, T> const &>(*this).element(all,
                                                                  static_cast<index>(i)...)...);
  }
};

/* The lead of tiles for the elements of target. */
template <int... M, int N, class F, class T, class... A>
int lead_for(MapStrided<std::integer_sequence<int, M...>, N, F, T, A...> const &call,
             Extents<N> const &begin) noexcept {
  StridedOperand<0, N, T> const &target = call;
  return line_lead(target.data, target.strides, begin);
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* f(element of target, element of each input) */
template <bool load, class F, class T, int N, class... A>
void device_map(DevicePlace const &place, F const &f, View<T, N> const &target,
                View<A const, N> const &...inputs) {
  if (target.size() == 0) return;
  auto loops = loops_of(target, inputs...);
  simplify(loops);
  constexpr int L = loop_rank<N>;
  if (!loops.is_contiguous()) {
    using All = std::make_integer_sequence<int, 1 + sizeof...(A)>;
    MapStrided<All, L, F, T, A const...> call(f, loops, target.data, inputs.data...);
    return device_indices<index>(place, call, Extents<L>(), loops.extents);
  }
  Work work(place);
  for (index first = 0, count = loops.extents.at[L - 1]; first < count; first += launch_elements) {
    constexpr int V = pack_size<T, A...>;
    index n = count - first < launch_elements ? count - first : launch_elements;
    int head = pack_head<V>(target.data + first, (inputs.data + first)...);
    if (head >= 0)
      launch_map_packs<load, V>(place, f, n, head, target.data + first, (inputs.data + first)...);
    else
      launch_map_packs<load, 1>(place, f, n, 0, target.data + first, (inputs.data + first)...);
  }
  work.finish();
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
