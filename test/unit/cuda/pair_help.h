/* pair_help.h - what tests of long copies between files and GPUs share: a file and a GPU of the
 * doubles, blocks in both, their bytes, and kernels beside the copies.
 *
 * The test includes it behind `from` and `most`: the bytes of the shortest copy that takes the
 * route under test, and those of the blocks. */
#pragma once

#include "cuda_help.h"

#include "core/threads.h"
#include "temporary.h"

enum { threads = 4 };

static unsigned char *bytes, *back;

typedef union Store {
  umemVirtual super;
  umemFile file;
  umemMMap mmap;
} Store;

typedef struct Pair {
  Any gpu;
  Store store;
  umemHost host;
  char path[256];      /* empty: the pair is closed */
  uintptr_t near, far; /* blocks of most bytes in the store and on the GPU */
} Pair;

static Pair pair; /* is open when a test begins */

static inline umemStatusType open_store(Store *store, char const *path, char const *mode,
                                        bool mapped, umemDirect direct) {
  umemFileOptions options = {.size = sizeof options, .direct = direct};
  return mapped ? umemMMap_ctor_with(&store->mmap, path, mode, &options)
                : umemFile_ctor_with(&store->file, path, mode, &options);
}

static inline void open_pair(Pair *one, int kind, int device, bool mapped, umemDirect direct) {
  memset(one, 0, sizeof *one);
  int fd = temporary_file(one->path, sizeof one->path);
  assert_true(fd >= 0 && close(fd) == 0);
  expect_ok(umemHost_ctor(&one->host));
  expect_ok(construct(&one->gpu, kind, device));
  expect_ok(open_store(&one->store, one->path, "r+", mapped, direct));
  one->near = umem_alloc(&one->store, most);
  assert_true(one->near != umem_null(&one->store));
  one->far = block_of(&one->gpu, most);
}

static inline void close_pair(Pair *one) {
  umem_free(&one->gpu, one->far);
  DESTRUCT(&one->gpu, &one->store, &one->host);
  assert_int_equal(unlink(one->path), 0);
  one->path[0] = '\0';
  assert_int_equal(umem_thread_status(), umemOK);
}

static inline void reopen_pair(int kind, int device, bool mapped, umemDirect direct) {
  if (pair.path[0]) close_pair(&pair);
  open_pair(&pair, kind, device, mapped, direct);
}

/* ---- bytes ---- */

enum { seeds = 64 };

static unsigned char
    *pattern; /* most + seeds bytes. To copy and compare them is fast under sanitizers, too */

static inline void make_pattern(void) {
  pattern = malloc(most + seeds);
  assert_non_null(pattern);
  fill(pattern, most + seeds, 0);
}

static inline void put(unsigned char *to, size_t nbytes, unsigned seed) {
  memcpy(to, pattern + seed, nbytes);
}

static inline bool holds(unsigned char const *at, size_t nbytes, unsigned seed) {
  return !memcmp(at, pattern + seed, nbytes);
}

static inline void write_file(Pair *one, size_t offset, size_t nbytes, unsigned seed) {
  put(bytes, nbytes, seed);
  expect_ok(umem_copy_from(&one->store, one->near + offset, &one->host, (uintptr_t)bytes, nbytes));
}

static inline void expect_file(Pair *one, size_t offset, size_t nbytes, unsigned seed) {
  memset(back, 0, nbytes);
  expect_ok(umem_copy_to(&one->store, one->near + offset, &one->host, (uintptr_t)back, nbytes));
  assert_true(holds(back, nbytes, seed));
}

static inline void expect_gpu(Pair *one, size_t offset, size_t nbytes, unsigned seed) {
  assert_true(fake_cudart_peek(one->far + offset, back, nbytes));
  assert_true(holds(back, nbytes, seed));
}

static inline umemStatusType to_gpu(Pair *one, size_t nbytes) {
  return umem_copy_to(&one->store, one->near, &one->gpu, one->far, nbytes);
}

static inline umemStatusType to_file(Pair *one, size_t nbytes) {
  return umem_copy_to(&one->gpu, one->far, &one->store, one->near, nbytes);
}

/* Both directions at an offset of the file, with all bytes checked. */
static inline void there_and_back(Pair *one, size_t offset, size_t nbytes, unsigned seed) {
  uintptr_t near = one->near + offset, far = one->far + offset % 13;
  write_file(one, offset, nbytes, seed);
  expect_ok(umem_copy_to(&one->store, near, &one->gpu, far, nbytes));
  expect_gpu(one, offset % 13, nbytes, seed);
  write_file(one, offset, nbytes, seed + 1);
  expect_ok(umem_copy_from(&one->store, near, &one->gpu, far, nbytes));
  expect_file(one, offset, nbytes, seed);
}

/* A copy of a block whose file is cut: the failure is that of the store alone. */
static inline void expect_cut(umemStatusType result) {
  expect_failure(result, umemIOError, "truncated by another process");
  assert_int_equal(umem_get_status(&pair.store), umemIOError);
  assert_int_equal(umem_get_status(&pair.gpu), umemOK);
  umem_clear_status(&pair.store);
}

/* ---- order ---- */

typedef struct Kernel {
  size_t nbytes; /* of the block, that it uses */
  int value;     /* what they are set to; -1: they are only looked at */
  unsigned char seen;
} Kernel;

static inline void run_kernel(void *argument) {
  Kernel *kernel = argument;
  unsigned char *all = fake_cudart_at(pair.far, kernel->nbytes);
  kernel->seen = all[kernel->nbytes - 1];
  if (kernel->value >= 0) memset(all, kernel->value, kernel->nbytes);
}

static inline void *stream_of_pair(void) {
  return pair.gpu.super.capabilities & umemOrdered ? (void *)(uintptr_t)info_of(&pair.gpu).stream
                                                   : NULL;
}

static inline void launch(void *stream, Kernel *kernel) {
  enter(0);
  ok(fake_cudart_launch(stream, run_kernel, kernel));
  assert_true(fake_cudart_is_late(stream));
  leave(0);
}

/* The copy to the file has what a kernel that is still queued on stream writes. */
static inline void expect_copy_after_kernel(void *stream, size_t nbytes) {
  Kernel kernel = {nbytes, 6, 0};
  launch(stream, &kernel);
  expect_ok(to_file(&pair, nbytes));
  expect_ok(umem_copy_to(&pair.store, pair.near, &pair.host, (uintptr_t)back, nbytes));
  assert_true(back[0] == 6 && !memcmp(back, back + 1, nbytes - 1));
}

/* What was queued before is done before the copy, what is queued later comes after it. */
static inline void check_order(int kind, umemDirect direct, size_t nbytes) {
  reopen_pair(kind, 0, false, direct);
  void *stream = stream_of_pair();
  expect_copy_after_kernel(stream, nbytes);
  Kernel second = {nbytes, 7, 0}, third = {nbytes, -1, 0};
  memset(bytes, 9, nbytes);
  expect_ok(umem_copy_from(&pair.store, pair.near, &pair.host, (uintptr_t)bytes, nbytes));
  launch(stream, &second);
  expect_ok(to_gpu(&pair, nbytes));
  assert_int_equal(second.seen, 6);
  launch(stream, &third);
  expect_ok(umem_synchronize(&pair.gpu));
  assert_int_equal(third.seen, 9);
}

/* ---- threads ---- */

static size_t copied_often; /* bytes */

static inline void *copy_often(void *argument) {
  for (int i = 0; i < 4; i++)
    if (to_gpu(argument, copied_often) != umemOK || to_file(argument, copied_often) != umemOK)
      return argument;
  return NULL;
}

/* Pairs of these GPUs, of which one has a mapped file, copy at the same time. */
static inline void check_threads(int const devices[3], umemDirect direct, size_t nbytes) {
  Pair pairs[3];
  copied_often = nbytes;
  for (unsigned i = 0; i < 3; i++) {
    open_pair(&pairs[i], aCuda, devices[i], i == 1, direct);
    write_file(&pairs[i], 0, nbytes, i);
  }
  run_at_once(3, copy_often, pairs, sizeof *pairs);
  for (unsigned i = 0; i < 3; i++) {
    expect_file(&pairs[i], 0, nbytes, i);
    expect_gpu(&pairs[i], 0, nbytes, i);
    close_pair(&pairs[i]);
  }
}

/* ---- tests ---- */

static inline void set_up_pair(umemDirect direct) {
  umem_parallel_set(threads);
  bytes = malloc(most);
  back = malloc(most);
  assert_true(bytes && back);
  if (!pattern) make_pattern();
  open_pair(&pair, aCuda, 0, false, direct);
}

static inline void tear_down_pair(void) {
  if (pair.path[0]) close_pair(&pair);
  free(bytes);
  free(back);
  umem_parallel_set(0);
}

/* For tests of copies of pageable memory that the double does late. */
static inline void set_up_late(void **state) {
  cuda_set_up(state);
  fake_cudart_machine()->late_pageable = true;
  set_up_pair(umemDirectAuto);
}

static inline void tear_down_late(void **state) {
  tear_down_pair();
  cuda_tear_down(state);
}

#define LATE_PAIR_TEST(name) TEST_CASE_WITH(name, set_up_late, tear_down_late)
