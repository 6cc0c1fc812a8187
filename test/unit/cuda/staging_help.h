/* staging_help.h - what the tests of staging share: a GPU of a double of the runtime, memory on it
 * that the CPU can look at, and a copy there and back. */
#ifndef UMEM_TEST_STAGING_HELP_H
#define UMEM_TEST_STAGING_HELP_H

#include <stdlib.h>
#include <string.h>
#include <umem.h>

#include "fake/cudart.h"
#include "cuda/cuda_pinned.h"
#include "cuda/cuda_scope.h"
#include "cuda/cuda_methods.h"
#include "core/threads.h"
#include "unwatched.h"
#include "cases.h"

enum { margin = 64, threads = 4 };

static size_t const from = umemStagingToDevice; /* the greater of the two */

/* ---- a GPU to copy to and from ---- */

typedef struct Bench {
  umemHost ctx; /* that failures are recorded on */
  umemCudaState state;
  umemCudaScope scope;
} Bench;

static umemCudaRt const *rt;
static umemCudaRt table; /* what the library calls: the double, but for what a test puts in */

static inline void bench_open(Bench *bench, int device) {
  memset(bench, 0, sizeof *bench);
  umemHost_ctor(&bench->ctx);
  bench->state.gpu = umemCudaGpu_open(&bench->ctx.super, device);
  assert_non_null(bench->state.gpu);
  assert_true(umemCudaScope_enter(&bench->scope, &bench->ctx.super, bench->state.gpu));
}

static inline void bench_close(Bench *bench) {
  umemCudaScope_leave(&bench->scope);
  umemCudaGpu_close(bench->state.gpu);
  umem_dtor(&bench->ctx);
}

static inline int set_up(void **state) {
  fake_cudart_reset();
  rt = fake_cudart();
  table = *rt;
  umemCudaRt_replace(&table);
  umem_parallel_set(threads);
  static Bench bench;
  bench_open(&bench, 0);
  *state = &bench;
  return 0;
}

static inline int tear_down(void **state) {
  bench_close(*state);
  umemCuda_set_staging(0, 0);
  umem_parallel_set(0);
  char const *misuse = fake_cudart_misuse();
  if (misuse) print_error("%s\n", misuse);
  assert_null(misuse);
  assert_true(fake_cudart_is_clean());
  umemCudaRt_replace(NULL);
  return 0;
}

static inline size_t live_chunks(void) {
  FakeCudartLive live = fake_cudart_live();
  return live.pinned + live.registered;
}

/* ---- content ---- */

static inline UNWATCHED unsigned char byte_of(size_t i, unsigned seed) {
  return (unsigned char)((i * 2654435761u >> 13) + seed);
}

static inline UNWATCHED void fill(unsigned char *bytes, size_t nbytes, unsigned seed) {
  for (size_t i = 0; i < nbytes; i++) bytes[i] = byte_of(i, seed);
}

static inline UNWATCHED bool holds(unsigned char const *bytes, size_t nbytes, unsigned seed) {
  for (size_t i = 0; i < nbytes; i++)
    if (bytes[i] != byte_of(i, seed)) return false;
  return true;
}

static inline UNWATCHED bool is_all(unsigned char const *bytes, size_t nbytes, unsigned char c) {
  for (size_t i = 0; i < nbytes; i++)
    if (bytes[i] != c) return false;
  return true;
}

/* Device memory of nbytes and margins on both sides, as it is and as it is seen by the CPU. */
typedef struct Block {
  void *adr;
  size_t nbytes; /* without the margins */
  unsigned char *bytes;
} Block;

static inline Block block_make(size_t nbytes) {
  Block block = {.nbytes = nbytes};
  assert_int_equal(rt->malloc(&block.adr, nbytes + 2 * margin), 0);
  block.bytes = malloc(nbytes + 2 * margin);
  assert_non_null(block.bytes);
  return block;
}

static inline void block_release(Block *block) {
  assert_int_equal(rt->free(block->adr), 0);
  free(block->bytes);
}

static inline void block_poke(Block *block) {
  assert_true(fake_cudart_poke((uintptr_t)block->adr, block->bytes, block->nbytes + 2 * margin));
}

static inline void block_peek(Block *block) {
  assert_true(fake_cudart_peek((uintptr_t)block->adr, block->bytes, block->nbytes + 2 * margin));
}

/* Whether bytes holds the pattern at offset, and c everywhere else. */
static inline bool only(unsigned char const *bytes, size_t room, size_t offset, size_t nbytes,
                        unsigned seed, unsigned char c) {
  return is_all(bytes, offset, c) && holds(bytes + offset, nbytes, seed) &&
         is_all(bytes + offset + nbytes, room - offset - nbytes, c);
}

/* Stages nbytes in both directions, at odd addresses, by way of one block. */
static inline void there_and_back(Bench *bench, size_t nbytes, size_t host_offset,
                                  size_t device_offset, unsigned seed) {
  umemCudaScope scope; /* that of another bench may be the innermost */
  assert_true(umemCudaScope_enter(&scope, &bench->ctx.super, bench->state.gpu));
  size_t room = nbytes + 2 * margin;
  unsigned char *host = malloc(room);
  assert_non_null(host);
  Block block = block_make(nbytes);
  memset(block.bytes, 7, room);
  block_poke(&block);
  memset(host, 9, room);
  fill(host + host_offset, nbytes, seed);
  uintptr_t device = (uintptr_t)block.adr + device_offset;

  assert_true(umemCuda_stage(&bench->ctx.super, &bench->state, device, host + host_offset, nbytes,
                             umemCudaToDevice));
  block_peek(&block);
  assert_true(only(block.bytes, room, device_offset, nbytes, seed, 7));
  assert_true(only(host, room, host_offset, nbytes, seed, 9));

  memset(host, 9, room);
  assert_true(umemCuda_stage(&bench->ctx.super, &bench->state, device, host + device_offset, nbytes,
                             umemCudaToHost));
  assert_true(only(host, room, device_offset, nbytes, seed, 9));
  assert_int_equal(umem_get_status(&bench->ctx), umemOK);
  block_release(&block);
  free(host);
  umemCudaScope_leave(&scope);
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

#endif
