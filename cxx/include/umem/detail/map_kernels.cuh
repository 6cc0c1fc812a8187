/* umem/detail/map_kernels.cuh - kernels that call a function with elements of any number of views, and with their
 * indices. */
#ifndef UMEM_DETAIL_MAP_KERNELS_CUH
#define UMEM_DETAIL_MAP_KERNELS_CUH

#include <umem/detail/divider.hpp>
#include <umem/detail/index_kernels.cuh>
#include <umem/detail/loop_layout.hpp>
#include <umem/detail/operand.hpp>
#include <umem/detail/pack.cuh>
#include <umem/detail/row_kernels.cuh>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* ---- elements that follow each other ---- */

/* One pack per thread; element 0 is number `head` of pack 0. */
template <int V, class F, class... E>
__global__ void __launch_bounds__(block_threads)
    map_packs(F f, std::int32_t count, std::int32_t head, E... operands) {
  auto pack = static_cast<std::int32_t>(blockIdx.x * block_threads + threadIdx.x);
  map_pack_at<V>([&](int, auto &...elements) { f(elements...); }, pack * V - head, count,
                 operands...);
}

template <int V, class F, class... E>
void launch_map_packs(DevicePlace const &place, F const &f, index_t count, int head,
                      E const &...operands) {
  launch(place, map_packs<V, F, E...>, blocks_for(count + head, block_threads * V), block_threads,
         f, static_cast<std::int32_t>(count), static_cast<std::int32_t>(head), operands...);
}

/* Converts the number of an element to its indices, and steps to the next element. */
template <int N> struct Walk {
  Extents<N> begin; /* the indices of element 0 */
  Divider extents[N];

  __device__ void start(std::uint32_t n, std::uint32_t (&at)[N]) const {
#pragma unroll
    for (int k = N - 1; k > 0; k--) at[k] = extents[k].take_remainder(n);
    at[0] = n;
  }
  __device__ void next(std::uint32_t (&at)[N]) const {
#pragma unroll
    for (int k = N - 1; k > 0; k--) {
      if (++at[k] != extents[k].divisor) return;
      at[k] = 0;
    }
    at[0]++;
  }
  template <class Index, class F, int... K, class... T>
  __device__ void call(F &f, std::uint32_t const (&at)[N], std::integer_sequence<int, K...>,
                       T &...elements) const {
    f(elements..., static_cast<Index>(begin.at[K] + at[K])...);
  }
};

/* The same with the indices of the elements. */
template <class Index, int V, int N, class F, class... E>
__global__ void __launch_bounds__(block_threads)
    indexed_packs(F f, std::int32_t count, std::int32_t head, Walk<N> walk, E... operands) {
  auto pack = static_cast<std::int32_t>(blockIdx.x * block_threads + threadIdx.x);
  std::int32_t const first = pack * V - head;
  std::uint32_t at[N];
  bool has_started = false;
  map_pack_at<V>(
      [&](int e, auto &...elements) {
        if (has_started)
          walk.next(at);
        else
          walk.start(static_cast<std::uint32_t>(first + e), at);
        has_started = true;
        walk.template call<Index>(f, at, std::make_integer_sequence<int, N>(), elements...);
      },
      first, count, operands...);
}

template <class Index, int V, int N, class F, class... E>
void launch_indexed_packs(DevicePlace const &place, F const &f, int head, Extents<N> const &begin,
                          Extents<N> const &end, E const &...operands) {
  Walk<N> walk;
  walk.begin = begin;
  index_t count = 1;
  for (int k = 0; k < N; k++) {
    walk.extents[k] = Divider(static_cast<std::uint32_t>(end.at[k] - begin.at[k]));
    count *= end.at[k] - begin.at[k];
  }
  launch(place, indexed_packs<Index, V, N, F, E...>, blocks_for(count + head, block_threads * V),
         block_threads, f, static_cast<std::int32_t>(count), static_cast<std::int32_t>(head), walk,
         operands...);
}

/* ---- elements with strides ---- */

template <int M, int N, class T> struct StridedOperand {
  T *data;
  Extents<N> strides;

  template <int... K, class... I>
  __device__ T &element(std::integer_sequence<int, K...>, I... i) const {
    return data[((i * strides.at[K]) + ... + index_t(0))];
  }
};

template <bool indexed, class Operands, int N, class F, class... T> struct MapStrided;

/* f(element of each operand), if indexed with the indices after, as a function of the indices of loops. */
template <bool indexed, int... M, int N, class F, class... T>
struct MapStrided<indexed, std::integer_sequence<int, M...>, N, F, T...>
    : StridedOperand<M, N, T>... {
  F f;

  MapStrided(F const &f_, LoopLayout<N, sizeof...(T)> const &loops, T *...data)
      : StridedOperand<M, N, T>{data, loops.strides[M]}..., f(f_) {}

  template <class... I> __device__ decltype(auto) operator()(I... i) {
    auto all = std::make_integer_sequence<int, N>();
    if constexpr (indexed)
      return f(static_cast<StridedOperand<M, N, T> const &>(*this).element(
                   all, static_cast<index_t>(i)...)...,
               i...);
    else
      return f(static_cast<StridedOperand<M, N, T> const &>(*this).element(
          all, static_cast<index_t>(i)...)...);
  }
};

/* The lead of the tiles for the elements of the first operand. */
template <bool indexed, int... M, int N, class F, class T, class... A>
int lead_for(MapStrided<indexed, std::integer_sequence<int, M...>, N, F, T, A...> const &call,
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

template <class Index, int V, class Operands, int N, class F, class... E> struct MapRows;

/* f(element of each operand) as a function of the indices of rows and, as the last index, of the packs in a row. If Index
 * is not void, with the indices after. */
template <class Index, int V, int... M, int N, class F, class... E>
struct MapRows<Index, V, std::integer_sequence<int, M...>, N, F, E...>
    : StridedOperand<M, N, typename E::T>... {
  F f;
  index_t begin, count; /* of the elements of a row */
  int head;             /* the number of element (0, ..., 0, begin) in pack 0 */

  MapRows(F const &f_, int head_, index_t begin_, LoopLayout<N, sizeof...(E)> const &loops,
          E const &...operands)
      : StridedOperand<M, N, typename E::T>{operands.data, loops.strides[M]}..., f(f_),
        begin(begin_), count(loops.extents.at[N - 1]), head(head_) {}

  template <class... I> __device__ void operator()(I... i) {
    map(Extents<N>(static_cast<index_t>(i)...), E{row<M, typename E::T>(i...)}...);
  }

private:
  template <int m, class T, class... I> __device__ T *row(I... i) const {
    StridedOperand<m, N, T> const &operand = *this;
    return row_at(operand.data, operand.strides, std::make_integer_sequence<int, N>(), i...) +
           begin;
  }

  template <class Row, class... Rows>
  __device__ void map(Extents<N> at, Row const &target, Rows const &...others) {
    StridedOperand<0, N, typename Row::T> const &operand = *this;
    index_t first = pack_begin<V>(at.at[N - 1], head, target.data - operand.data - begin);
    map_pack_at<V>(
        [&](int e, auto &...elements) {
          at.at[N - 1] = begin + first + e;
          call(at, std::make_integer_sequence<int, N>(), elements...);
        },
        first, count, target, others...);
  }

  template <int... K, class... T>
  __device__ void call(Extents<N> const &at, std::integer_sequence<int, K...>, T &...elements) {
    if constexpr (std::is_void_v<Index>)
      f(elements...);
    else
      f(elements..., static_cast<Index>(at.at[K])...);
  }
};

/* ---- views as operands ---- */

template <class T, int N>
PackOperand<T, true> operand_from(View<T, N> const &view, index_t first) noexcept {
  return {view.data + first};
}
template <class T, int N>
PackOperand<T, false> operand_from(FreshView<T, N> const &view, index_t first) noexcept {
  return {view.data + first};
}
template <class V> using packs_of = decltype(operand_from(std::declval<V const &>(), 0));

/* Loops over views with gaps between their elements: over the packs of rows where these are aligned, else over the
 * elements. */
template <class Index, int N, class F, class... V>
void device_map_rows(DevicePlace const &place, F const &f,
                     LoopLayout<N, static_cast<int>(sizeof...(V))> const &loops, Extents<N> begin,
                     Extents<N> end, V const &...views) {
  constexpr bool indexed = !std::is_void_v<Index>;
  constexpr int P = pack_size<typename V::value_type...>;
  using All = std::make_integer_sequence<int, sizeof...(V)>;
  for (int k = 0; k < N; k++)
    if (begin.at[k] >= end.at[k]) return; /* views without elements may have no memory */
  index_t const first = begin.at[N - 1];
  if (int head = pack_head<P>((views.data + first)...); head >= 0 && has_packed_rows<P>(loops)) {
    MapRows<Index, P, All, N, F, packs_of<V>...> call(f, head, first, loops,
                                                      operand_from(views, 0)...);
    begin.at[N - 1] = 0;
    end.at[N - 1] = packs_of_row<P>(loops.extents.at[N - 1]);
    return device_indices<index_t>(place, call, begin, end);
  }
  MapStrided<indexed, All, N, F, typename V::element_type...> call(f, loops, views.data...);
  device_indices<std::conditional_t<indexed, Index, index_t>>(place, call, begin, end);
}

/* f(element of each operand, i, j, ...) for loops over transposed views: it gets the indices in reversed order. */
template <class F, class All, class... T> struct DeviceReversedIndices;
template <class F, int... K, class... T>
struct DeviceReversedIndices<F, std::integer_sequence<int, K...>, T...> {
  F f;

  template <class... I> __device__ void operator()(T &...elements, I... i) {
    std::common_type_t<I...> const at[] = {i...};
    f(elements..., at[sizeof...(K) - 1 - K]...);
  }
};

/* Loops over views in column-major order: threads beside each other get elements beside each other. */
template <class Index, int N, class F, class... V>
void device_map_columns(DevicePlace const &place, F const &f, Extents<N> const &begin,
                        Extents<N> const &end, V const &...views) {
  using All = std::make_integer_sequence<int, sizeof...(V)>;
  using Call =
      DeviceReversedIndices<F, std::make_integer_sequence<int, N>, typename V::element_type...>;
  for (int k = 0; k < N; k++)
    if (begin.at[k] >= end.at[k]) return; /* views without elements may have no memory */
  MapStrided<true, All, N, Call, typename V::element_type...> call(
      Call{f}, loops_of(views.transpose()...), views.data...);
  device_indices<Index>(place, call, reversed(begin), reversed(end));
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* f(element of each view) */
template <class F, class V, class... More>
void device_map(DevicePlace const &place, F const &f, V const &view, More const &...others) {
  if (view.size() == 0) return;
  auto loops = loops_of(view, others...);
  simplify(loops);
  constexpr int L = loop_rank<V::rank>;
  constexpr int P = pack_size<typename V::value_type, typename More::value_type...>;
  if (!loops.is_contiguous())
    return device_map_rows<void>(place, f, loops, Extents<L>(), loops.extents, view, others...);
  Work work(place);
  for (index_t first = 0, count = loops.extents.at[L - 1]; first < count;
       first += launch_elements) {
    index_t n = count - first < launch_elements ? count - first : launch_elements;
    int head = pack_head<P>(view.data + first, (others.data + first)...);
    if (head >= 0)
      launch_map_packs<P>(place, f, n, head, operand_from(view, first),
                          operand_from(others, first)...);
    else
      launch_map_packs<1>(place, f, n, 0, operand_from(view, first),
                          operand_from(others, first)...);
  }
  work.finish();
}

/* f(element of each view, i, j, ...) for begin <= (i, j, ...) < end. */
template <class Index, int N, class F, class... V>
void device_indexed(DevicePlace const &place, F const &f, Extents<N> const &begin,
                    Extents<N> const &end, V const &...views) {
  bool is_whole = begin == Extents<N>() && ((end == views.extents && views.is_contiguous()) && ...);
  auto loops = loops_of(views...);
  if constexpr (N == 0) {
    device_map(place, f, views...);
  } else if (N > 1 && ((views.strides.at[0] == 1 && views.strides.at[N - 1] != 1) && ...)) {
    if constexpr (N > 1) device_map_columns<Index>(place, f, begin, end, views...);
  } else if (!is_whole) {
    for (int k = 0; k < N; k++) loops.extents.at[k] = end.at[k] - begin.at[k];
    device_map_rows<Index>(place, f, loops, begin, end, views...);
  } else {
    Work work(place);
    in_launches(begin, end, [&](Extents<N> const &low, Extents<N> const &high) {
      constexpr int P = pack_size<typename V::value_type...>;
      index_t const first = distance(low, c_strides(end));
      int head = pack_head<P>((views.data + first)...);
      if (head >= 0)
        launch_indexed_packs<Index, P>(place, f, head, low, high, operand_from(views, first)...);
      else
        launch_indexed_packs<Index, 1>(place, f, 0, low, high, operand_from(views, first)...);
    });
    work.finish();
  }
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
