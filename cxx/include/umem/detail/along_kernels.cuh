/* umem/detail/along_kernels.cuh - reductions along one dimension on GPUs. The threads of a block
 * share outputs: if the elements of one output follow each other, neighbouring threads read these,
 * and else those of neighbouring outputs. If there are few outputs, several blocks compute one. */
#ifndef UMEM_DETAIL_ALONG_KERNELS_CUH
#define UMEM_DETAIL_ALONG_KERNELS_CUH

#include <umem/detail/map_kernels.cuh>
#include <umem/detail/monoids.hpp>
#include <umem/detail/sweep_kernels.cuh>

namespace umem::detail {

template <class Operands, class Result, class Op, class Function, class OutType, int Rank,
          class... Types>
struct AlongCall;

/* What all outputs are made of. The last dimension of the operands is the reduced one. */
template <int... Nth, class Result, class Op, class Function, class OutType, int Rank,
          class... Types>
struct AlongCall<std::integer_sequence<int, Nth...>, Result, Op, Function, OutType, Rank, Types...>
    : StridedOperand<Nth, Rank, Types>... {
  using Output = OutType;

  Op op;
  Function functor;
  Result init;
  index_t count;
  View<OutType, Rank - 1> out;

  AlongCall(Op const &op_, Function const &f_, Result const &init_, int axis,
            View<OutType, Rank - 1> const &out_, View<Types, Rank> const &...in)
      : StridedOperand<Nth, Rank, Types>{in.data, with_last(in.strides, axis)}..., op(op_),
        functor(f_), init(init_), count(extent_of(axis, in...)), out(out_) {}

  /* Whether the elements of one output follow each other in all inputs. */
  bool in_lines() const noexcept {
    return ((StridedOperand<Nth, Rank, Types>::strides.at[Rank - 1] == 1) && ...);
  }

  /* functor of the elements at (i, j, ..., n); the last index is in the reduced dimension. */
  template <class... Indices> __device__ Result value(Indices... i) {
    if constexpr (takes_position<Function>)
      return static_cast<Result>(
          functor(StridedOperand<Nth, Rank, Types>::element(i...)..., last_of(i...)));
    else
      return static_cast<Result>(functor(StridedOperand<Nth, Rank, Types>::element(i...)...));
  }

private:
  static __device__ index_t last_of(index_t i) { return i; }
  template <class... Indices> static __device__ index_t last_of(index_t, Indices... i) {
    return last_of(static_cast<index_t>(i)...);
  }
  template <class Operand, class... More>
  static index_t extent_of(int axis, View<Operand, Rank> const &in,
                           View<More, Rank> const &...) noexcept {
    return in.extents.at[axis];
  }
  static Extents<Rank> with_last(Extents<Rank> strides, int axis) noexcept {
    for (; axis < Rank - 1; axis++) std::swap(strides.at[axis], strides.at[axis + 1]);
    return strides;
  }
};

/* ---- by blocks ---- */

/* From this number of outputs on each has its blocks for itself; fewer keep as many blocks busy. */
inline constexpr index_t many_outputs = 1 << 10, many_blocks = 1 << 11;

/* How the threads of a block share outputs: each output has `lanes` threads, a power of two.
 * in_lines: the lanes of an output are neighbours, else the outputs are. */
struct AlongShape {
  bool in_lines;
  unsigned lanes, outputs; /* outputs of a block */

  AlongShape(bool in_lines_, index_t all_outputs, index_t count) : in_lines(in_lines_) {
    if (in_lines) { /* a warp each, if there are many, waits for no other warp */
      bool const is_long = count >= (all_outputs < many_outputs ? 8 * 32 : 128 * 32);
      lanes = power_of_two((count + 15) / 16, is_long ? block_threads : 32);
    } else { /* neighbours that read 32 elements together, fewer if there were too few blocks */
      unsigned least = power_of_two(all_outputs, 32);
      while (least > 4 && all_outputs >= many_outputs && all_outputs / least < 512) least /= 2;
      lanes = power_of_two((count + 7) / 8, block_threads / least);
    }
    outputs = block_threads / lanes;
  }

  index_t tiles(index_t all_outputs) const noexcept {
    return (all_outputs + outputs - 1) / outputs;
  }

  __device__ unsigned lane() const {
    return in_lines ? threadIdx.x % lanes : threadIdx.x / outputs;
  }
  __device__ unsigned output() const {
    return in_lines ? threadIdx.x / lanes : threadIdx.x % outputs;
  }
};

/* Joins the results of the lanes of each output in a tree, in lane 0. */
template <class Result, class Op>
__device__ Partial<Result> reduce_over_lanes(Op &op, AlongShape const &shape, Partial<Result> own) {
  __shared__ alignas(
      Partial<Result>) unsigned char storage[block_threads * sizeof(Partial<Result>)];
  unsigned const lane = shape.lane(), at = shape.output() * shape.lanes + lane;
  Partial<Result> *parts = reinterpret_cast<Partial<Result> *>(storage) + at;
  *parts = own;
  bool const in_warps = shape.in_lines && shape.lanes <= 32;
  for (unsigned width = shape.lanes / 2; width > 0; width /= 2) {
    if (in_warps)
      __syncwarp();
    else
      __syncthreads();
    if (lane < width) parts[0] = combine(op, parts[0], parts[width]);
  }
  return *parts;
}

/* The result of value(n) for n = first, first + step, ... < end. Starts several loads before it
 * waits for one. */
template <class Result, class Op, class Value>
__device__ Partial<Result> reduce_steps(Op &op, index_t first, index_t end, index_t step,
                                        Value const &value) {
  constexpr int ahead = 4;
  Partial<Result> own;
  index_t n = first;
  for (; n < end - (ahead - 1) * step; n += ahead * step) {
    Result values[ahead];
#pragma unroll
    for (int k = 0; k < ahead; k++) values[k] = value(n + k * step);
#pragma unroll
    for (int k = 0; k < ahead; k++) own = combine(op, own, Partial<Result>{values[k], true});
  }
  for (; n < end; n += step) own = combine(op, own, Partial<Result>{value(n), true});
  return own;
}

/* call(i, j, ...) with the indices of output `number`, counted in C order. */
template <class View, class Call, int... Dims>
__device__ decltype(auto) at_number(View const &out, index_t number, Call const &invoke,
                                    std::integer_sequence<int, Dims...>) {
  index_t at[sizeof...(Dims) + 1];
  for (int k = static_cast<int>(sizeof...(Dims)) - 1; k > 0; k--) {
    at[k] = number % out.extents.at[k];
    number /= out.extents.at[k];
  }
  at[0] = number;
  return invoke(at[Dims]...);
}

/* Joins init and the result of all lanes. */
template <int Rank, class Result, class Along>
__device__ void finish_output(Along &all, index_t number, Partial<Result> const &part) {
  Result result = part.any ? static_cast<Result>(all.op(all.init, part.value)) : all.init;
  auto store = [&](auto... i) { all.out(i...) = static_cast<typename Along::Output>(result); };
  at_number(all.out, number, store, std::make_integer_sequence<int, Rank - 1>());
}

/* Block n reduces a piece of each output of tile n % tiles. If there is one piece, it stores the
 * outputs, else the results of its piece. */
template <int Rank, class Result, class Along>
__global__ void __launch_bounds__(block_threads)
    along_by_block(Along all, AlongShape shape, index_t first, index_t outputs, index_t pieces,
                   Partial<Result> *parts) {
  index_t tile = first + blockIdx.x, piece = 0;
  if (pieces > 1) {
    index_t const tiles = (outputs + shape.outputs - 1) / shape.outputs;
    piece = tile / tiles;
    tile %= tiles;
  }
  index_t const number = tile * shape.outputs + shape.output();
  Partial<Result> own;
  if (number < outputs) {
    auto reduce = [&](auto... i) {
      own =
          reduce_steps<Result>(all.op, piece * shape.lanes + shape.lane(), all.count,
                               pieces * shape.lanes, [&](index_t n) { return all.value(i..., n); });
    };
    at_number(all.out, number, reduce, std::make_integer_sequence<int, Rank - 1>());
  }
  own = reduce_over_lanes(all.op, shape, own);
  if (shape.lane() != 0 || number >= outputs) return;
  if (parts)
    parts[number * pieces + piece] = own;
  else
    finish_output<Rank>(all, number, own);
}

/* The blocks join the results of the pieces of outputs. */
template <int Rank, class Result, class Along>
__global__ void __launch_bounds__(block_threads)
    join_pieces(Along all, AlongShape shape, index_t outputs, index_t pieces,
                Partial<Result> const *parts) {
  index_t const number = index_t{blockIdx.x} * shape.outputs + shape.output();
  Partial<Result> own;
  if (number < outputs)
    for (index_t n = shape.lane(); n < pieces; n += shape.lanes)
      own = combine(all.op, own, parts[number * pieces + n]);
  own = reduce_over_lanes(all.op, shape, own);
  if (shape.lane() == 0 && number < outputs) finish_output<Rank>(all, number, own);
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and functor(element of each input) along dimension axis; the extents are right. */
template <class Result, class Op, class Function, class OutType, int Rank, class Type,
          class... Args>
void device_along(DevicePlace const &place, Op const &op, Function const &functor,
                  Result const &init, int axis, View<OutType, Rank - 1> const &out,
                  View<Type, Rank> const &in, View<Args, Rank> const &...others) {
  static_assert(std::is_trivially_copyable_v<Result> && std::is_default_constructible_v<Result>,
                "results of kernels are trivially copyable and can be default-constructed");
  using All = std::make_integer_sequence<int, 1 + sizeof...(Args)>;
  using Along = AlongCall<All, Result, Op, Function, OutType, Rank, Type, Args...>;
  index_t outputs = out.size();
  if (outputs == 0) return;
  Along invoke(op, functor, init, axis, out.interior(), in, others...);
  AlongShape const shape(invoke.in_lines(), outputs, invoke.count);
  index_t const tiles = shape.tiles(outputs);

  Work work(place);
  index_t pieces = 1;
  if (outputs < many_outputs && invoke.count >= 8 * block_threads)
    pieces = std::min((many_blocks + tiles - 1) / tiles, invoke.count / (8 * shape.lanes));
  if (pieces == 1) {
    for (index_t first = 0; first < tiles; first += launch_elements)
      launch(place, along_by_block<Rank, Result, Along>,
             static_cast<unsigned>(std::min(tiles - first, launch_elements)), block_threads, invoke,
             shape, first, outputs, pieces, nullptr);
    return work.finish();
  }
  Scratch scratch(place, work.device(),
                  sizeof(Partial<Result>) * static_cast<std::size_t>(outputs * pieces));
  Partial<Result> *parts = scratch.as<Partial<Result>>();
  launch(place, along_by_block<Rank, Result, Along>, static_cast<unsigned>(tiles * pieces),
         block_threads, invoke, shape, index_t(0), outputs, pieces, parts);
  AlongShape const join(true, outputs, pieces);
  launch(place, join_pieces<Rank, Result, Along>, static_cast<unsigned>(join.tiles(outputs)),
         block_threads, invoke, join, outputs, pieces, parts);
  scratch.finish(place);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem::detail

#endif
