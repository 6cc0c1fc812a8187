/* umem/reduce_along.hpp - reductions along one dimension, on host or GPU: each gives one element
 * of the output, which has one dimension less.
 *
 *     umem::View<double, 2> m;
 *     umem::sum_along(umem::on_host, m, 0, column_sums);    // over all rows, for each column
 *     umem::max_along(array, 1, row_maxima);                // on the place of row_maxima, an Array
 *     umem::transform_reduce_along(a, b, 1, dots, 0.0, umem::plus(), Product()); // for each row
 *
 * See for_each.hpp for places, elements and failures. Sums are computed in accumulator<T> of the
 * input (functional.hpp), minima and maxima in the type of the elements, everything else in the
 * type of init; the results are converted to the type of the output. A NaN among the elements
 * makes its sum, minimum and maximum NaN. umem chooses the order in which it applies the
 * operation, the same from run to run on one place: the operation must be associative and
 * commutative, up to rounding. */
#ifndef UMEM_REDUCE_ALONG_HPP
#define UMEM_REDUCE_ALONG_HPP

#include <umem/detail/monoids.hpp>
#include <umem/for_each.hpp>

#if defined(__CUDACC__)
#include <umem/detail/along_kernels.cuh>
#endif

namespace umem {
namespace detail {

/* Reductions along one dimension on the host. If the elements of one output follow each other, they
 * are reduced like a whole view if they are many; otherwise a strip of outputs is computed at once,
 * so that the innermost loop runs along memory. */

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
void host_extremes_strip(FirstExtreme<largest_value> &, index_t n, index_t count, index_t across,
                         index_t along, OutType *out, index_t out_stride, Type const *in) {
  constexpr index_t strip = 256;
  alignas(vector_bytes) alignas(Type) Type value[strip];
  alignas(vector_bytes) index_t number[strip];
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

/* Element m of the line of output l. Step: a number, or 1 as a constant for the compiler. */
template <class Step, class Type> struct Lines {
  Type const *first;
  Step across;
  index_t along;
  UMEM_ALWAYS_INLINE Type const &operator()(index_t l, index_t m) const noexcept {
    return first[m * along + l * across];
  }
};

/* Outputs [0, n) of lines with many elements. With vectors of 16 bytes two elements of each at a
 * time, so that values are read and written half as often; with longer ones the memory of the
 * elements is the limit, which is read fastest in its order. */
#if defined(__AVX__)
inline constexpr bool two_of_each = false;
#else
inline constexpr bool two_of_each = true;
#endif
template <class Op, class Function, class Result, class... Inputs>
UMEM_ALWAYS_INLINE void host_along_strip(Op &op, Function &functor, Result const &init, index_t n,
                                         index_t count, Result *value, Inputs const... in) {
  auto const join = [&](Result const &before, index_t l, index_t m) {
    return static_cast<Result>(op(before, static_cast<Result>(functor(in(l, m)...))));
  };
  for (index_t l = 0; l < n; l++) value[l] = init;
  index_t m = 0;
  for (; two_of_each && m + 1 < count; m += 2)
    for (index_t l = 0; l < n; l++) value[l] = join(join(value[l], l, m), l, m + 1);
  for (; m < count; m++)
    for (index_t l = 0; l < n; l++) value[l] = join(value[l], l, m);
}

/* Computes outputs [begin, end) of a row. Loop 0 of `row` is over outputs, loop 1 over the
 * elements of each output. */
template <class Result, class Op, class Function, class OutType, class... Types, int... Nth>
void host_along_row(Op &op, Function &functor, Result const &init, index_t begin, index_t end,
                    LoopLayout<2, sizeof...(Types)> const &row, std::integer_sequence<int, Nth...>,
                    OutType *out, index_t out_stride, Types const *...in) {
  using Unit = std::integral_constant<index_t, 1>;
  constexpr index_t bytes = sizeof(Result);
  constexpr index_t strip = takes_position<Function> ? 256 : bytes > 64 ? 128 : 8192 / bytes;
  alignas(vector_bytes) alignas(Result)
      [[maybe_unused]] Result value[static_cast<std::size_t>(strip)];
  index_t const count = row.extents.at[1];
  index_t const across[] = {row.strides[Nth].at[0]...}, along[] = {row.strides[Nth].at[1]...};
  if constexpr (!takes_position<Function>)
    if (((along[Nth] == 1) && ...))
      return host_along_lines(op, functor, init, end - begin, count, across,
                              out + begin * out_stride, out_stride, (in + begin * across[Nth])...);
  for (index_t first = begin; first < end; first += strip) {
    index_t const n = end - first < strip ? end - first : strip;
    if constexpr (takes_position<Function>) {
      host_extremes_strip<Result>(op, n, count, across[0], along[0], out + first * out_stride,
                                  out_stride, (in + first * across[Nth])...);
    } else {
      if (((across[Nth] == 1) && ...))
        host_along_strip(op, functor, init, n, count, value,
                         Lines<Unit, Types>{in + first, {}, along[Nth]}...);
      else
        host_along_strip(
            op, functor, init, n, count, value,
            Lines<index_t, Types>{in + first * across[Nth], across[Nth], along[Nth]}...);
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

/* Computes all outputs by rows of the last dimension, in parts of 4096, or of fewer for many
 * threads. */
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

/* Throws umem::index_error if there is no such dimension, and umem::value_error unless the other
 * extents are those of the output. */
template <int Rank>
void check_along(char const *function, Extents<Rank> const &in, int axis,
                 Extents<Rank - 1> const &out) {
  if (axis < 0 || axis >= Rank) raise_dimension(axis, Rank);
  for (int k = 0; k < Rank - 1; k++)
    if (out.at[k] != in.at[k + (k >= axis)])
      raise_text(umemValueError, "%s: the extents %s without dimension %d are not %s", function,
                 in_words(in).text, axis, in_words(out).text);
}

/* Throws umem::value_error if dimension axis has no elements. */
template <class Operand>
void check_some_along(Called const &function, Operand const &in, int axis) {
  auto const extents = extents_of(in);
  if (axis >= 0 && axis < rank_of<Operand> && extents[axis] == 0)
    raise_text(umemValueError, "%s of no elements", function.name);
}

template <class Function, class... Types> constexpr bool takes_along() {
  if constexpr (takes_position<Function>)
    return true;
  else
    return takes_elements<called_by<Function>, Types...>();
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* out(...) = op over init and f(element of each input) for all n of dimension axis. */
template <class PlaceType, class Other, class Result, class Op, class Function, class Operand,
          class... More>
void reduce_dimension(Called const &function, PlaceType const &place, int axis, Other &out,
                      Result const &init, Op op, Function f, Operand const &in,
                      More const &...others) {
  static_assert(rank_of<Operand> == rank_of<std::remove_const_t<Other>> + 1,
                "reduce_along: the output has one dimension less than the input");
  static_assert(std::is_trivially_copyable_v<Result>, "results are trivially copyable");
  constexpr bool fits = rank_of<Operand> == rank_of<std::remove_const_t<Other>> + 1;
  auto along = [&](auto const &...uses) {
    auto where = settled(place, uses...);
    auto const extents = extents_of(in);
    check_kernels(where);
    (check_extents(function.name, extents, extents_of(others)), ...);
    check_along(function.name, extents, axis, extents_of(out));
    with_views(
        where,
        [&](auto const &to, auto const &...from) {
          on_side(
              where,
              [&](auto const &host) {
                check_for_host<Op, Function>();
                host_along(host, op, f, init, axis, to, from...);
              },
              [&](auto const &device) { device_along(device, op, f, init, axis, to, from...); });
        },
        uses...);
  };
  if constexpr (fits && joins<Op, Result>())
    if constexpr (takes_along<Function, value_of<Operand>, value_of<More>...>())
      along(use(out, discard), use(in, read), use(others, read)...);
}

/* The smallest or largest elements. */
template <class PlaceType, class Operand, class Other, class Op>
void extremes_along(Called const &function, PlaceType const &place, Operand const &in, int axis,
                    Other &out, Op op, bool largest) {
  check_some_along(function, in, axis);
  reduce_dimension(function, place, axis, out, limit_of<value_of<Operand>>(!largest), op,
                   Identity(), in);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- any operation ---- */

/* out(...) = op over init and f(in(..., n, ...)) for all n of dimension axis. What f returns is
 * converted to the type of init. */
template <class PlaceType, class Operand, class Other, class Result, class Op, class Function,
          class = detail::if_place<PlaceType>>
void transform_reduce_along(PlaceType const &place, Operand const &in, int axis, Other &&out,
                            Result init, Op op, Function f) {
  detail::reduce_dimension("transform_reduce_along", place, axis, out, init, op, f, in);
}

/* out(...) = op over init and f(one(..., n, ...), two(..., n, ...)) for all n of dimension axis;
 * the extents of one and two are equal. */
template <class PlaceType, class Operand, class Other, class Output, class Result, class Op,
          class Function, class = detail::if_place<PlaceType>>
void transform_reduce_along(PlaceType const &place, Operand const &one, Other const &two, int axis,
                            Output &&out, Result init, Op op, Function f) {
  detail::reduce_dimension("transform_reduce_along", place, axis, out, init, op, f, one, two);
}
UMEM_AT_HOME(transform_reduce_along)

/* out(...) = op over init and in(..., n, ...) for all n of dimension axis. */
template <class PlaceType, class Operand, class Other, class Result, class Op,
          class = detail::if_place<PlaceType>>
void reduce_along(PlaceType const &place, Operand const &in, int axis, Other &&out, Result init,
                  Op op) {
  detail::reduce_dimension("reduce_along", place, axis, out, init, op, detail::Identity(), in);
}
UMEM_AT_HOME(reduce_along)

/* ---- sums, smallest and largest elements ---- */

/* The sums; 0 over no elements. */
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
void sum_along(PlaceType const &place, Operand const &in, int axis, Other &&out) {
  detail::reduce_dimension("sum_along", place, axis, out, accumulator<detail::value_of<Operand>>(),
                           plus(), detail::Identity(), in);
}
UMEM_AT_HOME(sum_along)

/* The smallest and the largest elements; umem::value_error if dimension axis has no elements. */
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
void min_along(PlaceType const &place, Operand const &in, int axis, Other &&out) {
  detail::extremes_along("min_along", place, in, axis, out, minimum(), false);
}
UMEM_AT_HOME(min_along)
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
void max_along(PlaceType const &place, Operand const &in, int axis, Other &&out) {
  detail::extremes_along("max_along", place, in, axis, out, maximum(), true);
}
UMEM_AT_HOME(max_along)

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
