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
template <class Result, class Op, class Function, int Count> struct ReduceOne {
  Op op;
  Function functor;
  Result init;
  LoopLayout<1, Count> line;

  template <class OutType, class... Types> void operator()(OutType &out, Types const &...first) {
    auto all = std::make_integer_sequence<int, Count>();
    out = static_cast<OutType>(op(init, value(all, &first...)));
  }

private:
  template <class Found, bool largest_value, class Type>
  static Found position(FirstExtreme<largest_value> &best, index_t count, index_t stride,
                        Type *first) {
    LoopLayout<1, 2> line;
    line.extents = {count};
    line.strides[0] = {stride};
    line.strides[1] = {1};
    Partial<Found> result;
    FindExtreme<largest_value> leaf;
    host_pieces<0>(best, leaf, line, first, 0, result);
    return result.value;
  }

  template <int... Nth, class... Types>
  Result value(std::integer_sequence<int, Nth...> all, Types *...first) {
    index_t const count = line.extents.at[0];
    if constexpr (takes_position<Function>)
      return position<Result>(op, count, line.strides[Nth].at[0]..., first...);
    else
      return host_reduce_nest<0, Result>(op, functor, line, 0, count, all, first...);
  }
};

/* Shorter lines are reduced one element after the other. */
inline constexpr index_t short_line = 32;

/* Outputs [0, n) of short lines whose elements follow each other. */
template <class Result, class Op, class Function, class OutType, class... Types>
void host_along_lines(Op &op, Function &functor, Result const &init, index_t n, index_t count,
                      index_t const *across, OutType *out, index_t out_stride, Types const *...in) {
  for (index_t l = 0; l < n; l++) {
    Result value = init;
    for (index_t m = 0; m < count; m++)
      value = static_cast<Result>(op(value, static_cast<Result>(functor(in[m]...))));
    out[l * out_stride] = static_cast<OutType>(value);
    int k = 0;
    ((in += across[k++]), ...);
  }
}

/* Positions of extremes: values and positions in arrays of their own, which compilers vectorise. */
template <class Result, class OutType, bool largest_value, class Type>
void host_along_strip(FirstExtreme<largest_value> &, index_t n, index_t count, index_t across,
                      index_t along, OutType *out, index_t out_stride, Type const *in) {
  constexpr index_t strip = 256;
  Type value[strip];
  index_t number[strip];
  for (index_t l = 0; l < n; l++) {
    value[l] = in[l * across];
    number[l] = 0;
  }
  for (index_t m = 1; m < count; m++)
    for (index_t l = 0; l < n; l++) {
      Type const x = in[m * along + l * across], best = value[l];
      bool const worse = largest_value ? x <= best : x >= best;
      bool const take = !worse & (best == best); /* also a first NaN */
      value[l] = take ? x : best;
      number[l] = take ? m : number[l];
    }
  for (index_t l = 0; l < n; l++) out[l * out_stride] = static_cast<OutType>(number[l]);
}

/* Computes outputs [begin, end) of a row. Loop 0 of `row` is over outputs, loop 1 over the
 * elements of each output. */
template <class Result, class Op, class Function, class OutType, class... Types, int... Nth>
void host_along_row(Op &op, Function &functor, Result const &init, index_t begin, index_t end,
                    LoopLayout<2, sizeof...(Types)> const &row, std::integer_sequence<int, Nth...>,
                    OutType *out, index_t out_stride, Types const *...in) {
  constexpr index_t strip = 256;
  [[maybe_unused]] Result value[strip];
  index_t const count = row.extents.at[1];
  index_t const across[] = {row.strides[Nth].at[0]...}, along[] = {row.strides[Nth].at[1]...};
  if constexpr (!takes_position<Function>)
    if (((along[Nth] == 1) && ...))
      return host_along_lines(op, functor, init, end - begin, count, across,
                              out + begin * out_stride, out_stride, (in + begin * across[Nth])...);
  for (index_t first = begin; first < end; first += strip) {
    index_t const n = end - first < strip ? end - first : strip;
    if constexpr (takes_position<Function>) {
      host_along_strip<Result>(op, n, count, across[0], along[0], out + first * out_stride,
                               out_stride, (in + first * across[Nth])...);
    } else {
      for (index_t l = 0; l < n; l++) value[l] = init;
      for (index_t m = 0; m < count; m++) {
        if (((across[Nth] == 1) && ...))
          for (index_t l = 0; l < n; l++)
            value[l] = static_cast<Result>(
                op(value[l], static_cast<Result>(functor(in[m * along[Nth] + first + l]...))));
        else
          for (index_t l = 0; l < n; l++)
            value[l] = static_cast<Result>(op(
                value[l],
                static_cast<Result>(functor(in[m * along[Nth] + (first + l) * across[Nth]]...))));
      }
      for (index_t l = 0; l < n; l++)
        out[(first + l) * out_stride] = static_cast<OutType>(value[l]);
    }
  }
}

/* The first element of a row of the last dimension; the other indices of the row are in at. */
template <class Type, int Rank>
Type *first_in_row(View<Type, Rank> const &view, index_t const *at) noexcept {
  Type *element = view.data;
  for (int k = 0; k < Rank - 1; k++) element += at[k] * view.strides.at[k];
  return element;
}

/* Computes all outputs by rows of the last dimension, in parts of 4096, or of fewer for many threads. */
template <class Result, class Op, class Function, class OutType, int Rank, class... Types,
          int... Nth>
void host_along_rows(HostPlace place, Op op, Function functor, Result init,
                     LoopLayout<2, sizeof...(Types)> row, std::integer_sequence<int, Nth...> all,
                     View<OutType, Rank> out, View<Types, Rank>... starts) {
  constexpr index_t grain = 16;
  index_t const each = (out.extents.at[Rank - 1] + parts_of(place) - 1) / parts_of(place);
  index_t const share = (each + grain - 1) / grain * grain;
  index_t const part = share < 4096 ? (share > 0 ? share : 1) : 4096;
  Extents<Rank + 1>
      parts; /* threads share the part of a row in any portions if a dimension follows */
  for (int k = 0; k < Rank; k++) parts.at[k] = out.extents.at[k];
  parts.at[Rank - 1] = (parts.at[Rank - 1] + part - 1) / part;
  parts.at[Rank] = 1;
  auto invoke = [=](auto... i) mutable {
    index_t const at[] = {i...};
    index_t begin = at[Rank - 1] * part;
    index_t end = row.extents.at[0] - begin < part ? row.extents.at[0] : begin + part;
    host_along_row(op, functor, init, begin, end, row, all, first_in_row(out, at),
                   out.strides.at[Rank - 1], first_in_row(starts, at)...);
  };
  host_indices<index_t>(place, invoke, Extents<Rank + 1>(), parts);
}

/* op over init and functor(element of each input) along dimension axis. The caller has checked the
 * extents. */
template <class Result, class Op, class Function, class OutType, int Rank, class Type,
          class... Operands>
void host_along(HostPlace place, Op op, Function functor, Result const &init, int axis,
                View<OutType, Rank - 1> const &out, View<Type, Rank> const &in,
                View<Operands, Rank> const &...others) {
  constexpr int Count = 1 + sizeof...(Operands);
  if (in.extents.at[axis] == 0) { /* views may have no memory */
    auto set = [init](OutType &element) { element = static_cast<OutType>(init); };
    return host_map(place, set, out);
  }
  LoopLayout<Rank, Count> const loops = loops_of(in, others...);
  ReduceOne<Result, Op, Function, Count> one{op, functor, init, {}};
  one.line.extents = {in.extents.at[axis]};
  bool in_lines = true;
  for (int m = 0; m < Count; m++) {
    one.line.strides[m] = {loops.strides[m].at[axis]};
    in_lines = in_lines && loops.strides[m].at[axis] == 1;
  }
  if constexpr (Rank > 1) {
    if (!in_lines || in.extents.at[axis] < short_line) {
      int const last = axis == Rank - 1
                           ? Rank - 2
                           : Rank - 1; /* dimension of the inputs that is the output's last one */
      LoopLayout<2, Count> row;
      row.extents = {in.extents.at[last], in.extents.at[axis]};
      for (int m = 0; m < Count; m++)
        row.strides[m] = {loops.strides[m].at[last], loops.strides[m].at[axis]};
      return host_along_rows(place, op, functor, init, row,
                             std::make_integer_sequence<int, Count>(), out, in.select(axis, 0),
                             others.select(axis, 0)...);
    }
  }
  host_map(place, one, out, in.select(axis, 0), others.select(axis, 0)...);
}

} // namespace detail
} // namespace umem

#endif
