/* child.h - parts of a test that run in a process of their own. */
#pragma once

#include <sys/types.h>

#include "cases.h"
#include "sanitizer.h"

/* The exit status of a child that found the machine not to permit what it wanted to test. */
enum { child_not_permitted = 77, child_seconds = 120 };

/* In a child: ends it, and with it the parent's test, when the condition is false. Not by exit:
 * what the parent registered for its end is none of the child's business. */
static inline void child_expect(bool condition, char const *text, char const *file, int line) {
  if (condition) return;
  fprintf(stderr, "%s:%d: in a child: %s is false (errno: %s)\n  thread: %s \"%s\"\n", file, line,
          text, strerror(errno), umem_get_status_name(umem_thread_status()), umem_thread_message());
  _exit(1);
}
#define EXPECT(condition) child_expect((condition), #condition, __FILE__, __LINE__)

/* Starts function(argument) in a child, which ends with status 0 when it returns, and is killed
 * when it takes child_seconds: a deadlock is a failure, not a hang. */
static inline pid_t child_start(void (*function)(void *), void *argument) {
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child) return child;
  alarm(child_seconds);
  function(argument);
  _exit(0);
}

/* Waits for a child: its exit status, or minus the signal that killed it. */
static inline int child_wait(pid_t child) {
  int status = 0;
  pid_t found;
  do found = waitpid(child, &status, 0);
  while (found < 0 && errno == EINTR);
  assert_int_equal(found, child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* Runs the statement or block behind it in a child, which must come to its end:
 *
 *     IN_CHILD EXPECT(umem_alloc(&shm, 100)); */
#define IN_CHILD for (pid_t child_ = fork(); child_is_self(child_); _exit(0))
static inline bool child_is_self(pid_t child) {
  assert_true(child >= 0);
  if (child) assert_int_equal(child_wait(child), 0);
  return !child;
}

/* Kills a child that does not end by itself. */
static inline void child_kill(pid_t child) {
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(child_wait(child), -SIGKILL);
}

/* Starts it and waits. Fails the running test unless the child ended with 0 or child_not_permitted.
 * Whether 0. */
static inline bool child_run(void (*function)(void *), void *argument) {
  int status = child_wait(child_start(function, argument));
  if (status != child_not_permitted) assert_int_equal(status, 0);
  return status == 0;
}
