/* umem/detail/map_kernels.cuh - kernels that call a function with elements of one or several views.
 * */
#ifndef UMEM_DETAIL_MAP_KERNELS_CUH
#define UMEM_DETAIL_MAP_KERNELS_CUH

#include <umem/detail/index_kernels.cuh>
#include <umem/detail/loop_layout.hpp>
#include <umem/detail/pack.cuh>
#include <umem/detail/row_kernels.cuh>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* ---- elements that follow each other ---- */

/* One pack per thread; element 0 is number `head` of pack 0. load: f reads the target. */
template <bool load, int V, class F, class T, class... A>
__global__ void __launch_bounds__(block_threads)
    map_packs(F f, std::int32_t count, std::int32_t head, T *target, A const *...inputs) {
  auto pack = static_cast<std::int32_t>(blockIdx.x * block_threads + threadIdx.x);
  map_pack_at<load, V>(f, pack * V - head, count, target, inputs...);
}

template <bool load, int V, class F, class T, class... A>
void launch_map_packs(DevicePlace const &place, F const &f, index count, int head, T *target,
                      A const *...inputs) {
  launch(place, map_packs<load, V, F, T, A...>, blocks_for(count + head, block_threads * V),
         block_threads, f, static_cast<std::int32_t>(count), static_cast<std::int32_t>(head),
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

  template <class... I> __device__ decltype(auto) operator()(I... i) {
    auto all = std::make_integer_sequence<int, N>();
    return f(static_cast<StridedOperand<M, N, T> const &>(*this).element(
        all, static_cast<index>(i)...)...);
  }
};

/* The lead of the tiles for the elements of target. */
template <int... M, int N, class F, class T, class... A>
int lead_for(MapStrided<std::integer_sequence<int, M...>, N, F, T, A...> const &call,
             Extents<N> const &begin) noexcept {
  StridedOperand<0, N, T> const &target = call;
  return line_lead(target.data, target.strides, begin);
}

/* ---- elements that follow each other in rows ---- */

/* Whether aligned packs in one row mean aligned packs in all rows, in all operands. */
template <int V, int N, int M> bool has_packed_rows(LoopLayout<N, M> const &loops) noexcept {
  if (V == 1 || loops.extents.at[N - 1] < least_row<V>) return false;
  for (Extents<N> const &stride : loops.strides) {
    if (stride.at[N - 1] != 1) return false;
    for (int k = 0; k < N - 1; k++)
      if (loops.extents.at[k] != 1 && (stride.at[k] - loops.strides[0].at[k]) % V != 0)
        return false;
  }
  return true;
}

template <bool load, int V, class Operands, int N, class F, class... T> struct MapRows;

/* f(element of each operand) as a function of the indices of rows and, as the last index, of the
 * packs in a row. */
template <bool load, int V, int... M, int N, class F, class... T>
struct MapRows<load, V, std::integer_sequence<int, M...>, N, F, T...> : StridedOperand<M, N, T>... {
  F f;
  index count; /* of elements in a row */
  int head;    /* the number of element 0 of the first row in pack 0 */

  MapRows(F const &f_, int head_, LoopLayout<N, sizeof...(T)> const &loops, T *...data)
      : StridedOperand<M, N, T>{data, loops.strides[M]}..., f(f_), count(loops.extents.at[N - 1]),
        head(head_) {}

  template <class... I> __device__ void operator()(I... i) { map(last_of(i...), row<M>(i...)...); }

private:
  template <int m, class... I> __device__ auto row(I... i) const {
    auto const &operand = of<m>(*this);
    return row_at(operand.data, operand.strides, std::make_integer_sequence<int, N>(), i...);
  }
  template <int m, class U> __device__ static auto of(StridedOperand<m, N, U> const &operand) {
    return operand;
  }

  template <class U, class... A> __device__ void map(index pack, U *target, A *...inputs) {
    index begin = pack_begin<V>(pack, head, target - of<0>(*this).data);
    map_pack_at<load, V>(f, begin, count, target, inputs...);
  }
};

inline namespace UMEM_LAUNCH_NAMESPACE {

/* f(element of target, element of each input) */
template <bool load, class F, class T, int N, class... A>
void device_map(DevicePlace const &place, F const &f, View<T, N> const &target,
                View<A const, N> const &...inputs) {
  if (target.size() == 0) return;
  auto loops = loops_of(target, inputs...);
  simplify(loops);
  constexpr int L = loop_rank<N>;
  constexpr int V = pack_size<T, A...>;
  if (!loops.is_contiguous()) {
    using All = std::make_integer_sequence<int, 1 + sizeof...(A)>;
    if (int head = pack_head<V>(target.data, inputs.data...); head >= 0)
      if (has_packed_rows<V>(loops)) {
        MapRows<load, V, All, L, F, T, A const...> call(f, head, loops, target.data,
                                                        inputs.data...);
        Extents<L> packs = loops.extents;
        packs.at[L - 1] = packs_of_row<V>(packs.at[L - 1]);
        return device_indices<index>(place, call, Extents<L>(), packs);
      }
    MapStrided<All, L, F, T, A const...> call(f, loops, target.data, inputs.data...);
    return device_indices<index>(place, call, Extents<L>(), loops.extents);
  }
  Work work(place);
  for (index first = 0, count = loops.extents.at[L - 1]; first < count; first += launch_elements) {
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
