/* umem/detail/host_along.hpp - reductions along one dimension on the host. Elements that follow
 * each other are reduced as whole views are; otherwise a strip of outputs is computed at once, so
 * that the innermost loop runs along memory. */
#ifndef UMEM_DETAIL_HOST_ALONG_HPP
#define UMEM_DETAIL_HOST_ALONG_HPP

#include <umem/detail/host_loops.hpp>
#include <umem/detail/host_reduce.hpp>
#include <umem/view.hpp>

namespace umem {
namespace detail {

/* The first of the elements that give each output, as a view like the output's. */
template <class T, int N>
UMEM_FUNCTION View<T, N - 1> starts_along(View<T, N> const &in, int axis) {
  View<T, N - 1> starts(in.data, Extents<N - 1>());
  for (int k = 0; k < N - 1; k++) {
    starts.extents.at[k] = in.extents.at[k + (k >= axis)];
    starts.strides.at[k] = in.strides.at[k + (k >= axis)];
  }
  return starts;
}

/* One output: count elements, at least one, stride apart. */
template <class R, class Op> struct ReduceOne {
  Op op;
  R init;
  index count, stride;

  template <class U, class T> void operator()(U &out, T const &first) {
    T const *element = &first;
    auto get = [element, step = stride](index n) { return static_cast<R>(element[n * step]); };
    out = static_cast<U>(op(init, host_reduce_row<R>(op, 0, count, get)));
  }
};

/* Outputs [begin, end) of a row, in strips. */
template <class R, class Op, class U, class T>
void host_along_row(Op &op, R const &init, index begin, index end, U *out, index out_stride,
                    T const *in, index in_stride, index count, index stride) {
  constexpr index strip = 256;
  R value[strip];
  for (index first = begin; first < end; first += strip) {
    index n = end - first < strip ? end - first : strip;
    for (index l = 0; l < n; l++) value[l] = init;
    T const *row = in + first * in_stride;
    for (index m = 0; m < count; m++, row += stride) {
      if (in_stride == 1)
        for (index l = 0; l < n; l++) value[l] = op(value[l], static_cast<R>(row[l]));
      else
        for (index l = 0; l < n; l++) value[l] = op(value[l], static_cast<R>(row[l * in_stride]));
    }
    for (index l = 0; l < n; l++) out[(first + l) * out_stride] = static_cast<U>(value[l]);
  }
}

/* Rows are those of the output's last dimension. */
template <class R, class Op, class T, class U, int M> struct ReduceRow {
  Op op;
  R init;
  index count, stride;
  View<T, M> starts;
  View<U, M> out;

  template <class... I> void operator()(I... i) {
    index const outer[] = {static_cast<index>(i)...};
    T const *in = starts.data;
    U *to = out.data;
    for (int k = 0; k < M - 1; k++) {
      in += outer[k] * starts.strides.at[k];
      to += outer[k] * out.strides.at[k];
    }
    host_along_row(op, init, outer[M - 1] * 4096, least(outer[M - 1]), to, out.strides.at[M - 1],
                   in, starts.strides.at[M - 1], count, stride);
  }

private:
  index least(index part) const noexcept {
    index end = (part + 1) * 4096, all = out.extents.at[M - 1];
    return end < all ? end : all;
  }
};

template <class R, class Op, class T, int N, class U>
void host_along(HostPlace place, Op op, R const &init, View<T, N> const &in, int axis,
                View<U, N - 1> const &out) {
  View<T, N - 1> starts = starts_along(in, axis);
  index count = in.extents.at[axis], stride = in.strides.at[axis];
  if (count == 0) { /* and perhaps no memory */
    auto set = [init](U &element) { element = static_cast<U>(init); };
    return host_map(place, set, out);
  }
  bool by_rows = N > 1 && stride != 1;
  if constexpr (N > 1) {
    if (by_rows) { /* in parts of 4096 outputs */
      Extents<N - 1> parts = out.extents;
      parts.at[N - 2] = (parts.at[N - 2] + 4095) / 4096;
      ReduceRow<R, Op, T, U, N - 1> call{op, init, count, stride, starts, out};
      host_indices<index>(place, call, Extents<N - 1>(), parts);
    }
  }
  if (!by_rows) {
    ReduceOne<R, Op> call{op, init, count, stride};
    host_map(place, call, out, starts);
  }
}

} // namespace detail
} // namespace umem

#endif
