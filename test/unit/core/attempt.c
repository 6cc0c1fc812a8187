/* attempt.c - umem/virtual.h: attempts, which hold failures that may be forgotten. */

#include "workers.h"

static umemHost host, other;
static int hook_calls;

static void count_calls(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  hook_calls++;
}

static void set_up(void **state UNUSED) {
  umemHost_ctor(&host);
  umemHost_ctor(&other);
  hook_calls = 0;
  umem_set_failure_hook(count_calls, NULL);
}

static void tear_down(void **state UNUSED) {
  umem_set_failure_hook(NULL, NULL);
  DESTRUCT(&host, &other);
}

/* That nobody has learned of any failure. */
static void expect_silence(uint64_t failures) {
  assert_true(umem_is_ok(&host) && umem_is_ok(&other));
  assert_string_equal(umem_get_message(&host), "");
  assert_int_equal(umem_thread_status(), umemOK);
  assert_string_equal(umem_thread_message(), "");
  assert_true(umem_thread_failures() == failures);
  assert_int_equal(hook_calls, 0);
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

TEST(holds_failures) {
  uint64_t before = umem_thread_failures();
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  assert_true(umem_calloc(&host, SIZE_MAX, 2) == 0);
  assert_true(umem_is_ok(&host));
  assert_int_equal(umem_thread_status(), umemOK);
  umemAttempt_end(&attempt);
  expect_silence(before);
  assert_true(umemAttempt_failed(&attempt));
}

TEST(calls_inside_tell_their_status) {
  umemAttempt attempt;
  char bytes[8] = "";
  umemAttempt_begin(&attempt);
  umemStatusType failed = umem_set(&host, 0, 0, 8);
  umemStatusType good = umem_set(&host, (uintptr_t)bytes, 7, 8);
  uint64_t before = umem_thread_failures();
  umem_free(NULL, 8);
  bool counted = umem_thread_failures() > before;
  umemAttempt_end(&attempt);
  assert_int_equal(failed, umemValueError);
  assert_int_equal(good, umemOK);
  assert_int_equal(bytes[7], 7);
  assert_true(counted);
}

TEST(records_what_it_holds) {
  char message[UMEM_MESSAGE_SIZE];
  umem_calloc(&host, SIZE_MAX, 2);
  strcpy(message, umem_thread_message());
  FORGET(&host);
  hook_calls = 0;

  uint64_t before = umem_thread_failures();
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  umem_calloc(&host, SIZE_MAX, 2);
  umemAttempt_end(&attempt);
  assert_int_equal(umemAttempt_record(&attempt), umemMemoryError);
  assert_int_equal(umem_get_status(&host), umemMemoryError);
  assert_string_equal(umem_get_message(&host), message);
  assert_int_equal(umem_thread_status(), umemMemoryError);
  assert_string_equal(umem_thread_message(), message);
  assert_true(umem_thread_failures() == before + 1);
  assert_int_equal(hook_calls, 1);
  assert_true(umem_is_ok(&other));
}

TEST(records_nothing_when_all_went_well) {
  uint64_t before = umem_thread_failures();
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  umem_free(&host, umem_alloc(&host, 8));
  umemAttempt_end(&attempt);
  assert_false(umemAttempt_failed(&attempt));
  assert_int_equal(umemAttempt_record(&attempt), umemOK);
  expect_silence(before);
}

TEST(keeps_the_first_failure) {
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  umem_set_status(&other, umemIOError, "the cause");
  umem_set_status(&host, umemTypeError, "what came of it");
  umemAttempt_end(&attempt);
  assert_int_equal(umemAttempt_record(&attempt), umemIOError);
  assert_string_equal(umem_get_message(&other), "the cause");
  assert_true(umem_is_ok(&host));
}

/* What failed before an attempt is untouched by it. */
TEST(leaves_earlier_failures) {
  umem_set_status(&host, umemIOError, "earlier");
  uint64_t before = umem_thread_failures();
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  assert_int_equal(umem_thread_status(), umemIOError);
  umem_set_status(&host, umemTypeError, "tried");
  umemAttempt_end(&attempt);
  assert_int_equal(umem_thread_status(), umemIOError);
  assert_string_equal(umem_thread_message(), "earlier");
  assert_string_equal(umem_get_message(&host), "earlier");
  assert_true(umem_thread_failures() == before);
}

TEST(nests) {
  uint64_t before = umem_thread_failures();
  umemAttempt outer, inner;
  umemAttempt_begin(&outer);
  umemAttempt_begin(&inner);
  umem_set_status(&host, umemIOError, "inner");
  umemAttempt_end(&inner);
  assert_true(umemAttempt_failed(&inner));
  assert_false(umemAttempt_failed(&outer));
  umemAttempt_end(&outer);
  expect_silence(before);

  umemAttempt_begin(&outer);
  umemAttempt_begin(&inner);
  umem_set_status(&host, umemIOError, "inner");
  umemAttempt_end(&inner);
  assert_int_equal(umemAttempt_record(&inner), umemIOError); /* into the outer one */
  assert_true(umemAttempt_failed(&outer));
  assert_true(umem_is_ok(&host));
  umemAttempt_end(&outer);
  expect_silence(before);
  assert_int_equal(umemAttempt_record(&outer), umemIOError);
  assert_string_equal(umem_get_message(&host), "inner");
}

/* ---- functions of the program ---- */

static bool fail_and_look(void *user, uint64_t done, uint64_t total) {
  bool *seen = user;
  (void)done, (void)total;
  uint64_t before = umem_thread_failures();
  umem_set_status(&other, umemTypeError, "of the program's own");
  *seen = umem_get_status(&other) == umemTypeError && umem_thread_status() == umemTypeError &&
          umem_thread_failures() == before + 1;
  return true;
}

/* A failure of a call that they make while an attempt is open is recorded at once, and is not part
 * of the attempt. */
TEST(holds_nothing_of_a_progress) {
  char from[8] = "", to[8] = "";
  bool seen = false;
  umemCopyOptions options = {.size = sizeof options, .progress = fail_and_look, .user = &seen};
  uint64_t before = umem_thread_failures();
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  umemStatusType status =
      umem_copy_to_with(&host, (uintptr_t)from, &host, (uintptr_t)to, 8, &options);
  bool counted = umem_thread_failures() != before;
  umemAttempt_end(&attempt);
  assert_int_equal(status, umemOK);
  assert_true(seen);
  assert_false(counted);
  assert_false(umemAttempt_failed(&attempt));
  assert_true(umem_thread_failures() == before);
  assert_true(umem_is_ok(&host));
  assert_int_equal(umem_get_status(&other), umemTypeError);
  assert_true(hook_calls > 0);
}

static void *fail_in_an_attempt(void *argument) {
  umemAttempt_begin(argument);
  umem_set_status(&host, umemIOError, "of the helper");
  umemAttempt_end(argument);
  return NULL;
}

TEST(a_helper_hands_its_failure_over) {
  uint64_t before = umem_thread_failures();
  umemAttempt attempt;
  join_thread(start_thread(fail_in_an_attempt, &attempt));
  expect_silence(before);
  assert_int_equal(umemAttempt_record(&attempt), umemIOError);
  assert_int_equal(umem_thread_status(), umemIOError);
  assert_string_equal(umem_thread_message(), "of the helper");
  assert_string_equal(umem_get_message(&host), "of the helper");
}

TEST(long_messages_are_cut) {
  char text[3 * UMEM_MESSAGE_SIZE];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  umem_set_status(&host, umemIOError, text);
  umemAttempt_end(&attempt);
  umemAttempt_record(&attempt);
  assert_int_equal(strlen(umem_get_message(&host)), UMEM_MESSAGE_SIZE - 1);
}
