/* cuda_boxes.c - strided copies in more boxes than pay go through host memory: how many calls of
 * the runtime a transposed array takes, and where boxes stay. On a double of the runtime. */
#include "cuda_help.h"

enum { edge = 96, item = sizeof(double), nbytes = edge * edge * item };

static void *host, *pinned, *ctx, *other;
static unsigned char bytes[nbytes], found[nbytes];

/* Those of a test are closed before. */
static void begin(int kind) {
  close_opened();
  host = opened("host:");
  pinned = opened("cuda-host:");
  ctx = opened_kind(kind, 0);
  other = opened("cuda:0");
  fill(bytes, nbytes, 3);
}

static size_t const square[] = {edge, edge};
static ptrdiff_t const down[] = {item, edge *item};
static umemLayout const transposed = {sizeof transposed, item, 2, square, down, NULL};

static unsigned long boxes(void) { return fake_cudart_calls_of("memcpy_box_async"); }

static void expect_transposed(void) {
  for (size_t i = 0; i < edge; i++)
    for (size_t j = 0; j < edge; j++)
      assert_memory_equal(found + (i * edge + j) * item, bytes + (j * edge + i) * item, item);
}

/* Copies the array transposed from one place to another: right, and in few calls. */
static void go(void *from, void *to) {
  uintptr_t src = block_of(from, nbytes), dst = block_of(to, nbytes);
  expect_ok(umem_copy_from(from, src, host, (uintptr_t)bytes, nbytes));
  expect_ok(umem_set(to, dst, 0, nbytes));
  expect_ok(umem_synchronize(from));
  expect_ok(umem_synchronize(to));
  unsigned long calls = fake_cudart_calls(), before = boxes();
  expect_ok(umem_copy_strided(from, src, to, dst, &transposed));
  expect_ok(umem_synchronize(to));
  assert_in_range(fake_cudart_calls() - calls, 1, edge);
  assert_in_range(boxes() - before, 0, 2);
  expect_ok(umem_copy_to(to, dst, host, (uintptr_t)found, nbytes));
  expect_transposed();
  umem_free(from, src);
  umem_free(to, dst);
}

CUDA_TEST(a_transposed_array_takes_few_calls) {
  static int const devices[] = {aCuda, anAsync};
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    begin(devices[i]);
    void *const others[] = {host, pinned, other};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
      go(ctx, others[k]);
      go(others[k], ctx);
    }
  }
}

/* Host memory would take the gaps, too. */
CUDA_TEST(sparse_items_stay_in_boxes) {
  size_t const extents[] = {24, 24};
  ptrdiff_t const apart[] = {item * 3, edge * item * 4};
  umemLayout const layout = {sizeof layout, item, 2, extents, apart, NULL};
  begin(aCuda);
  uintptr_t src = block_of(ctx, nbytes);
  expect_ok(umem_copy_from(ctx, src, host, (uintptr_t)bytes, nbytes));
  unsigned long before = boxes();
  expect_ok(umem_copy_strided(ctx, src, host, (uintptr_t)found, &layout));
  assert_int_equal(boxes() - before, 24);
  for (size_t i = 0; i < 24; i++)
    for (size_t j = 0; j < 24; j++)
      assert_memory_equal(found + (i * 24 + j) * item, bytes + (3 * i + 4 * edge * j) * item, item);
}

/* One channel of an image with padded lines: in the order of the device memory, too, each item is
 * apart. */
CUDA_TEST(scattered_items_stay_in_boxes) {
  size_t const extents[] = {24, 61};
  ptrdiff_t const apart[] = {61 * 12 + 4, 12};
  umemLayout const layout = {sizeof layout, 4, 2, extents, NULL, apart};
  begin(aCuda);
  uintptr_t dst = block_of(ctx, nbytes);
  expect_ok(umem_set(ctx, dst, 0, nbytes));
  unsigned long calls = fake_cudart_calls(), before = boxes();
  expect_ok(umem_copy_strided(host, (uintptr_t)bytes, ctx, dst, &layout));
  assert_int_equal(boxes() - before, 24);
  assert_in_range(fake_cudart_calls() - calls, 24, 60);
  expect_ok(umem_copy_to(ctx, dst, host, (uintptr_t)found, nbytes));
  for (size_t i = 0; i < 24; i++)
    for (size_t j = 0; j < 61; j++)
      assert_memory_equal(found + (61 * 12 + 4) * i + 12 * j, bytes + 4 * (61 * i + j), 4);
}

/* A graph cannot have the host's part. */
CUDA_TEST(a_capture_records_boxes) {
  begin(anAsync);
  void *graph = NULL, *stream = (void *)umemCudaAsync_stream(ctx);
  uintptr_t src = block_of(ctx, nbytes), dst = block_of(pinned, nbytes);
  expect_ok(umem_copy_from(ctx, src, host, (uintptr_t)bytes, nbytes));
  expect_ok(umem_synchronize(ctx));
  unsigned long before = boxes();
  assert_int_equal(fake_cudart_begin_capture(stream), 0);
  expect_ok(umem_copy_strided(ctx, src, pinned, dst, &transposed));
  assert_int_equal(fake_cudart_end_capture(stream, &graph), 0);
  assert_int_equal(boxes() - before, edge);
  assert_int_equal(fake_cudart_launch_graph(graph, stream), 0);
  expect_ok(umem_synchronize(ctx));
  memcpy(found, (void *)dst, nbytes);
  expect_transposed();
}

/* Whatever the order of the elements is, the memory is one run. */
CUDA_TEST(arrays_in_any_order_are_set_at_once) {
  int64_t const shape[] = {30, 40, 50}, columns[] = {item, 30 * item, 1200 * item};
  umemStatusType status = umemOK;
  double five = 5;
  begin(aCuda);
  SCOPED(release_array)
  umemArray *array = umemArray_create(ctx, umemDouble, 3, shape, columns, &status);
  SCOPED(release_array) umemArray *back = umemArray_slice(array, 1, 39, 40, -1, &status);
  SCOPED(release_array) umemArray *some = umemArray_slice(array, 1, 0, 20, 2, &status);
  unsigned long calls = fake_cudart_calls(), copies = boxes();
  umemArray_clear(back, &status);
  assert_in_range(fake_cudart_calls() - calls, 1, 10);
  calls = fake_cudart_calls();
  umemArray_fill(back, &five, &status);
  assert_in_range(fake_cudart_calls() - calls, 1, 60);
  assert_int_equal(boxes(), copies);
  umemArray_clear(some, &status);
  for (int64_t j = 0; j < 40; j++) {
    double value;
    uintptr_t adr =
        umemArray_address(array) + (uintptr_t)(columns[0] * 29 + columns[1] * j + columns[2] * 49);
    expect_ok(umem_copy_to(ctx, adr, host, (uintptr_t)&value, sizeof value));
    assert_true(value == (j % 2 ? 5 : 0));
  }
  expect_ok(status);
}
