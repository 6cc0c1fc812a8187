/* umem/array_mirror.hpp - the bytes of an array on one context, their mirror for the CPU, and
 * the rules for using the two. Programs include array.hpp. */
#ifndef UMEM_ARRAY_MIRROR_HPP
#define UMEM_ARRAY_MIRROR_HPP

#include <umem/detail/array_side.hpp>
#include <umem/detail/trace.hpp>

#include <mutex>

namespace umem {

/* The sides of an array: host is for the CPU, device is the context of its memory. */
enum class Side { host, device, both };

namespace detail {

/* Arrays, locks and parts own it together, by std::shared_ptr, and guards without: it ends after
 * the last owner and the last guard.
 *
 * Threads: const functions of arrays may run in many threads, and change what is below. They do so
 * under mutex_, which a thread may lock again, because a hook of the program may use the array.
 * ready_host_ spares the lock to those that read what needs no work before. Other functions have
 * the array for themselves.
 *
 * Invariants: now_.current is both if the sides share memory or there are no bytes; otherwise the
 * host is current only while host_ has a block. A guard that writes to a side makes it the only
 * current one at once, so that no function has to look at guards and now_. */
class Mirror {
public:
  /* A new block. */
  static std::shared_ptr<Mirror> make(Context device, std::size_t nbytes,
                                      MirrorOptions const &options);

  /* An existing block. */
  static std::shared_ptr<Mirror> around(Context device, address adr, std::size_t nbytes,
                                        MirrorOptions const &options, AnyDeleter deleter);

  /* Records failures on the contexts, and reports them to the hook of umem_set_failure_hook.
   * Without a hook, prints a line if the host side could not be written back. A child of fork does
   * not write back what its parent has made. */
  ~Mirror();

  /* ---- questions ---- */

  Context const &device() const noexcept { return device_.context; }
  Context const &host() const noexcept { return memory(Side::host).context; }
  Context const &mirror_context() const noexcept { return host_.context; }
  address adr() const noexcept { return device_.adr; }
  std::size_t nbytes() const noexcept { return nbytes_; }
  std::size_t alignment() const noexcept { return alignment_; }
  bool is_foreign() const noexcept { return is_foreign_; }
  /* Whether loops for which the program names no place run on the host, and need no more. */
  bool is_ram() const noexcept { return is_ram_; }
  Side current() const noexcept {
    Locked const locked(mutex_);
    return now_.current;
  }

  /* ---- locks: no lock has key 0 ---- */

  /* The key of a new lock. */
  std::uint64_t lock(std::uint64_t key) {
    Locked const locked(mutex_);
    check_lock(key);
    if (lock_) throw locked_error("the array is locked already");
    if (guards() != 0) throw locked_error("a guard of the array is alive: it cannot be locked");
    end_ready();
    return lock_ = ++last_key_;
  }

  /* Throws while a lock with another key, or any guard, lives. */
  void check_free(std::uint64_t key) const {
    check_lock(key);
    if (guards() != 0) throw locked_error("a guard of the array is alive");
  }

  /* Called by the owner of the key. */
  void unlock() noexcept {
    Locked const locked(mutex_);
    lock_ = 0;
  }

  /* ---- guards ---- */

  /* Counts a new guard, and returns its first byte: a pointer; 0 for no bytes. */
  address acquire(Side side, Access access, std::uint64_t key) {
    address const first = side == Side::host ? ready_for(access, key) : 0;
    if (!first) return acquire_slowly(side, access, key);
    count_host(access, 1);
    return first;
  }

  /* The end of a guard; that of the mirror too, if nothing else uses it. */
  void release(Side side, Access access) noexcept {
    if (UMEM_RARELY(has_after_release_.load(std::memory_order_acquire)))
      return release_slowly(side, access);
    if (access != Access::read) add_alone(at(side).writers, -1);
    if (UMEM_RARELY(is_last(side))) delete this;
  }

  /* Counts a loop as such a guard. It begins and ends in one thread. */
  UMEM_ALWAYS_INLINE address begin_loop(Access access, std::uint64_t key) noexcept {
    address const first = ready_for(access, key);
    if (first) count_host(access, 1);
    return first;
  }
  UMEM_ALWAYS_INLINE void end_loop(Access access) noexcept {
    count_host(access, -1);
    if (UMEM_RARELY(has_after_release_.load(std::memory_order_acquire))) after_loop();
  }

  /* That live. */
  unsigned guards() const noexcept { return uses_.all(); }

  /* Whether only guards still use the elements. */
  bool is_ended() const noexcept { return !uses_.has_owners(); }

  /* ---- for checks of accesses; see detail/checks.hpp ---- */

  /* After acquire, in code with checks: checks in this file and others know the memory and the
   * guards from now on. Foreign memory is left out: its owner may use it without guards. */
  void watch(index_t const *extents, int rank) noexcept;
  void end_watch() noexcept {
    Locked const locked(mutex_);
    if (watched_) unwatch(*watched_);
    watched_.reset();
  }

  /* adr(), for the program to use without a guard. */
  address lend() noexcept {
    Locked const locked(mutex_);
    is_lent_ = true;
    end_watch();
    return device_.adr;
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
  void complete(std::uint64_t key) {
    Locked const locked(mutex_);
    check_lock(key);
    settle(Side::host);
    settle(Side::device);
    if (device().can(umemOrdered)) device().synchronize();
  }

  /* Frees the mirror. No other thread may use the array. */
  void release_host(std::uint64_t key);

  /* Copies nbytes at an offset out of whichever side is current. */
  void get(std::uint64_t key, std::size_t offset, void *value, std::size_t nbytes);

  /* Copies nbytes at an offset to all current sides, so that they stay current. */
  void set(std::uint64_t key, std::size_t offset, void const *value, std::size_t nbytes);

  /* For a new block: makes the host the current side if it is the only current one of other. */
  void start_like(Mirror const &other) {
    if (other.now_.current != Side::host) return;
    bring(Side::host, false, device());
    make_current(Side::host);
  }

  /* The elements have moved to other memory, or are not needed: the destructor does not write them
   * back, and frees their block also in a named file. */
  void leave() noexcept { is_left_ = true; }

  /* For a new block: makes every item on the current side equal to value. */
  void fill(void const *value, std::size_t item_size) {
    Location const to = locate(now_.current);
    fill_items(to, nbytes_, value, item_size);
    make_current(to.side);
  }

  /* ---- copies; see part.hpp ---- */

  /* The source of a copy. */
  Location source(std::uint64_t key) {
    if (is_shared_ && ready_host_.load(std::memory_order_acquire))
      return {&device_.context, device_.adr, Side::device};
    Locked const locked(mutex_);
    check_lock(key);
    Location const from = locate(now_.current);
    if (is_shared_) set_ready();
    return from;
  }

  /* Throws if acquire(side, Access::read, key) would because of a lock or a guard. */
  void check_readable(Side side, std::uint64_t key) {
    Locked const locked(mutex_);
    check_lock(key);
    check_guards(side, false);
  }

  /* Throws if destination() would. */
  void check_destination(std::uint64_t key) const {
    check_free(key);
    check_writable();
  }

  /* The destination of a copy; its side becomes the only current one. all: the copy writes every
   * byte. Call undo_overwrite if the copy fails. */
  Location destination(std::uint64_t key, bool all) {
    check_destination(key);
    Location to = locate(all ? Side::device : now_.current);
    overwrite(to.side);
    return to;
  }

  /* Copies all bytes of src, which must have as many. */
  void copy_from(Mirror &src, std::uint64_t src_key, std::uint64_t key);

  /* Later use of side waits for a copy between it and context, which may still be queued. If a
   * guard of the CPU writes already, there is no later use that could wait: then the copy is
   * complete on return, which throws its failures. */
  void wait_for(Side side, Context const &context);

private:
  using Locked = std::lock_guard<std::recursive_mutex>;

  Mirror(Context device, std::size_t nbytes, MirrorOptions const &options);
  /* Of a new mirror: the owners. */
  std::shared_ptr<Mirror> owned() {
    return {this, [](Mirror *mirror) {
              if (mirror->uses_.end_owners()) delete mirror;
            }};
  }

  static Side other_of(Side side) noexcept {
    return side == Side::host ? Side::device : Side::host;
  }
  ArraySide &at(Side side) noexcept { return side == Side::host ? host_ : device_; }

  /* The memory of a side; both means the device. */
  ArraySide const &memory(Side side) const noexcept {
    return side == Side::host && !is_shared_ ? host_ : device_;
  }

  address acquire_slowly(Side side, Access access, std::uint64_t key);

  /* The first byte, if the CPU may begin to use the host side at once; else 0. */
  address ready_for(Access access, std::uint64_t key) const noexcept {
    return access == Access::read ? ready_host_.load(std::memory_order_acquire) : plain_for(key);
  }
  /* A guard of the host side or a loop that begins, or a loop that ends. */
  UMEM_ALWAYS_INLINE void count_host(Access access, int n) noexcept {
    if (access != Access::read) add_alone(host_.writers, n);
    if (UMEM_RARELY(maker_ != this_thread()))
      uses_.add(static_cast<std::uint64_t>(n) * ArrayUses::of_host);
    else
      uses_.add_own(static_cast<std::uint32_t>(n));
  }
  /* Counts the end of a guard. Returns whether nothing else uses the mirror. */
  bool is_last(Side side) noexcept {
    return uses_.end(side == Side::host ? ArrayUses::of_host : ArrayUses::of_device);
  }
  void release_slowly(Side side, Access access) noexcept;
  unsigned guards_of(Side side) const noexcept {
    return side == Side::host ? uses_.host() : uses_.device();
  }

  /* The first byte, if the CPU may begin to write the one memory of both sides at once; else 0. */
  address plain_for(std::uint64_t key) const noexcept {
    bool const is_free = (!lock_ || lock_ == key) && !host_.writers && !uses_.device();
    bool const is_ready = is_plain_ && is_free && device_.pending.is_empty();
    return UMEM_RARELY(!is_ready) ? 0 : device_.adr;
  }

  void tell_watch(Side side) noexcept;
  void after_loop() noexcept;

  /* The host side is settled: lets threads read it without the lock, if nothing may forbid or delay
   * that. */
  void set_ready() noexcept;

  /* Something changes: readers take the lock. */
  void end_ready() noexcept { ready_host_.store(0, std::memory_order_relaxed); }

  void make_current(Side side) noexcept;

  /* Marks a side as written by a write that may still fail: undo_overwrite reverts it. */
  void overwrite(Side side) noexcept {
    before_ = now_;
    make_current(side);
  }

  void check_lock(std::uint64_t key) const {
    if (lock_ && lock_ != key) throw locked_error("the array is locked");
  }
  void check_guards(Side side, bool writes) {
    Side const other = other_of(side);
    detail::check_guards(at(side), at(other), writes, guards_of(other));
  }
  void check_writable() const {
    if (!device().can(umemWritable) || (is_shared_ && !device().can(umemCpuWritable)))
      raise_text(umemNotSupportedError, "an array on a read-only %s cannot be written",
                 device().name());
  }

  /* ---- moving bytes ---- */

  /* Makes side current too if its contents are to be kept. The transfer may still be queued on
   * queue, which is device() or another context of the same memory. */
  void bring(Side side, bool keep, Context const &queue);

  /* Waits for the last transfer. If it has failed, only the side that it came from is current. */
  void finish_transfer();

  /* Makes side ready for work: the CPU may start at once when this returns, work queued on
   * device() will start when it may. */
  void settle(Side side);

  /* Settles a side, and returns where its bytes are; both means the device. */
  Location locate(Side side);

  ArrayUses uses_;
  ArraySide device_;
  ArraySide host_; /* the mirror, CPU-accessible; without memory until its first use */
  std::size_t nbytes_;
  std::size_t alignment_;  /* of the elements, or more */
  bool is_shared_ = false; /* the CPU works on device_'s memory: there is no mirror */
  bool is_plain_ = false;  /* and all that it waits for before it writes is in device_.pending */
  bool is_ram_ = false;    /* and no GPU uses it */
  bool is_foreign_ = false;
  bool is_left_ = false; /* the elements are elsewhere now */
  bool is_lent_ = false;
  AnyDeleter deleter_;
  unsigned generation_ = umem_generation();
  struct Sides {
    Side current = Side::both;
    Side transferred = Side::both; /* source of a transfer that may still be queued and after which
                                      nothing was written; both: there is none */
  } now_, before_;                 /* before_: the last overwrite of a side */
  std::uint64_t lock_ = 0;         /* the key of its lock, 0 for none */
  std::uint64_t last_key_ = 0;
  std::unique_ptr<Watched> watched_; /* null: it is not watched */
  void const *const maker_ = this_thread();
  mutable std::recursive_mutex mutex_;
  std::atomic<address> ready_host_{0}; /* of the host side, if reading it needs no work; else 0 */
  std::atomic<bool> has_after_release_{false}; /* a side closes, or watched_ */
};

} // namespace detail
} // namespace umem

#endif

#if !defined(UMEM_ARRAY_MIRROR_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_ARRAY_MIRROR_FUNCTIONS

namespace umem::detail {

UMEM_INLINE Mirror::Mirror(Context device, std::size_t nbytes, MirrorOptions const &options)
    : device_(std::move(device)),
      host_(options.host ? options.host : context_of_mirror(device_.context)), nbytes_(nbytes),
      alignment_(std::max(options.type_alignment, options.alignment)) {
  if (!device_.context) throw value_error("an array on an empty context handle");
  check_alignment(options.alignment);
  pointer_to(host_.context, 0, umemCpuReadable | umemCpuWritable);
  is_shared_ = this->device().can(umemCpuReadable) && !this->device().can(umemSeparate);
  now_.current = is_shared_ || nbytes == 0 ? Side::both : Side::device;
  is_plain_ = is_shared_ && nbytes != 0 && !this->device().can(umemOrdered) &&
              this->device().can(umemWritable | umemCpuWritable);
  is_ram_ = is_plain_ && !this->device().can(umemDeviceAccessible);
  device_.adr = this->device().null();
}

UMEM_INLINE std::shared_ptr<Mirror> Mirror::make(Context device, std::size_t nbytes,
                                                 MirrorOptions const &options) {
  auto mirror = (new Mirror(std::move(device), nbytes, options))->owned();
  if (nbytes == 0) return mirror;
  mirror->device_.allocate(nbytes, mirror->alignment_, options.zeroed);
  mirror->has_after_release_ = mirror->device_.closes;
  return mirror;
}

UMEM_INLINE std::shared_ptr<Mirror> Mirror::around(Context device, address adr, std::size_t nbytes,
                                                   MirrorOptions const &options,
                                                   AnyDeleter deleter) {
  auto mirror = (new Mirror(std::move(device), nbytes, options))->owned();
  if (nbytes) mirror->device_.check_block(adr, mirror->alignment_);
  mirror->device_.adr = adr;
  mirror->is_foreign_ = true;
  mirror->deleter_ = std::move(deleter); /* last: the caller owns the block if this throws before */
  return mirror;
}

UMEM_INLINE Mirror::~Mirror() {
  end_watch();
  bool outlived = is_foreign_ || device().can(umemOffsets) || device().can(umemShared);
  bool is_parents = device().can(umemShared) && generation_ != umem_generation();
  bool writes_back = outlived && !is_left_ && !is_parents && now_.current == Side::host;
  std::uint64_t const before = umem_thread_failures();
  if (writes_back) {
    host_.pending.synchronize(false); /* what still writes to the host side */
    device_.pending.order_before(device(), false);
    umem_copy_to(host_.context.c_context(), host_.adr, device().c_context(), adr(), nbytes_);
    host_.pending.add(device());
    host_.pending.add(host_.context);
  }
  host_.pending.synchronize(false);
  if (writes_back && umem_thread_failures() != before)
    umem_report_end("umem::Array lost newer elements of its host side");
  device_.pending.order_before(device(), false);
  if (is_foreign_ && device().can(umemOrdered)) umem_synchronize(device().c_context());
  if (deleter_) deleter_->invoke();
  host_.deallocate();
  if (is_left_) device_.deallocate();
}

/* ---- guards ---- */

UMEM_INLINE address Mirror::acquire_slowly(Side side, Access access, std::uint64_t key) {
  bool writes = access != Access::read;
  std::unique_lock<std::recursive_mutex> locked(mutex_, std::defer_lock);
  if (!writes || at(side).closes) locked.lock(); /* a guard that ends closes pages */
  check_lock(key);
  check_guards(side, writes);
  if (side == Side::device && device().can(umemOffsets))
    raise_text(umemNotSupportedError, "addresses of %s are no pointers: use host() or part()",
               device().name());
  if (writes) check_writable();
  if (writes && (side == Side::device || !is_shared_)) end_ready();
  bring(side, access != Access::discard, device());
  settle(side);
  at(side).open_pages(nbytes_, writes, guards_of(side));
  if (side == Side::host) {
    count_host(access, 1);
  } else {
    if (writes) add_alone(device_.writers, 1);
    uses_.add(ArrayUses::of_device);
  }
  if (writes)
    overwrite(side);
  else if (side == Side::host)
    set_ready();
  return nbytes_ == 0 ? 0 : memory(side).adr;
}

UMEM_INLINE void Mirror::set_ready() noexcept {
  bool const is_current = is_shared_ || now_.current != Side::device;
  bool const may_change = host_.closes || (is_shared_ && device().can(umemOrdered));
  if (is_current && !may_change && !lock_ && !device_.writers && nbytes_ != 0)
    ready_host_.store(memory(Side::host).adr, std::memory_order_release);
}

UMEM_INLINE void Mirror::tell_watch(Side side) noexcept {
  if (watched_ && (is_shared_ ? guards() : guards_of(side)) == 0) watch_last_guard();
}

UMEM_INLINE void Mirror::after_loop() noexcept {
  Locked const locked(mutex_);
  host_.close_pages(nbytes_, uses_.host());
  tell_watch(Side::host);
}

/* ~Mirror, which another thread may call meanwhile, waits for the lock. The failure hook may
 * end the array, if pages cannot be closed: the guard still counts. */
UMEM_INLINE void Mirror::release_slowly(Side side, Access access) noexcept {
  bool is_last_use;
  {
    Locked const locked(mutex_);
    if (access != Access::read) add_alone(at(side).writers, -1);
    at(side).close_pages(nbytes_, guards_of(side) - 1);
    is_last_use = is_last(side);
    tell_watch(side);
  }
  if (is_last_use) delete this;
}

UMEM_INLINE void Mirror::make_current(Side side) noexcept {
  if (is_shared_ || nbytes_ == 0) return;
  end_ready();
  now_ = {side, Side::both};
}

UMEM_INLINE void Mirror::undo_overwrite(Side side) noexcept {
  Locked const locked(mutex_);
  if (is_shared_ || nbytes_ == 0 || before_.current == side) return;
  end_ready();
  now_ = {other_of(side), before_.transferred == side ? side : Side::both};
}

/* ---- checks of accesses ---- */

UMEM_INLINE void Mirror::watch(index_t const *extents, int rank) noexcept {
  Locked const locked(mutex_);
  if (is_lent_ || is_foreign_ || nbytes_ == 0) return;
  if (watched_) {
    if (!is_shared_ && watched_->first[0] != host_.adr) watch_memory(*watched_, 0, host_.adr);
    return;
  }
  watched_ =
      watched_array(host_, device_, is_shared_, nbytes_, uses_, InWords(extents, extents + rank));
  if (!watched_) return;
  has_after_release_ = true;
  detail::watch(*watched_);
}

/* ---- moving bytes ---- */

UMEM_INLINE void Mirror::bring(Side side, bool keep, Context const &queue) {
  if (is_shared_ || nbytes_ == 0) return;
  if (side == Side::host && !host_.block) {
    host_.allocate(nbytes_, alignment_, false);
    if (host_.closes) has_after_release_ = true;
    if (host_.context.can(umemOrdered)) host_.context.synchronize();
  }
  if (!keep || now_.current == side || now_.current == Side::both) return;
  settle(Side::host);
  settle(Side::device);
  if (queue != device()) {
    if (device().can(umemOrdered))
      queue.wait(device());
    else
      device().synchronize();
    device_.pending.add(queue);
  }
  end_ready();
  TraceRange const range(side == Side::host ? "Array, to the host" : "Array, to the device");
  if (side == Side::host)
    copy(queue, adr(), host_.context, host_.adr, nbytes_);
  else
    copy(host_.context, host_.adr, queue, adr(), nbytes_);
  host_.pending.add(queue);
  host_.pending.add(host_.context);
  now_.transferred = std::exchange(now_.current, Side::both);
}

UMEM_INLINE void Mirror::finish_transfer() {
  Side from = std::exchange(now_.transferred, Side::both);
  if (from == Side::both) return;
  try {
    host_.pending.synchronize();
  } catch (...) {
    now_.current = from;
    throw;
  }
}

UMEM_INLINE void Mirror::settle(Side side) {
  if (side == Side::device) return device_.pending.order_before(device());
  finish_transfer();
  host_.pending.synchronize();
  if (!is_shared_) return;
  device_.pending.synchronize();
  if (device().can(umemOrdered)) device().synchronize();
}

UMEM_INLINE Location Mirror::locate(Side side) {
  if (side == Side::both) side = Side::device;
  settle(side);
  return {&at(side).context, at(side).adr, side};
}

UMEM_INLINE void Mirror::wait_for(Side side, Context const &context) {
  Locked const locked(mutex_);
  end_ready();
  if (side == Side::host) {
    host_.pending.add(context);
    host_.pending.add(host_.context);
  } else if (context != device()) {
    device_.pending.add(context);
  }
  if (host_.writers) settle(Side::host);
}

UMEM_INLINE void Mirror::start_sync(Side side, std::uint64_t key, Context const &queue) {
  Locked const locked(mutex_);
  check_lock(key);
  check_guards(side, false);
  if (!queue.is_same_device(device()))
    raise_text(umemValueError,
               "a transfer of an array on %s cannot be queued on another storage, %s",
               device().name(), queue.name());
  bring(side, true, queue);
}

UMEM_INLINE void Mirror::sync(Side side, std::uint64_t key) {
  Locked const locked(mutex_);
  start_sync(side, key, device());
  settle(side);
  if (side != Side::device) return;
  finish_transfer();
  if (device().can(umemOrdered)) device().synchronize();
}

UMEM_INLINE void Mirror::release_host(std::uint64_t key) {
  Locked const locked(mutex_);
  check_lock(key);
  if (uses_.host() != 0)
    throw locked_error("a guard of the host side is alive: it cannot be released");
  if (!host_.block) return;
  bring(Side::device, true, device());
  settle(Side::host);
  end_ready();
  if (watched_) watch_memory(*watched_, 0, 0);
  host_.deallocate();
  now_.current = Side::device;
}

/* ---- copies ---- */

UMEM_INLINE void Mirror::get(std::uint64_t key, std::size_t offset, void *value,
                             std::size_t nbytes) {
  if (address const first = ready_host_.load(std::memory_order_acquire)) {
    std::memcpy(value, reinterpret_cast<char const *>(first) + offset, nbytes);
    return;
  }
  Locked const locked(mutex_);
  check_lock(key);
  Side const side = is_shared_ || now_.current != Side::device ? Side::host : Side::device;
  settle(side);
  memory(side).get(side == Side::host, offset, value, nbytes);
  if (side == Side::host) set_ready();
}

UMEM_INLINE void Mirror::set(std::uint64_t key, std::size_t offset, void const *value,
                             std::size_t nbytes) {
  check_destination(key);
  bool to_device = !is_shared_ && now_.current != Side::host;
  bool to_host = is_shared_ || now_.current != Side::device;
  if (to_device)
    settle(Side::device); /* wait for both before writing: if this throws, they are equal */
  if (to_host) settle(Side::host);
  if (to_device) device_.set(false, offset, value, nbytes);
  if (to_host) memory(Side::host).set(true, offset, value, nbytes);
}

UMEM_INLINE void Mirror::copy_from(Mirror &src, std::uint64_t src_key, std::uint64_t key) {
  if (nbytes_ == 0) return;
  Location from = src.source(src_key), to = destination(key, true);
  try {
    copy(*from.context, from.adr, *to.context, to.adr, nbytes_);
    if (from.context->can(umemOrdered) || to.context->can(umemOrdered)) {
      wait_for(to.side, *from.context);
      src.wait_for(from.side, *to.context);
    }
  } catch (...) {
    undo_overwrite(to.side);
    throw;
  }
}

} // namespace umem::detail

#endif
