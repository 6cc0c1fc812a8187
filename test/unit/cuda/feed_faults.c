/* feed_faults.c - long transfers to a GPU where calls fail in the threads of a feed: only what is
 * lost fails, each transfer with its reason, no thread keeps CUDA's last error, and nothing is
 * written or lent afterwards. On a double of the runtime. */
#include <limits.h>

#include "cuda_help.h"

#include "core/context.h"
#include "cuda/cuda_methods.h"
#include "cuda/cuda_pinned.h"

enum { sources = 3, most = 4 << 20, threads = 7, chunks = 50 };

static umemFile file;
static umemCuda gpu;
static uintptr_t near[sources], far[sources];
static unsigned char *bytes, *back; /* what each source holds, from byte k of bytes on */
static umemTransfer *transfers[sources];
static umemCudaRt table; /* what the library calls: the double, but for what a test puts in */

/* ---- what happens ---- */

static struct {
  char const *failing;   /* the next `left` calls of this function fail; NULL: none */
  unsigned left;         /* atomic, as all that follows */
  unsigned owing;        /* threads whose last error is CUDA's still */
  bool kept;             /* when they call another function */
  uintptr_t unreachable; /* nothing is sent to this block */
  bool missed;           /* something was not */
  unsigned then;         /* once a copy is sent, `left` is this; */
  unsigned queries;      /* or once so many have found an event late */
  bool awaits;           /* the second piece is sent when: */
  bool one, waits;       /* the first one has arrived. Then the third, when a thread waits */
  bool holds, holds_one; /* reads wait; of the second one, the latter */
  unsigned reads;        /* begun */
  bool ended, early;     /* ended: all that was sent; early: not when a piece has failed */
} fault;

static bool is_set(bool const *flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
static void set(bool *flag, bool value) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }

static _Thread_local bool owes;

static int note(int error) {
  if (owes) set(&fault.kept, true);
  if (error && error != umemCudaNotReady && !owes) {
    owes = true;
    __atomic_add_fetch(&fault.owing, 1, __ATOMIC_ACQ_REL);
  }
  return error;
}

static int last_error(void) {
  if (owes) __atomic_sub_fetch(&fault.owing, 1, __ATOMIC_ACQ_REL);
  owes = false;
  return rt->last_error();
}

static void fail_next(unsigned count, char const *function) {
  __atomic_store_n(&fault.failing, function, __ATOMIC_RELEASE);
  __atomic_store_n(&fault.left, count, __ATOMIC_RELEASE);
}

static bool is_failing(char const *function) {
  char const *failing = __atomic_load_n(&fault.failing, __ATOMIC_ACQUIRE);
  return failing && strstr(failing, function);
}

static bool fails(char const *function) {
  if (!is_failing(function)) return false;
  unsigned left = __atomic_load_n(&fault.left, __ATOMIC_ACQUIRE);
  while (left && !__atomic_compare_exchange_n(&fault.left, &left, left - 1, false, __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE)) {
  }
  return left;
}

#define OR_FAIL(name, ...) note(fails(#name) ? umemCudaInvalidValue : rt->name(__VA_ARGS__))

static int stream_wait(void *stream, void *event) { return OR_FAIL(stream_wait, stream, event); }

/* Of the legacy stream, which is that of the context. */
static int event_record(void *event, void *stream) {
  return stream ? note(rt->event_record(event, stream)) : OR_FAIL(event_record, event, stream);
}

/* Whether an event is not reached before another piece was missed. */
static bool is_late(void) {
  return fault.unreachable && is_set(&fault.one) && !is_set(&fault.missed);
}

static int reached(int error) {
  if (!error && fault.awaits) set(&fault.one, true);
  return error;
}

static int event_query(void *event) {
  if (!is_late()) return reached(OR_FAIL(event_query, event));
  if (__atomic_sub_fetch(&fault.queries, 1, __ATOMIC_ACQ_REL) == 0)
    __atomic_store_n(&fault.left, UINT_MAX, __ATOMIC_RELEASE);
  return umemCudaNotReady;
}

static int event_synchronize(void *event) {
  if (is_late()) set(&fault.waits, true);
  while (is_late()) usleep(100);
  return reached(OR_FAIL(event_synchronize, event));
}

static int stream_synchronize(void *stream) {
  int error = rt->stream_synchronize(stream);
  set(&fault.ended, true);
  return note(error);
}

static char const *error_string(int error) {
  if (is_failing("event_") && !is_set(&fault.ended)) set(&fault.early, true);
  return rt->error_string(error);
}

static int context_current(void **context) {
  return note(fails("context_current") ? umemCudaIllegalAddress : rt->context_current(context));
}

static bool is_missed(void const *dst) {
  bool missed = (uintptr_t)dst - fault.unreachable < most;
  if (missed) set(&fault.missed, true);
  return missed;
}

static int sent(int error) {
  unsigned then = __atomic_exchange_n(&fault.then, 0, __ATOMIC_ACQ_REL);
  if (then) __atomic_store_n(&fault.left, then, __ATOMIC_RELEASE);
  return note(error);
}

static int memcpy_async(void *dst, void const *src, size_t nbytes, umemCudaDirection direction,
                        void *stream) {
  return sent(is_missed(dst) ? umemCudaInvalidValue
                             : rt->memcpy_async(dst, src, nbytes, direction, stream));
}

static int memcpy_batch_async(void *const *dst, void const *const *src, size_t const *nbytes,
                              size_t count, void *stream) {
  bool missed = false;
  for (size_t i = 0; i < count; i++) missed = is_missed(dst[i]) || missed;
  return sent(missed ? umemCudaInvalidValue
                     : rt->memcpy_batch_async(dst, src, nbytes, count, stream));
}

static struct umemVtbl vtbl;
static struct umemVtbl const *of_file;

static void copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                    size_t nbytes) {
  unsigned number = __atomic_add_fetch(&fault.reads, 1, __ATOMIC_ACQ_REL);
  while (is_set(number == 2 && is_set(&fault.holds_one) ? &fault.holds_one : &fault.holds))
    usleep(100);
  bool const *what = src_adr == near[0]  ? &fault.awaits
                     : src_adr < near[1] ? &fault.one
                                         : &fault.waits;
  while (fault.awaits && !is_set(what)) usleep(100);
  of_file->copy_to(ctx, src_adr, that, dst_adr, nbytes);
}

/* ---- tests ---- */

static void open_feed(void **state) {
  cuda_set_up(state);
  memset(&fault, 0, sizeof fault);
  table = *rt;
  table.last_error = last_error;
  table.stream_wait = stream_wait;
  table.event_record = event_record;
  table.event_query = event_query;
  table.event_synchronize = event_synchronize;
  table.stream_synchronize = stream_synchronize;
  table.context_current = context_current;
  table.error_string = error_string;
  table.memcpy_async = memcpy_async;
  table.memcpy_batch_async = memcpy_batch_async;
  umemCudaRt_replace(&table);
  expect_ok(umem_set_threads(threads));
  expect_ok(umemCuda_set_staging(1 << 20, chunks));
  expect_ok(umemFile_ctor(&file, NULL, "w+"));
  expect_ok(umemCuda_ctor(&gpu, 0));
  of_file = file.super.vptr;
  vtbl = *of_file;
  vtbl.copy_to = copy_to;
  file.super.vptr = &vtbl;
  bytes = malloc(most + sources);
  back = malloc(most);
  assert_true(bytes && back);
  fill(bytes, most + sources, 1);
  CONTEXT(umemHost, ram);
  for (size_t k = 0; k < sources; k++) {
    near[k] = umem_alloc(&file, most);
    far[k] = block_of(&gpu, most);
    expect_ok(umem_copy_from(&file, near[k], &ram, (uintptr_t)bytes + k, most));
  }
}

static void close_feed(void **state) {
  umem_clear_status(&gpu);
  DESTRUCT(&gpu, &file);
  free(bytes);
  free(back);
  umem_set_threads(0);
  assert_int_equal(umem_thread_status(), umemOK);
  if (fault.owing || fault.kept || fault.early)
    fail_msg("owing %u, kept %d, early %d", fault.owing, fault.kept, fault.early);
  cuda_tear_down(state);
}

#define FEED_TEST(name) TEST_CASE_WITH(name, open_feed, close_feed)

static void start_all(size_t count, size_t nbytes) {
  for (size_t k = 0; k < count; k++)
    expect_ok(umem_start(&file, near[k], &gpu, far[k], nbytes, NULL, &transfers[k]));
}

static void await_reads(unsigned count) {
  while (__atomic_load_n(&fault.reads, __ATOMIC_ACQUIRE) < count) usleep(100);
}

/* Who waits may copy, beside the feed or before it. */
static umemStatusType result(size_t k) {
  while (!umemTransfer_poll(transfers[k])) usleep(100);
  return umemTransfer_wait(transfers[k]);
}

static void expect_arrived(size_t k, size_t nbytes) {
  expect_ok(result(k));
  expect_ok(umemTransfer_release(transfers[k]));
  assert_true(fake_cudart_peek(far[k], back, nbytes));
  assert_memory_equal(back, bytes + k, nbytes);
}

static void expect_failed(size_t k, umemStatusType type, char const *words) {
  expect_failure(result(k), type, words);
  assert_non_null(strstr(umem_get_message(&gpu), words));
  umem_clear_status(&gpu);
  expect_ok(umemTransfer_release(transfers[k]));
}

/* How many chunks can be lent now. */
static unsigned count_chunks(void) {
  umemCudaChunk *lent[chunks + 1];
  unsigned count = 0;
  umemCudaGpu *device = umemCuda_state_of(&gpu.super)->gpu;
  UMEM_CUDA_SCOPE(&gpu.super, device, 0);
  for (; (lent[count] = umemCudaChunk_take(device)); count++) continue;
  for (unsigned i = 0; i < count; i++) umemCudaChunk_give(lent[i]);
  return count;
}

/* After another transfer, all can be. */
static void expect_all_returned(void) {
  start_all(1, most);
  expect_arrived(0, most);
  for (int tries = 0; tries < 10000 && count_chunks() < chunks; tries++) usleep(100);
  assert_int_equal(count_chunks(), chunks);
}

/* Those of a lost GPU cannot, when no thread tries to enter it any more: it may still read them. */
static void expect_some_kept(void) {
  umem_leave_hook(&gpu.super); /* waits for the feed */
  __atomic_store_n(&fault.left, 0, __ATOMIC_RELEASE);
  assert_true(count_chunks() < chunks);
  assert_int_equal(fault.owing, 0);
  expect_all_returned();
}

/* ---- waiting for the context ---- */

FEED_TEST(what_cannot_wait_for_its_context_is_copied_alone) {
  char const *const functions[] = {"event_record", "stream_wait"};
  for (size_t i = 0; i < 2; i++) {
    fail_next(1, functions[i]);
    start_all(sources, most);
    for (size_t k = 0; k < sources; k++) expect_arrived(k, most);
    assert_int_equal(fault.left, 0);
    expect_all_returned();
    assert_int_equal(fault.owing, 0);
  }
}

/* ---- batches ---- */

/* A thread waits for a piece of the first transfer while those of the second cannot be sent. */
FEED_TEST(a_batch_that_fails_leaves_the_one_before) {
  fault.awaits = true;
  set(&fault.holds, true);
  fault.unreachable = far[1];
  start_all(2, 2 << 20);
  await_reads(4);
  set(&fault.holds, false);
  expect_arrived(0, 2 << 20);
  expect_failed(1, umemValueError, "bytes to GPU 0");
  expect_all_returned();
}

/* The last piece of the first transfer fails when the one thread has read of the second. */
FEED_TEST(a_failure_names_the_call_of_its_transfer) {
  enum { nbytes = 2 << 20 };
  umemLayout const run = {.size = sizeof run, .item_size = nbytes};
  expect_ok(umem_set_threads(3));
  fault.unreachable = far[0] + nbytes / 2;
  set(&fault.holds, true);
  start_all(1, nbytes);
  expect_ok(umem_start_strided(&file, near[1], &gpu, far[1], &run, NULL, &transfers[1]));
  set(&fault.holds, false);
  expect_failed(0, umemValueError, "umem_start: cannot copy 1048576 bytes to GPU 0");
  result(1); /* fails too, if its block lies behind that of the first one */
  umem_thread_clear();
  fault.unreachable = 0;
  umem_clear_status(&gpu);
  expect_ok(umemTransfer_release(transfers[1]));
  expect_all_returned();
}

/* Threads may end all batches by the other function: then all bytes arrive. */
FEED_TEST(a_batch_that_cannot_be_waited_for_fails) {
  char const *const functions[] = {"event_query", "event_synchronize"};
  for (size_t i = 0; i < 2; i++) {
    fail_next(1, functions[i]);
    for (unsigned tries = 0; fault.left; tries++) {
      assert_true(tries < 1000);
      set(&fault.ended, false);
      start_all(1, most);
      while (!umemTransfer_poll(transfers[0])) usleep(100);
      if (fault.left)
        expect_arrived(0, most);
      else
        expect_failed(0, umemValueError, "bytes to GPU 0");
    }
    expect_all_returned();
  }
}

/* ---- a GPU that cannot be entered ---- */

/* By the thread that has sent a piece, while the other one reads. */
FEED_TEST(a_thread_tries_to_enter_again) {
  fault.awaits = true;
  for (unsigned count = 1; count < 20; count += 6) {
    set(&fault.one, false);
    fail_next(0, "context_current");
    __atomic_store_n(&fault.then, count, __ATOMIC_RELEASE);
    __atomic_store_n(&fault.reads, 0, __ATOMIC_RELEASE);
    set(&fault.holds, true);
    start_all(1, 2 << 20);
    await_reads(2);
    set(&fault.holds, false);
    expect_arrived(0, 2 << 20);
    assert_int_equal(fault.left, 0);
    expect_all_returned();
  }
}

/* Once a piece is sent. */
FEED_TEST(a_gpu_that_is_lost_fails_each_transfer) {
  fail_next(0, "context_current");
  set(&fault.holds, true);
  start_all(sources, 2 << 20);
  await_reads(4);
  __atomic_store_n(&fault.then, UINT_MAX, __ATOMIC_RELEASE);
  set(&fault.holds, false);
  for (size_t k = 0; k < sources; k++) expect_failed(k, umemRuntimeError, "cannot use GPU 0");
  expect_some_kept();
}

/* Two pieces are sent, and one waits for a batch to end. */
FEED_TEST(a_gpu_is_lost_before_a_piece_is_sent) {
  fail_next(0, "context_current");
  umem_set_threads(3);
  fault.unreachable = 1;
  fault.queries = 2;
  fault.holds_one = true;
  set(&fault.holds, true);
  start_all(1, most);
  await_reads(2);
  set(&fault.one, true);
  set(&fault.holds, false);
  while (__atomic_load_n(&fault.left, __ATOMIC_ACQUIRE) - 1 >= UINT_MAX - 22) usleep(100);
  set(&fault.holds_one, false);
  expect_failed(0, umemRuntimeError, "cannot use GPU 0");
  set(&fault.one, false);
  expect_some_kept();
}
