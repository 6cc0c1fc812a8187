/* cuda_help.h - what the tests of the CUDA contexts share: the double of the runtime in place,
 * and what must hold after each test. */
#pragma once

#include "opened.h"
#include "workers.h"
#include "cudart_help.h"
#include "unwatched.h"

/* ---- all four ---- */

typedef union Any {
  umemVirtual super;
  umemCuda cuda;
  umemCudaHost host;
  umemCudaManaged managed;
  umemCudaAsync async;
} Any;

enum { aCuda, aHost, aManaged, anAsync, kinds };

static inline umemStatusType construct(Any *any, int kind, int device) {
  switch (kind) {
  case aCuda:
    return umemCuda_ctor(&any->cuda, device);
  case aHost:
    return umemCudaHost_ctor(&any->host, 0);
  case aManaged:
    return umemCudaManaged_ctor(&any->managed, device, 0);
  default:
    return umemCudaAsync_ctor(&any->async, device, UMEM_STREAM_NEW);
  }
}

/* Likewise by name; the tear-down closes it. */
static inline umemVirtual *opened_kind(int kind, int device) {
  static char const *const names[kinds] = {"cuda:%d", "cuda-host:", "cuda-managed:%d",
                                           "cuda-async:%d"};
  char name[40];
  snprintf(name, sizeof name, names[kind], device);
  return opened("%s", name);
}

/* ---- tests ---- */

#define CUDA_TEST(name) TEST_CASE_WITH(name, cuda_set_up, cuda_tear_down)

static inline void cuda_set_up(void **state UNUSED) { begin_double(); }

static inline void cuda_tear_down(void **state UNUSED) {
  close_opened();
  umemCuda_set_staging(0, 0);
  end_double();
}

/* For tests of what cannot be tidied up any more, after a crash for example. */
static inline void forget_all(void) { fake_cudart_reset(); }

static inline void expect_ok_at(umemStatusType status, char const *call, int line) {
  if (status != umemOK) fail_msg("line %d: %s: %s", line, call, umem_thread_message());
}
#define expect_ok(call) expect_ok_at((call), #call, __LINE__)

/* A call that returned status must have failed as type, with words in its message. Forgets it. */
static inline void expect_failure_at(umemStatusType status, umemStatusType type, char const *words,
                                     char const *call, int line) {
  if (status != type || umem_thread_status() != type || !strstr(umem_thread_message(), words))
    fail_msg("line %d: %s: %s, \"%s\"; expected %s with \"%s\"", line, call,
             umem_get_status_name(status), umem_thread_message(), umem_get_status_name(type),
             words);
  umem_thread_clear();
}
#define expect_failure(call, type, words)                                                          \
  expect_failure_at((call), (type), (words), #call, __LINE__)

/* For calls that return something else. */
#define expect_report(call, type, words)                                                           \
  do {                                                                                             \
    umem_thread_clear();                                                                           \
    (void)(call);                                                                                  \
    expect_failure_at(umem_thread_status(), (type), (words), #call, __LINE__);                     \
  } while (0)

static inline uintptr_t block_of(void *ctx, size_t nbytes) {
  uintptr_t adr = umem_alloc(ctx, nbytes);
  if (!adr) fail_msg("no block: %s", umem_thread_message());
  return adr;
}

static inline UNWATCHED void fill(unsigned char *bytes, size_t nbytes, unsigned seed) {
  for (size_t i = 0; i < nbytes; i++) bytes[i] = (unsigned char)((i * 2654435761u >> 13) + seed);
}

/* Whether bytes are as fill has left them. */
static inline UNWATCHED bool is_filled(unsigned char const *bytes, size_t nbytes, unsigned seed) {
  for (size_t i = 0; i < nbytes; i++)
    if (bytes[i] != (unsigned char)((i * 2654435761u >> 13) + seed)) return false;
  return true;
}

/* Fills n bytes of a block, from memory that is gone on return. */
static inline void put_bytes(void *ctx, uintptr_t adr, size_t n, unsigned seed) {
  umemHost ram;
  SCOPED_BYTES(unsigned char, bytes, n);
  fill(bytes, n, seed);
  expect_ok(umemHost_ctor(&ram));
  expect_ok(umem_copy_from(ctx, adr, &ram, (uintptr_t)bytes, n));
  umem_dtor(&ram);
  explicit_bzero(bytes, n); /* a copy that reads them only now is found */
}

/* Whether n bytes of a block are as put_bytes has left them, when what is queued is done. */
static inline bool has_bytes(void *ctx, uintptr_t adr, size_t n, unsigned seed) {
  SCOPED_BYTES(unsigned char, bytes, n);
  CONTEXT(umemHost, ram);
  expect_ok(umem_copy_to(ctx, adr, &ram, (uintptr_t)bytes, n));
  expect_ok(umem_synchronize(ctx));
  return is_filled(bytes, n, seed);
}

/* The context that is current for this thread; NULL: none. */
static inline void *current_context(void) {
  void *context = NULL;
  rt->context_current(&context);
  return context;
}

/* That the context of GPU 0 is current, and no other below it. Takes it away. */
static inline void expect_first_gpu(void) {
  void *first = NULL, *left = NULL;
  ok(rt->primary_retain(&first, 0));
  assert_ptr_equal(current_context(), first);
  ok(rt->context_pop(&left));
  assert_null(current_context());
  ok(rt->primary_release(0));
}
