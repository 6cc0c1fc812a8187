/* umem/detail/thread_functions.hpp - what host_threads.hpp declares. */
#ifndef UMEM_DETAIL_THREAD_FUNCTIONS_HPP
#define UMEM_DETAIL_THREAD_FUNCTIONS_HPP

#include <umem/detail/host_threads.hpp>
#include <umem/error.hpp>

#include <atomic>
#include <cfenv>
#include <exception>

namespace umem {
namespace detail {

/* A different address in each thread that runs. */
UMEM_INLINE void const *this_thread() noexcept {
  static thread_local char mark;
  return &mark;
}

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

} // namespace detail
} // namespace umem

#endif
