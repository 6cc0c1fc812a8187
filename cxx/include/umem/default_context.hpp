/* umem/default_context.hpp - where arrays are that name no context.
 *
 *     umem::Using here(umem::Cuda(0));      // until the end of the block, for this thread
 *     umem::Array<double, 2> u({51, 51});   // on the GPU
 *
 *     umem::set_default_context(umem::open("pool+cuda:0")); // for all threads
 *
 * See umem/default.h for the initial defaults, and those of GPUs.
 *
 * Threads: any, at any time; in a child of fork the defaults only if no other thread of the parent
 * was just asking for them or setting them here. */
#ifndef UMEM_DEFAULT_CONTEXT_HPP
#define UMEM_DEFAULT_CONTEXT_HPP

#include <umem/context.hpp>

#include <mutex>

namespace umem {

namespace detail {

/* The handles that were made defaults here. */
struct Defaults {
  std::mutex mutex;
  std::atomic<bool> any{false};          /* whether set had one; before C knows it */
  Context set[1 + UMEM_DEFAULT_DEVICES]; /* of the process; of each device */
};

/* Never ends, so that destructors of static objects may use the defaults. */
UMEM_EXCEPTION inline Defaults &defaults() {
  static Defaults &defaults = *new Defaults;
  return defaults;
}

/* ask: umem_default, or umem_default_of the device of the slot. */
template <class Ask> Context default_of(std::size_t slot, Ask &&ask) {
  auto *ctx = static_cast<umemVirtual *>(ask()); /* maybe opens it: long, so without the lock */
  if (!ctx) raise_recorded(umem_thread_status());
  Defaults &all = defaults();
  if (!all.any.load(std::memory_order_acquire)) return Context::borrow(ctx);
  std::lock_guard<std::mutex> lock(all.mutex);
  ctx = static_cast<umemVirtual *>(ask());
  if (!ctx) raise_recorded(umem_thread_status());
  return all.set[slot].c_context() == ctx ? all.set[slot] : Context::borrow(ctx);
}

/* The context that was set before ends after the lock is released, unless it has other handles. */
inline void keep_default(std::size_t slot, Context &context, umemStatusType (*set)(int, void *),
                         int device) {
  Defaults &all = defaults();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (context) all.any.store(true, std::memory_order_release);
  check_status(set(device, context.c_context()));
  std::swap(all.set[slot], context);
}

} // namespace detail

/* As long as the object lives, its thread makes arrays that name no context on this one: with
 * umem_thread_default, so code in C does it, too. Objects of one thread end in the reverse order of
 * their construction, as variables do; each ends in the thread that has made it. Other threads do
 * not see it, nor those that begin meanwhile. Throws umem::value_error for an empty context. */
class UMEM_NODISCARD Using {
public:
  explicit Using(Context context)
      : context_(std::move(context)), before_(umem_thread_default()), outer_(innermost()) {
    if (!context_) throw value_error("Using: the context is empty");
    detail::check_status(umem_set_thread_default(context_.c_context()));
    innermost() = this;
  }
  ~Using() {
    innermost() = outer_;
    umem_set_thread_default(before_);
  }
  Using(Using const &) = delete;
  Using &operator=(Using const &) = delete;

  Context const &context() const noexcept { return context_; }

private:
  friend Context default_context();

  /* The innermost Using of the calling thread, or null. */
  UMEM_EXCEPTION static Using const *&innermost() {
    static thread_local Using const *using_ = nullptr;
    return using_;
  }

  Context context_;
  void *before_; /* what C had set */
  Using const *outer_;
};

/* Where arrays are that name no context: the context of the innermost Using of this thread, else
 * what set_default_context has set, else what the variable UMEM_DEFAULT names, else RAM. A handle
 * of a context that a program has set here keeps it alive. One that UMEM_DEFAULT names lives as
 * long as the process. One that C code has set is borrowed. Throws if the name in UMEM_DEFAULT
 * cannot be opened. */
inline Context default_context() {
  void *own = umem_thread_default();
  if (!own) return detail::default_of(0, [] { return umem_default(); });
  Using const *innermost = Using::innermost();
  if (innermost && innermost->context().c_context() == own) return innermost->context();
  return Context::borrow(static_cast<umemVirtual *>(own));
}

/* The default context of the GPU with this number. Throws umem::value_error if the number is not
 * from 0 to UMEM_DEFAULT_DEVICES - 1. */
inline Context default_context(int device) {
  return detail::default_of(1 + static_cast<std::size_t>(device),
                            [=] { return umem_default_of(device); }); /* which checks the number */
}

/* Makes context the default of the process and keeps it alive until another one is set. The
 * empty handle restores the initial default. Handles of the previous default stay valid; C code
 * that uses it without a handle must stop before. */
inline void set_default_context(Context context) {
  auto set = [](int, void *ctx) { return umem_set_default(ctx); };
  detail::keep_default(0, context, set, 0);
}

/* Sets the default context of the GPU with this number. */
inline void set_default_context(int device, Context context) {
  bool known = device >= 0 && device < UMEM_DEFAULT_DEVICES; /* else umem_set_default_of fails */
  detail::keep_default(known ? 1 + static_cast<std::size_t>(device) : 0, context,
                       umem_set_default_of, device);
}

} // namespace umem

#endif
