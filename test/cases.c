/* cases.c - the tests that a program has, and their run. */
#include "cases.h"

#pragma weak umem_thread_clear /* a program may have umem in a library that it opens */

static struct CMUnitTest cases[casesMost];
size_t case_count;

void cases_add(struct CMUnitTest test) {
  if (case_count < casesMost) cases[case_count] = test;
  case_count++;
}

void add_case(CMUnitTestFunction test, void const *argument, char const *name, ...) {
  static char names[casesMost][100];
  size_t number = case_count < casesMost ? case_count : 0;
  va_list words;
  va_start(words, name);
  vsnprintf(names[number], sizeof *names, name, words);
  va_end(words);
  cases_add((struct CMUnitTest){
      .name = names[number], .test_func = test, .initial_state = (void *)(uintptr_t)argument});
}

/* The set-up of each case, whose state is the case at first. */
static int begin_case(void **state) {
  struct CMUnitTest const *test = *state;
  if (umem_thread_clear) umem_thread_clear();
  *state = test->initial_state;
  return test->setup_func ? test->setup_func(state) : 0;
}

int run_cases(CMFixtureFunction set_up, CMFixtureFunction tear_down) {
  struct CMUnitTest begun[casesMost];
  if (case_count > casesMost) return 1;
  for (size_t i = 0; i < case_count; i++) {
    begun[i] = cases[i];
    begun[i].setup_func = begin_case;
    begun[i].initial_state = &cases[i];
  }
  return _cmocka_run_group_tests("tests", begun, case_count, set_up, tear_down);
}
