/* callbacks.h - functions of Python that umem calls. An exception of one ends the call that has run
 * it. */
#ifndef UMEM_PYTHON_CALLBACKS_H
#define UMEM_PYTHON_CALLBACKS_H

#include "call.h"

/* A umemRetryCallback; user: the Context of the umem.Retry. */
bool call_retry(void *user, void *ctx, size_t nbytes, size_t alignment, unsigned attempt);

/* Two functions of Python as the allocator of a umemExternal, which owns them. */
class ExternalFunctions {
  nb::object allocate_, deallocate_;

  static void *allocate(void *user, size_t nbytes, size_t alignment, uintptr_t stream);
  static void deallocate(void *user, void *block, size_t nbytes, size_t alignment,
                         uintptr_t stream);
  static void release(void *user);

public:
  ExternalFunctions(nb::object allocate, nb::object deallocate)
      : allocate_(std::move(allocate)), deallocate_(std::move(deallocate)) {}

  /* The functions, and this object as their user. */
  void write(umemExternalOptions &options);
};

/* What Progress::step gets as user. */
struct Progress {
  PyObject *function; /* borrowed; NULL: only Ctrl-C is looked for */

  /* The progress of umemCopyOptions and umemBlocksOptions. */
  static bool step(void *user, uint64_t done, uint64_t total);
};

#endif
