#include "allocator.h"

#include <cstddef>
#include <cstring>
#include <dlfcn.h>

/* Not of the stable ABI, but in every Python. */
bool has_gil() noexcept {
  static auto const check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return Py_IsInitialized() && check && check();
}

/* Whether the place finds its blocks itself, with their sizes. */
static bool finds_blocks(Context const *context) {
  auto ctx = static_cast<umemVirtual *>(context->ctx);
  return ctx->vtbl_size > offsetof(struct umemVtbl, find) && ctx->vptr->find;
}

Allocator::Allocator(Context *context, umemInfo const &info, bool resizes)
    : context_(context->use()), device_(info.ordinal), stream_(info.stream),
      keeps_sizes_(resizes && !finds_blocks(context)) {}

Allocator::~Allocator() {
  Unlock unlock(!context_->quick && has_gil());
  queues_ = nullptr;
  context_->drop();
}

/* ---- failures ---- */

void Allocator::record(umemStatusType status, char const *message) {
  std::lock_guard<std::mutex> lock(mutex_);
  status_ = status;
  snprintf(message_, sizeof message_, "%s", message);
}

struct Allocator::Mark {
  uint64_t failures = umem_thread_failures();
  bool exception = has_exception(); /* of a call of umem that this one is part of */
};

/* The failures of this thread since then. */
void Allocator::record_since(Mark const &begin) {
  if (umem_thread_failures() == begin.failures) return;
  record(umem_thread_status(), umem_thread_message());
  umem_thread_clear();
}

umemStatusType Allocator::status() {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

std::string Allocator::message() {
  std::lock_guard<std::mutex> lock(mutex_);
  return message_;
}

/* A callback's exception that cannot reach the program goes to sys.unraisablehook. */
static void report_exception() {
  if (!Py_IsInitialized()) return;
  Gil gil;
  report_failure("an allocation of umem for another library");
}

/* What an allocation returns. Counts the block; records the failures since begin. */
void *Allocator::finish(uintptr_t adr, size_t nbytes, Mark const &begin) {
  bool failed = adr == umem_null(context_->ctx);
  if (!failed && keeps_sizes_ && !keep_size(adr, nbytes)) return nullptr;
  record_since(begin);
  if (!raises && !begin.exception && has_exception()) report_exception();
  if (failed) return nullptr;
  if (generation_ != umem_generation()) keep_generation(adr);
  use();
  blocks_.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<void *>(adr);
}

/* Without memory for the entry the block counts as one of the process that has made the allocator,
 * and stays. */
void Allocator::keep_generation(uintptr_t adr) {
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    of_children_[adr] = umem_generation();
  } catch (std::bad_alloc const &) {
  }
}

/* Of the process that has allocated the block, which ends. */
unsigned Allocator::take_generation(uintptr_t adr) {
  if (generation_ == umem_generation()) return generation_;
  std::lock_guard<std::mutex> lock(mutex_);
  auto entry = of_children_.extract(adr);
  return entry ? entry.mapped() : generation_;
}

bool Allocator::keep_size(uintptr_t adr, size_t nbytes) {
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    size_t entries = sizes_.size() + resized_ + 1;
    if (entries > sizes_.bucket_count()) sizes_.reserve(2 * entries);
    sizes_[adr] = nbytes;
    return true;
  } catch (std::bad_alloc const &) {
    umem_free(context_->ctx, adr);
    record(umemMemoryError, "out of memory for the table of blocks");
    return false;
  }
}

/* ---- streams ---- */

bool Allocator::is_own(uintptr_t stream) const {
  /* CUDA has two numbers for the legacy default stream. */
  auto plain = [](uint64_t number) { return number == 1 ? 0 : number; };
  return stream == no_stream || (stream_ != UMEM_UNKNOWN && plain(stream) == plain(stream_));
}

/* Lets work on the stream wait for work on the place that still uses the block. False if that
 * fails. */
bool Allocator::let_stream_wait(uintptr_t stream) {
  if (is_own(stream) || stream_ == UMEM_UNKNOWN) return true;
  uint64_t before = umem_thread_failures();
  for (auto layer = static_cast<umemVirtual *>(context_->ctx); layer;
       layer = static_cast<umemVirtual *>(umem_get_upstream(layer))) {
    if (layer->vtbl_size <= offsetof(struct umemVtbl, stream_wait) || !layer->vptr->stream_wait)
      continue;
    layer->vptr->stream_wait(layer, stream ? stream : 1);
    return umem_thread_failures() == before;
  }
  return umem_synchronize(context_->ctx) == umemOK;
}

/* Work on the stream may use a block that the place is about to reuse. The legacy default stream
 * waits for the default stream of each thread, which is 2. */
void Allocator::wait_for_stream(uintptr_t stream) {
  if (is_own(stream) || !context_->can(umemDeviceAccessible)) return;
  umemCudaAsync queue = {};
  if (umemCudaAsync_ctor(&queue, device_ < 0 ? 0 : static_cast<int>(device_),
                         stream == 2 ? 0 : stream) != umemOK)
    return;
  umem_synchronize(&queue);
  umem_dtor(&queue);
}

/* The context whose blocks are in the order of the stream: a view of the pool, or the place. */
void *Allocator::owner(uintptr_t stream) {
  void *view = queues_ && stream != no_stream ? queues_->view(stream) : nullptr;
  return view ? view : context_->ctx;
}

void Allocator::record_stream(void *adr, uintptr_t stream) {
  if (!adr) return;
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    users_.emplace(reinterpret_cast<uintptr_t>(adr), stream);
    has_users_.store(true, std::memory_order_relaxed);
  } catch (std::bad_alloc const &) {
    wait_for_stream(stream); /* of later work nothing is known */
    record(umemMemoryError, "out of memory for the streams of a block");
  }
}

/* A free that is queued on the stream comes after the work of the block's other streams; else the
 * caller waits. */
void Allocator::wait_for_users(uintptr_t adr, uintptr_t stream, bool queued) {
  while (has_users_.load(std::memory_order_relaxed)) {
    decltype(users_)::node_type entry;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto first = users_.lower_bound({adr, 0});
      if (first != users_.end() && first->first == adr) entry = users_.extract(first);
      has_users_.store(!users_.empty(), std::memory_order_relaxed);
    }
    if (!entry) return;
    uintptr_t other = entry.value().second;
    if (!queued || !queues_->wait(stream, other)) wait_for_stream(other);
  }
}

/* ---- blocks ---- */

void *Allocator::allocate(size_t nbytes, int device, uintptr_t stream) {
  if (device >= 0 && device_ >= 0 && device != device_) {
    char message[128];
    snprintf(message, sizeof message, "the place is on GPU %d, but memory of GPU %d is wanted",
             static_cast<int>(device_), device);
    record(umemValueError, message);
    return nullptr;
  }
  Unlock unlock(!context_->quick && has_gil());
  Mark begin;
  void *from = owner(stream);
  uintptr_t adr = umem_alloc(from, nbytes);
  if (adr != umem_null(from) && from == context_->ctx && !let_stream_wait(stream)) {
    umem_free(context_->ctx, adr);
    adr = umem_null(context_->ctx);
  }
  return finish(adr, nbytes, begin);
}

/* A pool writes zeros to many bytes without the GIL. */
void *Allocator::allocate_zeros(size_t count, size_t nbytes) {
  Unlock unlock(!is_short(context_, count * nbytes) && has_gil());
  Mark begin;
  uintptr_t adr = umem_calloc(context_->ctx, count, nbytes);
  return finish(adr, count * nbytes, begin);
}

/* The bytes of the block at adr that a resize must keep; 0 if no block begins there. */
static size_t size_at(void *ctx, uintptr_t adr) {
  umemFound found = UMEM_FOUND_INIT;
  return umem_find_in(ctx, adr, &found) && found.adr == adr ? found.nbytes : 0;
}

/* Once the place has freed the old block, another thread may get its address: so its entry leaves
 * the table before. */
void *Allocator::resize(void *adr, size_t nbytes) {
  if (!adr) return allocate(nbytes, -1, no_stream);
  Unlock unlock(!context_->quick && has_gil());
  Mark begin;
  auto old = reinterpret_cast<uintptr_t>(adr);
  decltype(sizes_)::node_type entry;
  decltype(of_children_)::node_type generation;
  size_t size = keeps_sizes_ ? 0 : size_at(context_->ctx, old);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    entry = sizes_.extract(old);
    if (entry) size = entry.mapped(), resized_++;
    generation = of_children_.extract(old);
  }
  if (!size && !entry) {
    record(umemValueError, "no live block begins at the address that is to be resized");
    return nullptr;
  }
  uintptr_t moved = umem_realloc(context_->ctx, old, size, nbytes);
  bool failed = moved == umem_null(context_->ctx);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (entry) resized_--;
    if (entry && !failed) entry.key() = moved, entry.mapped() = nbytes;
    sizes_.insert(std::move(entry));
    if (generation && !failed) generation.key() = moved;
    try {
      of_children_.insert(std::move(generation));
    } catch (std::bad_alloc const &) { /* as in keep_generation */
    }
  }
  return failed ? finish(moved, nbytes, begin) : reinterpret_cast<void *>(moved);
}

void Allocator::free(void *adr, uintptr_t stream) {
  if (!adr) return;
  {
    Unlock unlock(!context_->quick && has_gil());
    Mark begin;
    if (keeps_sizes_) {
      std::lock_guard<std::mutex> lock(mutex_);
      sizes_.erase(reinterpret_cast<uintptr_t>(adr));
    }
    void *to = owner(stream);
    bool queued = to != context_->ctx;
    wait_for_users(reinterpret_cast<uintptr_t>(adr), stream, queued);
    if (!queued) wait_for_stream(stream);
    umem_end_block(to, reinterpret_cast<uintptr_t>(adr), false, false,
                   take_generation(reinterpret_cast<uintptr_t>(adr)));
    record_since(begin);
    if (!begin.exception && has_exception()) report_exception();
  }
  blocks_.fetch_sub(1, std::memory_order_relaxed);
  drop();
}
