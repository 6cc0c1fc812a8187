/* child_help.h - cases that are a process of their own each, because a library is looked for once
 * in each. */
#pragma once

#include "workers.h"
#include "wrap.h"

static inline void call_function(void *run) { (*(void (**)(void))run)(); }

static inline void in_a_process(void (*run)(void)) { assert_true(child_run(call_function, &run)); }

/* A test whose body runs in a process. */
#define PROCESS_TEST(name)                                                                         \
  static void name##_in_child(void);                                                               \
  TEST_CASE(name) { in_a_process(name##_in_child); }                                               \
  static void name##_in_child(void)
