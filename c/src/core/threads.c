/* threads.c - see umem/threads.h. The threads themselves are in core/parallel.c. */
#include "core/enter.h"
#include "base/thread.h"
#include "core/parallel.h"

#include <umem/threads.h>

_Static_assert(UMEM_MAX_THREADS == (int)umemParallelThreadsMost, "as many as there may be workers");

umemStatusType umem_set_threads(unsigned count) {
  UMEM_ENTER();
  if (count > UMEM_MAX_THREADS)
    return umemVirtual_fail(NULL, umemValueError, "%u threads are more than %d", count,
                            UMEM_MAX_THREADS);
  umem_defer_cancel();
  umem_parallel_set(count);
  return umemOK;
}

unsigned umem_get_threads(void) { return umem_parallel_threads(); }

unsigned umem_get_parallel_threads(void) { return umem_parallel_loop_threads(); }

typedef struct Body {
  umemParallelBody *function;
  void *data;
} Body;

static void call_body(void *job, unsigned piece) {
  Body const *body = job;
  UMEM_STEP_ASIDE(running);
  body->function(body->data, piece);
}

umemStatusType umem_parallel_for(unsigned count, umemParallelBody *body, void *data) {
  UMEM_ENTER();
  if (!body) return umemVirtual_fail(NULL, umemValueError, "the function to call is NULL");
  uint64_t before = umem_thread.failures;
  if (count) umem_parallel_loop(count, call_body, &(Body){body, data});
  return umem_result(before);
}
