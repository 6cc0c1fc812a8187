/* by_hand_threads.h - files read in pieces by several threads, as a program does it that has no
 * umem. */
#ifndef UMEM_BENCH_BY_HAND_THREADS_H
#define UMEM_BENCH_BY_HAND_THREADS_H

#include <cstddef>
#include <functional>
#include <vector>

namespace by_hand {

/* 1, 2, 4, ... and the number of processors that this process may run on. */
std::vector<unsigned> thread_counts();

/* Starts threads for one job of size bytes: each takes the next piece until none is left, and calls
 * work(thread, offset, bytes). */
void in_threads(unsigned threads, std::size_t size, std::size_t piece,
                std::function<void(unsigned, std::size_t, std::size_t)> const &work);

/* Fresh memory on huge pages, untouched. */
class HugeMemory {
public:
  explicit HugeMemory(std::size_t size);
  HugeMemory(HugeMemory const &) = delete;
  HugeMemory &operator=(HugeMemory const &) = delete;
  ~HugeMemory();
  char *bytes() const { return bytes_; }

private:
  void *start_;
  std::size_t room_;
  char *bytes_;
};

} // namespace by_hand

#endif
