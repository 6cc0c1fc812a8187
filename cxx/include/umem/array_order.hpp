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
  void add(Context const &context) noexcept;

  /* Returns when all of this work is complete. */
  void synchronize();

  /* Makes later work of context start after this work. */
  void order_before(Context const &context);

  /* The same for destructors: failures are recorded on the contexts. */
  void synchronize_quietly() noexcept;
  void order_before_quietly(Context const &context) noexcept;

private:
  std::vector<Context> contexts_; /* each once */
};

} // namespace detail
} // namespace umem

#endif
