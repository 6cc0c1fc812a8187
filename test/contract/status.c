/* status.c - umem/status.h, as far as it must hold on every context. The rest is in
 * unit/core/status.c. */
#include "contract.h"

#include "workers.h"

SINGLE(remains_until_cleared) {
  umem_alloc(ctx, SIZE_MAX);
  uintptr_t adr = new_filled_block(ctx, 100, 1); /* calls that succeed do not hide it */
  umem_free(ctx, adr);
  assert_false(umem_is_ok(ctx));
  assert_int_equal(umem_get_status(ctx), umemMemoryError);
  assert_ok(umem_clear_status(ctx));
  assert_true(umem_is_ok(ctx));
  assert_int_equal(umem_get_status(ctx), umemOK);
  assert_string_equal(umem_get_message(ctx), "");
  assert_int_equal(umem_thread_status(), umemMemoryError); /* the thread keeps its own */
  umem_thread_clear();
}

SINGLE(set_status_appends) {
  assert_int_equal(umem_set_status(ctx, umemIOError, "first"), umemIOError);
  assert_string_equal(umem_get_message(ctx), "first");
  assert_int_equal(umem_set_status(ctx, umemIOError, "second"), umemIOError);
  assert_string_equal(umem_get_message(ctx), "first; second");
  assert_int_equal(umem_set_status(ctx, umemTypeError, "third"), umemTypeError);
  assert_string_equal(umem_get_message(ctx),
                      "first; second; status IOError changed to TypeError; third");
  assert_int_equal(umem_get_status(ctx), umemTypeError);
  assert_string_equal(umem_thread_message(), "third");
  expect_failure(ctx, umemTypeError);
}

/* Every function that returns a status reports on its own call, and not of an earlier one. */
SINGLE(calls_tell_their_own_status) {
  umemInfo info = UMEM_INFO_INIT;
  unsigned char bytes[32];
  uintptr_t host = (uintptr_t)bytes;
  umemLayout layout = {.size = sizeof layout, .item_size = 32};
  umem_set_status(ctx, umemRuntimeError, "older");
  uintptr_t adr = umem_calloc(ctx, 100, 1);
  assert_block(ctx, adr);
  assert_ok(umem_set(ctx, adr, 1, 100));
  assert_ok(umem_copy_to(ctx, adr, &test_host, host, 32));
  assert_ok(umem_synchronize(ctx));
  assert_ok(umem_copy_from(ctx, adr, &test_host, host, 32));
  assert_ok(umem_copy_to_safe(ctx, adr, 32, &test_host, host, 32, 32));
  assert_ok(umem_synchronize(ctx));
  assert_ok(umem_copy_from_safe(ctx, adr, 32, &test_host, host, 32, 32));
  assert_ok(umem_copy_strided(ctx, adr, ctx, adr + 50, &layout));
  assert_ok(umem_sync_to(ctx, adr, &test_host, host, 32));
  assert_ok(umem_synchronize(ctx));
  assert_ok(umem_sync_from(ctx, adr, &test_host, host, 32));
  uintptr_t paired = umem_connect(ctx, adr, 100, ctx, 1);
  assert_true(paired == adr);
  assert_ok(umem_disconnect(ctx, adr, ctx, paired, 1));
  assert_ok(umem_get_info(ctx, &info));
  assert_ok(umem_wait(ctx, &test_host));
  assert_ok(umem_wait(&test_host, ctx));
  assert_ok(umem_flush(ctx));
  assert_ok(umem_trim(ctx, 0));
  umem_free(ctx, adr);
  assert_ok(umem_synchronize(ctx));
  assert_string_equal(umem_get_message(ctx), "older");
  expect_failure(ctx, umemRuntimeError);
}

SINGLE(messages_name_the_function) {
  umem_alloc(ctx, SIZE_MAX);
  assert_int_equal(strncmp(umem_thread_message(), "umem_alloc: ", 12), 0);
  expect_failure(ctx, umemMemoryError);
  umem_calloc(ctx, SIZE_MAX, 2);
  assert_int_equal(strncmp(umem_thread_message(), "umem_calloc: ", 13), 0);
  expect_failure(ctx, umemMemoryError);
  umem_copy_to(ctx, umem_null(ctx), &test_host, 16, 8);
  assert_int_equal(strncmp(umem_thread_message(), "umem_copy_to: ", 14), 0);
  expect_failure(ctx, umemValueError);
}

SINGLE(the_message_of_the_context_is_that_of_the_thread) {
  umem_set(ctx, umem_null(ctx), 0, 10);
  assert_string_equal(umem_get_message(ctx), umem_thread_message());
  expect_failure(ctx, umemValueError);
}

/* However much fails: bounded, and the beginning is kept. */
SINGLE(the_message_is_bounded) {
  umem_set_status(ctx, umemIOError, "the first cause");
  for (int i = 0; i < 200; i++) umem_alloc(ctx, SIZE_MAX - 64);
  char const *message = umem_get_message(ctx);
  assert_true(strlen(message) < UMEM_MESSAGE_SIZE);
  assert_true(strlen(message) > UMEM_MESSAGE_SIZE / 2);
  assert_int_equal(strncmp(message, "the first cause; ", 17), 0);
  expect_failure(ctx, umemMemoryError);
}

/* ---- row N8: failures belong to the thread that caused them ---- */

typedef struct Neighbour {
  umemVirtual *ctx;
  pthread_barrier_t *barrier;
  bool failing;
  bool right; /* only the main thread may call cmocka */
} Neighbour;

static bool fails_alone(umemVirtual *ctx) {
  uint64_t before = umem_thread_failures();
  uintptr_t adr = umem_alloc(ctx, SIZE_MAX);
  return adr == umem_null(ctx) && umem_thread_failures() == before + 1 &&
         umem_thread_status() == umemMemoryError && umem_get_status(ctx) == umemMemoryError;
}

static bool succeeds_alone(umemVirtual *ctx) {
  unsigned char bytes[64] = {0};
  uint64_t before = umem_thread_failures();
  uintptr_t adr = umem_alloc(ctx, 64);
  bool right = adr != umem_null(ctx);
  right = right && umem_copy_from(ctx, adr, &test_host, (uintptr_t)bytes, 64) == umemOK;
  right = right && umem_synchronize(ctx) == umemOK;
  umem_free(ctx, adr);
  return right && umem_thread_failures() == before && umem_thread_status() == umemOK &&
         !*umem_thread_message();
}

static void *run_neighbour(void *argument) {
  Neighbour *self = argument;
  self->right = umem_thread_status() == umemOK && umem_thread_failures() == 0;
  for (int i = 0; i < 50; i++) {
    pthread_barrier_wait(self->barrier);
    bool right = self->failing ? fails_alone(self->ctx) : succeeds_alone(self->ctx);
    self->right = self->right && right;
  }
  return self->right ? NULL : self;
}

SINGLE_IF(failures_belong_to_their_thread, umemConcurrent) {
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, 2);
  Neighbour neighbours[2] = {{ctx, &barrier, true, false}, {ctx, &barrier, false, false}};
  run_at_once(2, run_neighbour, neighbours, sizeof *neighbours);
  pthread_barrier_destroy(&barrier);
  assert_int_equal(umem_thread_status(), umemOK);
  assert_int_equal(umem_get_status(ctx), umemMemoryError);
  assert_ok(umem_clear_status(ctx));
}

SUITE(status)
