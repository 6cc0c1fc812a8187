/* umem/detail/host_loops.hpp - loops over elements and over indices on the host, written so that
 * compilers vectorise the innermost one: it runs over one pointer with stride 1, or over one
 * index. */
#ifndef UMEM_DETAIL_HOST_LOOPS_HPP
#define UMEM_DETAIL_HOST_LOOPS_HPP

#include <umem/place.hpp>
#include <umem/view.hpp>

#include <cfenv>
#include <tuple>

namespace umem::detail {

/* One range of work, shared by the threads of the library. */

/* The number of parts that the place names; the result of a reduction depends on it. */
inline index_t parts_of(HostPlace place) noexcept {
  return place.threads ? place.threads : umem_get_parallel_threads();
}

/* How many threads take part: one for each part, but no more than umem_set_threads allows. */
inline index_t threads_of(HostPlace place) noexcept {
  if (place.threads == 1) return 1;
  index_t allowed = umem_get_parallel_threads();
  return place.threads && place.threads < allowed ? place.threads : allowed;
}

/* Calls call(functor, chunk) for every chunk in [0, chunks), the first one in this thread, the
 * others in those of the library that are free, with the floating-point environment of this one:
 * rounding, treatment of subnormal numbers, traps. When all have ended, throws the exception of the
 * lowest chunk that threw. */
void run_chunks(index_t chunks, void (*invoke)(void const *functor, index_t chunk),
                void const *functor);

/* Calls functor(chunk) for each chunk, on several threads. */
template <class Function> void on_threads(index_t chunks, Function const &functor) {
  if (chunks == 1)
    functor(index_t(0));
  else if (chunks > 1)
    run_chunks(
        chunks, [](void const *of, index_t chunk) { (*static_cast<Function const *>(of))(chunk); },
        &functor);
}

/* Threads work on whole multiples of it, so that they share no cache line and no vector
 * register. */
inline constexpr index_t host_grain = 64;

/* What buffers of loops are aligned to, in bytes: the widest vector register. A vector that crosses
 * a cache line takes twice as long. */
inline constexpr std::size_t vector_bytes = 64;

/* How a loop of several dimensions is cut for threads. */
struct Cut {
  int dimension;  /* whose loop they share */
  index_t count;  /* its indices */
  index_t grain;  /* chunks begin at multiples of it */
  index_t chunks; /* at least 1 */

  /* Where chunk n begins; n may be chunks. */
  index_t begin(index_t n) const noexcept {
    if (n >= chunks) return count;
    index_t grains = count / grain;
    return (grains / chunks * n + grains % chunks * n / chunks) * grain;
  }
};

/* The dimension whose loop threads share: the first that is long enough, else the longest. */
template <int Rank> int shared_loop(index_t threads, Extents<Rank> const &extents) noexcept {
  int longest = 0;
  for (int k = 0; k < Rank; k++) {
    if (extents.at[k] / 4 >= threads) return k;
    if (extents.at[k] > extents.at[longest]) longest = k;
  }
  return longest;
}

/* Cuts loops with these extents into at most so many chunks. */
template <int Rank> Cut cut_for(index_t chunks, Extents<Rank> const &extents) noexcept {
  int k = shared_loop(chunks, extents);
  Cut cut{k, extents.at[k], k == Rank - 1 ? host_grain : 1, chunks};
  index_t grains = cut.count / cut.grain + (cut.count % cut.grain != 0);
  if (cut.chunks > grains) cut.chunks = grains > 0 ? grains : 1;
  return cut;
}

/* Calls functor(begin, end) for the chunks of a cut that are not empty. */
template <class Function> void on_threads(Cut const &cut, Function const &functor) {
  on_threads(cut.chunks, [&](index_t n) {
    index_t begin = cut.begin(n), end = cut.begin(n + 1);
    if (begin < end) functor(begin, end);
  });
}

/* Chooses the order of loops over the elements of several views,
 * for functions that may be called in any order. Host only. */

/* The extents of a nest of loops and, for each of Count operands, the strides of its dimensions.
 * The last loop is the innermost. */
template <int Rank, int Count> struct LoopLayout {
  static_assert(Rank > 0 && Count > 0);
  Extents<Rank> extents;
  Extents<Rank> strides[static_cast<std::size_t>(Count)];

  /* Elements follow each other in all operands: one loop with stride 1. */
  bool is_contiguous() const noexcept {
    for (int k = 0; k < Rank - 1; k++)
      if (extents.at[k] != 1) return false;
    for (Extents<Rank> const &stride : strides)
      if (stride.at[Rank - 1] != 1) return false;
    return true;
  }
};

template <int Rank, int Count>
void swap_loops(LoopLayout<Rank, Count> &loops, int a, int b) noexcept {
  auto swap = [=](Extents<Rank> &values) {
    index_t value = values.at[a];
    values.at[a] = values.at[b];
    values.at[b] = value;
  };
  swap(loops.extents);
  for (Extents<Rank> &stride : loops.strides) swap(stride);
}

/* Whether loop a, of the first operand, belongs inside of loop b: it has the shorter stride. Loops
 * that run once are outermost. */
template <int Rank, int Count>
bool belongs_inside(LoopLayout<Rank, Count> const &loops, int a, int b) noexcept {
  if (loops.extents.at[a] == 1 || loops.extents.at[b] == 1)
    return loops.extents.at[a] != 1 && loops.extents.at[b] == 1;
  index_t one = loops.strides[0].at[a], other = loops.strides[0].at[b];
  return (one < 0 ? -one : one) < (other < 0 ? -other : other);
}

/* Whether loop `outer` around loop `inner` can become one loop, for all operands. */
template <int Rank, int Count>
bool are_one(LoopLayout<Rank, Count> const &loops, int outer, int inner) noexcept {
  for (Extents<Rank> const &stride : loops.strides)
    if (stride.at[outer] != stride.at[inner] * loops.extents.at[inner]) return false;
  return true;
}

/* Makes fewer and longer loops of the same elements, with the shortest strides innermost. Loops
 * that are no longer needed run once and come first. No extent may be 0. */
template <int Rank, int Count> void simplify(LoopLayout<Rank, Count> &loops) noexcept {
  for (int k = 1; k < Rank; k++)
    for (int j = k; j > 0 && belongs_inside(loops, j - 1, j); j--) swap_loops(loops, j - 1, j);
  int to = Rank - 1; /* the outermost remaining loop; those between k and it run once */
  for (int k = Rank - 2; k >= 0; k--) {
    if (loops.extents.at[k] == 1) continue;
    if (are_one(loops, k, to)) {
      loops.extents.at[to] *= loops.extents.at[k];
      loops.extents.at[k] = 1;
    } else {
      if (to - 1 > k) swap_loops(loops, k, to - 1);
      to--;
    }
  }
  if (loops.extents.at[Rank - 1] == 1) /* its stride is never used */
    for (Extents<Rank> &stride : loops.strides) stride.at[Rank - 1] = 1;
}

/* The numbers of the dimensions in reversed order. */
template <int Rank> Extents<Rank> reversed(Extents<Rank> const &values) noexcept {
  Extents<Rank> result;
  for (int k = 0; k < Rank; k++) result.at[k] = values.at[Rank - 1 - k];
  return result;
}

/* Rank 0 has one element, and one loop. */
template <int Rank> inline constexpr int loop_rank = Rank > 0 ? Rank : 1;

/* The loops over the interiors of views with the same extents. */
template <class Type, int Rank, class... Operands>
LoopLayout<loop_rank<Rank>, 1 + sizeof...(Operands)>
loops_of(View<Type, Rank> const &view, View<Operands, Rank> const &...others) {
  LoopLayout<loop_rank<Rank>, 1 + sizeof...(Operands)> loops;
  if constexpr (Rank == 0) {
    loops.extents = {1};
    for (auto &stride : loops.strides) stride = {1};
  } else {
    loops.extents = view.extents;
    int m = 0;
    loops.strides[m++] = view.strides;
    ((loops.strides[m++] = others.strides), ...);
  }
  return loops;
}

/* Throws umem::value_error if extents differ. */
template <int Rank, class... Others>
void check_extents(char const *function, Extents<Rank> const &extents, Others const &...others) {
  [[maybe_unused]] auto check_one = [&](Extents<Rank> const &other) {
    if (other != extents)
      raise_text(umemValueError, "%s: the extents %s and %s differ", function,
                 in_words(extents).text, in_words(other).text);
  };
  (check_one(others), ...);
}

/* ---- elements ---- */

/* The function as the loop over a row calls it: a copy where calls cannot change it. No other code
 * can see the copy, so that its members are in registers, even if the loop writes elements of their
 * types. */
template <class Function, class... Types>
using InRow =
    std::conditional_t<std::is_trivially_copyable_v<Function> && sizeof(Function) <= 128 &&
                           std::is_invocable_v<Function const &, Types &...>,
                       Function const, Function &>;

template <class Function, class... Types>
void host_row(Function &functor, index_t n, Types *...element) {
  InRow<Function, Types...> invoke = functor;
  for (index_t i = 0; i < n; i++) invoke(element[i]...);
}

template <class Function, class... Types, int... Nth>
void host_strided_row(Function &functor, index_t n, index_t const *stride,
                      std::integer_sequence<int, Nth...>, Types *...element) {
  InRow<Function, Types...> invoke = functor;
  index_t const s[] = {stride[Nth]...};
  for (index_t i = 0; i < n; i++) invoke(element[i * s[Nth]]...);
}

/* Rows in which one operand has another stride than 1, as a constant for the compiler which: the
 * loops that a program would write for such a layout. */
template <int Step, class Function, class... Types, int... Nth>
void host_row_but_one(Function &functor, index_t n, index_t stride,
                      std::integer_sequence<int, Nth...>, Types *...element) {
  InRow<Function, Types...> invoke = functor;
  for (index_t i = 0; i < n; i++) invoke(element[Nth == Step ? i * stride : i]...);
}

/* An element of a row whose elements all share one of the operand, which is only read. */
template <bool is_shared, class Type> struct RowElement {
  Type *row;
  UMEM_ALWAYS_INLINE Type &operator[](index_t i) const noexcept { return row[i]; }
};
template <class Type> struct RowElement<true, Type const> {
  Type const value; /* nothing else can write to it */
  explicit RowElement(Type const *row) noexcept : value(*row) {}
  UMEM_ALWAYS_INLINE Type const &operator[](index_t) const noexcept { return value; }
};
template <class Function, class... Arrays>
void host_shared_row(Function &functor, index_t n, Arrays const... element) {
  InRow<Function, decltype(element[0])...> invoke = functor;
  for (index_t i = 0; i < n; i++) invoke(element[i]...);
}

/* Rows whose strides are not all 1. Loops for rows with one such operand, if there are few: Step,
 * Step + 1, ... may be it. */
template <int Step, class Function, class... Types, int... Nth>
void host_rows_with_gaps(Function &functor, index_t n, index_t const *stride,
                         std::integer_sequence<int, Nth...> all, Types *...element) {
  constexpr int count = sizeof...(Types);
  if constexpr (Step == count || count == 1 || count > 4) {
    host_strided_row(functor, n, stride, all, element...);
  } else {
    if (!((Nth == Step || stride[Nth] == 1) && ...))
      return host_rows_with_gaps<Step + 1>(functor, n, stride, all, element...);
    using Operand = std::tuple_element_t<static_cast<std::size_t>(Step), std::tuple<Types...>>;
    if constexpr (std::is_const_v<Operand> && std::is_copy_constructible_v<Operand>)
      if (stride[Step] == 0)
        return host_shared_row(functor, n, RowElement<Nth == Step, Types>{element}...);
    host_row_but_one<Step>(functor, n, stride[Step], all, element...);
  }
}

/* Loops Dim to Rank - 1. length: of rows, whose strides are 1, as a constant for the compiler. It
 * then writes no loop for short ones. any_length: unknown. with_gaps: so are the strides. */
inline constexpr index_t any_length = 0, with_gaps = -1;
template <index_t length, int Dim, int Rank, class Function, class... Types, int... Nth>
UMEM_ALWAYS_INLINE void host_nest_of(Function &functor,
                                     LoopLayout<Rank, sizeof...(Types)> const &loops,
                                     std::integer_sequence<int, Nth...> all, Types *...element) {
  if constexpr (Dim < Rank - 1) {
    for (index_t i = 0; i < loops.extents.at[Dim]; i++)
      host_nest_of<length, Dim + 1>(functor, loops, all,
                                    element + i * loops.strides[Nth].at[Dim]...);
  } else if constexpr (length != with_gaps) {
    host_row(functor, length == any_length ? loops.extents.at[Dim] : length, element...);
  } else {
    index_t const stride[] = {loops.strides[Nth].at[Dim]...};
    host_rows_with_gaps<0>(functor, loops.extents.at[Dim], stride, all, element...);
  }
}
template <int Rank, class Function, class... Types, int... Nth>
void host_nest(Function &functor, LoopLayout<Rank, sizeof...(Types)> const &loops,
               std::integer_sequence<int, Nth...> all, Types *...element) {
  if (!((loops.strides[Nth].at[Rank - 1] == 1) && ...))
    return host_nest_of<with_gaps, 0>(functor, loops, all, element...);
  if constexpr (Rank > 1) {
    index_t const length = loops.extents.at[Rank - 1];
    if (length == 2) return host_nest_of<2, 0>(functor, loops, all, element...);
    if (length == 3) return host_nest_of<3, 0>(functor, loops, all, element...);
  }
  host_nest_of<any_length, 0>(functor, loops, all, element...);
}

/* Calls functor(element of each operand) for all elements, in any order. Threads get copies of
 * functor. */
template <int Rank, class Function, class... Types, int... Nth>
void host_map(HostPlace place, Function &functor, LoopLayout<Rank, sizeof...(Types)> const &loops,
              std::integer_sequence<int, Nth...> all, Types *...element) {
  if (place.threads == 1) return host_nest(functor, loops, all, element...);
  Cut const cut = cut_for(threads_of(place), loops.extents);
  int const k = cut.dimension;
  on_threads(cut, [&](index_t begin, index_t end) {
    LoopLayout<Rank, sizeof...(Types)> part = loops;
    part.extents.at[k] = end - begin;
    Function own = functor;
    host_nest(own, part, all, element + begin * loops.strides[Nth].at[k]...);
  });
}

/* Calls functor for the elements of views with equal extents. */
template <class Function, class Type, int Rank, class... Operands>
UMEM_ALWAYS_INLINE void host_map(HostPlace place, Function &functor, View<Type, Rank> const &view,
                                 View<Operands, Rank> const &...others) {
  if (view.size() == 0) return;
  auto loops = loops_of(view, others...);
  simplify(loops);
  host_map(place, functor, loops, std::make_integer_sequence<int, 1 + sizeof...(Operands)>(),
           view.data, others.data...);
}

/* ---- indices ---- */

/* Loops Dim to Rank - 1 over [begin, end), in C order, with the indices of the outer loops before.
 * All loops become one function, like loops that are written out: a compiler that calls the
 * inner ones reads the functor from memory again for each row. */
template <int Dim, int Rank, class Index, class Function, class... Indices>
UMEM_ALWAYS_INLINE void host_index_nest(Function &functor, Extents<Rank> const &begin,
                                        Extents<Rank> const &end, Indices... before) {
  if constexpr (Dim == Rank) {
    functor(before...);
  } else {
    Index const last = static_cast<Index>(end.at[Dim]);
    for (Index i = static_cast<Index>(begin.at[Dim]); i < last; i++)
      host_index_nest<Dim + 1, Rank, Index>(functor, begin, end, before..., i);
  }
}

/* The elements of several operands at some indices. */
template <int Count, class Type> struct OperandElement { Type *at; };

template <class All, class... Types> struct OperandElements;
template <int... Nth, class... Types>
struct OperandElements<std::integer_sequence<int, Nth...>, Types...>
    : OperandElement<Nth, Types>... {
  /* Those i further in dimension k. unit: there all strides are 1. */
  template <bool unit, int Rank>
  UMEM_ALWAYS_INLINE OperandElements moved(index_t i, int k,
                                           Extents<Rank> const *strides) const noexcept {
    return {{OperandElement<Nth, Types>::at + i * (unit ? 1 : strides[Nth].at[k])}...};
  }
  template <class Function, class... Indices>
  UMEM_ALWAYS_INLINE decltype(auto) invoke(Function &functor, Indices... i) const {
    return functor(*OperandElement<Nth, Types>::at..., i...);
  }
};

/* A nest that calls functor(element of each operand, i, j, ...); row: the elements with the indices
 * before, and 0 from Dim on. */
template <bool unit, int Dim, class Index, class Function, class Elements, int Rank,
          class... Indices>
UMEM_ALWAYS_INLINE void host_element_nest(Function &functor, Elements const row,
                                          Extents<Rank> const *strides, Extents<Rank> const &begin,
                                          Extents<Rank> const &end, Indices... before) {
  if constexpr (Dim == Rank) {
    row.invoke(functor, before...);
  } else {
    Index const last = static_cast<Index>(end.at[Dim]);
    for (Index i = static_cast<Index>(begin.at[Dim]); i < last; i++)
      host_element_nest<unit, Dim + 1, Index>(
          functor,
          row.template moved < unit && Dim == Rank - 1 > (static_cast<index_t>(i), Dim, strides),
          strides, begin, end, before..., i);
  }
}

/* Calls run(begin, end) once for [begin, end), or for one part per thread. */
template <int Rank, class Run>
UMEM_ALWAYS_INLINE void host_share(HostPlace place, Extents<Rank> const &begin,
                                   Extents<Rank> const &end, Run const &run) {
  Extents<Rank> extents;
  for (int k = 0; k < Rank; k++) {
    extents.at[k] = end.at[k] - begin.at[k];
    if (extents.at[k] <= 0) return;
  }
  if constexpr (Rank > 0) {
    if (place.threads != 1) {
      Cut const cut = cut_for(threads_of(place), extents);
      int const k = cut.dimension;
      on_threads(cut, [&](index_t first, index_t last) {
        Extents<Rank> low = begin, high = end;
        low.at[k] = begin.at[k] + first;
        high.at[k] = begin.at[k] + last;
        run(low, high);
      });
      return;
    }
  }
  run(begin, end);
}

/* Calls functor(i, j, ...) for begin <= (i, j, ...) < end, with a copy of functor for each thread:
 * no other code can see the copy, so it may be in registers. */
template <class Index, int Rank, class Function>
UMEM_ALWAYS_INLINE void host_indices(HostPlace place, Function const &functor,
                                     Extents<Rank> const &begin, Extents<Rank> const &end) {
  host_share(
      place, begin,
      end, [&](Extents<Rank> const low, Extents<Rank> const high) __attribute__((always_inline)) {
        Function own = functor;
        host_index_nest<0, Rank, Index>(own, low, high);
      });
}

/* Calls functor(element of each view, i, j, ...) for begin <= (i, j, ...) < end. unit: all strides
 * of the last dimension are 1, as a constant for the compiler. */
template <bool unit, class Index, int Rank, class Function, class... Types>
UMEM_ALWAYS_INLINE void host_indexed_rows(HostPlace place, Function const &functor,
                                          Extents<Rank> const &begin, Extents<Rank> const &end,
                                          View<Types, Rank> const &...views) {
  using Elements = OperandElements<std::make_integer_sequence<int, sizeof...(Types)>, Types...>;
  host_share(
      place, begin,
      end, [&](Extents<Rank> const low, Extents<Rank> const high) __attribute__((always_inline)) {
        Function own = functor;
        Extents<Rank> const strides[] = {views.strides...};
        host_element_nest<unit, 0, Index>(own, Elements{{views.data}...}, strides, low, high);
      });
}

/* functor(element of each operand, i, j, ...) for loops over transposed views: it gets the indices
 * in reversed order. */
template <class Function, class All, class... Types> struct ReversedIndices;
template <class Function, int... Dims, class... Types>
struct ReversedIndices<Function, std::integer_sequence<int, Dims...>, Types...> {
  Function functor;

  template <class... Indices>
  UMEM_ALWAYS_INLINE decltype(auto) operator()(Types &...elements, Indices... i) {
    std::common_type_t<Indices...> const at[] = {i...};
    return functor(elements..., at[sizeof...(Dims) - 1 - Dims]...);
  }
};
template <int Rank, class Function, class... Types>
using reversed_indices = ReversedIndices<Function, std::make_integer_sequence<int, Rank>, Types...>;

template <class Index, int Rank, class Function, class... Types>
UMEM_ALWAYS_INLINE void host_indexed(HostPlace place, Function const &functor,
                                     Extents<Rank> const &begin, Extents<Rank> const &end,
                                     View<Types, Rank> const &...views) {
  if constexpr (Rank > 0) {
    if (((views.strides.at[Rank - 1] == 1) && ...))
      return host_indexed_rows<true, Index>(place, functor, begin, end, views...);
  }
  if constexpr (Rank > 1) {
    if (((views.strides.at[0] == 1) && ...)) /* column-major */
      return host_indexed_rows<true, Index>(place,
                                            reversed_indices<Rank, Function, Types...>{functor},
                                            reversed(begin), reversed(end), views.transpose()...);
  }
  host_indexed_rows<false, Index>(place, functor, begin, end, views...);
}

} // namespace umem::detail

#endif

#if !defined(UMEM_HOST_LOOPS_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_HOST_LOOPS_FUNCTIONS

namespace umem::detail {

/* While the object lives, this thread has the floating-point environment of the calling one. */
class CallersFloats {
public:
  CallersFloats(std::fenv_t const &callers, void const *caller) noexcept
      : other_(this_thread() != caller) {
    if (!other_) return;
    std::fegetenv(&own_);
    std::fesetenv(&callers);
  }
  ~CallersFloats() {
    if (other_) std::fesetenv(&own_);
  }
  CallersFloats(CallersFloats const &) = delete;
  CallersFloats &operator=(CallersFloats const &) = delete;

private:
  bool other_;
  std::fenv_t own_{};
};

/* Exceptions must not reach C: the job keeps that of the lowest chunk. */
struct ChunkJob {
  void (*invoke)(void const *functor, index_t chunk);
  void const *functor;
  void const *caller = this_thread();
  std::fenv_t floats{};
  std::atomic<bool> keeping{false}; /* a thread is in keep(), for some nanoseconds */
  std::exception_ptr thrown{};
  unsigned lowest = 0; /* the chunk that threw it */

  static void run_one(void *data, unsigned chunk) noexcept;
  void keep(unsigned chunk) noexcept;
};

UMEM_INLINE void ChunkJob::run_one(void *data, unsigned chunk) noexcept {
  auto *job = static_cast<ChunkJob *>(data);
  CallersFloats floats(job->floats, job->caller);
  try {
    job->invoke(job->functor, static_cast<index_t>(chunk));
  } catch (...) {
    job->keep(chunk);
  }
}

UMEM_INLINE void ChunkJob::keep(unsigned chunk) noexcept {
  while (keeping.exchange(true, std::memory_order_acquire)) {
  }
  if (!thrown || chunk < lowest) {
    thrown = std::current_exception();
    lowest = chunk;
  }
  keeping.store(false, std::memory_order_release);
}

UMEM_INLINE void run_chunks(index_t chunks, void (*invoke)(void const *functor, index_t chunk),
                            void const *functor) {
  ChunkJob job{invoke, functor};
  std::fegetenv(&job.floats);
  umemStatusType const status =
      umem_parallel_for(static_cast<unsigned>(chunks), ChunkJob::run_one, &job);
  if (job.thrown) std::rethrow_exception(job.thrown);
  check_status(status);
}

} // namespace umem::detail

#endif
