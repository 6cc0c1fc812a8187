#include "cudart_wrap.h"

#include <stdatomic.h>

static umemCudaRt const *inner;

static struct {
  atomic_bool held;
  atomic_long left; /* calls until the one that fails; below 1: it has failed, or none is to */
  atomic_int error;
  _Atomic(char const *) failed;
} plan;

static struct {
  atomic_long nothing, blocks, pinned, registered, streams, events, pools, ranges, primaries;
} live;

/* ---- the plan ---- */

void cudart_wrap_fail(unsigned long nth, int error) {
  atomic_store(&plan.failed, NULL);
  atomic_store(&plan.error, error);
  atomic_store(&plan.left, (long)nth);
}

char const *cudart_wrap_off(void) {
  atomic_store(&plan.left, 0);
  return cudart_wrap_failed();
}

char const *cudart_wrap_failed(void) { return atomic_load(&plan.failed); }

void cudart_wrap_hold(bool hold) { atomic_store(&plan.held, hold); }

/* The error that a call of function must return, or 0. */
static int enter(char const *function) {
  if (atomic_load(&plan.held) || atomic_fetch_sub(&plan.left, 1) != 1) return umemCudaSuccess;
  atomic_store(&plan.failed, function);
  return atomic_load(&plan.error);
}

CudartWrapLive cudart_wrap_live(void) {
  return (CudartWrapLive){live.blocks, live.pinned, live.registered, live.streams,
                          live.events, live.pools,  live.ranges,     live.primaries};
}

/* ---- the functions ---- */

static char const *wrap_error_name(int error) { return inner->error_name(error); }
static char const *wrap_error_string(int error) { return inner->error_string(error); }
static int wrap_last_error(void) { return inner->last_error(); }

#define FUNCTION(name, parameters, arguments, needs, made, change)                                 \
  static int wrap_##name parameters {                                                              \
    int error = enter(#name);                                                                      \
    if (!error) error = inner->name arguments;                                                     \
    if (!error && (change)) atomic_fetch_add(&live.made, (change));                                \
    return error;                                                                                  \
  }
#include "cudart_functions.h"

static struct umemCufileRt const *wrap_cufile(void) { return inner->cufile(); }
static char const *wrap_absence(void) { return inner->absence(); }

umemCudaRt const *cudart_wrap(umemCudaRt const *behind) {
  static umemCudaRt const table = {
#define FUNCTION(name, parameters, arguments, needs, made, change) .name = wrap_##name,
#include "cudart_functions.h"
      .error_name = wrap_error_name,
      .error_string = wrap_error_string,
      .last_error = wrap_last_error,
      .cufile = wrap_cufile,
      .absence = wrap_absence,
  };
  inner = behind;
  return &table;
}
