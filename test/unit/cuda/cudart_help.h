/* cudart_help.h - what the tests of the CUDA double share. */
#pragma once

#include "cuda_double.h"

#define refused(call, error) assert_int_equal(call, error)
#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)
#define DEVICE_TEST(name) TEST_CASE_WITH(name, set_up_device, tear_down)

static inline void expect_misuse(char const *words) {
  char const *misuse = fake_cudart_misuse();
  assert_non_null(misuse);
  if (!strstr(misuse, words)) assert_string_equal(misuse, words);
  fake_cudart_forget_misuse();
}

static inline void set_up(void **state UNUSED) {
  fake_cudart_reset();
  rt = fake_cudart();
}

/* GPU 0 is current. What the test leaves there goes with everything else. */
static inline void set_up_device(void **state) {
  set_up(state);
  enter(0);
}

static inline void tear_down(void **state UNUSED) {
  expect_no_misuse();
  fake_cudart_reset();
  assert_true(fake_cudart_is_clean());
}

/* On the current GPU. */
static inline void *new_block(size_t nbytes) {
  void *adr = NULL;
  ok(rt->malloc(&adr, nbytes));
  return adr;
}
static inline void *new_stream(void) {
  void *stream = NULL;
  ok(rt->stream_create(&stream));
  return stream;
}
static inline void *new_event(void) {
  void *event = NULL;
  ok(rt->event_create(&event));
  return event;
}

/* The byte there as it is now. */
static inline unsigned char byte_at(void const *adr) {
  unsigned char byte = 0;
  assert_true(fake_cudart_peek((uintptr_t)adr, &byte, 1));
  return byte;
}
