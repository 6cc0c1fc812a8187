/* refusal.c - every function, given a context that is none, answers with a status and does nothing
 * else: NULL, all zero, destructed, and after a failed constructor. */
#include "contract.h"

enum { any_failure = -1 };

/* ctx is the one that is none; wanted is the status each call must have, or any_failure. */
typedef struct Refused {
  void *ctx;
  int wanted;
  uint64_t before;
} Refused;

static void begin(Refused *refused) { refused->before = umem_thread_failures(); }

/* That the call since begin recorded a failure of the right type, on the context where there is
 * one. */
static void end(Refused *refused) {
  assert_true(umem_thread_failures() > refused->before);
  umemStatusType type = umem_thread_status();
  assert_int_not_equal(type, umemOK);
  if (refused->wanted != any_failure) assert_int_equal(type, refused->wanted);
  if (refused->ctx) {
    assert_int_equal(umem_get_status(refused->ctx), type);
    assert_string_not_equal(umem_get_message(refused->ctx), "");
  }
  umem_thread_clear();
}

#define REFUSES(call)                                                                              \
  do {                                                                                             \
    begin(refused);                                                                                \
    umemStatusType returned = (call);                                                              \
    assert_int_equal(returned, umem_thread_status());                                              \
    end(refused);                                                                                  \
  } while (0)

#define REFUSES_ADDRESS(call, null)                                                                \
  do {                                                                                             \
    begin(refused);                                                                                \
    uintptr_t returned = (call);                                                                   \
    assert_true(returned == (null));                                                               \
    end(refused);                                                                                  \
  } while (0)

#define REFUSES_SILENTLY(call)                                                                     \
  do {                                                                                             \
    begin(refused);                                                                                \
    call;                                                                                          \
    end(refused);                                                                                  \
  } while (0)

static void refuses_memory(Refused *refused) {
  void *ctx = refused->ctx;
  uintptr_t null = umem_null(ctx);
  REFUSES_ADDRESS(umem_alloc(ctx, 10), null);
  REFUSES_ADDRESS(umem_calloc(ctx, 10, 10), null);
  REFUSES_ADDRESS(umem_realloc(ctx, null, 0, 10), null);
  REFUSES_ADDRESS(umem_realloc(ctx, 4096, 5, 10), null);
  REFUSES_ADDRESS(umem_aligned_alloc(ctx, 64, 10), null);
  REFUSES_ADDRESS(umem_aligned_origin(ctx, 4096), null);
  REFUSES_SILENTLY(umem_free(ctx, 4096));
  REFUSES_SILENTLY(umem_aligned_free(ctx, 4096));
  REFUSES_SILENTLY(umem_free_aligned(ctx, 4096));
  REFUSES(umem_set(ctx, 4096, 0, 10));
}

/* With a host on the other side, in both directions. */
static void refuses_copies(Refused *refused) {
  void *ctx = refused->ctx;
  unsigned char bytes[16] = "untouched bytes";
  uintptr_t adr = (uintptr_t)bytes;
  umemLayout layout = {.size = sizeof layout, .item_size = 8};
  umemHost *host = &test_host;
  REFUSES(umem_copy_to(ctx, 4096, host, adr, 8));
  REFUSES(umem_copy_to(host, adr, ctx, 4096, 8));
  REFUSES(umem_copy_from(ctx, 4096, host, adr, 8));
  REFUSES(umem_copy_from(host, adr, ctx, 4096, 8));
  REFUSES(umem_copy_to_safe(ctx, 4096, 8, host, adr, 8, 8));
  REFUSES(umem_copy_to_safe(host, adr, 8, ctx, 4096, 8, 8));
  REFUSES(umem_copy_from_safe(ctx, 4096, 8, host, adr, 8, 8));
  REFUSES(umem_copy_from_safe(host, adr, 8, ctx, 4096, 8, 8));
  REFUSES(umem_copy_strided(ctx, 4096, host, adr, &layout));
  REFUSES(umem_copy_strided(host, adr, ctx, 4096, &layout));
  REFUSES(umem_copy_to(ctx, 4096, ctx, 8192, 8));
  assert_memory_equal(bytes, "untouched bytes", 16);
}

static void refuses_connections(Refused *refused) {
  void *ctx = refused->ctx;
  unsigned char bytes[16] = "untouched bytes";
  uintptr_t adr = (uintptr_t)bytes;
  umemHost *host = &test_host;
  REFUSES_ADDRESS(umem_connect(ctx, 4096, 8, host, 16), 0);
  REFUSES_ADDRESS(umem_connect(host, adr, 8, ctx, 16), umem_null(ctx));
  REFUSES(umem_disconnect(ctx, 4096, host, adr, 16));
  REFUSES(umem_disconnect(host, adr, ctx, 4096, 16));
  REFUSES(umem_sync_to(ctx, 4096, host, adr, 8));
  REFUSES(umem_sync_to(host, adr, ctx, 4096, 8));
  REFUSES(umem_sync_from(ctx, 4096, host, adr, 8));
  REFUSES(umem_sync_from(host, adr, ctx, 4096, 8));
  REFUSES(umem_sync_to_safe(ctx, 4096, 8, host, adr, 8, 8));
  REFUSES(umem_sync_to_safe(host, adr, 8, ctx, 4096, 8, 8));
  REFUSES(umem_sync_from_safe(ctx, 4096, 8, host, adr, 8, 8));
  REFUSES(umem_sync_from_safe(host, adr, 8, ctx, 4096, 8, 8));
  assert_memory_equal(bytes, "untouched bytes", 16);
}

static void refuses_the_rest(Refused *refused) {
  void *ctx = refused->ctx;
  umemInfo info = UMEM_INFO_INIT;
  bool same = true;
  REFUSES(umem_get_info(ctx, &info));
  REFUSES(umem_synchronize(ctx));
  REFUSES(umem_wait(ctx, &test_host));
  REFUSES(umem_wait(&test_host, ctx));
  REFUSES(umem_flush(ctx));
  REFUSES(umem_trim(ctx, 0));
  REFUSES_SILENTLY(same = umem_is_same_device(ctx, &test_host));
  assert_false(same);
  REFUSES_SILENTLY(same = umem_is_same_device(&test_host, ctx));
  assert_false(same);
}

/* That ctx has this status alone; clears it. */
static void expect_context_of(umemVirtual *ctx, umemStatusType type) {
  assert_int_equal(umem_get_status(ctx), type);
  assert_ok(umem_clear_status(ctx));
}

static void refuses_everything(void *ctx, int wanted) {
  Refused refused = {ctx, wanted, 0};
  assert_non_null(umem_get_device_name(ctx));
  refuses_memory(&refused);
  refuses_copies(&refused);
  refuses_connections(&refused);
  refuses_the_rest(&refused);
  assert_true(umem_is_ok(&test_host));
}

/* ---- which contexts are none ---- */

ONCE(NULL_is_no_context) {
  refuses_everything(NULL, umemValueError);
  assert_string_equal(umem_get_device_name(NULL), "None");
  assert_true(umem_null(NULL) == 0);
  assert_false(umem_is_ok(NULL));
  assert_int_equal(umem_get_status(NULL), umemValueError);
  assert_string_equal(umem_get_message(NULL), "");
  expect_status(NULL, umem_clear_status(NULL), umemValueError);
  assert_int_equal(umem_set_status(NULL, umemIOError, "of the thread"), umemIOError);
  assert_string_equal(umem_thread_message(), "of the thread");
  expect_failure(NULL, umemIOError);
}

ONCE(zeros_are_no_context) {
  umemVirtual zeros;
  memset(&zeros, 0, sizeof zeros);
  refuses_everything(&zeros, umemValueError);
  assert_string_equal(umem_get_device_name(&zeros), "None");
}

SINGLE(a_destructed_context_is_none) {
  umem_set_status(ctx, umemIOError, "of its life"); /* says nothing of what it is now */
  umem_thread_clear();
  umem_dtor(ctx);
  assert_int_equal(umem_get_status(ctx), umemIOError);
  refuses_everything(ctx, umemValueError);
  assert_ok(umem_clear_status(ctx));
}

/* Null addresses and no bytes do not make a context out of it. */
SINGLE(a_destructed_context_refuses_no_ops_too) {
  umem_dtor(ctx);
  Refused refusal = {ctx, umemValueError, 0}, *refused = &refusal;
  REFUSES_SILENTLY(umem_free(ctx, umem_null(ctx)));
  REFUSES(umem_set(ctx, 4096, 0, 0));
  REFUSES(umem_copy_to(ctx, 4096, &test_host, 4096, 0));
  REFUSES(umem_copy_to(&test_host, 4096, ctx, 4096, 0));
  assert_ok(umem_clear_status(ctx));
}

ONCE(the_end_of_nothing_does_nothing) {
  uint64_t before = umem_thread_failures();
  umemVirtual zeros;
  memset(&zeros, 0, sizeof zeros);
  DESTRUCT(NULL, &zeros);
  assert_true(umem_thread_failures() == before);
  assert_true(umem_is_ok(&zeros));
}

ONCE(constructors_refuse_NULL) {
  assert_int_equal(umemHost_ctor(NULL), umemValueError);
  for (size_t i = 0; i < backend_refusal_count; i++)
    assert_int_equal(backend_refusals[i].construct(NULL), umemValueError);
  expect_failure(NULL, umemValueError);
}

/* ---- copies by value ---- */

/* What was copied goes on as if there were no copy, and the copy speaks of itself alone. */
SINGLE(a_copy_is_no_context) {
  umemVirtual copy;
  unsigned char bytes[100];
  fill_bytes(bytes, 100, 3);
  uintptr_t adr = new_filled_block(ctx, 100, 3);
  umem_set_status(ctx, umemIOError, "of its life");
  umem_thread_clear();
  memcpy(&copy, ctx, sizeof copy);
  assert_string_equal(umem_get_message(&copy), "of its life");
  umem_clear_status(&copy);
  refuses_everything(&copy, umemValueError);
  assert_non_null(strstr(umem_get_message(&copy), "must not be copied or moved"));
  Refused refusal = {&copy, umemValueError, 0}, *refused = &refusal;
  REFUSES_SILENTLY(umem_free(&copy, adr));
  REFUSES(umem_copy_to(&copy, adr, &test_host, (uintptr_t)bytes, 100));
  REFUSES(umem_disconnect(&copy, adr, &test_host, (uintptr_t)bytes, 1));
  REFUSES_SILENTLY(umem_get_upstream(&copy));
  REFUSES_SILENTLY(umem_dtor(&copy));
  assert_string_equal(umem_get_message(ctx), "of its life");
  expect_context_of(ctx, umemIOError);
  assert_holds(ctx, adr, bytes, 100);
  umem_free(ctx, adr);
}

/* The message of a copy outlives what was copied. */
ONCE(a_copy_outlives_its_source) {
  umemHost *host = malloc(sizeof *host), copy;
  assert_non_null(host);
  assert_ok(umemHost_ctor(host));
  umem_set_status(host, umemIOError, "of its life");
  umem_thread_clear();
  memcpy(&copy, host, sizeof copy);
  umem_dtor(host);
  memset(host, 'x', sizeof *host);
  free(host);
  assert_string_equal(umem_get_message(&copy), "of its life");
  umem_dtor(&copy);
  expect_failure(&copy.super, umemValueError);
}

/* ---- failed constructors ---- */

static void check_refusal(BackendRefusal const *row) {
  _Alignas(16) unsigned char ctx[BACKEND_CONTEXT_SIZE];
  memset(ctx, 0xA5, sizeof ctx); /* a constructor takes memory as it finds it */
  assert_int_equal(row->construct(ctx), row->status);
  assert_int_equal(umem_get_status(ctx), row->status);
  assert_int_equal(umem_thread_status(), row->status);
  assert_non_null(strstr(umem_get_message(ctx), row->words));
  assert_true(umem_null(ctx) == row->null);
  umem_thread_clear();
  refuses_everything(ctx, (int)row->status);
  DESTRUCT(ctx, ctx);
  assert_int_equal(umem_get_status(ctx), row->status);
}

ONCE(a_failed_constructor_makes_no_context) {
  for (size_t i = 0; i < backend_refusal_count; i++) check_refusal(&backend_refusals[i]);
}

SUITE(refusal)
