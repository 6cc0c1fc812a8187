/* umem/array_order.hpp - what was queued on ordered contexts and still uses some memory. */
#ifndef UMEM_ARRAY_ORDER_HPP
#define UMEM_ARRAY_ORDER_HPP

#include <umem/context.hpp>

#include <algorithm>
#include <exception>
#include <vector>

namespace umem {
namespace detail {

/* The contexts whose queues are to be waited for before the memory is used otherwise. */
class PendingWork {
public:
  /* What was queued on context so far. Nothing, where it is not ordered. */
  void add(Context const &context) noexcept {
    if (!context.can(umemOrdered)) return;
    if (std::find(contexts_.begin(), contexts_.end(), context) != contexts_.end()) return;
    try {
      contexts_.push_back(context);
    } catch (std::exception const &) { /* no memory: then at once */
      umem_synchronize(context.c_context());
    }
  }

  /* Returns when it is all complete. */
  void synchronize() {
    for (Context const &context : contexts_) context.synchronize();
    contexts_.clear();
  }

  /* Later work of context starts after it. */
  void order_before(Context const &context) {
    for (Context const &other : contexts_)
      if (other != context) context.wait(other);
    contexts_.clear();
  }

  /* The same for destructors: failures stay on the contexts. */
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
