/* umem/detail/host_threads.hpp - one range of work, shared by the threads of the library. */
#ifndef UMEM_DETAIL_HOST_THREADS_HPP
#define UMEM_DETAIL_HOST_THREADS_HPP

#include <umem/error.hpp>
#include <umem/extents.hpp>
#include <umem/place.hpp>
#include <umem/threads.h>

#include <atomic>
#include <cfenv>
#include <exception>
#include <thread>

namespace umem {
namespace detail {

/* The number of parts that the place names; the result of a reduction depends on it. */
inline index parts_of(HostPlace place) noexcept {
  return place.threads ? place.threads : umem_get_parallel_threads();
}

/* How many threads take part: one for each part, but no more than umem_set_threads allows. */
inline index threads_of(HostPlace place) noexcept {
  if (place.threads == 1) return 1;
  index allowed = umem_get_parallel_threads();
  return place.threads && place.threads < allowed ? place.threads : allowed;
}

/* While the object lives, this thread has the floating-point environment of the calling one:
 * rounding, treatment of subnormal numbers, traps. */
class CallersFloats {
public:
  CallersFloats(std::fenv_t const &callers, std::thread::id caller) noexcept
      : other_(std::this_thread::get_id() != caller) {
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

/* Calls of f(chunk) in several threads. Exceptions must not reach C: the job keeps that of the
 * lowest chunk. */
template <class F> class ChunkJob {
public:
  explicit ChunkJob(F const &f) noexcept : f_(f) { std::fegetenv(&floats_); }

  void run(index chunks) {
    umemStatusType status = umem_parallel_for(static_cast<unsigned>(chunks), run_one, this);
    if (thrown_) std::rethrow_exception(thrown_);
    check(status);
  }

private:
  static void run_one(void *data, unsigned chunk) noexcept {
    auto *job = static_cast<ChunkJob *>(data);
    CallersFloats floats(job->floats_, job->caller_);
    try {
      job->f_(static_cast<index>(chunk));
    } catch (...) {
      job->keep(chunk);
    }
  }

  void keep(unsigned chunk) noexcept {
    while (keeping_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    if (!thrown_ || chunk < lowest_) {
      thrown_ = std::current_exception();
      lowest_ = chunk;
    }
    keeping_.store(false, std::memory_order_release);
  }

  F const &f_;
  std::thread::id caller_ = std::this_thread::get_id();
  std::fenv_t floats_{};
  std::atomic<bool> keeping_{false}; /* a thread is in keep() */
  std::exception_ptr thrown_;
  unsigned lowest_ = 0; /* the chunk that threw it */
};

/* Calls f(chunk) for every chunk in [0, chunks), the first one in this thread, the others in those of the
 * library that are free. When all have ended, throws the exception of the lowest chunk that threw. */
template <class F> void on_threads(index chunks, F const &f) {
  if (chunks == 1)
    f(index(0));
  else if (chunks > 1)
    ChunkJob<F>(f).run(chunks);
}

/* Threads work on whole multiples of it, so that they share no cache line and no vector
 * register. */
inline constexpr index host_grain = 64;

/* How a loop of several dimensions is cut for threads. */
struct Cut {
  int dimension; /* whose loop they share */
  index count;   /* its indices */
  index grain;   /* chunks begin at multiples of it */
  index chunks;  /* at least 1 */

  /* Where chunk n begins; n may be chunks. */
  index begin(index n) const noexcept {
    if (n >= chunks) return count;
    index grains = count / grain;
    return (grains / chunks * n + grains % chunks * n / chunks) * grain;
  }
};

/* The dimension whose loop threads share: the first that is long enough, else the longest. */
template <int N> int shared_loop(index threads, Extents<N> const &extents) noexcept {
  int longest = 0;
  for (int k = 0; k < N; k++) {
    if (extents.at[k] / 4 >= threads) return k;
    if (extents.at[k] > extents.at[longest]) longest = k;
  }
  return longest;
}

/* Cuts loops with these extents into at most so many chunks. */
template <int N> Cut cut_for(index chunks, Extents<N> const &extents) noexcept {
  int k = shared_loop(chunks, extents);
  Cut cut{k, extents.at[k], k == N - 1 ? host_grain : 1, chunks};
  index grains = cut.count / cut.grain + (cut.count % cut.grain != 0);
  if (cut.chunks > grains) cut.chunks = grains > 0 ? grains : 1;
  return cut;
}

/* Calls f(begin, end) for the chunks of a cut that are not empty. */
template <class F> void on_threads(Cut const &cut, F const &f) {
  on_threads(cut.chunks, [&](index n) {
    index begin = cut.begin(n), end = cut.begin(n + 1);
    if (begin < end) f(begin, end);
  });
}

} // namespace detail
} // namespace umem

#endif
