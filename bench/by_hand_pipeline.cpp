#include "by_hand_pipeline.h"

#include "by_hand.h"
#include "by_hand_cuda.h"
#include "by_hand_threads.h"

namespace by_hand {

struct Pipeline::Thread {
  explicit Thread(std::size_t piece) {
    for (int i = 0; i < 2; i++) {
      check_cuda(cudaMallocHost(&pieces[i], piece), "cudaMallocHost");
      check_cuda(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming), "cudaEventCreate");
    }
  }
  Thread(Thread const &) = delete;
  Thread &operator=(Thread const &) = delete;
  ~Thread() {
    for (int i = 0; i < 2; i++) {
      cudaFreeHost(pieces[i]);
      cudaEventDestroy(events[i]);
    }
  }

  void move(bool to_device, std::uintptr_t far, std::size_t n) {
    void *device = reinterpret_cast<void *>(far);
    check_cuda(to_device ? cudaMemcpyAsync(device, pieces[next], n, cudaMemcpyHostToDevice, stream)
                         : cudaMemcpyAsync(pieces[next], device, n, cudaMemcpyDeviceToHost, stream),
               "cudaMemcpyAsync");
    check_cuda(cudaEventRecord(events[next], stream), "cudaEventRecord");
  }
  void wait(int piece) { check_cuda(cudaEventSynchronize(events[piece]), "cudaEventSynchronize"); }

  CudaStream stream;
  void *pieces[2] = {};
  cudaEvent_t events[2] = {};
  int next = 0;
  std::size_t come_at = 0, come = 0; /* bytes that are on their way from the device */
};

Pipeline::Pipeline(unsigned threads, std::size_t piece) : piece_(piece) {
  for (unsigned i = 0; i < threads; i++) threads_.push_back(std::make_unique<Thread>(piece));
}

Pipeline::~Pipeline() = default;

void Pipeline::load(int fd, std::uintptr_t far, std::size_t size) {
  auto count = static_cast<unsigned>(threads_.size());
  in_threads(count, size, piece_, [&](unsigned i, std::size_t at, std::size_t n) {
    Thread &thread = *threads_[i];
    thread.wait(thread.next);
    read(fd, thread.pieces[thread.next], n, static_cast<off_t>(at));
    thread.move(true, far + at, n);
    thread.next = 1 - thread.next;
  });
  for (auto &thread : threads_) check_cuda(cudaStreamSynchronize(thread->stream), "synchronize");
}

void Pipeline::store(int fd, std::uintptr_t far, std::size_t size) {
  auto count = static_cast<unsigned>(threads_.size());
  auto drain = [fd](Thread &thread) { /* the piece before */
                                      int before = 1 - thread.next;
                                      if (!thread.come) return;
                                      thread.wait(before);
                                      write(fd, thread.pieces[before], thread.come,
                                            static_cast<off_t>(thread.come_at));
                                      thread.come = 0;
  };
  in_threads(count, size, piece_, [&](unsigned i, std::size_t at, std::size_t n) {
    Thread &thread = *threads_[i];
    thread.move(false, far + at, n);
    drain(thread);
    thread.come_at = at, thread.come = n;
    thread.next = 1 - thread.next;
  });
  in_threads(count, count, 1, [&](unsigned, std::size_t i, std::size_t) { drain(*threads_[i]); });
}

} // namespace by_hand
