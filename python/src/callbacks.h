/* callbacks.h - functions of Python that umem calls. An exception of one ends the call that has run
 * it. */
#ifndef UMEM_PYTHON_CALLBACKS_H
#define UMEM_PYTHON_CALLBACKS_H

#include "call.h"

/* A umemRetryCallback; user: the Context of the umem.Retry. */
bool call_retry(void *user, void *ctx, size_t nbytes, size_t alignment, unsigned attempt);

/* What Progress::step gets as user. */
struct Progress {
  PyObject *function; /* borrowed; NULL: only Ctrl-C is looked for */

  /* The progress of umemCopyOptions and umemBlocksOptions. */
  static bool step(void *user, uint64_t done, uint64_t total);
};

#endif
