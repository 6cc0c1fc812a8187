/* checks_units_main.cpp - units with and without checks make one program, in any order of the
 * linker, and each keeps its own. */
#include "checks_units.hpp"
#include "child.hpp"

#include <csignal>

/* Whether an access ends the program, with the line on stderr that says so. */
static bool aborts(Access access) {
  Child const child = in_child([&] {
    Subject subject;
    return access(subject) == -12345 ? 1 : 0; /* used, so that it is done */
  });
  if (WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGABRT)
    return child.says("the check '");
  if (!child.exits_with(0) && !child.exits_with(1)) std::printf("status %d\n", child.status);
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
