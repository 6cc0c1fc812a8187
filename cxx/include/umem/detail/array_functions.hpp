/* umem/detail/array_functions.hpp - what array_order.hpp and array_mirror.hpp declare. */
#ifndef UMEM_DETAIL_ARRAY_FUNCTIONS_HPP
#define UMEM_DETAIL_ARRAY_FUNCTIONS_HPP

#include <umem/array_mirror.hpp>
#include <umem/guarded.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <utility>
#include <vector>

namespace umem {
namespace detail {

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

} // namespace detail
} // namespace umem

#endif
