/* cudart_streams.c - the double of the CUDA runtime: how the legacy stream, blocking streams and
 * those of threads wait for each other, what captures draw in and forbid, and where pages of
 * managed memory are. The rest of what is queued is in cudart_order.c. */
#include "workers.h"
#include "cudart_help.h"

static void *blocking, *other, *alone, *event;
static unsigned char *adr; /* bytes of device memory */

static void streams_set_up(void **state) {
  set_up_device(state);
  ok(fake_cudart_create_blocking(&blocking));
  ok(fake_cudart_create_blocking(&other));
  alone = new_stream();
  event = new_event();
  adr = new_block(8);
  ok(rt->memset_async(adr, 0, 8, NULL));
  ok(rt->stream_synchronize(NULL));
}

/* A slow kernel. */
static void increment(void *argument) {
  unsigned char *byte = fake_cudart_at((uintptr_t)argument, 1);
  ++*byte;
}

static void launch(void *stream, unsigned char *at) {
  ok(fake_cudart_launch(stream, increment, at));
}

/* Later work of one stream comes after what another one has now. */
static void order_after(void *later, void *first) {
  ok(rt->event_record(event, first));
  ok(rt->stream_wait(later, event));
}

#define STREAMS_TEST(name) TEST_CASE_WITH(name, streams_set_up, tear_down)

/* ---- implicit synchronisation ---- */

STREAMS_TEST(the_legacy_stream_waits_for_blocking_ones) {
  launch(blocking, adr);
  launch(FAKE_STREAM_PER_THREAD, adr + 1);
  launch(alone, adr + 2);
  ok(rt->memset_async(adr + 3, 1, 1, NULL));
  ok(rt->stream_synchronize(NULL));
  assert_int_equal(byte_at(adr), 1);
  assert_int_equal(byte_at(adr + 1), 1);
  assert_int_equal(byte_at(adr + 2), 0); /* takes no part */
  assert_int_equal(byte_at(adr + 3), 1);
  assert_true(fake_cudart_is_late(alone));
}

STREAMS_TEST(blocking_streams_wait_for_the_legacy_one) {
  void *const streams[] = {blocking, FAKE_STREAM_PER_THREAD, alone};
  for (size_t i = 0; i < 3; i++) {
    launch(NULL, adr + i);
    ok(rt->memset_async(adr + 7, 1, 1, streams[i]));
    ok(rt->stream_synchronize(streams[i]));
    assert_int_equal(byte_at(adr + i), streams[i] != alone);
  }
}

/* By way of the legacy stream only. */
STREAMS_TEST(blocking_streams_are_free_of_each_other) {
  launch(blocking, adr);
  launch(other, adr + 1);
  ok(rt->stream_synchronize(other));
  assert_int_equal(byte_at(adr), 0);
  launch(NULL, adr + 2);
  launch(other, adr + 1);
  ok(rt->stream_synchronize(other));
  assert_int_equal(byte_at(adr) * 100 + byte_at(adr + 1) * 10 + byte_at(adr + 2), 121);
}

/* To wait for it is no work: what blocking streams do was not asked for. */
STREAMS_TEST(waiting_for_the_legacy_stream_is_for_its_own_work) {
  launch(blocking, adr);
  ok(rt->stream_synchronize(NULL));
  assert_int_equal(byte_at(adr), 0);
  ok(rt->event_record(event, FAKE_STREAM_LEGACY)); /* but an event is of all before it */
  ok(rt->event_synchronize(event));
  assert_int_equal(byte_at(adr), 1);
}

STREAMS_TEST(an_event_of_a_blocking_stream_is_after_the_legacy_one) {
  launch(NULL, adr);
  order_after(alone, blocking);
  ok(rt->stream_synchronize(alone));
  assert_int_equal(byte_at(adr), 1);
}

STREAMS_TEST(blocking_copies_follow_blocking_streams) {
  unsigned char byte = 9;
  launch(blocking, adr);
  ok(rt->memcpy(&byte, adr, 1, umemCudaToHost));
  assert_int_equal(byte, 1);
}

static void *launch_on_own_stream(void *at) {
  enter(0);
  launch(FAKE_STREAM_PER_THREAD, at);
  ok(rt->stream_synchronize(FAKE_STREAM_PER_THREAD));
  leave(0);
  return NULL;
}

STREAMS_TEST(each_thread_has_a_stream) {
  launch(FAKE_STREAM_PER_THREAD, adr);
  join_thread(start_thread(launch_on_own_stream, adr + 1));
  assert_int_equal(byte_at(adr), 0);
  assert_int_equal(byte_at(adr + 1), 1);
  int device = -1;
  ok(rt->stream_device(FAKE_STREAM_PER_THREAD, &device));
  assert_int_equal(device, 0);
  refused(rt->stream_destroy(FAKE_STREAM_PER_THREAD), umemCudaInvalidHandle);
  refused(rt->stream_destroy(FAKE_STREAM_LEGACY), umemCudaInvalidHandle);
  assert_int_equal(fake_cudart_live().streams, 3); /* it counts as none */
}

/* Contexts do not wait for each other. */
STREAMS_TEST(each_device_has_its_legacy_stream) {
  launch(blocking, adr);
  enter(1);
  unsigned char *there = new_block(1);
  ok(rt->memset_async(there, 3, 1, NULL));
  ok(rt->stream_synchronize(NULL));
  assert_int_equal(byte_at(there), 3);
  ok(rt->free(there));
  leave(1);
  assert_int_equal(byte_at(adr), 0);
}

/* ---- captures ---- */

static void expect_capture(void *stream, umemCudaCapture expected) {
  umemCudaCapture capture;
  uint64_t id;
  int error = rt->stream_capture(stream, &capture, &id);
  assert_true(!error || error == umemCudaCaptureImplicit);
  assert_int_equal(capture, expected);
}

static void expect_end(void *stream, int error) {
  void *graph;
  refused(fake_cudart_end_capture(stream, &graph), error);
  assert_true(!graph == (error != 0));
}

STREAMS_TEST(a_captured_blocking_stream_bars_the_legacy_one) {
  for (int way = 0; way < 4; way++)
    for (int mode = 0; mode < 3; mode++) {
      ok(fake_cudart_begin_capture_in(blocking, mode));
      uint64_t id;
      umemCudaCapture capture = umemCudaNoCapture;
      refused(rt->stream_capture(NULL, &capture, &id), umemCudaCaptureImplicit);
      assert_int_equal(capture, umemCudaCapturing);
      expect_capture(blocking, umemCudaCapturing); /* it was only asked */
      unsigned char byte;
      int error = way == 0   ? rt->memset_async(adr, 1, 1, NULL)
                  : way == 1 ? rt->memcpy(&byte, adr, 1, umemCudaToHost)
                  : way == 2 ? rt->event_record(event, NULL)
                             : rt->stream_synchronize(NULL);
      refused(error, umemCudaCaptureImplicit);
      expect_capture(blocking, umemCudaCaptureBroken);
      expect_end(blocking, umemCudaCaptureInvalidated);
    }
  ok(fake_cudart_begin_capture(alone)); /* that of no blocking stream does not */
  expect_capture(NULL, umemCudaNoCapture);
  ok(rt->memset_async(adr, 1, 1, NULL));
  expect_end(alone, umemCudaSuccess);
}

STREAMS_TEST(who_waits_for_a_capture_is_drawn_in) {
  ok(fake_cudart_begin_capture(alone));
  launch(alone, adr);
  order_after(other, alone);
  expect_capture(other, umemCudaCapturing);
  launch(other, adr);
  expect_end(alone, 904); /* cudaErrorStreamCaptureUnjoined */
  expect_capture(other, umemCudaNoCapture);
  refused(rt->stream_wait(other, event), umemCudaInvalidValue); /* of a capture that is over */
  refused(rt->event_synchronize(event), umemCudaInvalidValue);
  expect_capture(other, umemCudaNoCapture);

  ok(fake_cudart_begin_capture(alone));
  order_after(other, alone);
  expect_end(alone, umemCudaSuccess); /* it has recorded nothing */

  ok(fake_cudart_begin_capture(alone));
  order_after(other, alone);
  order_after(blocking, other); /* and on */
  launch(blocking, adr);
  order_after(other, blocking);
  order_after(alone, other);
  expect_end(alone, umemCudaSuccess);

  ok(fake_cudart_begin_capture(alone));
  order_after(other, alone);
  order_after(alone, other);
  launch(other, adr); /* after it was waited for */
  expect_end(alone, 904);
}

static int malloc_one(void) {
  void *block = NULL;
  int error = rt->malloc(&block, 1);
  if (!error) ok(rt->free(block));
  return error;
}

static void *try_malloc(void *mode) {
  enter(0);
  ok(rt->exchange_capture_mode(mode));
  *(int *)mode = malloc_one();
  leave(0);
  return NULL;
}

/* What cudaMalloc answers in another thread of this mode. */
static int malloc_in_thread(int mode) {
  join_thread(start_thread(try_malloc, &mode));
  return mode;
}

STREAMS_TEST(captures_forbid_what_is_unsafe_by_their_mode) {
  static int const forbidden[3][4] = {
      /* in the thread itself, and in others of mode global, thread-local, relaxed */
      {1, 1, 0, 0},
      {1, 0, 0, 0},
      {0, 0, 0, 0},
  };
  for (int mode = 0; mode < 3; mode++)
    for (int way = 0; way < 4; way++) {
      ok(fake_cudart_begin_capture_in(alone, mode));
      int error = way ? malloc_in_thread(way - 1) : malloc_one();
      assert_int_equal(error, forbidden[mode][way] ? umemCudaCaptureUnsupported : 0);
      expect_end(alone, forbidden[mode][way] ? umemCudaCaptureInvalidated : 0);
    }
}

static void *end_in_thread(void *error) {
  void *graph;
  *(int *)error = fake_cudart_end_capture(alone, &graph);
  return NULL;
}

STREAMS_TEST(captures_end_in_their_thread) {
  for (int mode = 0; mode < 3; mode++) {
    int error = -1;
    ok(fake_cudart_begin_capture_in(alone, mode));
    join_thread(start_thread(end_in_thread, &error));
    assert_int_equal(error, mode == 2 ? 0 : 908); /* cudaErrorStreamCaptureWrongThread */
  }
}

/* ---- what comes in between ---- */

static void begin_capture(void *mode) { ok(fake_cudart_begin_capture_in(alone, *(int *)mode)); }

STREAMS_TEST(an_interlude_comes_before_its_call) {
  int mode = 2;
  fake_cudart_before("event_record", 2, begin_capture, &mode);
  ok(rt->event_record(event, alone));
  expect_capture(alone, umemCudaNoCapture);
  ok(rt->event_record(event, alone));
  expect_capture(alone, umemCudaCapturing);
  expect_end(alone, umemCudaSuccess);
  ok(rt->event_record(event, alone)); /* once */
  expect_capture(alone, umemCudaNoCapture);
}

/* ---- managed memory ---- */

enum { page = 4096 };

STREAMS_TEST(pages_are_where_they_were_used) {
  unsigned char *managed;
  size_t available, capacity, before;
  fake_cudart_machine()->device[0].capacity = 10 * page;
  ok(rt->memory_info(&before, &capacity));
  ok(rt->malloc_managed((void **)&managed, 4 * page));
  ok(rt->memory_info(&available, &capacity));
  assert_int_equal(available, before); /* none is anywhere */
  ok(rt->memset_async(managed + page, 1, page + 1, NULL));
  assert_int_equal(fake_cudart_resident(0), 0);
  ok(rt->stream_synchronize(NULL));
  assert_int_equal(fake_cudart_resident(0), 2 * page);
  ok(rt->memory_info(&available, &capacity));
  assert_int_equal(available, before - 2 * page);
  ok(rt->prefetch(managed, 4 * page, 0, NULL));
  ok(rt->stream_synchronize(NULL));
  assert_int_equal(fake_cudart_resident(0), 4 * page);
  ok(rt->prefetch(managed, 2 * page, -1, NULL));
  ok(rt->stream_synchronize(NULL));
  assert_int_equal(fake_cudart_resident(0), 2 * page);
  ok(rt->free(managed));
  assert_int_equal(fake_cudart_resident(0), 0);
}

STREAMS_TEST(pages_beyond_the_device_stay_in_ram) {
  void *managed;
  size_t available, capacity;
  fake_cudart_machine()->device[0].capacity = 10 * page;
  ok(rt->memory_info(&available, &capacity));
  ok(rt->malloc_managed(&managed, 14 * page)); /* as cudaMallocManaged allows it */
  ok(rt->memset_async(managed, 1, 14 * page, NULL));
  ok(rt->stream_synchronize(NULL));
  assert_int_equal(fake_cudart_resident(0), available / page * page);
  ok(rt->free(managed));
  assert_int_equal(fake_cudart_resident(0), 0);
}
