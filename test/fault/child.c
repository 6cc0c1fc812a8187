#include "child.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <umem.h>

/* Not exit: what the parent registered for its end is none of the child's business. */
void child_expect(bool condition, char const *text, char const *file, int line) {
  if (condition) return;
  fprintf(stderr, "%s:%d: in a child: %s is false (errno: %s)\n  thread: %s \"%s\"\n", file, line,
          text, strerror(errno), umem_get_status_name(umem_thread_status()), umem_thread_message());
  _exit(1);
}

pid_t child_start(void (*function)(void *), void *argument) {
  fflush(NULL);
  pid_t child = fork();
  if (child) return child;
  alarm(child_seconds);
  function(argument);
  _exit(0);
}

int child_wait(pid_t child) {
  int status = 0;
  pid_t found;
  do found = waitpid(child, &status, 0);
  while (found < 0 && errno == EINTR);
  assert_int_equal(found, child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

bool child_run(void (*function)(void *), void *argument) {
  pid_t child = child_start(function, argument);
  assert_true(child > 0);
  int status = child_wait(child);
  if (status != child_not_permitted) assert_int_equal(status, 0);
  return status == 0;
}
