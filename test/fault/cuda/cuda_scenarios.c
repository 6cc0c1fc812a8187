#include "fault/cuda/cuda_scenarios.h"

#include "backends.h"
#include "core/status.h"
#include "core/context.h"
#include "settings.h"

static void allocate(Trial *trial) {
  umemVirtual *ctx = trial->ctx;
  uintptr_t adr, zero, big;
  bool filled = GOT(trial, ctx, adr, umem_alloc(ctx, small));
  if (filled) put(trial, ctx, adr, small, 1);
  if (GOT(trial, ctx, zero, umem_calloc(ctx, 1, small))) {
    unsigned char const *back = read_back(trial, ctx, zero, small);
    REQUIRE(trial, !back[0] && !back[small - 1]);
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

/* Asks at once, too, whether the copy is done. */
static bool transfer(Trial *trial, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                     uintptr_t dst_adr) {
  umemTransfer *started = NULL;
  if (!STEP(trial, umem_start(src, src_adr, dst, dst_adr, small, NULL, &started))) return false;
  umemTransfer_poll(started);
  bool good = STEP(trial, umemTransfer_wait(started));
  umemTransfer_release(started);
  return good;
}

static void transfer_with_peer(Trial *trial) {
  umemVirtual *ctx = trial->ctx, *with = trial->peer;
  uintptr_t adr = block_of(trial, ctx, small, 0);
  uintptr_t from = block_of(trial, with, small, 7), to = block_of(trial, with, small, 0);
  bool good = transfer(trial, with, from, ctx, adr) && transfer(trial, ctx, adr, with, to);
  finish(trial);
  if (good) require_filled(trial, with, to, small, 7);
  drop(trial, with, from);
  drop(trial, with, to);
  drop(trial, ctx, adr);
}

/* By the threads of a feed, in pieces, where the context has no stream of its own. */
static void feed_from_peer(Trial *trial) {
  umemVirtual *ctx = trial->ctx;
  uintptr_t adr = block_of(trial, ctx, fed, 0), from = block_of(trial, trial->peer, fed, 7);
  umemTransfer *started = NULL;
  umem_set_threads(4);
  bool good = STEP(trial, umem_start(trial->peer, from, ctx, adr, fed, NULL, &started));
  while (!umemTransfer_poll(started)) usleep(10); /* who waits may copy himself */
  if (good) good = STEP(trial, umemTransfer_wait(started));
  umemTransfer_release(started);
  umem_set_threads(2);
  finish(trial);
  if (good) require_filled(trial, ctx, adr, fed, 7);
  drop(trial, trial->peer, from);
  drop(trial, ctx, adr);
}

/* The way back as a transfer. */
static bool list_out(Trial *trial, umemCopyItem const *items) {
  umemTransfer *started = NULL;
  if (!STEP(trial, umem_start_many(items, 2, NULL, &started))) return false;
  bool good = STEP(trial, umemTransfer_wait(started));
  umemTransfer_release(started);
  return good;
}

/* Two runs to ctx and back, each by one list; without queues through pinned memory, if they are
 * long. */
static void list_with(Trial *trial, umemVirtual *with, size_t nbytes) {
  umemVirtual *ctx = trial->ctx;
  size_t const half = nbytes / 2, gap = 10;
  uintptr_t adr = block_of(trial, ctx, nbytes, 0);
  uintptr_t from = block_of(trial, with, nbytes, 7), to = block_of(trial, with, nbytes, 0);
  umemCopyItem const in[] = {{with, from, ctx, adr + half, half},
                             {with, from + half, ctx, adr, half - gap}};
  umemCopyItem const out[] = {{ctx, adr + half, with, to, half},
                              {ctx, adr, with, to + half, half - gap}};
  bool good = STEP(trial, umem_copy_many(in, 2, NULL));
  if (good) good = list_out(trial, out);
  if (good) good = STEP(trial, umem_synchronize(ctx));
  finish(trial);
  if (good) {
    unsigned char const *back = read_back(trial, with, to, nbytes - gap);
    REQUIRE(trial, is_filled(back, nbytes - gap, 7));
  }
  drop(trial, with, from);
  drop(trial, with, to);
  drop(trial, ctx, adr);
}

static void list_with_peer(Trial *trial) { list_with(trial, trial->peer, middle); }
static void list_with_host(Trial *trial) { list_with(trial, &trial->host.super, large); }

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
    unsigned char const *back = read_back(trial, with, to, 8 * 60);
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
  enum { narrow_rows = 16 << 10 };
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
  unsigned char const *back = read_back(trial, ctx, adr, 3 * narrow_rows);
  for (size_t i = 0; i < 3 * narrow_rows; i++)
    if (i % 3) REQUIRE(trial, back[i] == byte_of(i, 0));
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

static void await_queue(Trial *trial) {
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

/* ---- pages ---- */

typedef struct Pages {
  Trial *trial;
  umemPages const *methods, *ranges;
  uintptr_t adr; /* of the range */
  size_t page;
  bool has[4]; /* memory, by page */
} Pages;

/* Records what a call has done with pages from `from` on, and checks that it has failed if it has
 * done too little. */
static bool note(Pages *pages, size_t from, size_t count, size_t done, bool have) {
  REQUIRE(pages->trial, done % pages->page == 0 && done <= count * pages->page);
  for (size_t i = 0; i < done / pages->page; i++) pages->has[from + i] = have;
  bool good = settle(pages->trial);
  REQUIRE(pages->trial, !good || done == count * pages->page);
  return done == count * pages->page;
}

static bool map_two(Pages *pages) {
  size_t done = pages->methods->map(pages->trial->ctx, pages->adr, 2 * pages->page);
  return note(pages, 0, 2, done, true);
}

static bool move_two(Pages *pages) {
  size_t done = pages->methods->move(pages->trial->ctx, pages->adr, pages->adr + 2 * pages->page,
                                     2 * pages->page);
  for (size_t i = 0; i < done / pages->page; i++) pages->has[i] = false;
  return note(pages, 2, 2, done, true);
}

/* Whatever has failed, each page is as it is recorded. */
static void require_pages(Pages *pages) {
  for (size_t i = 0; i < 4; i++)
    if (pages->has[i]) {
      put(pages->trial, pages->trial->ctx, pages->adr + i * pages->page, small, 2);
      require_filled(pages->trial, pages->trial->ctx, pages->adr + i * pages->page, small, 2);
    }
}

static void give_back(Pages *pages) {
  umemVirtual *ctx = pages->trial->ctx;
  for (size_t i = 0; i < 4; i++)
    while (pages->has[i])
      note(pages, i, 1, pages->methods->unmap(ctx, pages->adr + i * pages->page, pages->page),
           false);
  while (!pages->ranges->release(ctx, pages->adr, 4 * pages->page)) settle(pages->trial);
}

/* The caller of methods, as the messages have it. */
static void use_pages_of(Trial *trial, umemPages const *ranges, umemPages const *methods) {
  UMEM_ENTER_AS("umem_use_pages", NULL);
  umemVirtual *ctx = trial->ctx;
  Pages pages = {.trial = trial, .methods = methods, .ranges = ranges, .page = methods->page_size};
  if (!GOT(trial, ctx, pages.adr, ranges->reserve(ctx, 4 * pages.page))) return;
  bool good = map_two(&pages);
  require_pages(&pages);
  if (good) move_two(&pages);
  require_pages(&pages);
  finish(trial);
  give_back(&pages);
  settle(trial);
}

static umemPages const *pages_of(Trial *trial) {
  umemPages const *(*method)(umemVirtual *) = UMEM_SLOT(trial->ctx, pages);
  return method ? method(trial->ctx) : NULL;
}

static void use_pages(Trial *trial) {
  umemPages const *pages = pages_of(trial);
  if (pages) use_pages_of(trial, pages, pages);
}

static void use_large_pages(Trial *trial) {
  umemPages const *pages = pages_of(trial);
  umemPages const *methods = pages ? trial->ctx->vptr->large_pages(trial->ctx) : NULL;
  if (methods) use_pages_of(trial, pages, methods);
}

/* ---- other processes ---- */

/* Until it is done: what an attachment has taken goes back. */
static void let_go(Trial *trial, umemVirtual *ctx, uintptr_t adr) {
  if (STEP(trial, umem_detach(ctx, adr))) return;
  cudart_wrap_hold(true);
  umemAttempt again;
  umemAttempt_begin(&again);
  umem_detach(ctx, adr);
  umemAttempt_end(&again);
  trial->failures = umem_thread_failures();
  cudart_wrap_hold(false);
}

static bool attaches(Trial const *trial) {
  umemDeviceType type = trial->ctx->type;
  return type == umemCudaDevice || type == umemCudaAsyncDevice;
}

/* Attaches a block as another process would; on a GPU only as this one, since CUDA does not open
 * handles of its own process. */
static void pass(Trial *trial, umemVirtual *from) {
  uintptr_t adr = block_of(trial, from, small, 4), there;
  umemHandle handle;
  int fd = -1;
  bool shared = STEP(trial, umem_share_with(from, adr, small, &handle, &fd));
  if (shared && !setting_gpu()) handle.identity[0] ^= 1;
  int own = fd < 0 ? -1 : dup(fd);
  if (!shared && own >= 0) close(own);
  if (shared && GOT(trial, trial->ctx, there, umem_attach_with(&handle, own, trial->ctx))) {
    uintptr_t again;
    require_filled(trial, trial->ctx, there, small, 4);
    if (GOT(trial, trial->ctx, again, umem_attach(&handle, trial->ctx))) /* it is open */
      let_go(trial, trial->ctx, again);
    let_go(trial, trial->ctx, there);
  }
  finish(trial);
  drop(trial, from, adr);
}

static void share(Trial *trial) {
  if (!setting_gpu()) fake_cudart_machine()->shares_with_itself = true;
  if (attaches(trial)) pass(trial, trial->peer);
}

static void share_pool(Trial *trial) {
  umemCudaAsync async;
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  options.share = 1;
  if (!attaches(trial)) return;
  if (!setting_gpu()) fake_cudart_machine()->shares_with_itself = true;
  if (STEP(trial, umemCudaAsync_ctor_with(&async, 0, UMEM_STREAM_NEW, &options)))
    pass(trial, &async.super);
  cudart_wrap_hold(true);
  umem_dtor(&async);
  cudart_wrap_hold(false);
}

static void construct(Trial *trial) {
  trial->ctx = backend_open(backend_by_name(trial->row));
  bool good = settle(trial);
  REQUIRE(trial, good == (trial->ctx != NULL));
}

static void destruct(Trial *trial) {
  block_of(trial, trial->ctx, small, 0);
  block_of(trial, trial->ctx, large, 0);
  backend_close(backend_by_name(trial->row), trial->ctx);
  trial->ctx = NULL;
  settle(trial);
}

Scenario const cuda_scenarios[] = {
    {"construct", construct, NULL, scenarioConstructs},
    {"destruct", destruct, NULL, scenarioDestructs},
    {"alloc", allocate, NULL, scenarioPlain},
    {"hints", hint, NULL, scenarioPlain},
    {"set", set, NULL, scenarioPlain},
    {"copy small", copy_small, NULL, scenarioPlain},
    {"copy large", copy_large, NULL, scenarioIsLong},
    {"copy largest", copy_largest, NULL, scenarioIsLong},
    {"copy inside", copy_inside, NULL, scenarioPlain},
    {"list", list_with_host, NULL, scenarioIsLong},
    {"list with pinned memory", list_with_peer, "cuda-host", scenarioPlain},
    {"list with a stream", list_with_peer, "cuda-async", scenarioPlain},
    {"transfer", transfer_with_peer, "cuda-async", scenarioPlain},
    {"transfer in pieces", feed_from_peer, "file", scenarioIsLong},
    {"copy strided", copy_strided, NULL, scenarioPlain},
    {"copy narrow rows", copy_narrow, NULL, scenarioHasOtherWay},
    {"connect", connect_and_sync, NULL, scenarioPlain},
    {"realloc", resize, NULL, scenarioPlain},
    {"info", ask, NULL, scenarioPlain},
    {"pages", use_pages, NULL, scenarioPlain},
    {"large pages", use_large_pages, NULL, scenarioPlain},
    {"attach a block", share, "cuda", scenarioPlain},
    {"attach a block of a pool", share_pool, NULL, scenarioPlain},
    {"copy to device memory", copy_to_peer, "cuda", scenarioPlain},
    {"copy to pinned memory", copy_to_peer, "cuda-host", scenarioPlain},
    {"copy to managed memory", copy_to_peer, "cuda-managed", scenarioPlain},
    {"copy to a stream", copy_to_peer, "cuda-async", scenarioPlain},
    {"copy to another GPU", copy_to_peer, "cuda-1", scenarioPlain},
    {"copy to a stream of another GPU", copy_to_peer, "cuda-async-1", scenarioPlain},
    {"copy to a file", copy_to_peer, "file", scenarioPlain},
    {"copy large to a file", copy_large_to_peer, "file", scenarioIsLong},
    {"copy to a device of others", copy_to_peer, "fake", scenarioPlain},
    {"copy to a queue of others", copy_to_peer, "fake-async", scenarioPlain},
    {"copy strided to another GPU", copy_strided_to_peer, "cuda-1", scenarioPlain},
    {"copy strided to a stream", copy_strided_to_peer, "cuda-async", scenarioPlain},
    {"wait for a stream", await_queue, "cuda-async", scenarioPlain},
    {"wait for a stream of another GPU", await_queue, "cuda-async-1", scenarioPlain},
};

size_t const cuda_scenario_count = sizeof cuda_scenarios / sizeof *cuda_scenarios;
