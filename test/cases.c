/* cases.c - the tests that a program has, and their run. */
#include "cases.h"

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

int run_cases(CMFixtureFunction set_up, CMFixtureFunction tear_down) {
  if (case_count > casesMost) return 1;
  return _cmocka_run_group_tests("tests", cases, case_count, set_up, tear_down);
}
