#include "queues.h"

#include <umem/context.h>

#include <new>

struct Queues::Queue {
  uintptr_t stream;
  umemCudaAsync ordered{};
  umemPoolOn view{};

  explicit Queue(uintptr_t of) : stream(of) {}
  Queue(Queue const &) = delete;
  Queue &operator=(Queue const &) = delete;
  /* For what was not constructed, umem_dtor does nothing. */
  ~Queue() {
    umem_dtor(&view);
    umem_dtor(&ordered);
  }

  bool start(umemPool *pool, int device) {
    return umemCudaAsync_ctor(&ordered, device, stream) == umemOK &&
           umemPoolOn_ctor(&view, pool, &ordered) == umemOK;
  }
};

Queues::Queues(umemPool *pool, int device) : pool_(pool), device_(device) {}

Queues::~Queues() = default;

std::unique_ptr<Queues> Queues::of(void *ctx, int64_t device) {
  if (device < 0) return nullptr;
  uint64_t before = umem_thread_failures();
  bool is_pool = umem_find_layer(ctx, "pool") == ctx;
  std::unique_ptr<Queues> queues;
  if (is_pool)
    queues = std::make_unique<Queues>(static_cast<umemPool *>(ctx), static_cast<int>(device));
  if (queues && !queues->view(0)) queues = nullptr;
  if (umem_thread_failures() != before) umem_thread_clear();
  return queues;
}

/* The legacy default stream has two numbers. It waits for the default streams of threads, which is
 * 2 for each of them, and they wait for it. */
static uintptr_t plain(uintptr_t stream) { return stream == 1 || stream == 2 ? 0 : stream; }

Queues::Queue *Queues::find(uintptr_t stream) {
  stream = plain(stream);
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto &queue : list_)
    if (queue->stream == stream) return queue.get();
  try {
    auto queue = std::make_unique<Queue>(stream);
    if (!queue->start(pool_, device_)) return nullptr;
    list_.push_back(std::move(queue));
    return list_.back().get();
  } catch (std::bad_alloc const &) {
    return nullptr;
  }
}

void *Queues::view(uintptr_t stream) {
  Queue *queue = find(stream);
  return queue ? &queue->view : nullptr;
}

bool Queues::wait(uintptr_t stream, uintptr_t other) {
  Queue *queue = find(stream), *before = find(other);
  return queue && before && umem_wait(&queue->view, &before->ordered) == umemOK;
}
