/* umem/array_mirror.hpp - the bytes of an array on one context, their mirror for the CPU, and
 * the rules for using the two. Programs include array.hpp. */
#ifndef UMEM_ARRAY_MIRROR_HPP
#define UMEM_ARRAY_MIRROR_HPP

#include <umem/array_error.hpp>
#include <umem/array_order.hpp>
#include <umem/buffer.hpp>
#include <umem/context.hpp>
#include <umem/detail/checks.hpp>
#include <umem/detail/trace.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace umem {

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

  /* Records failures on the contexts, and reports them to the hook of umem_set_failure_hook. Without a hook, prints a line
   * if the host side could not be written back. A child of fork does not write back what its parent has made. */
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

  /* After acquire, in code with checks: checks in this file and others know the memory and the guards from now on.
   * Foreign memory is left out: its owner may use it without guards. */
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

  /* The same, complete on return. */
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

  /* The elements have moved to other memory, or nobody needs them: the destructor does not write them back, and frees their
   * block also in a named file. */
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

  /* The same for a write that may still fail: undo_overwrite reverts it. */
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

#if !defined(UMEM_COMPILED)
#include <umem/detail/array_functions.hpp>
#endif

#endif
