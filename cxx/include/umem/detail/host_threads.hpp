/* umem/detail/host_threads.hpp - one range of work, shared by threads that are started for it. */
#ifndef UMEM_DETAIL_HOST_THREADS_HPP
#define UMEM_DETAIL_HOST_THREADS_HPP

#include <umem/extents.hpp>
#include <umem/place.hpp>

#include <exception>
#include <thread>
#include <vector>

namespace umem {
namespace detail {

/* How many threads take part in work that can be cut in count pieces. */
inline index threads_for(HostPlace place, index count) noexcept {
  index threads = place.threads ? place.threads : std::thread::hardware_concurrency();
  if (threads > count) threads = count;
  return threads > 0 ? threads : 1;
}

/* Calls f(chunk) for every chunk in [0, chunks), each on a thread of its own, the first one on the
 * caller's. A thread that the system refuses, or that there is no memory for, is done without. The
 * exception of the lowest chunk that threw comes out, when all have ended. std::bad_alloc, before
 * anything is done, where there is no memory to keep exceptions in. */
template <class F> void on_threads(index chunks, F const &f) {
  if (chunks <= 1) {
    if (chunks == 1) f(index(0));
    return;
  }
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(chunks));
  auto run = [&](index chunk) noexcept {
    try {
      f(chunk);
    } catch (...) {
      thrown[static_cast<std::size_t>(chunk)] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  index started = 1;
  try {
    threads.reserve(static_cast<std::size_t>(chunks - 1));
    for (; started < chunks; started++) threads.emplace_back(run, started);
  } catch (std::exception const &) { // NOLINT(bugprone-empty-catch): the caller does the rest
    /* Threads that run must be joined. */
  }
  run(0);
  for (index chunk = started; chunk < chunks; chunk++) run(chunk);
  for (std::thread &thread : threads) thread.join();
  for (std::exception_ptr const &exception : thrown)
    if (exception) std::rethrow_exception(exception);
}

/* Where chunk number n of `chunks` begins in [0, count): at a multiple of `grain`. */
inline index chunk_begin(index n, index chunks, index count, index grain) noexcept {
  if (n >= chunks) return count;
  index grains = count / grain;
  index begin = grains / chunks * n + grains % chunks * n / chunks;
  return begin * grain;
}

/* Calls f(begin, end) for parts that cover [0, count). Parts begin at multiples of grain. */
template <class F> void on_threads(HostPlace place, index count, index grain, F const &f) {
  index chunks = threads_for(place, (count + grain - 1) / grain);
  on_threads(chunks, [&](index n) {
    index begin = chunk_begin(n, chunks, count, grain);
    index end = chunk_begin(n + 1, chunks, count, grain);
    if (begin < end) f(begin, end);
  });
}

/* The dimension whose loop threads share: the first that is long enough, else the longest. */
template <int N> int shared_loop(HostPlace place, Extents<N> const &extents) noexcept {
  int longest = 0;
  index threads = threads_for(place, largest<index>);
  for (int k = 0; k < N; k++) {
    if (extents.at[k] / 4 >= threads) return k;
    if (extents.at[k] > extents.at[longest]) longest = k;
  }
  return longest;
}

} // namespace detail
} // namespace umem

#endif
