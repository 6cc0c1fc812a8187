/* opened.h - contexts that a test opens by name, and that end when its tear-down closes all.
 *
 *     void *ctx = opened("limit+cuda:0?limit=1M");
 *     ...
 *     close_opened(); // in the tear-down: the last one first
 *
 * The blocks of most contexts end with them. */
#pragma once

#include "cases.h"

enum { opened_most = 32 };
static void *opened_contexts[opened_most];
static unsigned opened_count;

/* name: for printf. Fails the test if the context cannot be opened. */
__attribute__((format(printf, 1, 2))) static inline void *opened(char const *name, ...) {
  char text[600];
  va_list arguments;
  va_start(arguments, name);
  int length = vsnprintf(text, sizeof text, name, arguments);
  va_end(arguments);
  assert_in_range(length, 1, sizeof text - 1);
  void *ctx = umem_open(text);
  if (!ctx) fail_msg("%s: %s", text, umem_thread_message());
  assert_true(opened_count < opened_most);
  return opened_contexts[opened_count++] = ctx;
}

/* Closes one before the others. Returns as umem_close does. */
static inline umemStatusType close_one(void *ctx) {
  for (unsigned i = 0; i < opened_count; i++)
    if (opened_contexts[i] == ctx) opened_contexts[i] = NULL;
  return umem_close(ctx);
}

static inline void close_opened(void) {
  while (opened_count) assert_int_equal(umem_close(opened_contexts[--opened_count]), umemOK);
}
