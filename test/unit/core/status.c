/* status.c - umem/status.h: texts, threads, the hook. What holds for each context is in the
 * contract. */

#include "workers.h"

static umemHost host;

static void open_host(void **state UNUSED) { assert_ok(umemHost_ctor(&host)); }

static void close_host(void **state UNUSED) {
  umem_set_failure_hook(NULL, NULL);
  umem_dtor(&host);
}

#define WITH_HOST(name) TEST_CASE_WITH(name, open_host, close_host)

/* ---- names ---- */

TEST_CASE(every_type_has_a_name) {
  static char const *const names[] = {
      [umemOK] = "OK",
      [umemMemoryError] = "MemoryError",
      [umemRuntimeError] = "RuntimeError",
      [umemIOError] = "IOError",
      [umemValueError] = "ValueError",
      [umemTypeError] = "TypeError",
      [umemIndexError] = "IndexError",
      [umemNotImplementedError] = "NotImplementedError",
      [umemNotSupportedError] = "NotSupportedError",
      [umemAssertError] = "AssertError",
      [umemCancelledError] = "CancelledError",
  };
  for (int type = umemOK; type <= umemCancelledError; type++)
    assert_string_equal(umem_get_status_name((umemStatusType)type), names[type]);
}

TEST_CASE(other_numbers_are_unknown) {
  int const numbers[] = {umemCancelledError + 1, 1000, -1, -1000};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    assert_string_equal(umem_get_status_name((umemStatusType)numbers[i]), "UnknownError");
}

TEST_CASE(the_version_is_that_of_the_headers) {
  char version[40];
  snprintf(version, sizeof version, "%d.%d.%d", UMEM_VERSION_MAJOR, UMEM_VERSION_MINOR,
           UMEM_VERSION_PATCH);
  assert_string_equal(umem_version(), UMEM_VERSION);
  assert_string_equal(umem_version(), version);
}

/* ---- the text of a context ---- */

WITH_HOST(a_missing_message_is_empty) {
  assert_int_equal(umem_set_status(&host, umemIOError, NULL), umemIOError);
  assert_string_equal(umem_get_message(&host), "");
  assert_string_equal(umem_thread_message(), "");
  umem_set_status(&host, umemIOError, "second");
  assert_string_equal(umem_get_message(&host), "second");
}

WITH_HOST(OK_overwrites_and_is_no_failure) {
  umem_set_status(&host, umemIOError, "broken");
  uint64_t before = umem_thread_failures();
  assert_int_equal(umem_set_status(&host, umemOK, "mended"), umemOK);
  assert_true(umem_is_ok(&host));
  assert_string_equal(umem_get_message(&host), "broken; mended");
  assert_true(umem_thread_failures() == before);
  assert_int_equal(umem_thread_status(), umemIOError);
  umem_set_status(&host, umemTypeError, "again"); /* from OK: no change from failure to failure */
  assert_string_equal(umem_get_message(&host), "broken; mended; again");
}

WITH_HOST(each_change_is_noted) {
  umem_set_status(&host, umemIOError, "a");
  umem_set_status(&host, umemMemoryError, "b");
  umem_set_status(&host, umemMemoryError, NULL);
  umem_set_status(&host, umemAssertError, "c");
  assert_string_equal(umem_get_message(&host), "a; status IOError changed to MemoryError; b; "
                                               "status MemoryError changed to AssertError; c");
  assert_int_equal(umem_get_status(&host), umemAssertError);
}

WITH_HOST(long_messages_keep_their_beginning) {
  size_t const lengths[] = {UMEM_MESSAGE_SIZE - 2, UMEM_MESSAGE_SIZE - 1, UMEM_MESSAGE_SIZE,
                            UMEM_MESSAGE_SIZE + 1, 100000};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    char *text = malloc(lengths[i] + 1);
    assert_non_null(text);
    for (size_t k = 0; k < lengths[i]; k++) text[k] = (char)('a' + k % 26);
    text[lengths[i]] = 0;
    size_t kept = lengths[i] < UMEM_MESSAGE_SIZE ? lengths[i] : UMEM_MESSAGE_SIZE - 1;
    umem_clear_status(&host);
    umem_set_status(&host, umemIOError, text);
    assert_int_equal(strlen(umem_get_message(&host)), kept);
    assert_memory_equal(umem_get_message(&host), text, kept);
    assert_memory_equal(umem_thread_message(), text, kept);
    umem_set_status(&host, umemIOError, "more"); /* as much of it as there is room for */
    assert_memory_equal(umem_get_message(&host), text, kept);
    assert_true(strlen(umem_get_message(&host)) < UMEM_MESSAGE_SIZE);
    free(text);
  }
}

WITH_HOST(failures_are_formatted) {
  umemStatusType returned = umemVirtual_fail(&host, umemRuntimeError, "%d of %s", 7, "nine");
  assert_int_equal(returned, umemRuntimeError);
  assert_string_equal(umem_get_message(&host), "7 of nine");
  char text[2 * UMEM_MESSAGE_SIZE];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  umem_clear_status(&host);
  umemVirtual_fail(&host, umemRuntimeError, "<%s>", text);
  assert_int_equal(strlen(umem_get_message(&host)), UMEM_MESSAGE_SIZE - 1);
  assert_memory_equal(umem_get_message(&host), "<xxx", 4);
}

/* Names that others chose may be in a message: nothing in it acts on a terminal, or begins a line
 * of a log. */
WITH_HOST(what_acts_on_a_terminal_is_escaped) {
  static char const name[] = "a\x1b[2J\n\x7f\xc2\x9b \xc3\xa9 \xe2\x80\xae \xff \xe4\xb8 \\x";
  static char const shown[] =
      "a\\x1b[2J\\x0a\\x7f\\xc2\\x9b \xc3\xa9 \\xe2\\x80\\xae \\xff \\xe4\\xb8 \\x";
  umemVirtual_fail(&host, umemIOError, "%s", name);
  assert_string_equal(umem_get_message(&host), shown);
  umem_clear_status(&host);
  umem_set_status(&host, umemIOError, name);
  assert_string_equal(umem_get_message(&host), shown);
  assert_string_equal(umem_thread_message(), shown);
  char text[2 * UMEM_MESSAGE_SIZE];
  memset(text, '\x1b', sizeof text - 1);
  text[sizeof text - 1] = 0;
  umem_set_status(NULL, umemIOError, text);
  size_t const length = strlen(umem_thread_message());
  assert_true(length < UMEM_MESSAGE_SIZE && length > UMEM_MESSAGE_SIZE - 6 && length % 4 == 0);
}

/* The outermost: the one that the program has called. */
WITH_HOST(messages_begin_with_the_public_function) {
  umem_connect(&host, 0, 8, &host, 1);
  assert_memory_equal(umem_thread_message(), "umem_connect: ", 14);
  umem_disconnect(&host, 16, &host, 16, 3);
  assert_memory_equal(umem_thread_message(), "umem_disconnect: ", 17);
  umem_aligned_alloc(&host, 3, 8);
  assert_memory_equal(umem_thread_message(), "umem_aligned_alloc: ", 20);
  umem_set_status(&host, umemIOError, "mine");
  assert_string_equal(umem_thread_message(), "mine");
}

WITH_HOST(nothing_recorded_is_no_text) {
  assert_null(host.super.status.message);
  umem_set_status(&host, umemIOError, "text");
  assert_string_equal(host.super.status.message, "text");
  assert_int_equal(host.super.status.type, umemIOError);
  umem_clear_status(&host);
  assert_null(host.super.status.message);
}

/* ---- texts that are handed out ---- */

WITH_HOST(a_message_outlives_three_further_calls) {
  umem_set_status(&host, umemIOError, "one");
  char const *kept = umem_get_message(&host);
  umem_set_status(&host, umemIOError, "two");
  char const *second = umem_get_message(&host);
  umem_set_status(NULL, umemTypeError, "three");
  char const *third = umem_thread_message();
  umem_clear_status(&host);
  char const *fourth = umem_get_message(&host);
  assert_string_equal(kept, "one");
  assert_string_equal(second, "one; two");
  assert_string_equal(third, "three");
  assert_string_equal(fourth, "");
}

/* Also where the library itself looks at messages in between. */
WITH_HOST(a_message_outlives_calls_that_fail) {
  SCOPED(umem_dtor) umemFile failed;
  umemFile_ctor(&failed, "", "r");
  umem_set_status(&host, umemIOError, "one");
  char const *kept = umem_get_message(&host);
  for (int i = 0; i < 10; i++) umem_alloc(&failed, 8); /* each reports why the constructor failed */
  for (int i = 0; i < 3; i++) umem_thread_message();
  assert_string_equal(kept, "one");
}

WITH_HOST(a_message_outlives_its_context) {
  umemHost *other = malloc(sizeof *other);
  assert_non_null(other);
  umemHost_ctor(other);
  umem_set_status(other, umemIOError, "last words");
  char const *kept = umem_get_message(other);
  umem_dtor(other);
  free(other);
  assert_string_equal(kept, "last words");
}

/* ---- threads ---- */

WITH_HOST(a_thread_knows_its_last_failure) {
  CONTEXT(umemHost, other);
  uint64_t before = umem_thread_failures();
  assert_int_equal(umem_thread_status(), umemOK);
  assert_string_equal(umem_thread_message(), "");
  umem_set_status(&host, umemIOError, "first");
  umem_set_status(&other, umemTypeError, "second");
  assert_int_equal(umem_thread_status(), umemTypeError);
  assert_string_equal(umem_thread_message(), "second");
  assert_true(umem_thread_failures() == before + 2);
  umem_clear_status(&other);
  assert_int_equal(umem_thread_status(), umemTypeError);
  umem_thread_clear();
  assert_int_equal(umem_thread_status(), umemOK);
  assert_string_equal(umem_thread_message(), "");
  assert_true(umem_thread_failures() == before + 2);
  assert_int_equal(umem_get_status(&host), umemIOError);
}

/* A call that fails raises the count, one that does not leaves it. */
WITH_HOST(failures_are_counted) {
  uint64_t count = umem_thread_failures();
  uintptr_t adr = umem_alloc(&host, 8);
  FREE(&host, adr, 0);
  assert_true(umem_thread_failures() == count);
  umem_calloc(&host, SIZE_MAX, 2);
  assert_true(umem_thread_failures() == count + 1);
  umem_free(NULL, 8);
  assert_true(umem_thread_failures() == count + 2);
  umem_clear_status(NULL);
  assert_true(umem_thread_failures() == count + 3);
}

static void *fail_elsewhere(void *argument) {
  bool *fresh = argument;
  *fresh = umem_thread_status() == umemOK && umem_thread_failures() == 0 && !*umem_thread_message();
  umem_set_status(&host, umemTypeError, "elsewhere");
  *fresh = *fresh && umem_thread_status() == umemTypeError && umem_thread_failures() == 1;
  return NULL;
}

WITH_HOST(threads_have_their_own) {
  bool fresh = false;
  umem_set_status(&host, umemIOError, "here");
  uint64_t count = umem_thread_failures();
  join_thread(start_thread(fail_elsewhere, &fresh));
  assert_true(fresh);
  assert_int_equal(umem_thread_status(), umemIOError);
  assert_string_equal(umem_thread_message(), "here");
  assert_true(umem_thread_failures() == count);
  assert_int_equal(umem_get_status(&host), umemTypeError); /* the context is for all */
  assert_string_equal(umem_get_message(&host),
                      "here; status IOError changed to TypeError; elsewhere");
}

/* ---- the hook ---- */

typedef struct Seen {
  int calls;
  void *ctx;
  umemStatusType type;
  char message[UMEM_MESSAGE_SIZE];
  pthread_t thread;
  bool fails; /* whether the hook itself fails */
} Seen;

static void see(void *ctx, umemStatusType type, char const *message, void *data) {
  Seen *seen = data;
  seen->calls++;
  seen->ctx = ctx;
  seen->type = type;
  strcpy(seen->message, message);
  seen->thread = pthread_self();
  if (seen->fails) umem_set_status(ctx, umemAssertError, "inside the hook");
}

WITH_HOST(the_hook_sees_each_failure) {
  Seen seen = {0};
  umem_set_failure_hook(see, &seen);
  uintptr_t adr = umem_alloc(&host, 8);
  umem_free(&host, adr);
  umem_set_status(&host, umemOK, "no failure");
  assert_int_equal(seen.calls, 0);
  umem_calloc(&host, SIZE_MAX, 2);
  assert_int_equal(seen.calls, 1);
  assert_ptr_equal(seen.ctx, &host);
  assert_int_equal(seen.type, umemMemoryError);
  assert_string_equal(seen.message, umem_thread_message());
  assert_true(pthread_equal(seen.thread, pthread_self()));
  umem_set_status(NULL, umemTypeError, "of nobody");
  assert_int_equal(seen.calls, 2);
  assert_null(seen.ctx);
  assert_string_equal(seen.message, "of nobody");
  umem_set_failure_hook(NULL, NULL);
  umem_calloc(&host, SIZE_MAX, 2);
  assert_int_equal(seen.calls, 2);
}

WITH_HOST(the_hook_runs_in_the_failing_thread) {
  Seen seen = {0};
  bool fresh;
  umem_set_failure_hook(see, &seen);
  join_thread(start_thread(fail_elsewhere, &fresh));
  assert_int_equal(seen.calls, 1);
  assert_false(pthread_equal(seen.thread, pthread_self()));
}

WITH_HOST(failures_inside_the_hook_do_not_call_it) {
  Seen seen = {.fails = true};
  umem_set_failure_hook(see, &seen);
  uint64_t count = umem_thread_failures();
  umem_set_status(&host, umemIOError, "outside");
  assert_int_equal(seen.calls, 1);
  assert_string_equal(seen.message, "outside");
  assert_true(umem_thread_failures() == count + 1); /* its own are not the caller's */
  assert_int_equal(umem_get_status(&host), umemAssertError);
  assert_non_null(strstr(umem_get_message(&host), "inside the hook"));
  umem_set_status(&host, umemIOError, "outside again");
  assert_int_equal(seen.calls, 2);
}

/* The call returns its own failure, and the hook's messages do not name the calling function. */
WITH_HOST(failures_inside_the_hook_are_not_the_callers) {
  Seen seen = {.fails = true};
  umem_set_failure_hook(see, &seen);
  assert_int_equal(umem_set(&host, 0, 0, 8), umemValueError);
  assert_int_equal(umem_thread_status(), umemValueError);
  assert_string_equal(umem_thread_message(), seen.message);
  assert_null(strstr(umem_get_message(&host), "umem_set: inside the hook"));
}
