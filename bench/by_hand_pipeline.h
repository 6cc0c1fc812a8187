/* by_hand_pipeline.h - the pipeline between files and a GPU that a program writes which has no
 * umem: threads, each with a stream and two pinned pieces of its own. */
#ifndef UMEM_BENCH_BY_HAND_PIPELINE_H
#define UMEM_BENCH_BY_HAND_PIPELINE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace by_hand {

class Pipeline {
public:
  Pipeline(unsigned threads, std::size_t piece);
  ~Pipeline();

  /* Copies size bytes from the beginning of the open file fd to the device memory far, and back.
   * Starts the threads for each copy; pieces and streams are kept. */
  void load(int fd, std::uintptr_t far, std::size_t size);
  void store(int fd, std::uintptr_t far, std::size_t size);

  /* Copies size bytes of the beginning of each file to the targets, which take turns: a file waits
   * for the end of the one that had its target before. Nothing is idle between two files. size is a
   * multiple of the pieces. */
  void load_all(std::vector<int> const &fds, std::size_t size,
                std::vector<std::uintptr_t> const &targets);

private:
  struct Thread;
  struct Arrivals;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::size_t piece_;
};

} // namespace by_hand

#endif
