/* allocator.h - memory of a place for the allocators of other libraries. */
#ifndef UMEM_PYTHON_ALLOCATOR_H
#define UMEM_PYTHON_ALLOCATOR_H

#include "place.h"
#include "queues.h"

#include <mutex>
#include <set>
#include <unordered_map>

/* Allocates blocks of a context for one user in another library. The user and each live block count
 * as owners: the last of them ends the allocator, and gives up the context. Any thread may call it,
 * with and without the GIL; a call releases the GIL if it may block. No call raises or throws: see
 * status() and message(). */
class Allocator {
  std::atomic<long> owners_{1};
  std::atomic<long> blocks_{0};
  Context *context_; /* a user of it */
  int64_t device_;   /* of the memory; -1: any */
  uint64_t stream_;  /* UMEM_UNKNOWN: none */
  bool keeps_sizes_; /* the place does not know them */
  unsigned generation_ = umem_generation();
  std::unique_ptr<Queues> queues_; /* NULL: blocks are in the order of the place */
  std::mutex mutex_;               /* for what follows */
  std::unordered_map<uintptr_t, size_t>
      sizes_;          /* of live blocks, but those that are being resized */
  size_t resized_ = 0; /* how many these are: the table has room for them */
  std::set<std::pair<uintptr_t, uintptr_t>>
      users_; /* live blocks, and streams they were recorded for */
  std::unordered_map<uintptr_t, unsigned>
      of_children_; /* live blocks that a child of fork has allocated, and its generation */
  std::atomic<bool> has_users_{false}; /* readable without the mutex */
  umemStatusType status_ = umemOK;     /* of the last failure */
  char message_[UMEM_MESSAGE_SIZE] = "";

  struct Mark; /* where a call began */
  ~Allocator();
  bool is_own(uintptr_t stream) const;
  bool let_stream_wait(uintptr_t stream);
  void wait_for_stream(uintptr_t stream);
  void *owner(uintptr_t stream);
  void wait_for_users(uintptr_t adr, uintptr_t stream, bool queued);
  bool keep_size(uintptr_t adr, size_t nbytes);
  void keep_generation(uintptr_t adr);
  unsigned take_generation(uintptr_t adr);
  void *finish(uintptr_t adr, size_t nbytes, Mark const &begin);
  void record(umemStatusType status, char const *message);
  void record_since(Mark const &begin);

public:
  enum : uintptr_t { no_stream = UINTPTR_MAX };
  bool raises = false; /* whether the caller raises failures: those of callbacks wait for it */

  /* resizes: resize() is called. info: of the context. */
  Allocator(Context *context, umemInfo const &info, bool resizes);
  void use() { owners_.fetch_add(1, std::memory_order_relaxed); }
  void drop() {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  /* Live blocks. */
  long blocks() const { return blocks_.load(std::memory_order_relaxed); }
  /* The last failure; umemOK and "" if there was none. */
  umemStatusType status();
  std::string message();

  /* NULL, and a message, if that fails. device: where the library wants the memory; -1 for any. The
   * block is ready for work on the stream. */
  void *allocate(size_t nbytes, int device, uintptr_t stream);
  void *allocate_zeros(size_t count, size_t nbytes);
  /* Keeps the bytes of the block. After a failure it is as it was. */
  void *resize(void *adr, size_t nbytes);
  /* Ignores NULL. Work on the stream, and on streams for which the block was recorded, may still
   * use it. */
  void free(void *adr, uintptr_t stream);
  /* Work on this stream will use the live block, too. Ignores NULL. */
  void record_stream(void *adr, uintptr_t stream);
  /* If the place is a pool, blocks are in the order of the streams that the calls name, without
   * waits. These streams must then live as long as the allocator. Before the first block. */
  void follow_streams() { queues_ = Queues::of(context_->ctx, device_); }
};

/* Whether this thread may call Python now. */
bool has_gil() noexcept;

#endif
