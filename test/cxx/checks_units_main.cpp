/* checks_units_main.cpp - units with and without checks make one program, in any order of the linker, and
 * each keeps its own. */
#include "checks_units.hpp"

#include <csignal>
#include <cstdio>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

/* Whether an access ends the program, with the line on stderr that says so. */
static bool aborts(Access access) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    Subject subject;
    if (dup2(ends[1], STDERR_FILENO) < 0) _exit(2);
    _exit(access(subject) == -12345); /* used, so that it is done */
  }
  close(ends[1]);
  std::string said;
  char text[512];
  for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;)
    said.append(text, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return false;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
    return said.find("the check '") != std::string::npos;
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) std::printf("status %d\n", status);
  return false;
}

static int failures = 0;

static void expect(char const *unit, std::vector<Access> const &accesses, bool checked) {
  for (std::size_t n = 0; n < accesses.size(); n++) {
    if (aborts(accesses[n]) == checked) continue;
    std::printf("%s: access %zu is %s\n", unit, n, checked ? "not checked" : "checked");
    failures++;
  }
}

int main() {
  expect("the unit with checks", wrong_with_checks(), true);
  expect("the unit without", wrong_without_checks(), false);
  expect("the optimised unit", wrong_optimised(), false);
  return failures != 0;
}
