/* child_help.h - cases that are a process of their own each, because a library is looked for once
 * in each. */
#ifndef UMEM_TEST_CHILD_HELP_H
#define UMEM_TEST_CHILD_HELP_H

#include "workers.h"
#include "wrap.h"

#include <stdio.h>
#include <umem.h>

/* In the child. */
#define REQUIRE(condition)                                                                         \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, umem_thread_message());           \
      _exit(1);                                                                                    \
    }                                                                                              \
  } while (0)

static inline void in_a_process(void (*run)(void)) {
  pid_t child = fork();
  if (child == 0) {
    run();
    _exit(0);
  }
  assert_int_equal(status_of(child), 0);
}

/* A test whose body runs in a process. */
#define PROCESS_TEST(name)                                                                         \
  static void name##_in_child(void);                                                               \
  TEST_CASE(name) { in_a_process(name##_in_child); }                                               \
  static void name##_in_child(void)

#endif
