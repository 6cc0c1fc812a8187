/* cuda_managed.c - managed memory in the order of the legacy stream: what the CPU does for umem
 * comes after kernels that are queued, as cudaMemcpy would, in both directions and below every
 * adaptor.
 *
 * On a double of the runtime that does nothing before it is demanded: every kernel is slow. */
#include "cuda_help.h"

#include "fake/fake.h"
#include "temporary.h"

enum { rows = 30, columns = 20, n = rows * columns };

static umemHost host;
static umemCudaManaged managed;
static void *blocking; /* a stream */

static void managed_set_up(void **state) {
  cuda_set_up(state);
  expect_ok(umemHost_ctor(&host));
  expect_ok(umemCudaManaged_ctor(&managed, 0, 0));
  enter(0);
  ok(fake_cudart_create_blocking(&blocking));
}

static void managed_tear_down(void **state) {
  close_opened();
  ok(rt->stream_destroy(blocking));
  leave(0);
  DESTRUCT(&managed, &host);
  if (umem_thread_status() != umemOK) fail_msg("%s", umem_thread_message());
  cuda_tear_down(state);
}

/* ---- kernels ---- */

static void write_ones(void *adr) {
  void *bytes = fake_cudart_at((uintptr_t)adr, n);
  if (bytes) memset(bytes, 1, n);
}

enum { streams = 3 };

static void *stream_at(int i) { return i == 0 ? NULL : i == 1 ? blocking : FAKE_STREAM_PER_THREAD; }

static void queue_kernel(int stream, uintptr_t adr) {
  ok(fake_cudart_launch(stream_at(stream), write_ones, (void *)adr));
}

static void finish_kernels(void) {
  for (int i = 0; i < streams; i++) ok(rt->stream_synchronize(stream_at(i)));
}

/* ---- stacks over managed memory ---- */

/* Each ends in managed memory of GPU 0. */
static char const *const stacks[] = {
    "cuda-managed:0",       "limit+cuda-managed:0?limit=1M", "stats+cuda-managed:0",
    "debug+cuda-managed:0", "pool+cuda-managed:0",           "log+cuda-managed:0?file=%s",
};
enum { stack_count = sizeof stacks / sizeof *stacks };

/* ---- the other side ---- */

typedef void Copy(void *src, uintptr_t from, void *dst, uintptr_t to);

static void copy_run(void *src, uintptr_t from, void *dst, uintptr_t to) {
  expect_ok(umem_copy_to(src, from, dst, to, n));
}

/* Turned upside down: the copy engines cannot, so that the CPU packs. */
static void copy_rows(void *src, uintptr_t from, void *dst, uintptr_t to) {
  size_t const extents[] = {rows, columns};
  ptrdiff_t const down[] = {columns, 1}, up[] = {-columns, 1};
  umemLayout layout = {sizeof layout, 1, 2, extents, up, down};
  expect_ok(umem_copy_strided(src, from + n - columns, dst, to, &layout));
}

static bool go_on(void *user UNUSED, uint64_t done UNUSED, uint64_t total UNUSED) { return true; }

static void copy_with_progress(void *src, uintptr_t from, void *dst, uintptr_t to) {
  umemCopyOptions options = {.size = sizeof options, .progress = go_on};
  expect_ok(umem_copy_to_with(src, from, dst, to, n, &options));
}

static Copy *const copies[] = {copy_run, copy_rows, copy_with_progress};

static bool all_are(void *ctx, uintptr_t adr, int value) {
  unsigned char bytes[n];
  expect_ok(umem_copy_to(ctx, adr, &host, (uintptr_t)bytes, n));
  for (size_t i = 0; i < n; i++)
    if (bytes[i] != value) return false;
  return true;
}

static void copy_both_ways(void *ctx, void *other, Copy *copy, int stream, char const *what) {
  uintptr_t adr = block_of(ctx, n), there = umem_alloc(other, n);
  expect_ok(umem_set(ctx, adr, 9, n));
  expect_ok(umem_set(other, there, 8, n));
  queue_kernel(stream, adr);
  copy(ctx, adr, other, there);
  if (!all_are(other, there, 1)) fail_msg("%s from managed memory, before the kernel", what);
  expect_ok(umem_set(other, there, 7, n));
  queue_kernel(stream, adr);
  copy(other, there, ctx, adr);
  finish_kernels();
  if (!all_are(ctx, adr, 7)) fail_msg("%s to managed memory, before the kernel", what);
  umem_free(ctx, adr);
  umem_free(other, there);
}

#define MANAGED_TEST(name) TEST_CASE_WITH(name, managed_set_up, managed_tear_down)

static void copy_with_all(void *ctx, char const *name) {
  SCOPED(umem_dtor) Fake fake;
  SCOPED(unlink_path) char map[256];
  temporary_name(map, sizeof map);
  expect_ok(fake_ctor(&fake));
  void *const others[] = {&host, opened("file:"), opened("mmap:%s?mode=w+", map), &fake};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    for (size_t k = 0; k < sizeof copies / sizeof *copies; k++)
      for (int stream = 0; stream < streams; stream++) {
        char what[120];
        snprintf(what, sizeof what, "%s, side %zu, copy %zu, stream %d", name, i, k, stream);
        copy_both_ways(ctx, others[i], copies[k], stream, what);
      }
}

MANAGED_TEST(copies_come_after_kernels) {
  char log[256];
  for (int which = 0; which < stack_count; which++) {
    char name[400];
    temporary_name(log, sizeof log);
    snprintf(name, sizeof name, stacks[which], log);
    copy_with_all(opened("%s", name), stacks[which]);
    close_opened();
    unlink(log);
  }
}

MANAGED_TEST(copies_of_a_view_come_after_kernels) {
  void *pool = opened("pool+cuda-managed:0");
  CONTEXT(umemPoolOn, view, pool, umem_get_upstream(pool));
  copy_with_all(&view, "a view");
}

/* Where one address serves both sides nothing moves; but what the other side is given is there. */
MANAGED_TEST(syncs_of_one_address_come_after_kernels) {
  for (int stream = 0; stream < streams; stream++) {
    uintptr_t adr = block_of(&managed, n);
    expect_ok(umem_set(&managed, adr, 9, n));
    queue_kernel(stream, adr);
    unsigned char *bytes = (unsigned char *)umem_connect(&managed, adr, n, &host, 0);
    assert_ptr_equal(bytes, adr);
    assert_int_equal(bytes[n - 1], 1);
    expect_ok(umem_set(&managed, adr, 9, n));
    queue_kernel(stream, adr);
    expect_ok(umem_sync_to(&managed, adr, &host, adr, n));
    assert_int_equal(bytes[n - 1], 1);
    queue_kernel(stream, adr);
    expect_ok(umem_sync_from(&managed, adr, &host, adr, n)); /* which may write there now */
    bytes[n - 1] = 6;
    finish_kernels();
    assert_int_equal(bytes[n - 1], 6);
    queue_kernel(stream, adr);
    expect_ok(umem_disconnect(&managed, adr, &host, adr, 0));
    assert_int_equal(bytes[n - 1], 1);
    umem_free(&managed, adr);
  }
}

MANAGED_TEST(synchronizing_waits_for_kernels) {
  for (int stream = 0; stream < streams; stream++) {
    uintptr_t adr = block_of(&managed, n);
    unsigned char const *bytes = (unsigned char const *)adr;
    expect_ok(umem_set(&managed, adr, 9, n));
    queue_kernel(stream, adr);
    expect_ok(umem_synchronize(&managed));
    assert_int_equal(bytes[0], 1);
    expect_ok(umem_set(&managed, adr, 9, n));
    queue_kernel(stream, adr);
    expect_ok(umem_wait(&host, &managed));
    assert_int_equal(bytes[0], 1);
    umem_free(&managed, adr);
  }
}

/* Device memory is like managed memory in that kernels use it while no call of umem runs. */
MANAGED_TEST(others_wait_for_kernels_on_device_memory) {
  void *cuda = opened("cuda:0"), *alone = opened("cuda-async:0");
  uintptr_t adr = block_of(cuda, n);
  for (int stream = 0; stream < streams; stream++) {
    unsigned char byte = 0;
    expect_ok(umem_set(cuda, adr, 9, n));
    queue_kernel(stream, adr);
    expect_ok(umem_synchronize(cuda));
    assert_true(fake_cudart_peek(adr, &byte, 1));
    assert_int_equal(byte, 1);
    queue_kernel(stream, adr);
    expect_ok(umem_wait(alone, cuda));
    expect_ok(umem_set(alone, adr, 2, n));
    expect_ok(umem_synchronize(alone));
    finish_kernels();
    if (!all_are(cuda, adr, 2)) fail_msg("stream %d", stream);
  }
}

/* Neither side's pages may move under it. */
MANAGED_TEST(streams_copy_after_kernels) {
  void *alone = opened("cuda-async:0");
  for (int stream = 0; stream < streams; stream++) {
    uintptr_t adr = block_of(&managed, n), there = block_of(alone, n);
    expect_ok(umem_set(&managed, adr, 9, n));
    queue_kernel(stream, adr);
    expect_ok(umem_copy_to(&managed, adr, alone, there, n));
    assert_true(fake_cudart_is_late((void *)umemCudaAsync_stream(alone))); /* the GPU waits */
    expect_ok(umem_synchronize(alone));
    if (!all_are(alone, there, 1)) fail_msg("stream %d", stream);
    expect_ok(umem_set(alone, there, 7, n));
    queue_kernel(stream, adr);
    expect_ok(umem_copy_from(&managed, adr, alone, there, n));
    expect_ok(umem_synchronize(alone));
    finish_kernels();
    if (!all_are(&managed, adr, 7)) fail_msg("stream %d, to managed memory", stream);
    umem_free(alone, there);
    umem_free(&managed, adr);
  }
}

/* The kernels of the GPU that a managed context names, whichever GPU copies. */
MANAGED_TEST(another_gpu_copies_after_kernels) {
  void *there = opened("cuda:1");
  uintptr_t adr = block_of(&managed, n), copy = block_of(there, n);
  for (int stream = 0; stream < streams; stream++) {
    expect_ok(umem_set(&managed, adr, 9, n));
    queue_kernel(stream, adr);
    expect_ok(umem_copy_to(&managed, adr, there, copy, n));
    if (!all_are(there, copy, 1)) fail_msg("stream %d", stream);
    expect_ok(umem_set(there, copy, 7, n));
    queue_kernel(stream, adr);
    expect_ok(umem_copy_to(there, copy, &managed, adr, n));
    finish_kernels();
    if (!all_are(&managed, adr, 7)) fail_msg("stream %d, to managed memory", stream);
  }
  umem_free(&managed, adr);
}

/* A block may be freed when the kernel is queued that uses it last: what umemDebug writes there
 * comes after the kernel. */
MANAGED_TEST(red_zones_come_after_kernels) {
  umemPool pool;
  umemDebug debug;
  for (int stream = 0; stream < streams; stream++) {
    expect_ok(umemPool_ctor(&pool, &managed, NULL));
    expect_ok(umemDebug_ctor(&debug, &pool, NULL));
    uintptr_t adr = block_of(&debug, n);
    queue_kernel(stream, adr);
    umem_free(&debug, adr);
    finish_kernels();
    expect_ok(umemDebug_check(&debug));
    adr = block_of(&debug, n - 1); /* too small for the kernel */
    queue_kernel(stream, adr);
    expect_failure(umemDebug_check(&debug), umemIndexError, "a wrong write to");
    umem_clear_status(&debug);
    DESTRUCT(&debug, &pool);
    finish_kernels();
    umem_thread_clear();
  }
}

/* While a blocking stream is captured nothing can be queued on the legacy one: then the copy is
 * refused and the capture stays whole. */
MANAGED_TEST(a_captured_blocking_stream_is_left_whole) {
  void *graph;
  void *file = opened("file:");
  uintptr_t adr = block_of(&managed, n), there = umem_alloc(file, n);
  expect_ok(umem_set(file, there, 8, n));
  expect_ok(umem_set(&managed, adr, 9, n));
  ok(fake_cudart_begin_capture_in(blocking, 2));
  char const *words = "captured";
  expect_failure(umem_copy_to(&managed, adr, file, there, n), umemNotSupportedError, words);
  expect_failure(umem_copy_to(file, there, &managed, adr, n), umemNotSupportedError, words);
  expect_failure(umem_synchronize(&managed), umemNotSupportedError, words);
  ok(fake_cudart_end_capture(blocking, &graph));
  assert_non_null(graph);
  assert_true(all_are(&managed, adr, 9));
  assert_true(all_are(file, there, 8));
  umem_free(&managed, adr);
}

/* Pinned memory is RAM: the CPU waits for nobody there (cuda-host.rst). */
MANAGED_TEST(pinned_memory_waits_for_no_kernel) {
  void *pinned = opened("cuda-host:"), *file = opened("file:");
  uintptr_t adr = block_of(pinned, n), there = umem_alloc(file, n);
  expect_ok(umem_set(pinned, adr, 9, n));
  queue_kernel(0, adr);
  expect_ok(umem_copy_to(pinned, adr, file, there, n));
  assert_true(fake_cudart_is_late(NULL));
  assert_true(all_are(file, there, 9));
  CONTEXT(umemCuda, cuda, 0);
  uintptr_t device = block_of(&cuda, n);
  expect_ok(umem_copy_to(pinned, adr, &cuda, device, n)); /* the GPU does, in its order */
  assert_true(all_are(&cuda, device, 1));
  umem_free(&cuda, device);
}
