/* umem/any_context.hpp - the handle of any context, and copies between two. Programs include
 * context.hpp.
 *
 * Copies of a handle share the context. It ends with its last handle and the last
 * buffer, array or adaptor that uses it. A moved-from handle is empty.
 *
 * Failures are exceptions (error.hpp). A destructor cannot throw a failure that only the end of
 * a context reveals, such as a failing close: flush first, or set umem_set_failure_hook. The C
 * context also keeps its own record of failures, for umem_get_status.
 *
 * Threads: see umem/context.h for contexts; handles follow the rules of std::shared_ptr. */
#ifndef UMEM_ANY_CONTEXT_HPP
#define UMEM_ANY_CONTEXT_HPP

#include <umem.h>
#include <umem/error.hpp>

#include <atomic>
#include <memory>
#include <vector>

namespace umem {

/* The address of a byte: a pointer, or an offset in a file. */
using address = std::uintptr_t;

namespace detail {

/* Memory for a C context of any type, and its end. One class for all types: a template for each
 * would take a tenth of the time that umem.hpp takes to compile. */
struct HeldContext {
  HeldContext(std::size_t size, std::shared_ptr<void> kept);
  HeldContext(HeldContext const &) = delete;
  HeldContext &operator=(HeldContext const &) = delete;
  ~HeldContext();

  std::shared_ptr<void> below; /* what the C context uses; may be empty; released after its end */
  void *memory;
  umemVirtual *constructed = nullptr; /* the C context in the memory, once constructed */
};

/* Memory for a context of so many bytes, which keeps below. */
std::shared_ptr<HeldContext> hold_context(std::size_t size, std::shared_ptr<void> below);

/* The context in this memory, which its constructor has left with status; throws its failure. */
std::shared_ptr<umemVirtual> started(std::shared_ptr<HeldContext> const &held,
                                     umemStatusType status, umemVirtual *context);

/* The number of the device of a context, which never changes. A handle asks for it once, and
 * copies made later know it. Asking costs a call of the driver of the GPU. */
class Ordinal {
public:
  Ordinal() = default;
  Ordinal(Ordinal const &other) noexcept : value_(other.load()) {}
  Ordinal &operator=(Ordinal const &other) noexcept {
    value_.store(other.load(), std::memory_order_relaxed);
    return *this;
  }

  template <class Ask> std::int64_t get(Ask &&ask) const {
    if (load() == unasked) value_.store(ask(), std::memory_order_relaxed);
    return load();
  }

private:
  static constexpr std::int64_t unasked = INT64_MIN;

  std::int64_t load() const noexcept { return value_.load(std::memory_order_relaxed); }

  mutable std::atomic<std::int64_t> value_{unasked}; /* many threads may ask one handle */
};

} // namespace detail

class Place;

class Context {
public:
  /* An empty handle: every call but the tests of emptiness throws umem::value_error. */
  Context() = default;

  /* Shares the ownership of a context that C code has constructed. The deleter of the shared_ptr
   * must call umem_dtor and free the struct. */
  explicit Context(std::shared_ptr<umemVirtual> context) : context_(std::move(context)) {}

  /* Borrows a context that outlives all handles and everything that uses them; they do not end
   * it. */
  static Context borrow(umemVirtual *context) {
    return Context(std::shared_ptr<umemVirtual>(std::shared_ptr<void>(), context));
  }

  /* A handle that borrows a umemHost, umemFile, ...: any C context, whose first member is its
   * base. */
  template <class CContext> static Context borrow(CContext *context) {
    static_assert(std::is_same_v<decltype(context->super), umemVirtual>);
    return borrow(context ? &context->super : nullptr);
  }

  explicit operator bool() const noexcept { return static_cast<bool>(context_); }

  /* The C context, which belongs to the handles; NULL if empty. */
  umemVirtual *c_context() const noexcept { return context_.get(); }

  /* Gives a hint about nbytes at adr: umem_advise. advice: the hint. device: a GPU, or UMEM_CPU. */
  void advise(address adr, std::size_t nbytes, umemAdvice advice, int device = UMEM_CPU) const {
    detail::check_status(umem_advise(c_context(), adr, nbytes, advice, device));
  }

  /* ---- questions ---- */

  /* Returns the bytes that are a share of those that are free: umem_get_available_share. share:
   * from 0 to 1. */
  std::size_t available_share(double share) const {
    return detail::checked_call(umem_get_available_share, static_cast<void *>(c_context()), share);
  }

  char const *name() const noexcept { return umem_get_device_name(c_context()); }
  address null() const noexcept { return umem_null(c_context()); }
  std::size_t alignment() const noexcept { return context_ ? context_->alignment : 1; }

  /* Whether the context has all of these umemCapability. */
  bool can(unsigned capabilities) const noexcept {
    return context_ && (context_->capabilities & capabilities) == capabilities;
  }
  bool is_cpu_accessible() const noexcept { return can(umemCpuReadable | umemCpuWritable); }

  /* The context below a pool, a limit or another adaptor: the next layer of a stack. Empty if
   * there is none. The handle keeps that context alive too. */
  Context upstream() const;

  /* The outermost layer of this kind, "stats" for example, in the stack of this context:
   * umem_find_layer. The handle keeps this context alive too. umem::value_error where there is
   * none. */
  Context find_layer(char const *kind) const { return Context(layer(kind, umemValueError)); }

  /* A name that the program gives to the context, for messages and umem::find. Empty without one.
   * "" removes it. */
  std::string label() const { return umem_get_label(c_context()); }
  void set_label(std::string const &label) const {
    detail::check_status(umem_set_label(c_context(), label.c_str()));
  }

  umemInfo info() const;

  /* Whether addresses of one are addresses of the other. */
  bool is_same_device(Context const &other) const {
    return detail::checked_call(umem_is_same_device, c_context(), other.c_context());
  }

  /* Whether both are handles of one context, or empty. */
  friend bool operator==(Context const &one, Context const &other) noexcept {
    return one.context_ == other.context_;
  }
  friend bool operator!=(Context const &one, Context const &other) noexcept {
    return !(one == other);
  }

  /* ---- memory; Buffer does this with ownership ---- */

  /* nbytes at a multiple of alignment (0: the natural one). */
  address allocate(std::size_t nbytes, std::size_t alignment = 0) const {
    return checked(alignment ? umem_aligned_alloc(c_context(), alignment, nbytes)
                             : umem_alloc(c_context(), nbytes));
  }

  /* Allocates a block with every byte zero. */
  address allocate_zeroed(std::size_t nbytes, std::size_t alignment = 0) const;

  /* Makes a block that was allocated without alignment new_size bytes long, and returns its new
   * address. On failure the old block is untouched. */
  address reallocate(address adr, std::size_t old_size, std::size_t new_size) const {
    return checked(umem_realloc(c_context(), adr, old_size, new_size));
  }

  /* Frees a block of allocate, allocate_zeroed or reallocate; alignment as given there. */
  void deallocate(address adr, std::size_t alignment = 0) const {
    std::uint64_t before = umem_thread_failures();
    if (alignment)
      umem_aligned_free(c_context(), adr);
    else
      umem_free(c_context(), adr);
    detail::check_since(before);
  }

  /* Sets nbytes to (unsigned char)c. */
  void set(address adr, int c, std::size_t nbytes) const {
    detail::check_status(umem_set(c_context(), adr, c, nbytes));
  }

  /* ---- order and durability ---- */

  /* Returns when all work queued here is complete, and throws its failures. */
  void synchronize() const { detail::check_status(umem_synchronize(c_context())); }

  /* Later work here starts only after what other has queued so far. */
  void wait(Context const &other) const {
    detail::check_status(umem_wait(c_context(), other.c_context()));
  }

  /* Makes what was written durable. */
  void flush() const { detail::check_status(umem_flush(c_context())); }

  /* Frees unused storage, all but about keep bytes. */
  void trim(std::size_t keep = 0) const { detail::check_status(umem_trim(c_context(), keep)); }

protected:
  /* Constructs a C context of type C, a C struct: construct(C *) returns its status. For handles of
   * contexts from outside of umem, too:
   *
   *     class MyMem : public umem::Context {
   *     public:
   *       explicit MyMem(std::size_t size)
   *           : Context(make<umemMyMem>(
   *                 [=](umemMyMem *ctx) { return umemMyMem_ctor(ctx, size); })) {}
   *     };
   *
   * below is kept until the C context has ended: owner(upstream) of one that goes over another. */
  template <class CContext, class Construct>
  static std::shared_ptr<umemVirtual> make(Construct &&construct,
                                           std::shared_ptr<void> below = nullptr) {
    static_assert(std::is_trivially_destructible_v<CContext> &&
                  alignof(CContext) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    auto held = detail::hold_context(sizeof(CContext), std::move(below));
    auto *context = new (held->memory) CContext();
    umemStatusType status = construct(context);
    return detail::started(held, status, &context->super);
  }

  /* Constructs a context of umem by its constructor in C, construct(C *, args...); below as for
   * make. */
  template <class CContext, class... Parameters, class... Args>
  static std::shared_ptr<umemVirtual>
  make_by(std::shared_ptr<void> below, umemStatusType (*construct)(CContext *, Parameters...),
          Args... args) {
    auto held = detail::hold_context(sizeof(CContext), std::move(below));
    auto *context = new (held->memory) CContext();
    return detail::started(held, construct(context, args...), &context->super);
  }

  /* Constructs one that goes over another, which it keeps alive: construct(C *, upstream,
   * args...). */
  template <class Construct, class... Args>
  static std::shared_ptr<umemVirtual> make_over(Context const &upstream, Construct *construct,
                                                Args... args) {
    return make_by(owner(upstream), construct, upstream.c_context(), args...);
  }

  /* For the handle of one kind of context: the outermost layer of that kind in the stack of
   * context, which it keeps alive. Throws the failure, which is recorded nowhere; umem::type_error
   * where there is no such layer. */
  static std::shared_ptr<umemVirtual> layer_of(Context const &context, char const *kind) {
    return context.layer(kind, umemTypeError);
  }

  /* A share in what keeps a context alive; empty for an empty handle and a borrowed context. */
  static std::shared_ptr<void> owner(Context const &context) noexcept { return context.context_; }

private:
  friend class Place;

  /* none: what is thrown where the stack is whole, and has no such layer. */
  std::shared_ptr<umemVirtual> layer(char const *kind, umemStatusType none) const;

  /* As in info(). */
  std::int64_t ordinal() const {
    return ordinal_.get([this] { return info().ordinal; });
  }

  address checked(address adr) const {
    if (adr == null()) detail::raise_recorded(umem_thread_status());
    detail::forget_thrown();
    return adr;
  }

  std::shared_ptr<umemVirtual> context_;
  detail::Ordinal ordinal_;
};

/* ---- copies ---- */

/* Copies nbytes between any two contexts. */
inline void copy(Context const &src, address src_adr, Context const &dst, address dst_adr,
                 std::size_t nbytes) {
  detail::check_status(umem_copy_to(src.c_context(), src_adr, dst.c_context(), dst_adr, nbytes));
}

/* The items of a layout: umem_copy_strided. */
inline void copy(Context const &src, address src_adr, Context const &dst, address dst_adr,
                 umemLayout const &layout) {
  detail::check_status(
      umem_copy_strided(src.c_context(), src_adr, dst.c_context(), dst_adr, &layout));
}

namespace detail {

/* The Host whose addresses are all pointers of the program. It never ends, so that destructors of
 * static objects may copy. */
Context const &pointers();

template <class Progress>
using if_progress =

    std::enable_if_t<std::is_invocable_r_v<bool, Progress &, std::uint64_t, std::uint64_t>>;

/* A function of the program that C calls as the progress of a copy. */
template <class Progress> struct ProgressCall {
  Progress &progress;
  std::exception_ptr thrown;

  template <class Options> void write(Options &options) {
    options.user = this;
    options.progress = [](void *user, std::uint64_t done, std::uint64_t total) -> bool {
      ProgressCall &self = *static_cast<ProgressCall *>(user);
      if (self.thrown) return false;
      try {
        return self.progress(done, total);
      } catch (...) { /* must not pass through C */
        self.thrown = std::current_exception();
        return false;
      }
    };
  }

  template <class Options> void write(Options &options, std::size_t step) {
    options.step = step;
    write(options);
  }

  /* After the copy: throws what the function has thrown. */
  void rethrow() {
    if (!thrown) return;
    umem_thread_clear();
    std::rethrow_exception(std::exchange(thrown, nullptr));
  }
};

} // namespace detail

/* As the first, with calls of progress(done, total) after each step bytes (0: umem chooses). If
 * progress returns false, the copy ends with umem::cancelled_error. If progress throws, the copy
 * ends too, and throws the same exception. */
template <class Progress, class = detail::if_progress<Progress>>
void copy(Context const &src, address src_adr, Context const &dst, address dst_adr,
          std::size_t nbytes, Progress &&progress, std::size_t step = 0) {
  detail::ProgressCall<std::remove_reference_t<Progress>> call{progress, nullptr};
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  call.write(options, step);
  umemStatusType status =
      umem_copy_to_with(src.c_context(), src_adr, dst.c_context(), dst_adr, nbytes, &options);
  call.rethrow();
  detail::check_status(status);
}

/* Copies nbytes to memory of the program. The copy is complete on return. */
inline void copy(Context const &src, address src_adr, void *dst, std::size_t nbytes) {
  copy(src, src_adr, detail::pointers(), reinterpret_cast<address>(dst), nbytes);
  if (src.can(umemOrdered)) src.synchronize();
}

/* Copies nbytes from memory of the program, which the program may reuse on return. */
inline void copy(void const *src, Context const &dst, address dst_adr, std::size_t nbytes) {
  copy(detail::pointers(), reinterpret_cast<address>(src), dst, dst_adr, nbytes);
  if (dst.can(umemOrdered)) dst.synchronize();
}

} // namespace umem

#endif
