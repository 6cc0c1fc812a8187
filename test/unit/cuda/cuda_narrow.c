/* cuda_narrow.c - narrow rows between device memory and packed host memory go by way of a block on
 * the device, which is gone afterwards; whatever it takes, the bytes are right and those between
 * the rows stay. On a double of the runtime. */
#include "cuda_help.h"

enum { rows = 16 << 10, few = 1000, pitch = 12, wide = 96 };

static void *host, *pinned, *ctx;
static unsigned char packed[rows * wide], all[(rows + 2) * 2 * wide], found[sizeof all];

/* Those of a test are closed before. */
static void begin(int kind) {
  close_opened();
  host = opened("host:");
  pinned = opened("cuda-host:");
  ctx = opened_kind(kind, 0);
}

static void *stream_of_ctx(void) { return (void *)umemCudaAsync_stream(ctx); }

/* count rows of width bytes, 12 or 2 * width bytes apart in device memory, in a plane or two. */
typedef struct Rows {
  size_t width, extents[2];
  ptrdiff_t gaps[2], none[2];
} Rows;

static Rows rows_of(size_t count, size_t width) {
  ptrdiff_t step = width >= pitch ? (ptrdiff_t)(2 * width) : pitch;
  ptrdiff_t half = (ptrdiff_t)(count / 2);
  return (Rows){width,
                {2, count / 2},
                {(half + 1) * step, step},
                {half * (ptrdiff_t)width, (ptrdiff_t)width}};
}

static size_t device_bytes(Rows const *r) { return 2 * (size_t)r->gaps[0]; }
static size_t host_bytes(Rows const *r) { return 2 * (size_t)r->none[0]; }

static umemStatusType gather(Rows const *r, uintptr_t adr, void *to, uintptr_t there) {
  umemLayout layout = {sizeof layout, r->width, 2, r->extents, r->gaps, r->none};
  return umem_copy_strided(ctx, adr, to, there, &layout);
}

static umemStatusType scatter(Rows const *r, uintptr_t adr, void *from, uintptr_t there) {
  umemLayout layout = {sizeof layout, r->width, 2, r->extents, r->none, r->gaps};
  return umem_copy_strided(from, there, ctx, adr, &layout);
}

/* The device has all, but for the rows, which are those of bytes. */
static void check_device(Rows const *r, uintptr_t adr, unsigned char const *bytes) {
  expect_ok(umem_copy_to(ctx, adr, host, (uintptr_t)found, device_bytes(r)));
  for (size_t plane = 0; plane < 2; plane++)
    for (size_t i = 0; i < r->extents[1]; i++) {
      size_t at = plane * (size_t)r->gaps[0] + i * (size_t)r->gaps[1];
      memcpy(all + at, bytes + plane * (size_t)r->none[0] + i * r->width, r->width);
    }
  assert_memory_equal(found, all, device_bytes(r));
}

/* There and back. Returns how many blocks were taken for it. */
static unsigned long go(Rows const *r, void *other, uintptr_t there) {
  unsigned char *bytes = (unsigned char *)there;
  uintptr_t adr = block_of(ctx, device_bytes(r));
  fill(all, device_bytes(r), 1);
  expect_ok(umem_copy_from(ctx, adr, host, (uintptr_t)all, device_bytes(r)));
  fill(bytes, host_bytes(r), 2);
  expect_ok(umem_synchronize(ctx)); /* until then freed blocks count */
  size_t live = fake_cudart_live().blocks;
  unsigned long before = fake_cudart_calls_of("malloc") + fake_cudart_calls_of("pool_malloc");
  expect_ok(scatter(r, adr, other, there));
  expect_ok(umem_synchronize(ctx));
  check_device(r, adr, bytes);
  memset(bytes, 0, host_bytes(r));
  expect_ok(gather(r, adr, other, there));
  expect_ok(umem_synchronize(ctx));
  assert_true(is_filled(bytes, host_bytes(r), 2));
  unsigned long taken =
      fake_cudart_calls_of("malloc") + fake_cudart_calls_of("pool_malloc") - before;
  assert_int_equal(fake_cudart_live().blocks, live);
  umem_free(ctx, adr);
  return taken;
}

static unsigned long go_with(int kind, size_t count, size_t width) {
  Rows r = rows_of(count, width);
  begin(kind);
  uintptr_t page = block_of(pinned, host_bytes(&r));
  unsigned long pageable = go(&r, host, (uintptr_t)packed);
  assert_int_equal(go(&r, pinned, page), pageable);
  return pageable;
}

CUDA_TEST(narrow_rows_take_a_block) {
  size_t const widths[] = {1, 4, 8, 12, 64};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    assert_int_equal(go_with(aCuda, rows, widths[i]), 2);
    assert_int_equal(go_with(anAsync, rows, widths[i]), 2);
  }
}

CUDA_TEST(others_take_none) {
  assert_int_equal(go_with(aCuda, few, 4), 0);
  assert_int_equal(go_with(anAsync, few, 4), 0);
  assert_int_equal(go_with(aCuda, rows / 2, 4), 0); /* a block costs more there than on a stream */
  assert_int_equal(go_with(anAsync, rows / 2, 4), 2);
  assert_int_equal(go_with(aCuda, rows, wide), 0);
  assert_int_equal(go_with(anAsync, rows, wide), 0);
  assert_int_equal(go_with(aManaged, rows, 4), 0);
}

/* Rows that have gaps on the host too cannot cross the link as one run. */
CUDA_TEST(gaps_on_the_host_take_none) {
  size_t const extents[] = {rows};
  ptrdiff_t const gaps[] = {12}, other[] = {8};
  umemLayout layout = {sizeof layout, 4, 1, extents, gaps, other};
  begin(anAsync);
  uintptr_t adr = block_of(ctx, rows * 12);
  fill(all, rows * 12, 1);
  memset(found, 9, rows * 8);
  expect_ok(umem_copy_from(ctx, adr, host, (uintptr_t)all, rows * 12));
  unsigned long before = fake_cudart_calls_of("pool_malloc");
  expect_ok(umem_copy_strided(ctx, adr, host, (uintptr_t)found, &layout));
  assert_int_equal(fake_cudart_calls_of("pool_malloc"), before);
  for (size_t i = 0; i < rows; i++) {
    assert_memory_equal(found + 8 * i, all + 12 * i, 4);
    assert_int_equal(found[8 * i + 4] + found[8 * i + 7], 18);
  }
}

static void expect_route(int kind, size_t count, char const *out, char const *in) {
  Rows r = rows_of(count, 4);
  umemLayout gather = {sizeof gather, 4, 2, r.extents, r.gaps, r.none};
  umemLayout scatter = {sizeof scatter, 4, 2, r.extents, r.none, r.gaps};
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  char text[100];
  options.route = &route;
  begin(kind);
  uintptr_t adr = block_of(ctx, device_bytes(&r)), there = (uintptr_t)packed;
  expect_ok(umem_copy_strided_with(ctx, adr, host, there, &gather, &options));
  umemRoute_text(&route, text, sizeof text);
  assert_string_equal(text, out);
  assert_int_equal(route.legs[0].bytes, host_bytes(&r));
  assert_int_equal(route.legs[0].calls, 1);
  expect_ok(umem_copy_strided_with(host, there, ctx, adr, &scatter, &options));
  umemRoute_text(&route, text, sizeof text);
  assert_string_equal(text, in);
}

CUDA_TEST(the_route_says_packed) {
  expect_route(aCuda, rows, "cuda:0 -> packed -> host", "host -> packed -> cuda:0");
  expect_route(anAsync, rows, "cuda-async:0 -> packed -> host", "host -> packed -> cuda-async:0");
  expect_route(aCuda, few, "cuda:0 -> boxes -> host", "host -> boxes -> cuda:0");
}

CUDA_TEST(without_memory_for_a_block_it_goes_the_old_way) {
  Rows r = rows_of(rows, 4);
  int const kinds_of[] = {aCuda, anAsync};
  char const *const functions[] = {"malloc", "pool_malloc"};
  for (int i = 0; i < 2; i++) {
    begin(kinds_of[i]);
    uintptr_t adr = block_of(ctx, device_bytes(&r));
    fill(all, device_bytes(&r), 1);
    expect_ok(umem_copy_from(ctx, adr, host, (uintptr_t)all, device_bytes(&r)));
    fill(packed, host_bytes(&r), 3);
    fake_cudart_fail_in(functions[i], 1, umemCudaOutOfMemory);
    expect_ok(scatter(&r, adr, host, (uintptr_t)packed));
    assert_int_equal(rt->last_error(), 0); /* the program does not find the failure of umem */
    check_device(&r, adr, packed);
    memset(packed, 0, host_bytes(&r));
    fake_cudart_fail_in(functions[i], 1, umemCudaOutOfMemory);
    expect_ok(gather(&r, adr, host, (uintptr_t)packed));
    assert_true(is_filled(packed, host_bytes(&r), 3));
    fake_cudart_fail(0, 0);
    assert_true(umem_is_ok(ctx) && umem_thread_status() == umemOK);
  }
}

/* More than a block holds, in parts, of which the last is shorter; rank 1 and a rank that needs
 * many boxes. */
CUDA_TEST(parts_follow_each_other) {
  enum { count = (33 << 20) / 64 + 5 };
  size_t const extents[] = {count};
  ptrdiff_t const gaps[] = {65}, none[] = {64};
  umemLayout in = {sizeof in, 64, 1, extents, none, gaps};
  umemLayout out = {sizeof out, 64, 1, extents, gaps, none};
  SCOPED_BYTES(unsigned char, bytes, (size_t)count * 64);
  begin(anAsync);
  uintptr_t adr = block_of(ctx, (size_t)count * 65);
  fill(bytes, (size_t)count * 64, 4);
  unsigned long before = fake_cudart_calls_of("memcpy_async");
  expect_ok(umem_copy_strided(host, (uintptr_t)bytes, ctx, adr, &in));
  assert_int_equal(fake_cudart_calls_of("memcpy_async") - before, 2);
  memset(bytes, 0, (size_t)count * 64);
  expect_ok(umem_copy_strided(ctx, adr, host, (uintptr_t)bytes, &out));
  assert_int_equal(fake_cudart_calls_of("memcpy_async") - before, 4);
  assert_true(is_filled(bytes, (size_t)count * 64, 4));
}

/* On a stream the copies of narrow rows, and the end of the block, are queued. */
CUDA_TEST(narrow_rows_of_pinned_memory_are_late) {
  Rows r = rows_of(rows, 4);
  begin(anAsync);
  void *stream = stream_of_ctx();
  uintptr_t adr = block_of(ctx, device_bytes(&r)), page = block_of(pinned, host_bytes(&r));
  unsigned char *bytes = (unsigned char *)page;
  expect_ok(umem_set(ctx, adr, 7, device_bytes(&r)));
  memset(bytes, 0, host_bytes(&r));
  expect_ok(gather(&r, adr, pinned, page));
  assert_true(fake_cudart_is_late(stream));
  assert_int_equal(bytes[0] + bytes[host_bytes(&r) - 1], 0);
  expect_ok(umem_set(ctx, adr, 8, device_bytes(&r))); /* after the copy */
  expect_ok(umem_synchronize(ctx));
  assert_int_equal(bytes[0] + bytes[host_bytes(&r) - 1], 14);
}

/* A graph would keep the address of the block. */
CUDA_TEST(a_capture_records_the_rows_themselves) {
  Rows r = rows_of(rows, 4);
  void *graph = NULL;
  begin(anAsync);
  void *stream = stream_of_ctx();
  uintptr_t adr = block_of(ctx, device_bytes(&r)), page = block_of(pinned, host_bytes(&r));
  unsigned char *bytes = (unsigned char *)page;
  expect_ok(umem_synchronize(ctx));
  unsigned long before = fake_cudart_calls_of("pool_malloc");
  assert_int_equal(fake_cudart_begin_capture(stream), 0);
  expect_ok(gather(&r, adr, pinned, page));
  assert_int_equal(fake_cudart_end_capture(stream, &graph), 0);
  assert_int_equal(fake_cudart_calls_of("pool_malloc"), before);
  for (int value = 1; value < 3; value++) {
    expect_ok(umem_set(ctx, adr, value, device_bytes(&r)));
    assert_int_equal(fake_cudart_launch_graph(graph, stream), 0);
    expect_ok(umem_synchronize(ctx));
    assert_int_equal(bytes[0] + bytes[host_bytes(&r) - 1], 2 * value);
  }
}
