/* child_help.h - cases that are a process of their own each, because a library is looked for once
 * in each. */
#ifndef UMEM_TEST_CHILD_HELP_H
#define UMEM_TEST_CHILD_HELP_H

#include "cases.h"

#include <stdio.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

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
  assert_true(child >= 0);
  if (child == 0) {
    run();
    _exit(0);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

#endif
