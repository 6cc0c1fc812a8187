#include "by_hand_threads.h"

#include "place.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include <sched.h>
#include <sys/mman.h>

namespace by_hand {

std::vector<unsigned> thread_counts() {
  cpu_set_t set;
  bench::check_system(sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity");
  auto most = static_cast<unsigned>(CPU_COUNT(&set));
  std::vector<unsigned> counts;
  for (unsigned count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

void in_threads(unsigned threads, std::size_t size, std::size_t piece,
                std::function<void(unsigned, std::size_t, std::size_t)> const &work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  auto run = [&](unsigned thread) {
    try {
      for (std::size_t at; (at = next.fetch_add(piece)) < size;)
        work(thread, at, std::min(piece, size - at));
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < threads; thread++) others.emplace_back(run, thread);
  run(0);
  for (std::thread &other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

HugeMemory::HugeMemory(std::size_t size) : room_(size + (std::size_t{2} << 20)) {
  constexpr std::size_t page = std::size_t{2} << 20;
  start_ = mmap(nullptr, room_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bench::check_system(start_ != MAP_FAILED, "mmap");
  char *start = static_cast<char *>(start_);
  bytes_ = start + (-reinterpret_cast<std::uintptr_t>(start) & (page - 1));
  madvise(bytes_, size, MADV_HUGEPAGE); /* advice only */
}

HugeMemory::~HugeMemory() { munmap(start_, room_); }

} // namespace by_hand
