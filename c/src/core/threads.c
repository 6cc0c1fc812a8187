/* threads.c - see umem/threads.h. The threads themselves are in core/parallel.c. */
#include "core/enter.h"
#include "core/parallel.h"

#include <umem/threads.h>

_Static_assert(UMEM_MAX_THREADS == (int)umemParallelMost, "a thread for every piece");

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
