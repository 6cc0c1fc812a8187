/* umem/detail/host_along.hpp - reductions along one dimension on the host. If the elements of
 * one output follow each other, they are reduced like a whole view if they are many; otherwise a strip
 * of outputs is computed at once, so that the innermost loop runs along memory. */
#ifndef UMEM_DETAIL_HOST_ALONG_HPP
#define UMEM_DETAIL_HOST_ALONG_HPP

#include <umem/detail/host_loops.hpp>
#include <umem/detail/host_pieces.hpp>
#include <umem/detail/host_reduce.hpp>
#include <umem/detail/loop_layout.hpp>
#include <umem/detail/monoids.hpp>
#include <umem/view.hpp>

#include <utility>

namespace umem {
namespace detail {

/* Computes one output, over the one loop of `line`, which runs at least once. */
template <class R, class Op, class F, int M> struct ReduceOne {
  Op op;
  F f;
  R init;
  LoopLayout<1, M> line;

  template <class U, class... T> void operator()(U &out, T const &...first) {
    auto all = std::make_integer_sequence<int, M>();
    out = static_cast<U>(op(init, value(all, &first...)));
  }

private:
  template <class L, bool largest_value, class T>
  static L position(FirstExtreme<largest_value> &best, index_t count, index_t stride, T *first) {
    LoopLayout<1, 2> line;
    line.extents = {count};
    line.strides[0] = {stride};
    line.strides[1] = {1};
    Partial<L> result;
    FindExtreme<largest_value> leaf;
    host_pieces<0>(best, leaf, line, first, 0, result);
    return result.value;
  }

  template <int... K, class... T> R value(std::integer_sequence<int, K...> all, T *...first) {
    index_t const count = line.extents.at[0];
    if constexpr (takes_position<F>)
      return position<R>(op, count, line.strides[K].at[0]..., first...);
    else
      return host_reduce_nest<0, R>(op, f, line, 0, count, all, first...);
  }
};

/* Shorter lines are reduced one element after the other. */
inline constexpr index_t short_line = 32;

/* Outputs [0, n) of short lines whose elements follow each other. */
template <class R, class Op, class F, class U, class... T>
void host_along_lines(Op &op, F &f, R const &init, index_t n, index_t count, index_t const *across,
                      U *out, index_t out_stride, T const *...in) {
  for (index_t l = 0; l < n; l++) {
    R value = init;
    for (index_t m = 0; m < count; m++)
      value = static_cast<R>(op(value, static_cast<R>(f(in[m]...))));
    out[l * out_stride] = static_cast<U>(value);
    int k = 0;
    ((in += across[k++]), ...);
  }
}

/* Positions of extremes: values and positions in arrays of their own, which compilers vectorise. */
template <class R, class U, bool largest_value, class T>
void host_along_strip(FirstExtreme<largest_value> &, index_t n, index_t count, index_t across,
                      index_t along, U *out, index_t out_stride, T const *in) {
  constexpr index_t strip = 256;
  T value[strip];
  index_t number[strip];
  for (index_t l = 0; l < n; l++) {
    value[l] = in[l * across];
    number[l] = 0;
  }
  for (index_t m = 1; m < count; m++)
    for (index_t l = 0; l < n; l++) {
      T const x = in[m * along + l * across], best = value[l];
      bool const worse = largest_value ? x <= best : x >= best;
      bool const take = !worse & (best == best); /* also a first NaN */
      value[l] = take ? x : best;
      number[l] = take ? m : number[l];
    }
  for (index_t l = 0; l < n; l++) out[l * out_stride] = static_cast<U>(number[l]);
}

/* Computes outputs [begin, end) of a row. Loop 0 of `row` is over outputs, loop 1 over the
 * elements of each output. */
template <class R, class Op, class F, class U, class... T, int... M>
void host_along_row(Op &op, F &f, R const &init, index_t begin, index_t end,
                    LoopLayout<2, sizeof...(T)> const &row, std::integer_sequence<int, M...>,
                    U *out, index_t out_stride, T const *...in) {
  constexpr index_t strip = 256;
  [[maybe_unused]] R value[strip];
  index_t const count = row.extents.at[1];
  index_t const across[] = {row.strides[M].at[0]...}, along[] = {row.strides[M].at[1]...};
  if constexpr (!takes_position<F>)
    if (((along[M] == 1) && ...))
      return host_along_lines(op, f, init, end - begin, count, across, out + begin * out_stride,
                              out_stride, (in + begin * across[M])...);
  for (index_t first = begin; first < end; first += strip) {
    index_t const n = end - first < strip ? end - first : strip;
    if constexpr (takes_position<F>) {
      host_along_strip<R>(op, n, count, across[0], along[0], out + first * out_stride, out_stride,
                          (in + first * across[M])...);
    } else {
      for (index_t l = 0; l < n; l++) value[l] = init;
      for (index_t m = 0; m < count; m++) {
        if (((across[M] == 1) && ...))
          for (index_t l = 0; l < n; l++)
            value[l] =
                static_cast<R>(op(value[l], static_cast<R>(f(in[m * along[M] + first + l]...))));
        else
          for (index_t l = 0; l < n; l++)
            value[l] = static_cast<R>(
                op(value[l], static_cast<R>(f(in[m * along[M] + (first + l) * across[M]]...))));
      }
      for (index_t l = 0; l < n; l++) out[(first + l) * out_stride] = static_cast<U>(value[l]);
    }
  }
}

/* The first element of a row of the last dimension; the other indices of the row are in at. */
template <class T, int N> T *first_in_row(View<T, N> const &view, index_t const *at) noexcept {
  T *element = view.data;
  for (int k = 0; k < N - 1; k++) element += at[k] * view.strides.at[k];
  return element;
}

/* Computes all outputs by rows of the last dimension, in parts of 4096, or of fewer for many threads. */
template <class R, class Op, class F, class U, int N, class... T, int... M>
void host_along_rows(HostPlace place, Op op, F f, R init, LoopLayout<2, sizeof...(T)> row,
                     std::integer_sequence<int, M...> all, View<U, N> out, View<T, N>... starts) {
  constexpr index_t grain = 16;
  index_t const each = (out.extents.at[N - 1] + parts_of(place) - 1) / parts_of(place);
  index_t const share = (each + grain - 1) / grain * grain;
  index_t const part = share < 4096 ? (share > 0 ? share : 1) : 4096;
  Extents<N + 1> parts; /* threads share the part of a row in any portions if a dimension follows */
  for (int k = 0; k < N; k++) parts.at[k] = out.extents.at[k];
  parts.at[N - 1] = (parts.at[N - 1] + part - 1) / part;
  parts.at[N] = 1;
  auto call = [=](auto... i) mutable {
    index_t const at[] = {i...};
    index_t begin = at[N - 1] * part;
    index_t end = row.extents.at[0] - begin < part ? row.extents.at[0] : begin + part;
    host_along_row(op, f, init, begin, end, row, all, first_in_row(out, at), out.strides.at[N - 1],
                   first_in_row(starts, at)...);
  };
  host_indices<index_t>(place, call, Extents<N + 1>(), parts);
}

/* op over init and f(element of each input) along dimension axis. The caller has checked the
 * extents. */
template <class R, class Op, class F, class U, int N, class T, class... A>
void host_along(HostPlace place, Op op, F f, R const &init, int axis, View<U, N - 1> const &out,
                View<T, N> const &in, View<A, N> const &...others) {
  constexpr int M = 1 + sizeof...(A);
  if (in.extents.at[axis] == 0) { /* views may have no memory */
    auto set = [init](U &element) { element = static_cast<U>(init); };
    return host_map(place, set, out);
  }
  LoopLayout<N, M> const loops = loops_of(in, others...);
  ReduceOne<R, Op, F, M> one{op, f, init, {}};
  one.line.extents = {in.extents.at[axis]};
  bool in_lines = true;
  for (int m = 0; m < M; m++) {
    one.line.strides[m] = {loops.strides[m].at[axis]};
    in_lines = in_lines && loops.strides[m].at[axis] == 1;
  }
  if constexpr (N > 1) {
    if (!in_lines || in.extents.at[axis] < short_line) {
      int const last =
          axis == N - 1 ? N - 2 : N - 1; /* dimension of the inputs that is the output's last one */
      LoopLayout<2, M> row;
      row.extents = {in.extents.at[last], in.extents.at[axis]};
      for (int m = 0; m < M; m++)
        row.strides[m] = {loops.strides[m].at[last], loops.strides[m].at[axis]};
      return host_along_rows(place, op, f, init, row, std::make_integer_sequence<int, M>(), out,
                             in.select(axis, 0), others.select(axis, 0)...);
    }
  }
  host_map(place, one, out, in.select(axis, 0), others.select(axis, 0)...);
}

} // namespace detail
} // namespace umem

#endif
