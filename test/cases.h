/* cases.h - the tests of a program in C: each TEST_CASE adds itself to those that run_cases runs,
 * in the order of the file.
 *
 *     TEST_CASE(two_blocks_are_apart) { ... }
 *     TEST_CASE_WITH(a_file_is_read, open_file, close_file) { ... *state is of open_file ... }
 *     TEST_CASE_AGAIN(a_file_is_read, mapped, open_file, close_file, "mapped") // a second run
 *     int main(void) { return run_cases(NULL, NULL); } */
#ifndef UMEM_TEST_CASES_H
#define UMEM_TEST_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { casesMost = 128 };
static struct CMUnitTest cases_of_program[casesMost];
static size_t case_count;

static inline void cases_add(struct CMUnitTest test) {
  if (case_count < casesMost) cases_of_program[case_count] = test;
  case_count++;
}

/* initial: what *state is when set_up begins. */
#define TEST_CASE_AGAIN(name, how, set_up, tear_down, initial)                                     \
  __attribute__((constructor)) static void add_##name##_##how(void) {                              \
    cases_add((struct CMUnitTest){#name " (" #how ")", name, set_up, tear_down, initial});         \
  }
#define TEST_CASE_FROM(name, set_up, tear_down, initial)                                           \
  static void name(void **state);                                                                  \
  __attribute__((constructor)) static void add_##name(void) {                                      \
    cases_add((struct CMUnitTest){#name, name, set_up, tear_down, initial});                       \
  }                                                                                                \
  static void name(void **state __attribute__((unused)))
#define TEST_CASE_WITH(name, set_up, tear_down) TEST_CASE_FROM(name, set_up, tear_down, NULL)
#define TEST_CASE(name) TEST_CASE_WITH(name, NULL, NULL)

/* Adds a test that a table describes, to those of the file: its function gets argument in *state,
 * and its name is made as by printf. For main, before run_cases. */
__attribute__((format(printf, 3, 4))) static inline void
add_case(CMUnitTestFunction test, void const *argument, char const *name, ...) {
  static char names[casesMost][100];
  size_t number = case_count < casesMost ? case_count : 0;
  va_list words;
  va_start(words, name);
  vsnprintf(names[number], sizeof *names, name, words);
  va_end(words);
  cases_add((struct CMUnitTest){
      .name = names[number], .test_func = test, .initial_state = (void *)(uintptr_t)argument});
}

/* Runs them, with these before the first and after the last. Returns the exit status of main. */
static inline int run_cases(CMFixtureFunction set_up, CMFixtureFunction tear_down) {
  if (case_count > casesMost) return 1;
  return _cmocka_run_group_tests("tests", cases_of_program, case_count, set_up, tear_down);
}

#endif
