/* cuda_double.h - the double of CUDA's runtime in place of the real one, for the time of a test. */
#pragma once

#include "cases.h"
#include "fake/cudart.h"

static umemCudaRt const *rt UNUSED;

#define ok(call) assert_int_equal(call, umemCudaSuccess)

/* The double is as at first. */
static inline void begin_double(void) {
  fake_cudart_reset();
  rt = fake_cudart();
  umemCudaRt_replace(rt);
  umem_thread_clear();
}

static inline void expect_no_misuse(void) {
  if (fake_cudart_misuse()) fail_msg("misuse: %s", fake_cudart_misuse());
}

/* What a test may leave there that cannot tidy up any more, after a failure for example. */
static inline void abandon_double(void) {
  expect_no_misuse();
  umemCudaRt_replace(NULL);
  fake_cudart_reset();
}

/* All contexts are destructed: nothing of theirs may be left. */
static inline void end_double(void) {
  FakeCudartLive left = fake_cudart_live();
  if (!fake_cudart_is_clean())
    fail_msg("left: %zu blocks, %zu managed, %zu pinned, %zu registered, %zu streams, %zu events, "
             "%zu pools, %zu pages, %zu ranges, %zu contexts",
             left.blocks, left.managed, left.pinned, left.registered, left.streams, left.events,
             left.pools, left.pages, left.ranges, left.contexts);
  abandon_double();
}

/* Makes a GPU current for calls of the table. */
static inline void enter(int device) {
  void *context = NULL;
  ok(rt->primary_retain(&context, device));
  ok(rt->context_push(context));
}

static inline void leave(int device) {
  void *context = NULL;
  ok(rt->context_pop(&context));
  ok(rt->primary_release(device));
}
