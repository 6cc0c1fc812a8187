/* staging_file.c - long copies between GPUs and files, whose methods fill and empty the pinned
 * chunks: content, order, what fails, captures, few threads and few chunks, on a double of the
 * runtime. */
#include "cuda_help.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/threads.h"
#include "cuda/cuda_pinned.h"
#include "settings.h"
#include "temporary.h"

enum { from = umemStagingFrom, threads = 4 };

static size_t const most = 9 * (size_t)from + 4321;

static unsigned char *bytes, *back;

/* ---- a file and a GPU ---- */

typedef struct Pair {
  Any gpu;
  union {
    umemVirtual super;
    umemFile file;
    umemMMap mmap;
  } store;
  umemHost host;
  char path[256];
  uintptr_t near, far; /* blocks of most bytes in the store and on the GPU */
} Pair;

static void open_pair(Pair *pair, int kind, bool mapped) {
  memset(pair, 0, sizeof *pair);
  int fd = temporary_file(pair->path, sizeof pair->path);
  assert_true(fd >= 0 && close(fd) == 0);
  expect_ok(umemHost_ctor(&pair->host));
  expect_ok(construct(&pair->gpu, kind, 0));
  expect_ok(mapped ? umemMMap_ctor(&pair->store.mmap, pair->path, "r+")
                   : umemFile_ctor(&pair->store.file, pair->path, "r+"));
  pair->near = umem_alloc(&pair->store, most);
  assert_true(pair->near != umem_null(&pair->store));
  pair->far = block_of(&pair->gpu, most);
}

static void close_pair(Pair *pair) {
  umem_free(&pair->gpu, pair->far);
  umem_dtor(&pair->gpu);
  umem_dtor(&pair->store);
  umem_dtor(&pair->host);
  assert_int_equal(unlink(pair->path), 0);
  assert_int_equal(umem_thread_status(), umemOK);
}

static void write_file(Pair *pair, size_t offset, size_t nbytes, unsigned seed) {
  fill(bytes, nbytes, seed);
  expect_ok(
      umem_copy_from(&pair->store, pair->near + offset, &pair->host, (uintptr_t)bytes, nbytes));
}

static void expect_file(Pair *pair, size_t offset, size_t nbytes, unsigned seed) {
  memset(back, 0, nbytes);
  expect_ok(umem_copy_to(&pair->store, pair->near + offset, &pair->host, (uintptr_t)back, nbytes));
  assert_true(is_filled(back, nbytes, seed));
}

static void expect_gpu(Pair *pair, size_t offset, size_t nbytes, unsigned seed) {
  assert_true(fake_cudart_peek(pair->far + offset, back, nbytes));
  assert_true(is_filled(back, nbytes, seed));
}

static void there_and_back(Pair *pair, size_t offset, size_t nbytes, unsigned seed) {
  uintptr_t near = pair->near + offset, far = pair->far + offset % 13;
  write_file(pair, offset, nbytes, seed);
  expect_ok(umem_copy_to(&pair->store, near, &pair->gpu, far, nbytes));
  expect_gpu(pair, offset % 13, nbytes, seed); /* complete on return */
  write_file(pair, offset, nbytes, seed + 1);
  expect_ok(umem_copy_from(&pair->store, near, &pair->gpu, far, nbytes));
  expect_file(pair, offset, nbytes, seed);
}

static int set_up_threads(void **state) {
  cuda_set_up(state);
  fake_cudart_machine()->late_pageable = true;
  umem_parallel_set(threads);
  bytes = malloc(most);
  back = malloc(most);
  assert_true(bytes && back);
  return 0;
}

static int tear_down_threads(void **state) {
  free(bytes);
  free(back);
  umem_parallel_set(0);
  return cuda_tear_down(state);
}

/* ---- content ---- */

static void check_content(int kind, bool mapped) {
  Pair pair;
  size_t const sizes[] = {from, from + 1, 3 * from - 7, 8 * from + 12345};
  open_pair(&pair, kind, mapped);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    there_and_back(&pair, i * 1237, sizes[i], (unsigned)i);
  close_pair(&pair);
}

#define CASE(name) TEST_CASE_WITH(name, set_up_threads, tear_down_threads)

CASE(test_all_bytes_arrive) {
  for (int mapped = 0; mapped < 2; mapped++) {
    if (!setting_small() || !mapped) check_content(aCuda, mapped);
    if (!setting_small() || mapped) check_content(anAsync, mapped);
  }
}

/* What pins a chunk would be seen. */
CASE(test_the_chunks_are_those_of_pageable_memory) {
  Pair pair;
  open_pair(&pair, aCuda, false);
  there_and_back(&pair, 0, 8 * from, 1);
  FakeCudartLive live = fake_cudart_live();
  assert_int_equal(live.pinned + live.registered, 2 * threads);
  assert_int_equal(live.streams, threads);
  unsigned long waits = fake_cudart_calls_of("stream_synchronize");
  there_and_back(&pair, 0, 8 * from, 2);
  assert_true(fake_cudart_calls_of("stream_synchronize") - waits <= 2 * threads);
  expect_ok(umem_copy_from(&pair.gpu, pair.far, &pair.host, (uintptr_t)bytes, umemStagingToDevice));
  assert_int_equal(fake_cudart_live().streams, live.streams);
  close_pair(&pair);
}

CASE(test_one_thread_and_few_chunks_suffice) {
  Pair pair;
  open_pair(&pair, aCuda, false);
  umem_parallel_set(1);
  there_and_back(&pair, 3, 3 * from, 1);
  umem_parallel_set(threads);
  expect_ok(umemCuda_set_staging(64 << 10, 3));
  there_and_back(&pair, 5, 3 * from, 2);
  expect_ok(umemCuda_set_staging(0, 1)); /* none for two pieces: the core copies */
  there_and_back(&pair, 7, 3 * from, 3);
  close_pair(&pair);
}

/* An adaptor sees the copy, and passes it on to the same route. */
CASE(test_a_copy_through_an_adaptor) {
  Pair pair;
  umemStats stats;
  open_pair(&pair, aCuda, false);
  expect_ok(umemStats_ctor(&stats, &pair.store));
  write_file(&pair, 0, 4 * from, 5);
  expect_ok(umem_copy_to(&stats, pair.near, &pair.gpu, pair.far, 4 * from));
  expect_gpu(&pair, 0, 4 * from, 5);
  assert_true(fake_cudart_live().streams > 0);
  umem_dtor(&stats);
  close_pair(&pair);
}

/* ---- order ---- */

typedef struct Kernel {
  Pair *pair;
  int value; /* what the block is set to; -1: it is only looked at */
  unsigned char seen;
} Kernel;

static void run_kernel(void *argument) {
  Kernel *kernel = argument;
  size_t nbytes = 4 * from;
  unsigned char *all = fake_cudart_at(kernel->pair->far, nbytes);
  kernel->seen = all[nbytes - 1];
  if (kernel->value >= 0) memset(all, kernel->value, nbytes);
}

/* What was queued before is done before the copy, what is queued later comes after it. */
static void check_order(int kind) {
  Pair pair;
  open_pair(&pair, kind, false);
  umemInfo info = UMEM_INFO_INIT;
  expect_ok(umem_get_info(&pair.gpu, &info));
  void *stream = kind == anAsync ? (void *)(uintptr_t)info.stream : NULL;
  enter(0);
  size_t const nbytes = 4 * from;

  Kernel first = {&pair, 6, 0};
  assert_int_equal(fake_cudart_launch(stream, run_kernel, &first), 0);
  assert_true(fake_cudart_is_late(stream));
  expect_ok(umem_copy_to(&pair.gpu, pair.far, &pair.store, pair.near, nbytes));
  expect_ok(umem_copy_to(&pair.store, pair.near, &pair.host, (uintptr_t)back, nbytes));
  assert_true(back[0] == 6 && !memcmp(back, back + 1, nbytes - 1));

  Kernel second = {&pair, 7, 0}, third = {&pair, -1, 0};
  memset(bytes, 9, nbytes);
  expect_ok(umem_copy_from(&pair.store, pair.near, &pair.host, (uintptr_t)bytes, nbytes));
  assert_int_equal(fake_cudart_launch(stream, run_kernel, &second), 0);
  expect_ok(umem_copy_to(&pair.store, pair.near, &pair.gpu, pair.far, nbytes));
  assert_int_equal(second.seen, 6);
  assert_int_equal(fake_cudart_launch(stream, run_kernel, &third), 0);
  expect_ok(umem_synchronize(&pair.gpu));
  assert_int_equal(third.seen, 9);
  leave(0);
  close_pair(&pair);
}

CASE(test_order_on_a_stream) { check_order(anAsync); }

CASE(test_order_on_the_legacy_stream) { check_order(aCuda); }

CASE(test_a_captured_stream_is_refused) {
  Pair pair;
  void *graph;
  open_pair(&pair, anAsync, false);
  umemInfo info = UMEM_INFO_INIT;
  expect_ok(umem_get_info(&pair.gpu, &info));
  void *stream = (void *)(uintptr_t)info.stream;
  assert_int_equal(fake_cudart_begin_capture(stream), 0);
  expect_failure(umem_copy_to(&pair.store, pair.near, &pair.gpu, pair.far, 2 * from),
                 umemNotSupportedError, "captured into a graph");
  assert_int_equal(fake_cudart_end_capture(stream, &graph), 0);
  there_and_back(&pair, 0, 2 * from, 1);
  close_pair(&pair);
}

/* ---- failures ---- */

static void expect_works_again(Pair *pair) {
  umem_clear_status(&pair->store);
  umem_clear_status(&pair->gpu);
  there_and_back(pair, 0, 4 * from, 3);
}

CASE(test_a_file_that_is_cut_in_the_middle) {
  for (int kind = 0; kind < 2; kind++)
    for (int mapped = 0; mapped < 2; mapped++) {
      Pair pair;
      open_pair(&pair, kind ? anAsync : aCuda, mapped);
      write_file(&pair, 0, 8 * from, 1);
      assert_int_equal(truncate(pair.path, 3 * from + 5), 0);
      expect_failure(umem_copy_to(&pair.store, pair.near, &pair.gpu, pair.far, 8 * from),
                     umemIOError, "truncated by another process");
      assert_int_equal(umem_get_status(&pair.store), umemIOError);
      assert_int_equal(umem_get_status(&pair.gpu), umemOK);
      umem_free(&pair.store, pair.near); /* until then its lost bytes are refused */
      pair.near = umem_alloc(&pair.store, most);
      expect_works_again(&pair);
      close_pair(&pair);
    }
}

/* A block that the file does not have: nothing is written outside of blocks. */
CASE(test_a_write_outside_of_blocks) {
  Pair pair;
  open_pair(&pair, aCuda, false);
  uintptr_t beyond = pair.near + most - 2 * from;
  expect_failure(umem_copy_to(&pair.gpu, pair.far, &pair.store, beyond, 4 * from), umemIndexError,
                 "");
  assert_int_equal(umem_get_status(&pair.store), umemIndexError);
  expect_works_again(&pair);
  close_pair(&pair);
}

/* The GPU fails in a worker: recorded on its context, and nothing is in flight. */
CASE(test_a_gpu_that_fails) {
  char const *const functions[] = {"memcpy_async", "event_record", "event_synchronize",
                                   "stream_synchronize"};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    for (int to_gpu = 0; to_gpu < 2; to_gpu++) {
      Pair pair;
      open_pair(&pair, aCuda, false);
      there_and_back(&pair, 0, 4 * from, 1);
      fake_cudart_fail_in(functions[i], i == 1 ? 3 : 1, umemCudaInvalidValue);
      umemStatusType result =
          to_gpu ? umem_copy_to(&pair.store, pair.near, &pair.gpu, pair.far, 8 * from)
                 : umem_copy_from(&pair.store, pair.near, &pair.gpu, pair.far, 8 * from);
      fake_cudart_fail_in(functions[i], 0, 0);
      if (result != umemOK) { /* a copy from the GPU does not synchronise its streams */
        assert_int_equal(result, umemValueError);
        assert_int_equal(umem_get_status(&pair.gpu), umemValueError);
        umem_thread_clear();
      }
      assert_true(result != umemOK || (i == 3 && !to_gpu));
      expect_works_again(&pair);
      close_pair(&pair);
    }
}

/* ---- threads ---- */

static void *copy_often(void *argument) {
  Pair *pair = argument;
  for (int i = 0; i < 5; i++)
    if (umem_copy_to(&pair->store, pair->near, &pair->gpu, pair->far, 3 * from) != umemOK ||
        umem_copy_to(&pair->gpu, pair->far, &pair->store, pair->near, 3 * from) != umemOK)
      return pair;
  return NULL;
}

CASE(test_many_threads_copy) {
  Pair pairs[3];
  pthread_t ids[3];
  for (unsigned i = 0; i < 3; i++) {
    open_pair(&pairs[i], aCuda, i == 1);
    write_file(&pairs[i], 0, 3 * from, i);
  }
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&ids[i], NULL, copy_often, &pairs[i]), 0);
  for (unsigned i = 0; i < 3; i++) {
    void *failed;
    assert_int_equal(pthread_join(ids[i], &failed), 0);
    assert_null(failed);
    expect_file(&pairs[i], 0, 3 * from, i);
    expect_gpu(&pairs[i], 0, 3 * from, i);
  }
  for (unsigned i = 0; i < 3; i++) close_pair(&pairs[i]);
}

int main(void) { return run_cases(NULL, NULL); }
