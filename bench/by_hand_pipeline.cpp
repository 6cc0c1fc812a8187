#include "by_hand_pipeline.h"

#include "by_hand.h"
#include "by_hand_cuda.h"
#include "by_hand_threads.h"

#include <algorithm>
#include <atomic>
#include <thread>

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

/* A file of load_all: how much of it is there. */
struct Pipeline::Arrivals {
  std::vector<std::atomic<std::size_t>> bytes;
  struct Moving {
    std::size_t file = 0, n = 0;
  };

  void settle(Thread &thread, Moving (&moving)[2], int chunk) {
    thread.wait(chunk);
    bytes[moving[chunk].file] += moving[chunk].n;
    moving[chunk] = {};
  }
};

void Pipeline::load_all(std::vector<int> const &fds, std::size_t size,
                        std::vector<std::uintptr_t> const &targets) {
  std::size_t const count = threads_.size(), all = fds.size() * size,
                    piece = std::min(piece_, size);
  Arrivals arrived{std::vector<std::atomic<std::size_t>>(fds.size())};
  std::atomic<std::size_t> next{0};
  in_threads(static_cast<unsigned>(count), count, 1, [&](unsigned, std::size_t i, std::size_t) {
    Thread &thread = *threads_[i];
    Arrivals::Moving moving[2];
    for (std::size_t at; (at = next.fetch_add(piece)) < all; thread.next = 1 - thread.next) {
      std::size_t file = at / size, offset = at % size, before = file - targets.size();
      if (file >= targets.size() && arrived.bytes[before] < size) {
        arrived.settle(thread, moving, thread.next);
        arrived.settle(thread, moving, 1 - thread.next);
        while (arrived.bytes[before] < size) std::this_thread::yield();
      }
      arrived.settle(thread, moving, thread.next);
      read(fds[file], thread.pieces[thread.next], piece, static_cast<off_t>(offset));
      thread.move(true, targets[file % targets.size()] + offset, piece);
      moving[thread.next] = {file, piece};
    }
    arrived.settle(thread, moving, thread.next);
    arrived.settle(thread, moving, 1 - thread.next);
  });
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
