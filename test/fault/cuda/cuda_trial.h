/* cuda_trial.h - one run of a scenario on a CUDA context while a call of the runtime fails, and
 * what must hold after each of its steps.
 *
 * All checks end in cmocka's fail_msg, with the context, the scenario and the fault named. */
#pragma once

#include "cases.h"
#include "cuda/cuda_pinned.h"
#include "fake/cudart.h"
#include "fake/cudart_wrap.h"

typedef struct Trial {
  char const *row, *scenario;
  int error;
  unsigned long nth;
  char const *failed; /* the function that has failed, once it is known */
  umemVirtual *ctx, *peer;
  umemHost host;
  umemStatusType result; /* of the first step that failed */
  uint64_t failures;     /* of this thread, after the last step */
  CudartWrapLive before;
} Trial;

/* The runtime behind the table with the faults, and whether it is the real one. */
void trial_use(umemCudaRt const *behind, bool is_real);

void complain(Trial const *trial, char const *what, int line);
#define REQUIRE(trial, condition) ((condition) ? (void)0 : complain((trial), #condition, __LINE__))

/* Makes this thread one without a current context. */
void forget_context(void);

/* Whether this thread is where it was: in no context, or in that of GPU 0, which remains current
 * in a thread that had none, and in the mode of captures that it began in.
 * (To ask CUDA for the mode would make a context current.) */
bool is_where_it_was(void);

/* Ends a step: whether it succeeded. */
bool settle(Trial *trial);

/* A call that returned status, which must agree with what the thread recorded. */
bool step(Trial *trial, umemStatusType status, int line);
#define STEP(trial, call) step((trial), (call), __LINE__)

/* A call that returned adr: null, if it failed. */
bool got(Trial *trial, umemVirtual *ctx, uintptr_t adr, int line);
#define GOT(trial, ctx, adr, call) got((trial), (ctx), (adr) = (call), __LINE__)

/* Frees adr, null or not. What could not be freed is tried again with the faults held back. */
void drop(Trial *trial, umemVirtual *ctx, uintptr_t adr);

/* ---- data; with the faults held back ---- */

enum {
  small = 3000,
  middle = 100 << 10,
  /* Goes through buffers on its way to the host and between the device and files; is registered
   * when pinned. */
  large = umemStagingToHost,
  largest = umemStagingToDevice, /* goes through buffers both ways */
  fed = 4 << 20,                 /* as a transfer, by threads that share pieces of it */
};

/* n bytes of seed, which is less than 16. */
unsigned char byte_of(size_t i, unsigned seed);
void fill(unsigned char *to, size_t n, unsigned seed);
bool is_filled(unsigned char const *from, size_t n, unsigned seed);

/* Waits for both contexts. */
void finish(Trial *trial);

/* Writes n bytes of seed to adr. */
void put(Trial *trial, umemVirtual *ctx, uintptr_t adr, size_t n, unsigned seed);

/* Reads n bytes at adr. They stay until the next call. */
unsigned char const *read_back(Trial *trial, umemVirtual *ctx, uintptr_t adr, size_t n);

void require_filled(Trial *trial, umemVirtual *ctx, uintptr_t adr, size_t n, unsigned seed);

/* A block of n bytes of seed. */
uintptr_t block_of(Trial *trial, umemVirtual *ctx, size_t n, unsigned seed);
