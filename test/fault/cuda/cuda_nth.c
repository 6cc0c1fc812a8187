/* cuda_nth.c - the n-th call of the CUDA runtime fails, for every n that a scenario
 * reaches.
 *
 * Contexts x scenarios x errors; the n-th call fails for n = 1, 2, ... until a run ends without
 * having met its fault. After each: success with all data checked, or a status with a message;
 * the caller's current GPU as it was; the same again on the same context without a fault;
 * nothing left at the end.
 *
 * On a double of the runtime; with the environment variable UMEM_TEST_GPU on the real one, with
 * fewer errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <umem.h>

#include "backends.h"
#include "fault/child.h"
#include "fake/cudart.h"
#include "fake/cudart_wrap.h"
#include "settings.h"
#include "cuda/cuda_staging.h"

/* ---- what may fail without a status ---- */

#define IS_ONE_OF(list, name) is_one_of((list), sizeof(list) / sizeof *(list), (name))

static bool is_one_of(char const *const *list, size_t count, char const *name) {
  for (size_t i = 0; i < count; i++)
    if (!strcmp(list[i], name)) return true;
  return false;
}

/* Functions whose failure a call may survive without a status. All others must record one. */
static char const *const optional[] = {
    "attribute",
    "device_name", /* the GPU then counts as one that lacks it; it has no name */
    "can_access_peer",
    "enable_peer_access",
    "pool_allow",     /* by way of the host instead */
    "pointer",        /* memory of which nothing is known counts as pageable */
    "stream_capture", /* a capture that is there makes the next call fail */
    /* Staging falls back to a plain copy, or to buffers that are not pinned. */
    "host_alloc",
    "host_register",
    "stream_create",
    "event_create",
    "event_record",
    "stream_wait",
    "context_current",
    "context_push",
    "context_pop",
    "exchange_capture_mode",
    /* What has become useless and goes with its context at the latest. */
    "host_free",
    "host_unregister",
    "stream_destroy",
    "event_destroy",
    "pool_destroy",
    "primary_release",
};

/* A driver that supports no pools is one of those that have none. */
static bool may_be_silent(char const *failed, int error) {
  return IS_ONE_OF(optional, failed) ||
         (!strcmp(failed, "pool_create") && error == umemCudaNotSupported);
}

/* Those after which a destructor may leave something: it could not be destroyed, */
static char const *const destroyers[] = {"host_free",     "host_unregister", "stream_destroy",
                                         "event_destroy", "pool_destroy",    "primary_release",
                                         "free",          "pool_free"};

/* or none of what destroys it could be called. */
static char const *const ways_in[] = {"context_current", "context_push", "exchange_capture_mode"};

/* ---- a trial ---- */

typedef struct Trial {
  char const *row, *scenario;
  int error;
  unsigned long nth;
  char const *failed; /* the function that has failed, once it is known */
  umemVirtual *ctx, *peer;
  umemHost host;
  umemStatusType result; /* of the first step that failed */
  uint64_t failures;     /* of this thread, after the last step */
  CudartWrapLive before;
} Trial;

static umemCudaRt const *runtime; /* behind the table with the faults */
static bool on_gpu;

static void complain(Trial const *trial, char const *what, int line) {
  fail_msg("line %d: %s: %s, %s, call %lu (%s) fails with %d; \"%s\"", line, what, trial->row,
           trial->scenario, trial->nth, trial->failed ? trial->failed : "none", trial->error,
           umem_thread_message());
}
#define REQUIRE(trial, condition) ((condition) ? (void)0 : complain((trial), #condition, __LINE__))

/* Whether this thread is where it was: in no context, and in the mode of captures that it began in. (To
 * ask CUDA for the mode would make a context current.) */
static bool is_where_it_was(void) {
  void *context = NULL;
  return runtime->context_current(&context) == umemCudaSuccess && !context &&
         (on_gpu || fake_cudart_capture_mode() == 0);
}

/* Ends a step: whether it succeeded. */
static bool settle(Trial *trial) {
  uint64_t failures = umem_thread_failures();
  bool good = failures == trial->failures;
  trial->failures = failures;
  trial->failed = cudart_wrap_failed();
  REQUIRE(trial, is_where_it_was());
  if (good) return true;
  REQUIRE(trial, umem_thread_status() != umemOK);
  REQUIRE(trial, !strncmp(umem_thread_message(), "umem", 4));
  if (trial->result == umemOK) trial->result = umem_thread_status();
  return false;
}

/* A call that returned status, which must agree with what the thread recorded. */
static bool step(Trial *trial, umemStatusType status, int line) {
  bool good = settle(trial);
  if (good != (status == umemOK))
    complain(trial, "what was returned is not what was recorded", line);
  return good;
}
#define STEP(trial, call) step((trial), (call), __LINE__)

static bool got(Trial *trial, umemVirtual *ctx, uintptr_t adr, int line) {
  bool good = settle(trial);
  if (good != (adr != umem_null(ctx))) complain(trial, "null is not what was recorded", line);
  return good;
}
#define GOT(trial, ctx, adr, call) got((trial), (ctx), (adr) = (call), __LINE__)

/* Frees adr, null or not. What could not be freed is tried again with the faults held back. */
static void drop(Trial *trial, umemVirtual *ctx, uintptr_t adr) {
  umem_free(ctx, adr);
  if (settle(trial)) return;
  cudart_wrap_hold(true);
  umemAttempt again;
  umemAttempt_begin(&again);
  umem_free(ctx, adr);
  umemAttempt_end(&again);
  trial->failures = umem_thread_failures();
  cudart_wrap_hold(false);
}

/* ---- data; with the faults held back ---- */

enum {
  small = 3000,
  middle = 100 << 10,
  large =
      umemStagingToHost, /* is staged on its way to the host and between the device and files, and
                                    registered when pinned */
  largest = umemStagingToDevice, /* is staged both ways */
  narrow_rows = 16 << 10,
  seeds = 16
};

static unsigned char pattern[largest + seeds], bytes[largest], back[largest];

static unsigned char byte_of(size_t i, unsigned seed) { return pattern[i + seed]; }

static void fill(unsigned char *to, size_t n, unsigned seed) { memcpy(to, pattern + seed, n); }

static bool is_filled(unsigned char const *from, size_t n, unsigned seed) {
  return !memcmp(from, pattern + seed, n);
}

static void finish(Trial *trial) {
  cudart_wrap_hold(true);
  if (trial->ctx) REQUIRE(trial, umem_synchronize(trial->ctx) == umemOK);
  if (trial->peer) REQUIRE(trial, umem_synchronize(trial->peer) == umemOK);
  cudart_wrap_hold(false);
}

/* Writes n bytes of seed to adr. */
static void put(Trial *trial, umemVirtual *ctx, uintptr_t adr, size_t n, unsigned seed) {
  cudart_wrap_hold(true);
  fill(bytes, n, seed);
  REQUIRE(trial, umem_copy_from(ctx, adr, &trial->host, (uintptr_t)bytes, n) == umemOK);
  REQUIRE(trial, umem_synchronize(ctx) == umemOK);
  cudart_wrap_hold(false);
}

static void require_filled(Trial *trial, umemVirtual *ctx, uintptr_t adr, size_t n, unsigned seed) {
  cudart_wrap_hold(true);
  REQUIRE(trial, umem_copy_to(ctx, adr, &trial->host, (uintptr_t)back, n) == umemOK);
  REQUIRE(trial, umem_synchronize(ctx) == umemOK);
  REQUIRE(trial, is_filled(back, n, seed));
  cudart_wrap_hold(false);
}

/* A block of n bytes of seed. */
static uintptr_t block_of(Trial *trial, umemVirtual *ctx, size_t n, unsigned seed) {
  cudart_wrap_hold(true);
  uintptr_t adr = umem_alloc(ctx, n);
  cudart_wrap_hold(false);
  REQUIRE(trial, adr != umem_null(ctx));
  put(trial, ctx, adr, n, seed);
  return adr;
}

/* ---- scenarios: they free what they took whatever failed ---- */

static void allocate(Trial *trial) {
  umemVirtual *ctx = trial->ctx;
  uintptr_t adr, zero, big;
  bool filled = GOT(trial, ctx, adr, umem_alloc(ctx, small));
  if (filled) put(trial, ctx, adr, small, 1);
  if (GOT(trial, ctx, zero, umem_calloc(ctx, 1, small))) {
    cudart_wrap_hold(true);
    REQUIRE(trial, umem_copy_to(ctx, zero, &trial->host, (uintptr_t)back, small) == umemOK);
    REQUIRE(trial, umem_synchronize(ctx) == umemOK && !back[0] && !back[small - 1]);
    cudart_wrap_hold(false);
  }
  GOT(trial, ctx, big, umem_alloc(ctx, large));
  if (filled) require_filled(trial, ctx, adr, small, 1);
  drop(trial, ctx, zero);
  drop(trial, ctx, adr);
  drop(trial, ctx, big);
}

static void set(Trial *trial) {
  uintptr_t adr = block_of(trial, trial->ctx, small, 0);
  bool good = STEP(trial, umem_set(trial->ctx, adr, 5, small));
  if (good) good = STEP(trial, umem_synchronize(trial->ctx));
  if (good) {
    unsigned char edges[2] = {0, 0};
    cudart_wrap_hold(true);
    umem_copy_to(trial->ctx, adr, &trial->host, (uintptr_t)&edges[0], 1);
    umem_copy_to(trial->ctx, adr + small - 1, &trial->host, (uintptr_t)&edges[1], 1);
    umem_synchronize(trial->ctx);
    cudart_wrap_hold(false);
    REQUIRE(trial, edges[0] == 5 && edges[1] == 5);
  }
  finish(trial);
  drop(trial, trial->ctx, adr);
}

/* To the context and back, n bytes of the host's or of the peer's. */
static void there_and_back(Trial *trial, umemVirtual *with, size_t n) {
  umemVirtual *ctx = trial->ctx;
  uintptr_t adr = block_of(trial, ctx, n, 0);
  uintptr_t from = block_of(trial, with, n, 7), to = block_of(trial, with, n, 0);
  bool good = STEP(trial, umem_copy_from(ctx, adr, with, from, n));
  if (good) good = STEP(trial, umem_copy_to(ctx, adr, with, to, n));
  if (good) good = STEP(trial, umem_synchronize(ctx));
  if (good) good = STEP(trial, umem_synchronize(with));
  finish(trial);
  if (good) require_filled(trial, with, to, n, 7);
  if (good) require_filled(trial, ctx, adr, n, 7);
  drop(trial, with, from);
  drop(trial, with, to);
  drop(trial, ctx, adr);
}

static void copy_small(Trial *trial) { there_and_back(trial, &trial->host.super, small); }
static void copy_large(Trial *trial) { there_and_back(trial, &trial->host.super, large); }
static void copy_largest(Trial *trial) { there_and_back(trial, &trial->host.super, largest); }
static void copy_to_peer(Trial *trial) { there_and_back(trial, trial->peer, middle); }
static void copy_large_to_peer(Trial *trial) { there_and_back(trial, trial->peer, large); }
static void copy_inside(Trial *trial) { there_and_back(trial, trial->ctx, small); }

/* Every second byte pair of rows. */
static void strided_with(Trial *trial, umemVirtual *with) {
  size_t const extents[] = {8, 30}; /* more boxes go through host memory */
  ptrdiff_t const gaps[] = {100, 3}, none[] = {60, 2};
  umemLayout in = {sizeof in, 2, 2, extents, gaps, gaps};
  umemLayout out = {sizeof out, 2, 2, extents, gaps, none};
  umemVirtual *ctx = trial->ctx;
  uintptr_t adr = block_of(trial, ctx, small, 0);
  uintptr_t from = block_of(trial, with, small, 7), to = block_of(trial, with, small, 0);
  bool good = STEP(trial, umem_copy_strided(with, from, ctx, adr, &in));
  if (good) good = STEP(trial, umem_copy_strided(ctx, adr, with, to, &out));
  if (good) good = STEP(trial, umem_synchronize(ctx));
  finish(trial);
  if (good) {
    cudart_wrap_hold(true);
    REQUIRE(trial, umem_copy_to(with, to, &trial->host, (uintptr_t)back, 8 * 60) == umemOK);
    REQUIRE(trial, umem_synchronize(with) == umemOK);
    cudart_wrap_hold(false);
    for (size_t i = 0; i < 8; i++)
      for (size_t k = 0; k < 60; k++)
        REQUIRE(trial, back[60 * i + k] == byte_of(100 * i + k / 2 * 3 + k % 2, 7));
  }
  drop(trial, with, from);
  drop(trial, with, to);
  drop(trial, ctx, adr);
}

/* A column of bytes, in both directions: by way of a block on the device. */
static void copy_narrow(Trial *trial) {
  static unsigned char column[narrow_rows], again[narrow_rows];
  size_t const extents[] = {narrow_rows};
  ptrdiff_t const gaps[] = {3}, none[] = {1};
  umemLayout in = {sizeof in, 1, 1, extents, none, gaps};
  umemLayout out = {sizeof out, 1, 1, extents, gaps, none};
  umemVirtual *ctx = trial->ctx, *host = &trial->host.super;
  uintptr_t adr = block_of(trial, ctx, 3 * narrow_rows, 0);
  fill(column, narrow_rows, 5);
  bool good = STEP(trial, umem_copy_strided(host, (uintptr_t)column, ctx, adr, &in));
  if (good) good = STEP(trial, umem_copy_strided(ctx, adr, host, (uintptr_t)again, &out));
  finish(trial);
  if (good) REQUIRE(trial, is_filled(again, narrow_rows, 5));
  cudart_wrap_hold(true);
  REQUIRE(trial, umem_copy_to(ctx, adr, host, (uintptr_t)back, 3 * narrow_rows) == umemOK);
  for (size_t i = 0; i < 3 * narrow_rows; i++)
    if (i % 3) REQUIRE(trial, back[i] == byte_of(i, 0));
  cudart_wrap_hold(false);
  drop(trial, ctx, adr);
}

static void copy_strided(Trial *trial) { strided_with(trial, &trial->host.super); }
static void copy_strided_to_peer(Trial *trial) { strided_with(trial, trial->peer); }

static void connect_and_sync(Trial *trial) {
  umemVirtual *ctx = trial->ctx, *host = &trial->host.super;
  uintptr_t adr = block_of(trial, ctx, small, 3), there;
  if (GOT(trial, host, there, umem_connect(ctx, adr, small, host, 0))) {
    REQUIRE(trial, is_filled((unsigned char *)there, small, 3));
    fill((unsigned char *)there, small, 4);
    bool good = STEP(trial, umem_sync_from(ctx, adr, host, there, small));
    if (good) good = STEP(trial, umem_synchronize(ctx));
    finish(trial);
    if (good) require_filled(trial, ctx, adr, small, 4);
    STEP(trial, umem_disconnect(ctx, adr, host, there, 0)); /* frees it in any case */
  }
  finish(trial);
  drop(trial, ctx, adr);
}

/* Whatever has failed: the block is the new one, or the old one as it was. */
static void resize(Trial *trial) {
  umemVirtual *ctx = trial->ctx;
  size_t const sizes[] = {small, 2 * small, 100};
  uintptr_t adr = block_of(trial, ctx, small, 3), moved;
  bool good = true;
  for (int i = 1; i < 3 && good; i++) {
    good = GOT(trial, ctx, moved, umem_realloc(ctx, adr, sizes[i - 1], sizes[i]));
    if (good) adr = moved;
    finish(trial);
    require_filled(trial, ctx, adr, sizes[good ? i : i - 1] < small ? 100 : small, 3);
  }
  drop(trial, ctx, adr);
}

static void ask(Trial *trial) {
  umemInfo info = UMEM_INFO_INIT;
  uintptr_t adr = block_of(trial, trial->ctx, small, 0);
  if (STEP(trial, umem_get_info(trial->ctx, &info)) && trial->ctx->type != umemCudaHostDevice)
    REQUIRE(trial, info.capacity >= info.available && info.capacity != UMEM_UNKNOWN);
  drop(trial, trial->ctx, adr);
  STEP(trial, umem_trim(trial->ctx, 0));
  STEP(trial, umem_flush(trial->ctx));
  finish(trial);
}

static void wait(Trial *trial) {
  uintptr_t adr = block_of(trial, trial->ctx, small, 0);
  uintptr_t there = block_of(trial, trial->peer, small, 0);
  bool good = STEP(trial, umem_set(trial->ctx, adr, 1, small)) &&
              STEP(trial, umem_wait(trial->peer, trial->ctx)) &&
              STEP(trial, umem_set(trial->peer, there, 1, small)) &&
              STEP(trial, umem_wait(trial->ctx, trial->peer)) &&
              STEP(trial, umem_wait(&trial->host, trial->ctx));
  (void)good;
  finish(trial);
  drop(trial, trial->peer, there);
  drop(trial, trial->ctx, adr);
}

static void hint(Trial *trial) {
  umemCudaManaged managed;
  unsigned all = UMEM_PREFER_DEVICE | UMEM_READ_MOSTLY | UMEM_ACCESSED_BY_DEVICE | UMEM_PREFETCH;
  uintptr_t adr;
  if (STEP(trial, umemCudaManaged_ctor(&managed, 0, all))) {
    GOT(trial, &managed.super, adr, umem_alloc(&managed, small));
    drop(trial, &managed.super, adr);
  }
  umem_dtor(&managed);
  settle(trial);
}

static void construct(Trial *trial) {
  trial->ctx = backend_by_name(trial->row)->open();
  bool good = settle(trial);
  REQUIRE(trial, good == (trial->ctx != NULL));
}

static void destruct(Trial *trial) {
  block_of(trial, trial->ctx, small, 0);
  block_of(trial, trial->ctx, large, 0);
  backend_by_name(trial->row)->close(trial->ctx);
  trial->ctx = NULL;
  settle(trial);
}

typedef struct Scenario {
  char const *name;
  void (*run)(Trial *trial);
  char const *peer; /* a row, or NULL */
} Scenario;

static Scenario const scenarios[] = {
    {"construct", construct, NULL},
    {"destruct", destruct, NULL},
    {"alloc", allocate, NULL},
    {"hints", hint, NULL},
    {"set", set, NULL},
    {"copy small", copy_small, NULL},
    {"copy large", copy_large, NULL},
    {"copy largest", copy_largest, NULL},
    {"copy inside", copy_inside, NULL},
    {"copy strided", copy_strided, NULL},
    {"copy narrow rows", copy_narrow, NULL},
    {"connect", connect_and_sync, NULL},
    {"realloc", resize, NULL},
    {"info", ask, NULL},
    {"copy to device memory", copy_to_peer, "cuda"},
    {"copy to pinned memory", copy_to_peer, "cuda-host"},
    {"copy to managed memory", copy_to_peer, "cuda-managed"},
    {"copy to a stream", copy_to_peer, "cuda-async"},
    {"copy to another GPU", copy_to_peer, "cuda-1"},
    {"copy to a stream of another GPU", copy_to_peer, "cuda-async-1"},
    {"copy to a file", copy_to_peer, "file"},
    {"copy large to a file", copy_large_to_peer, "file"},
    {"copy to a device of others", copy_to_peer, "fake"},
    {"copy to a queue of others", copy_to_peer, "fake-async"},
    {"copy strided to another GPU", copy_strided_to_peer, "cuda-1"},
    {"copy strided to a stream", copy_strided_to_peer, "cuda-async"},
    {"wait for a stream", wait, "cuda-async"},
    {"wait for a stream of another GPU", wait, "cuda-async-1"},
};

/* Functions that must have failed somewhere, or all of this would prove nothing; those for two
 * GPUs last. */
static char const *const reachable[] = {"driver_version",
                                        "runtime_version",
                                        "device_count",
                                        "get_device",
                                        "attribute",
                                        "device_name",
                                        "memory_info",
                                        "pointer",
                                        "context_current",
                                        "context_push",
                                        "context_pop",
                                        "primary_retain",
                                        "exchange_capture_mode",
                                        "malloc",
                                        "free",
                                        "malloc_managed",
                                        "prefetch",
                                        "advise",
                                        "host_alloc",
                                        "host_free",
                                        "host_register",
                                        "pool_create",
                                        "pool_destroy",
                                        "pool_set_threshold",
                                        "pool_trim",
                                        "pool_sizes",
                                        "pool_malloc",
                                        "pool_free",
                                        "memcpy",
                                        "memcpy_async",
                                        "memcpy_box_async",
                                        "memset_async",
                                        "stream_create",
                                        "stream_destroy",
                                        "stream_synchronize",
                                        "stream_wait",
                                        "stream_capture",
                                        "event_create",
                                        "event_destroy",
                                        "event_record",
                                        "event_synchronize",
                                        "can_access_peer",
                                        "enable_peer_access",
                                        "pool_allow",
                                        "memcpy_peer_async",
                                        "memcpy_box_peer_async"};

enum { of_two_gpus = 5, all_reachable = sizeof reachable / sizeof *reachable };

static bool reached[all_reachable];

static void note_reached(char const *function) {
  for (size_t i = 0; i < all_reachable; i++)
    if (!strcmp(reachable[i], function)) reached[i] = true;
}

/* Without memory for a block narrow rows are copied in the way of wide ones. */
static bool takes_no_block(Scenario const *scenario, char const *failed) {
  return scenario->run == copy_narrow &&
         (!strcmp(failed, "malloc") || !strcmp(failed, "pool_malloc"));
}

/* ---- one run ---- */

static void clear(Trial *trial) {
  if (trial->ctx) umem_clear_status(trial->ctx);
  if (trial->peer) umem_clear_status(trial->peer);
  umem_clear_status(&trial->host);
  umem_thread_clear();
  trial->result = umemOK;
  trial->failures = umem_thread_failures();
}

static bool is_same(CudartWrapLive one, CudartWrapLive two) {
  bool same = one.blocks == two.blocks && one.pools == two.pools;
  if (on_gpu) return same; /* a context lives on, and keeps chunks and channels */
  return same && one.pinned == two.pinned && one.registered == two.registered &&
         one.streams == two.streams && one.events == two.events && one.primaries == two.primaries;
}

/* Nothing is left, but for what could not be destroyed. */
static void check_end(Trial *trial, Scenario const *scenario) {
  bool excused = scenario->run == destruct && trial->failed &&
                 (IS_ONE_OF(destroyers, trial->failed) || IS_ONE_OF(ways_in, trial->failed));
  if (excused) { /* to leave something, not to use what is gone, of which a real runtime dies */
    char const *misuse = on_gpu ? NULL : fake_cudart_misuse();
    REQUIRE(trial, !misuse || !strstr(misuse, "destroyed"));
    if (!on_gpu) fake_cudart_reset();
    return;
  }
  REQUIRE(trial, is_same(trial->before, cudart_wrap_live()));
  if (on_gpu) return;
  if (fake_cudart_misuse()) complain(trial, fake_cudart_misuse(), __LINE__);
  REQUIRE(trial, fake_cudart_is_clean());
  fake_cudart_reset(); /* its tables keep what is destroyed, and each call looks through them */
}

/* Without a fault. False where there is no such row on this machine. */
static bool prepare(Trial *trial, Scenario const *scenario) {
  trial->before = cudart_wrap_live();
  umem_thread_clear();
  REQUIRE(trial, umemHost_ctor(&trial->host) == umemOK);
  if (scenario->run != construct) trial->ctx = backend_by_name(trial->row)->open();
  if (scenario->peer) trial->peer = backend_by_name(scenario->peer)->open();
  bool lacks = (scenario->run != construct && !trial->ctx) || (scenario->peer && !trial->peer);
  clear(trial);
  return !lacks;
}

static void end(Trial *trial, Scenario const *scenario) {
  if (trial->ctx) backend_by_name(trial->row)->close(trial->ctx);
  if (trial->peer) backend_by_name(scenario->peer)->close(trial->peer);
  umem_dtor(&trial->host);
}

/* Whether the fault was met; it was not, either, where the scenario cannot be. */
static bool meets(char const *row, Scenario const *scenario, int error, unsigned long nth) {
  Trial trial = {.row = row, .scenario = scenario->name, .error = error, .nth = nth};
  bool met = false;
  if (prepare(&trial, scenario)) {
    cudart_wrap_fail(nth, error);
    scenario->run(&trial);
    trial.failed = cudart_wrap_off();
    met = trial.failed;
    if (met) note_reached(trial.failed);
    if (!met) REQUIRE(&trial, trial.result == umemOK);
    if (met && trial.result == umemOK)
      REQUIRE(&trial, may_be_silent(trial.failed, error) || takes_no_block(scenario, trial.failed));
    clear(&trial);
    if (scenario->run != destruct && (scenario->run != construct || !trial.ctx)) {
      scenario->run(&trial); /* works again */
      REQUIRE(&trial, trial.result == umemOK);
    }
  }
  end(&trial, scenario);
  REQUIRE(&trial, is_where_it_was());
  check_end(&trial, scenario);
  return met;
}

static void sweep(void **state) {
  char const *row = *state;
  static int const errors[] = {umemCudaOutOfMemory, umemCudaLaunchFailure, umemCudaInvalidValue,
                               umemCudaNotSupported};
  bool few = UNDER_THREAD_SANITIZER || setting_small();
  size_t count = few ? 1 : on_gpu ? 2 : sizeof errors / sizeof *errors;
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
    bool is_long = scenarios[i].run == copy_large || scenarios[i].run == copy_largest ||
                   scenarios[i].run == copy_large_to_peer;
    if (UNDER_THREAD_SANITIZER && scenarios[i].run == copy_largest) continue; /* as the large one */
    unsigned long step = is_long && setting_small() ? 3 : 1;
    for (size_t e = 0; e < (is_long ? 1 : count); e++)
      for (unsigned long nth = 1; meets(row, &scenarios[i], errors[e], nth); nth += step) continue;
  }
}

static void every_function_was_reached(void **state) {
  (void)state;
  int gpus = 0;
  runtime->device_count(&gpus);
  size_t count = all_reachable - (gpus < 2 ? of_two_gpus : 0);
  for (size_t i = 0; i < count; i++)
    if (!reached[i]) fail_msg("no scenario reached %s", reachable[i]);
}

/* ---- all ---- */

/* On GPUs their contexts stay, since making one takes long. */
static int devices;

static void keep_contexts(void) {
  void *context;
  if (runtime->device_count(&devices)) devices = 0;
  for (int d = 0; d < devices; d++) runtime->primary_retain(&context, d);
}

static void let_contexts_go(void) {
  for (int d = 0; d < devices; d++) runtime->primary_release(d);
}

static int begin(void **state) {
  (void)state;
  on_gpu = setting_gpu();
  runtime = on_gpu ? umemCudaRt_get() : fake_cudart();
  if (!runtime) fail_msg("this build has no CUDA");
  umemCudaRt_replace(cudart_wrap(runtime));
  umem_set_threads(2);
  for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (unsigned char)(i * 2654435761u >> 13);
  if (on_gpu) keep_contexts();
  return on_gpu && !devices;
}

static int all_is_gone(void **state) {
  (void)state;
  if (on_gpu) let_contexts_go();
  umemCudaRt_replace(NULL);
  return 0;
}

/* Under ThreadSanitizer, where all would take minutes, the two that share work among threads. */
int main(void) {
  static char const *const rows[] = {"cuda", "cuda-async", "cuda-host", "cuda-managed"};
  size_t const row_count = UNDER_THREAD_SANITIZER ? 2 : sizeof rows / sizeof *rows;
  struct CMUnitTest tests[sizeof rows / sizeof *rows + 1];
  size_t count = 0;
  for (; count < row_count; count++)
    tests[count] = (struct CMUnitTest){
        .name = rows[count], .test_func = sweep, .initial_state = (void *)(uintptr_t)rows[count]};
  if (!UNDER_THREAD_SANITIZER)
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(every_function_was_reached);
  return _cmocka_run_group_tests("fault_cuda_nth", tests, count, begin, all_is_gone);
}
