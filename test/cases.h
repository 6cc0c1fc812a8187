/* cases.h - the tests of a program in C: each TEST_CASE adds itself to those that run_cases runs,
 * in the order of the file.
 *
 *     TEST_CASE(two_blocks_are_apart) { ... }
 *     TEST_CASE_WITH(a_file_is_read, open_file, close_file) { ... *state is of open_file ... }
 *     TEST_CASE_AGAIN(a_file_is_read, mapped, open_file, close_file, "mapped") // a second run
 *
 * When a test begins, the thread has no failure of an earlier one. A program without a main has
 * that of cases_main.c, which runs them. The headers of C and POSIX that most tests use come with
 * this one. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <umem.h>

#include "several.h"

enum { casesMost = 128 };

/* How many there are. A test may lower it: the last ones are left out then. */
extern size_t case_count;

/* Makes what a test needs, or ends it. Fails by assertions, as a test does. */
typedef void Fixture(void **state);

typedef struct TestCase {
  char const *name;
  CMUnitTestFunction test;
  Fixture *set_up, *tear_down; /* NULL: none */
  void const *initial;         /* what *state is when set_up begins */
} TestCase;

void cases_add(TestCase one);

/* Adds a test that a table describes, to those of the file: its function gets argument in *state,
 * and its name is made as by printf. For main, before run_cases. */
__attribute__((format(printf, 3, 4))) void add_case(CMUnitTestFunction test, void const *argument,
                                                    char const *name, ...);

/* Runs them, with these before the first and after the last, or NULL. Returns the exit status of
 * main. */
int run_cases(Fixture *set_up, Fixture *tear_down);

#define TEST_CASE_AGAIN(name, how, set_up, tear_down, initial)                                     \
  __attribute__((constructor)) static void add_##name##_##how(void) {                              \
    cases_add((TestCase){#name " (" #how ")", name, set_up, tear_down, initial});                  \
  }
#define TEST_CASE_FROM(name, set_up, tear_down, initial)                                           \
  static void name(void **state);                                                                  \
  __attribute__((constructor)) static void add_##name(void) {                                      \
    cases_add((TestCase){#name, name, set_up, tear_down, initial});                                \
  }                                                                                                \
  static void name(void **state UNUSED)
#define TEST_CASE_WITH(name, set_up, tear_down) TEST_CASE_FROM(name, set_up, tear_down, NULL)
#define TEST_CASE(name) TEST_CASE_WITH(name, NULL, NULL)

/* That a call has returned umemOK; otherwise prints what umem says. */
#define assert_ok(call) assert_message((call) == umemOK)
#define assert_message(holds)                                                                      \
  ((holds) ? (void)0 : (print_error("%s: %s\n", #holds, umem_thread_message()), fail()))

/* Declares a context and constructs it; it is destructed at the end of the block:
 *
 *     CONTEXT(umemHost, ram);
 *     CONTEXT(umemLimit, limit, &ram, 1000); // umemLimit_ctor(&limit, &ram, 1000) */
#define CONTEXT(type, name, ...)                                                                   \
  SCOPED(umem_dtor) type name;                                                                     \
  assert_ok(type##_ctor(&name, ##__VA_ARGS__))

/* Declares bytes, all 0, which are freed at the end of the block. */
#define SCOPED_BYTES(type, name, nbytes)                                                           \
  SCOPED(free_bytes) type *name = calloc(1, nbytes);                                               \
  assert_non_null(name)

static inline umemInfo info_of(void *ctx) {
  umemInfo info = UMEM_INFO_INIT;
  assert_ok(umem_get_info(ctx, &info));
  return info;
}
