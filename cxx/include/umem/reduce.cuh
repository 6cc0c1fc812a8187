/* umem/reduce.cuh - reductions on GPUs; reduce.hpp includes it in files that nvcc compiles. */
#ifndef UMEM_REDUCE_CUH
#define UMEM_REDUCE_CUH

#include <umem/detail/map_kernels.cuh>
#include <umem/detail/sweep_kernels.cuh>

namespace umem::detail {

/* The most blocks of a reduction; one block joins their results. More than a GPU runs at a time,
 * so that its processors end together, and a constant, so that all GPUs use one order. */
inline constexpr index_t reduce_blocks = 4096;

/* How many packs a thread loads before it uses the first. */
template <class Type, int Width>
inline constexpr int packs_ahead = sizeof(Pack<Type, Width>) <= access_bytes ? 4 : 1;

/* Elements that follow each other: some before the first aligned pack, whole packs, the rest. */
template <class Type, int Width> struct PackedLine {
  Type const *data;
  index_t before, packs, after;

  /* head: the number of element 0 in its pack. */
  PackedLine(Type const *data_, index_t count, int head)
      : data(data_), before(head > 0 ? std::min<index_t>(Width - head, count) : 0),
        packs((count - before) / Width), after((count - before) % Width) {}

  __device__ index_t edges() const { return before + after; }
  __device__ Type const &edge(index_t n) const { return data[n < before ? n : n + packs * Width]; }
  __device__ Pack<Type, Width> pack(index_t n) const {
    return load_pack<Width>(data + before + n * Width);
  }
};

/* op over the results of functor in one thread. */
template <class Result, class Op, class Function> struct Accumulation {
  Op &op;
  Function &functor;
  Partial<Result> own;

  template <class Type> __device__ void add(Type const &element) {
    Result value = static_cast<Result>(functor(element));
    own.value = own.any ? static_cast<Result>(op(own.value, value)) : value;
    own.any = true;
  }
  template <class Type, int Width> __device__ void add(Pack<Type, Width> const &pack) {
#pragma unroll
    for (int e = 0; e < Width; e++) add(pack.at[e]);
  }
};

/* Each block leaves one result of tiles as far apart as there are blocks. The first one has init
 * and the elements outside of packs, too. */
template <int Width, class Result, class Op, class Function, class Type>
__global__ void __launch_bounds__(block_threads)
    reduce_tiles(Op op, Function functor, Partial<Result> init, PackedLine<Type, Width> line,
                 Partial<Result> *results) {
  constexpr int Ahead = packs_ahead<Type, Width>;
  constexpr index_t tile = Ahead * block_threads;
  Accumulation<Result, Op, Function> all{op, functor, {}};
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) all.own = init;
    if (threadIdx.x < line.edges()) all.add(line.edge(threadIdx.x));
  }
  index_t n = blockIdx.x * tile + threadIdx.x;
  for (; n + (tile - block_threads) < line.packs; n += gridDim.x * tile) {
    Pack<Type, Width> packs[Ahead];
#pragma unroll
    for (int p = 0; p < Ahead; p++) packs[p] = line.pack(n + index_t(p) * block_threads);
#pragma unroll
    for (int p = 0; p < Ahead; p++) all.add(packs[p]);
  }
  for (; n < line.packs; n += block_threads) all.add(line.pack(n)); /* the last tile */
  Partial<Result> joined = reduce_over_block(op, all.own, threadIdx.x);
  if (threadIdx.x == 0) results[blockIdx.x] = joined;
}

/* Joins init on the device too: op may be a device function. */
template <int Width, class Result, class Op, class Function, class Type>
Result reduce_line(DevicePlace const &place, Op const &op, Function const &functor,
                   Result const &init, PackedLine<Type, Width> const &line) {
  Work work(place);
  index_t tiles = (line.packs - 1) / (packs_ahead<Type, Width> * block_threads) + 1;
  auto const blocks = static_cast<unsigned>(std::min(tiles, reduce_blocks));
  Scratch scratch(place, work.device(), sizeof(Partial<Result>) * (1 + blocks));
  Partial<Result> result{init, true}, *all = scratch.as<Partial<Result>>();
  launch(place, reduce_tiles<Width, Result, Op, Function, Type>, blocks, block_threads, op, functor,
         result, line, blocks > 1 ? all + 1 : all);
  if (blocks > 1)
    launch(place, join_results<Result, Op>, 1, block_threads, op, all + 1, blocks, all);
  scratch.download(place, &result, sizeof result);
  return result.value;
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and f(element of each view). */
template <class Result, class Op, class Function, class Type, int Rank, class... Operands>
Result device_reduce(DevicePlace const &place, Op const &op, Function const &functor,
                     Result const &init, View<Type, Rank> const &view,
                     View<Operands, Rank> const &...others) {
  static_assert(std::is_trivially_copyable_v<Result> && std::is_default_constructible_v<Result>,
                "results of kernels are trivially copyable and can be default-constructed");
  if (view.size() == 0) return init;
  auto loops = loops_of(view, others...);
  simplify(loops);
  constexpr int Loops = loop_rank<Rank>;
  if constexpr (sizeof...(Operands) == 0) {
    using Element = std::remove_const_t<Type>;
    constexpr int Width = pack_size<Element>;
    int const head = pack_head<Width>(view.data);
    if (loops.is_contiguous() && head >= 0)
      return reduce_line(place, op, functor, init,
                         PackedLine<Element, Width>(view.data, loops.extents.at[Loops - 1], head));
  }
  using All = std::make_integer_sequence<int, 1 + sizeof...(Operands)>;
  MapStrided<false, All, Loops, Function, Type, Operands...> invoke(functor, loops, view.data,
                                                                    others.data...);
  return device_index_reduce<index_t>(place, op, invoke, init, Extents<Loops>(), loops.extents);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem::detail

#endif
