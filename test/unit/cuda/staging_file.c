/* staging_file.c - long copies between GPUs and files, whose methods fill and empty the pinned
 * chunks: content, order, what fails, captures, few threads and few chunks, on a double of the
 * runtime. */

#include "cuda/cuda_pinned.h"
#include "settings.h"

enum { from = umemStagingFrom, most = 9 * from + 4321 };

#include "pair_help.h"

/* ---- content ---- */

static void check_content(int kind, bool mapped) {
  size_t const sizes[] = {from, from + 1, 3 * from - 7, 8 * from + 12345};
  reopen_pair(kind, 0, mapped, umemDirectAuto);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    there_and_back(&pair, i * 1237, sizes[i], (unsigned)i);
}

LATE_PAIR_TEST(all_bytes_arrive) {
  for (int mapped = 0; mapped < 2; mapped++) {
    if (!setting_small() || !mapped) check_content(aCuda, mapped);
    if (!setting_small() || mapped) check_content(anAsync, mapped);
  }
}

/* What pins a chunk would be seen. */
LATE_PAIR_TEST(the_chunks_are_those_of_pageable_memory) {
  there_and_back(&pair, 0, 8 * from, 1);
  FakeCudartLive live = fake_cudart_live();
  assert_int_equal(live.pinned + live.registered, 2 * threads);
  assert_int_equal(live.streams, threads);
  unsigned long waits = fake_cudart_calls_of("stream_synchronize");
  there_and_back(&pair, 0, 8 * from, 2);
  assert_true(fake_cudart_calls_of("stream_synchronize") - waits <= 2 * threads);
  expect_ok(umem_copy_from(&pair.gpu, pair.far, &pair.host, (uintptr_t)bytes, umemStagingToDevice));
  assert_int_equal(fake_cudart_live().streams, live.streams);
}

LATE_PAIR_TEST(one_thread_and_few_chunks_suffice) {
  umem_parallel_set(1);
  there_and_back(&pair, 3, 3 * from, 1);
  umem_parallel_set(threads);
  expect_ok(umemCuda_set_staging(64 << 10, 3));
  there_and_back(&pair, 5, 3 * from, 2);
  expect_ok(umemCuda_set_staging(0, 1)); /* none for two pieces: the core copies */
  there_and_back(&pair, 7, 3 * from, 3);
}

/* An adaptor sees the copy, and passes it on to the same route. */
LATE_PAIR_TEST(a_copy_through_an_adaptor) {
  CONTEXT(umemStats, stats, &pair.store);
  write_file(&pair, 0, 4 * from, 5);
  expect_ok(umem_copy_to(&stats, pair.near, &pair.gpu, pair.far, 4 * from));
  expect_gpu(&pair, 0, 4 * from, 5);
  assert_true(fake_cudart_live().streams > 0);
}

/* ---- the route ---- */

static bool go_on(void *user UNUSED, uint64_t done UNUSED, uint64_t total UNUSED) { return true; }

/* Of the leg between the file and pinned memory, with progress and in a transfer, too. */
static void expect_workers(umemCopyOptions options) {
  umemRoute route = UMEM_ROUTE_INIT;
  umemTransfer *transfer;
  options.route = &route;
  write_file(&pair, 0, 8 * from, 5);
  expect_ok(umem_copy_to_with(&pair.store, pair.near, &pair.gpu, pair.far, 8 * from, &options));
  assert_int_equal(route.legs[0].workers, threads);
  assert_string_equal(route.legs[1].way, "dma");
  assert_int_equal(route.legs[1].workers, 1);
  options.progress = NULL;
  expect_ok(umem_start(&pair.store, pair.near, &pair.gpu, pair.far, 8 * from, &options, &transfer));
  expect_ok(umemTransfer_release(transfer));
  assert_in_range(route.legs[0].workers, threads - 2, threads); /* who waits may copy itself */
}

LATE_PAIR_TEST(the_route_says_how_many_threads_read) {
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  expect_workers(options);
  options.progress = go_on;
  options.step = 1 << 20;
  expect_workers(options);
}

/* ---- order ---- */

LATE_PAIR_TEST(order_on_a_stream) { check_order(anAsync, umemDirectAuto, 4 * from); }

LATE_PAIR_TEST(order_on_the_legacy_stream) { check_order(aCuda, umemDirectAuto, 4 * from); }

LATE_PAIR_TEST(a_captured_stream_is_refused) {
  void *graph;
  reopen_pair(anAsync, 0, false, umemDirectAuto);
  void *stream = stream_of_pair();
  assert_int_equal(fake_cudart_begin_capture(stream), 0);
  expect_failure(to_gpu(&pair, 2 * from), umemNotSupportedError, "captured into a graph");
  assert_int_equal(fake_cudart_end_capture(stream, &graph), 0);
  there_and_back(&pair, 0, 2 * from, 1);
}

/* ---- failures ---- */

static void expect_works_again(void) {
  umem_clear_status(&pair.store);
  umem_clear_status(&pair.gpu);
  there_and_back(&pair, 0, 4 * from, 3);
}

LATE_PAIR_TEST(a_file_that_is_cut_in_the_middle) {
  for (int kind = 0; kind < 2; kind++)
    for (int mapped = 0; mapped < 2; mapped++) {
      reopen_pair(kind ? anAsync : aCuda, 0, mapped, umemDirectAuto);
      write_file(&pair, 0, 8 * from, 1);
      assert_int_equal(truncate(pair.path, 3 * from + 5), 0);
      expect_cut(to_gpu(&pair, 8 * from));
      umem_free(&pair.store, pair.near); /* until then its lost bytes are refused */
      pair.near = umem_alloc(&pair.store, most);
      expect_works_again();
    }
}

/* A block that the file does not have: nothing is written outside of blocks. */
LATE_PAIR_TEST(a_write_outside_of_blocks) {
  uintptr_t beyond = pair.near + most - 2 * from;
  expect_failure(umem_copy_to(&pair.gpu, pair.far, &pair.store, beyond, 4 * from), umemIndexError,
                 "");
  assert_int_equal(umem_get_status(&pair.store), umemIndexError);
  expect_works_again();
}

/* The GPU fails in a worker: recorded on its context, and nothing is in flight. */
LATE_PAIR_TEST(a_gpu_that_fails) {
  char const *const functions[] = {"memcpy_async", "event_record", "event_synchronize",
                                   "stream_synchronize"};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    for (int reads = 0; reads < 2; reads++) {
      reopen_pair(aCuda, 0, false, umemDirectAuto);
      there_and_back(&pair, 0, 4 * from, 1);
      fake_cudart_fail_in(functions[i], i == 1 ? 3 : 1, umemCudaInvalidValue);
      umemStatusType result = reads ? to_gpu(&pair, 8 * from) : to_file(&pair, 8 * from);
      fake_cudart_fail_in(functions[i], 0, 0);
      if (result != umemOK) { /* a copy from the GPU does not synchronise its streams */
        assert_int_equal(result, umemValueError);
        assert_int_equal(umem_get_status(&pair.gpu), umemValueError);
        umem_thread_clear();
      }
      assert_true(result != umemOK || (i == 3 && !reads));
      expect_works_again();
    }
}

/* ---- threads ---- */

LATE_PAIR_TEST(many_threads_copy) {
  check_threads((int const[]){0, 0, 0}, umemDirectAuto, 3 * from);
}
