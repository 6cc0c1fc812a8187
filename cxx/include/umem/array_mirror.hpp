/* umem/array_mirror.hpp - the bytes of an array on one context, their mirror for the CPU, and
 * the rules for using the two. Programs include array.hpp. */
#ifndef UMEM_ARRAY_MIRROR_HPP
#define UMEM_ARRAY_MIRROR_HPP

#include <umem/array_error.hpp>
#include <umem/array_order.hpp>
#include <umem/buffer.hpp>
#include <umem/context.hpp>
#include <umem/detail/trace.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
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
  virtual void call() = 0;
};
using AnyDeleter = std::unique_ptr<Deleter>; /* null: there is nothing to call */

/* Whether F has an operator bool of its own that reports an empty function, as std::function
 * has. A lambda without captures also converts to bool: its function pointer is never null. */
template <class F, class = void> inline constexpr bool can_be_empty = false;
template <class F>
inline constexpr bool
    can_be_empty<F, std::void_t<decltype(std::declval<F const &>().operator bool())>> = true;

/* Whether f is an empty std::function or a null pointer. */
template <class F> bool is_empty_function(F const &f) {
  if constexpr (std::is_pointer_v<F>)
    return f == nullptr;
  else if constexpr (can_be_empty<F>)
    return !f;
  else
    return false;
}

template <class F> AnyDeleter make_deleter(F f) {
  if (is_empty_function(f)) return nullptr;
  struct Call final : Deleter {
    F f;
    explicit Call(F &&f_) : f(std::move(f_)) {}
    void call() override { f(); }
  };
  return std::make_unique<Call>(std::move(f));
}

/* The location of the current bytes, or of new ones. */
struct Location {
  Context const *context; /* borrowed from the mirror */
  address adr;            /* of the first byte */
  Side side;
};

/* An array shares it with its guards, locks and parts. Invariants: current_ is both if the sides
 * share memory or there are no bytes; otherwise the host is current only while there is a
 * host_block_. A guard that writes to a side makes it the only current one at once, so that no
 * function has to look at guards and current_. */
class Mirror {
public:
  /* A new block. */
  Mirror(Context device, std::size_t nbytes, MirrorOptions const &options)
      : Mirror(std::move(device), nbytes, options, 0) {
    if (nbytes == 0) return;
    std::size_t alignment = beyond_natural(device_);
    block_ = options.zeroed ? Buffer::zeroed(device_, nbytes, alignment)
                            : Buffer(device_, nbytes, alignment);
    adr_ = block_.adr();
  }

  /* An existing block. */
  Mirror(Context device, address adr, std::size_t nbytes, MirrorOptions const &options,
         AnyDeleter deleter)
      : Mirror(std::move(device), nbytes, options, 0) {
    if (nbytes && adr == device_.null())
      throw value_error("an array around the null address of " + std::string(device_.name()));
    if (nbytes && !device_.can(umemOffsets) && adr % alignment_ != 0)
      throw value_error("the address of the elements is no multiple of their alignment of " +
                        std::to_string(alignment_));
    adr_ = adr;
    is_foreign_ = true;
    deleter_ = std::move(deleter); /* last: the caller owns the block if this throws before */
  }

  Mirror(Mirror const &) = delete;
  Mirror &operator=(Mirror const &) = delete;

  /* Records failures on the contexts, and reports them to the hook of umem_set_failure_hook. */
  ~Mirror() {
    bool outlived = is_foreign_ || device_.can(umemOffsets);
    if (outlived && current_ == Side::host) {
      pending_host_.synchronize_quietly(); /* what still writes to the host side */
      pending_device_.order_before_quietly(device_);
      umem_copy_to(host_.c_context(), host_block_.adr(), device_.c_context(), adr_, nbytes_);
      pending_host_.add(device_);
      pending_host_.add(host_);
    }
    pending_host_.synchronize_quietly();
    pending_device_.order_before_quietly(device_);
    if (is_foreign_ && device_.can(umemOrdered)) umem_synchronize(device_.c_context());
    if (deleter_) deleter_->call();
  }

  /* ---- questions ---- */

  Context const &device() const noexcept { return device_; }
  Context const &host() const noexcept { return is_shared_ ? device_ : host_; }
  Context const &mirror_context() const noexcept { return host_; }
  address adr() const noexcept { return adr_; }
  std::size_t nbytes() const noexcept { return nbytes_; }
  std::size_t alignment() const noexcept { return alignment_; }
  bool is_foreign() const noexcept { return is_foreign_; }
  Side current() const noexcept { return current_; }

  /* ---- locks: no lock has key 0 ---- */

  /* The key of a new lock. */
  std::uint64_t lock(std::uint64_t key) {
    check_lock(key);
    if (lock_) throw locked_error("the array is locked already");
    if (is_guarded()) throw locked_error("a guard of the array is alive: it cannot be locked");
    return lock_ = ++last_key_;
  }

  /* Throws while a lock with another key, or any guard, lives. */
  void check_free(std::uint64_t key) const {
    check_lock(key);
    check_unguarded();
  }

  /* Called by the owner of the key. */
  void unlock() noexcept { lock_ = 0; }

  /* ---- guards ---- */

  /* Counts a new guard, and returns its first byte: a pointer; 0 for no bytes. */
  address acquire(Side side, Access access, std::uint64_t key) {
    bool writes = access != Access::read;
    check_lock(key);
    check_guards(side, writes);
    if (side == Side::device && device_.can(umemOffsets))
      throw not_supported_error("addresses of " + std::string(device_.name()) +
                                " are no pointers: use host() or part()");
    if (writes) check_writable();
    bring(side, access != Access::discard, device_);
    settle(side);
    count(side).of(writes) += 1;
    if (writes) overwrite(side);
    if (nbytes_ == 0) return 0;
    return side == Side::host && !is_shared_ ? host_block_.adr() : adr_;
  }

  void release(Side side, Access access) noexcept { count(side).of(access != Access::read) -= 1; }

  /* After a failed call that was to overwrite side: if the other side was current before, it is
   * now the only current one, because side may have been written in part. */
  void undo_overwrite(Side side) noexcept {
    if (is_shared_ || nbytes_ == 0 || before_.current == side) return;
    current_ = other_of(side);
    transferred_ = before_.transferred == side ? side : Side::both;
  }

  /* ---- transfers ---- */

  /* Makes side current too. The transfer is queued on queue. */
  void start_sync(Side side, std::uint64_t key, Context const &queue) {
    check_lock(key);
    check_guards(side, false);
    if (!queue.is_same_device(device_))
      throw value_error("a transfer of an array on " + std::string(device_.name()) +
                        " cannot be queued on another storage, " + queue.name());
    bring(side, true, queue);
  }

  /* The same, complete on return. */
  void sync(Side side, std::uint64_t key) {
    start_sync(side, key, device_);
    settle(side);
    if (side != Side::device) return;
    finish_transfer();
    if (device_.can(umemOrdered)) device_.synchronize();
  }

  /* Waits for all work with the elements, and throws its failures. */
  void complete(std::uint64_t key) {
    check_lock(key);
    settle(Side::host);
    settle(Side::device);
    if (device_.can(umemOrdered)) device_.synchronize();
  }

  /* Frees the mirror. */
  void release_host(std::uint64_t key) {
    check_lock(key);
    if (hosts_.readers || hosts_.writers)
      throw locked_error("a guard of the host side is alive: it cannot be released");
    if (!host_block_) return;
    bring(Side::device, true, device_);
    settle(Side::host);
    host_block_ = Buffer();
    current_ = Side::device;
  }

  /* Copies nbytes at an offset out of whichever side is current. */
  void get(std::uint64_t key, std::size_t offset, void *value, std::size_t nbytes) {
    check_lock(key);
    if (is_shared_ || current_ != Side::device) {
      settle(Side::host);
      std::memcpy(value, reinterpret_cast<char const *>(host_adr()) + offset, nbytes);
    } else {
      settle(Side::device);
      copy(device_, adr_ + offset, value, nbytes);
    }
  }

  /* Copies nbytes at an offset to all current sides, so that they stay current. */
  void set(std::uint64_t key, std::size_t offset, void const *value, std::size_t nbytes) {
    check_free(key);
    check_writable();
    bool to_device = !is_shared_ && current_ != Side::host;
    bool to_host = is_shared_ || current_ != Side::device;
    if (to_device)
      settle(Side::device); /* wait for both before writing: if this throws, they are equal */
    if (to_host) settle(Side::host);
    if (to_device) copy(value, device_, adr_ + offset, nbytes);
    if (to_host) std::memcpy(reinterpret_cast<char *>(host_adr()) + offset, value, nbytes);
  }

  /* Makes every item on the device equal to value. */
  void fill(void const *value, std::size_t item_size) {
    std::size_t chunk_items = std::max<std::size_t>(1, (std::size_t(1) << 18) / item_size);
    chunk_items = std::min(chunk_items, nbytes_ / item_size);
    std::vector<char> chunk(chunk_items * item_size);
    for (std::size_t i = 0; i < chunk_items; i++)
      std::memcpy(chunk.data() + i * item_size, value, item_size);
    for (std::size_t done = 0; done < nbytes_; done += chunk.size())
      copy(chunk.data(), device_, adr_ + done, std::min(chunk.size(), nbytes_ - done));
    make_current(Side::device);
  }

  /* ---- copies; see part.hpp ---- */

  /* The source of a copy. */
  Location source(std::uint64_t key) {
    check_lock(key);
    return locate(current_);
  }

  /* Throws if acquire(side, Access::read, key) would because of a lock or a guard. */
  void check_readable(Side side, std::uint64_t key) {
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
    Location to = locate(all ? Side::device : current_);
    overwrite(to.side);
    return to;
  }

  /* Copies all bytes of src, which must have as many. */
  void copy_from(Mirror &src, std::uint64_t src_key, std::uint64_t key) {
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

  /* Later use of side waits for a copy between it and context, which may still be queued. If a
   * guard of the CPU writes already, there is no later use that could wait: then the copy is
   * complete on return, which throws its failures. */
  void wait_for(Side side, Context const &context) {
    if (side == Side::host) {
      pending_host_.add(context);
      pending_host_.add(host_);
    } else if (context != device_) {
      pending_device_.add(context);
    }
    if (hosts_.writers) settle(Side::host);
  }

private:
  struct Guards {
    int readers = 0;
    int writers = 0;
    int &of(bool writes) noexcept { return writes ? writers : readers; }
  };

  Mirror(Context device, std::size_t nbytes, MirrorOptions const &options, int /* members only */)
      : device_(std::move(device)), host_(options.host ? options.host : pointers()),
        nbytes_(nbytes), alignment_(std::max(options.type_alignment, options.alignment)) {
    if (!device_) throw value_error("an array on an empty context handle");
    check_alignment(options.alignment);
    pointer_to(host_, 0, umemCpuReadable | umemCpuWritable);
    is_shared_ = device_.can(umemCpuReadable);
    current_ = is_shared_ || nbytes == 0 ? Side::both : Side::device;
    adr_ = device_.null();
  }

  /* The alignment to request from a context: 0 if all its blocks have it. */
  std::size_t beyond_natural(Context const &context) const noexcept {
    return alignment_ > context.alignment() ? alignment_ : 0;
  }

  address host_adr() const noexcept { return is_shared_ ? adr_ : host_block_.adr(); }
  static Side other_of(Side side) noexcept {
    return side == Side::host ? Side::device : Side::host;
  }
  Guards &count(Side side) noexcept { return side == Side::host ? hosts_ : devices_; }
  bool is_guarded() const noexcept {
    return hosts_.readers || hosts_.writers || devices_.readers || devices_.writers;
  }

  void make_current(Side side) noexcept {
    if (is_shared_ || nbytes_ == 0) return;
    current_ = side;
    transferred_ = Side::both;
  }

  /* The same for a write that may still fail: undo_overwrite reverts it. */
  void overwrite(Side side) noexcept {
    before_ = {current_, transferred_};
    make_current(side);
  }

  /* ---- locks and guards that forbid an access ---- */

  void check_lock(std::uint64_t key) const {
    if (lock_ && lock_ != key) throw locked_error("the array is locked");
  }

  void check_guards(Side side, bool writes) {
    Guards const &same = count(side);
    Guards const &other = count(other_of(side));
    if (other.writers) throw locked_error("a guard to write the other side of the array is alive");
    if (!writes) return;
    if (same.writers) throw locked_error("a guard to write the array is alive");
    if (other.readers) throw locked_error("a guard to read the other side of the array is alive");
  }

  void check_unguarded() const {
    if (is_guarded()) throw locked_error("a guard of the array is alive");
  }

  void check_writable() const {
    if (!device_.can(umemWritable) || (is_shared_ && !device_.can(umemCpuWritable)))
      throw not_supported_error("an array on a read-only " + std::string(device_.name()) +
                                " cannot be written");
  }

  /* ---- moving bytes ---- */

  /* Makes side current too if its contents are to be kept. The transfer may still be queued on
   * queue, which is device_ or another context of the same memory. */
  void bring(Side side, bool keep, Context const &queue) {
    if (is_shared_ || nbytes_ == 0) return;
    if (side == Side::host && !host_block_) {
      host_block_ = Buffer(host_, nbytes_, beyond_natural(host_));
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
    UMEM_TRACE(side == Side::host ? "umem::Array, to the host" : "umem::Array, to the device");
    if (side == Side::host)
      copy(queue, adr_, host_, host_block_.adr(), nbytes_);
    else
      copy(host_, host_block_.adr(), queue, adr_, nbytes_);
    pending_host_.add(queue);
    pending_host_.add(host_);
    transferred_ = std::exchange(current_, Side::both);
  }

  /* Waits for the last transfer. If it has failed, only the side that it came from is current. */
  void finish_transfer() {
    Side from = std::exchange(transferred_, Side::both);
    if (from == Side::both) return;
    try {
      pending_host_.synchronize();
    } catch (...) {
      current_ = from;
      throw;
    }
  }

  /* Makes side ready for work: the CPU may start at once when this returns, work queued on
   * device_ will start when it may. */
  void settle(Side side) {
    if (side == Side::device) return pending_device_.order_before(device_);
    finish_transfer();
    pending_host_.synchronize();
    if (!is_shared_) return;
    pending_device_.synchronize();
    if (device_.can(umemOrdered)) device_.synchronize();
  }

  /* The memory of a side; both means the device. */
  Location locate(Side side) {
    if (side == Side::both) side = Side::device;
    settle(side);
    return side == Side::host ? Location{&host_, host_block_.adr(), side}
                              : Location{&device_, adr_, side};
  }

  Context device_;
  Context host_; /* of the mirror; CPU-accessible */
  std::size_t nbytes_;
  std::size_t alignment_;  /* of the elements, or more */
  bool is_shared_ = false; /* the CPU works on device_'s memory: there is no mirror */
  bool is_foreign_ = false;
  address adr_ = 0;
  Buffer block_;      /* empty if foreign or without bytes */
  Buffer host_block_; /* the mirror; empty until its first use */
  AnyDeleter deleter_;
  Side current_ = Side::both;
  Side transferred_ = Side::both; /* source of a transfer that may still be queued and after which
                                     nothing was written; both: there is none */
  struct {
    Side current, transferred;
  } before_ = {Side::both, Side::both}; /* before the last overwrite of a side */
  Guards hosts_, devices_;
  std::uint64_t lock_ = 0; /* the key of its lock, 0 for none */
  std::uint64_t last_key_ = 0;
  PendingWork pending_host_, pending_device_;
};

} // namespace detail
} // namespace umem

#endif
