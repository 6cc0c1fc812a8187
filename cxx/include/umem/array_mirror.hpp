/* umem/array_mirror.hpp - the bytes of an array on one context, their mirror for the CPU, and
 * the rules for using the two. Programs include array.hpp. */
#ifndef UMEM_ARRAY_MIRROR_HPP
#define UMEM_ARRAY_MIRROR_HPP

#include <umem/buffer.hpp>
#include <umem/detail/checks.hpp>
#include <umem/detail/trace.hpp>

#include <algorithm>
#include <mutex>

namespace umem {
namespace detail {

/* Work that ordered contexts have queued and that still uses some memory. */

/* The contexts whose queued work must be complete before the memory gets another use. */
class PendingWork {
public:
  /* Adds what context has queued so far: nothing if it is not ordered. */
  void add(Context const &context) noexcept;

  /* Returns when all of this work is complete. */
  void synchronize();

  /* Makes later work of context start after this work. */
  void order_before(Context const &context);

  /* For destructors: failures are recorded on the contexts. */
  void synchronize_quietly() noexcept;
  void order_before_quietly(Context const &context) noexcept;

private:
  std::vector<Context> contexts_; /* each once */
};

} // namespace detail
/* The sides of an array: host is for the CPU, device is the context of its memory. */
enum class Side { host, device, both };

namespace detail {

enum class Access { read, write, discard };

/* The options of a Mirror; see ArrayOptions. */
struct MirrorOptions {
  Context host;               /* empty: Host */
  std::size_t type_alignment; /* of an element */
  std::size_t alignment;      /* asked for, or 0 */
  bool zeroed = false;
};

/* Called once when foreign memory is no longer used. Compiles faster than std::function, and
 * need not be copied. */
struct Deleter {
  virtual ~Deleter() = default;
  virtual void invoke() = 0;
};
using AnyDeleter = std::unique_ptr<Deleter>; /* null: there is nothing to call */

/* Whether Function has an operator bool of its own that reports an empty function, as std::function
 * has. A lambda without captures also converts to bool: its function pointer is never null. */
template <class Function, class = void> inline constexpr bool can_be_empty = false;
template <class Function>
inline constexpr bool can_be_empty<
    Function, std::void_t<decltype(std::declval<Function const &>().operator bool())>> = true;

/* Whether f is an empty std::function or a null pointer. */
template <class Function> bool is_empty_function(Function const &functor) {
  if constexpr (std::is_pointer_v<Function>)
    return functor == nullptr;
  else if constexpr (can_be_empty<Function>)
    return !functor;
  else
    return false;
}

template <class Function> AnyDeleter make_deleter(Function functor) {
  if (is_empty_function(functor)) return nullptr;
  struct Call final : Deleter {
    Function functor;
    explicit Call(Function &&f_) : functor(std::move(f_)) {}
    void invoke() override { functor(); }
  };
  return std::make_unique<Call>(std::move(functor));
}

/* Where a copy is if the program names no context. */
inline Context const &context_of_copies(Context const &original) {
  return original.can(umemShared) ? pointers() : original;
}

/* The location of the current bytes, or of new ones. */
struct Location {
  Context const *context; /* borrowed from the mirror */
  address adr;            /* of the first byte */
  Side side;
};

/* An array shares it with its guards, locks and parts.
 *
 * Threads: const functions of arrays may run in many threads, and change what is below. They do so
 * under mutex_, which a thread may lock again, because a hook of the program may use the array.
 * ready_host_ spares the lock to those that read what needs no work before. Other functions have
 * the array for themselves.
 *
 * Invariants: current_ is both if the sides
 * share memory or there are no bytes; otherwise the host is current only while there is a
 * host_block_. A guard that writes to a side makes it the only current one at once, so that no
 * function has to look at guards and current_. */
class Mirror {
public:
  /* A new block. */
  Mirror(Context device, std::size_t nbytes, MirrorOptions const &options);

  /* An existing block. */
  Mirror(Context device, address adr, std::size_t nbytes, MirrorOptions const &options,
         AnyDeleter deleter);

  Mirror(Mirror const &) = delete;
  Mirror &operator=(Mirror const &) = delete;

  /* Records failures on the contexts, and reports them to the hook of umem_set_failure_hook.
   * Without a hook, prints a line if the host side could not be written back. A child of fork does
   * not write back what its parent has made. */
  ~Mirror();

  /* ---- questions ---- */

  Context const &device() const noexcept { return device_; }
  Context const &host() const noexcept { return is_shared_ ? device_ : host_; }
  Context const &mirror_context() const noexcept { return host_; }
  address adr() const noexcept { return adr_; }
  std::size_t nbytes() const noexcept { return nbytes_; }
  std::size_t alignment() const noexcept { return alignment_; }
  bool is_foreign() const noexcept { return is_foreign_; }
  Side current() const noexcept {
    Locked const locked(mutex_);
    return current_;
  }

  /* ---- locks: no lock has key 0 ---- */

  /* The key of a new lock. */
  std::uint64_t lock(std::uint64_t key);

  /* Throws while a lock with another key, or any guard, lives. */
  void check_free(std::uint64_t key) const;

  /* Called by the owner of the key. */
  void unlock() noexcept {
    Locked const locked(mutex_);
    lock_ = 0;
  }

  /* ---- guards ---- */

  /* Counts a new guard, and returns its first byte: a pointer; 0 for no bytes. */
  address acquire(Side side, Access access, std::uint64_t key) {
    if (side == Side::host && access == Access::read)
      if (address const first = ready_host_.load(std::memory_order_acquire)) {
        hosts_.readers.fetch_add(1, std::memory_order_relaxed);
        return first;
      }
    return acquire_slowly(side, access, key);
  }

  void release(Side side, Access access) noexcept {
    count(side).of(access != Access::read) -= 1;
    if (has_after_release_.load(std::memory_order_acquire)) after_release(side);
  }

  /* That live. */
  int guards() const noexcept { return hosts_.all() + devices_.all(); }

  /* ---- for checks of accesses; see detail/checks.hpp ---- */

  /* After acquire, in code with checks: checks in this file and others know the memory and the
   * guards from now on. Foreign memory is left out: its owner may use it without guards. */
  void watch(index_t const *extents, int rank) noexcept;
  void end_watch() noexcept;

  /* adr(), for the program to use without a guard. */
  address lend() noexcept {
    Locked const locked(mutex_);
    is_lent_ = true;
    end_watch();
    return adr_;
  }

  /* After a failed call that was to overwrite side: if the other side was current before, it is
   * now the only current one, because side may have been written in part. */
  void undo_overwrite(Side side) noexcept;

  /* ---- transfers ---- */

  /* Makes side current too. The transfer is queued on queue. */
  void start_sync(Side side, std::uint64_t key, Context const &queue);

  /* Transfers, complete on return. */
  void sync(Side side, std::uint64_t key);

  /* Waits for all work with the elements, and throws its failures. */
  void complete(std::uint64_t key);

  /* Frees the mirror. No other thread may use the array. */
  void release_host(std::uint64_t key);

  /* Copies nbytes at an offset out of whichever side is current. */
  void get(std::uint64_t key, std::size_t offset, void *value, std::size_t nbytes);

  /* Copies nbytes at an offset to all current sides, so that they stay current. */
  void set(std::uint64_t key, std::size_t offset, void const *value, std::size_t nbytes);

  /* For a new block: makes the host the current side if it is the only current one of other. */
  void start_like(Mirror const &other);

  /* The elements have moved to other memory, or nobody needs them: the destructor does not write
   * them back, and frees their block also in a named file. */
  void leave() noexcept { is_left_ = true; }

  /* For a new block: makes every item on the current side equal to value. */
  void fill(void const *value, std::size_t item_size);

  /* ---- copies; see part.hpp ---- */

  /* The source of a copy. */
  Location source(std::uint64_t key);

  /* Throws if acquire(side, Access::read, key) would because of a lock or a guard. */
  void check_readable(Side side, std::uint64_t key) {
    Locked const locked(mutex_);
    check_lock(key);
    check_guards(side, false);
  }

  /* Throws if destination() would. */
  void check_destination(std::uint64_t key) const;

  /* The destination of a copy; its side becomes the only current one. all: the copy writes every
   * byte. Call undo_overwrite if the copy fails. */
  Location destination(std::uint64_t key, bool all);

  /* Copies all bytes of src, which must have as many. */
  void copy_from(Mirror &src, std::uint64_t src_key, std::uint64_t key);

  /* Later use of side waits for a copy between it and context, which may still be queued. If a
   * guard of the CPU writes already, there is no later use that could wait: then the copy is
   * complete on return, which throws its failures. */
  void wait_for(Side side, Context const &context);

private:
  using Locked = std::lock_guard<std::recursive_mutex>;

  Mirror(Context device, std::size_t nbytes, MirrorOptions const &options, int /* members only */);

  /* The alignment to request from a context: 0 if all its blocks have it. */
  std::size_t beyond_natural(Context const &context) const noexcept;

  address host_adr() const noexcept { return is_shared_ ? adr_ : host_block_.adr(); }
  static Side other_of(Side side) noexcept;
  GuardCounts &count(Side side) noexcept { return side == Side::host ? hosts_ : devices_; }
  bool is_guarded() const noexcept;

  address acquire_slowly(Side side, Access access, std::uint64_t key);

  /* The host side is settled: lets threads read it without the lock, if nothing may forbid or delay
   * that. */
  void set_ready() noexcept;

  /* Something changes: readers ask under the lock. */
  void end_ready() noexcept { ready_host_.store(0, std::memory_order_relaxed); }

  /* ---- memory of a umemGuarded: the pages of a side are open while a guard of it lives ---- */

  /* The context of the mirror where the program names none. */
  static Context default_host(Context const &device);

  /* Closes a new block. False if it has no pages of its own, for example in a pool. */
  static bool close_new(Context const &context, address adr, std::size_t nbytes);

  bool closes(Side side) const noexcept {
    return side == Side::host ? closes_host_ : closes_device_;
  }

  /* Opens the pages for one more guard. */
  void open(Side side, bool writes);

  void after_release(Side side) noexcept;

  /* The number of a side in Watched. */
  int watched_side(Side side) const noexcept { return is_shared_ || side == Side::host ? 0 : 1; }

  void make_current(Side side) noexcept;

  /* Marks a side as written by a write that may still fail: undo_overwrite reverts it. */
  void overwrite(Side side) noexcept;

  /* ---- locks and guards that forbid an access ---- */

  void check_lock(std::uint64_t key) const;

  void check_guards(Side side, bool writes);

  void check_unguarded() const;

  void check_writable() const;

  /* ---- moving bytes ---- */

  /* Makes side current too if its contents are to be kept. The transfer may still be queued on
   * queue, which is device_ or another context of the same memory. */
  void bring(Side side, bool keep, Context const &queue);

  /* Waits for the last transfer. If it has failed, only the side that it came from is current. */
  void finish_transfer();

  /* Makes side ready for work: the CPU may start at once when this returns, work queued on
   * device_ will start when it may. */
  void settle(Side side);

  /* The memory of a side; both means the device. */
  Location locate(Side side);

  Context device_;
  Context host_; /* of the mirror; CPU-accessible */
  std::size_t nbytes_;
  std::size_t alignment_;  /* of the elements, or more */
  bool is_shared_ = false; /* the CPU works on device_'s memory: there is no mirror */
  bool is_foreign_ = false;
  bool is_left_ = false; /* the elements are elsewhere now */
  bool closes_host_ = false, closes_device_ = false;
  bool is_lent_ = false;
  address adr_ = 0;
  Buffer block_;      /* empty if foreign or without bytes */
  Buffer host_block_; /* the mirror; empty until its first use */
  AnyDeleter deleter_;
  unsigned generation_ = umem_generation();
  Side current_ = Side::both;
  Side transferred_ = Side::both; /* source of a transfer that may still be queued and after which
                                     nothing was written; both: there is none */
  struct {
    Side current, transferred;
  } before_ = {Side::both, Side::both}; /* before the last overwrite of a side */
  GuardCounts hosts_, devices_;
  std::uint64_t lock_ = 0; /* the key of its lock, 0 for none */
  std::uint64_t last_key_ = 0;
  PendingWork pending_host_, pending_device_;
  std::unique_ptr<Watched> watched_; /* null: it is not watched */
  mutable std::recursive_mutex mutex_;
  std::atomic<address> ready_host_{0}; /* of the host side, if reading it needs no work; else 0 */
  std::atomic<bool> has_after_release_{false}; /* closes_host_, closes_device_ or watched_ */
};

} // namespace detail
} // namespace umem

#endif

#if !defined(UMEM_ARRAY_MIRROR_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_ARRAY_MIRROR_FUNCTIONS

namespace umem::detail {

/* ---- work that is queued ---- */

UMEM_INLINE void PendingWork::add(Context const &context) noexcept {
  if (!context.can(umemOrdered)) return;
  if (std::find(contexts_.begin(), contexts_.end(), context) != contexts_.end()) return;
  try {
    contexts_.push_back(context);
  } catch (std::exception const &) { /* without memory it waits at once */
    umem_synchronize(context.c_context());
  }
}

UMEM_INLINE void PendingWork::synchronize() {
  for (Context const &context : contexts_) context.synchronize();
  contexts_.clear();
}

UMEM_INLINE void PendingWork::order_before(Context const &context) {
  for (Context const &other : contexts_)
    if (other != context) context.wait(other);
  contexts_.clear();
}

UMEM_INLINE void PendingWork::synchronize_quietly() noexcept {
  for (Context const &context : contexts_) umem_synchronize(context.c_context());
  contexts_.clear();
}

UMEM_INLINE void PendingWork::order_before_quietly(Context const &context) noexcept {
  for (Context const &other : contexts_)
    if (other != context) umem_wait(context.c_context(), other.c_context());
  contexts_.clear();
}

/* ---- the bytes of an array ---- */

UMEM_INLINE Mirror::Mirror(Context device, std::size_t nbytes, MirrorOptions const &options)
    : Mirror(std::move(device), nbytes, options, 0) {
  if (nbytes == 0) return;
  std::size_t alignment = beyond_natural(device_);
  block_ = options.zeroed ? Buffer::zeroed(device_, nbytes, alignment)
                          : Buffer(device_, nbytes, alignment);
  adr_ = block_.adr();
  closes_device_ = close_new(device_, adr_, nbytes_);
  has_after_release_ = closes_device_;
}

UMEM_INLINE Mirror::Mirror(Context device, address adr, std::size_t nbytes,
                           MirrorOptions const &options, AnyDeleter deleter)
    : Mirror(std::move(device), nbytes, options, 0) {
  if (nbytes && adr == device_.null())
    raise_text(umemValueError, "an array around the null address of %s", device_.name());
  if (nbytes && !device_.can(umemOffsets) && adr % alignment_ != 0)
    raise_text(umemValueError,
               "the address of the elements is no multiple of their alignment of %zu", alignment_);
  adr_ = adr;
  is_foreign_ = true;
  deleter_ = std::move(deleter); /* last: the caller owns the block if this throws before */
}

UMEM_INLINE Mirror::~Mirror() {
  end_watch();
  bool outlived = is_foreign_ || device_.can(umemOffsets) || device_.can(umemShared);
  bool is_parents = device_.can(umemShared) && generation_ != umem_generation();
  bool writes_back = outlived && !is_left_ && !is_parents && current_ == Side::host;
  std::uint64_t const before = umem_thread_failures();
  if (writes_back) {
    pending_host_.synchronize_quietly(); /* what still writes to the host side */
    pending_device_.order_before_quietly(device_);
    umem_copy_to(host_.c_context(), host_block_.adr(), device_.c_context(), adr_, nbytes_);
    pending_host_.add(device_);
    pending_host_.add(host_);
  }
  pending_host_.synchronize_quietly();
  if (writes_back && umem_thread_failures() != before)
    umem_report_end("umem::Array lost newer elements of its host side");
  pending_device_.order_before_quietly(device_);
  if (is_foreign_ && device_.can(umemOrdered)) umem_synchronize(device_.c_context());
  if (deleter_) deleter_->invoke();
  host_block_.deallocate();
  if (is_left_) block_.deallocate();
}

UMEM_INLINE std::uint64_t Mirror::lock(std::uint64_t key) {
  Locked const locked(mutex_);
  check_lock(key);
  if (lock_) throw locked_error("the array is locked already");
  if (is_guarded()) throw locked_error("a guard of the array is alive: it cannot be locked");
  end_ready();
  return lock_ = ++last_key_;
}

UMEM_INLINE void Mirror::check_free(std::uint64_t key) const {
  check_lock(key);
  check_unguarded();
}

UMEM_INLINE address Mirror::acquire_slowly(Side side, Access access, std::uint64_t key) {
  bool writes = access != Access::read;
  std::unique_lock<std::recursive_mutex> locked(mutex_, std::defer_lock);
  if (!writes) locked.lock();
  check_lock(key);
  check_guards(side, writes);
  if (side == Side::device && device_.can(umemOffsets))
    raise_text(umemNotSupportedError, "addresses of %s are no pointers: use host() or part()",
               device_.name());
  if (writes) check_writable();
  if (writes) end_ready();
  bring(side, access != Access::discard, device_);
  settle(side);
  if (closes(side)) open(side, writes);
  count(side).of(writes) += 1;
  if (writes)
    overwrite(side);
  else if (side == Side::host)
    set_ready();
  if (nbytes_ == 0) return 0;
  return side == Side::host && !is_shared_ ? host_block_.adr() : adr_;
}

UMEM_INLINE void Mirror::undo_overwrite(Side side) noexcept {
  Locked const locked(mutex_);
  if (is_shared_ || nbytes_ == 0 || before_.current == side) return;
  end_ready();
  current_ = other_of(side);
  transferred_ = before_.transferred == side ? side : Side::both;
}

UMEM_INLINE void Mirror::start_sync(Side side, std::uint64_t key, Context const &queue) {
  Locked const locked(mutex_);
  check_lock(key);
  check_guards(side, false);
  if (!queue.is_same_device(device_))
    raise_text(umemValueError,
               "a transfer of an array on %s cannot be queued on another storage, %s",
               device_.name(), queue.name());
  bring(side, true, queue);
}

UMEM_INLINE void Mirror::sync(Side side, std::uint64_t key) {
  Locked const locked(mutex_);
  start_sync(side, key, device_);
  settle(side);
  if (side != Side::device) return;
  finish_transfer();
  if (device_.can(umemOrdered)) device_.synchronize();
}

UMEM_INLINE void Mirror::complete(std::uint64_t key) {
  Locked const locked(mutex_);
  check_lock(key);
  settle(Side::host);
  settle(Side::device);
  if (device_.can(umemOrdered)) device_.synchronize();
}

UMEM_INLINE void Mirror::release_host(std::uint64_t key) {
  Locked const locked(mutex_);
  check_lock(key);
  if (hosts_.readers || hosts_.writers)
    throw locked_error("a guard of the host side is alive: it cannot be released");
  if (!host_block_) return;
  bring(Side::device, true, device_);
  settle(Side::host);
  end_ready();
  if (watched_) watch_memory(*watched_, watched_side(Side::host), 0);
  host_block_.deallocate();
  current_ = Side::device;
}

UMEM_INLINE void Mirror::get(std::uint64_t key, std::size_t offset, void *value,
                             std::size_t nbytes) {
  if (address const first = ready_host_.load(std::memory_order_acquire)) {
    std::memcpy(value, reinterpret_cast<char const *>(first) + offset, nbytes);
    return;
  }
  Locked const locked(mutex_);
  check_lock(key);
  if (is_shared_ || current_ != Side::device) {
    settle(Side::host);
    if (closes_host_)
      copy(host_, host_adr() + offset, value, nbytes);
    else
      std::memcpy(value, reinterpret_cast<char const *>(host_adr()) + offset, nbytes);
    set_ready();
  } else {
    settle(Side::device);
    copy(device_, adr_ + offset, value, nbytes);
  }
}

UMEM_INLINE void Mirror::set(std::uint64_t key, std::size_t offset, void const *value,
                             std::size_t nbytes) {
  check_free(key);
  check_writable();
  bool to_device = !is_shared_ && current_ != Side::host;
  bool to_host = is_shared_ || current_ != Side::device;
  if (to_device)
    settle(Side::device); /* wait for both before writing: if this throws, they are equal */
  if (to_host) settle(Side::host);
  if (to_device) copy(value, device_, adr_ + offset, nbytes);
  if (!to_host) return;
  if (closes_host_)
    copy(value, host_, host_adr() + offset, nbytes);
  else
    std::memcpy(reinterpret_cast<char *>(host_adr()) + offset, value, nbytes);
}

UMEM_INLINE void Mirror::start_like(Mirror const &other) {
  if (other.current_ != Side::host) return;
  bring(Side::host, false, device_);
  make_current(Side::host);
}

UMEM_INLINE void Mirror::fill(void const *value, std::size_t item_size) {
  std::size_t chunk_items = std::max<std::size_t>(1, (std::size_t(1) << 18) / item_size);
  chunk_items = std::min(chunk_items, nbytes_ / item_size);
  std::vector<char> chunk(chunk_items * item_size);
  for (std::size_t i = 0; i < chunk_items; i++)
    std::memcpy(chunk.data() + i * item_size, value, item_size);
  Location to = locate(current_);
  for (std::size_t done = 0; done < nbytes_; done += chunk.size())
    copy(chunk.data(), *to.context, to.adr + done, std::min(chunk.size(), nbytes_ - done));
  make_current(to.side);
}

UMEM_INLINE Location Mirror::source(std::uint64_t key) {
  Locked const locked(mutex_);
  check_lock(key);
  return locate(current_);
}

UMEM_INLINE void Mirror::check_destination(std::uint64_t key) const {
  check_free(key);
  check_writable();
}

UMEM_INLINE Location Mirror::destination(std::uint64_t key, bool all) {
  check_destination(key);
  Location to = locate(all ? Side::device : current_);
  overwrite(to.side);
  return to;
}

UMEM_INLINE void Mirror::copy_from(Mirror &src, std::uint64_t src_key, std::uint64_t key) {
  if (nbytes_ == 0) return;
  Location from = src.source(src_key), to = destination(key, true);
  try {
    copy(*from.context, from.adr, *to.context, to.adr, nbytes_);
    wait_for(to.side, *from.context);
    src.wait_for(from.side, *to.context);
  } catch (...) {
    undo_overwrite(to.side);
    throw;
  }
}

UMEM_INLINE void Mirror::wait_for(Side side, Context const &context) {
  Locked const locked(mutex_);
  end_ready();
  if (side == Side::host) {
    pending_host_.add(context);
    pending_host_.add(host_);
  } else if (context != device_) {
    pending_device_.add(context);
  }
  if (hosts_.writers) settle(Side::host);
}

UMEM_INLINE Mirror::Mirror(Context device, std::size_t nbytes, MirrorOptions const &options,
                           int /* members only */)
    : device_(std::move(device)), host_(options.host ? options.host : default_host(device_)),
      nbytes_(nbytes), alignment_(std::max(options.type_alignment, options.alignment)) {
  if (!device_) throw value_error("an array on an empty context handle");
  check_alignment(options.alignment);
  pointer_to(host_, 0, umemCpuReadable | umemCpuWritable);
  is_shared_ = device_.can(umemCpuReadable) && !device_.can(umemSeparate);
  current_ = is_shared_ || nbytes == 0 ? Side::both : Side::device;
  adr_ = device_.null();
}

UMEM_INLINE void Mirror::set_ready() noexcept {
  bool const is_current = is_shared_ || current_ != Side::device;
  bool const may_change = closes_host_ || (is_shared_ && device_.can(umemOrdered));
  if (is_current && !may_change && !lock_ && !devices_.writers && nbytes_ != 0)
    ready_host_.store(host_adr(), std::memory_order_release);
}

UMEM_INLINE std::size_t Mirror::beyond_natural(Context const &context) const noexcept {
  return alignment_ > context.alignment() ? alignment_ : 0;
}

UMEM_INLINE Side Mirror::other_of(Side side) noexcept {
  return side == Side::host ? Side::device : Side::host;
}

UMEM_INLINE bool Mirror::is_guarded() const noexcept { return guards() != 0; }

/* ---- memory of a umemGuarded ---- */

UMEM_INLINE Context Mirror::default_host(Context const &device) {
  if (!device.can(umemSeparate)) return pointers();
  struct HostSide : Context {
    HostSide()
        : Context(make<umemGuarded>(
              [](umemGuarded *ctx) { return umemGuarded_ctor(ctx, pointers().c_context()); },
              owner(pointers()))) {}
  };
  HostSide host;
  char label[UMEM_LABEL_SIZE];
  std::snprintf(label, sizeof label, "host side of %.40s",
                *umem_get_label(device.c_context()) ? umem_get_label(device.c_context())
                                                    : device.name());
  check_status(umem_set_label(host.c_context(), label));
  return host;
}

UMEM_INLINE bool Mirror::close_new(Context const &context, address adr, std::size_t nbytes) {
  if (!context.can(umemSeparate)) return false;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  umemGuarded_protect(context.c_context(), adr, nbytes, umemGuardedClosed);
  umemAttempt_end(&attempt);
  if (attempt.type == umemValueError) return false; /* a part of a block of the umemGuarded */
  check_status(umemAttempt_record(&attempt));
  return true;
}

UMEM_INLINE void Mirror::open(Side side, bool writes) {
  GuardCounts const &same = count(side);
  if (same.writers || (same.readers && !writes)) return; /* the pages are open */
  check_status(umemGuarded_protect((side == Side::host ? host_ : device_).c_context(),
                                   side == Side::host ? host_block_.adr() : adr_, nbytes_,
                                   writes ? umemGuardedWrite : umemGuardedRead));
}

/* If the system refuses, the pages stay open; the context has the failure. */
UMEM_INLINE void Mirror::after_release(Side side) noexcept {
  Locked const locked(mutex_);
  GuardCounts const &same = count(side);
  if (closes(side) && !same.writers)
    umemGuarded_protect((side == Side::host ? host_ : device_).c_context(),
                        side == Side::host ? host_block_.adr() : adr_, nbytes_,
                        same.readers ? umemGuardedRead : umemGuardedClosed);
  if (watched_ && (is_shared_ ? guards() : same.all()) == 0) watch_last_guard();
}

/* ---- checks of accesses ---- */

UMEM_INLINE void Mirror::watch(index_t const *extents, int rank) noexcept {
  Locked const locked(mutex_);
  if (is_lent_ || is_foreign_ || nbytes_ == 0) return;
  address const host_address = host_block_ ? host_block_.adr() : 0;
  if (watched_) {
    if (!is_shared_ && watched_->first[0] != host_address) watch_memory(*watched_, 0, host_address);
    return;
  }
  watched_.reset(new (std::nothrow) Watched());
  if (!watched_) return;
  *watched_ = {
      nullptr,
      {is_shared_ ? adr_ : host_address, is_shared_ ? 0 : adr_},
      nbytes_,
      {{&hosts_, is_shared_ ? &devices_ : nullptr}, {is_shared_ ? nullptr : &devices_, nullptr}},
      {host().c_context(), device_.c_context()},
      {}};
  std::snprintf(watched_->shape, sizeof watched_->shape, "%s",
                InWords(extents, extents + rank).text);
  has_after_release_ = true;
  detail::watch(*watched_);
}

UMEM_INLINE void Mirror::end_watch() noexcept {
  Locked const locked(mutex_);
  if (watched_) unwatch(*watched_);
  watched_.reset();
}

UMEM_INLINE void Mirror::make_current(Side side) noexcept {
  end_ready();
  if (is_shared_ || nbytes_ == 0) return;
  current_ = side;
  transferred_ = Side::both;
}

UMEM_INLINE void Mirror::overwrite(Side side) noexcept {
  before_ = {current_, transferred_};
  make_current(side);
}

UMEM_INLINE void Mirror::check_lock(std::uint64_t key) const {
  if (lock_ && lock_ != key) throw locked_error("the array is locked");
}

UMEM_INLINE void Mirror::check_guards(Side side, bool writes) {
  GuardCounts const &same = count(side);
  GuardCounts const &other = count(other_of(side));
  if (other.writers) throw locked_error("a guard to write the other side of the array is alive");
  if (!writes) return;
  if (same.writers) throw locked_error("a guard to write the array is alive");
  if (other.readers) throw locked_error("a guard to read the other side of the array is alive");
}

UMEM_INLINE void Mirror::check_unguarded() const {
  if (is_guarded()) throw locked_error("a guard of the array is alive");
}

UMEM_INLINE void Mirror::check_writable() const {
  if (!device_.can(umemWritable) || (is_shared_ && !device_.can(umemCpuWritable)))
    raise_text(umemNotSupportedError, "an array on a read-only %s cannot be written",
               device_.name());
}

UMEM_INLINE void Mirror::bring(Side side, bool keep, Context const &queue) {
  if (is_shared_ || nbytes_ == 0) return;
  if (side == Side::host && !host_block_) {
    Buffer block(host_, nbytes_, beyond_natural(host_));
    closes_host_ = close_new(host_, block.adr(), nbytes_);
    if (closes_host_) has_after_release_ = true;
    host_block_ = std::move(block);
    if (host_.can(umemOrdered)) host_.synchronize();
  }
  if (!keep || current_ == side || current_ == Side::both) return;
  settle(Side::host);
  settle(Side::device);
  if (queue != device_) {
    if (device_.can(umemOrdered))
      queue.wait(device_);
    else
      device_.synchronize();
    pending_device_.add(queue);
  }
  end_ready();
  UMEM_TRACE(side == Side::host ? "umem::Array, to the host" : "umem::Array, to the device");
  if (side == Side::host)
    copy(queue, adr_, host_, host_block_.adr(), nbytes_);
  else
    copy(host_, host_block_.adr(), queue, adr_, nbytes_);
  pending_host_.add(queue);
  pending_host_.add(host_);
  transferred_ = std::exchange(current_, Side::both);
}

UMEM_INLINE void Mirror::finish_transfer() {
  Side from = std::exchange(transferred_, Side::both);
  if (from == Side::both) return;
  try {
    pending_host_.synchronize();
  } catch (...) {
    current_ = from;
    throw;
  }
}

UMEM_INLINE void Mirror::settle(Side side) {
  if (side == Side::device) return pending_device_.order_before(device_);
  finish_transfer();
  pending_host_.synchronize();
  if (!is_shared_) return;
  pending_device_.synchronize();
  if (device_.can(umemOrdered)) device_.synchronize();
}

UMEM_INLINE Location Mirror::locate(Side side) {
  if (side == Side::both) side = Side::device;
  settle(side);
  return side == Side::host ? Location{&host_, host_block_.adr(), side}
                            : Location{&device_, adr_, side};
}

} // namespace umem::detail

#endif
