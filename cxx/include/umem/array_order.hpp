/* umem/array_order.hpp - work that ordered contexts have queued and that still uses some memory. */
#ifndef UMEM_ARRAY_ORDER_HPP
#define UMEM_ARRAY_ORDER_HPP

#include <umem/context.hpp>

#include <algorithm>
#include <exception>
#include <vector>

namespace umem {
namespace detail {

/* The contexts whose queued work must be complete before the memory gets another use. */
class PendingWork {
public:
  /* Adds what context has queued so far: nothing if it is not ordered. */
  void add(Context const &context) noexcept {
    if (!context.can(umemOrdered)) return;
    if (std::find(contexts_.begin(), contexts_.end(), context) != contexts_.end()) return;
    try {
      contexts_.push_back(context);
    } catch (std::exception const &) { /* without memory it waits at once */
      umem_synchronize(context.c_context());
    }
  }

  /* Returns when all of this work is complete. */
  void synchronize() {
    for (Context const &context : contexts_) context.synchronize();
    contexts_.clear();
  }

  /* Makes later work of context start after this work. */
  void order_before(Context const &context) {
    for (Context const &other : contexts_)
      if (other != context) context.wait(other);
    contexts_.clear();
  }

  /* The same for destructors: failures are recorded on the contexts. */
  void synchronize_quietly() noexcept {
    for (Context const &context : contexts_) umem_synchronize(context.c_context());
    contexts_.clear();
  }
  void order_before_quietly(Context const &context) noexcept {
    for (Context const &other : contexts_)
      if (other != context) umem_wait(context.c_context(), other.c_context());
    contexts_.clear();
  }

private:
  std::vector<Context> contexts_; /* each once */
};

} // namespace detail
} // namespace umem

#endif
