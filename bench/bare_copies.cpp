/* bare_copies.cpp - copies of 512 MiB by plain CUDA, measured as nvbandwidth does, for bw.py. No
 * umem.
 *
 *     umem_bare_copies to|from|local     pinned memory to the GPU 0, from it, within it
 *
 * Prints bytes a second of each of 3 samples. A sample is 4 copies that do not count and 16 copies
 * on one stream, with an event of CUDA before the first of the 16 and behind the last; the stream
 * is held until all of this is queued. */
#include "by_hand_cuda.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

namespace {

using by_hand::check_cuda;

constexpr std::size_t size = std::size_t(512) << 20;
constexpr int warmups = 4, copies = 16, samples = 3;

/* Both blocks. */
struct Free {
  bool is_pinned;
  void operator()(void *block) const { is_pinned ? cudaFreeHost(block) : cudaFree(block); }
};
using Block = std::unique_ptr<void, Free>;

Block allocate(bool is_pinned) {
  void *block = nullptr;
  if (is_pinned)
    check_cuda(cudaHostAlloc(&block, size, cudaHostAllocPortable), "cudaHostAlloc");
  else
    check_cuda(cudaMalloc(&block, size), "cudaMalloc");
  Block result(block, Free{is_pinned});
  check_cuda(is_pinned ? (std::memset(block, 1, size), cudaSuccess) : cudaMemset(block, 1, size),
             "cudaMemset");
  return result;
}

struct Event {
  Event() { check_cuda(cudaEventCreate(&event), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event); }
  Event(Event const &) = delete;
  Event &operator=(Event const &) = delete;
  cudaEvent_t event;
};

/* Holds a stream until it is released, at the latest by the destructor, which waits for the
 * stream. */
class Hold {
public:
  explicit Hold(cudaStream_t stream) : stream_(stream) {
    check_cuda(cudaLaunchHostFunc(stream, wait, &is_free_), "cudaLaunchHostFunc");
  }
  ~Hold() {
    release();
    cudaStreamSynchronize(stream_);
  }
  Hold(Hold const &) = delete;
  Hold &operator=(Hold const &) = delete;
  void release() { is_free_ = true; }

private:
  static void wait(void *is_free) {
    while (!*static_cast<std::atomic<bool> *>(is_free)) {
    }
  }
  cudaStream_t stream_;
  std::atomic<bool> is_free_{false};
};

double sample(Block const &dst, Block const &src, cudaStream_t stream) {
  Event begin, end;
  float milliseconds = 0;
  Hold hold(stream);
  for (int i = 0; i < warmups + copies; i++) {
    if (i == warmups) check_cuda(cudaEventRecord(begin.event, stream), "cudaEventRecord");
    check_cuda(cudaMemcpyAsync(dst.get(), src.get(), size, cudaMemcpyDefault, stream),
               "cudaMemcpyAsync");
  }
  check_cuda(cudaEventRecord(end.event, stream), "cudaEventRecord");
  hold.release();
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  check_cuda(cudaEventElapsedTime(&milliseconds, begin.event, end.event), "cudaEventElapsedTime");
  return static_cast<double>(size) * copies / (static_cast<double>(milliseconds) / 1e3);
}

} // namespace

int main(int argc, char **argv) {
  char const *way = argc == 2 ? argv[1] : "";
  if (std::strcmp(way, "to") != 0 && std::strcmp(way, "from") != 0 &&
      std::strcmp(way, "local") != 0)
    return std::fprintf(stderr, "usage: umem_bare_copies to|from|local\n"), 2;
  try {
    Block const src = allocate(std::strcmp(way, "to") == 0);
    Block const dst = allocate(std::strcmp(way, "from") == 0);
    by_hand::CudaStream const stream;
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    for (int i = 0; i < samples; i++) std::printf("%.0f\n", sample(dst, src, stream));
  } catch (std::exception const &error) {
    return std::fprintf(stderr, "umem_bare_copies: %s\n", error.what()), 1;
  }
  return 0;
}
