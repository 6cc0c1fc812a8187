/* gds_help.h - what the tests of GPUDirect Storage share: a file and a GPU of the doubles, and
 * their bytes. */
#ifndef UMEM_TEST_GDS_HELP_H
#define UMEM_TEST_GDS_HELP_H

#include "cuda_help.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/threads.h"
#include "cuda/cuda_methods.h"
#include "fake/cufile.h"
#include "temporary.h"

enum {
  page = 4096,
  piece = 4 << 20,
  from = umemCudaGdsFrom,
  most = 5 * piece + 54321,
  threads = 4
};

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
  char path[256];
  uintptr_t near, far; /* blocks of most bytes in the store and on the GPU */
} Pair;

static inline umemStatusType open_store(Store *store, char const *path, char const *mode,
                                        bool mapped, umemDirect direct) {
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  options.direct = direct;
  return mapped ? umemMMap_ctor_with(&store->mmap, path, mode, &options)
                : umemFile_ctor_with(&store->file, path, mode, &options);
}

static inline void open_pair_on(Pair *pair, int kind, int device, bool mapped, umemDirect direct) {
  memset(pair, 0, sizeof *pair);
  int fd = temporary_file(pair->path, sizeof pair->path);
  assert_true(fd >= 0 && close(fd) == 0);
  expect_ok(umemHost_ctor(&pair->host));
  expect_ok(construct(&pair->gpu, kind, device));
  expect_ok(open_store(&pair->store, pair->path, "r+", mapped, direct));
  pair->near = umem_alloc(&pair->store, most);
  assert_true(pair->near != umem_null(&pair->store));
  pair->far = block_of(&pair->gpu, most);
}

static inline void open_pair(Pair *pair) { open_pair_on(pair, aCuda, 0, false, umemDirectOn); }

static inline void close_pair(Pair *pair) {
  umem_free(&pair->gpu, pair->far);
  umem_dtor(&pair->gpu);
  umem_dtor(&pair->store);
  umem_dtor(&pair->host);
  assert_int_equal(unlink(pair->path), 0);
  assert_int_equal(umem_thread_status(), umemOK);
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

static inline void write_file(Pair *pair, size_t offset, size_t nbytes, unsigned seed) {
  put(bytes, nbytes, seed);
  expect_ok(
      umem_copy_from(&pair->store, pair->near + offset, &pair->host, (uintptr_t)bytes, nbytes));
}

static inline void expect_file(Pair *pair, size_t offset, size_t nbytes, unsigned seed) {
  memset(back, 0, nbytes);
  expect_ok(umem_copy_to(&pair->store, pair->near + offset, &pair->host, (uintptr_t)back, nbytes));
  assert_true(holds(back, nbytes, seed));
}

static inline void expect_gpu(Pair *pair, size_t offset, size_t nbytes, unsigned seed) {
  assert_true(fake_cudart_peek(pair->far + offset, back, nbytes));
  assert_true(holds(back, nbytes, seed));
}

static inline umemStatusType to_gpu(Pair *pair, size_t nbytes) {
  return umem_copy_to(&pair->store, pair->near, &pair->gpu, pair->far, nbytes);
}

static inline umemStatusType to_file(Pair *pair, size_t nbytes) {
  return umem_copy_to(&pair->gpu, pair->far, &pair->store, pair->near, nbytes);
}

/* Both directions at an offset of the file, with all bytes checked. */
static inline void there_and_back(Pair *pair, size_t offset, size_t nbytes, unsigned seed) {
  uintptr_t near = pair->near + offset, far = pair->far + offset % 13;
  write_file(pair, offset, nbytes, seed);
  expect_ok(umem_copy_to(&pair->store, near, &pair->gpu, far, nbytes));
  expect_gpu(pair, offset % 13, nbytes, seed);
  write_file(pair, offset, nbytes, seed + 1);
  expect_ok(umem_copy_from(&pair->store, near, &pair->gpu, far, nbytes));
  expect_file(pair, offset, nbytes, seed);
}

/* Bytes that cuFile has moved. */
static inline size_t moved(void) {
  FakeCufileDone done = fake_cufile_done();
  return done.bytes_read + done.bytes_written;
}

/* ---- tests ---- */

/* Whether the file system of the tests does direct I/O. Without, cuFile registers no file of it. */
static inline bool has_direct(void) {
  char path[256];
  temporary_name(path, sizeof path);
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_DIRECT, 0600);
  if (fd >= 0) close(fd);
  unlink(path);
  return fd >= 0;
}

static inline int set_up_gds(void **state) {
  cuda_set_up(state);
  fake_cufile_reset();
  fake_cufile_machine()->installed = true;
  umem_parallel_set(threads);
  bytes = malloc(most);
  back = malloc(most);
  assert_true(bytes && back);
  if (!pattern) make_pattern();
  return 0;
}

static inline int tear_down_gds(void **state) {
  FakeCufileDone done = fake_cufile_done();
  assert_int_equal(done.registered, done.released);
  umemCudaGds_end();
  done = fake_cufile_done();
  assert_int_equal(done.opened, done.closed);
  fake_cufile_reset();
  free(bytes);
  free(back);
  umem_parallel_set(0);
  return cuda_tear_down(state);
}

#define CASE(name) TEST_CASE_WITH(name, set_up_gds, tear_down_gds)

#endif
