/* staging_help.h - what the tests of staging share: a GPU of a double of the runtime, memory on it
 * that the CPU can look at, and a copy there and back. */
#pragma once

#include "cuda_help.h"

#include "cuda/cuda_pinned.h"
#include "cuda/cuda_scope.h"
#include "cuda/cuda_methods.h"
#include "core/threads.h"

enum { margin = 64, threads = 4 };

static size_t const from = umemStagingToDevice; /* the greater of the two */

/* ---- a GPU to copy to and from ---- */

typedef struct Bench {
  umemHost ctx; /* that failures are recorded on */
  umemCudaState state;
  umemCudaScope scope;
} Bench;

static Bench bench;
static umemCudaRt table; /* what the library calls: the double, but for what a test puts in */

static inline void bench_open(Bench *one, int device) {
  memset(one, 0, sizeof *one);
  umemHost_ctor(&one->ctx);
  one->state.gpu = umemCudaGpu_open(&one->ctx.super, device);
  assert_non_null(one->state.gpu);
  assert_true(umemCudaScope_enter(&one->scope, &one->ctx.super, one->state.gpu));
}

static inline void bench_close(Bench *one) {
  umemCudaScope_leave(&one->scope);
  umemCudaGpu_close(one->state.gpu);
  umem_dtor(&one->ctx);
}

static inline void open_bench(void **state) {
  cuda_set_up(state);
  table = *rt;
  umemCudaRt_replace(&table);
  umem_parallel_set(threads);
  bench_open(&bench, 0);
}

static inline void close_bench(void **state) {
  bench_close(&bench);
  umem_parallel_set(0);
  cuda_tear_down(state);
}

/* A new GPU 0, after everything of the old one has ended, or was forgotten. */
static inline void reopen_bench(bool forget) {
  bench_close(&bench);
  if (forget) fake_cudart_reset();
  assert_true(fake_cudart_is_clean());
  bench_open(&bench, 0);
}

static inline bool stage(Bench *one, uintptr_t adr, void *host, size_t nbytes,
                         umemCudaDirection kind) {
  return umemCuda_stage(&one->ctx.super, &one->state, adr, NULL, (uintptr_t)host, nbytes, kind);
}

/* The last call has failed as type, as a failure of the GPU's context. Forgets it. */
static inline void expect_staging_failure(umemStatusType type) {
  assert_int_equal(umem_get_status(&bench.ctx), type);
  FORGET(&bench.ctx);
}

static inline size_t live_chunks(void) {
  FakeCudartLive live = fake_cudart_live();
  return live.pinned + live.registered;
}

/* ---- content ---- */

static inline UNWATCHED bool is_all(unsigned char const *bytes, size_t nbytes, unsigned char c) {
  for (size_t i = 0; i < nbytes; i++)
    if (bytes[i] != c) return false;
  return true;
}

/* Device memory of nbytes and margins on both sides, as it is and as it is seen by the CPU. */
typedef struct Block {
  uintptr_t adr;
  size_t nbytes; /* without the margins */
  unsigned char *bytes;
} Block;

static inline Block block_make(size_t nbytes) {
  Block block = {.nbytes = nbytes};
  void *adr = NULL;
  ok(rt->malloc(&adr, nbytes + 2 * margin));
  block.adr = (uintptr_t)adr;
  block.bytes = malloc(nbytes + 2 * margin);
  assert_non_null(block.bytes);
  return block;
}

static inline void block_release(Block *block) {
  ok(rt->free((void *)block->adr));
  free(block->bytes);
}

/* Of a device that has gone with its memory. */
static inline void block_forget(Block *block) { free(block->bytes); }

static inline void block_poke(Block *block) {
  assert_true(fake_cudart_poke(block->adr, block->bytes, block->nbytes + 2 * margin));
}

static inline void block_peek(Block *block) {
  assert_true(fake_cudart_peek(block->adr, block->bytes, block->nbytes + 2 * margin));
}

/* Whether bytes holds the pattern at offset, and c everywhere else. */
static inline bool only(unsigned char const *bytes, size_t room, size_t offset, size_t nbytes,
                        unsigned seed, unsigned char c) {
  return is_all(bytes, offset, c) && is_filled(bytes + offset, nbytes, seed) &&
         is_all(bytes + offset + nbytes, room - offset - nbytes, c);
}

/* Stages nbytes in both directions, at odd addresses, by way of one block. */
static inline void there_and_back(Bench *one, size_t nbytes, size_t host_offset,
                                  size_t device_offset, unsigned seed) {
  umemCudaScope scope; /* that of another bench may be the innermost */
  assert_true(umemCudaScope_enter(&scope, &one->ctx.super, one->state.gpu));
  size_t room = nbytes + 2 * margin;
  SCOPED_BYTES(unsigned char, host, room);
  Block block = block_make(nbytes);
  memset(block.bytes, 7, room);
  block_poke(&block);
  memset(host, 9, room);
  fill(host + host_offset, nbytes, seed);
  uintptr_t device = block.adr + device_offset;

  assert_true(stage(one, device, host + host_offset, nbytes, umemCudaToDevice));
  block_peek(&block);
  assert_true(only(block.bytes, room, device_offset, nbytes, seed, 7));
  assert_true(only(host, room, host_offset, nbytes, seed, 9));

  memset(host, 9, room);
  assert_true(stage(one, device, host + device_offset, nbytes, umemCudaToHost));
  assert_true(only(host, room, device_offset, nbytes, seed, 9));
  assert_int_equal(umem_get_status(&one->ctx), umemOK);
  block_release(&block);
  umemCudaScope_leave(&scope);
}

#define BENCH_TEST(name) TEST_CASE_WITH(name, open_bench, close_bench)
