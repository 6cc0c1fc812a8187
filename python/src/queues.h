/* queues.h - memory of a pool in the order of each stream that a library works on. */
#ifndef UMEM_PYTHON_QUEUES_H
#define UMEM_PYTHON_QUEUES_H

#include <umem/cuda.h>
#include <umem/pool.h>
#include <umem/pool_on.h>

#include <memory>
#include <mutex>
#include <vector>

/* A view of a pool for each stream of a GPU that was named. A block that a view frees serves later
 * work of its stream without a wait; another view that takes the memory waits on the GPU. A stream
 * must live as long as the object. Any thread may call the methods. Failures are recorded for the
 * thread. */
class Queues {
  struct Queue;
  umemPool *pool_; /* borrowed */
  int device_;
  std::mutex mutex_; /* for the list */
  std::vector<std::unique_ptr<Queue>> list_;

  Queue *find(uintptr_t stream);

public:
  Queues(umemPool *pool, int device);
  ~Queues();

  /* Streams of ctx on this GPU; NULL, and no failure, if it is no pool of memory that streams of
   * this GPU use. */
  static std::unique_ptr<Queues> of(void *ctx, int64_t device);

  /* The view for the stream; NULL if it cannot be made. */
  void *view(uintptr_t stream);
  /* Later work of the stream waits for the work that other has now. False if that fails. */
  bool wait(uintptr_t stream, uintptr_t other);
};

#endif
