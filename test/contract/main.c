/* main.c - runs every test of the contract on every context it is meant for.
 *
 *     contract                  everything
 *     contract single           each row by itself: no pairs
 *     contract ROW              only the tests of this row: by itself, and paired with itself
 *     contract single ROW       the same without pairs
 *     contract 'copy*: file*'   the tests whose name matches this pattern
 *
 * The word `alone` runs them in this process, for debuggers; see watch.h. UMEM_TEST_SMALL takes a
 * sample of the pairs, see pairs.h; without it the others run too, with small sizes.
 * UMEM_TEST_CRASH names a case that crashes. */
#include "contract.h"

#include <umem/base.h>

#include "core/status.h"
#include "fake/doubles.h"
#include "pairs.h"
#include "watch.h"

static ContractSuite const *const suites[] = {
    &life_suite,  &refusal_suite, &memory_suite,  &aligned_suite,  &realloc_suite, &set_suite,
    &copy_suite,  &safe_suite,    &strided_suite, &connect_suite,  &sync_suite,    &status_suite,
    &order_suite, &threads_suite, &large_suite,   &access_suite,   &virtual_suite, &progress_suite,
    &route_suite, &pages_suite,   &find_suite,    &transfer_suite, &many_suite,
};
enum { suite_count = sizeof suites / sizeof *suites };

/* One run of one test. */
typedef struct Case {
  ContractTest const *test;
  Place places[2];
  size_t number;
  bool small; /* see test_is_small */
  char name[160];
} Case;

/* ---- sanitizers: a request that cannot be met must return NULL, as it does without them ---- */

char const *__asan_default_options(void);
char const *__tsan_default_options(void);
char const *__asan_default_options(void) { return "allocator_may_return_null=1"; }
char const *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

/* ---- one case ---- */

static int open_places(void **state) {
  Case *one = *state;
  watch_begin(one->number, one->name);
  test_make_small(one->small);
  forget_own_blocks();
  watch_signals();
  umem_leave_all();
  umem_thread_clear();
  for (int i = 0; i < 2; i++) {
    Place *place = &one->places[i];
    place->ctx = NULL;
    if (place->row && !(place->ctx = backend_open(place->row))) {
      print_error("cannot open %s: %s\n", place->row->name, umem_thread_message());
      watch_end();
      return -1;
    }
  }
  return 0;
}

/* A test that a signal or a check has ended inside of a call of umem: what its contexts hold is not
 * known, and they are left alone, so that no other test fails for it. */
static bool was_left(Case *one) {
  if (!umem_leave_all()) return false;
  print_error("%s: has left a call of umem; its contexts are not closed\n", one->name);
  umem_thread_clear();
  doubles_abandon();
  return true;
}

static int close_case(Case *one) {
  if (was_left(one)) return -1;
  for (int i = 0; i < 2; i++)
    if (one->places[i].ctx) backend_close(one->places[i].row, one->places[i].ctx);
  char const *complaint = doubles_complaint();
  if (complaint) print_error("%s: %s\n", one->name, complaint);
  return complaint ? -1 : 0;
}

static int close_places(void **state) {
  watch_signals();
  int result = close_case(*state);
  watch_end();
  return result;
}

/* What must hold after every test. */
static void expect_tidiness(Case const *one) {
  for (int i = 0; i < 2; i++) {
    Place const *place = &one->places[i];
    if (!place->row) continue;
    assert_string_equal(umem_get_message(place->ctx), "");
    assert_true(umem_is_ok(place->ctx));
    if (place->ctx->vptr) assert_int_equal(records_of(place).blocks, 0);
  }
  assert_string_equal(umem_thread_message(), "");
  assert_int_equal(umem_thread_status(), umemOK);
}

static void crash_if_asked(Case const *one) {
  char const *name = getenv("UMEM_TEST_CRASH");
  if (name && !strcmp(name, one->name)) raise(SIGSEGV);
}

static void run_case(void **state) {
  Case *one = *state;
  watch_signals();
  crash_if_asked(one);
  if (one->test->single)
    one->test->single(&one->places[0], one->places[0].ctx);
  else if (one->test->pair)
    one->test->pair(&one->places[0], &one->places[1]);
  else
    one->test->once();
  free_own_blocks();
  expect_tidiness(one);
}

/* ---- which cases there are ---- */

typedef struct Wanted {
  Backend const *row; /* NULL: all */
  bool pairs, alone;
} Wanted;

typedef struct Cases {
  Case *items;
  size_t count, room;
} Cases;

static unsigned *row_capabilities; /* 0: a row that this machine lacks or that is left out */

static void *checked(void *memory) {
  if (memory) return memory;
  fprintf(stderr, "no memory\n");
  exit(2);
}

/* "copy: copies every size: file -> fake" */
static void name_case(Case *one, char const *suite) {
  char const *a = one->places[0].row ? one->places[0].row->name : NULL;
  char const *b = one->places[1].row ? one->places[1].row->name : NULL;
  int length = snprintf(one->name, sizeof one->name, "%s: %s", suite, one->test->name);
  for (int i = 0; i < length; i++)
    if (one->name[i] == '_') one->name[i] = ' ';
  size_t rest = sizeof one->name - (size_t)length;
  if (b)
    snprintf(one->name + length, rest, ": %s -> %s", a, b);
  else if (a)
    snprintf(one->name + length, rest, ": %s", a);
}

/* a and b are rows or NULL. */
static Case *new_case(Cases *cases, size_t suite, ContractTest const *test, Backend const *a,
                      Backend const *b) {
  if (cases->count == cases->room) {
    cases->room = cases->room ? 2 * cases->room : 1024;
    cases->items = checked(realloc(cases->items, cases->room * sizeof *cases->items));
  }
  Case *one = &cases->items[cases->count++];
  *one = (Case){.test = test, .places = {{NULL, a}, {NULL, b}}, .number = cases->count - 1};
  name_case(one, suites[suite]->name);
  return one;
}

static bool row_fits(ContractTest const *test, size_t i, Wanted const *wanted) {
  if (wanted->row && wanted->row != &backends[i]) return false;
  return row_capabilities[i] && (row_capabilities[i] & test->capabilities) == test->capabilities &&
         (backends[i].traits & test->traits) == test->traits;
}

/* Wrapped rows are paired with the host and the fake device only. */
static bool rows_pair(Backend const *a, Backend const *b) {
  bool plain = !strcmp(a->name, "fake") || !strcmp(a->name, "host");
  return !(b->traits & backendWrapped) || plain || a == b;
}

typedef struct PairsWanted {
  ContractTest const *test;
  Wanted const *wanted;
} PairsWanted;

static bool is_pair(size_t src, size_t dst, void const *data) {
  PairsWanted const *pairs = data;
  Backend const *a = &backends[src], *b = &backends[dst];
  return row_fits(pairs->test, src, pairs->wanted) && row_fits(pairs->test, dst, pairs->wanted) &&
         rows_pair(a, b) && rows_pair(b, a);
}

/* Each test takes a sample of the pairs of its own in full length, and all others shortly; where
 * time is short none of the others. */
static void add_pairs_of(Cases *cases, size_t suite, ContractTest const *test,
                         Wanted const *wanted) {
  PairsWanted pairs = {test, wanted};
  bool *sample = checked(calloc(backend_count * backend_count, sizeof *sample));
  if (!pairs_choose(row_capabilities, is_pair, &pairs, cases->count, sample)) checked(NULL);
  for (size_t i = 0; i < backend_count; i++)
    for (size_t j = 0; j < backend_count; j++) {
      bool in_full = sample[i * backend_count + j];
      if (in_full || (!test_is_small() && is_pair(i, j, &pairs)))
        new_case(cases, suite, test, &backends[i], &backends[j])->small = !in_full;
    }
  free(sample);
}

static void add_cases_of(Cases *cases, size_t suite, ContractTest const *test,
                         Wanted const *wanted) {
  if (test->once && !wanted->row) new_case(cases, suite, test, NULL, NULL);
  for (size_t i = 0; test->single && i < backend_count; i++)
    if (row_fits(test, i, wanted)) new_case(cases, suite, test, &backends[i], NULL);
  if (test->pair && wanted->pairs) add_pairs_of(cases, suite, test, wanted);
}

/* ---- the run ---- */

static bool is_lacking(umemStatusType status) {
  return status == umemNotSupportedError || status == umemValueError;
}

static bool open_all_rows(void) {
  row_capabilities = checked(calloc(backend_count, sizeof *row_capabilities));
  for (size_t i = 0; i < backend_count; i++) {
    if (setting_leaves_out(backends[i].name)) continue;
    umemVirtual *ctx = backend_open(&backends[i]);
    if (!ctx && (backends[i].traits & backendMayLack) && is_lacking(umem_thread_status())) {
      printf("without %s: %s\n", backends[i].name, umem_thread_message());
      umem_thread_clear();
      continue;
    }
    if (!ctx) {
      fprintf(stderr, "cannot open %s: %s\n", backends[i].name, umem_thread_message());
      return false;
    }
    row_capabilities[i] = ctx->capabilities;
    bool is_right = !umem_get_upstream(ctx) == !(backends[i].traits & backendWrapped);
    backend_close(&backends[i], ctx);
    if (!is_right) {
      fprintf(stderr,
              "the traits of the row %s in test/backends.c must have backendWrapped (over_many) "
              "exactly if it goes over another context\n",
              backends[i].name);
      return false;
    }
  }
  return true;
}

static int run_from(Cases const *cases, size_t first) {
  size_t count = cases->count - first;
  struct CMUnitTest *tests = checked(calloc(count, sizeof *tests));
  for (size_t i = 0; i < count; i++) {
    Case *one = &cases->items[first + i];
    tests[i] = (struct CMUnitTest){one->name, run_case, open_places, close_places, one};
  }
  int failed = _cmocka_run_group_tests("contract", tests, count, NULL, NULL);
  free(tests);
  return failed;
}

static bool parse(int argc, char **argv, Wanted *wanted) {
  for (int i = 1; i < argc; i++) {
    Backend const *row = backend_by_name(argv[i]);
    if (!strcmp(argv[i], "single"))
      wanted->pairs = false;
    else if (!strcmp(argv[i], "alone"))
      wanted->alone = true;
    else if (row)
      wanted->row = row;
    else if (strchr(argv[i], '*'))
      cmocka_set_test_filter(argv[i]);
    else
      return false;
  }
  return true;
}

static void print_usage(char const *program) {
  fprintf(stderr, "usage: %s [alone] [single] [ROW] ['PATTERN*']\nrows:", program);
  for (size_t i = 0; i < backend_count; i++) fprintf(stderr, " '%s'", backends[i].name);
  fprintf(stderr, "\n");
}

/* In the process that runs the cases. What opens contexts stays out of the one that watches it. */
static int run(size_t first, void *data) {
  Wanted const *wanted = data;
  doubles_use();
  umem_set_threads(0); /* a child of fork has one thread otherwise */
  if (!support_open() || !open_all_rows()) return 1;
  Cases cases = {0};
  for (size_t i = 0; i < suite_count; i++)
    for (size_t k = 0; k < *suites[i]->count; k++)
      add_cases_of(&cases, i, &suites[i]->tests[k], wanted);
  int failed = first < cases.count ? run_from(&cases, first) : 0;
  free(cases.items);
  free(row_capabilities);
  support_close();
  return failed ? 1 : 0;
}

int main(int argc, char **argv) {
  Wanted wanted = {NULL, true, false};
  if (!parse(argc, argv, &wanted)) {
    print_usage(*argv);
    return 2;
  }
  return wanted.alone ? run_unwatched(run, &wanted) : watch_cases(run, &wanted);
}
