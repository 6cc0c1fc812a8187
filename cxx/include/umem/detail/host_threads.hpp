/* umem/detail/host_threads.hpp - one range of work, shared by the threads of the library. */
#ifndef UMEM_DETAIL_HOST_THREADS_HPP
#define UMEM_DETAIL_HOST_THREADS_HPP

#include <umem/extents.hpp>
#include <umem/place.hpp>
#include <umem/threads.h>

namespace umem {
namespace detail {

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

/* Calls call(functor, chunk) for every chunk in [0, chunks), the first one in this thread, the others in those of the
 * library that are free, with the floating-point environment of this one: rounding, treatment of subnormal numbers,
 * traps. When all have ended, throws the exception of the lowest chunk that threw. */
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

} // namespace detail
} // namespace umem

#if !defined(UMEM_COMPILED)
#include <umem/detail/thread_functions.hpp>
#endif

#endif
