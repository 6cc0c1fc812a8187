/* transfer_help.h - RAM and a file, and one that is as slow as a test wants, for tests of
 * transfers. */
#pragma once

#include "core/threads.h"
#include "failures.h"
#include "workers.h"

enum { small = 100000, large = 24 << 20 };

static umemHost ram;
static umemFile file;
static uintptr_t source, target; /* in RAM, of `large` bytes; in the file, of as many */
static unsigned char *bytes;

static inline void set_up(void **state UNUSED) {
  umem_set_threads(0);
  assert_ok(umemHost_ctor(&ram));
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  source = umem_alloc(&ram, large);
  target = umem_alloc(&file, large);
  bytes = (unsigned char *)source;
  for (size_t i = 0; i < large; i++) bytes[i] = (unsigned char)(i * 7 + (i >> 8));
  assert_true(source && target != UINTPTR_MAX);
}

static inline void tear_down(void **state UNUSED) {
  umem_free(&ram, source);
  DESTRUCT(&file, &ram);
  umem_set_threads(0);
  assert_ok(umem_thread_status());
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

static inline umemTransfer *start(size_t nbytes) {
  umemTransfer *transfer = NULL;
  assert_ok(umem_start(&ram, source, &file, target, nbytes, NULL, &transfer));
  assert_non_null(transfer);
  return transfer;
}

/* For SCOPED. */
static inline void release(umemTransfer *const *transfer) {
  assert_ok(umemTransfer_release(*transfer));
}

static inline void expect_written(size_t nbytes) {
  SCOPED_BYTES(unsigned char, found, nbytes);
  assert_ok(umem_copy_to(&file, target, &ram, (uintptr_t)found, nbytes));
  assert_memory_equal(found, bytes, nbytes);
}

/* ---- a file that is as slow as a test wants ---- */

/* Reads of it wait while `held`, and note in which thread they are. */
typedef struct Slow {
  umemVirtual super;
  umemHost host;
  unsigned reads; /* atomic, as all that follows */
  bool held, fails;
  size_t most;      /* bytes of the largest read */
  unsigned threads; /* that a copy in the last read would have */
  unsigned brief;   /* the number of the last read of `small` bytes */
} Slow;

static inline uintptr_t slow_alloc(umemVirtual *ctx, size_t nbytes) {
  return (void)ctx, (void)nbytes, 64;
}

static inline void slow_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that,
                                uintptr_t dst_adr, size_t nbytes) {
  Slow *self = (Slow *)ctx;
  (void)src_adr, (void)that;
  unsigned threads = umem_parallel_pieces(SIZE_MAX, 1, umemParallelMost);
  __atomic_store_n(&self->threads, threads, __ATOMIC_RELAXED);
  if (nbytes > __atomic_load_n(&self->most, __ATOMIC_RELAXED))
    __atomic_store_n(&self->most, nbytes, __ATOMIC_RELAXED);
  unsigned number = __atomic_add_fetch(&self->reads, 1, __ATOMIC_RELEASE);
  if (nbytes == small) __atomic_store_n(&self->brief, number, __ATOMIC_RELAXED);
  while (__atomic_load_n(&self->held, __ATOMIC_ACQUIRE)) usleep(100);
  if (__atomic_load_n(&self->fails, __ATOMIC_ACQUIRE))
    umemVirtual_fail(ctx, umemIOError, "it is broken");
  else
    memset((void *)dst_adr, 7, nbytes);
}

static Slow slow;

static inline void begin_slow(void **state) {
  static struct umemVtbl const vtbl = {.alloc = slow_alloc, .copy_to = slow_copy_to};
  memset(&slow, 0, sizeof slow);
  set_up(state);
  assert_ok(umemHost_ctor(&slow.host));
  umemVirtual_ctor(&slow.super, &slow.host);
  slow.super.vptr = &vtbl;
  slow.super.name = "Slow";
  slow.super.capabilities |= umemConcurrent;
}

static inline void end_slow(void **state) {
  DESTRUCT(&slow, &slow.host);
  tear_down(state);
}

#define SLOW_TEST(name) TEST_CASE_WITH(name, begin_slow, end_slow)

static inline umemTransfer *start_slow_at(uintptr_t to, size_t nbytes) {
  umemTransfer *transfer = NULL;
  assert_ok(umem_start(&slow, 64, &ram, to, nbytes, NULL, &transfer));
  return transfer;
}

static inline umemTransfer *start_slow(size_t nbytes) { return start_slow_at(source, nbytes); }

static inline void hold(bool held) { __atomic_store_n(&slow.held, held, __ATOMIC_RELEASE); }

static inline void await_reads(unsigned count) {
  while (__atomic_load_n(&slow.reads, __ATOMIC_ACQUIRE) < count) usleep(100);
}
