/* child.hpp - runs a function in a process of its own, and what it says there. */
#pragma once

#include "tests.hpp"

#include <sys/wait.h>
#include <unistd.h>

struct Child {
  int status;       /* as waitpid returns it */
  std::string said; /* to stdout and stderr */

  bool exits_with(int number) const { return WIFEXITED(status) && WEXITSTATUS(status) == number; }
  bool says(char const *words) const { return said.find(words) != std::string::npos; }
};

/* The child exits with what the function returns. Ends the program where the system has no process
 * for it. */
template <class F> Child in_child(F const &f) {
  int ends[2];
  std::fflush(stdout);
  pid_t const child = pipe(ends) == 0 ? fork() : -1;
  if (child == 0) {
    if (dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0) _exit(126);
    int const status = f();
    std::fflush(stdout);
    _exit(status);
  }
  Child ended = {0, ""};
  if (child > 0) {
    close(ends[1]);
    char text[512];
    for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;)
      ended.said.append(text, static_cast<std::size_t>(n));
    close(ends[0]);
  }
  if (child < 0 || waitpid(child, &ended.status, 0) != child) {
    std::perror("in_child");
    std::exit(126);
  }
  return ended;
}
