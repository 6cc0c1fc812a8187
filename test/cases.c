/* cases.c - the tests that a program has, and their run. */
#include "cases.h"

#pragma weak umem_thread_clear /* a program may have umem in a library that it opens */

static TestCase cases[casesMost];
size_t case_count;

/* What is used now: a test, and what is for all. */
static TestCase const *running;
static Fixture *begin_first, *end_last;

void cases_add(TestCase one) {
  if (case_count < casesMost) cases[case_count] = one;
  case_count++;
}

void add_case(CMUnitTestFunction test, void const *argument, char const *name, ...) {
  static char names[casesMost][100];
  size_t number = case_count < casesMost ? case_count : 0;
  va_list words;
  va_start(words, name);
  vsnprintf(names[number], sizeof *names, name, words);
  va_end(words);
  cases_add((TestCase){.name = names[number], .test = test, .initial = argument});
}

static int use(Fixture *fixture, void **state) {
  if (fixture) fixture(state);
  return 0;
}

/* The state is the case at first. */
static int begin_case(void **state) {
  running = *state;
  if (umem_thread_clear) umem_thread_clear();
  *state = (void *)(uintptr_t)running->initial;
  return use(running->set_up, state);
}

static int end_case(void **state) { return use(running->tear_down, state); }
static int begin_all(void **state) { return use(begin_first, state); }
static int end_all(void **state) { return use(end_last, state); }

int run_cases(Fixture *set_up, Fixture *tear_down) {
  struct CMUnitTest tests[casesMost];
  if (case_count > casesMost) return 1;
  begin_first = set_up;
  end_last = tear_down;
  for (size_t i = 0; i < case_count; i++)
    tests[i] = (struct CMUnitTest){cases[i].name, cases[i].test, begin_case, end_case, &cases[i]};
  return _cmocka_run_group_tests("tests", tests, case_count, begin_all, end_all);
}
