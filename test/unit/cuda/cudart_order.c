/* cudart_order.c - the double of the CUDA runtime, by which others are tested: what is queued on
 * streams, and when it is done. The rest is in cudart.c. */
#include "cudart_help.h"

/* ---- copies: when they are done ---- */

DEVICE_TEST(work_is_late) {
  unsigned char *pinned, pageable = 7;
  void *stream = new_stream();
  unsigned char *adr = new_block(10);
  ok(rt->host_alloc((void **)&pinned, 10, 0));
  ok(rt->memset_async(adr, 1, 10, stream));
  assert_int_not_equal(byte_at(adr), 1);
  assert_true(fake_cudart_is_late(stream));
  ok(rt->stream_synchronize(stream));
  assert_int_equal(byte_at(adr), 1);

  ok(rt->memcpy_async(adr, &pageable, 1, umemCudaToDevice, stream)); /* has been read */
  pageable = 8;
  pinned[0] = 5;
  ok(rt->memcpy_async(adr + 1, pinned, 1, umemCudaToDevice, stream)); /* has not */
  pinned[0] = 6;
  assert_int_equal(byte_at(adr), 1);
  ok(rt->stream_synchronize(stream));
  assert_int_equal(byte_at(adr), 7);
  assert_int_equal(byte_at(adr + 1), 6);

  ok(rt->memcpy_async(pinned, adr, 1, umemCudaToHost, stream));
  assert_int_equal(pinned[0], 6);
  ok(rt->memcpy_async(&pageable, adr, 1, umemCudaToHost, stream));
  assert_int_equal(pinned[0], 7); /* it was before */
  assert_int_equal(pageable, 7);
  assert_int_equal(fake_cudart_done().pageable, 2);

  pageable = 4;
  ok(rt->memcpy_async(pinned, &pageable, 1, umemCudaAnyDirection, stream)); /* within the host */
  assert_int_equal(pinned[0], 4);

  ok(rt->memset_async(adr, 3, 1, stream));
  ok(rt->stream_destroy(stream)); /* its work lives on */
  assert_int_equal(byte_at(adr), 7);
  ok(rt->free(adr));
  ok(rt->host_free(pinned));
  refused(rt->stream_synchronize(stream), umemCudaInvalidHandle);
  expect_misuse("a stream that is destroyed");
}

DEVICE_TEST(blocking_copies_follow_the_legacy_stream_alone) {
  unsigned char *a, *b, bytes[2] = {1, 2};
  void *stream = new_stream();
  ok(rt->malloc((void **)&a, 2));
  ok(rt->malloc((void **)&b, 2));
  ok(rt->memset_async(b, 9, 2, stream));
  ok(rt->memcpy(a, bytes, 2, umemCudaToDevice));
  assert_int_equal(byte_at(a), 1);
  ok(rt->memcpy(b, a, 2, umemCudaWithinDevice)); /* returns at once */
  assert_int_not_equal(byte_at(b), 1);
  ok(rt->memcpy(bytes + 1, b, 1, umemCudaToHost));
  assert_int_equal(bytes[1], 1);
  ok(rt->stream_synchronize(stream)); /* nothing waited for it */
  assert_int_equal(byte_at(b), 9);
}

/* The manual promises no more; today's drivers do. */
DEVICE_TEST(pageable_copies_can_be_late) {
  unsigned char pageable = 7;
  unsigned char *adr = new_block(1);
  fake_cudart_machine()->late_pageable = true;
  ok(rt->memcpy(adr, &pageable, 1, umemCudaToDevice));
  pageable = 8; /* has been read */
  assert_int_not_equal(byte_at(adr), 7);
  ok(rt->memcpy_async(&pageable, adr, 1, umemCudaToHost, NULL));
  assert_int_equal(pageable, 8);
  ok(rt->stream_synchronize(NULL));
  assert_int_equal(byte_at(adr), 7);
  assert_int_equal(pageable, 7);
}

DEVICE_TEST(boxes_are_copied_in_shape) {
  unsigned char *adr, host[2][3][4], back[2][2][2];
  for (unsigned i = 0; i < sizeof host; i++) ((unsigned char *)host)[i] = (unsigned char)i;
  ok(rt->malloc((void **)&adr, 24));
  umemCudaBox in = {adr, 4, 3, host, 4, 3, 4, 3, 2};
  umemCudaBox out = {back, 2, 2, adr + 5, 4, 3, 2, 2, 2};
  ok(rt->memcpy_box_async(&in, umemCudaToDevice, NULL));
  ok(rt->memcpy_box_async(&out, umemCudaToHost, NULL));
  for (size_t z = 0; z < 2; z++)
    for (size_t y = 0; y < 2; y++) assert_memory_equal(back[z][y], &host[z][y + 1][1], 2);
  out.src = adr + 6;
  ok(rt->memcpy_box_async(&out, umemCudaToHost, NULL));
  out.src = adr + 7;
  refused(rt->memcpy_box_async(&out, umemCudaToHost, NULL), umemCudaInvalidValue);
  expect_misuse("memcpy_box_async: 18 bytes at ");
  out.width = 3;
  assert_int_not_equal(rt->memcpy_box_async(&out, umemCudaToHost, NULL), umemCudaSuccess);
  out.depth = 0;
  out.width = 1;
  ok(rt->memcpy_box_async(&out, umemCudaToHost, NULL));
}

TEST(peer_copies_tell_their_route) {
  enter(1);
  enter(0);
  unsigned char *here = new_block(8);
  void *context = NULL;
  ok(rt->context_pop(&context));
  unsigned char *there = new_block(8);
  ok(rt->context_push(context));
  ok(rt->memcpy_peer_async(there, 1, here, 0, 8, NULL));
  assert_int_equal(fake_cudart_done().indirect_peer, 1);
  refused(rt->enable_peer_access(0), umemCudaInvalidOrdinal);
  ok(rt->enable_peer_access(1));
  refused(rt->enable_peer_access(1), umemCudaPeerAlreadyEnabled);
  assert_int_not_equal(rt->enable_peer_access(2), umemCudaSuccess);
  ok(rt->memset_async(here, 4, 8, NULL));
  ok(rt->memcpy_async(there, here, 8, umemCudaAnyDirection, NULL));
  umemCudaBox box = {there, 4, 2, here, 4, 2, 2, 2, 1};
  ok(rt->memcpy_box_peer_async(&box, 1, 0, NULL));
  ok(rt->stream_synchronize(NULL));
  assert_int_equal(byte_at(there + 7), 4);
  assert_int_equal(fake_cudart_done().direct_peer, 2);
  assert_true(fake_cudart_done().foreign > 0);
  refused(rt->memcpy_peer_async(there, 0, here, 0, 8, NULL), umemCudaInvalidValue);
  expect_misuse("memory of devices 1 and 0 is said to be of 0 and 0");
}

/* ---- streams and events ---- */

DEVICE_TEST(streams_wait_for_events_only) {
  void *first = new_stream(), *second = new_stream(), *event = new_event();
  unsigned char *adr = new_block(2);
  ok(rt->stream_wait(second, event)); /* never recorded: for nothing */
  ok(rt->memset_async(adr, 1, 1, first));
  ok(rt->event_record(event, first));
  ok(rt->memset_async(adr, 2, 1, first)); /* after the event */
  ok(rt->stream_synchronize(second));
  assert_true(fake_cudart_is_late(first));
  ok(rt->stream_wait(second, event));
  ok(rt->stream_synchronize(second));
  assert_int_equal(byte_at(adr), 1);
  assert_true(fake_cudart_is_late(first));
  ok(rt->event_record(event, first));
  ok(rt->event_synchronize(event));
  assert_int_equal(byte_at(adr), 2);
  ok(rt->event_destroy(event));
  refused(rt->event_record(event, first), umemCudaInvalidHandle);
  expect_misuse("an event that is destroyed");
  int device = -1;
  ok(rt->stream_device(first, &device));
  assert_int_equal(device, 0);
  enter(1);
  ok(rt->event_create(&event));
  refused(rt->event_record(event, first), umemCudaInvalidHandle);
  expect_misuse("an event of device 1 on a stream of device 0");
}

static void increment(void *argument) {
  unsigned char *byte = fake_cudart_at((uintptr_t)argument, 1);
  ++*byte;
}

DEVICE_TEST(kernels_run_in_order) {
  unsigned char byte = 0;
  unsigned char *adr = new_block(1);
  ok(rt->memset_async(adr, 1, 1, NULL));
  ok(fake_cudart_launch(NULL, increment, adr));
  ok(rt->memcpy(&byte, adr, 1, umemCudaToHost));
  assert_int_equal(byte, 2);
}

DEVICE_TEST(memory_freed_before_its_work_is_found) {
  void *pinned;
  void *adr = new_block(8);
  ok(rt->host_alloc(&pinned, 8, 0));
  ok(rt->memcpy_async(pinned, adr, 8, umemCudaToHost, NULL));
  ok(rt->host_free(pinned));
  ok(rt->stream_synchronize(NULL));
  expect_misuse("after they were freed");
}

/* ---- pools ---- */

static void expect_sizes(void *pool, uint64_t reserved, uint64_t used) {
  uint64_t are_reserved = 0, are_used = 0;
  ok(rt->pool_sizes(pool, &are_reserved, &are_used));
  assert_int_equal(are_reserved, reserved);
  assert_int_equal(are_used, used);
}

DEVICE_TEST(pools_reuse_in_the_order_of_streams) {
  void *pool, *a, *b, *c;
  ok(rt->pool_create(&pool, 0, 300, false));
  void *first = new_stream(), *second = new_stream();
  ok(rt->pool_set_threshold(pool, 150));
  ok(rt->pool_malloc(&a, 100, pool, first));
  ok(rt->pool_free(a, first));
  expect_sizes(pool, 100, 0);
  ok(rt->pool_malloc(&a, 100, pool, first)); /* the same room */
  expect_sizes(pool, 100, 100);
  ok(rt->pool_free(a, first));
  ok(rt->pool_malloc(&b, 100, pool, second)); /* not yet */
  expect_sizes(pool, 200, 100);
  ok(rt->stream_synchronize(first)); /* gives back what is over the threshold */
  expect_sizes(pool, 150, 100);
  ok(rt->pool_malloc(&c, 150, pool, second));
  expect_sizes(pool, 250, 250);
  refused(rt->pool_malloc(&a, 51, pool, second), umemCudaOutOfMemory);
  ok(rt->pool_free(c, first));
  ok(rt->pool_malloc(&c, 200, pool, second)); /* waits for the free */
  assert_false(fake_cudart_is_late(first));
  ok(rt->pool_free(b, second));
  ok(rt->pool_free(c, second));
  ok(rt->pool_trim(pool, 0)); /* nothing has come to its end */
  expect_sizes(pool, 300, 0);
  ok(rt->stream_synchronize(second));
  ok(rt->pool_trim(pool, 20));
  expect_sizes(pool, 20, 0);
  ok(rt->pool_destroy(pool));
  ok(rt->stream_destroy(first));
  ok(rt->stream_destroy(second));
  leave(0);
  assert_true(fake_cudart_is_clean());
}

DEVICE_TEST(pool_memory_out_of_order_is_found) {
  void *pool, *adr;
  char byte;
  ok(rt->pool_create(&pool, 0, 0, false));
  void *stream = new_stream();
  ok(rt->pool_malloc(&adr, 1, pool, stream));
  ok(rt->memset_async(adr, 0, 1, stream));
  ok(rt->memcpy(&byte, adr, 1, umemCudaToHost)); /* in another stream's order */
  expect_misuse("before their allocation");
  ok(rt->memset_async(adr, 0, 1, NULL));
  ok(rt->pool_free(adr, stream));
  umemCudaMemory kind = umemCudaDeviceMemory;
  int device = -1;
  ok(rt->pointer(adr, &kind, &device));
  assert_int_equal(kind, umemCudaUnregistered);
  refused(rt->memset_async(adr, 0, 1, stream), umemCudaInvalidValue);
  expect_misuse("in a freed block");
  refused(rt->pool_free(adr, stream), umemCudaInvalidValue);
  expect_misuse("pool_free: ");
  ok(rt->stream_synchronize(stream));
  ok(rt->stream_synchronize(NULL));
  expect_misuse("after they were freed");
  ok(rt->pool_malloc(&adr, 1, pool, stream));
  ok(rt->free(adr)); /* waits for nothing */
  assert_true(fake_cudart_is_late(stream));
  expect_sizes(pool, 0, 0);
  ok(rt->pool_malloc(&adr, 1, pool, stream));
  ok(rt->pool_destroy(pool)); /* its block lives */
  ok(rt->memset_async(adr, 0, 1, stream));
  ok(rt->stream_synchronize(stream));
  assert_int_equal(fake_cudart_live().blocks, 1);
  ok(rt->free(adr));
  ok(rt->stream_destroy(stream));
  fake_cudart_machine()->device[0].no_pools = true;
  refused(rt->pool_create(&pool, 0, 0, false), umemCudaNotSupported);
}

TEST(pools_allow_peers) {
  enter(1);
  enter(0);
  void *pool, *there;
  ok(rt->pool_create(&pool, 1, 0, false));
  ok(rt->pool_malloc(&there, 8, pool, NULL));
  void *here = new_block(8);
  ok(rt->enable_peer_access(1)); /* is not enough */
  ok(rt->memcpy_async(there, here, 8, umemCudaAnyDirection, NULL));
  assert_int_equal(fake_cudart_done().indirect_peer, 1);
  ok(rt->pool_allow(pool, 0));
  assert_int_not_equal(rt->pool_allow(pool, 2), umemCudaSuccess);
  ok(rt->memcpy_async(there, here, 8, umemCudaAnyDirection, NULL));
  assert_int_equal(fake_cudart_done().direct_peer, 1);
}

/* ---- graphs ---- */

static void expect_capture(void *stream, umemCudaCapture expected) {
  umemCudaCapture capture;
  uint64_t id;
  ok(rt->stream_capture(stream, &capture, &id));
  assert_int_equal(capture, expected);
}

DEVICE_TEST(captured_work_is_done_when_launched) {
  void *graph;
  void *stream = new_stream(), *other = new_stream(), *event = new_event();
  unsigned char *adr = new_block(1);
  expect_capture(NULL, umemCudaNoCapture);
  ok(fake_cudart_begin_capture(stream));
  expect_capture(stream, umemCudaCapturing);
  ok(rt->memset_async(adr, 1, 1, stream));
  ok(rt->event_record(event, stream));
  ok(rt->stream_wait(other, event));
  expect_capture(other, umemCudaCapturing);
  ok(fake_cudart_launch(other, increment, adr));
  ok(rt->event_record(event, other));
  ok(rt->stream_wait(stream, event));
  ok(fake_cudart_end_capture(stream, &graph));
  expect_capture(other, umemCudaNoCapture);
  ok(rt->memset_async(adr, 9, 1, stream));
  ok(rt->stream_synchronize(stream));
  assert_int_equal(byte_at(adr), 9);
  ok(fake_cudart_launch_graph(graph, stream));
  ok(rt->stream_synchronize(stream));
  assert_int_equal(byte_at(adr), 2);
}

static void expect_broken(void *stream) {
  void *graph;
  expect_capture(stream, umemCudaCaptureBroken);
  refused(fake_cudart_end_capture(stream, &graph), umemCudaCaptureInvalidated);
  assert_null(graph);
  ok(fake_cudart_begin_capture(stream));
}

DEVICE_TEST(captures_are_broken) {
  void *adr, *graph;
  int mode = 2;
  void *stream = new_stream(), *event = new_event();
  ok(rt->event_record(event, NULL));
  ok(fake_cudart_begin_capture(stream));
  refused(rt->stream_synchronize(stream), umemCudaCaptureUnsupported);
  refused(rt->stream_synchronize(stream), umemCudaCaptureInvalidated);
  expect_broken(stream);
  refused(rt->stream_wait(stream, event), umemCudaCaptureIsolation);
  expect_broken(stream);
  refused(rt->malloc(&adr, 1), umemCudaCaptureUnsupported);
  expect_broken(stream);
  ok(rt->exchange_capture_mode(&mode));
  assert_int_equal(mode, 0);
  ok(rt->malloc(&adr, 1));
  ok(rt->free(adr));
  ok(rt->exchange_capture_mode(&mode));
  assert_int_equal(mode, 2);
  expect_capture(stream, umemCudaCapturing);
  ok(rt->event_record(event, stream));
  assert_int_not_equal(rt->event_synchronize(event), umemCudaSuccess);
  expect_broken(stream);
  ok(fake_cudart_end_capture(stream, &graph));
  ok(rt->event_destroy(event));
  ok(fake_cudart_begin_capture(stream));
  ok(rt->stream_destroy(stream));
  ok(rt->malloc(&adr, 1)); /* there is no capture to break */
}

DEVICE_TEST(pools_are_not_captured) {
  void *pool, *adr, *more;
  ok(rt->pool_create(&pool, 0, 0, false));
  void *stream = new_stream();
  ok(rt->pool_malloc(&adr, 8, pool, stream));
  ok(fake_cudart_begin_capture(stream));
  refused(rt->pool_malloc(&more, 8, pool, stream), umemCudaCaptureUnsupported);
  expect_broken(stream);
  refused(rt->pool_free(adr, stream), umemCudaCaptureUnsupported);
  refused(rt->memset_async(adr, 0, 8, stream), umemCudaCaptureInvalidated);
  expect_broken(stream);
  refused(rt->pool_free(adr, NULL), umemCudaCaptureUnsupported); /* an H100 does so, too */
  expect_broken(stream);
  int mode = 2; /* relaxed */
  ok(rt->exchange_capture_mode(&mode));
  ok(rt->pool_free(adr, NULL));
  ok(rt->exchange_capture_mode(&mode));
  expect_capture(stream, umemCudaCapturing);
  assert_int_equal(fake_cudart_end_capture(stream, &more), umemCudaSuccess);
}
