#include "fault/cuda/cuda_trial.h"

enum { seeds = 16 };

static umemCudaRt const *runtime;
static bool on_gpu;
static unsigned char pattern[largest + seeds], bytes[largest], back[largest];

void trial_use(umemCudaRt const *behind, bool is_real) {
  runtime = behind;
  on_gpu = is_real;
  for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (unsigned char)(i * 2654435761u >> 13);
}

void complain(Trial const *trial, char const *what, int line) {
  fail_msg("line %d: %s: %s, %s, call %lu (%s) fails with %d; \"%s\"", line, what, trial->row,
           trial->scenario, trial->nth, trial->failed ? trial->failed : "none", trial->error,
           umem_thread_message());
}

void forget_context(void) {
  void *context = NULL;
  while (!runtime->context_current(&context) && context) runtime->context_pop(&context);
}

bool is_where_it_was(void) {
  void *context = NULL, *first = NULL;
  if (runtime->context_current(&context)) return false;
  if (context && runtime->primary_retain(&first, 0)) return false;
  if (context) runtime->primary_release(0);
  return context == first && (on_gpu || fake_cudart_capture_mode() == 0);
}

bool settle(Trial *trial) {
  uint64_t failures = umem_thread_failures();
  bool good = failures == trial->failures;
  trial->failures = failures;
  trial->failed = cudart_wrap_failed();
  REQUIRE(trial, is_where_it_was());
  if (good) return true;
  REQUIRE(trial, umem_thread_status() != umemOK);
  REQUIRE(trial, !strncmp(umem_thread_message(), "umem", 4));
  if (trial->result == umemOK) trial->result = umem_thread_status();
  return false;
}

bool step(Trial *trial, umemStatusType status, int line) {
  bool good = settle(trial);
  if (good != (status == umemOK))
    complain(trial, "what was returned is not what was recorded", line);
  return good;
}

bool got(Trial *trial, umemVirtual *ctx, uintptr_t adr, int line) {
  bool good = settle(trial);
  if (good != (adr != umem_null(ctx))) complain(trial, "null is not what was recorded", line);
  return good;
}

void drop(Trial *trial, umemVirtual *ctx, uintptr_t adr) {
  umem_free(ctx, adr);
  if (settle(trial)) return;
  cudart_wrap_hold(true);
  umemAttempt again;
  umemAttempt_begin(&again);
  umem_free(ctx, adr);
  umemAttempt_end(&again);
  trial->failures = umem_thread_failures();
  cudart_wrap_hold(false);
}

/* ---- data ---- */

unsigned char byte_of(size_t i, unsigned seed) { return pattern[i + seed]; }

void fill(unsigned char *to, size_t n, unsigned seed) { memcpy(to, pattern + seed, n); }

bool is_filled(unsigned char const *from, size_t n, unsigned seed) {
  return !memcmp(from, pattern + seed, n);
}

void finish(Trial *trial) {
  cudart_wrap_hold(true);
  if (trial->ctx) REQUIRE(trial, umem_synchronize(trial->ctx) == umemOK);
  if (trial->peer) REQUIRE(trial, umem_synchronize(trial->peer) == umemOK);
  cudart_wrap_hold(false);
}

void put(Trial *trial, umemVirtual *ctx, uintptr_t adr, size_t n, unsigned seed) {
  cudart_wrap_hold(true);
  fill(bytes, n, seed);
  REQUIRE(trial, umem_copy_from(ctx, adr, &trial->host, (uintptr_t)bytes, n) == umemOK);
  REQUIRE(trial, umem_synchronize(ctx) == umemOK);
  cudart_wrap_hold(false);
}

unsigned char const *read_back(Trial *trial, umemVirtual *ctx, uintptr_t adr, size_t n) {
  cudart_wrap_hold(true);
  REQUIRE(trial, umem_copy_to(ctx, adr, &trial->host, (uintptr_t)back, n) == umemOK);
  REQUIRE(trial, umem_synchronize(ctx) == umemOK);
  cudart_wrap_hold(false);
  return back;
}

void require_filled(Trial *trial, umemVirtual *ctx, uintptr_t adr, size_t n, unsigned seed) {
  REQUIRE(trial, is_filled(read_back(trial, ctx, adr, n), n, seed));
}

uintptr_t block_of(Trial *trial, umemVirtual *ctx, size_t n, unsigned seed) {
  cudart_wrap_hold(true);
  uintptr_t adr = umem_alloc(ctx, n);
  cudart_wrap_hold(false);
  REQUIRE(trial, adr != umem_null(ctx));
  put(trial, ctx, adr, n, seed);
  return adr;
}
