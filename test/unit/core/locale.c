/* locale.c - umem writes and reads a point in numbers where the locale of the program has a
 * comma. */

#include "base/number.h"

#include "comma.h"
#include "cases.h"

static bool has_comma;

static void begin(void **state UNUSED) { has_comma = set_comma_locale(); }

static void end(void **state UNUSED) { setlocale(LC_ALL, "C"); }

static void expect_message(char const *words) {
  if (!strstr(umem_thread_message(), words))
    fail_msg("no '%s' in '%s'", words, umem_thread_message());
  umem_thread_clear();
}

TEST_CASE(messages_have_a_point) {
  if (!has_comma) skip();
  umemStatusType status = umemOK;
  int64_t const shape[] = {4};
  umemFault fault;
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  CONTEXT(umemHost, host);
  plan.share = 1.25;
  assert_int_equal(umemFault_ctor(&fault, &host, &plan), umemValueError);
  expect_message("1.25");
  SCOPED(release_array)
  umemArray *array = umemArray_create(&host, umemFloat64, 1, shape, NULL, &status);
  assert_int_equal(status, umemOK);
  umemArray_random_uniform(array, 2.5, 1.5, 0, &status);
  expect_message("low 2.5 is not below high 1.5");
  status = umemOK;
  umemArray_random_normal(array, -1.5e-7, -0.25, 0, &status);
  expect_message("mean -1.5e-07 and deviation -0.25");
  status = umemOK;
  umemArray_random_uniform(array, -1e308 * 1.5, 1e308 * 1.5, 0, &status);
  expect_message("low -1.5e+308 to high 1.5e+308");
}

TEST_CASE(the_ledger_has_points) {
  if (!has_comma) skip();
  char a[4] = "abc", b[4], text[2000] = "";
  int ends[2];
  umemHost host;
  umemHost_ctor(&host);
  assert_int_equal(pipe(ends), 0);
  umem_ledger_start();
  umem_copy_to(&host, (uintptr_t)a, &host, (uintptr_t)b, 4);
  umem_ledger_stop();
  assert_int_equal(umem_ledger_print(ends[1]), umemOK);
  close(ends[1]);
  for (ssize_t n; (n = read(ends[0], text + strlen(text), 500)) > 0;)
    ;
  close(ends[0]);
  umem_ledger_clear();
  umem_dtor(&host);
  assert_non_null(strstr(text, " 100.0 "));
  assert_null(strchr(text, ','));
}

TEST_CASE(names_have_points) {
  if (!has_comma) skip();
  void *ctx = umem_open("fault+host:?share=0.5");
  assert_non_null(ctx);
  umem_close(ctx);
  assert_null(umem_open("fault+host:?share=0,5"));
  expect_message("0,5");
}

/* Arabic and Persian have a point of two bytes. */
TEST_CASE(points_may_have_several_bytes) {
  char const *const cases[][2] = {{"12\xd9\xab"
                                   "5",
                                   "12.5"},
                                  {"-1\xd9\xab"
                                   "25e-07",
                                   "-1.25e-07"},
                                  {"0,5", "0.5"},
                                  {"17", "17"},
                                  {"-inf", "-inf"},
                                  {"nan", "nan"}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[32];
    strcpy(text, cases[i][0]);
    umem_set_point(text);
    assert_string_equal(text, cases[i][1]);
  }
}

int main(void) { return run_cases(begin, end); }
