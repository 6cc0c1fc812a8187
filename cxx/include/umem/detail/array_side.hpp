/* umem/detail/array_side.hpp - the memory of one side of an array, the guards of that side, and the
 * queued work that still uses the memory. */
#ifndef UMEM_DETAIL_ARRAY_SIDE_HPP
#define UMEM_DETAIL_ARRAY_SIDE_HPP

#include <umem/buffer.hpp>
#include <umem/detail/checks.hpp>

#include <algorithm>

namespace umem {

enum class Side; /* array_mirror.hpp */

namespace detail {

enum class Access { read, write, discard };

/* The location of the current bytes of an array, or of new ones. */
struct Location {
  Context const *context; /* borrowed from the array */
  address adr;            /* of the first byte */
  Side side;
};

/* Makes every item of nbytes equal to value. */
void fill_items(Location const &to, std::size_t nbytes, void const *value, std::size_t item_size);

/* The contexts whose queued work must be complete before the memory gets another use. */
class PendingWork {
public:
  /* Adds what context has queued so far: nothing if it is not ordered. */
  void add(Context const &context) noexcept;

  bool is_empty() const noexcept { return contexts_.empty(); }

  /* Returns when all of this work is complete. throws: its failures. Destructors leave these
   * recorded on the contexts. */
  void synchronize(bool throws = true);

  /* Makes later work of context start after this work. throws: as above. */
  void order_before(Context const &context, bool throws = true);

private:
  std::vector<Context> contexts_; /* each once */
};

/* The pages of memory of a umemGuarded are open while a guard of the side lives. */
struct ArraySide {
  explicit ArraySide(Context context_) : context(std::move(context_)) {}

  /* Takes a new block. alignment: of the elements. */
  void allocate(std::size_t nbytes, std::size_t alignment, bool zeroed);

  /* Throws unless an existing block at new_adr can be the memory. */
  void check_block(address new_adr, std::size_t alignment) const;

  /* Frees the block, also in a named file. */
  void deallocate() noexcept {
    block.deallocate();
    adr = 0;
  }

  /* Opens the pages for one more guard than the side has. */
  void open_pages(std::size_t nbytes, bool writes, unsigned guards);

  /* After the end of a guard; guards: those that are left. If the system refuses, the pages remain
   * open; the context has the failure. */
  void close_pages(std::size_t nbytes, unsigned guards) noexcept;

  /* Copies nbytes at an offset to or from memory of the program. by_cpu: the CPU uses this memory
   * by pointers. */
  void get(bool by_cpu, std::size_t offset, void *value, std::size_t nbytes) const;
  void set(bool by_cpu, std::size_t offset, void const *value, std::size_t nbytes) const;

  Context context;
  address adr = 0;             /* of the first byte; a null address while there is no memory */
  Buffer block;                /* empty if the memory is foreign, or while there is none */
  std::atomic<int> writers{0}; /* guards and loops; only one thread may write an array */
  PendingWork pending;
  bool closes = false; /* the pages are open only while a guard lives */
};

/* What a program asks of the memory of both sides; see ArrayOptions. */
struct MirrorOptions {
  Context host;               /* empty: that of context_of_mirror */
  std::size_t type_alignment; /* of an element */
  std::size_t alignment;      /* asked for, or 0 */
  bool zeroed = false;
};

/* The context of the mirror of an array on device where the program names none. */
Context context_of_mirror(Context const &device);

/* What checks of accesses know of an array; null if there is no memory for it. is_shared: both
 * sides are the memory of device. */
std::unique_ptr<Watched> watched_array(ArraySide const &host, ArraySide const &device,
                                       bool is_shared, std::size_t nbytes, ArrayUses const &uses,
                                       InWords const &shape) noexcept;

/* Throws umem::locked_error if guards forbid one more guard of the side `same`. others: the guards
 * of the other side. */
void check_guards(ArraySide const &same, ArraySide const &other, bool writes, unsigned others);

/* ---- the end of foreign memory ---- */

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

} // namespace detail
} // namespace umem

#endif

#if !defined(UMEM_ARRAY_SIDE_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_ARRAY_SIDE_FUNCTIONS

namespace umem::detail {

UMEM_INLINE void PendingWork::add(Context const &context) noexcept {
  if (!context.can(umemOrdered)) return;
  if (std::find(contexts_.begin(), contexts_.end(), context) != contexts_.end()) return;
  try {
    contexts_.push_back(context);
  } catch (std::exception const &) { /* without memory it waits at once */
    umem_synchronize(context.c_context());
  }
}

UMEM_INLINE void PendingWork::synchronize(bool throws) {
  for (Context const &context : contexts_) {
    umemStatusType const status = umem_synchronize(context.c_context());
    if (throws) check_status(status);
  }
  contexts_.clear();
}

UMEM_INLINE void PendingWork::order_before(Context const &context, bool throws) {
  for (Context const &other : contexts_) {
    if (other == context) continue;
    umemStatusType const status = umem_wait(context.c_context(), other.c_context());
    if (throws) check_status(status);
  }
  contexts_.clear();
}

/* Closes the pages of a new block. False if it has no pages of its own, for example in a pool. */
UMEM_INLINE bool close_new(Context const &context, address adr, std::size_t nbytes) {
  if (!context.can(umemSeparate)) return false;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  umemGuarded_protect(context.c_context(), adr, nbytes, umemGuardedClosed);
  umemAttempt_end(&attempt);
  if (attempt.type == umemValueError) return false; /* a part of a block of the umemGuarded */
  check_status(umemAttempt_record(&attempt));
  return true;
}

UMEM_INLINE void ArraySide::allocate(std::size_t nbytes, std::size_t alignment, bool zeroed) {
  alignment = beyond_natural(context, alignment);
  Buffer made =
      zeroed ? Buffer::zeroed(context, nbytes, alignment) : Buffer(context, nbytes, alignment);
  closes = close_new(context, made.adr(), nbytes);
  adr = made.adr();
  block = std::move(made);
}

UMEM_INLINE void ArraySide::check_block(address new_adr, std::size_t alignment) const {
  if (new_adr == context.null())
    raise_text(umemValueError, "an array around the null address of %s", context.name());
  if (!context.can(umemOffsets) && new_adr % alignment != 0)
    raise_text(umemValueError,
               "the address of the elements is no multiple of their alignment of %zu", alignment);
}

UMEM_INLINE void ArraySide::open_pages(std::size_t nbytes, bool writes, unsigned guards) {
  if (!closes || writers || (guards && !writes)) return;
  check_status(umemGuarded_protect(context.c_context(), adr, nbytes,
                                   writes ? umemGuardedWrite : umemGuardedRead));
}

UMEM_INLINE void ArraySide::close_pages(std::size_t nbytes, unsigned guards) noexcept {
  if (closes && !writers)
    umemGuarded_protect(context.c_context(), adr, nbytes,
                        guards ? umemGuardedRead : umemGuardedClosed);
}

UMEM_INLINE void ArraySide::get(bool by_cpu, std::size_t offset, void *value,
                                std::size_t nbytes) const {
  if (by_cpu && !closes)
    std::memcpy(value, reinterpret_cast<char const *>(adr) + offset, nbytes);
  else
    copy(context, adr + offset, value, nbytes);
}

UMEM_INLINE void ArraySide::set(bool by_cpu, std::size_t offset, void const *value,
                                std::size_t nbytes) const {
  if (by_cpu && !closes)
    std::memcpy(reinterpret_cast<char *>(adr) + offset, value, nbytes);
  else
    copy(value, context, adr + offset, nbytes);
}

UMEM_INLINE void fill_items(Location const &to, std::size_t nbytes, void const *value,
                            std::size_t item_size) {
  std::size_t chunk_items = std::max<std::size_t>(1, (std::size_t(1) << 18) / item_size);
  chunk_items = std::min(chunk_items, nbytes / item_size);
  std::vector<char> chunk(chunk_items * item_size);
  for (std::size_t i = 0; i < chunk_items; i++)
    std::memcpy(chunk.data() + i * item_size, value, item_size);
  for (std::size_t done = 0; done < nbytes; done += chunk.size())
    copy(chunk.data(), *to.context, to.adr + done, std::min(chunk.size(), nbytes - done));
}

UMEM_INLINE Context context_of_mirror(Context const &device) {

  if (!device.can(umemSeparate)) return pointers();
  struct HostSide : Context {
    HostSide() : Context(make_over(pointers(), umemGuarded_ctor)) {}
  };
  HostSide host;
  char label[UMEM_LABEL_SIZE];
  std::snprintf(label, sizeof label, "host side of %.40s",
                *umem_get_label(device.c_context()) ? umem_get_label(device.c_context())
                                                    : device.name());
  check_status(umem_set_label(host.c_context(), label));
  return host;
}

UMEM_INLINE std::unique_ptr<Watched> watched_array(ArraySide const &host, ArraySide const &device,
                                                   bool is_shared, std::size_t nbytes,
                                                   ArrayUses const &uses,
                                                   InWords const &shape) noexcept {
  std::unique_ptr<Watched> watched(new (std::nothrow) Watched());
  if (!watched) return nullptr;
  *watched = {nullptr,
              {is_shared ? device.adr : host.adr, is_shared ? 0 : device.adr},
              nbytes,
              &uses,
              {(is_shared ? device : host).context.c_context(), device.context.c_context()},
              {}};
  std::snprintf(watched->shape, sizeof watched->shape, "%s", shape.text);
  return watched;
}

UMEM_INLINE void check_guards(ArraySide const &same, ArraySide const &other, bool writes,
                              unsigned others) {
  if (other.writers) throw locked_error("a guard to write the other side of the array is alive");
  if (!writes) return;
  if (same.writers) throw locked_error("a guard to write the array is alive");
  if (others) throw locked_error("a guard to read the other side of the array is alive");
}

} // namespace umem::detail

#endif
